package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
	"reprise/interpreter/playbook"
)

// TestTableSinksOutliveTheirDatabase: a database that is away for some seconds fails no load, wherever the sink is.
func TestTableSinksOutliveTheirDatabase(t *testing.T) {
	t.Parallel()
	const page = `
  - step: fetch
    tool: http
    url: "{{ source }}/x"
    params: {page: 1}
    LOOP
    retry:
      - when: "{{ response.more }}"
        then: {next_call: {params: {page: "{{ _retry.page + 1 }}"}}, PAGE collect: {path: rows}}
    STEP`
	const to = "tool: postgres, auth: pg, table: rows"
	for name, of := range map[string]struct {
		loop, page, step string
		rows             int
	}{
		"step":      {step: "sink: {" + to + "}", rows: 15},
		"page":      {page: "per_page: {sink: {" + to + "}},", rows: 15},
		"iteration": {loop: "loop: {collection: [1, 2], batch: 1, mode: parallel, sink: {" + to + "}}", rows: 30},
		"batch":     {loop: "loop: {collection: [1, 2, 3], batch: 3, mode: parallel, sink: {" + to + "}}", rows: 45},
		"loop":      {loop: "loop: {collection: [1, 2]}", step: "sink: {" + to + `, args: "{{ flatten(result.results) }}"}`, rows: 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			database := testenv.PostgresServer(t)
			w.connected["pg"] = database.URL
			w.work()
			database.Exec(t, "CREATE TABLE rows (of text, id bigint, n bigint)")
			database.Stop(t)
			text := strings.NewReplacer("LOOP", of.loop, "PAGE", of.page, "STEP", of.step).Replace(page)
			run := w.start(book(text), map[string]any{"source": pagesWithBadRows(t)})
			require.Eventually(t, func() bool { return w.failedWrites(run) > 0 }, patience, tick, "no write failed")
			database.Start(t)
			w.endsAs(run, "completed")
			require.EqualValues(t, of.rows, database.Query(t, "SELECT count(*) AS n FROM rows")[0]["n"])
		})
	}
}

// failedWrites is how many attempts of sinks have failed so far.
func (w *world) failedWrites(run client.WorkflowRun) (failed int) {
	w.t.Helper()
	reader := &runs.Reader{Client: w.env.Client(), Store: w.store, Namespace: w.env.Namespace}
	found, err := reader.Find(w.t.Context(), run.GetID(), run.GetRunID())
	require.NoError(w.t, err)
	_, err = reader.Events(w.t.Context(), found, runs.EventFilter{Attempts: true}, func(event runs.Event) error {
		if event.Event == runs.ActionError && event.Sink != "" {
			failed++
		}
		return nil
	})
	require.NoError(w.t, err)
	return failed
}

// TestTableSinksGiveUp: a database that never returns fails the load after some attempts, of which the message says how
// many; retry: false is none but the first, and a retry of the sink decides alone.
func TestTableSinksGiveUp(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		retry, message string
		attempts       int
	}{
		"default": {"", "(given up after 5 attempts: max_attempts reached; to change that, add retry to the sink)", playbook.TableAttempts},
		"none":    {", retry: false", "", 1},
		"own":     {`, retry: [{when: "{{ error.class == 'retryable' }}", then: {max_attempts: 2, delay: 20ms}}]`, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.resources.Limits = playbook.Limits{MaxRetries: playbook.DefaultMaxRetriesLimit, MaxDelay: 50 * time.Millisecond}
			w.connected["pg"] = "postgres://nobody@127.0.0.1:1/none?sslmode=disable&connect_timeout=2"
			w.work()
			run := w.start(book(`
  - step: fetch
    tool: http
    url: "{{ source }}/x"
    sink: {tool: postgres, auth: pg, table: rows, args: "{{ result.rows }}"`+of.retry+"}"), map[string]any{"source": pagesWithBadRows(t)})
			result := w.endsAs(run, "failed")
			require.Contains(t, result.Error.Message, of.message)
			require.Equal(t, of.message != "", strings.Contains(result.Error.Message, "given up"))
			require.Equal(t, of.attempts, w.failedWrites(run))
		})
	}
}
