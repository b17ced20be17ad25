package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// job is one that people have: a playbook of testdata/jobs against an API that behaves
// like the one it was written for. What it writes has to be what the API has.
type job struct {
	vendor  func(*vendor)
	column  string // that the rows are ordered by
	refused bool   // the API refuses requests, so that something was to be held out
	before  func(*world, *vendor)
	answers map[string]interpreter.Answer
	after   func(*testing.T, *world, *vendor, protocol.Result)
}

var jobs = map[string]job{
	"shop": {vendor: shop, column: "id", refused: true},
	"crm":  {vendor: crm, column: "id"},
	"ads":  {vendor: ads, column: "campaign_id"},
	"notes": {vendor: notes, column: "id", refused: true, after: func(t *testing.T, _ *world, _ *vendor, result protocol.Result) {
		require.EqualValues(t, 30, result.Result.Data)
	}},
	"payments": {vendor: payments, column: "id", before: func(w *world, _ *vendor) {
		w.secrets = append(w.secrets, "sk_test_4242")
		w.connected["payments"] = "bearer:sk_test_4242"
	}},
	"accounts": {vendor: accounts, column: "id", refused: true, before: func(w *world, v *vendor) {
		w.secrets = append(w.secrets, "rotating-secret", "rotating-token-")
		w.connected["bank"] = `{"oauth2": {"token_url": "` + v.url + `/oauth/token", "client_id": "reprise", "client_secret": "rotating-secret"}}`
	}},
	"stocks":  {vendor: stocks, column: "id", refused: true},
	"changes": {vendor: changes, column: "id", after: afterChanges},
	"graph":   {vendor: graph, column: "id", refused: true},
	"invoices": {
		vendor: invoices, column: "id",
		answers: map[string]interpreter.Answer{"release": {Verb: interpreter.AnswerComplete, Option: "approve", By: "ada"}},
		after: func(t *testing.T, _ *world, _ *vendor, result protocol.Result) {
			require.Equal(t, map[string]any{"by": "ada", "paid": "success"}, result.Result.Data)
		},
	},
}

func TestJobs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "jobs", "*.yaml"))
	require.NoError(t, err)
	require.Len(t, files, len(jobs))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			jobs[name].check(t, name, string(text))
		})
	}
}

func (j job) check(t *testing.T, table, source string) {
	t.Helper()
	w, v := newWorld(t), newVendor(t, j.vendor)
	if j.before != nil {
		j.before(w, v)
	}
	w.work()
	run := w.start(source, map[string]any{"api": v.url})
	for step, answer := range j.answers {
		answer.Step = step
		w.answers(run.GetID(), answer)
	}
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Empty(t, result.Warnings)
	asked, refused := v.requests()
	t.Logf("%d rows by %d requests, %d of them refused", len(v.rows), asked, refused)
	require.Equal(t, j.refused, refused > 0)
	w.holds(table, j.column, v)
	if j.after != nil {
		j.after(t, w, v, result)
	}
}

// holds checks that a table has the rows of an API, and no others.
func (w *world) holds(table, column string, v *vendor) {
	w.t.Helper()
	require.Equal(w.t, canonicalRows(w.t, sortedRows(v.rows, column)), sortedRows(w.query("SELECT * FROM "+table), column))
}

// afterChanges: the second run reads what has changed since the first, and the rows of
// the watermark's own time.
func afterChanges(t *testing.T, w *world, v *vendor, _ protocol.Result) {
	text, err := os.ReadFile(filepath.Join("testdata", "jobs", "changes.yaml"))
	require.NoError(t, err)
	v.mu.Lock()
	v.rows[4] = map[string]any{"id": 4, "updated_at": "2026-01-01T00:29:00Z"}
	for i := range 25 {
		v.add(map[string]any{"id": 90 + i, "updated_at": "2026-01-02T00:00:00Z"})
	}
	v.mu.Unlock()
	require.EqualValues(t, 3+1+25, w.completes(string(text), map[string]any{"api": v.url}))
	w.holds("changes", "id", v)
}
