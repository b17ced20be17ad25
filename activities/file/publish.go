package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gocloud.dev/gcerrors"

	"reprise/activities/format"
	"reprise/activities/tool"
	"reprise/internal/base/sleep"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// publishedStage records what a call or loop has published; manifests keep it for some weeks.
type publishedStage struct {
	ID      string    `json:"id"`
	Through int       `json:"through"` // the number of its last record
	Rows    int64     `json:"rows"`
	At      time.Time `json:"at"`
	// Rejected are the files with the rows that did not fit.
	Rejected []rejectedFile `json:"rejected,omitempty"`
}

// stageRetention is how long manifests know what was published. It is longer than records are kept.
const stageRetention = 30 * 24 * time.Hour

// stageOf is what was published of a call or loop.
func (m manifest) stageOf(id string) publishedStage {
	i := slices.IndexFunc(m.Staged, func(stage publishedStage) bool { return stage.ID == id })
	if i < 0 {
		return publishedStage{ID: id}
	}
	return m.Staged[i]
}

// publishStaged makes files of the records of a call or loop, writes the manifest that names them, and then removes the records.
func (t *Tool) publishStaged(ctx context.Context, in interpreter.ToolInput, w *objectWrite) (interpreter.ToolResult, error) {
	published, err := w.readPublished(ctx)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	for {
		last, err := w.lastManifest(ctx)
		if err != nil {
			return interpreter.ToolResult{}, err
		}
		if w.Note != nil {
			if noted, found := last.noteOf(w.Note.Call); found && noted.Written >= w.Note.Written {
				return t.publishedBefore(ctx, in, w, published, last, noted)
			}
		}
		stage := last.stageOf(w.staging.ID)
		if err := t.publishRejected(ctx, in, stage.Rejected); err != nil { // of an attempt that was ended here
			return interpreter.ToolResult{}, err
		}
		from := max(published.Through, stage.Through)
		records, err := w.readRecords(ctx, from)
		if err != nil {
			return interpreter.ToolResult{}, err
		}
		rows, rejected, number := stage.Rows, stage.Rejected, last.Number
		if len(records) > 0 || w.Note != nil || w.overwrite && stage.At.IsZero() {
			taken, published, err := w.publishRecords(ctx, last, from, records)
			if err != nil {
				return interpreter.ToolResult{}, err
			}
			if taken {
				if sleep.For(ctx, takenPause) != nil {
					return interpreter.ToolResult{}, ctx.Err()
				}
				continue
			}
			rows, rejected, number = published, w.rejected, last.Number+1
			if err := t.publishRejected(ctx, in, rejected); err != nil {
				return interpreter.ToolResult{}, err
			}
		}
		return t.endPublish(ctx, in, w, published, publishResult{records: records, rows: rows, rejected: rowsOfRejected(rejected), number: number})
	}
}

// publishedBefore returns what an earlier attempt has published, once the rows that it rejected are published too.
func (t *Tool) publishedBefore(ctx context.Context, in interpreter.ToolInput, w *objectWrite, published publishedRecords, last manifest, noted manifestNote) (interpreter.ToolResult, error) {
	stage := last.stageOf(w.staging.ID)
	if err := t.publishRejected(ctx, in, stage.Rejected); err != nil {
		return interpreter.ToolResult{}, err
	}
	rejected := rowsOfRejected(stage.Rejected)
	table := in.Table()
	table.Written, table.Rejected = stage.Rows, int64(rejected)
	meta := interpreter.ToolMeta{Rows: table.ToRows(), LeftOut: leftOut(rejected)}
	return interpreter.ToolResult{Noted: noted.Continuation, Meta: meta}, w.removeRecords(ctx, published, last, nil)
}

// publishResult counts what was published, now or by an earlier attempt.
type publishResult struct {
	records  []stagedRecord
	rows     int64
	rejected int
	number   int // of the manifest
}

// endPublish removes what is not needed any more. What remains is removed by a later write.
func (t *Tool) endPublish(ctx context.Context, in interpreter.ToolInput, w *objectWrite, before publishedRecords, done publishResult) (interpreter.ToolResult, error) {
	last, found, err := w.readManifest(ctx, done.number)
	if err == nil && found {
		err = w.removeRecords(ctx, before, last, done.records)
	}
	if err == nil {
		err = t.removeLeftovers(ctx, w.remote, done.number)
	}
	if ctx.Err() != nil {
		return interpreter.ToolResult{}, ctx.Err()
	}
	if err != nil {
		tool.Logger(ctx, t.res.Logger, in).Warn("cannot remove what earlier writes left behind", "path", w.path, "error", err)
	}
	table := in.Table()
	table.Written, table.Rejected = done.rows, int64(done.rejected)
	return interpreter.ToolResult{
		Data: expression.Of(map[string]any{"path": w.path, "rows_written": int(done.rows), "manifest": done.number}),
		Meta: interpreter.ToolMeta{Rows: table.ToRows(), LeftOut: leftOut(done.rejected)},
	}, nil
}

// publishRecords writes the files of records, and the manifest that names them unless its number is taken.
func (w *objectWrite) publishRecords(ctx context.Context, last manifest, from int, records []stagedRecord) (taken bool, rows int64, err error) {
	if err := w.checkFormat(last); err != nil {
		return false, 0, err
	}
	chosen, err := w.chooseRecords(records)
	if err != nil {
		return false, 0, err
	}
	for _, record := range chosen {
		rows += int64(record.Rows)
	}
	if rows == 0 && w.overwrite && !w.allowEmpty {
		return false, 0, &tool.Error{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: typeEmptyReplace, Final: true,
			Message: fmt.Sprintf("write %s in %s: nothing was read, so the path keeps its rows; set allow_empty: true if it may become empty", w.path, w.at.Name),
		}
	}
	if rows == 0 && !w.overwrite && w.Note == nil {
		return false, 0, w.checkRemoved(ctx)
	}
	if err := w.settleColumns(last, chosen); err != nil {
		return false, 0, w.formatError(err)
	}
	files, err := w.mergeRecords(ctx, chosen)
	if err != nil {
		return false, 0, err
	}
	rows = rowsOfFiles(files)
	if err := w.checkPreserved(int(rows)); err != nil {
		return false, 0, err
	}
	if err := w.checkRemoved(ctx); err != nil {
		return false, 0, err
	}
	w.published = &publishedStage{ID: w.staging.ID, Through: from + len(records), Rows: rows, At: time.Now().UTC(), Rejected: w.rejected}
	taken, err = w.addManifest(ctx, last.afterWrite(w, files, w.published.At))
	return taken, rows, err
}

const typeEmptyReplace = "empty_replace"

// readRecords reads the records behind a number, in order, with the rows of some.
func (w *objectWrite) readRecords(ctx context.Context, behind int) ([]stagedRecord, error) {
	end, err := w.searchEnd(ctx, behind+1)
	if err != nil {
		return nil, err
	}
	if end.next == behind+1 {
		return nil, w.checkRemoved(ctx)
	}
	records, held, heads := make([]stagedRecord, end.next-behind-1), atomic.Int64{}, sharedHeads{}
	err = eachNumber(ctx, requestsAtOnce, behind+1, end.next-1, func(ctx context.Context, number int) error {
		record, err := w.readRecord(ctx, number)
		if held.Add(int64(len(record.content))) > bytesAhead {
			record.content = nil
		}
		heads.share(&record)
		records[number-behind-1] = record
		return err
	})
	if err != nil {
		if lost := w.checkRemoved(ctx); lost != nil {
			return nil, lost
		}
		return nil, err
	}
	return records, nil
}

const (
	// bytesAhead is how many bytes of rows are in memory before it is their turn to be written. Without a bound, those of a million small records would be
	// there at once.
	bytesAhead = 4 << 20
	// recordsAhead is how many records are read before it is their turn.
	recordsAhead = 4 * requestsAtOnce
)

// sharedHeads lets records whose rows have the same columns share what describes these, which a million records would each have otherwise.
type sharedHeads struct {
	mu   sync.Mutex
	last stagedRecord
}

// share replaces what a record says of its columns if the record before says the same.
func (s *sharedHeads) share(record *stagedRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Equal(record.Columns, s.last.Columns) && maps.Equal(record.Kinds, s.last.Kinds) {
		record.Columns, record.Kinds = s.last.Columns, s.last.Kinds
		return
	}
	s.last.Columns, s.last.Kinds = record.Columns, record.Kinds
}

// readAhead reads the rows of the first of the records, as far as they are not in memory.
func (w *objectWrite) readAhead(ctx context.Context, records []stagedRecord) error {
	until, bytes := 0, int64(0)
	for ; until < min(recordsAhead, len(records)); until++ {
		if bytes += records[until].Bytes; until > 0 && bytes > bytesAhead {
			break
		}
	}
	return eachNumber(ctx, requestsAtOnce, 0, until-1, func(ctx context.Context, i int) error {
		if records[i].Rows == 0 || records[i].content != nil {
			return nil
		}
		return w.readRows(ctx, &records[i])
	})
}

// chooseRecords chooses the records whose rows count: the last round of each part, and one record of each write.
func (w *objectWrite) chooseRecords(records []stagedRecord) (chosen []stagedRecord, err error) {
	parts, order := map[int]*stagedPart{}, []*stagedPart(nil)
	for _, record := range records {
		number := -1
		if record.Part != nil {
			number = *record.Part
		}
		part := parts[number]
		if part == nil {
			part = &stagedPart{lap: record.Lap}
			if number < 0 {
				part.round = w.staging.Round
			}
			parts[number], order = part, append(order, part)
		}
		if err := part.addRecord(record, w.at.Name+" "+w.path); err != nil {
			return nil, err
		}
	}
	for _, part := range order {
		chosen = append(chosen, part.records...)
	}
	slices.SortFunc(chosen, func(a, b stagedRecord) int { return a.number - b.number })
	return chosen, nil
}

// stagedPart has what an iteration, or a call without a loop, has staged.
type stagedPart struct {
	lap     string
	round   int
	records []stagedRecord
	places  map[string]int // of records, by operation
}

// addRecord adds a record, unless it repeats another. One of a later round drops those before, as does one with which a later run begins the
// part anew: it repeats the first. A run that continues where another one was stopped repeats the last at most.
func (p *stagedPart) addRecord(record stagedRecord, where string) error {
	other := record.Lap != p.lap
	at, repeats := p.places[record.Operation]
	switch {
	case record.Round > p.round, other && record.Round < p.round, other && repeats && at == 0:
		p.records, p.places = nil, nil
	case record.Round < p.round: // it arrives late
		return nil
	case repeats:
		entry := tool.LedgerRecord{Operation: record.Operation, Fingerprint: record.Fingerprint}
		return entry.Check(tool.WrittenBefore{Fingerprint: p.records[at].Fingerprint, Rows: int64(p.records[at].Rows)}, where, record.Rows)
	}
	p.round, p.lap = record.Round, record.Lap
	if record.Settles {
		return nil
	}
	if p.places == nil {
		p.places = map[string]int{}
	}
	if record.Operation != "" {
		p.places[record.Operation] = len(p.records)
	}
	p.records = append(p.records, record)
	return nil
}

// settleColumns decides which columns the files of records have.
func (w *objectWrite) settleColumns(last manifest, records []stagedRecord) error {
	switch w.Format {
	case format.Parquet:
		kinds, rows := lists.Map(records, func(record stagedRecord) map[string]format.CellKind { return record.Kinds }), 0
		return w.settleTable(last, kinds, func(i int) bool {
			rows += records[i].Rows
			return rows >= format.RowsOfGroup
		})
	case format.CSV:
		w.columns = w.columnsFor(last, func() []string {
			all := map[string]bool{}
			for _, record := range records {
				for _, name := range record.Columns {
					all[name] = true
				}
			}
			return slices.Sorted(maps.Keys(all))
		})
	}
	return nil
}

// columnsFor returns the columns of CSV: the columns of the previous manifest, else the author's, else all columns
// that the rows have.
func (w *objectWrite) columnsFor(last manifest, ofRows func() []string) []string {
	switch {
	case !w.overwrite && last.Columns != nil:
		return last.Columns
	case w.named != nil:
		return w.named
	}
	return ofRows()
}

// mergeRecords writes the rows of records into files of about the target size. No other attempt uses the same
// names, so no attempt changes a file that a manifest names.
func (w *objectWrite) mergeRecords(ctx context.Context, records []stagedRecord) (files []manifestFile, err error) {
	var into *dataFile
	aside := w.rejectRows()
	defer func() {
		if err != nil && into != nil {
			into.abortFile()
		}
		if err != nil {
			aside.abort()
		}
	}()
	before := 0
	for i := range records {
		if i > 0 {
			before += records[i-1].Rows
		}
		if records[i].Rows > 0 && records[i].content == nil {
			if err := w.readAhead(ctx, records[i:]); err != nil {
				return nil, err
			}
		}
		record := records[i]
		records[i].content = nil // nobody needs it after this
		if err := aside.rejectOfRecord(ctx, &record); err != nil {
			return nil, err
		}
		if record.Rows == 0 {
			continue
		}
		if into == nil {
			if into, err = w.createFile(ctx, fmt.Sprintf("%s%s-%d-%s", partPrefix, w.staging.ID, len(files)+1, randomName()[:8])); err != nil {
				return nil, err
			}
		}
		if err := into.addRecord(record); err != nil {
			return nil, w.formatError(record.placeError(err, before))
		}
		if into.sizeSoFar() >= w.targetSize {
			file, err := into.endFile()
			if into = nil; err != nil {
				return nil, err
			}
			files = append(files, file)
		}
	}
	if into != nil {
		file, err := into.endFile()
		if into = nil; err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, aside.end()
}

// rowsOfFiles returns how many rows files have.
func rowsOfFiles(files []manifestFile) (rows int64) {
	for _, file := range files {
		rows += int64(file.Rows)
	}
	return rows
}

// placeText says where the rows of a record are from.
func (r stagedRecord) placeText() string {
	where := fmt.Sprintf("page %d", r.Page)
	if r.Part != nil {
		where += fmt.Sprintf(" of iteration %d", *r.Part)
	}
	if r.path != "" {
		where += ", its rows with this path"
	}
	return where
}

// placeError returns an error of a row with its place: the page, or in a transfer, which has none, the number of the row. So many rows are before the record.
func (r stagedRecord) placeError(err error, before int) error {
	if misfit, one := errors.AsType[*format.MisfitError](err); one && r.Page == 0 && r.path == "" {
		return fmt.Errorf("row %d of all, column %q: %s", before+misfit.Row+1, misfit.Column, misfit.Reason)
	}
	return fmt.Errorf("%s: %w", r.placeText(), err)
}

// readRows reads the rows of a record.
func (w *objectWrite) readRows(ctx context.Context, record *stagedRecord) error {
	content, err := w.readRange(ctx, w.recordKey(record.number), record.start, record.Bytes)
	if err != nil {
		if lost := w.checkRemoved(ctx); lost != nil {
			return lost
		}
		return err
	}
	if record.content = content; int64(len(content)) != record.Bytes {
		return tool.Errorf("read %s: the staged record %s was cut", w.path, w.recordKey(record.number))
	}
	return nil
}

// removeRecords removes the records that a manifest has published. Before, it is noted which these were, as a run that is continued may write them again.
func (w *objectWrite) removeRecords(ctx context.Context, before publishedRecords, last manifest, records []stagedRecord) error {
	stage := last.stageOf(w.staging.ID)
	if stage.Through > before.Through {
		if len(records) == 0 { // of an attempt that was ended here
			var err error
			if records, err = w.readRecords(ctx, before.Through); err != nil {
				return err
			}
		}
		before = before.afterPublish(stage, records)
		if err := w.writePublished(ctx, before); err != nil {
			return err
		}
	}
	return w.deleteRecords(ctx, before)
}

// afterPublish returns what is known once records behind those of before were published.
func (p publishedRecords) afterPublish(stage publishedStage, records []stagedRecord) publishedRecords {
	all := publishedRecords{From: p.Through, Through: stage.Through, Operations: map[string]manifestWrite{}}
	maps.Copy(all.Operations, p.Operations)
	for _, record := range records {
		if record.Operation != "" && record.number <= stage.Through && !record.Settles {
			all.Operations[record.Operation] = manifestWrite{Fingerprint: record.Fingerprint, Rows: record.Rows, At: stage.At}
		}
	}
	return all
}

// writePublished writes which records were published.
func (w *objectWrite) writePublished(ctx context.Context, published publishedRecords) error {
	content, err := json.Marshal(published)
	if err == nil {
		_, err = w.writeObject(ctx, w.stagedKey(publishedName), content)
	}
	return err
}

// deleteRecords deletes the records that were published last.
func (w *objectWrite) deleteRecords(ctx context.Context, published publishedRecords) error {
	return eachNumber(ctx, requestsAtOnce, published.From+1, published.Through, func(ctx context.Context, number int) error {
		err := w.bucket.Delete(ctx, w.recordKey(number))
		if gcerrors.Code(err) == gcerrors.NotFound {
			return nil
		}
		return err
	})
}

// removedRetention is how long it stays known that records were removed which nobody had published: longer than a run is held.
const removedRetention = 180 * 24 * time.Hour

// removeStaged removes what calls and loops have staged that were ended before they published it.
func (r *remote) removeStaged(ctx context.Context, than time.Time) error {
	listed, err := r.listBelow(ctx, r.stagedRoot())
	if err != nil {
		return err
	}
	byID := map[string][]stagedObject{}
	for _, object := range listed {
		if id, name, found := strings.Cut(strings.TrimPrefix(object.Key, r.stagedRoot()+"/"), "/"); found {
			byID[id] = append(byID[id], stagedObject{key: object.Key, name: name, at: object.ModTime})
		}
	}
	for id, objects := range byID {
		if err := r.removeStage(ctx, id, objects, than); err != nil {
			return err
		}
	}
	return nil
}

// stagedObject is an object of what is staged.
type stagedObject struct {
	key, name string
	at        time.Time
}

// removeStage removes what one call or loop has staged, if all of it is older.
func (r *remote) removeStage(ctx context.Context, id string, objects []stagedObject, than time.Time) error {
	newest := slices.MaxFunc(objects, func(a, b stagedObject) int { return a.at.Compare(b.at) })
	if !newest.at.Before(than) {
		return nil
	}
	marked := slices.ContainsFunc(objects, func(object stagedObject) bool { return object.name == removedName })
	if !marked {
		if _, err := r.writeObject(ctx, r.stagedRoot()+"/"+id+"/"+removedName, []byte("{}\n")); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if object.name == removedName && time.Since(object.at) < removedRetention {
			continue
		}
		if err := r.bucket.Delete(ctx, object.key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return err
		}
	}
	return nil
}
