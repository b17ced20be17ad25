package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
	"reprise/internal/test/testenv"
)

// notedPages reads pages of a step, or of elements; each page is written.
const notedPages = `
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/assessments"
    params: {page: 1, pageSize: 10}
    retry:
      - when: "{{ response.paging.hasMore }}"
        then:
          pages_per_activity: 8
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
          per_page: {sink: {SINK, args: "{{ map(result, {'id': .id, 'mark': 'page-data'}) }}"}}
    LOOP
output: ok
`

// TestNotesGoWithTheirCalls: what a ledger notes of a call is for the worker that
// takes over. Nothing of it stays when the call has ended.
func TestNotesGoWithTheirCalls(t *testing.T) {
	t.Parallel()
	loops := map[string]string{
		"a step": "", "children": `loop: {collection: [a, b, c], mode: parallel, batch: 1}`,
		"a batch": `loop: {collection: [a, b, c, d], mode: parallel, batch: 4}`, "in order": `loop: {collection: [a, b], batch: 2}`,
	}
	for name, sink := range map[string]string{
		"postgres insert": "tool: postgres, auth: pg, table: rows", "postgres upsert": "tool: postgres, auth: pg, table: keyed, mode: upsert, key: id",
		"sqlite": "tool: sqlite, path: rows.db, table: rows", "file": "tool: file, path: rows.jsonl",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.serve(demoapi.Options{Items: 300})
			w.work()
			db := w.database()
			db.Exec(t, "CREATE TABLE rows (id bigint, mark text); CREATE TABLE keyed (id bigint PRIMARY KEY, mark text)")
			w.completes(book("\n  - {step: create, tool: sqlite, path: rows.db, statement: 'CREATE TABLE rows (id bigint, mark text)'}\n"), nil)
			for shape, loop := range loops {
				w.ends("completed", book(strings.NewReplacer("SINK", sink, "LOOP", loop).Replace(notedPages)), nil)
				require.Zero(t, w.notes(db, sink), shape)
			}
		})
	}
}

// notes counts what a ledger has noted with the data of a page.
func (w *world) notes(db *testenv.Database, sink string) int {
	w.t.Helper()
	switch {
	case strings.Contains(sink, "postgres"):
		return len(w.rows(db, "SELECT * FROM reprise_notes"))
	case strings.Contains(sink, "sqlite"):
		rows := w.completes(book("\n  - {step: read, tool: sqlite, path: rows.db, statement: SELECT * FROM reprise_notes}\n"), nil)
		return len(rows.([]any))
	}
	journal, err := os.ReadFile(filepath.Join(w.dir, "rows.jsonl.reprise"))
	require.NoError(w.t, err)
	n := 0
	for line := range strings.Lines(string(journal)) {
		if words := strings.Fields(line); len(words) == 9 && strings.Trim(words[8], "-") != "" {
			n++
		}
	}
	return n
}

// TestNotesOfLostWorkers: entries of a worker that died are forgotten too. For a worker
// that was only frozen the ledger keeps that there was an entry, without its data.
func TestNotesOfLostWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve(demoapi.Options{Items: 600, Latency: 20 * time.Millisecond})
	db := w.database()
	db.Exec(t, "CREATE TABLE keyed (id bigint PRIMARY KEY, mark text)")
	worker := w.spawn()
	run := w.start(book(strings.NewReplacer("SINK", "tool: postgres, auth: pg, table: keyed, mode: upsert, key: id",
		"LOOP", "", "pages_per_activity: 8", "pages_per_activity: 100").Replace(notedPages)), nil)
	require.Eventually(t, func() bool { return len(w.rows(db, "SELECT id FROM keyed")) > 20 }, patience, tick)
	worker.Kill()
	w.spawn()
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	for _, row := range w.rows(db, "SELECT length(continuation) AS bytes FROM reprise_notes") {
		require.Equal(t, map[string]any{"bytes": 0}, row, fmt.Sprint(row))
	}
}
