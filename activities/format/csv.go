package format

import (
	"bytes"
	"cmp"
	"encoding/csv"
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
)

var csvKeys = []playbook.Field{
	{Name: keyDelimiter, Kind: playbook.KindText, Default: `","`, Doc: "What separates values: one character, or tab."},
	{Name: keyQuote, Kind: playbook.KindText, Default: `'"'`, Doc: "What encloses values that hold delimiters or line breaks: one character, or none. Within such a value it is doubled."},
	{Name: keyHeader, Kind: playbook.KindValue, Default: "true", Doc: "true: the first line has the names of the columns; false: there are no names, and they are column1, column2, …; or a list of names, where the file has none."},
	{Name: keyNull, Kind: playbook.KindValue, Default: "no text", Doc: "The text, or a list of texts, that is nil, quoted or not."},
	{Name: keyEncoding, Kind: playbook.KindText, Default: "a byte order mark, then that of the content type, then utf-8", Doc: "The charset, such as windows-1252 or utf-16le."},
}

const (
	usualDelimiter = ','
	usualQuote     = '"'
	// unusedByte is in no text in UTF-8: as a quote it quotes nothing.
	unusedByte = 0xff
)

// CSVDialect is how CSV is written. The zero value is RFC 4180 with a line of names.
type CSVDialect struct {
	delimiter rune
	quote     byte // 0 for the usual one
	names     []string
	unnamed   bool
	null      []string
	// Encoding is the charset that the author says, "" for none.
	Encoding string
}

// dialect reads the field csv.
func dialect(step string, written map[string]any) (d CSVDialect, err error) {
	refuse := func(key, must string) (CSVDialect, error) {
		return d, tool.ConfigErrorf("step %q: csv.%s is %s; it must be %s", step, key, shown(written[key]), must)
	}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		known := slices.ContainsFunc(csvKeys, func(f playbook.Field) bool { return f.Name == name })
		if !known {
			return d, tool.ConfigErrorf("step %q: csv has no key %q; its keys are %s", step, name, tool.OneOf(lists.Map(csvKeys, func(key playbook.Field) string { return key.Name })))
		}
	}
	var ok bool
	if d.delimiter, ok = delimiter(written[keyDelimiter]); !ok {
		return refuse(keyDelimiter, "one character, or tab")
	}
	if d.quote, ok = quote(written); !ok {
		return refuse(keyQuote, "one ASCII character, or none")
	}
	if d.clashes() {
		return d, tool.ConfigErrorf("step %q: csv.delimiter and csv.quote are one character; they must differ", step)
	}
	switch header := written[keyHeader].(type) {
	case nil:
	case bool:
		d.unnamed = !header
	case []any:
		if d.names, ok = texts(header); !ok || len(header) == 0 {
			return refuse(keyHeader, "true, false or a list of names")
		}
		if name, twice := duplicate(d.names); twice {
			return d, tool.ConfigErrorf("step %q: csv.header has the name %q twice", step, name)
		}
	default:
		return refuse(keyHeader, "true, false or a list of names")
	}
	if d.null, ok = nulls(written); !ok {
		return refuse(keyNull, "text, or a list of texts")
	}
	encoding, isText := written[keyEncoding].(string)
	_, _, unknown := charsetOf(Charset(encoding))
	if d.Encoding = encoding; !isText && written[keyEncoding] != nil || encoding != "" && unknown != nil {
		return refuse(keyEncoding, "the name of a charset, such as utf-8, windows-1252 or utf-16le")
	}
	return d, nil
}

// clashes reports whether a quote and a delimiter cannot be distinguished.
func (d CSVDialect) clashes() bool {
	switch d.quote {
	case 0, unusedByte:
		return d.delimiter == usualQuote
	}
	return d.delimiter == rune(d.quote)
}

// shown is a value in a message.
func shown(v any) string {
	if text, isText := v.(string); isText {
		return fmt.Sprintf("%q", tool.CutText(text, 40))
	}
	return "a " + expression.TypeName(v)
}

func delimiter(v any) (rune, bool) {
	text, isText := v.(string)
	switch {
	case v == nil:
		return usualDelimiter, true
	case text == "tab", text == `\t`:
		return '\t', true
	}
	r, size := utf8.DecodeRuneInString(text)
	return r, isText && size == len(text) && size > 0 && r != utf8.RuneError && r != '\n' && r != '\r'
}

// quote is the byte that quotes, 0 for the usual one.
func quote(written map[string]any) (byte, bool) {
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

// nulls are the texts that are nil.
func nulls(written map[string]any) ([]string, bool) {
	switch v := written[keyNull].(type) {
	case nil:
		return nil, true
	case []any:
		return texts(v)
	case map[string]any:
		return nil, false
	default:
		return []string{expression.Text(v)}, true
	}
}

func texts(list []any) ([]string, bool) {
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

// estimate is what the rows of content take in memory.
func (d CSVDialect) estimate(content []byte) int64 {
	delimiter := cmp.Or(d.delimiter, usualDelimiter)
	rows, values := bytes.Count(content, []byte("\n")), bytes.Count(content, []byte(string(delimiter)))
	return int64(len(content) + rows*memory.MapBytes + (rows+values)*(memory.EntryBytes+memory.TextBytes))
}

// Rows reads CSV in UTF-8 as maps of texts by the names of their columns. An error,
// which is a LineError where a line is wrong, is the last. Lines that are empty are
// left out.
func (d CSVDialect) Rows(content io.Reader) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		reader := d.reader(content)
		names := d.names
		for {
			record, err := reader.Read()
			line := 0
			if err == nil {
				line, _ = reader.FieldPos(0)
				err = d.unswap(record, line)
			}
			switch {
			case errors.Is(err, io.EOF):
				return
			case err == nil && names == nil && !d.unnamed:
				names, err = header(record, line)
				if err == nil {
					continue
				}
			case err == nil && names == nil:
				names = numbered(len(record))
			}
			if err == nil && len(record) != len(names) {
				err = &LineError{line, fmt.Errorf("%s, and there are %s", source.Count(len(record), "value"), source.Count(len(names), "column"))}
			}
			if err != nil {
				yield(nil, placed(err))
				return
			}
			if !yield(d.row(names, record), nil) {
				return
			}
		}
	}
}

// reader reads records. Another quote than the usual one is swapped with it on its way
// in, and back in unswap.
func (d CSVDialect) reader(content io.Reader) *csv.Reader {
	delimiter := cmp.Or(d.delimiter, usualDelimiter)
	if d.quote != 0 {
		content = &swapping{content, d.quote}
		if delimiter == usualQuote {
			delimiter = rune(d.quote)
		}
	}
	reader := csv.NewReader(content)
	reader.Comma, reader.FieldsPerRecord, reader.ReuseRecord = delimiter, -1, true
	return reader
}

// swapping swaps a quote with the usual one.
type swapping struct {
	from  io.Reader
	quote byte
}

func (s *swapping) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	for i, c := range p[:n] {
		switch c {
		case s.quote:
			p[i] = usualQuote
		case usualQuote:
			p[i] = s.quote
		}
	}
	return n, err
}

// unswap gives values their own quotes back, and refuses what is no text.
func (d CSVDialect) unswap(record []string, line int) error {
	for i, value := range record {
		if d.quote != 0 && (strings.IndexByte(value, d.quote) >= 0 || strings.IndexByte(value, usualQuote) >= 0) {
			swapped := []byte(value)
			_, _ = (&swapping{bytes.NewReader(swapped), d.quote}).Read(swapped)
			value = string(swapped)
			record[i] = value
		}
		if !utf8.ValidString(value) {
			return &LineError{line, errNotUTF8}
		}
	}
	return nil
}

var errNotUTF8 = errors.New("the text is not UTF-8; set csv.encoding, such as windows-1252")

// header are the names of the columns.
func header(record []string, line int) ([]string, error) {
	if name, twice := duplicate(record); twice {
		return nil, &LineError{line, fmt.Errorf("the column %q occurs twice; name the columns in csv.header", name)}
	}
	return slices.Clone(record), nil
}

func duplicate(names []string) (string, bool) {
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return name, true
		}
		seen[name] = true
	}
	return "", false
}

func numbered(columns int) []string {
	names := make([]string, columns)
	for i := range names {
		names[i] = fmt.Sprintf("column%d", i+1)
	}
	return names
}

func (d CSVDialect) row(names, record []string) map[string]any {
	row := make(map[string]any, len(names))
	for i, name := range names {
		if slices.Contains(d.null, record[i]) {
			row[name] = nil
			continue
		}
		row[name] = record[i]
	}
	return row
}

// placed is an error of encoding/csv with its line and what to do.
func placed(err error) error {
	var wrong *csv.ParseError
	if !errors.As(err, &wrong) {
		return err
	}
	switch {
	case errors.Is(err, csv.ErrQuote):
		return &LineError{wrong.StartLine, errors.New("a quoted value does not end, or text follows its closing quote")}
	case errors.Is(err, csv.ErrBareQuote):
		return &LineError{wrong.Line, errors.New("a quote occurs within a value that does not begin with one; set csv.quote, which may be none")}
	}
	return &LineError{wrong.Line, wrong.Err}
}
