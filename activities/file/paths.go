package file

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"reprise/activities/tool"
	"reprise/internal/base/private"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// Rows of a write may each have a path of their own, which the row says (interpreter.ToolInput.RowPaths). Each path has its own manifests, as
// if a sink had written to it alone. What is staged stays together, below the path of the write, in the order of the paths: so a page is one
// object, and the rows of a path are one range of it.

// mostPaths bounds the paths of a write, and of a call or loop. Each costs some requests and has a file and a manifest, so a path of nearly
// every row, such as one by ID, would fill the store with objects of one row.
const mostPaths = 1000

// recordPath says how many of the rows of a record have a path.
type recordPath struct {
	Path  string `json:"path"`
	Rows  int    `json:"rows"`
	Bytes int64  `json:"bytes"` // of the rows
}

// rowsOfPath are the rows of a write with the same path.
type rowsOfPath struct {
	path string
	rows []any
}

// splitRows returns the rows of each path, sorted by path, and in their order.
func (w *objectWrite) splitRows() ([]rowsOfPath, error) {
	if len(w.paths) != len(w.rows) {
		return nil, tool.Errorf("write %s: there are %d rows, but %d paths", w.path, len(w.rows), len(w.paths))
	}
	at, shares := map[string]int{}, []rowsOfPath(nil)
	for i, row := range w.rows {
		share, known := at[w.paths[i]]
		if !known {
			if err := w.checkPath(i, w.paths[i]); err != nil {
				return nil, err
			}
			if share = len(shares); share == mostPaths {
				return nil, w.tooManyPaths(fmt.Sprintf("the rows of one write go to more than %d paths", mostPaths))
			}
			at[w.paths[i]], shares = share, append(shares, rowsOfPath{path: w.paths[i]})
		}
		shares[share].rows = append(shares[share].rows, row)
	}
	slices.SortFunc(shares, func(a, b rowsOfPath) int { return strings.Compare(a.path, b.path) })
	return shares, nil
}

// checkPath refuses the path of a row that is for the worker's own use.
func (w *objectWrite) checkPath(i int, rowPath string) error {
	for name := range strings.SplitSeq(rowPath, "/") {
		if name == manifestFolder || name == stagedFolder || private.InPath(name) {
			return tool.Errorf("write %s: row %d has the path %q, but the worker keeps its own files in %s", w.path, i+1, rowPath, name)
		}
	}
	return nil
}

// tooManyPaths returns the error of rows that have too many paths.
func (w *objectWrite) tooManyPaths(what string) error {
	return tool.Errorf("write %s: %s; each path has files and manifests of its own, so use a value in path that many rows share, such as the day instead of the time", w.path, what)
}

// pathWrite returns the write of the rows of one path.
func (t *Tool) pathWrite(in interpreter.ToolInput, w *objectWrite, rowPath string) (*objectWrite, error) {
	one := *w
	one.remote = &remote{bucket: w.bucket, at: w.at, key: path.Join(w.key, rowPath), path: path.Join(w.path, rowPath)}
	one.paths, one.rows, one.given, one.content, one.Note, one.rowPath = nil, nil, nil, nil, nil, rowPath
	return &one, t.fenceFolder(in, one.remote)
}

// pathsAtOnce is how many paths are written to at the same time. Each has a part of an upload or a row group in memory.
const pathsAtOnce = 4

// writePaths writes rows, each to its path. The rows of all paths are checked first. A write that is made again finds
// in each manifest whether its rows are there.
func (t *Tool) writePaths(ctx context.Context, in interpreter.ToolInput, w *objectWrite) (interpreter.ToolResult, error) {
	shares, err := w.splitRows()
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	writes := make([]*objectWrite, len(shares))
	written := make([]interpreter.ToolResult, len(shares))
	err = eachNumber(ctx, pathsAtOnce, 0, len(shares)-1, func(ctx context.Context, i int) error {
		one, err := t.pathWrite(in, w, shares[i].path)
		if err != nil {
			return err
		}
		one.rows, one.given, one.like, writes[i] = shares[i].rows, shares[i].rows, w.rows, one
		return one.checkContent(ctx)
	})
	if err == nil {
		err = w.checkMisfits(ctx, writes)
	}
	if err == nil {
		err = eachNumber(ctx, pathsAtOnce, 0, len(shares)-1, func(ctx context.Context, i int) error {
			result, number, err := t.writeNext(ctx, in, writes[i])
			if err != nil {
				return err
			}
			written[i] = result
			t.warnOfLeftovers(ctx, in, writes[i], t.removeLeftovers(ctx, writes[i].remote, number))
			return nil
		})
	}
	rows, meta := 0, interpreter.ToolMeta{}
	for _, one := range written {
		count, _ := expression.MapMember(one.Data.Data, "rows_written").(int)
		rows, meta.Rows, meta.LeftOut = rows+count, meta.Rows.Plus(one.Meta.Rows), meta.LeftOut.Plus(one.Meta.LeftOut)
	}
	result := w.pathsResult(rows, len(shares))
	result.Meta = meta
	return result, err
}

// checkContent finds what writing the rows of a path would fail for.
func (w *objectWrite) checkContent(ctx context.Context) error {
	last, err := w.lastManifest(ctx)
	if err != nil {
		return err
	}
	if _, done, err := w.lookUp(last); done || err != nil {
		return err
	}
	if err := w.checkFormat(last); err != nil {
		return err
	}
	if err := w.makeContent(last); err != nil {
		return w.formatError(err)
	}
	return nil
}

// pathsResult returns the result of a write to several paths.
func (w *objectWrite) pathsResult(rows, paths int) interpreter.ToolResult {
	return interpreter.ToolResult{Data: expression.Of(map[string]any{"path": w.path, "rows_written": rows, "paths": paths})}
}

// warnOfLeftovers logs that what earlier writes have left could not be removed, which harms nobody.
func (t *Tool) warnOfLeftovers(ctx context.Context, in interpreter.ToolInput, w *objectWrite, err error) {
	if err != nil && ctx.Err() == nil {
		tool.Logger(ctx, t.res.Logger, in).Warn("cannot remove what earlier writes left behind", "path", w.path, "error", err)
	}
}

// recordLines returns the rows of a record as JSON Lines, and their paths if each has its own.
func (w *objectWrite) recordLines() (lines []byte, paths []recordPath, err error) {
	if w.paths == nil {
		if lines, err = formatLines(w.rows); err != nil {
			err = w.formatError(err)
		}
		return lines, nil, err
	}
	shares, err := w.splitRows()
	if err != nil {
		return nil, nil, err
	}
	for _, share := range shares {
		some, err := formatLines(share.rows)
		if err != nil {
			return nil, nil, w.formatError(err)
		}
		lines = append(lines, some...)
		paths = append(paths, recordPath{Path: share.path, Rows: len(share.rows), Bytes: int64(len(some))})
	}
	return lines, paths, nil
}

// ofPath returns what the record has for a path; false if it has none.
func (r stagedRecord) ofPath(rowPath string) (stagedRecord, bool) {
	start := int64(0)
	for _, one := range r.Paths {
		if one.Path == rowPath {
			r.start, r.Bytes, r.Rows, r.path = r.start+start, one.Bytes, one.Rows, rowPath
			if r.content != nil {
				r.content = r.content[start : start+one.Bytes]
			}
			return r, true
		}
		start += one.Bytes
	}
	return r, false
}

// allPaths returns the paths of the rows of records, sorted.
func allPaths(records []stagedRecord) []string {
	var all []string
	for _, record := range records {
		all = append(all, lists.Map(record.Paths, func(one recordPath) string { return one.Path })...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
