package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"reprise/activities/format"
	"reprise/activities/memory"
	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// move is one attempt to move what is left of a source.
type move struct {
	tool       *Tool
	in         interpreter.ToolInput
	from, to   interpreter.ToolInput
	options    format.Options
	table      tool.Ledger
	rows       int  // of a batch
	repeatable bool // a source that has changed is read anew
	staged     bool // rows are published together at the end

	source *format.RowSource
	query  sqltool.RowReader // nil where the source is no database
	order  string            // the column by which rows of a query are read page by page, "" for none
	at     place
	noted  interpreter.LedgerEntry // that at is from, if an attempt before has made one
	notes  []string                // what the expressions over rows have to say
	spare  format.SpareRows
	// unreadable says that the source has ended with an error of its own, so that the next attempt needs another one.
	unreadable bool
}

// place is the position up to which a source has been written. It is the continuation in the ledger entry of each
// batch.
type place struct {
	// Entry is the number of the entry, from 1. Numbers continue where a source is read anew, whose Round is one higher.
	Entry int `json:"entry"`
	Round int `json:"round,omitempty"`
	// Source is the hash of its bytes, and Bytes how many these are.
	Source string `json:"source"`
	Bytes  int64  `json:"bytes"`
	// Rows are the rows of the source that have been written, or left out, and Line that in which the last of them begins.
	Rows int64 `json:"rows"`
	Line int   `json:"line,omitempty"`
	// Key is the key of the last row, for a query with an order.
	Key []byte `json:"key,omitempty"`
	// Batches are the batches of the round.
	Batches int `json:"batches"`
	// Given are the rows of the batch. Written and LeftOut are figures of the batches before it, as its own are not known when the
	// entry is made.
	Given   int                    `json:"given,omitempty"`
	Written *interpreter.Rows      `json:"written,omitempty"`
	LeftOut *interpreter.RowCounts `json:"left_out,omitempty"`
	// Read says that all rows were read, and Done that nothing is left to do.
	Read bool `json:"read,omitempty"`
	Done bool `json:"done,omitempty"`
}

// Types of errors.
const (
	typeOvertaken = "overtaken"
	typeNoLedger  = "no_ledger"
)

// moveRows moves the rows.
func (m *move) moveRows(ctx context.Context) (result interpreter.ToolResult, err error) {
	defer func() {
		if m.source != nil && m.source.Discard != nil && (err == nil || m.unreadable || isFinal(err)) {
			m.source.Discard(ctx)
		}
	}()
	begun, err := m.recallPlace(ctx)
	if err == nil && m.at.Done && m.publishesFiles() {
		err = m.recallPublished(ctx)
	}
	if err != nil || m.at.Done {
		return m.moveResult(), err
	}
	if m.staged && !begun {
		if _, err := m.table.Write(ctx, m.stagingInput(m.to, m.at.Round, interpreter.StagingBegin)); err != nil {
			return interpreter.ToolResult{}, err
		}
	}
	if err := memory.AcquireBatches(ctx, 2*bytesOfBatch); err != nil {
		return interpreter.ToolResult{}, err
	}
	defer memory.CollectSooner(memory.PercentBesideRows)()
	if err := m.read(ctx, begun); err != nil {
		return interpreter.ToolResult{}, err
	}
	if m.staged {
		if err := m.publishStaged(ctx); err != nil {
			return interpreter.ToolResult{}, err
		}
	}
	return m.moveResult(), nil
}

// read writes what follows the recorded place in the source.
func (m *move) read(ctx context.Context, begun bool) error {
	if m.order != "" {
		if err := m.identifyAs(m.queryIdentity(), 0, begun); err != nil || m.at.Read {
			return err
		}
		return m.pages(ctx)
	}
	if err := m.openSource(ctx); err != nil {
		return err
	}
	defer func() { _ = m.source.Content.Close() }()
	if err := m.identifySource(ctx, begun); err != nil || m.at.Read {
		return err
	}
	return m.writeBatches(ctx)
}

// recallPlace asks the table for the progress of earlier attempts; begun is false if none has written anything.
func (m *move) recallPlace(ctx context.Context) (begun bool, err error) {
	asked := m.stagingInput(m.to, m.at.Round, "")
	asked.Note = &interpreter.LedgerEntry{Call: m.in.OperationKey}
	entries, err := m.table.RecallNotes(ctx, asked)
	if err != nil || len(entries) == 0 {
		return false, err
	}
	last := entries[len(entries)-1]
	if err := json.Unmarshal(last.Continuation, &m.at); err != nil {
		return false, tool.ConfigErrorf("step %q: entry %d of the transfer in the ledger of its table cannot be read: %w", m.in.Step, last.Written, err)
	}
	m.at.Written = m.at.Written.Plus(m.givenRows())
	m.noted = last
	return true, nil
}

// isFinal reports whether no attempt follows an error.
func isFinal(err error) bool {
	failure, own := errors.AsType[*tool.Error](err)
	return own && failure.Class == interpreter.ClassFinal
}

// publishesFiles reports whether the rows are published as files, which know how many of them fit.
func (m *move) publishesFiles() bool { return m.staged && m.to.Tool == "file" }

// recallPublished asks the files how many rows an attempt before has published. They publish what it has rejected, if it could not.
func (m *move) recallPublished(ctx context.Context) error {
	in := m.stagingInput(m.to, m.at.Round, interpreter.StagingPublish)
	in.OperationKey, in.Page, in.Note = m.batchKey(m.at.Entry), m.at.Entry, &m.noted
	written, err := m.table.Write(ctx, in)
	if err == nil {
		m.countPublished(written)
	}
	return err
}

// countPublished counts the rows of files that were published.
func (m *move) countPublished(written interpreter.ToolResult) {
	if written.Meta.Rows != nil {
		m.at.Written, m.at.LeftOut = written.Meta.Rows, written.Meta.LeftOut
	}
}

// batchKey returns the operation key of an entry.
func (m *move) batchKey(entry int) string { return fmt.Sprintf("%s:%d", m.in.OperationKey, entry) }

// givenRows counts the rows of the last batch as written, unless they are published later.
func (m *move) givenRows() *interpreter.Rows {
	of := m.to.Table()
	if !m.staged {
		of.Written = int64(m.at.Given)
	}
	return of.ToRows()
}

// openSource opens the source. The body of an answer, and the rows of a query, are landed in a file without a name, so that nothing of
// them is left, whatever ends the worker.
func (m *move) openSource(ctx context.Context) (err error) {
	if m.from.Tool == "file" {
		m.source, err = m.tool.options.Open(ctx, m.from)
		return err
	}
	into, err := m.tool.res.TemporaryFile()
	if err != nil {
		return tool.ConfigErrorf("step %q: the source cannot be stored in the worker's directory: %w", m.in.Step, err)
	}
	land := m.tool.options.Land
	if m.query != nil {
		land = m.landQuery
	}
	if m.source, err = land(ctx, m.from, into); err != nil {
		_ = into.Close()
	}
	return err
}

// identifySource compares the source with the one that was read before.
func (m *move) identifySource(ctx context.Context, begun bool) error {
	hash := sha256.New()
	if _, err := io.Copy(hash, &contextReader{ctx: ctx, in: io.NewSectionReader(m.source.Content, 0, m.source.Size)}); err != nil {
		return err
	}
	if err := m.identifyAs(hex.EncodeToString(hash.Sum(nil)), m.source.Size, begun); err != nil {
		return err
	}
	return m.changedError()
}

// identifyAs compares the identity of the source with the one that was recorded. Size is in bytes.
func (m *move) identifyAs(found string, size int64, begun bool) error {
	switch {
	case begun && found == m.at.Source:
		return nil
	case begun && !m.repeatable:
		return &tool.Error{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: tool.TypeSourceChanged,
			Message: fmt.Sprintf("%s has changed since %d of its rows were written, so the transfer cannot continue; "+
				"with mode upsert or replace, it would start again from the beginning", m.what(), m.at.Rows),
		}
	case begun:
		m.at = place{Entry: m.at.Entry, Round: m.at.Round + 1}
	}
	m.at.Source, m.at.Bytes = found, size
	return nil
}

// what names the source in messages.
func (m *move) what() string {
	if m.source == nil {
		return whatQuery
	}
	return m.source.What
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	in  io.Reader
}

func (s *contextReader) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, s.ctx.Err()
	}
	return s.in.Read(p)
}

// changedError returns an error where the source has changed since it was opened.
func (m *move) changedError() error {
	if m.source == nil || m.source.Changed == nil || !m.source.Changed() {
		return nil
	}
	return &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: tool.TypeSourceChanged,
		Message: m.source.What + " changed while it was being read",
	}
}

// writeBatches writes the rest of the source after the place. The next batch is read and prepared while one is written.
func (m *move) writeBatches(ctx context.Context) error {
	reading, stop := context.WithCancel(ctx)
	batches, at := make(chan batch), m.at
	go func() {
		defer close(batches)
		m.readBatches(reading, at, batches)
	}()
	defer func() {
		stop()
		for range batches { // until nobody reads the source
		}
	}()
	for next := range batches {
		if next.err != nil {
			m.unreadable = ctx.Err() == nil
			return next.err
		}
		if err := m.writeBatch(ctx, next); err != nil {
			return err
		}
		m.spare.Put(next.rows)
	}
	return ctx.Err()
}

// readBatches reads what follows a place in batches, until the source or ctx ends. A batch is sent once it is known whether it is the last one; the last
// thing that is sent may be an error.
func (m *move) readBatches(ctx context.Context, at place, batches chan<- batch) {
	send := func(b batch) bool {
		if b.err == nil {
			b.write = m.prepareWrite(ctx, at, b)
			tryPrepare(b.write)
			at.Entry, at.Rows = at.Entry+1, at.Rows+int64(len(b.rows))
		}
		select {
		case batches <- b:
			return true
		case <-ctx.Done():
			return false
		}
	}
	next := batch{}
	for row, err := range m.source.ReadRows(ctx, m.options, m.tool.res.MaxResponseBytes, &interpreter.SourcePlace{Rows: at.Rows}) {
		if err != nil {
			send(batch{err: err})
			return
		}
		size := row.MemoryBytes()
		if len(next.rows) >= m.rows || len(next.rows) > 0 && next.size+size > bytesOfBatch {
			if !send(next) {
				return
			}
			next = batch{}
		}
		next.addRow(row, size)
		if row.Odd != format.NotOdd && !slices.Contains(next.oddities, row.Odd) {
			next.oddities = append(next.oddities, row.Odd)
			next.odd = append(next.odd, row.Odd.Note(at.Rows+int64(len(next.rows)), m.what()))
		}
	}
	next.last = true
	send(next)
}

// batch are rows that are written together.
type batch struct {
	rows  []any
	lines []int // in which they begin
	// columns are those of each of the rows; nil if that is not known.
	columns  []string
	oddities []format.Oddity
	odd      []string // a note about the first row of each of the oddities
	size     int64    // about what they take in memory
	bytes    int64    // that they took on their way, of a source whose bytes are not known before
	key      []byte   // of the last row, in the order of a query
	last     bool
	write    func() (batchWrite, error)
	err      error // of the source behind the batches before; such a batch has no rows
}

func (b *batch) addRow(row format.PlacedRow, size int64) {
	switch columns := row.Columns(); {
	case len(b.rows) == 0:
		b.columns = columns
	case !lists.IsSame(columns, b.columns):
		b.columns = nil
	}
	b.rows, b.lines, b.size = append(b.rows, row.Value), append(b.lines, row.Line), b.size+size
}

// writeBatch writes a batch together with the place after it.
func (m *move) writeBatch(ctx context.Context, b batch) error {
	if err := m.changedError(); err != nil {
		return err
	}
	next := m.at
	next.Entry, next.Batches, next.Rows, next.Bytes = m.at.Entry+1, m.at.Batches+1, m.at.Rows+int64(len(b.rows)), m.at.Bytes+b.bytes
	if len(b.lines) > 0 {
		next.Line, next.Key = b.lines[len(b.lines)-1], b.key
	}
	if next.Given = len(b.rows); next.Given == 0 {
		next.Batches--
	}
	next.Read, next.Done = b.last, b.last && !m.staged
	m.addNotes(b.odd)
	prepared, err := b.write()
	if err == nil {
		var written interpreter.ToolResult
		if written, err = m.enterBatch(ctx, prepared.in, next); err == nil {
			m.at.LeftOut, m.at.Written = m.at.LeftOut.Plus(written.Meta.LeftOut), m.at.Written.Plus(written.Meta.Rows)
			if written.Noted != nil || written.Meta.Rows == nil { // of a write before, or of a file, which counts nothing
				m.at.Written = m.at.Written.Plus(m.givenRows())
			}
			m.addNotes(prepared.notes)
			m.addNotes(written.Meta.Notes)
			tool.MarkProgress(ctx, &interpreter.HostedStep{Step: m.in.Step, Visit: m.in.Visit, At: time.Now().UTC(), Rows: m.movedRows()})
			return nil
		}
	}
	return m.placeError(err, b)
}

// batchWrite is the write of a batch.
type batchWrite struct {
	in    interpreter.ToolInput // with its rows in shape
	notes []string              // of the expressions over rows
}

// prepareWrite returns a function that prepares the write of a batch that follows a place, once. It uses nothing that changes while batches are written.
func (m *move) prepareWrite(ctx context.Context, at place, b batch) func() (batchWrite, error) {
	return sync.OnceValues(func() (write batchWrite, err error) {
		if write.in, write.notes, err = m.shapeRows(ctx, b); err != nil {
			return write, err
		}
		m.enterAt(&write.in, at, len(b.rows))
		write.in = m.stagingInput(write.in, at.Round, "")
		if preparer, ok := m.table.(tool.Preparer); ok && write.in.Secret == nil {
			in := write.in
			write.in.Prepared = sync.OnceValue(func() any { return preparer.Prepare(in) })
			write.in.Prepared()
		}
		return write, nil
	})
}

// tryPrepare prepares a write. If that panics, so does who writes it, where it is reported.
func tryPrepare(write func() (batchWrite, error)) {
	defer func() { _ = recover() }()
	_, _ = write()
}

// shapeRows returns the write of a batch, with its rows in shape.
func (m *move) shapeRows(ctx context.Context, b batch) (in interpreter.ToolInput, notes []string, err error) {
	in = m.to
	in.Args, in.Columns = &expression.Value{Data: b.rows}, b.columns
	if in.Shape = m.in.Shape; in.Shape == nil || len(b.rows) == 0 {
		in.Shape = nil
		return in, nil, nil
	}
	in.OwnsRows = true
	shaped, err := m.tool.options.Reshape(ctx, in)
	if err != nil {
		if !tool.IsContextError(err) {
			err = &tool.Error{Kind: interpreter.KindExpression, Class: interpreter.ClassFinal, Final: true, Message: "to: " + err.Error()}
		}
		return in, nil, err
	}
	return in.WithRows(shaped), shaped.Notes, nil
}

// enterAt names the write of the rows that follow a place.
func (m *move) enterAt(in *interpreter.ToolInput, at place, rows int) {
	in.OperationKey, in.Page = m.batchKey(at.Entry+1), at.Entry+1
	in.Fingerprint = expression.ShortDigest([]any{at.Source, int(at.Rows), int(at.Rows) + rows})
}

// enterBatch writes rows and records in the same transaction the position in the file after them.
func (m *move) enterBatch(ctx context.Context, in interpreter.ToolInput, next place) (interpreter.ToolResult, error) {
	continuation, err := json.Marshal(next)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	in.Note = &interpreter.LedgerEntry{Call: m.in.OperationKey, Written: next.Entry, Continuation: continuation}
	written, err := m.table.Write(ctx, in)
	switch {
	case err != nil:
		return written, err
	case written.Unnotable:
		return written, &tool.Error{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: typeNoLedger, Final: true,
			Message: fmt.Sprintf("step %q: the user of the connection may not write to the tables reprise_writes and reprise_notes, "+
				"which record how far a transfer is; grant it INSERT, SELECT and DELETE on them, or CREATE on the schema", m.in.Step),
		}
	case written.Noted != nil && !bytes.Equal(written.Noted, continuation):
		return written, &tool.Error{
			Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: typeOvertaken,
			Message: "another attempt of this transfer has written meanwhile; nothing was written",
		}
	}
	m.at = next
	return written, nil
}

// stagingInput returns a write whose rows are published at the end, if they are.
func (m *move) stagingInput(in interpreter.ToolInput, round int, do interpreter.StagingStep) interpreter.ToolInput {
	if m.staged {
		const length = 20 // 80 bits, in hexadecimal
		in.Staging = &interpreter.Staging{ID: expression.Digest("transfer", m.in.OperationKey)[:length], Round: round, Do: do}
	}
	return in
}

// publishStaged puts the rows in place that were staged.
func (m *move) publishStaged(ctx context.Context) error {
	next := m.at
	next.Entry, next.Given, next.Done = m.at.Entry+1, 0, true
	if m.publishesFiles() { // whose rows are counted as if all of them fit, until they say it
		of := m.to.Table()
		of.Written = m.at.Rows
		next.Written = of.ToRows()
	}
	in := m.stagingInput(m.to, m.at.Round, interpreter.StagingPublish)
	m.enterAt(&in, m.at, 0)
	written, err := m.enterBatch(ctx, in, next)
	if m.publishesFiles() {
		m.countPublished(written)
	} else {
		m.at.Written = m.at.Written.Plus(written.Meta.Rows)
	}
	return err
}

// mostNotes bounds the warnings of expressions over rows that are kept: a transfer may have a
// different one for each of a billion rows.
const mostNotes = 20

// addNotes keeps notes, each once.
func (m *move) addNotes(notes []string) {
	for _, note := range notes {
		m.addNote(note)
	}
}

// addNote keeps a note, unless it is "" or kept.
func (m *move) addNote(note string) {
	if note != "" && len(m.notes) < mostNotes {
		m.notes = lists.AddUnique(m.notes, note)
	}
}

// placeError returns the error of a batch, with its place in the source.
func (m *move) placeError(err error, b batch) error {
	failure, own := errors.AsType[*tool.Error](err)
	if !own || len(b.rows) == 0 || failure.Kind == interpreter.KindConnection {
		return err
	}
	where := fmt.Sprintf("rows %d to %d", m.at.Rows+1, m.at.Rows+int64(len(b.rows)))
	number := refusedRow(err)
	switch one := number > 0 && number <= len(b.lines); {
	case one && b.lines[number-1] > 0:
		where = fmt.Sprintf("row %d (line %d)", m.at.Rows+int64(number), b.lines[number-1])
	case one:
		where = fmt.Sprintf("row %d", m.at.Rows+int64(number))
	case b.lines[0] > 0:
		where += fmt.Sprintf(" (lines %d to %d)", b.lines[0], b.lines[len(b.lines)-1])
	}
	told := *failure
	told.Message = fmt.Sprintf("%s of %s: %s", where, m.what(), failure.Error())
	return &told
}

// refusedRow returns the number of the row because of which a batch was refused, from 1; 0 if it is not known.
func refusedRow(err error) int {
	if refused, one := errors.AsType[*sqltool.RefusedRowError](err); one {
		return refused.Row
	}
	if misfit, one := errors.AsType[*format.MisfitError](err); one {
		return misfit.Row + 1
	}
	return 0
}

// movedRows returns the rows that the transfer has read and written, in attempts before as well.
func (m *move) movedRows() *interpreter.Rows {
	read := &interpreter.Rows{RowTotals: interpreter.RowTotals{Read: m.at.Rows}}
	return read.Plus(m.at.Written)
}

// moveResult returns the outcome of the transfer, including earlier attempts.
func (m *move) moveResult() interpreter.ToolResult {
	rejected := 0
	if m.at.LeftOut != nil {
		rejected = m.at.LeftOut.RejectedRows
	}
	return interpreter.ToolResult{
		Data: expression.Of(map[string]any{"rows": int(m.at.Rows), "bytes": int(m.at.Bytes), "batches": m.at.Batches, "rejected": rejected}),
		Meta: interpreter.ToolMeta{Rows: m.movedRows(), LeftOut: m.at.LeftOut, Notes: m.notes},
	}
}
