package file

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"reprise/activities/format"
	"reprise/activities/tool"
	"reprise/internal/base/sleep"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// objectWrite is one write below a connection. As objects cannot be appended to, its rows become an object of their own, which the next
// manifest names. An object that no manifest names has no rows for anybody.
type objectWrite struct {
	*remote
	format.WriteOptions

	overwrite bool
	named     []string               // the columns of the author
	typed     []format.ParquetColumn // those whose types the author gives
	columns   []string               // those of the content
	table     []format.ParquetColumn // the same, of Parquet
	content   []byte                 // compressed; nil before it is made
	rows      []any
	given     []any // the rows, and those that were rejected
	run       string
	page      int
	tool.LedgerRecord

	// Of rows that each have a path of their own, below that of the write; nil where all go to it.
	paths []string
	// like are the rows from which the columns follow, where these are more than those of the path; else nil.
	like []any

	// Of rows that are published together.
	staging    *interpreter.Staging
	stage      *remote // what is staged is below its path
	targetSize int64
	allowEmpty bool
	published  *publishedStage // what the manifest is to say of them

	// rejects says where rows go that do not fit; nil where such a row is an error.
	rejects *rejection
	misfits []rejectedRow // of the rows that are given
	// rowPath is the path of the rows, where these are only those of one path.
	rowPath string
	// rejected are the files with those rows of the write, or of the path that is published.
	rejected []rejectedFile
	// preserves says that a path keeps its files although the mode is overwrite, since none of its rows fit.
	preserves bool
}

// writesObjects reports whether each write is an object of its own: below a connection, and where the rows of a file cannot be appended to.
func writesObjects(in interpreter.ToolInput, as format.WriteOptions) bool {
	return in.Auth != "" || as.Format == format.Parquet
}

// partPrefix begins the names of objects that writes make.
const partPrefix = "part-"

// writeRemote writes rows below a connection.
func (t *Tool) writeRemote(ctx context.Context, in interpreter.ToolInput, w *objectWrite) (interpreter.ToolResult, error) {
	for _, own := range []string{manifestFolder, stagedFolder} {
		if slices.Contains(strings.Split(w.key, "/"), own) {
			return interpreter.ToolResult{}, tool.ConfigErrorf("step %q: path is %q, but the worker keeps its own files in %s; use another name", in.Step, w.path, own)
		}
	}
	unlock, err := t.lockRemote(ctx, w.remote)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	defer unlock()
	if err := tool.BeginAttempt(ctx); err != nil {
		return interpreter.ToolResult{}, err
	}
	if err := t.probeConditions(ctx, w.remote); err != nil {
		return interpreter.ToolResult{}, err
	}
	switch {
	case w.staging != nil:
		return t.writeStaged(ctx, in, w)
	case w.paths != nil:
		return t.writePaths(ctx, in, w)
	}
	result, number, err := t.writeNext(ctx, in, w)
	if err != nil || result.Noted != nil {
		return result, err
	}
	if err := t.removeLeftovers(ctx, w.remote, number); err != nil && ctx.Err() == nil {
		tool.Logger(ctx, t.res.Logger, in).Warn("cannot remove what earlier writes left behind", "path", w.path, "error", err)
	}
	return result, nil
}

// writeNext writes the rows and the manifest after the last one, whose number it returns. Where another writer takes that, the write follows it.
func (t *Tool) writeNext(ctx context.Context, in interpreter.ToolInput, w *objectWrite) (result interpreter.ToolResult, number int, err error) {
	for {
		last, err := w.lastManifest(ctx)
		if err != nil {
			return result, 0, err
		}
		if result, done, err := w.lookUp(last); done || err != nil {
			if err == nil {
				err = t.publishRejected(ctx, in, last.rejectedBy(w.Operation))
			}
			return result, last.Number, err
		}
		files, err := w.writeRows(ctx, last)
		if err != nil {
			return result, 0, err
		}
		taken, err := w.addManifest(ctx, last.afterWrite(w, files, time.Now().UTC()))
		if err != nil {
			return result, 0, err
		}
		if !taken {
			return w.writeResult(len(w.rows), last.Number+1), last.Number + 1, t.publishRejected(ctx, in, w.rejected)
		}
		if sleep.For(ctx, takenPause) != nil {
			return result, 0, ctx.Err()
		}
	}
}

// lookUp looks the write up in the last manifest. done is true where nothing is left to write.
func (w *objectWrite) lookUp(last manifest) (result interpreter.ToolResult, done bool, err error) {
	if w.Note != nil {
		if noted, found := last.noteOf(w.Note.Call); found && noted.Written >= w.Note.Written {
			return interpreter.ToolResult{Noted: noted.Continuation}, true, nil
		}
	}
	before, known := last.findWrite(w.Operation)
	switch {
	case known:
		result, w.rejected = w.writeResult(0, last.Number), last.rejectedBy(w.Operation)
		w.countRejected(&result, before.Rows-int64(rowsOfRejected(w.rejected)))
		return result, true, w.Check(before, w.at.Name+" "+w.path, len(w.given))
	case len(w.given) == 0 && !w.overwrite && w.Note == nil && last.Number > 0:
		return w.writeResult(0, last.Number), true, nil
	}
	return interpreter.ToolResult{}, false, nil
}

// writeResult returns the result of a write of rows.
func (w *objectWrite) writeResult(rows, number int) interpreter.ToolResult {
	result := interpreter.ToolResult{Data: expression.Of(map[string]any{"path": w.path, "rows_written": rows, "manifest": number})}
	w.countRejected(&result, int64(rows))
	return result
}

// recallRemote gives the last note of a call below a connection, if it was made after one of its writes.
func (t *Tool) recallRemote(ctx context.Context, in interpreter.ToolInput, path string) ([]interpreter.LedgerEntry, error) {
	from, err := t.openRemote(ctx, in, path)
	if err != nil {
		return nil, err
	}
	last, err := from.lastManifest(ctx)
	if err != nil {
		return nil, err
	}
	noted, found := last.noteOf(in.Note.Call)
	if in.Staging != nil && !found {
		w := &objectWrite{remote: from, staging: in.Staging, stage: from, LedgerRecord: tool.LedgerRecord{Note: in.Note}}
		published, err := w.readPublished(ctx)
		if err != nil {
			return nil, err
		}
		end, err := w.searchEnd(ctx, published.Through+1)
		if err != nil {
			return nil, err
		}
		if end.note == nil {
			end.note = published.Note
		}
		if end.note == nil {
			return nil, nil
		}
		noted, found = *end.note, end.note.Call == in.Note.Call
	}
	if !found || noted.Written <= in.Note.Written {
		return nil, nil
	}
	return []interpreter.LedgerEntry{{Call: noted.Call, Written: noted.Written, Continuation: noted.Continuation}}, nil
}

// takenPause is how long a write waits that was overtaken by another one.
const takenPause = 20 * time.Millisecond

// writeRows writes the object of the rows, if there are any. Its name has their hash, so that an attempt with other rows never changes what a manifest
// names.
func (w *objectWrite) writeRows(ctx context.Context, last manifest) ([]manifestFile, error) {
	if err := w.checkFormat(last); err != nil {
		return nil, err
	}
	if err := w.makeContent(last); err != nil {
		return nil, w.formatError(err)
	}
	if err := w.writeRejected(ctx); err != nil {
		return nil, err
	}
	if len(w.rows) == 0 {
		return nil, nil
	}
	sum := sha256.Sum256(w.content)
	digits := hex.EncodeToString(sum[:])
	const shown = 8
	file := manifestFile{
		Path: partPrefix + operationName(w.Operation) + "-" + digits[:shown] + "." + w.Extension(), Rows: len(w.rows), Bytes: int64(len(w.content)), SHA256: digits,
		Run: w.run, At: time.Now().UTC(), Operation: w.Operation,
	}
	if _, err := w.writeObject(ctx, path.Join(w.key, file.Path), w.content); err != nil {
		return nil, w.storeError("write", err)
	}
	return []manifestFile{file}, nil
}

// checkFormat refuses to add rows to existing rows of another format or compression: many readers of several files take one of each.
func (w *objectWrite) checkFormat(last manifest) error {
	switch {
	case w.overwrite || last.Number == 0:
	case last.Format != w.Format:
		return tool.Errorf("write %s as %s: its existing files are %s; use another path, or mode: overwrite", w.path, w.Format, last.Format)
	case last.Compression != w.packing():
		return tool.Errorf("write %s with compression %s: its existing files have %s; use another path, or mode: overwrite", w.path, cmp.Or(w.packing(), "none"), cmp.Or(last.Compression, "none"))
	}
	return nil
}

// packing is the compression of files as wholes, "" for none. Each file of Parquet says what it has inside.
func (w *objectWrite) packing() string {
	if w.Format == format.Parquet {
		return ""
	}
	return w.Compression
}

// makeContent returns the bytes of the rows, to be appended to the files of a manifest.
func (w *objectWrite) makeContent(last manifest) (err error) {
	columns := w.columns
	switch w.Format {
	case format.Parquet:
		return w.makeParquet(last)
	case format.CSV:
		columns = w.columnsFor(last, func() []string { return columnsOf(w.alike()) })
	}
	if w.content != nil && slices.Equal(columns, w.columns) {
		return nil
	}
	var content []byte
	w.columns = columns
	if w.dropMisfits(); w.Format == format.CSV {
		content, err = formatRows(w.rows, columns, true, w.cellOf())
	} else {
		content, err = formatLines(w.rows)
	}
	if err == nil {
		w.content, err = packBytes(content, w.Compression)
	}
	return err
}

// cellOf makes the values of CSV.
func (w *objectWrite) cellOf() func(any) any {
	if w.EscapeFormulas {
		return escapeFormula
	}
	return asItIs
}

var plainOperation = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,99}$`)

// operationName returns an operation key as a part of a name.
func operationName(key string) string {
	switch {
	case key == "":
		return randomName()
	case plainOperation.MatchString(key):
		return key
	}
	return expression.Digest("operation", key)
}

// randomName returns a name that no other has.
func randomName() string { return strings.ToLower(rand.Text()) }

// remoteLocks is how many paths are written to at the same time, at most, by one worker.
const remoteLocks = 64

// lockRemote keeps other writers of a path in this process out, which would only overtake each other.
func (t *Tool) lockRemote(ctx context.Context, r *remote) (unlock func(), err error) {
	hash := fnv.New32a()
	_, _ = io.WriteString(hash, r.at.Name+" "+r.key)
	lock := t.remotes[hash.Sum32()%remoteLocks]
	select {
	case lock <- struct{}{}:
		return func() { <-lock }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// probeConditions makes sure that the store refuses to write an object that is there, which not every server does: two writers would take
// the same number, and the rows of one of them would be lost.
func (t *Tool) probeConditions(ctx context.Context, r *remote) error {
	known := r.at.Target
	t.mu.Lock()
	done := r.at.IsFolder() || t.probed[known]
	t.mu.Unlock()
	if done {
		return nil
	}
	key := r.manifestKey(0)
	for range 2 {
		taken, err := r.addObject(ctx, key, []byte(`{"number": 0, "files": []}`))
		if err != nil {
			return r.storeError("write the manifest of", err)
		}
		if taken {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.probed[known] = true
			return nil
		}
	}
	return tool.ConfigErrorf("%s overwrites objects despite If-None-Match: *, so two runs could lose each other's rows; "+
		"use a store that supports conditional writes", r.at.Name)
}

// alike returns the rows from which the columns follow.
func (w *objectWrite) alike() []any {
	if w.like != nil {
		return w.like
	}
	return w.given
}

// removeLeftovers removes what has no rows for anybody any more: objects that no manifest names, as writes were ended before they had one, and
// manifests before the last. All are days old, by the store's clock. It is looked for once an hour.
func (t *Tool) removeLeftovers(ctx context.Context, r *remote, number int) error {
	if !t.isSweepDue(r) {
		return nil
	}
	last, found, err := r.readManifest(ctx, number)
	if err != nil || !found {
		return err
	}
	written, err := r.bucket.Attributes(ctx, r.manifestKey(number))
	if err != nil {
		return err
	}
	needed := map[string]bool{r.manifestKey(number): true, r.manifestKey(0): true}
	for _, file := range last.Files {
		needed[path.Join(r.key, file.Path)] = true
	}
	for _, file := range last.Replaced {
		needed[path.Join(r.key, file.Path)] = true
	}
	older := written.ModTime.Add(-leftoverAge)
	return errors.Join(r.removeOlder(ctx, older, needed), r.removeStaged(ctx, older))
}

// isSweepDue reports whether it is time to look for leftovers of a path, which is then done.
func (t *Tool) isSweepDue(r *remote) bool {
	const pause = time.Hour
	known := r.at.Target + " " + r.at.Prefix + r.key
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.swept[known]) <= pause {
		return false
	}
	if len(t.swept) >= mostEnds {
		clear(t.swept)
	}
	t.swept[known] = time.Now()
	return true
}

// stagedRoot returns the folder of what is staged for the path.
func (r *remote) stagedRoot() string { return path.Join(r.key, stagedFolder) }

// removeOlder removes parts and manifests that are older, and not needed.
func (r *remote) removeOlder(ctx context.Context, than time.Time, needed map[string]bool) error {
	parts, err := r.listObjects(ctx, r.key)
	if err != nil {
		return err
	}
	manifests, err := r.listObjects(ctx, path.Join(r.key, manifestFolder))
	if err != nil {
		return err
	}
	parts = lists.Filter(parts, func(object blob.ListObject) bool { return strings.HasPrefix(path.Base(object.Key), partPrefix) })
	for _, object := range slices.Concat(parts, manifests) {
		if needed[object.Key] || !object.ModTime.Before(than) {
			continue
		}
		if err := r.bucket.Delete(ctx, object.Key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return err
		}
	}
	return nil
}
