package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// lakeIDs are the ids of the rows in the files of a path's last manifest, sorted, and how many files these are; nil without a manifest.
func (w *world) lakeIDs(path string) (ids []int, files int) {
	w.t.Helper()
	manifests, err := filepath.Glob(filepath.Join(w.dir, "lake", path, "_manifest", "*.json"))
	require.NoError(w.t, err)
	if len(manifests) == 0 {
		return nil, 0
	}
	content, err := os.ReadFile(slices.Max(manifests))
	require.NoError(w.t, err)
	var last struct{ Files []struct{ Path string } }
	require.NoError(w.t, json.Unmarshal(content, &last))
	for _, file := range last.Files {
		content, err := os.ReadFile(filepath.Join(w.dir, "lake", path, file.Path))
		require.NoError(w.t, err)
		if strings.HasSuffix(file.Path, ".zst") {
			reader, err := zstd.NewReader(nil)
			require.NoError(w.t, err)
			content, err = reader.DecodeAll(content, nil)
			require.NoError(w.t, err)
			reader.Close()
		}
		for line := range strings.Lines(string(content)) {
			var row struct{ ID int }
			require.NoError(w.t, json.Unmarshal([]byte(line), &row))
			ids = append(ids, row.ID)
		}
	}
	slices.Sort(ids)
	return ids, len(last.Files)
}

// numbers are those from one to another.
func numbers(from, to int) (all []int) {
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

// lakeWorld has a lake in its folder.
func lakeWorld(t *testing.T) *world {
	w := newWorld(t)
	w.connected["lake"] = "file:lake"
	w.work()
	return w
}

// TestLakesOfASourceThatFails: if the source of a loop fails and no iteration does, nothing can add the staged rows, and the warning says so.
func TestLakesOfASourceThatFails(t *testing.T) {
	t.Parallel()
	w := lakeWorld(t)
	run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/assessments"
    loop:
      source:
        tool: http
        url: "{{ api }}/api/v1/assessments"
        params: {page: 1, pageSize: 2}
        retry:
          - when: _retry.page == 1
            then: {next_call: {url: /status/409}, collect: {path: data}}
      element: a
      sink: {tool: file, auth: lake, path: raw/a, format: jsonl, args: {id: "{{ a.id }}"}}
`), nil)
	result := w.endsAs(run, interpreter.Failed)
	require.Equal(t, "SourceFailed", result.Error.Type)
	ids, _ := w.lakeIDs("raw/a")
	require.Empty(t, ids)
	warnings := strings.Join(result.Warnings, "\n")
	require.Contains(t, warnings, "no iteration failed, so reprocess cannot add the staged rows: run the playbook again")
	require.NotContains(t, warnings, "have run again")
}

// TestLakesOfALoop: the rows of a loop's iterations become one file at its end. A loop that fails publishes nothing, and a reprocess of what has failed
// publishes all of it, each row once.
func TestLakesOfALoop(t *testing.T) {
	t.Parallel()
	w := lakeWorld(t)
	source := book(`
  - step: fetch
    tool: http
    url: "{{ api }}{{ n in broken ? '/status/409' : '/api/v1/assessments' }}"
    params: {page: "{{ n }}", pageSize: 10}
    loop:
      collection: [1, 2, 3, 4]
      element: n
      mode: parallel
      sink: {tool: file, auth: lake, path: raw/a, format: jsonl, args: "{{ result.data }}"}
`)
	run := w.start(source, map[string]any{"broken": []any{1, 2, 4}})
	result := w.endsAs(run, interpreter.Failed)
	ids, _ := w.lakeIDs("raw/a")
	require.Empty(t, ids)
	require.Contains(t, strings.Join(result.Warnings, "\n"), "nothing was added to its path")
	w.endsAs(w.reprocess(run, w.chain(run).Letters, "", map[string]any{"broken": []any{4}}), interpreter.Partial)
	ids, _ = w.lakeIDs("raw/a")
	require.Equal(t, numbers(1, 30), ids)
	w.endsAs(w.reprocess(run, w.chain(run).Letters, "", map[string]any{"broken": []any{}}), interpreter.Completed)
	ids, files := w.lakeIDs("raw/a")
	require.Equal(t, numbers(1, 35), ids)
	require.Equal(t, 2, files)
	w.completes(source, map[string]any{"broken": []any{}})
	ids, files = w.lakeIDs("raw/a")
	require.Len(t, ids, 70)
	require.Equal(t, 3, files)
}

// TestLakesOfPages: the pages of a call replace the rows of a path at once, and only where all of them were read.
func TestLakesOfPages(t *testing.T) {
	t.Parallel()
	w := lakeWorld(t)
	source := func(attempts string) string {
		return book(`
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: "{{ first }}", pageSize: 10}
    retry:
      - when: "{{ response.paging.hasMore }}"
        then:
          max_attempts: ` + attempts + `
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
          per_page:
            sink: {tool: file, auth: lake, path: raw/a, format: jsonl, compression: zstd, mode: overwrite}
`)
	}
	w.completes(source("10"), map[string]any{"first": 3})
	ids, files := w.lakeIDs("raw/a")
	require.Equal(t, numbers(21, 35), ids)
	require.Equal(t, 1, files)
	result := w.ends("partial_success", source("2"), map[string]any{"first": 1})
	require.Contains(t, strings.Join(result.Warnings, "\n"), "not everything was read, so its path keeps its previous rows")
	ids, _ = w.lakeIDs("raw/a")
	require.Equal(t, numbers(21, 35), ids)
	w.completes(source("10"), map[string]any{"first": 1})
	ids, files = w.lakeIDs("raw/a")
	require.Equal(t, numbers(1, 35), ids)
	require.Equal(t, 1, files)
}

// TestLakesRejectRows: rows of a loop that do not fit the columns are published with the others, in a folder of their own, and counted.
func TestLakesRejectRows(t *testing.T) {
	t.Parallel()
	w := lakeWorld(t)
	result := w.endsAs(w.start(book(`
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: "{{ n }}", pageSize: 10}
    loop:
      collection: [1, 2]
      element: n
      mode: parallel
      sink:
        tool: file
        auth: lake
        path: raw/a
        format: csv
        columns: [id, name]
        args: "{{ map(result.data, int(#.id) % 10 == 3 ? {'id': #.id, 'more': true} : {'id': #.id}) }}"
        rejected: {path: raw/refused, max: 2}
`), nil), interpreter.Completed)
	require.Equal(t, []int64{18, 2}, []int64{result.Rows.Totals().Written, result.Rows.Totals().Rejected})
	require.Contains(t, strings.Join(result.Warnings, "\n"), "2 rows were rejected and written to the target of rejected")
	ids, files := w.lakeIDs("raw/refused")
	require.Len(t, ids, 2)
	require.Equal(t, 1, files)
}

// TestLakesByRow: the rows of iterations, one of which is in a later run, and of a transfer go to the path of each, once.
func TestLakesByRow(t *testing.T) {
	t.Parallel()
	w := lakeWorld(t)
	source := book(`
  - step: fetch
    tool: http
    url: "{{ api }}{{ n in broken ? '/status/409' : '/api/v1/assessments' }}"
    params: {page: "{{ n }}", pageSize: 10}
    loop:
      collection: [1, 2, 3, 4]
      element: n
      mode: parallel
      sink:
        tool: file
        auth: lake
        path: "raw/{{ run.playbook }}/page={{ n }}-{{ row.of }}/"
        format: jsonl
        args: "{{ result.data }}"
        fields: {of: "{{ int(row.id) % 2 == 0 ? 'even/2' : 'odd' }}"}
    next: move
  - step: move
    tool: transfer
    from: {tool: http, url: "{{ api }}/api/v1/assessments", params: {pageSize: 100}, rows: data}
    to: {tool: file, auth: lake, path: "moved/{{ row.id < 30 ? 'first' : 'last' }}", format: jsonl, mode: overwrite}
`)
	run := w.start(source, map[string]any{"broken": []any{2}})
	w.endsAs(run, interpreter.Partial)
	ids := func(path string) []int {
		folders, err := filepath.Glob(filepath.Join(w.dir, "lake", path))
		require.NoError(t, err)
		var all []int
		for _, folder := range folders {
			inside, err := filepath.Rel(filepath.Join(w.dir, "lake"), folder)
			require.NoError(t, err)
			some, _ := w.lakeIDs(inside)
			all = append(all, some...)
		}
		slices.Sort(all)
		return all
	}
	require.Equal(t, append(numbers(1, 10), numbers(21, 35)...), ids("raw/*/page=*"))
	w.endsAs(w.reprocess(run, w.chain(run).Letters, "", map[string]any{"broken": []any{}}), interpreter.Completed)
	require.Equal(t, numbers(1, 35), ids("raw/*/page=*"))
	require.Equal(t, []int{12, 14, 16, 18, 20}, ids("raw/*/page=2-even%2F2"))
	w.completes(source, map[string]any{"broken": []any{}})
	require.Len(t, ids("raw/*/page=*"), 70)
	require.Equal(t, numbers(1, 29), ids("moved/first"))
	require.Equal(t, numbers(30, 35), ids("moved/last"))
}
