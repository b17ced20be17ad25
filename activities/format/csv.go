package format

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// The keys of csv.
const (
	keyDelimiter = "delimiter"
	keyQuote     = "quote"
	keyHeader    = "header"
	keyNull      = "null"
	keyEncoding  = "encoding"
	keyFormulas  = "formulas"
)

// What a sink does with texts that spreadsheets take for formulas.
const (
	formulasUnchanged = "keep"
	formulasEscaped   = "escape"
)

// Formulas is the key of csv for a sink.
var Formulas = playbook.Field{
	Name: keyFormulas, Kind: playbook.KindText, Enum: []string{formulasUnchanged, formulasEscaped}, Default: formulasUnchanged,
	Doc: "In a sink: escape puts an apostrophe before texts that a spreadsheet would run as formulas, which begin with =, +, -, @, a tab or a line break. Numbers stay as they are.",
}

var csvKeys = []playbook.Field{
	{Name: keyDelimiter, Kind: playbook.KindText, Default: `","`, Doc: "The separator of values: one character, or tab."},
	{Name: keyQuote, Kind: playbook.KindText, Default: `'"'`, Doc: "The quote around values that contain delimiters or line breaks: one character, or none. Within a value it is doubled."},
	{Name: keyHeader, Kind: playbook.KindValue, Default: "true", Doc: "true: the first line has the names of the columns. false: the columns are named column1, column2, …. A list: these names, for a file without a header."},
	{Name: keyNull, Kind: playbook.KindValue, Default: "no text", Doc: "The text, or list of texts, that is read as nil, whether quoted or not."},
	{Name: keyEncoding, Kind: playbook.KindText, Default: "that of the content type", Doc: "The same as the field encoding."},
}

const (
	usualDelimiter = ','
	usualQuote     = '"'
	// unusedByte is in no text in UTF-8: as a quote it quotes nothing.
	unusedByte = 0xff
)

// CSVDialect is how CSV is written. The zero value is RFC 4180 with a line of names.
type CSVDialect struct {
	delimiter rune // 0 where the author names none
	quote     byte // 0 for the usual one
	names     []string
	unnamed   bool
	null      []string
}

// readDialect reads the field csv.
func readDialect(step string, written map[string]any) (d CSVDialect, err error) {
	refuse := func(key, must string) (CSVDialect, error) {
		return d, tool.ConfigErrorf("step %q: csv.%s is %s; it must be %s", step, key, shownValue(written[key]), must)
	}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		known := name == keyFormulas || slices.ContainsFunc(csvKeys, func(f playbook.Field) bool { return f.Name == name })
		if !known {
			return d, tool.ConfigErrorf("step %q: csv has no key %q; its keys are %s", step, name, tool.ChoiceText(lists.Map(csvKeys, func(key playbook.Field) string { return key.Name })))
		}
	}
	if written[keyFormulas] != nil {
		return d, tool.ConfigErrorf("step %q: csv.formulas applies only to sinks, and this step reads; remove it", step)
	}
	var ok bool
	if d.delimiter, ok = readDelimiter(written[keyDelimiter]); !ok {
		return refuse(keyDelimiter, "one character, or tab")
	}
	if d.quote, ok = readQuote(written); !ok {
		return refuse(keyQuote, "one ASCII character, or none")
	}
	if d.quoteClashes() {
		return d, tool.ConfigErrorf("step %q: csv.delimiter and csv.quote are one character; they must differ", step)
	}
	switch header := written[keyHeader].(type) {
	case nil:
	case bool:
		d.unnamed = !header
	case []any:
		if d.names, ok = toTexts(header); !ok || len(header) == 0 {
			return refuse(keyHeader, "true, false or a list of names")
		}
		if name, twice := duplicateName(d.names); twice {
			return d, tool.ConfigErrorf("step %q: csv.header has the name %q twice", step, name)
		}
	default:
		return refuse(keyHeader, "true, false or a list of names")
	}
	if d.null, ok = nullTexts(written); !ok {
		return refuse(keyNull, "text, or a list of texts")
	}
	return d, nil
}

// quoteClashes reports whether a quote and a delimiter cannot be distinguished.
func (d CSVDialect) quoteClashes() bool {
	switch d.quote {
	case 0, unusedByte:
		return d.delimiter == usualQuote
	}
	return cmp.Or(d.delimiter, usualDelimiter) == rune(d.quote)
}

// shownValue returns a value in a message.
func shownValue(v any) string {
	if text, isText := v.(string); isText {
		return fmt.Sprintf("%q", tool.CutText(text, 40))
	}
	return "a " + expression.TypeName(v)
}

// readDelimiter returns the delimiter, 0 where none is written.
func readDelimiter(v any) (rune, bool) {
	text, isText := v.(string)
	switch {
	case v == nil:
		return 0, true
	case text == "tab", text == `\t`:
		return '\t', true
	}
	r, size := utf8.DecodeRuneInString(text)
	return r, isText && size == len(text) && size > 0 && r != utf8.RuneError && r != '\n' && r != '\r'
}

// readQuote returns the byte that quotes, 0 for the usual one.
func readQuote(written map[string]any) (byte, bool) {
	text, isText := written[keyQuote].(string)
	switch {
	case written[keyQuote] == nil, text == string(usualQuote):
		return 0, true
	case isText && (text == "" || text == "none"):
		return unusedByte, true
	}
	if len(text) != 1 || text[0] >= utf8.RuneSelf || text[0] == '\n' || text[0] == '\r' {
		return 0, false
	}
	return text[0], true
}

// nullTexts returns the texts that are nil.
func nullTexts(written map[string]any) ([]string, bool) {
	switch v := written[keyNull].(type) {
	case nil:
		return nil, true
	case []any:
		return toTexts(v)
	case map[string]any:
		return nil, false
	default:
		return []string{expression.Text(v)}, true
	}
}

func toTexts(list []any) ([]string, bool) {
	all := make([]string, len(list))
	for i, item := range list {
		switch item.(type) {
		case nil, []any, map[string]any:
			return nil, false
		}
		all[i] = expression.Text(item)
	}
	return all, true
}

// estimateMemory estimates the memory that the rows of content take.
func (d CSVDialect) estimateMemory(content []byte) int64 {
	delimiter := cmp.Or(d.delimiter, usualDelimiter)
	rows := max(bytes.Count(content, []byte("\n")), bytes.Count(content, []byte("\r")))
	values := bytes.Count(content, []byte(string(delimiter)))
	return int64(len(content) + rows*memory.MapBytes + (rows+values)*(memory.EntryBytes+memory.TextBytes))
}

// ReadRows reads CSV in UTF-8 as maps of texts by the names of their columns. It stops at the
// first error, which is a LineError for an invalid line. Empty lines are skipped, unless there
// is only one column: then they are empty values.
func (d CSVDialect) ReadRows(content io.Reader) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for row, err := range d.placedRows(textPart{Reader: content}) {
			if !yield(row.Value, err) {
				return
			}
		}
	}
}

// csvHeader is what the beginning of CSV says about its rows.
type csvHeader struct {
	names     []string
	delimiter string
}

// placedRows is ReadRows with the places of the rows.
func (d CSVDialect) placedRows(text textPart) iter.Seq2[PlacedRow, error] {
	return func(yield func(PlacedRow, error) bool) {
		reader, err := d.newRecordsAt(text)
		header := text.header
		if header == nil {
			header = &csvHeader{names: d.names, delimiter: string(reader.delimiter)}
		}
		skipped, first := 0, 0
		for err == nil {
			var found record
			if found, err = reader.nextRecord(); err != nil {
				break
			}
			names := header.names
			switch {
			case found.empty && len(names) != 1:
				if skipped++; skipped == 1 {
					first = found.line
				}
				continue
			case names == nil && !d.unnamed:
				header.names, err = columnNames(found, reader.unnamed)
				continue
			case isHTML(found):
				err = &LineError{found.line, errHTML}
				continue
			case names == nil:
				if err = refuseOtherDelimiter(found, reader.unnamed); err != nil {
					continue
				}
				names = numberedColumns(len(found.values))
				header.names = names
				for i := range skipped {
					if len(names) == 1 && !yield(PlacedRow{Value: d.fillRow(text.spare.emptyRow(len(names)), names, []string{""}), Line: first + i}, nil) {
						return
					}
				}
			case len(found.values) != len(names):
				err = &LineError{found.line, fmt.Errorf("%s, and there are %s", source.Count(len(found.values), "value"), source.Count(len(names), "column"))}
				continue
			}
			row := PlacedRow{
				Value: d.fillRow(text.spare.emptyRow(len(names)), names, found.values), Line: found.line, Odd: d.oddity(names, found.values), bytes: memoryOf(names, len(reader.text)),
				end: reader.place(), next: reader.line, header: header,
			}
			if !yield(row, nil) {
				return
			}
		}
		if !errors.Is(err, io.EOF) {
			yield(PlacedRow{}, err)
		}
	}
}

// ReadHeader returns the names in the first line of CSV, nil for none, and the delimiter.
func (d CSVDialect) ReadHeader(content io.Reader) (names []string, delimiter string, err error) {
	reader, err := d.newRecords(content)
	for err == nil {
		var found record
		if found, err = reader.nextRecord(); err == nil && !found.empty {
			return found.values, string(reader.delimiter), nil
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return nil, string(reader.delimiter), err
}

// WritesDelimiter reports whether rows are written with a delimiter.
func WritesDelimiter(delimiter string) bool { return delimiter == string(usualDelimiter) }

// EndsInQuotes reports whether CSV ends within a quoted value. Rows that are appended would become a part of
// it.
func (d CSVDialect) EndsInQuotes(content io.Reader) (bool, error) {
	reader, err := d.newRecords(content)
	for err == nil {
		_, err = reader.nextRecord()
	}
	var wrong *LineError
	switch {
	case errors.Is(err, io.EOF):
		return false, nil
	case errors.As(err, &wrong):
		return errors.Is(err, errOpenQuote), nil
	}
	return false, err
}

// OtherDelimiters are common delimiters besides the usual one. A line with a single value that contains one is
// accepted only if the value is quoted.
const OtherDelimiters = ";\t|"

// refuseOtherDelimiter returns an error if the first line has one value with another delimiter in it, and nobody has named the delimiter:
// all columns would be one.
func refuseOtherDelimiter(line record, unnamed bool) error {
	at := strings.IndexAny(line.values[0], OtherDelimiters)
	if !unnamed || len(line.values) != 1 || line.quoted || at < 0 {
		return nil
	}
	return &LineError{line.line, fmt.Errorf("there is one column, %q; if %q separates columns, write csv: {delimiter: %q}, and if not, csv: {delimiter: \",\"}",
		tool.CutText(line.values[0], 100), line.values[0][at], line.values[0][at:at+1])}
}

// columnNames returns the names of the columns.
func columnNames(line record, unnamed bool) ([]string, error) {
	if isHTML(line) {
		return nil, &LineError{line.line, errHTML}
	}
	if err := refuseOtherDelimiter(line, unnamed); err != nil {
		return nil, err
	}
	if names := strings.Join(line.values, ","); strings.HasPrefix(names, "\x00") && 2*strings.Count(names, "\x00") >= len(names) {
		return nil, &LineError{line.line, errors.New("every second character of the names is NUL, as in UTF-16; set encoding: utf-16be")}
	}
	if name, twice := duplicateName(line.values); twice {
		return nil, &LineError{line.line, fmt.Errorf("the column %q occurs twice; name the columns in csv.header", name)}
	}
	return slices.Clone(line.values), nil
}

// errHTML is the error for an HTML page instead of CSV, such as a login page.
var errHTML = errors.New("the text is HTML, and not CSV")

// isHTML reports whether a record is how HTML begins (whatwg.org, MIME sniffing: the tags that a page begins with).
func isHTML(line record) bool {
	if line.line != 1 {
		return false
	}
	text := strings.ToLower(strings.TrimSpace(line.values[0]))
	return strings.HasPrefix(text, "<!doctype html") || strings.HasPrefix(text, "<html")
}

func duplicateName(names []string) (string, bool) {
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return name, true
		}
		seen[name] = true
	}
	return "", false
}

func numberedColumns(columns int) []string {
	names := make([]string, columns)
	for i := range names {
		names[i] = fmt.Sprintf("column%d", i+1)
	}
	return names
}

// memoryOf estimates the memory of a row, in bytes, by the length of its texts. It is that of memory.ValueBytes, or more where values are nil.
func memoryOf(names []string, length int) int64 {
	bytes := int64(memory.MapBytes + length)
	for _, name := range names {
		bytes += int64(memory.EntryBytes + memory.TextBytes + len(name))
	}
	return bytes
}

// fillRow puts the values of a record into an empty row, and returns the row.
func (d CSVDialect) fillRow(row map[string]any, names, record []string) map[string]any {
	for i, name := range names {
		if slices.Contains(d.null, record[i]) {
			row[name] = nil
			continue
		}
		row[name] = record[i]
	}
	return row
}
