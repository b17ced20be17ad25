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
}

// Streamed are the formats whose rows can be read one by one.
var Streamed = []string{CSV, JSON, JSONL, XML, Parquet}

// StreamRows reads rows from content in UTF-8: the lines of CSV and JSON Lines, the elements of the list that JSON is, or those of XML at a path. most bounds
// what one row takes of the content, in bytes; a larger one is memory.ErrTooLarge. An error is the last, and is a LineError where
// a line is wrong.
func (o Options) StreamRows(content io.Reader, most int64) iter.Seq2[PlacedRow, error] {
	bounded := &rowReader{in: content, left: most, most: most}
	read := o.CSV.placedRows
	switch o.Format {
	case JSON:
		read = func(io.Reader) iter.Seq2[PlacedRow, error] { return jsonElements(bounded, o.Rows) }
	case XML:
		read = func(io.Reader) iter.Seq2[PlacedRow, error] { return streamElements(bounded, o.Rows, o.Lists) }
	case JSONL:
		read = streamLines
	}
	return func(yield func(PlacedRow, error) bool) {
		for row, err := range read(bounded) {
			bounded.left = most
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
}

func (r *rowReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, memory.ErrTooLarge
	}
	n, err := r.in.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	return n, err
}

// streamLines returns the values of JSON Lines; empty lines are left out.
func streamLines(content io.Reader) iter.Seq2[PlacedRow, error] {
	return func(yield func(PlacedRow, error) bool) {
		in := bufio.NewReader(content)
		for number := 1; ; number++ {
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
				if !yield(PlacedRow{value, number}, wrong) || wrong != nil {
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
// there.
func jsonElements(content *rowReader, path []string) iter.Seq2[PlacedRow, error] {
	return func(yield func(PlacedRow, error) bool) {
		list := &listReader{Decoder: json.NewDecoder(content), content: content, path: path}
		err := list.openList()
		for number := 1; err == nil && list.More(); number++ {
			var element json.RawMessage
			if err = unexpectedEnd(list.Decode(&element)); err != nil {
				break
			}
			value, wrong := expression.DecodeExact(element)
			if wrong != nil {
				wrong = fmt.Errorf("element %d: %w", number, wrong)
			}
			if !yield(PlacedRow{Value: value}, wrong) || wrong != nil {
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
