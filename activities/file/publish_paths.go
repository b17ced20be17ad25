package file

import (
	"context"
	"fmt"
	"slices"
	"time"

	"reprise/internal/base/sleep"
	"reprise/interpreter"
)

// pathPublish publishes the rows of one path. Its files are made before any manifest is written, so that rows which do not fit leave all
// paths as they were.
type pathPublish struct {
	*objectWrite

	last    manifest
	through int            // the record up to which they were published before
	records []stagedRecord // the rows of the path in each record
	settles []stagedRecord // the records from which the columns follow
	files   []manifestFile
	bytes   int64
	rows    int64
	// earlier are the files of rejected rows that an earlier attempt recorded in the manifest of the path.
	earlier []rejectedFile
}

// publishPaths publishes the rows of a call or loop that each have a path. The manifest of a path records that its rows were
// published. Once all paths are published, the worker records that and removes the staged records.
func (t *Tool) publishPaths(ctx context.Context, in interpreter.ToolInput, w *objectWrite) (interpreter.ToolResult, error) {
	before, err := w.readPublished(ctx)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	if w.Note != nil && before.Note != nil && before.Note.Call == w.Note.Call && before.Note.Written >= w.Note.Written {
		result := w.publishedResult(in, before)
		result.Noted = before.Note.Continuation
		return result, w.deleteRecords(ctx, before)
	}
	records, err := w.readRecords(ctx, before.Through)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	if len(records) == 0 && w.Note == nil { // published before, or nothing was read
		t.warnOfLeftovers(ctx, in, w, w.deleteRecords(ctx, before))
		return w.publishedResult(in, before), nil
	}
	now, end := time.Now().UTC(), before.Through+len(records)
	all, err := t.preparePaths(ctx, in, w, before, records)
	if err == nil {
		err = w.checkRemoved(ctx)
	}
	if err == nil {
		err = eachNumber(ctx, requestsAtOnce, 0, len(all)-1, func(ctx context.Context, i int) error { return all[i].publishManifest(ctx, end) })
	}
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	after := before.afterPublish(publishedStage{Through: end, At: now}, records)
	after.Paths = len(all)
	var rejected []rejectedFile
	for _, one := range all {
		after.Rows, after.Rejected = after.Rows+one.rows, after.Rejected+rowsOfRejected(one.rejected)
		rejected = append(append(rejected, one.earlier...), one.rejected...)
	}
	if err := t.publishRejected(ctx, in, rejected); err != nil {
		return interpreter.ToolResult{}, err
	}
	if w.Note != nil {
		after.Note = w.newNote(now)
	}
	if err := w.writePublished(ctx, after); err != nil {
		return interpreter.ToolResult{}, w.storeError("write", err)
	}
	t.warnOfLeftovers(ctx, in, w, t.cleanPaths(ctx, w, after, all))
	return w.publishedResult(in, after), ctx.Err()
}

// publishedResult returns the result of a publication.
func (w *objectWrite) publishedResult(in interpreter.ToolInput, published publishedRecords) interpreter.ToolResult {
	table := in.Table()
	table.Written, table.Rejected = published.Rows, int64(published.Rejected)
	result := w.pathsResult(int(published.Rows), published.Paths)
	result.Meta = interpreter.ToolMeta{Rows: table.ToRows(), LeftOut: leftOut(published.Rejected)}
	return result
}

// cleanPaths removes what is not needed any more. What remains is removed by a later write.
func (t *Tool) cleanPaths(ctx context.Context, w *objectWrite, published publishedRecords, all []*pathPublish) error {
	if err := w.deleteRecords(ctx, published); err != nil {
		return err
	}
	if t.isSweepDue(w.stage) {
		noted, err := w.bucket.Attributes(ctx, w.stagedKey(publishedName))
		if err == nil {
			err = w.stage.removeStaged(ctx, noted.ModTime.Add(-leftoverAge))
		}
		if err != nil {
			return err
		}
	}
	return eachNumber(ctx, requestsAtOnce, 0, len(all)-1, func(ctx context.Context, i int) error {
		return t.removeLeftovers(ctx, all[i].remote, all[i].last.Number+1)
	})
}

// preparePaths makes the files of all paths.
func (t *Tool) preparePaths(ctx context.Context, in interpreter.ToolInput, w *objectWrite, before publishedRecords, records []stagedRecord) ([]*pathPublish, error) {
	chosen, err := w.chooseRecords(records)
	if err != nil {
		return nil, err
	}
	paths := allPaths(chosen)
	if len(paths) > mostPaths {
		return nil, w.tooManyPaths(fmt.Sprintf("the rows go to %d paths; a call or loop may write to %d", len(paths), mostPaths))
	}
	all := make([]*pathPublish, len(paths))
	err = eachNumber(ctx, requestsAtOnce, 0, len(all)-1, func(ctx context.Context, i int) error {
		one, err := t.pathWrite(in, w, paths[i])
		if err != nil {
			return err
		}
		all[i] = &pathPublish{objectWrite: one, settles: chosen}
		return all[i].choosePath(ctx, paths[i], before, records)
	})
	for from := 0; from < len(all) && err == nil; {
		to, bytes := from+1, all[from].bytes
		for ; to < len(all) && bytes+all[to].bytes <= bytesOfPaths; to++ {
			bytes += all[to].bytes
		}
		err = w.mergeGroup(ctx, all[from:to], bytes)
		from = to
	}
	return all, err
}

// choosePath finds which rows of the path have to be published, and whether its last manifest takes them.
func (p *pathPublish) choosePath(ctx context.Context, rowPath string, before publishedRecords, records []stagedRecord) (err error) {
	if p.last, err = p.lastManifest(ctx); err != nil {
		return err
	}
	stage := p.last.stageOf(p.staging.ID)
	if p.through = max(stage.Through, before.Through); p.through >= before.Through+len(records) { // by an earlier attempt
		p.rows, p.rejected = stage.Rows, stage.Rejected
		p.last.Number--
		return nil
	}
	if stage.Through > before.Through {
		p.earlier = stage.Rejected
	}
	chosen, err := p.chooseRecords(records[p.through-before.Through:])
	if err != nil {
		return err
	}
	for _, record := range chosen {
		if of, has := record.ofPath(rowPath); has {
			p.records, p.bytes, p.rows = append(p.records, of), p.bytes+of.Bytes, p.rows+int64(of.Rows)
		}
	}
	return p.settlePath()
}

// settlePath decides which columns the files of the path have.
func (p *pathPublish) settlePath() error {
	if err := p.checkFormat(p.last); err != nil {
		return err
	}
	if err := p.settleColumns(p.last, p.settles); err != nil {
		return p.formatError(err)
	}
	return nil
}

// bytesOfPaths is how many bytes of rows are in memory of paths whose files are made together.
const bytesOfPaths = 16 << 20

// mergeGroup makes the files of paths that follow each other. If they have few bytes, these are read of each record at once.
func (w *objectWrite) mergeGroup(ctx context.Context, group []*pathPublish, bytes int64) error {
	if bytes <= bytesOfPaths {
		if err := w.readGroup(ctx, group); err != nil {
			return err
		}
	}
	return eachNumber(ctx, pathsAtOnce, 0, len(group)-1, func(ctx context.Context, i int) (err error) {
		one := group[i]
		if len(one.records) > 0 {
			err = one.mergePath(ctx)
		}
		for at := range one.records {
			one.records[at].content = nil
		}
		return err
	})
}

// mergePath makes the files of the path.
func (p *pathPublish) mergePath(ctx context.Context) (err error) {
	if p.files, err = p.mergeRecords(ctx, p.records); err != nil {
		return err
	}
	p.rows = rowsOfFiles(p.files)
	return p.checkPreserved(int(p.rows))
}

// rangeOfRecord is what a group of paths needs of a record: bytes from start up to end in its object.
type rangeOfRecord struct {
	number     int
	start, end int64
	parts      []*stagedRecord
}

// readGroup reads the rows of paths that follow each other.
func (w *objectWrite) readGroup(ctx context.Context, group []*pathPublish) error {
	byNumber, ranges := map[int]*rangeOfRecord{}, []*rangeOfRecord(nil)
	for _, one := range group {
		for i := range one.records {
			part := &one.records[i]
			if part.content != nil {
				continue
			}
			of := byNumber[part.number]
			if of == nil {
				of = &rangeOfRecord{number: part.number, start: part.start}
				byNumber[part.number], ranges = of, append(ranges, of)
			}
			of.end, of.parts = part.start+part.Bytes, append(of.parts, part)
		}
	}
	return eachNumber(ctx, requestsAtOnce, 0, len(ranges)-1, func(ctx context.Context, i int) error {
		of := ranges[i]
		whole := stagedRecord{number: of.number, start: of.start, Bytes: of.end - of.start}
		if err := w.readRows(ctx, &whole); err != nil {
			return err
		}
		for _, part := range of.parts {
			part.content = whole.content[part.start-of.start : part.start-of.start+part.Bytes]
		}
		return nil
	})
}

// publishManifest writes the manifest that names the files of the path. Where another writer takes its number, the files are made again if
// they have other columns then.
func (p *pathPublish) publishManifest(ctx context.Context, end int) error {
	for len(p.records) > 0 {
		p.published = &publishedStage{ID: p.staging.ID, Through: end, Rows: p.rows, At: time.Now().UTC(), Rejected: slices.Concat(p.earlier, p.rejected)}
		taken, err := p.addManifest(ctx, p.last.afterWrite(p.objectWrite, p.files, p.published.At))
		if err != nil || !taken {
			return err
		}
		if sleep.For(ctx, takenPause) != nil {
			return ctx.Err()
		}
		if p.last, err = p.lastManifest(ctx); err != nil {
			return err
		}
		if stage := p.last.stageOf(p.staging.ID); stage.Through >= end { // by another attempt
			p.rows, p.rejected, p.last.Number = stage.Rows, stage.Rejected, p.last.Number-1
			return nil
		}
		if err := p.settlePath(); err != nil {
			return err
		}
		if err := p.mergePath(ctx); err != nil {
			return err
		}
	}
	return nil
}
