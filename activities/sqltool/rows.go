package sqltool

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/statement"
)

// BoundStatement is a statement with the values of this attempt.
type BoundStatement struct {
	Step   string
	Source string
	Parsed *statement.Statement
	Values []any
}

// action is what a call has to do: run a statement, or write to a table; the other is nil.
type action struct {
	statement *BoundStatement
	write     *TableWrite
	err       error
}

// PrepareRows reads what a call is to do, for [Read].
func PrepareRows(in interpreter.ToolInput, dialect statement.Dialect) any {
	read := readAction(in, dialect)
	if read.write != nil {
		read.write.chunks = read.write.LookupChunks()
	}
	return read
}

func readAction(in interpreter.ToolInput, dialect statement.Dialect) (read action) {
	if read.statement, read.err = readStatement(in, dialect); read.statement == nil && read.err == nil {
		read.write, read.err = planWrite(in)
	}
	return read
}

// Read returns what a call has to do: run a statement, or write to a table; the other is nil.
func Read(in interpreter.ToolInput, dialect statement.Dialect) (*BoundStatement, *TableWrite, error) {
	var read action
	if in.Prepared != nil {
		read, _ = in.Prepared().(action)
	} else {
		read = readAction(in, dialect)
	}
	if read.write != nil {
		read.write.Note = in.Note
	}
	return read.statement, read.write, read.err
}

// readStatement parses the statement of a call again and pairs it with the
// values the workflow rendered. Without a statement it gives nil.
func readStatement(in interpreter.ToolInput, dialect statement.Dialect) (*BoundStatement, error) {
	source, err := tool.TextField(in, "statement")
	if err != nil || strings.TrimSpace(source) == "" {
		return nil, err
	}
	parsed, problems := statement.Parse(source, dialect)
	for _, problem := range problems {
		if !problem.Warning {
			line, column := LineColumn(source, problem.Offset)
			return nil, tool.ConfigErrorf("step %q: the statement cannot be run: line %d, column %d: %s", in.Step, line, column, problem.Message)
		}
	}
	if parsed.Params() != len(in.Params) {
		return nil, tool.ConfigErrorf("step %q: the statement has %d templates, but %d values came with it",
			in.Step, parsed.Params(), len(in.Params))
	}
	s := &BoundStatement{Step: in.Step, Source: source, Parsed: parsed, Values: make([]any, len(in.Params))}
	for i, param := range in.Params {
		s.Values[i] = param.Data
	}
	return s, nil
}

// RowCollector collects result rows and stops where they grow too large.
type RowCollector struct {
	step    string
	Columns []string
	List    []any
	// Each is called with each row and its bytes, nil to collect the rows. One row may have as many bytes as a whole
	// result otherwise.
	Each   func(row map[string]any, bytes int) error
	read   int // rows so far
	around int // what a row takes as JSON beside its values: names, and marks
	left   int64
	limit  int64
	memory memory.RowCounter
}

// NewRows collects rows of at most limit bytes.
func NewRows(step string, columns []string, limit int64) (*RowCollector, error) {
	const marks = len(`"":,`)
	seen := map[string]bool{}
	around := len(`{},`)
	for _, column := range columns {
		around += len(column) + marks
		if seen[column] {
			return nil, tool.Errorf("the result has two columns named %q, and a row is a map; rename one with AS", column)
		}
		seen[column] = true
	}
	return &RowCollector{step: step, Columns: columns, List: []any{}, around: around, left: limit, limit: limit}, nil
}

// AddRow adds a row that took size bytes on its way.
func (r *RowCollector) AddRow(ctx context.Context, values []any, size int) error {
	r.read++
	size += r.around
	if r.Each != nil {
		if int64(size) > r.limit {
			return tool.TooLargeErrorf("step %q: a row of the statement is larger than %d bytes; select fewer or shorter columns", r.step, r.limit)
		}
		return r.Each(r.namedRow(values), size)
	}
	r.left -= int64(size)
	if r.left < 0 {
		return tool.TooLargeErrorf("step %q: the result is larger than %d bytes after %d rows: select fewer columns, or page with LIMIT",
			r.step, r.limit, len(r.List))
	}
	if err := r.memory.CountRow(ctx, len(values), size); err != nil {
		return err
	}
	r.List = append(r.List, r.namedRow(values))
	return nil
}

// PlaceError returns the error of a value of the next row with its place. hint says what to select instead, and has %s for the column.
func (r *RowCollector) PlaceError(err error, column int, hint string) error {
	return tool.Errorf("row %d of the result, column %q: %w; %s", r.read+1, r.Columns[column], err, fmt.Sprintf(hint, quoteName(r.Columns[column])))
}

// NoUTF8Error is the error of a text of a database that no value can hold.
type NoUTF8Error struct {
	Byte   byte // the first that is wrong
	Offset int
}

func (e *NoUTF8Error) Error() string {
	return fmt.Sprintf("byte 0x%02X at offset %d of the text is not UTF-8", e.Byte, e.Offset)
}

// CheckUTF8 returns the error of a text that is not UTF-8: its bytes would be replaced by U+FFFD.
func CheckUTF8(text string) error {
	if utf8.ValidString(text) { // the usual case, and faster
		return nil
	}
	at := tool.InvalidUTF8([]byte(text))
	return &NoUTF8Error{text[at], at}
}

// namedRow returns a row by the names of its columns.
func (r *RowCollector) namedRow(values []any) map[string]any {
	row := make(map[string]any, len(values))
	for i, value := range values {
		row[r.Columns[i]] = value
	}
	return row
}

// RowsAffected returns the result of a statement that returns no rows.
func RowsAffected(n int64) interpreter.ToolResult {
	return interpreter.ToolResult{Data: expression.Of(map[string]any{"rows_affected": int(n)})}
}

// LineColumn returns the place of a rune offset, both from 1.
func LineColumn(source string, offset int) (line, column int) {
	line, column = 1, 1
	for i, r := range []rune(source) {
		if i >= offset {
			break
		}
		column++
		if r == '\n' {
			line, column = line+1, 1
		}
	}
	return line, column
}

// FloatValue returns a float, or the text NaN, Infinity, -Infinity, which JSON
// cannot hold.
func FloatValue(text string) any {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	v, err := expression.Canonical(f)
	if err != nil {
		return text
	}
	return v
}
