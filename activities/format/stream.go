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
var Streamed = []string{CSV, JSON, JSONL}

// Stream reads rows from content in UTF-8: the lines of CSV and JSON Lines, or the elements of the list that JSON is. most bounds
// what one row takes of the content, in bytes; a larger one is memory.ErrTooLarge. An error is the last, and is a LineError where
// a line is wrong.
func (o Options) Stream(content io.Reader, most int64) iter.Seq2[PlacedRow, error] {
	bounded := &rowReader{in: content, left: most, most: most}
	read := o.CSV.placed
	switch o.Format {
	case JSON:
		read = elements
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

// streamLines are the values of JSON Lines; empty lines are left out.
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

// elements are the elements of the list that JSON is. What follows the list has to be nothing.
func elements(content io.Reader) iter.Seq2[PlacedRow, error] {
	return func(yield func(PlacedRow, error) bool) {
		decoder := json.NewDecoder(content)
		err := openList(decoder)
		for number := 1; err == nil && decoder.More(); number++ {
			var element json.RawMessage
			if err = unexpected(decoder.Decode(&element)); err != nil {
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
			err = closeList(decoder)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			yield(PlacedRow{}, err)
		}
	}
}

// openList reads up to the first element. The error of content that is empty is io.EOF.
func openList(decoder *json.Decoder) error {
	first, err := decoder.Token()
	if err != nil {
		return err
	}
	if first == json.Delim('[') {
		return nil
	}
	kind := "a " + expression.TypeName(first)
	if first == json.Delim('{') {
		kind = "a map"
	}
	return fmt.Errorf("it is %s, and only a list is read row by row", strings.Replace(kind, "a nil", "nil", 1))
}

// closeList reads the end of the list. The error is io.EOF where that is all.
func closeList(decoder *json.Decoder) error {
	if _, err := decoder.Token(); err != nil {
		return unexpected(err)
	}
	switch _, err := decoder.Token(); {
	case errors.Is(err, io.EOF):
		return io.EOF
	case err != nil && errors.Is(err, memory.ErrTooLarge):
		return err
	}
	return errors.New("something follows the list")
}

// unexpected is the error of content that ends too soon.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
