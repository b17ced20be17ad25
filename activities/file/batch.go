package file

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/activities/format"
	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

const (
	// usualBatch is how many rows an attempt reads of a file where the author does not say.
	usualBatch = 10_000
	// bytesOfBatch bounds a batch by its size as JSON, unless it is a single row. Several of them fit into the result of an activity.
	bytesOfBatch = 256 << 10
	// memoryOfBatch is about what a batch takes in memory, with what is read ahead of it.
	memoryOfBatch = 8 * bytesOfBatch
)

// readsBatches reports whether an attempt reads a batch of the file, and not the whole. JSON and XML are read as a whole where the author says no batch, as long as they
// are small: a page of them has more than its rows.
func readsBatches(in interpreter.ToolInput, options format.Options) (batches, whereLarge bool) {
	switch {
	case in.Batch == nil:
		return false, false
	case in.Batch.After != nil, in.Fields[playbook.FieldBatch].Data != nil:
		return true, true
	}
	lines := options.Format == format.CSV || options.Format == format.JSONL || options.Format == format.Parquet
	return lines, slices.Contains(format.Streamed, options.Format)
}

// batchSize returns how many rows a batch has at most.
func batchSize(in interpreter.ToolInput) (int, error) {
	written := in.Fields[playbook.FieldBatch].Data
	if written == nil {
		return usualBatch, nil
	}
	rows, isNumber := written.(int)
	if !isNumber || rows < 1 {
		return 0, tool.ConfigErrorf("step %q: batch is %s; it must be a whole number of at least 1", in.Step, expression.Text(written))
	}
	return rows, nil
}

// readBatch reads the rows of a file from a place, as many as a batch has.
func (t *Tool) readBatch(ctx context.Context, in interpreter.ToolInput, options format.Options) (interpreter.ToolResult, error) {
	most, err := batchSize(in)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	options.Rows = in.Batch.Path
	rows, err := t.openRowStream(ctx, in, options)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	stopped := context.AfterFunc(ctx, rows.cancel)
	batch, next, err := rows.nextBatch(ctx, most)
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case err == nil && rows.source.Changed():
		err = &tool.Error{
			Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: tool.TypeSourceChanged, Message: rows.source.What + " changed while it was being read",
		}
	}
	if !stopped() || err != nil || next == nil || next.Offset > 0 || rows.aheadErr != nil {
		rows.closeStream()
	} else {
		t.streams.cacheStream(streamKey(in, next), rows)
	}
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	meta := interpreter.ToolMeta{Next: next}
	if cmp.Or(options.Format, rows.source.Format) == format.CSV {
		meta.Notes = format.OddRows(batch, rows.source.What, rowsBefore(in.Batch))
	}
	page := any(batch)
	for _, name := range slices.Backward(in.Batch.Path) {
		page = map[string]any{name: page}
	}
	return interpreter.ToolResult{Data: expression.Of(page), Meta: meta}, nil
}

// rowsBefore is how many rows of the file come before those of a batch.
func rowsBefore(batch *interpreter.RowBatch) int64 {
	if batch.After == nil {
		return 0
	}
	return batch.After.Rows
}

// rowStream are the rows of an open file, from a place.
type rowStream struct {
	source *format.RowSource
	next   func() (format.PlacedRow, error, bool)
	stop   func()
	cancel context.CancelFunc
	rows   int64 // before what follows
	limit  int   // of a row, in bytes of JSON
	// ahead is a row, or the error aheadErr, that was read beyond the last batch; nil for none.
	ahead    *format.PlacedRow
	aheadErr error
}

// openRowStream opens a file at a place. A stream that has stopped there continues, if the file is still the same.
func (t *Tool) openRowStream(ctx context.Context, in interpreter.ToolInput, options format.Options) (*rowStream, error) {
	reading, cancel := context.WithCancel(context.WithoutCancel(ctx)) // what is read may outlive the attempt
	stopped := context.AfterFunc(ctx, cancel)
	defer stopped()
	source, err := t.OpenRows(reading, in)
	if err != nil {
		cancel()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	after := in.Batch.After
	if after != nil && after.Source != source.Identity {
		cancel()
		_ = source.Content.Close()
		return nil, &tool.Error{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: tool.TypeSourceChanged,
			Message: fmt.Sprintf("%s has changed since %d of its rows were read, so the rest cannot be read", source.What, after.Rows),
		}
	}
	if err := memory.AcquireBatches(ctx, memoryOfBatch); err != nil {
		cancel()
		_ = source.Content.Close()
		return nil, err
	}
	if after != nil {
		if stream := t.streams.resumeStream(streamKey(in, after)); stream != nil {
			cancel()
			_ = source.Content.Close()
			return stream, nil
		}
	}
	stream := &rowStream{source: source, cancel: cancel, limit: t.res.MaxPayload}
	if after != nil {
		stream.rows = after.Rows
	}
	stream.next, stream.stop = iter.Pull2(source.ReadRows(reading, options, t.res.MaxResponseBytes, after))
	return stream, nil
}

// nextBatch reads the next rows, and returns the place behind them, nil at the end of the file. An error of a row is one of the batch, or of the next one.
func (s *rowStream) nextBatch(ctx context.Context, most int) (batch []any, next *interpreter.SourcePlace, err error) {
	batch = []any{}
	size := 0
	var last format.PlacedRow
	for ctx.Err() == nil {
		row, err, more := s.pull()
		switch {
		case !more:
			return batch, nil, nil
		case len(batch) == most:
		case err != nil:
			return nil, nil, err
		default:
			bytes := interpreter.EncodedSize(row.Value) + len(",")
			if len(batch) == 0 && bytes > s.limit {
				return nil, nil, s.rowTooLarge(row)
			}
			if len(batch) == 0 || size+bytes <= bytesOfBatch {
				batch, last, size = append(batch, row.Value), row, size+bytes
				continue
			}
		}
		s.ahead, s.aheadErr = &row, err
		s.rows += int64(len(batch))
		return batch, s.source.PlaceBehind(last, s.rows), nil
	}
	return nil, nil, ctx.Err()
}

// rowTooLarge returns the error of a row that no result can have.
func (s *rowStream) rowTooLarge(row format.PlacedRow) error {
	where := fmt.Sprintf("row %d", s.rows+1)
	if row.Line > 0 {
		where += fmt.Sprintf(" (line %d)", row.Line)
	}
	return tool.TooLargeErrorf("%s of %s is larger than the limit of %d bytes as JSON", where, s.source.What, s.limit)
}

// pull returns the next row.
func (s *rowStream) pull() (format.PlacedRow, error, bool) { //nolint:revive // in the order of a pulled iterator
	if ahead := s.ahead; ahead != nil {
		s.ahead = nil
		return *ahead, s.aheadErr, true
	}
	return s.next()
}

func (s *rowStream) closeStream() {
	s.stop()
	s.cancel()
	_ = s.source.Content.Close()
}

const (
	// mostStreams bounds the files that stay open between batches, with what unpacking them takes in memory; others are read again up to their place.
	mostStreams = 4
	// streamRest is how long a file stays open between two batches.
	streamRest = time.Minute
)

// rowStreams are files that are open between two batches because they cannot be read from their place: what is compressed is unpacked from the
// beginning. Another worker, or this one later, does that again.
type rowStreams struct {
	mu   sync.Mutex
	open []*restingStream // the oldest first
}

type restingStream struct {
	key    string
	stream *rowStream
	expiry *time.Timer
}

// streamKey identifies a place in a file, and how it is read.
func streamKey(in interpreter.ToolInput, at *interpreter.SourcePlace) string {
	fields := make(map[string]any, len(in.Fields))
	for name, value := range in.Fields {
		fields[name] = value.Data
	}
	return expression.Digest(in.Playbook, in.RunID, in.Step, in.Auth, fields, strings.Join(in.Batch.Path, "."), at.Source, int(at.Rows))
}

// cacheStream stores a stream that has stopped at a place.
func (s *rowStreams) cacheStream(key string, stream *rowStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.open) >= mostStreams {
		s.open[0].expiry.Stop()
		s.open[0].stream.closeStream()
		s.open = s.open[1:]
	}
	resting := &restingStream{key: key, stream: stream}
	resting.expiry = time.AfterFunc(streamRest, func() {
		if left := s.removeStream(func(one *restingStream) bool { return one == resting }); left != nil {
			left.closeStream()
		}
	})
	s.open = append(s.open, resting)
}

// resumeStream returns the stream that has stopped at a place, which is not stored any more; nil for none.
func (s *rowStreams) resumeStream(key string) *rowStream {
	return s.removeStream(func(one *restingStream) bool { return one.key == key })
}

func (s *rowStreams) removeStream(is func(*restingStream) bool) *rowStream {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.open, is)
	if at < 0 {
		return nil
	}
	found := s.open[at]
	found.expiry.Stop()
	s.open = slices.Delete(s.open, at, at+1)
	return found.stream
}

// closeStreams closes what is open.
func (s *rowStreams) closeStreams() {
	for {
		stream := s.removeStream(func(*restingStream) bool { return true })
		if stream == nil {
			return
		}
		stream.closeStream()
	}
}
