package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
	"reprise/internal/test/testenv/testworker"
)

// sharded is a source whose rows change between runs, in pages of two. Each of its shards has rows of its own.
type sharded struct {
	*httptest.Server
	mu   sync.Mutex
	rows map[string][]any // by shard
	// answers are taken in order in place of those of a page: by shard and offset.
	answers map[string][]int
	// before is run before each answer, with how many there were; nil for nothing.
	before func(n int)
	given  int
}

func newSharded(t *testing.T) *sharded {
	s := &sharded{rows: map[string][]any{}, answers: map[string][]int{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *sharded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given++; s.before != nil {
		s.before(s.given)
	}
	shard, offset := r.URL.Query().Get("shard"), r.URL.Query().Get("offset")
	if key := shard + "@" + offset; len(s.answers[key]) > 0 {
		status := s.answers[key][0]
		s.answers[key] = s.answers[key][1:]
		if status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
	}
	from, _ := strconv.Atoi(offset)
	rows := s.rows[shard]
	end := min(from+2, len(rows))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"rows": append([]any{}, rows[min(from, end):end]...), "more": end < len(rows)})
}

// setRows sets the rows of a shard: IDs with a value.
func (s *sharded) setRows(shard string, values map[int]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[shard] = nil
	for id := range 100 {
		if value, has := values[id]; has {
			s.rows[shard] = append(s.rows[shard], map[string]any{"id": id, "shard": shard, "value": value})
		}
	}
}

// setAnswers has a page answered with these statuses before it is answered.
func (s *sharded) setAnswers(page string, statuses ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[page] = statuses
}

// refresh reads all rows of a source into a table. SINK and LOOP are replaced.
const refresh = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: refresh}
workload: {shelf: "", shards: [a]}
workflow:
  - step: fetch
    tool: http
    url: "{{ shelf }}/rows"
    params: {shard: SHARD, offset: 0}
    LOOP
    retry:
      - when: "{{ error.status == 410 }}"
        then: {restart: true, initial_delay: 10ms}
      - when: "{{ error.status == 404 }}"
        then: {ignore: true}
      - when: "{{ error.status == 503 }}"
        then: {max_attempts: 2, initial_delay: 10ms}
      - when: "{{ response.more }}"
        then:
          max_attempts: 100
          next_call: {params: {offset: "{{ 2 * _retry.page }}"}}
          collect: {path: rows}
          per_iteration: {sink: {SINK}}
`

func refreshing(loop, sink string) string {
	shard := "a"
	if loop != "" {
		shard = `"{{ shard }}"`
	}
	return strings.NewReplacer("SINK", sink, "LOOP", loop, "SHARD", shard).Replace(refresh)
}

// refreshed is a world with such a source and a table with rows of before.
type refreshed struct {
	*world
	*sharded
	db *testenv.Database
}

func newRefreshed(t *testing.T) *refreshed {
	w := newWorld(t)
	r := &refreshed{world: w, sharded: newSharded(t), db: w.database()}
	r.replays = 1
	w.work()
	r.db.Exec(t, "CREATE TABLE things (id bigint PRIMARY KEY, shard text, value text)")
	return r
}

// table is what the table has.
func (r *refreshed) table() map[int]string {
	rows := map[int]string{}
	for _, row := range r.db.Query(r.t, "SELECT id, value FROM things ORDER BY id") {
		rows[int(row["id"].(int64))] = row["value"].(string)
	}
	return rows
}

// leftBeside counts the tables with staged rows.
func (r *refreshed) leftBeside() int {
	return len(r.db.Query(r.t, `SELECT relname FROM pg_class WHERE relname LIKE 'reprise_staging\_%' AND relkind = 'r'`))
}

// TestReplaceOfACall: the rows of a call that has read all take the place of those that are there; those of any other leave them.
func TestReplaceOfACall(t *testing.T) {
	t.Parallel()
	r := newRefreshed(t)
	const replaces = "tool: postgres, auth: pg, table: things, key: id, mode: replace"
	workload := map[string]any{"shelf": r.URL}
	run := func(status, sink string) (warnings string, failure string) {
		t.Helper()
		result := r.ends(status, refreshing("", sink), workload)
		if result.Error != nil {
			failure = result.Error.Type + ": " + result.Error.Message
		}
		return strings.Join(result.Warnings, "\n"), failure
	}
	first := map[int]string{1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}
	r.setRows("a", first)
	run("completed", replaces)
	require.Equal(t, first, r.table())
	second := map[int]string{2: "two", 3: "drei", 5: "five", 6: "six", 7: "seven"}
	r.setRows("a", second)
	r.setAnswers("a@4", 500)
	run("failed", replaces)
	require.Equal(t, first, r.table(), "a page failed")
	r.setAnswers("a@0", 404)
	warnings, _ := run("completed", replaces)
	require.Contains(t, warnings, "not everything was read")
	require.Equal(t, first, r.table(), "a failure was ignored")
	result := r.ends("partial_success", strings.Replace(refreshing("", replaces), "max_attempts: 100", "max_attempts: 2", 1), workload)
	require.Contains(t, strings.Join(result.Warnings, "\n"), "not everything was read")
	require.Equal(t, first, r.table(), "the call was truncated")
	require.Equal(t, 2, r.leftBeside())
	r.setAnswers("a@4", 410) // what was read before the restart is not among the rows
	r.setAnswers("a@2", 200, 503)
	run("completed", replaces)
	require.Equal(t, second, r.table())
	r.setRows("a", nil)
	_, failure := run("failed", replaces)
	require.Contains(t, failure, "empty_replace")
	require.Equal(t, second, r.table())
	run("completed", replaces+", allow_empty: true")
	require.Empty(t, r.table())
}

// TestReplaceOfALoop: the rows of all iterations take the place of those that are there, once each has read all.
func TestReplaceOfALoop(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{"children": "batch: 1", "batch": "batch: 4, mode: sequential"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testReplaceOfALoop(t, words)
		})
	}
}

func testReplaceOfALoop(t *testing.T, words string) {
	r := newRefreshed(t)
	if !strings.Contains(words, "mode") {
		words += ", mode: parallel, max_concurrency: 3"
	}
	playbook := refreshing(`loop: {collection: "{{ shards }}", element: shard, `+words+`}`, "tool: postgres, auth: pg, table: things, mode: replace")
	shards := []any{"a", "b", "c", "d", "e"}
	want := func(value string, rows int) map[int]string {
		all := map[int]string{}
		for i, shard := range shards {
			own := map[int]string{}
			for n := range rows {
				own[10*i+n], all[10*i+n] = fmt.Sprint(value, n), fmt.Sprint(value, n)
			}
			r.setRows(shard.(string), own)
		}
		return all
	}
	workload := map[string]any{"shelf": r.URL, "shards": shards}
	first := want("first", 3)
	r.ends("completed", playbook, workload)
	require.Equal(t, first, r.table())
	second := want("second", 5)
	r.setAnswers("c@4", 500)
	result := r.ends("partial_success", playbook, workload)
	require.Contains(t, strings.Join(result.Warnings, "\n"), "not everything was read")
	require.Equal(t, first, r.table(), "an iteration failed")
	r.setAnswers("c@0", 404)
	result = r.ends("completed", playbook, workload)
	require.Contains(t, strings.Join(result.Warnings, "\n"), "not everything was read")
	require.Equal(t, first, r.table(), "an iteration ignored a failure")
	r.setAnswers("c@4", 410)
	r.setAnswers("d@2", 410)
	r.ends("completed", playbook, workload)
	require.Equal(t, second, r.table(), "two iterations began anew")
	workload["shards"] = []any{}
	require.Equal(t, "empty_replace", r.ends("failed", playbook, workload).Error.Type)
	require.Equal(t, second, r.table(), "there was no iteration")
}

// TestDeleteMissing: what a full read has not met is deleted, by a sink of a call, of iterations, and on the step of a loop.
func TestDeleteMissing(t *testing.T) {
	t.Parallel()
	r := newRefreshed(t)
	const deletes = "tool: postgres, auth: pg, table: things, key: id, mode: upsert, delete_missing: true, max_delete: 0.5"
	workload := map[string]any{"shelf": r.URL, "shards": []any{"a", "b"}}
	r.setRows("a", map[int]string{1: "one", 2: "two", 3: "three"})
	r.setRows("b", map[int]string{11: "eleven"})
	loop := `loop: {collection: "{{ shards }}", element: shard}`
	r.ends("completed", refreshing(loop, deletes), workload)
	require.Equal(t, map[int]string{1: "one", 2: "two", 3: "three", 11: "eleven"}, r.table())
	r.setRows("a", map[int]string{1: "eins", 3: "three"})
	r.ends("completed", refreshing(loop, deletes), workload)
	require.Equal(t, map[int]string{1: "eins", 3: "three", 11: "eleven"}, r.table())
	result := r.ends("failed", strings.Replace(refreshing("", deletes), "shard: a", "shard: b", 1), workload)
	require.Equal(t, "max_delete", result.Error.Type)
	require.Equal(t, map[int]string{1: "eins", 3: "three", 11: "eleven"}, r.table())
	onStep := strings.Replace(refreshing(loop, "tool: postgres, auth: pg, table: log, key: id, mode: upsert"), "params:",
		"sink: {"+deletes+", args: \"{{ flatten(result.results) }}\"}\n    params:", 1)
	r.db.Exec(t, "CREATE TABLE log (id bigint PRIMARY KEY, shard text, value text)")
	r.setRows("a", map[int]string{3: "three"})
	r.ends("completed", onStep, workload)
	require.Equal(t, map[int]string{3: "three", 11: "eleven"}, r.table())
}

// TestDeleteMissingNeedsAFullRead: a read that failed, ended early, ignored an error or gave nothing deletes nothing.
func TestDeleteMissingNeedsAFullRead(t *testing.T) {
	t.Parallel()
	r := newRefreshed(t)
	playbook := refreshing("", "tool: postgres, auth: pg, table: things, key: id, mode: upsert, delete_missing: true, max_delete: 1")
	workload := map[string]any{"shelf": r.URL}
	all := map[int]string{1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}
	r.setRows("a", all)
	r.ends("completed", playbook, workload)
	require.Equal(t, all, r.table())
	left := map[int]string{1: "one", 3: "three", 5: "five"}
	for _, test := range []struct {
		name, status, playbook string
		page                   string
		answer                 int
		warns                  bool
	}{
		{"a page failed", "failed", playbook, "a@2", 500, false},
		{"a failure was ignored", "completed", playbook, "a@0", 404, true},
		{"pages are left", "partial_success", strings.Replace(playbook, "max_attempts: 100", "max_attempts: 1", 1), "a@2", 200, true},
	} {
		r.setRows("a", left)
		r.setAnswers(test.page, test.answer)
		result := r.ends(test.status, test.playbook, workload)
		require.Equal(t, test.warns, strings.Contains(strings.Join(result.Warnings, "\n"), "not everything was read"), test.name)
		require.Equal(t, all, r.table(), test.name)
		r.setAnswers(test.page)
	}
	r.setRows("a", nil)
	require.Equal(t, "empty_replace", r.ends("failed", playbook, workload).Error.Type)
	require.Equal(t, all, r.table(), "there were no rows")
	r.setRows("a", left)
	r.ends("completed", playbook, workload)
	require.Equal(t, left, r.table())
}

// TestReplaceSurvivesKills: whatever a worker has staged when it is killed, with what is below it, is published once, with the rest.
func TestReplaceSurvivesKills(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := &refreshed{world: w, sharded: newSharded(t), db: w.database()}
	r.replays = 1
	r.db.Exec(t, "CREATE TABLE things (id bigint, shard text, value text)")
	shards, want := []any{}, map[int]string{}
	for i := range 8 {
		shard, own := fmt.Sprint("s", i), map[int]string{}
		for n := range 7 {
			own[10*i+n], want[10*i+n] = fmt.Sprint("v", n), fmt.Sprint("v", n)
		}
		r.setRows(shard, own)
		shards = append(shards, shard)
	}
	r.db.Exec(t, "INSERT INTO things VALUES (1000, 'z', 'of before')")
	r.db.Exec(t, "CREATE TABLE parts (thing bigint, part bigint)")
	r.db.Exec(t, "INSERT INTO parts VALUES (1000, 1)")
	process := make(chan *testworker.Process, 1)
	process <- r.spawn()
	killed := make(chan struct{}, 2)
	r.before = func(n int) {
		if n == 9 || n == 23 {
			worker := <-process
			worker.Kill()
			killed <- struct{}{}
		}
	}
	playbook := refreshing(`loop: {collection: "{{ shards }}", element: shard, mode: parallel, max_concurrency: 3, batch: 4}`,
		"tool: postgres, auth: pg, table: things, mode: replace, fields: {parts: \"{{ [{'part': 1}, {'part': 2}] }}\"}, children: {parts: {table: parts, with: {thing: id}}}")
	run := r.start(playbook, map[string]any{"shelf": r.URL, "shards": shards})
	for range 2 {
		testenv.Receive(t, killed, "the request at which the worker is killed")
		require.Equal(t, map[int]string{1000: "of before"}, r.table())
		require.Len(t, r.db.Query(t, "SELECT 1 FROM parts"), 1)
		process <- r.spawn()
	}
	result := r.endsAs(run, "completed")
	require.Empty(t, result.Warnings)
	require.Equal(t, want, r.table())
	require.Len(t, r.db.Query(t, "SELECT 1 FROM things"), len(want))
	require.Len(t, r.db.Query(t, "SELECT thing FROM parts JOIN things ON thing = id GROUP BY thing HAVING count(*) = 2 AND sum(part) = 3"), len(want))
	require.Len(t, r.db.Query(t, "SELECT 1 FROM parts"), 2*len(want))
	require.Zero(t, r.leftBeside())
}
