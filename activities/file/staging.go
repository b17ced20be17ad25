package file

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"gocloud.dev/gcerrors"

	"reprise/activities/format"
	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/internal/base/sleep"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// What the writes of a call or loop stage is below stagedFolder, in a folder with the ID of that call or loop. Each write is a record of the next number, which
// no two writes have, so that whoever publishes finds them all without a list, which may be late.
const (
	stagedFolder = "_staging"
	// publishedName is the object that says which of the records were published and have been removed.
	publishedName = "published.json"
	// removedName is the object that stays where records were removed that nobody had published, so that a run that is
	// held for longer is not published in part.
	removedName = "removed.json"
)

// stagedRecord is a write that was staged: the first line of an object, before its rows as JSON Lines.
type stagedRecord struct {
	Operation   string   `json:"operation,omitempty"`
	Fingerprint string   `json:"fingerprint,omitempty"`
	Part        *int     `json:"part,omitempty"` // the iteration, nil without a loop
	Round       int      `json:"round,omitempty"`
	Lap         string   `json:"lap,omitempty"`
	Settles     bool     `json:"settles,omitempty"` // it has no rows, and drops those of rounds before
	Page        int      `json:"page,omitempty"`
	Rows        int      `json:"rows"`
	Bytes       int64    `json:"bytes"` // of the rows
	Columns     []string `json:"columns,omitempty"`
	// Kinds are what the values of each column have in common, for Parquet.
	Kinds map[string]format.CellKind `json:"kinds,omitempty"`
	Note  *manifestNote              `json:"note,omitempty"`
	// Paths are those of the rows, in the order of the rows; none where all rows go to the path of the write.
	Paths []recordPath `json:"paths,omitempty"`

	number  int
	start   int64  // of the rows, in the object
	path    string // of the rows, where these are only those of one path
	content []byte // of the rows, nil where they have to be read
	decoded []any  // the rows that fit, once the others were rejected; else nil
}

// stagedEnd is what a worker knows of the end of what is staged: the number of the next record, and the note of the last.
type stagedEnd struct {
	next int
	note *manifestNote
}

// publishedRecords are the records behind a number and up to another one that were published last, and the operations of all that were.
type publishedRecords struct {
	From       int                      `json:"from"`
	Through    int                      `json:"through"`
	Operations map[string]manifestWrite `json:"operations"`
	// Of rows with paths of their own, which have no manifest together: how many rows were published last to how many paths, and how the
	// call continues.
	Rows  int64         `json:"rows,omitempty"`
	Paths int           `json:"paths,omitempty"`
	Note  *manifestNote `json:"note,omitempty"`
	// Rejected is how many rows were rejected of those published last.
	Rejected int `json:"rejected,omitempty"`
}

// stagedKey returns the key of an object of what is staged.
func (w *objectWrite) stagedKey(name string) string {
	return path.Join(w.stage.key, stagedFolder, w.staging.ID, name)
}

func (w *objectWrite) recordKey(number int) string {
	return w.stagedKey(fmt.Sprintf("%08d.jsonl", number))
}

// writeStaged does to staged rows what the call or loop wants.
func (t *Tool) writeStaged(ctx context.Context, in interpreter.ToolInput, w *objectWrite) (interpreter.ToolResult, error) {
	switch w.staging.Do {
	case interpreter.StagingBegin:
		return interpreter.ToolResult{}, nil
	case interpreter.StagingPublish:
		defer memory.CollectSooner(memory.PercentBesideParts)()
		if w.paths != nil {
			return t.publishPaths(ctx, in, w)
		}
		return t.publishStaged(ctx, in, w)
	case interpreter.StagingSettle:
		w.rows, w.given, w.paths, w.Operation = nil, nil, nil, ""
	}
	published, err := w.readPublished(ctx)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	if before, known := published.Operations[w.Operation]; known && w.Operation != "" {
		found := tool.WrittenBefore{Fingerprint: before.Fingerprint, Rows: int64(before.Rows)}
		return w.stagedResult(0), w.Check(found, w.at.Name+" "+w.path, len(w.rows))
	}
	end, err := t.findEnd(ctx, w, published.Through)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	if end.next == 1 && w.paths == nil {
		if err := w.checkFirst(ctx); err != nil {
			return interpreter.ToolResult{}, err
		}
	}
	return t.addRecord(ctx, w, end)
}

// checkFirst finds before the first record what publishing would fail for.
func (w *objectWrite) checkFirst(ctx context.Context) error {
	last, err := w.lastManifest(ctx)
	if err != nil {
		return err
	}
	return w.checkFormat(last)
}

// addRecord writes the rows as the next record. Where another write takes its number, it follows that.
func (t *Tool) addRecord(ctx context.Context, w *objectWrite, end stagedEnd) (interpreter.ToolResult, error) {
	content, note, err := w.makeRecord()
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	for {
		if w.Note != nil && end.note != nil && end.note.Call == w.Note.Call && end.note.Written >= w.Note.Written {
			return interpreter.ToolResult{Noted: end.note.Continuation}, nil
		}
		taken, err := w.addOnce(ctx, w.recordKey(end.next), content)
		if err != nil {
			return interpreter.ToolResult{}, w.storeError("write", err)
		}
		if !taken {
			t.rememberEnd(w, stagedEnd{next: end.next + 1, note: note})
			return w.stagedResult(len(w.rows)), nil
		}
		if sleep.For(ctx, takenPause) != nil {
			return interpreter.ToolResult{}, ctx.Err()
		}
		if end, err = w.searchEnd(ctx, end.next+1); err != nil {
			return interpreter.ToolResult{}, err
		}
	}
}

func (w *objectWrite) stagedResult(rows int) interpreter.ToolResult {
	return interpreter.ToolResult{Data: expression.Of(map[string]any{"path": w.path, "rows_staged": rows})}
}

// makeRecord makes the object of a record.
func (w *objectWrite) makeRecord() (content []byte, note *manifestNote, err error) {
	if w.rejects == nil { // else publishing finds them
		if err := w.checkRows(); err != nil {
			return nil, nil, w.formatError(err)
		}
	}
	lines, paths, err := w.recordLines()
	if err != nil {
		return nil, nil, err
	}
	if w.Note != nil {
		note = w.newNote(time.Now().UTC())
	}
	var kinds map[string]format.CellKind
	if w.Format == format.Parquet {
		kinds = format.KindsOf(w.rows)
	}
	head, err := json.Marshal(stagedRecord{
		Kinds: kinds, Paths: paths, Operation: w.Operation, Fingerprint: w.Fingerprint, Part: w.staging.Part, Round: w.staging.Round, Lap: w.staging.Lap,
		Settles: w.staging.Do == interpreter.StagingSettle, Page: w.page, Rows: len(w.rows), Bytes: int64(len(lines)), Columns: columnsOf(w.rows), Note: note,
	})
	return append(append(head, '\n'), lines...), note, err
}

// newNote returns the note of the write as a manifest has it.
func (w *objectWrite) newNote(now time.Time) *manifestNote {
	return &manifestNote{Call: w.Note.Call, Written: w.Note.Written, Continuation: w.Note.Continuation, At: now}
}

// checkRows finds before rows are staged what publishing would fail for, as far as the author says what they are.
func (w *objectWrite) checkRows() error {
	switch w.Format {
	case format.CSV: // each row is a map, of columns that the author names
		columns := w.named
		if columns == nil {
			columns = columnsOf(w.rows)
		}
		_, err := formatRows(w.rows, columns, true, asItIs)
		return err
	case format.Parquet:
		return w.checkTyped()
	}
	return nil
}

func (w *objectWrite) formatError(err error) error {
	return tool.Errorf("write %s as %s: %w", w.path, w.Format, err)
}

// findEnd finds the number of the next record.
func (t *Tool) findEnd(ctx context.Context, w *objectWrite, through int) (stagedEnd, error) {
	t.mu.Lock()
	end := t.staged[w.stagedName()]
	t.mu.Unlock()
	if end.next > through {
		return end, nil
	}
	return w.searchEnd(ctx, through+1)
}

// mostEnds bounds the ends of staged rows that a worker knows, which would grow with each run for as long as it lives: of others it looks for the end again.
const mostEnds = 10_000

func (t *Tool) rememberEnd(w *objectWrite, end stagedEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.staged) >= mostEnds {
		clear(t.staged)
	}
	t.staged[w.stagedName()] = end
}

// stagedName names what is staged among all that a worker knows.
func (w *objectWrite) stagedName() string { return w.at.Target + " " + w.at.Prefix + w.stagedKey("") }

// searchEnd finds the end behind a number. All records before that are there; numbers have no gaps.
func (w *objectWrite) searchEnd(ctx context.Context, from int) (stagedEnd, error) {
	there := func(number int) (bool, error) {
		found, err := w.bucket.Exists(ctx, w.recordKey(number))
		if err != nil {
			err = w.storeError("read", err)
		}
		return found, err
	}
	low, step := from-1, 1 // low is there
	for {
		found, err := there(low + step)
		if err != nil {
			return stagedEnd{}, err
		}
		if !found {
			break
		}
		low, step = low+step, 2*step
	}
	for high := low + step; low+1 < high; {
		middle := low + (high-low)/2
		found, err := there(middle)
		if err != nil {
			return stagedEnd{}, err
		}
		if found {
			low = middle
		} else {
			high = middle
		}
	}
	end := stagedEnd{next: low + 1}
	if low < from || w.Note == nil {
		return end, nil
	}
	last, err := w.readRecord(ctx, low)
	if err == nil {
		end.note = last.Note
	}
	return end, err
}

// headBytes is how much of a record is read to know what it is. Small ones are read as a whole.
const headBytes = 64 << 10

// readRecord reads a record, with its rows if they are few.
func (w *objectWrite) readRecord(ctx context.Context, number int) (stagedRecord, error) {
	record := stagedRecord{number: number}
	for most := int64(headBytes); ; most *= 16 {
		content, err := w.readRange(ctx, w.recordKey(number), 0, most)
		if err != nil {
			return record, err
		}
		head, rows, whole := bytes.Cut(content, []byte{'\n'})
		if !whole && int64(len(content)) == most {
			continue
		}
		if err := json.Unmarshal(head, &record); err != nil || !whole {
			return record, tool.Errorf("read %s: the staged record %s cannot be read", w.path, w.recordKey(number))
		}
		record.start = int64(len(head)) + 1
		if int64(len(rows)) == record.Bytes {
			record.content = rows
		}
		return record, nil
	}
}

// readRange reads a part of an object. It takes no more memory than the part, as many of them are held together.
func (r *remote) readRange(ctx context.Context, key string, from, length int64) ([]byte, error) {
	stream, err := r.bucket.NewRangeReader(ctx, key, from, length, nil)
	if err != nil {
		return nil, r.storeError("read", err)
	}
	defer func() { _ = stream.Close() }()
	var content bytes.Buffer
	content.Grow(int(max(0, min(length, stream.Size()-from))) + bytes.MinRead)
	if _, err := content.ReadFrom(stream); err != nil {
		return nil, r.storeError("read", err)
	}
	return content.Bytes(), nil
}

// readPublished reads which records were published.
func (w *objectWrite) readPublished(ctx context.Context) (published publishedRecords, err error) {
	content, err := w.bucket.ReadAll(ctx, w.stagedKey(publishedName))
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		return published, nil
	case err != nil:
		return published, w.storeError("read", err)
	}
	if err := json.Unmarshal(content, &published); err != nil {
		return published, tool.Errorf("read %s: %s cannot be read: %w", w.path, w.stagedKey(publishedName), err)
	}
	return published, nil
}

// checkRemoved returns an error where what was staged was removed because nobody has published it for long.
func (w *objectWrite) checkRemoved(ctx context.Context) error {
	removed, err := w.bucket.Exists(ctx, w.stagedKey(removedName))
	if err != nil {
		return w.storeError("read", err)
	}
	if !removed {
		return nil
	}
	return &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: typeStagingLost, Final: true,
		Message: fmt.Sprintf("write %s in %s: rows of this run were staged for more than 7 days, and another run has removed them; run the playbook again", w.path, w.at.Name),
	}
}

const typeStagingLost = "staging_lost"

// requestsAtOnce is how many objects are read or removed at the same time.
const requestsAtOnce = 8

// eachNumber does something for each number, some at a time. The first error ends it.
func eachNumber(ctx context.Context, atOnce, from, to int, do func(ctx context.Context, number int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		next atomic.Int64
		all  sync.WaitGroup
	)
	next.Store(int64(from))
	for range min(atOnce, to-from+1) {
		all.Go(func() {
			for number := int(next.Add(1)) - 1; number <= to && ctx.Err() == nil; number = int(next.Add(1)) - 1 {
				if err := do(ctx, number); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}
