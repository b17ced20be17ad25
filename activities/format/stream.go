package format

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"reprise/activities/memory"
	"reprise/interpreter/expression"
)

// PlacedRow is a row of what is read row by row.
type PlacedRow struct {
	Value any
	Line  int // in which it begins, from 1; 0 in JSON, which has no lines
	Odd   Oddity

	bytes  int64      // about what it takes in memory; 0 if that is not known
	end    int64      // where it ends, in bytes of the text; 0 if that is not known
	next   int        // the line behind it
	header *csvHeader // of CSV
}

// Columns returns the columns of the row, which are the same list for all rows with one header; nil if they are not known without a look at it.
func (r PlacedRow) Columns() []string {
	if r.header == nil {
		return nil
	}
	return r.header.names
}

// MemoryBytes estimates the memory that the row takes, in bytes.
func (r PlacedRow) MemoryBytes() int64 {
	if r.bytes > 0 {
		return r.bytes
	}
	return memory.ValueBytes(r.Value)
}

// textPart is the text of a source from its beginning, or from behind a row.
type textPart struct {
	io.Reader

	base   int64      // the bytes before it
	line   int        // of its first byte, from 1
	header *csvHeader // of CSV behind a row, which has no other; nil at the beginning
	rows   int64      // before it
	seeks  bool       // its bytes are those of the source, so that what follows a row can be read without what is before it
	spare  *SpareRows // of CSV; nil for none
}

// Streamed are the formats whose rows can be read one by one.
var Streamed = []string{CSV, JSON, JSONL, XML, Parquet}

// streamRows reads rows from a text in UTF-8: the lines of CSV and JSON Lines, the elements of the list that JSON is, or those of XML at a path. most bounds
// what one row takes of the text, in bytes; a larger one is memory.ErrTooLarge. An error is the last, and is a LineError where
// a line is wrong.
func (o Options) streamRows(text textPart, most int64) iter.Seq2[PlacedRow, error] {
	bounded := &rowReader{in: text, left: most, most: most, at: text.base}
	text.Reader = bounded
	var rows iter.Seq2[PlacedRow, error]
	switch o.Format {
	case JSON:
		rows = jsonElements(bounded, o.Rows, text.rows)
	case XML:
		rows = streamElements(bounded, o.Rows, o.Lists)
	case JSONL:
		rows = streamLines(bounded, text.line)
	default:
		text.spare = o.Spare
		rows = o.CSV.placedRows(text)
	}
	return func(yield func(PlacedRow, error) bool) {
		for row, err := range rows {
			bounded.left = most
			if !text.seeks {
				row.end = 0
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// rowReader bounds what is read until left is set again.
type rowReader struct {
	in         io.Reader
	left, most int64
	at         int64 // the place in the text
}

func (r *rowReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, memory.ErrTooLarge
	}
	n, err := r.in.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	r.at += int64(n)
	return n, err
}

// streamLines returns the values of JSON Lines; empty lines are left out. number is that of the first line.
func streamLines(content *rowReader, number int) iter.Seq2[PlacedRow, error] {
	return func(yield func(PlacedRow, error) bool) {
		in := bufio.NewReader(content)
		for number := number; ; number++ {
			line, err := in.ReadBytes('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				yield(PlacedRow{}, err)
				return
			}
			if text := bytes.TrimSpace(line); len(text) > 0 {
				value, wrong := expression.DecodeExact(text)
				if wrong != nil {
					wrong = &LineError{Line: number, Err: wrong}
				}
				row := PlacedRow{Value: value, Line: number, end: content.at - int64(in.Buffered()), next: number + 1}
				if !yield(row, wrong) || wrong != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
}

// jsonElements returns the elements of the list that JSON is, or has at a path. What is around the list is read too, as JSON may end too soon
// there. before are the elements before the content, which then begins behind the last of them.
func jsonElements(content *rowReader, path []string, before int64) iter.Seq2[PlacedRow, error] {
	return func(yield func(PlacedRow, error) bool) {
		base, missing := content.at, ""
		if before > 0 {
			missing = listBeginning(path)
		}
		in := io.MultiReader(strings.NewReader(missing), content)
		list := &listReader{Decoder: json.NewDecoder(in), content: content, path: path}
		err := list.openList()
		if err == nil && before > 0 {
			_, err = list.Token()
		}
		for number := before + 1; err == nil && list.More(); number++ {
			var element json.RawMessage
			if err = unexpectedEnd(list.Decode(&element)); err != nil {
				break
			}
			value, wrong := expression.DecodeExact(element)
			if wrong != nil {
				wrong = fmt.Errorf("element %d: %w", number, wrong)
			}
			if !yield(PlacedRow{Value: value, end: base + list.InputOffset() - int64(len(missing))}, wrong) || wrong != nil {
				return
			}
		}
		if err == nil {
			err = list.finishList()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			yield(PlacedRow{}, err)
		}
	}
}

// listBeginning returns what JSON that continues behind an element of a list has to begin with to be whole: a list whose element is 0.
func listBeginning(path []string) string {
	var begins strings.Builder
	for _, name := range path {
		key, _ := json.Marshal(name) // a text
		begins.WriteString("{" + string(key) + ":")
	}
	return begins.String() + "[0"
}

// listReader reads JSON around a list.
type listReader struct {
	*json.Decoder

	content *rowReader
	path    []string // of members of maps; none where the list is all there is
}

// openList reads up to the first element. The error of content that is empty is io.EOF.
func (l *listReader) openList() error {
	what := "it"
	for i, name := range l.path {
		if err := l.beginContainer(json.Delim('{'), what, i); err != nil {
			return err
		}
		what = strings.Join(l.path[:i+1], ".")
		for found := false; !found; {
			if !l.More() {
				return fmt.Errorf("it has no %s, where rows says that its rows are", what)
			}
			key, err := l.Token()
			if err != nil {
				return unexpectedEnd(err)
			}
			if found = key == name; found {
				break
			}
			if err := l.skipValue(); err != nil {
				return err
			}
		}
	}
	return l.beginContainer(json.Delim('['), what, len(l.path))
}

// beginContainer reads what a map or list begins with.
func (l *listReader) beginContainer(mark json.Delim, what string, depth int) error {
	first, err := l.Token()
	switch {
	case err != nil && depth > 0:
		return unexpectedEnd(err)
	case err != nil || first == mark:
		return err
	}
	kind := expression.TypeName(first)
	switch first {
	case json.Delim('{'):
		kind = "map"
	case json.Delim('['):
		kind = "list"
	}
	if mark == '{' {
		return fmt.Errorf("%s is %s, and rows names members of maps", what, withArticle(kind))
	}
	return fmt.Errorf("%s is %s, and only a list is read row by row", what, withArticle(kind))
}

func withArticle(kind string) string { return strings.Replace("a "+kind, "a nil", "nil", 1) }

// skipValue reads over a value of any size.
func (l *listReader) skipValue() error {
	for depth := 0; ; {
		l.content.left = l.content.most
		token, err := l.Token()
		if err != nil {
			return unexpectedEnd(err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// finishList reads the end of the list and what follows it. The error is io.EOF if nothing follows.
func (l *listReader) finishList() error {
	if _, err := l.Token(); err != nil {
		return unexpectedEnd(err)
	}
	for i := len(l.path) - 1; i >= 0; i-- {
		for l.More() {
			key, err := l.Token()
			if err == nil && key == l.path[i] {
				return fmt.Errorf("it has %s twice", strings.Join(l.path[:i+1], "."))
			}
			if err == nil {
				err = l.skipValue()
			}
			if err != nil {
				return unexpectedEnd(err)
			}
		}
		if _, err := l.Token(); err != nil {
			return unexpectedEnd(err)
		}
	}
	switch _, err := l.Token(); {
	case errors.Is(err, io.EOF):
		return io.EOF
	case err != nil && errors.Is(err, memory.ErrTooLarge):
		return err
	}
	return errors.New("something follows the " + map[bool]string{true: "list", false: "map"}[len(l.path) == 0])
}

// unexpectedEnd returns the error of content that ends too soon.
func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
