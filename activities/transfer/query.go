package transfer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"reprise/activities/format"
	"reprise/activities/memory"
	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// whatQuery names the source in messages.
const whatQuery = "the query of from"

// readQuery reads the settings of a source that is a statement.
func (m *move) readQuery() (err error) {
	m.options.Format = format.JSONL // as it is landed
	if m.order, err = tool.TextField(m.from, playbook.FieldOrderBy); err != nil {
		return err
	}
	if m.order = strings.TrimSpace(m.order); m.order == "" && !m.repeatable {
		return tool.ConfigErrorf("step %q: from needs order_by, a column whose values are unique: without it a retry reads all rows again, "+
			"which only modes upsert and replace of to allow", m.in.Step)
	}
	return nil
}

// queryIdentity identifies a query with an order by what it requests, whatever rows exist now.
func (m *move) queryIdentity() string {
	values := make([]any, len(m.from.Params))
	for i, value := range m.from.Params {
		values[i] = value.Data
	}
	return expression.Digest("query", expression.ShortDigest([]any{
		m.in.OperationKey, m.from.Tool, m.from.Auth, expression.Text(m.from.Fields[playbook.FieldPath].Data),
		expression.Text(m.from.Fields[playbook.FieldStatement].Data), values, m.order,
	}))
}

// pages writes what follows the recorded place in the query, a page at a time. Each page is a statement of its own,
// and is read completely before it is written, because source and table may share connections or a file.
func (m *move) pages(ctx context.Context) error {
	most := m.rows
	for !m.at.Read {
		next, cut, err := m.page(ctx, most)
		if err != nil {
			return err
		}
		switch {
		case cut: // what is read beyond it is read again
			most = len(next.rows)
		case next.size < bytesOfBatch/2:
			most = min(m.rows, 2*most)
		}
		next.write = m.prepareWrite(ctx, m.at, next)
		if err := m.writeBatch(ctx, next); err != nil {
			return err
		}
	}
	return nil
}

// page reads the next rows of the query. cut says that it stopped early because of the memory that they take.
func (m *move) page(ctx context.Context, most int) (next batch, cut bool, err error) {
	page := &sqltool.QueryPage{Column: m.order, After: m.at.Key, Most: most}
	err = m.query.ReadRows(ctx, m.from, page, func(row sqltool.QueriedRow) error {
		size := memory.ValueBytes(row.Value)
		if len(next.rows) > 0 && next.size+size > bytesOfBatch {
			cut = true
			return sqltool.ErrEnough
		}
		next.addRow(format.PlacedRow{Value: row.Value}, size)
		next.bytes, next.key = next.bytes+int64(row.Bytes), row.Key
		m.addNote(row.Note)
		return nil
	})
	next.last = !cut && len(next.rows) < most
	return next, cut, err
}

// landQuery writes the rows of a query without an order to a file, which is the source from then on: an attempt after this one reads
// others if the database has others by then, and as other sources that have changed they are another round.
func (m *move) landQuery(ctx context.Context, from interpreter.ToolInput, into *os.File) (*format.RowSource, error) {
	out := bufio.NewWriter(into)
	size := int64(0)
	unwritten := func(err error) error {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err
		}
		return &tool.Error{
			Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Err: err,
			Message: fmt.Sprintf("step %q: the rows of the query cannot be stored in the worker's directory: %s", m.in.Step, err),
		}
	}
	err := m.query.ReadRows(ctx, from, nil, func(row sqltool.QueriedRow) error {
		line, err := expression.Encode(row.Value)
		if err != nil {
			return err
		}
		size += int64(len(line)) + 1
		m.addNote(row.Note)
		if _, err := out.Write(append(line, '\n')); err != nil {
			return unwritten(err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := out.Flush(); err != nil {
		return nil, unwritten(err)
	}
	return &format.RowSource{Content: into, Size: size, What: whatQuery, Format: format.JSONL, Kind: interpreter.KindTool, Class: interpreter.ClassFinal}, nil
}
