// Package transfer is the tool that moves rows from a source to a table, a batch at a time.
package transfer

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"reprise/activities/format"
	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Tool moves rows. It knows sources and tables through the tools that it is given.
type Tool struct {
	res     tool.Resources
	options Options
}

// Options are the tools that read and write.
type Options struct {
	// Land fetches the body of an answer into a file: http.
	Land func(ctx context.Context, in interpreter.ToolInput, into *os.File) (*format.RowSource, error)
	// Open opens a file: file.
	Open func(ctx context.Context, in interpreter.ToolInput) (*format.RowSource, error)
	// Targets are the tools that write rows and record the place in the source with them; Queries are the tools
	// that read the rows of a statement. Both are by name.
	Targets map[string]tool.Ledger
	Queries map[string]sqltool.RowReader
	// Reshape brings the rows of a batch into shape.
	Reshape func(ctx context.Context, in interpreter.ToolInput) (interpreter.ShapedRows, error)
}

var (
	_ tool.Tool     = (*Tool)(nil)
	_ tool.Beginner = (*Tool)(nil)
	_ tool.Shaper   = (*Tool)(nil)
)

// New makes the tool.
func New(res tool.Resources, options Options) *Tool { return &Tool{res: res, options: options} }

// BeginsItself marks a tool that waits before it acts: the tools that it calls begin.
func (*Tool) BeginsItself() {}

// ShapesRows marks a tool that brings its rows into shape itself, a batch at a time.
func (*Tool) ShapesRows() {}

const (
	fieldBatch = "batch"
	// rowsOfBatch is how many rows are written at once where the author does not say.
	rowsOfBatch = 10_000
	// mostRows bounds the rows of a batch. A batch is one write, which is in memory as a whole.
	mostRows = 1_000_000
	// bytesOfBatch bounds a batch by about what its rows take in memory.
	bytesOfBatch = 32 << 20
)

// docOfTool is what the reference says of the tool.
const docOfTool = `from names the source: tool http, file, postgres or sqlite, with the fields of that
tool. Its rows are those of a statement or of Parquet, the lines of CSV and JSON Lines,
or the elements of a list in JSON or XML. In JSON the list is the whole document unless
rows says where it is, such as rows: data.items; XML needs rows, such as rows:
orders.order. to names the table: tool postgres or sqlite, with the fields of table
mode, and fields, exclude and args of a sink, which are evaluated for each row. A
transfer holds two batches in memory, not the source: one is written while the next is
read. A row larger than the limit for a response is an error of kind payload_too_large;
this also stops compressed files that expand without end.

Each batch is one transaction, which also records in the table reprise_notes how far the
source has been read, and which source it was. An attempt continues where the table says
that the previous one stopped, so every row is written once, whatever fails. Rows of
batches before an error stay, except with mode replace and delete_missing, which publish
everything at the end in one transaction. Errors name the line.

An HTTP body is first fetched to an unnamed file in the worker's directory, so it must
fit on the worker's disk. If the connection breaks and the response has a strong ETag or
a Last-Modified, the rest is requested with Range and If-Range. Where workers share a
payload store, bodies of more than 16 MiB are stored there too, in parts, until the
transfer ends: if a worker is lost, the next one requests only what is not stored.
Without a store it fetches the body again.

The rows of a statement are read in the order of order_by, a column of the result whose
values are unique and never null. Each batch is a separate statement, for the rows after
the last key, and the next attempt continues there. Two rows with the same key are a
final error of type not_unique, and a null key is one of type null_key. Rows that are
added after the last key are read; rows that are added before it are not. Without
order_by, each attempt reads all rows again, into an unnamed file; this needs mode
upsert or replace. The statement can only read: it begins with select, values or with,
and its templates become bind parameters. The ledger records the last key of each batch.

With tool file, to names a file in the worker's directory, and rows are appended to it
as jsonl or csv. The journal beside the file records the position instead of the ledger,
so each row is in the file once, whatever fails. Rows of batches before an error stay.
mode overwrite is refused. With auth, and as parquet, path can contain row. Batches are
then staged below path, each with its position, and become files of the next manifest at
the end; an error before that publishes nothing.

A source is identified by a hash of its bytes. If the hash has changed when a transfer
continues, the transfer starts again with modes upsert and replace, and for a file with
auth; otherwise it fails with a final error of type source_changed. A file that changes
while it is read is an error of type source_changed and class retryable.

The result is {rows, bytes, batches, rejected}: the rows and bytes of the source, the
batches that were written, and, if to has rejected, the rows that the database or the
columns of files rejected. An attempt may take 6 hours unless timeout is set.`

// Spec describes the tool.
func (t *Tool) Spec() playbook.ToolSpec {
	return playbook.ToolSpec{
		Name:    "transfer",
		Summary: "Moves rows of any number to a table or file, a batch at a time.",
		Doc:     docOfTool,
		Fields: []playbook.Field{
			sourceField(),
			{Name: playbook.FieldTo, Kind: playbook.KindCall, Enum: []string{"postgres", "sqlite", "file"}, Required: true, Doc: "The table or file: a map with tool and its fields, as in a sink."},
			{Name: fieldBatch, Kind: playbook.KindNumber, Default: fmt.Sprint(rowsOfBatch), Doc: "The most rows that are written in one transaction."},
		},
		Secrets: []string{playbook.FieldFrom},
		Example: `step: load
tool: transfer
from: {tool: http, url: "{{ workload.export }}/orders.csv.gz", format: csv}
to: {tool: postgres, auth: warehouse, table: orders, mode: replace}
retry:
  - when: error.class == 'retryable'
    then: {max_attempts: 5, initial_delay: 10s}
`,
	}
}

// sourceField returns the field from: the fields of the source's tool, and keys for the transfer.
func sourceField() playbook.Field {
	return playbook.Field{Name: playbook.FieldFrom, Kind: playbook.KindCall, Enum: []string{"http", "file", "postgres", "sqlite"}, Required: true, Doc: "The source: a map with tool and its fields.", Keys: []playbook.Field{
		{
			Name: playbook.FieldRows, Kind: playbook.KindText, Default: "the whole document",
			Doc:   "The path to the list of rows in JSON, or to the elements in XML: names separated by dots.",
			Needs: []playbook.Need{{Field: playbook.FieldTool, Value: "http"}, {Field: playbook.FieldTool, Value: "file"}},
		},
		{
			Name: playbook.FieldOrderBy, Kind: playbook.KindLiteral, Doc: "The column that orders the rows of the statement; its values must be unique and never null.",
			Needs: []playbook.Need{{Field: playbook.FieldTool, Value: "postgres"}, {Field: playbook.FieldTool, Value: "sqlite"}},
		},
	}}
}

// Run makes one attempt: it moves what is left to move.
func (t *Tool) Run(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	if tool.IsReadOnly(ctx) {
		return interpreter.ToolResult{}, tool.ErrReadOnly(in.Step)
	}
	m, err := t.newMove(in)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	return m.moveRows(ctx)
}

// newMove reads what an attempt is to do.
func (t *Tool) newMove(in interpreter.ToolInput) (*move, error) {
	from, err := in.NestedCall(playbook.FieldFrom)
	if err != nil {
		return nil, tool.ConfigErrorf("%w", err)
	}
	to, err := in.NestedCall(playbook.FieldTo)
	if err != nil {
		return nil, tool.ConfigErrorf("%w", err)
	}
	if in.Shape != nil && in.Shape.Path != nil {
		to.RowPaths = []string{}
	}
	m := &move{tool: t, in: in, from: from, to: to, rows: rowsOfBatch}
	if m.table = t.options.Targets[to.Tool]; m.table == nil {
		return nil, tool.ConfigErrorf("step %q: tool of to is %q; it must be postgres, sqlite or file", in.Step, to.Tool)
	}
	if m.query = t.options.Queries[from.Tool]; m.query == nil && from.Tool != "http" && from.Tool != "file" {
		return nil, tool.ConfigErrorf("step %q: tool of from is %q; it must be http, file, postgres or sqlite", in.Step, from.Tool)
	}
	if err := m.readMode(); err != nil {
		return nil, err
	}
	if m.query != nil {
		err = m.readQuery()
	} else {
		err = m.readFormat()
	}
	if err != nil {
		return nil, err
	}
	if batch := in.Fields[fieldBatch].Data; batch != nil {
		rows, isNumber := batch.(int)
		if !isNumber || rows < 1 || rows > mostRows {
			return nil, tool.ConfigErrorf("step %q: batch is %s; it must be a whole number from 1 to %d", in.Step, expression.Text(batch), mostRows)
		}
		m.rows = rows
	}
	return m, nil
}

// readFormat reads how the rows of a file or an answer are written, and where they are.
func (m *move) readFormat() (err error) {
	m.options, err = format.OptionsOf(m.from)
	m.options.Spare = &m.spare
	if err != nil {
		return err
	}
	rows, err := tool.TextField(m.from, playbook.FieldRows)
	if err != nil || rows == "" {
		return err
	}
	m.options.Rows = strings.Split(rows, ".")
	if slices.Contains(m.options.Rows, "") {
		return tool.ConfigErrorf("step %q: rows of from is %q; it must be names with dots between them, such as data.items", m.in.Step, rows)
	}
	return nil
}

// readFileMode reads how rows meet those of a path. Below a connection, and as Parquet, they are published together at the end, so that a source that has changed can be
// read anew. A file of the worker's directory cannot be replaced, as it would be there in part until the end.
func (m *move) readFileMode() error {
	as, err := format.SinkOptions(m.to)
	if err != nil {
		return err
	}
	if m.to.Auth != "" || as.Format == format.Parquet {
		m.staged, m.repeatable = true, true
		return nil
	}
	mode, err := tool.TextField(m.to, playbook.FieldMode)
	if err == nil && strings.EqualFold(strings.TrimSpace(mode), playbook.ModeOverwrite) {
		err = tool.ConfigErrorf("step %q: a transfer appends to a file, so mode of to cannot be overwrite; name a new file for each run in path, such as orders-{{ run.id }}.csv", m.in.Step)
	}
	return err
}

// readMode reads how the rows are combined with the rows of the table.
func (m *move) readMode() error {
	if m.to.Tool == "file" {
		return m.readFileMode()
	}
	if table, err := tool.TextField(m.to, "table"); err != nil || strings.TrimSpace(table) == "" {
		return tool.ConfigErrorf("step %q: to needs table, the name of the table that the rows are written to", m.in.Step)
	}
	if m.to.Fields[playbook.FieldStatement].Data != nil {
		return tool.ConfigErrorf("step %q: to writes rows to a table, so it cannot have a statement; remove statement", m.in.Step)
	}
	mode, err := tool.TextField(m.to, playbook.FieldMode)
	if err != nil {
		return err
	}
	deletes, err := tool.BoolField(m.to, playbook.FieldDeleteMissing, false)
	m.repeatable = playbook.IsRepeatable(mode)
	m.staged = deletes || strings.EqualFold(strings.TrimSpace(mode), playbook.ModeReplace)
	return err
}
