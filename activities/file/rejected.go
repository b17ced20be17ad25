package file

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"reprise/activities/format"
	"reprise/activities/tool"
	"reprise/internal/base/sleep"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// Rows that do not fit the columns of their files become files of a folder of their own. The manifest of the rows that fit names these files first,
// so that both are published by one object; that of their own folder follows. An attempt that finds such files there writes it, if it is missing.

// defaultRejected is how many rows a publication may reject without max.
const defaultRejected = 100

func rejectedKeys() []playbook.Field {
	return []playbook.Field{
		{Name: playbook.FieldPath, Kind: playbook.KindText, Required: true, Doc: "The folder for rejected rows, which are written as JSON Lines with a manifest."},
		{Name: "max", Kind: playbook.KindNumber, Default: fmt.Sprint(defaultRejected), Doc: "The most rows of a write, call or loop that may be rejected; with one more it fails, and nothing is published."},
	}
}

// rejection says where the rows of a write go that its files cannot hold.
type rejection struct {
	to    *remote
	max   int
	in    interpreter.ToolInput
	found *atomic.Int64 // how many rows were rejected by now, of all paths
}

// rejectedFile is a file with rows that did not fit.
type rejectedFile struct {
	Folder string `json:"folder"` // as the author has it
	manifestFile
}

// rejectedRow is a row that did not fit, and where it is from.
type rejectedRow struct {
	row       any
	why       *format.MisfitError
	number    int // from 1
	page      int
	index     *int
	operation string
}

// readRejected reads rejected.
func (t *Tool) readRejected(ctx context.Context, in interpreter.ToolInput, w *objectWrite) error {
	fields, err := tool.MapField(in, playbook.FieldRejected)
	if err != nil || fields == nil {
		return err
	}
	if problem := playbook.RejectedProblem(w.Format); problem != "" {
		return tool.ConfigErrorf("step %q: %s", in.Step, problem)
	}
	inner := in
	inner.Fields = map[string]expression.Value{playbook.FieldPath: expression.Of(fields[playbook.FieldPath])}
	folder, err := localPath(inner)
	if err != nil {
		return tool.ConfigErrorf("%w; this is the path of rejected, the folder for rows that do not fit", err)
	}
	w.rejects = &rejection{max: defaultRejected, in: in, found: &atomic.Int64{}}
	if most := fields["max"]; most != nil {
		number, isNumber := most.(int)
		if !isNumber || number < 0 {
			return tool.ConfigErrorf("step %q: max of rejected must be a whole number, not %s", in.Step, expression.Text(most))
		}
		w.rejects.max = number
	}
	key := path.Clean(filepath.ToSlash(folder))
	if strings.HasPrefix(key+"/", w.key+"/") || usesOwnFolder(key) {
		return tool.ConfigErrorf("step %q: the path of rejected is %q; rejected rows need a separate folder, outside %q, where the other rows go", in.Step, folder, w.path)
	}
	w.rejects.to, err = t.openRemote(ctx, in, folder)
	return err
}

// usesOwnFolder reports whether a path leads to what the worker keeps beside files.
func usesOwnFolder(key string) bool {
	return slices.ContainsFunc(strings.Split(key, "/"), func(name string) bool { return name == manifestFolder || name == stagedFolder })
}

// misfitFinder returns a function that says why the columns of the write cannot hold a row, nil if they can.
func (w *objectWrite) misfitFinder() func(row any) *format.MisfitError {
	if w.Format == format.Parquet {
		return format.MisfitFinder(w.table)
	}
	known := make(map[string]bool, len(w.columns))
	for _, name := range w.columns {
		known[name] = true
	}
	return func(row any) *format.MisfitError {
		values, isMap := row.(map[string]any)
		if !isMap {
			return &format.MisfitError{Reason: fmt.Sprintf("it is a %s; a row of CSV must be a map", expression.TypeName(row))}
		}
		unknown, isUnknown := "", false
		for name := range values {
			if !known[name] && (!isUnknown || name < unknown) {
				unknown, isUnknown = name, true
			}
		}
		if !isUnknown {
			return nil
		}
		return &format.MisfitError{Column: unknown, Reason: fmt.Sprintf("it is not one of the columns, which are %s", strings.Join(w.columns, ", "))}
	}
}

// dropMisfits leaves the rows in the write that its columns can hold.
func (w *objectWrite) dropMisfits() {
	if w.rejects == nil {
		return
	}
	w.rows, w.misfits = nil, nil
	find := w.misfitFinder()
	for i, row := range w.given {
		if why := find(row); why != nil {
			w.misfits = append(w.misfits, rejectedRow{row: row, why: why, number: i + 1, page: w.page, index: w.rejects.in.Index, operation: w.Operation})
			continue
		}
		w.rows = append(w.rows, row)
	}
}

// writeRejected writes the file of the rows that do not fit.
func (w *objectWrite) writeRejected(ctx context.Context) error {
	if w.rejects == nil {
		return nil
	}
	aside := w.rejectRows()
	for _, one := range w.misfits {
		if err := aside.rejectRow(ctx, one); err != nil {
			aside.abort()
			return err
		}
	}
	if err := aside.end(); err != nil {
		return err
	}
	return w.checkPreserved(len(w.rows))
}

// checkPreserved decides what becomes of the files that the write should replace, where none of its rows fit.
func (w *objectWrite) checkPreserved(rows int) error {
	w.preserves = false
	switch {
	case !w.overwrite || rows > 0 || len(w.rejected) == 0:
		return nil
	case w.rowPath != "":
		w.preserves = true
		return nil
	case w.allowEmpty:
		return nil
	}
	return &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: typeEmptyReplace, Final: true,
		Message: fmt.Sprintf("write %s in %s: all rows were rejected, so the path keeps its rows; set allow_empty: true if it may become empty", w.path, w.at.Name),
	}
}

// rejecting writes the rows that do not fit.
type rejecting struct {
	of   *objectWrite
	find func(row any) *format.MisfitError // nil before the first row
	into *dataFile                         // nil before the first such row
}

// rejectRows begins to reject rows, anew if the write has done so before.
func (w *objectWrite) rejectRows() *rejecting {
	if w.rejects != nil {
		w.rejects.found.Add(int64(-rowsOfRejected(w.rejected)))
		w.rejected = nil
	}
	return &rejecting{of: w}
}

// rejectRow writes a row that does not fit.
func (r *rejecting) rejectRow(ctx context.Context, one rejectedRow) error {
	w, column := r.of, any(nil)
	if one.why.Column != "" {
		column = one.why.Column
	}
	if w.rejects.found.Add(1) > int64(w.rejects.max) {
		return w.tooManyRejected(one)
	}
	in := w.rejects.in
	values := map[string]any{
		"operation_key": one.operation, "row": one.number, "run": cmp.Or(in.ControlID, in.RunID), "step": in.Step, "visit": in.Visit, "index": nil, "page": one.page,
		"column": column, "reason": one.why.Reason, "value": one.row,
	}
	if one.index != nil {
		values["index"] = *one.index
	}
	if w.rowPath != "" {
		values["path"] = w.rowPath
	}
	line, err := formatLines([]any{values})
	if err != nil {
		return w.formatError(err)
	}
	if r.into == nil {
		if err := w.checkRejected(ctx); err != nil {
			return err
		}
		to := &objectWrite{remote: w.rejects.to, WriteOptions: format.WriteOptions{Format: format.JSONL}, run: w.run}
		name := operationName(w.Operation)
		if w.staging != nil {
			name = w.staging.ID
		}
		if r.into, err = to.createFile(ctx, partPrefix+name+"-"+randomName()[:8]); err != nil {
			return err
		}
	}
	return r.into.addRecord(stagedRecord{Rows: 1, content: line})
}

// tooManyRejected returns the error of one row more than may be rejected.
func (w *objectWrite) tooManyRejected(one rejectedRow) error {
	where := fmt.Sprintf("page %d, row %d", one.page, one.number)
	if one.index != nil {
		where = fmt.Sprintf("iteration %d, %s", *one.index, where)
	}
	if one.why.Column != "" {
		where += fmt.Sprintf(", column %q", one.why.Column)
	}
	return &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: "rejected",
		Message: fmt.Sprintf("write %s as %s: more than %d rows do not fit (rejected.max), so nothing is published; %s: %s",
			w.path, w.Format, w.rejects.max, where, one.why.Reason),
	}
}

// checkMisfits finds before anything is written what rejecting rows of several paths would fail for.
func (w *objectWrite) checkMisfits(ctx context.Context, writes []*objectWrite) error {
	all := slices.Concat(lists.Map(writes, func(one *objectWrite) []rejectedRow { return one.misfits })...)
	switch {
	case len(all) == 0:
		return nil
	case len(all) > w.rejects.max:
		return w.tooManyRejected(all[w.rejects.max])
	}
	return w.checkRejected(ctx)
}

// rejectOfRecord rejects the rows of a record that do not fit, and leaves the others in it.
func (r *rejecting) rejectOfRecord(ctx context.Context, record *stagedRecord) error {
	if r.of.rejects == nil {
		return nil
	}
	rows, err := decodeLines(record.content)
	if err != nil {
		return r.of.formatError(record.placeError(err, 0))
	}
	if r.find == nil {
		r.find = r.of.misfitFinder()
	}
	record.decoded = make([]any, 0, len(rows))
	for i, row := range rows {
		why := r.find(row)
		if why == nil {
			record.decoded = append(record.decoded, row)
			continue
		}
		if err := r.rejectRow(ctx, rejectedRow{row: row, why: why, number: i + 1, page: record.Page, index: record.Part, operation: record.Operation}); err != nil {
			return err
		}
	}
	record.Rows = len(record.decoded)
	return nil
}

// end ends the file of rejected rows, which is there then.
func (r *rejecting) end() error {
	if r.into == nil {
		return nil
	}
	file, err := r.into.endFile()
	if err == nil {
		r.of.rejected = []rejectedFile{{Folder: r.of.rejects.to.path, manifestFile: file}}
	}
	return err
}

// abort ends without a file.
func (r *rejecting) abort() {
	if r.into != nil {
		r.into.abortFile()
	}
}

// rowsOfRejected returns how many rows files of rejected rows have.
func rowsOfRejected(files []rejectedFile) (rows int) {
	for _, file := range files {
		rows += file.Rows
	}
	return rows
}

// countRejected adds to a result how many rows were written, and how many were rejected. Without rejected, the worker counts the rows that were given.
func (w *objectWrite) countRejected(result *interpreter.ToolResult, written int64) {
	if w.rejects == nil {
		return
	}
	table := w.rejects.in.Table()
	table.Written, table.Rejected = written, int64(rowsOfRejected(w.rejected))
	result.Meta.Rows, result.Meta.LeftOut = table.ToRows(), leftOut(int(table.Rejected))
}

// leftOut counts rejected rows; nil for none.
func leftOut(rejected int) *interpreter.RowCounts {
	if rejected == 0 {
		return nil
	}
	return &interpreter.RowCounts{RejectedRows: rejected}
}

// publishRejected writes the next manifest of each folder that files of rejected rows are in, unless it names them.
func (t *Tool) publishRejected(ctx context.Context, in interpreter.ToolInput, files []rejectedFile) error {
	byFolder, folders := map[string][]manifestFile{}, []string(nil)
	for _, file := range files {
		if byFolder[file.Folder] == nil {
			folders = append(folders, file.Folder)
		}
		byFolder[file.Folder] = append(byFolder[file.Folder], file.manifestFile)
	}
	for _, folder := range folders {
		if err := t.addRejected(ctx, in, folder, byFolder[folder]); err != nil {
			return err
		}
	}
	return nil
}

// addRejected adds files to the manifest of a folder of rejected rows.
func (t *Tool) addRejected(ctx context.Context, in interpreter.ToolInput, folder string, files []manifestFile) error {
	to, err := t.openRemote(ctx, in, folder)
	if err != nil {
		return err
	}
	w := &objectWrite{remote: to, WriteOptions: format.WriteOptions{Format: format.JSONL}, run: in.RunID}
	for {
		last, err := w.lastManifest(ctx)
		if err != nil {
			return err
		}
		missing := slices.DeleteFunc(slices.Clone(files), func(file manifestFile) bool {
			return slices.ContainsFunc(last.Files, func(named manifestFile) bool { return named.Path == file.Path })
		})
		if len(missing) == 0 {
			return nil
		}
		taken, err := w.addManifest(ctx, last.afterWrite(w, missing, time.Now().UTC()))
		if err != nil {
			return err
		}
		if !taken {
			t.warnOfLeftovers(ctx, in, w, t.removeLeftovers(ctx, to, last.Number+1))
			return nil
		}
		if sleep.For(ctx, takenPause) != nil {
			return ctx.Err()
		}
	}
}

// checkRejected finds before rows are published what adding rejected rows to their folder would fail for.
func (w *objectWrite) checkRejected(ctx context.Context) error {
	to := &objectWrite{remote: w.rejects.to, WriteOptions: format.WriteOptions{Format: format.JSONL}}
	last, err := to.lastManifest(ctx)
	if err != nil {
		return err
	}
	return to.checkFormat(last)
}
