package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/deadletter"
	"reprise/internal/testenv"
)

// steps of a playbook that reads, writes a row and posts, and then ends, which fails
// for the elements in broken and takes a minute for those in slow.
const writesAndEnds = `
      - step: read
        tool: http
        url: "{{ api }}/echo"
        params: {read: "{{ n }}"}
        next: write
      - step: write
        tool: http
        url: "{{ api }}/echo"
        params: {write: "{{ n }}"}
        sink: {tool: postgres, auth: pg, table: done, args: {n: "{{ read.query.read[0] | int }}"}}
        next: post
      - step: post
        tool: http
        method: POST
        url: "{{ api }}/api/v1/writes"
        body: {n: "{{ n }}"}
        next: finish
      - step: finish
        tool: http
        timeout: 90s
        url: "{{ api }}{{ '/status/404' if n in broken else '/slow?ms=60000' if n in slow else '/echo?last=1' }}"
`

// handed is what the playbooks of a loop are handed.
const handed = `workload: {n: "{{ n }}", broken: "{{ workload.broken }}", slow: "{{ workload.slow }}", api: "{{ workload.api }}"}`

// eachWrites runs them for each element.
func eachWrites(loop string) string {
	return fmt.Sprintf(`
  - step: each
    tool: playbook
    loop:
      in: "{{ 0..2 }}"
      iterator: n
      %s
    %s
    workflow:%s
workload: {broken: [], slow: []}
`, loop, handed, writesAndEnds)
}

// eachNested runs them two levels down.
func eachNested(loop string) string {
	return fmt.Sprintf(`
  - step: each
    tool: playbook
    loop:
      in: ["{{ 0..1 }}", [2]]
      iterator: ns
      %s
    workload: {ns: "{{ ns }}", broken: "{{ workload.broken }}", slow: "{{ workload.slow }}", api: "{{ workload.api }}"}
    workflow:
      - step: through
        tool: playbook
        workload: {ns: "{{ ns }}", broken: "{{ broken }}", slow: "{{ slow }}", api: "{{ api }}"}
        workflow:
          - step: inner
            tool: playbook
            loop: {in: "{{ ns }}", iterator: n, mode: parallel, thresholds: {completed: 1, partial_success: 1}}
            workload: {n: "{{ n }}", broken: "{{ broken }}", slow: "{{ slow }}", api: "{{ api }}"}
            workflow:%s
workload: {broken: [], slow: []}
`, loop, strings.ReplaceAll(writesAndEnds, "\n      ", "\n              "))
}

// writing is a loop of playbooks of which something is left undone.
type writing struct {
	*world
	db *testenv.Database
}

func newWriting(t *testing.T) *writing {
	t.Helper()
	w := newWorld(t)
	w.replays = 1
	db := w.database()
	w.work()
	db.Exec(t, "CREATE TABLE done (n int)")
	return &writing{world: w, db: db}
}

// requireOnce checks that each of three elements was written once, and that every
// call that has ended well was made once.
func (w *writing) requireOnce() {
	w.t.Helper()
	require.Equal(w.t, []any{
		map[string]any{"n": 0, "rows": 1}, map[string]any{"n": 1, "rows": 1}, map[string]any{"n": 2, "rows": 1},
	}, w.rows(w.db, "SELECT n, count(*) AS rows FROM done GROUP BY n ORDER BY n"))
	made := map[string]int{}
	for _, request := range w.api.Requests("") {
		if request.Path == "/echo" || request.Path == "/api/v1/writes" {
			made[strings.TrimSpace(request.Path+" "+request.Query)]++
		}
	}
	want := map[string]int{"/echo last=1": 3, "/api/v1/writes": 3}
	for n := range 3 {
		want[fmt.Sprintf("/echo read=%d", n)] = 1
		want[fmt.Sprintf("/echo write=%d", n)] = 1
	}
	require.Equal(w.t, want, made)
	require.ElementsMatch(w.t, []any{map[string]any{"n": 0}, map[string]any{"n": 1}, map[string]any{"n": 2}}, w.bodies())
}

// resolve runs again what is left of a run.
func (w *writing) resolve(run client.WorkflowRun, filter deadletter.Filter, workload map[string]any) {
	w.t.Helper()
	again := w.reprocess(run, w.chain(run).Select(filter), "", workload)
	result, err := w.outcome(again)
	require.NoError(w.t, err)
	require.EqualValues(w.t, "completed", result.Status, "%+v", result.Error)
	require.Empty(w.t, w.chain(run).Select(deadletter.Filter{Cancelled: true}))
}

var playbookShapes = map[string]string{
	"one at a time":        eachWrites("mode: sequential"),
	"together":             eachWrites("mode: parallel"),
	"in batches":           eachWrites("mode: parallel\n      batch: 2"),
	"in a batch":           eachWrites("batch: 3"),
	"two down":             eachNested("mode: parallel"),
	"two down, in a batch": eachNested("batch: 2"),
}

// TestReprocessOfPlaybooks: a playbook that a loop runs for an element goes on where
// its first run failed.
func TestReprocessOfPlaybooks(t *testing.T) {
	t.Parallel()
	for name, source := range playbookShapes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWriting(t)
			run := w.start(book(source), map[string]any{"broken": []any{0, 1, 2}})
			_, err := w.outcome(run)
			require.NoError(t, err)
			w.resolve(run, deadletter.Filter{}, map[string]any{"broken": []any{}})
			w.requireOnce()
		})
	}
}
