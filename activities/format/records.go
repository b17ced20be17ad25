package format

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// What is wrong with a record of CSV.
var (
	errOpenQuote  = errors.New("a quoted value does not end")
	errAfterQuote = errors.New("text follows the closing quote of a value")
	errBareQuote  = errors.New("there is a quote within a value that does not start with one; set csv.quote, which may be none")
)

// record is a record of CSV, which spans several lines if its values contain line breaks.
type record struct {
	values []string // until the next record is read
	line   int      // from 1
	empty  bool     // the line is empty: one value without quotes, or none
	quoted bool     // the last value is in quotes
}

// records reads CSV in UTF-8. Lines end in LF, CR LF or CR, or in CR CR LF (line ends that were converted twice).
// Line breaks within quotes belong to the value and are kept.
type records struct {
	in        *bufio.Reader
	unread    []byte // what in has in its buffer, without what was skipped
	skipped   int    // bytes that were skipped, and are still in the buffer
	delimiter []byte
	quote     byte
	quotes    bool
	ends      [256]bool // bytes that may end a value without quotes
	line      int       // of the next byte
	// unnamed says that neither the author nor the text names the delimiter.
	unnamed bool
	text    []byte     // of the values of the record
	lengths []int      // of text up to the end of each of these
	values  []string   // the same as values
	content *rowReader // below in, nil where places do not count
}

// recordBuffer is how many bytes of CSV are looked through at once.
const recordBuffer = 16 << 10

// newRecordsAt reads CSV from its beginning, or from behind a row, where the text does not say how it is written.
func (d CSVDialect) newRecordsAt(text textPart) (*records, error) {
	content, _ := text.Reader.(*rowReader)
	if text.header != nil {
		r := &records{
			in: bufio.NewReaderSize(text, recordBuffer), quote: cmp.Or(d.quote, usualQuote), quotes: d.quote != unusedByte, line: text.line, content: content,
		}
		r.separateBy(text.header.delimiter)
		return r, nil
	}
	r, err := d.newRecords(text)
	r.content = content
	return r, err
}

// place returns the place in the text up to which it was read, in bytes; 0 where places do not count.
func (r *records) place() int64 {
	if r.content == nil {
		return 0
	}
	return r.content.at - int64(r.in.Buffered()-r.skipped)
}

// separateBy sets the delimiter.
func (r *records) separateBy(delimiter string) {
	r.delimiter = []byte(delimiter)
	r.ends = [256]bool{'\n': true, '\r': true}
	r.ends[delimiter[0]] = true
	r.ends[r.quote] = r.ends[r.quote] || r.quotes
}

// peek returns the next n bytes, or an error with those that there are.
func (r *records) peek(n int) ([]byte, error) {
	if len(r.unread) >= n {
		return r.unread[:n], nil
	}
	_, _ = r.in.Discard(r.skipped)
	r.skipped = 0
	next, err := r.in.Peek(n)
	r.unread, _ = r.in.Peek(r.in.Buffered())
	return next, err
}

// rest returns what is in memory of the text, which is at least one byte unless there is an error.
func (r *records) rest() ([]byte, error) {
	if len(r.unread) == 0 {
		if _, err := r.peek(1); err != nil {
			return nil, err
		}
	}
	return r.unread, nil
}

// skip reads n of the bytes that rest or peek has returned.
func (r *records) skip(n int) {
	r.unread, r.skipped = r.unread[n:], r.skipped+n
}

func (d CSVDialect) newRecords(content io.Reader) (*records, error) {
	r := &records{in: bufio.NewReaderSize(content, recordBuffer), quote: cmp.Or(d.quote, usualQuote), quotes: d.quote != unusedByte, line: 1}
	named, err := r.namedDelimiter()
	delimiter := cmp.Or(named, d.delimiter, usualDelimiter)
	if err == nil && r.quotes && delimiter == rune(r.quote) {
		err = &LineError{1, fmt.Errorf("sep= names %q, which quotes values; set csv.quote", delimiter)}
	}
	r.separateBy(string(delimiter))
	r.unnamed = named == 0 && d.delimiter == 0
	return r, err
}

// namedDelimiter reads a first line such as sep=; which spreadsheets use to name the delimiter; 0 if there is
// none. In quotes, as from programs that quote all values, it may be the name of a column, unless the next line has the delimiter.
func (r *records) namedDelimiter() (rune, error) {
	const word, shown = "sep=", 1 << 10
	head, err := r.peek(shown)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, nil // who reads on sees it
	}
	quote := ""
	if r.quotes && bytes.HasPrefix(head, []byte{r.quote}) {
		quote = string(rune(r.quote))
	}
	rest, begins := cutFold(string(head), quote+word)
	named, size := utf8.DecodeRuneInString(rest)
	if !begins || size == 0 || strings.ContainsRune("\r\n", named) {
		return 0, nil
	}
	rest, begins = strings.CutPrefix(rest[size:], quote)
	if !begins || rest != "" && rest[0] != '\n' && rest[0] != '\r' {
		return 0, nil
	}
	next, _, _ := strings.Cut(strings.TrimLeft(rest, "\r\n"), "\n")
	if quote != "" && !strings.ContainsRune(next, named) {
		return 0, nil
	}
	r.skip(len(quote+word+quote) + size)
	_, err = r.readEnd()
	return named, err
}

// cutFold is strings.CutPrefix, whatever the case of letters.
func cutFold(text, prefix string) (rest string, found bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return text[len(prefix):], true
}

// nextRecord returns the next record, or io.EOF. Other errors name the line.
func (r *records) nextRecord() (record, error) {
	found := record{line: r.line}
	r.text, r.lengths = r.text[:0], r.lengths[:0]
	for {
		quoted, last, err := r.readField(found.line)
		if err != nil {
			ended := errors.Is(err, io.EOF)
			if ended && len(r.lengths) == 0 {
				return record{}, io.EOF
			}
			if !ended {
				return record{}, err
			}
		}
		r.lengths = append(r.lengths, len(r.text))
		if last {
			found.values = r.cutValues()
			found.quoted = quoted
			found.empty = len(found.values) == 1 && found.values[0] == "" && !quoted
			return found, nil
		}
	}
}

// cutValues returns the values of the record that was read. They are parts of one text, as most rows are used as a whole.
func (r *records) cutValues() []string {
	text, begin := string(r.text), 0
	r.values = r.values[:0]
	for _, end := range r.lengths {
		r.values = append(r.values, text[begin:end])
		begin = end
	}
	return r.values
}

// readField reads a value and its delimiter. last reports whether it ends the record; the error is io.EOF if nothing
// was left to read.
func (r *records) readField(line int) (quoted, last bool, err error) {
	head, err := r.rest()
	if err != nil {
		return false, true, err
	}
	if r.quotes && head[0] == r.quote {
		r.skip(1)
		if err := r.readQuoted(line); err != nil {
			return true, true, err
		}
		last, err = r.afterClosingQuote()
		return true, last, err
	}
	for {
		part, err := r.rest()
		switch {
		case errors.Is(err, io.EOF):
			return false, true, nil
		case err != nil:
			return false, true, err
		}
		at := r.plainBytes(part)
		r.text = append(r.text, part[:at]...)
		r.skip(at)
		if at == len(part) {
			continue
		}
		switch c := part[at]; {
		case c == '\n' || c == '\r':
			_, err := r.readEnd()
			return false, true, err
		case r.skipBytes(r.delimiter):
			return false, false, nil
		case r.quotes && c == r.quote:
			return false, true, &LineError{r.line, errBareQuote}
		default: // it begins as the delimiter does
			r.text = append(r.text, c)
			r.skip(1)
		}
	}
}

// plainBytes returns how many bytes come before one that may end a value without quotes.
func (r *records) plainBytes(part []byte) int {
	for i, c := range part {
		if r.ends[c] {
			return i
		}
	}
	return len(part)
}

// readQuoted reads a value up to its closing quote.
func (r *records) readQuoted(line int) error {
	for before := byte(0); ; {
		part, err := r.rest()
		switch {
		case errors.Is(err, io.EOF):
			return &LineError{line, errOpenQuote}
		case err != nil:
			return err
		}
		at := bytes.IndexByte(part, r.quote)
		if at < 0 {
			at = len(part)
		}
		for _, c := range part[:at] {
			if c == '\r' || c == '\n' && before != '\r' {
				r.line++
			}
			before = c
		}
		r.text = append(r.text, part[:at]...)
		r.skip(at)
		if at == len(part) {
			continue
		}
		r.skip(1)
		if !r.skipBytes([]byte{r.quote}) {
			return nil
		}
		r.text, before = append(r.text, r.quote), r.quote
	}
}

// afterClosingQuote reads what follows a closing quote.
func (r *records) afterClosingQuote() (last bool, err error) {
	if r.skipBytes(r.delimiter) {
		return false, nil
	}
	ended, err := r.readEnd()
	if err == nil && !ended {
		err = &LineError{r.line, errAfterQuote}
	}
	return true, err
}

// lineEnds are the ends of lines. One that begins another comes after it.
var lineEnds = [][]byte{[]byte("\n"), []byte("\r\r\n"), []byte("\r\n"), []byte("\r")}

// readEnd reads the end of a line, or of the text.
func (r *records) readEnd() (ended bool, err error) {
	for _, end := range lineEnds {
		if r.skipBytes(end) {
			r.line++
			return true, nil
		}
	}
	if _, err := r.rest(); err == nil || !errors.Is(err, io.EOF) {
		return false, err
	}
	return true, nil
}

// skipBytes reads the given bytes if they come next.
func (r *records) skipBytes(next []byte) bool {
	there, _ := r.peek(len(next)) // an error is seen by who reads on
	if !bytes.Equal(there, next) {
		return false
	}
	r.skip(len(next))
	return true
}
