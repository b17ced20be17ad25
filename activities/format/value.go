package format

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// LineError is an error about one line of the text.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// Value reads content in UTF-8 as the format of o. what names the content in errors, most
// bounds the value as JSON, and memory has to be acquired before.
func (o Options) Value(ctx context.Context, content []byte, what string, most int) (any, error) {
	switch o.Format {
	case JSON, JSONL:
		if err := memory.AcquireJSON(ctx, content, most, what); err != nil {
			return nil, err
		}
		if o.Format == JSONL {
			return listOf(jsonLines(content))
		}
		return expression.DecodeExact(content)
	case CSV:
		if err := memory.AcquireValue(ctx, o.CSV.estimateMemory(content), what); err != nil {
			return nil, err
		}
		return listOf(o.CSV.ReadRows(bytes.NewReader(content)))
	case XML:
		if err := memory.AcquireValue(ctx, estimateXML(content), what); err != nil {
			return nil, err
		}
		return xmlValue(content, o.Lists)
	case Parquet:
		return parquetValue(ctx, content, what, most)
	case Unpacked:
		return sniffValue(ctx, content, what, most)
	}
	if err := memory.AcquireValue(ctx, int64(len(content)), what); err != nil {
		return nil, err
	}
	return string(content), nil
}

// parquetValue reads the rows twice: a few bytes become many values, so it is known first what these take.
func parquetValue(ctx context.Context, content []byte, what string, most int) (any, error) {
	rows := ParquetRows(bytes.NewReader(content), int64(len(content)), int64(most))
	bytes, encoded := int64(0), len("[]")
	for row, err := range rows {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil:
			encoded += interpreter.EncodedSize(row) + len(",")
			bytes += memory.ValueBytes(row)
		}
		switch {
		case errors.Is(err, memory.ErrTooLarge), encoded > most:
			return nil, tool.TooLargeErrorf("%s is larger than the limit of %d bytes as JSON, or has pages that take too much memory; request less at a time, or use tool: transfer", what, most)
		case err != nil:
			return nil, err
		}
	}
	if err := memory.AcquireValue(ctx, bytes, what); err != nil {
		return nil, err
	}
	return listOf(rows)
}

// sniffValue returns the value of decompressed bytes of unknown format. Numbers and words are text,
// as they would be without compression.
func sniffValue(ctx context.Context, content []byte, what string, most int) (any, error) {
	if begin := bytes.TrimSpace(content); len(begin) > 0 && (begin[0] == '{' || begin[0] == '[') {
		v, err := (Options{Format: JSON}).Value(ctx, content, what, most)
		if err == nil || errors.Is(err, expression.ErrInexact) {
			return v, err
		}
		v, err = (Options{Format: JSONL}).Value(ctx, content, what, most)
		if err == nil || errors.Is(err, expression.ErrInexact) {
			return v, err
		}
	}
	return Options{Format: Text}.Value(ctx, content, what, most)
}

// listOf are rows as a list.
func listOf(rows iter.Seq2[any, error]) (any, error) {
	list := []any{}
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, nil
}

// jsonLines returns the values of JSON Lines; empty lines are left out.
func jsonLines(content []byte) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		number := 0
		for line := range bytes.Lines(content) {
			number++
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			row, err := expression.DecodeExact(line)
			if err != nil {
				err = &LineError{Line: number, Err: err}
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}
