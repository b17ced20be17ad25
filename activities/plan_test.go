package activities_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"reprise/activities"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
)

// plans has a worker plan a playbook.
func plans(t *testing.T, resources activities.Resources, source string, sample bool) interpreter.PlanAnswer {
	t.Helper()
	catalogue := activities.NewCatalogue(resources)
	t.Cleanup(func() { _ = catalogue.Close() })
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(activities.ServiceActivities(catalogue)[interpreter.PlanActivity], activity.RegisterOptions{Name: interpreter.PlanActivity})
	book, err := interpreter.LoadPlaybook("plan.yaml", source)
	require.NoError(t, err)
	empty := expression.Of(map[string]any{})
	value, err := env.ExecuteActivity(interpreter.PlanActivity, call.PlanInput{
		Task: call.Task{Name: "plan.yaml", Run: interpreter.RunInfo{WorkflowID: "plan", Playbook: book.Name}, Data: interpreter.Data{
			Workload: expression.Of(book.Workload), Vars: empty, Steps: empty,
		}},
		Script: call.Script{Source: source}, Sample: sample,
	})
	require.NoError(t, err)
	var answer interpreter.PlanAnswer
	require.NoError(t, value.Get(&answer))
	require.Empty(t, answer.Problems)
	return answer
}

// TestSampleRequestsOnce: of each step that a plan can request, the first request is made once, by GET, and nothing of
// it is written. No secret of a connection is in the plan, whatever servers say of it.
func TestSampleRequestsOnce(t *testing.T) {
	t.Parallel()
	const token, password = "tok-Zx81kq77", "pw-Gh45tt91"
	var (
		mutex sync.Mutex
		heard []string
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		heard = append(heard, r.Method+" "+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"more": true, "rows": []any{map[string]any{"id": 1, "of " + token: "x"}}})
	}))
	defer server.Close()
	folder := t.TempDir()
	resources := activities.Resources{Directory: folder, Connections: activities.Connections{
		"api": "bearer:" + token, "away": "postgres://ana:" + password + "@127.0.0.1:1/rows?connect_timeout=1",
	}}
	source := strings.NewReplacer("URL", server.URL, "TOKEN", token).Replace(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: sampled}
workload: {api: URL, names: [a, b]}
workflow:
  - step: fetch
    tool: http
    auth: api
    url: "{{ api }}/pages"
    params: {token: TOKEN}
    retry:
      - when: "{{ response.more }}"
        then:
          max_attempts: 5
          next_call: {params: {page: "{{ _retry.page }}"}}
          collect: {path: rows}
          per_iteration:
            sink: {tool: sqlite, path: pages.db, table: pages, schema_contract: evolve}
    sink: {tool: postgres, auth: away, table: all, schema_contract: evolve}
    next: each
  - step: each
    tool: http
    url: "{{ api }}/each/{{ name }}"
    loop: {collection: "{{ names }}", element: name}
    next: later
  - {step: later, tool: http, url: "{{ api }}/later/{{ len(fetch) }}", next: post}
  - {step: post, tool: http, method: POST, url: "{{ api }}/post", next: hidden}
  - {step: hidden, tool: http, url: "{{ api }}/hidden", secret: true}
`)
	answer := plans(t, resources, source, false)
	require.Empty(t, heard, "no request without a sample")
	require.Len(t, answer.Steps, 5)
	require.Equal(t, "GET "+server.URL+"/each/a", answer.Steps[1].Request)
	require.Equal(t, "depends on the result of step fetch", answer.Steps[2].Unknown)
	answer = plans(t, resources, source, true)
	require.Equal(t, []string{"GET /pages", "GET /each/a"}, heard)
	pages := answer.Steps[0]
	require.True(t, pages.Sampled)
	require.Equal(t, "GET "+server.URL+"/pages?token=***", pages.Request)
	require.Equal(t, []interpreter.DDL{{Kind: interpreter.CreateTable, Statement: `CREATE TABLE IF NOT EXISTS "pages" ("id" bigint, "of ***" text)`}}, pages.Sinks[0].Table.DDL)
	require.Contains(t, pages.Sinks[1].Problem, "connect")
	require.Equal(t, "the request depends on the result of step fetch", answer.Steps[2].Unsampled)
	require.Equal(t, "for a sample, only GET requests of tool http are made", answer.Steps[3].Unsampled)
	require.Equal(t, "the result of the step is secret", answer.Steps[4].Unsampled)
	encoded, err := json.Marshal(answer)
	require.NoError(t, err)
	require.NotContains(t, string(encoded), token)
	require.NotContains(t, string(encoded), password)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// TestPlansFollowPlaybooks passes mostPlannedRuns: a plan of playbooks that run each other ends, and says where.
func TestPlansFollowPlaybooks(t *testing.T) {
	t.Parallel()
	const mostPlannedRuns = 4
	folder := t.TempDir()
	for i := range 8 {
		text := fmt.Sprintf("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: p%d}\nworkflow:\n  - step: below\n    tool: playbook\n    name: p%d\n", i, i+1)
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("p%d.yaml", i)), []byte(text), 0o600))
	}
	last := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: p8}\nworkflow:\n  - step: get\n    tool: http\n    url: http://x\n"
	require.NoError(t, os.WriteFile(filepath.Join(folder, "p8.yaml"), []byte(last), 0o600))
	first, err := os.ReadFile(filepath.Join(folder, "p0.yaml"))
	require.NoError(t, err)
	steps := plans(t, activities.Resources{Playbooks: folder}, string(first), false).Steps
	require.Len(t, steps, 1+mostPlannedRuns)
	require.Equal(t, "the plan follows playbooks no deeper than here", steps[mostPlannedRuns].Unknown)
	require.Empty(t, steps[mostPlannedRuns-1].Unknown)
}

// TestPlansAreBounded passes mostElements, maxTarget and mostPlannedStates.
func TestPlansAreBounded(t *testing.T) {
	t.Parallel()
	const mostElements, maxTarget, mostPlannedStates = 3, 200, 20
	require.Len(t, activities.FirstStates(make([]incremental.State, mostPlannedStates+1)), mostPlannedStates)
	answer := plans(t, activities.Resources{Directory: t.TempDir()}, "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: p}\nworkflow:\n"+
		"  - step: each\n    loop: {collection: [1, 2, 3, 4, 5], iterator: n}\n    tool: http\n    url: http://x\n"+
		"    sink: {tool: file, path: "+strings.Repeat("long/", maxTarget/5)+"x.jsonl, args: \"{{ result }}\"}\n", false)
	each := answer.Steps[0]
	require.Equal(t, 5, *each.Loop.Size)
	require.Equal(t, mostElements, each.Loop.Shown)
	require.LessOrEqual(t, len(each.Sinks[0].Target), maxTarget)
	require.Greater(t, len(each.Sinks[0].Target), maxTarget-10)
}

// TestPlansOfFiles: a plan says what is at a path, whether a run appends or overwrites, and why it would fail; it makes nothing.
func TestPlansOfFiles(t *testing.T) {
	t.Parallel()
	folder, other := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "there.jsonl"), []byte("{\"id\":1}\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "plain.csv.gz"), []byte("id\n1\n"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(other, "orders/_manifest"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(other, "orders/_manifest/00000012.json"), []byte(`{"number": 12, "format": "parquet", "columns": ["id"], "types": {"id": "bigint"},
		"rows": 100, "bytes": 4096, "files": [{"path": "part-a.parquet", "rows": 60}, {"path": "part-b.parquet", "rows": 40}]}`), 0o600))
	resources := activities.Resources{Directory: folder, Connections: activities.Connections{"lake": "file://" + other, "new": "file:lake", "away": "file://" + other + "/none"}}
	answer := plans(t, resources, `apiVersion: reprise/v1
kind: Playbook
metadata: {name: files}
workflow:
  - step: fetch
    tool: http
    url: https://example.com
    sink:
      - {tool: file, path: there.jsonl}
      - {tool: file, path: new/none.csv.zst, mode: overwrite}
      - {tool: file, path: plain.csv.gz}
      - {tool: file, auth: lake, path: orders, format: parquet}
      - {tool: file, auth: lake, path: orders, format: parquet, mode: overwrite}
      - {tool: file, auth: lake, path: orders, format: csv}
      - {tool: file, auth: lake, path: orders, format: parquet, columns: {id: text}}
      - {tool: file, auth: new, path: orders, format: csv, compression: gzip}
      - {tool: file, auth: away, path: orders, format: csv}
      - {tool: file, auth: lake, path: "orders/day={{ row.day }}/", format: csv}
    next: load
  - step: load
    tool: transfer
    from: {tool: http, url: https://example.com/a.csv}
    to: {tool: file, auth: lake, path: orders, format: parquet, mode: overwrite}
    next: table
  - step: table
    tool: transfer
    from: {tool: http, url: https://example.com/a.csv}
    to: {tool: sqlite, path: rows.db, table: orders, schema_contract: evolve}
`, false)
	lake := interpreter.FilePlan{Format: "parquet", Exists: true, InFolder: true, Manifest: 12, Files: 2, Rows: 100, Bytes: 4096}
	with := func(mode string, byWrite bool) *interpreter.FilePlan {
		plan := lake
		plan.Mode, plan.ByWrite = mode, byWrite
		return &plan
	}
	other12 := with("append", true)
	other12.Format = "csv"
	for i, want := range []struct {
		plan *interpreter.FilePlan
		says string
	}{
		{&interpreter.FilePlan{Mode: "append", Format: "jsonl", Exists: true, Bytes: 9}, ""},
		{&interpreter.FilePlan{Mode: "overwrite", Format: "csv", Compression: "zstd"}, ""},
		{&interpreter.FilePlan{Mode: "append", Format: "csv", Compression: "gzip", Exists: true, Bytes: 5}, "the existing file is not compressed"},
		{with("append", true), ""},
		{with("overwrite", false), ""},
		{other12, "its existing files are parquet"},
		{with("append", true), `columns has text for "id", which is bigint in the existing files`},
		{&interpreter.FilePlan{Mode: "append", Format: "csv", Compression: "gzip", InFolder: true, ByWrite: true}, ""},
		{&interpreter.FilePlan{Mode: "append", Format: "csv", InFolder: true, ByWrite: true}, "create the folder, or mount the file system that belongs there"},
		{&interpreter.FilePlan{Mode: "append", Format: "csv", InFolder: true, ByWrite: true, ByRow: true}, ""},
	} {
		require.Equal(t, want.plan, answer.Steps[0].Sinks[i].File, i)
		if want.says == "" {
			require.Empty(t, answer.Steps[0].Sinks[i].Problem, i)
		} else {
			require.Contains(t, answer.Steps[0].Sinks[i].Problem, want.says, i)
		}
	}
	require.Equal(t, "orders/day={{ row.day }}/", answer.Steps[0].Sinks[9].Target)
	require.Len(t, answer.Steps[1].Sinks, 1)
	require.Equal(t, with("overwrite", false), answer.Steps[1].Sinks[0].File)
	require.Len(t, answer.Steps[2].Sinks, 1)
	require.True(t, answer.Steps[2].Sinks[0].Table.NewFile)
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 2, "nothing is made")
	left, err = os.ReadDir(filepath.Join(other, "orders"))
	require.NoError(t, err)
	require.Len(t, left, 1)
}
