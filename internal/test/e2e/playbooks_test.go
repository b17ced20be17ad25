package e2e_test

import (
	"database/sql"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// ids are the ids of the demo API's lists.
func ids(n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = i + 1
	}
	return all
}

// runOfPlaybook is what one of the playbooks that come with Reprise does.
type runOfPlaybook struct {
	workload map[string]any
	status   string
	data     any
	requests []string // to the demo API, in order
	warnings []string
	answers  []interpreter.Answer // to its attempts that await one, in order
	after    func(t *testing.T, w *world, result protocol.Result)
}

var runsOfPlaybooks = map[string]runOfPlaybook{
	"hello": {status: "completed", data: "Hello, world!"},
	"backfill": {
		workload: map[string]any{"connection": "sqlite:rows.db"}, status: "completed",
		data:  map[string]any{"partition": "2026-01-01T00:03:00Z--2026-01-01T00:04:00Z", "rows": 3},
		after: afterBackfill,
	},
	"webhook_retry": {
		status: "completed", data: map[string]any{"rows": 12, "attempts": 2},
		requests: []string{"/api/v1/jobs", "/api/v1/jobs"},
		answers: []interpreter.Answer{
			{Verb: interpreter.AnswerFail, Message: "the file is locked", AnswerTo: interpreter.AnswerTo{Attempt: 1}},
			{
				Verb: interpreter.AnswerComplete, AnswerTo: interpreter.AnswerTo{Attempt: 2},
				Result: expression.Of(map[string]any{"rows": 12}),
			},
		},
	},
	"loop_source": {
		status: "completed",
		data:   map[string]any{"total": 35, "success": 35, "failed": 0, "truncated": 0, "cancelled": 0},
	},
	"pagination_page": {
		status: "completed",
		data:   map[string]any{"rows": 35, "ids": ids(35), "pages": 4},
		requests: []string{
			"/api/v1/assessments?page=1&pageSize=10", "/api/v1/assessments?page=2&pageSize=10",
			"/api/v1/assessments?page=3&pageSize=10", "/api/v1/assessments?page=4&pageSize=10",
		},
	},
	"pagination_offset": {
		status: "completed",
		data:   map[string]any{"rows": 35, "ids": ids(35), "pages": 4},
		requests: []string{
			"/api/v1/users?limit=10&offset=0", "/api/v1/users?limit=10&offset=10",
			"/api/v1/users?limit=10&offset=20", "/api/v1/users?limit=10&offset=30",
		},
	},
	"pagination_cursor": {
		status: "completed",
		data:   map[string]any{"rows": 35, "ids": ids(35), "pages": 4},
		requests: []string{
			"/api/v1/events?limit=10", "/api/v1/events?cursor=YWZ0ZXI6MTA%3D&limit=10",
			"/api/v1/events?cursor=YWZ0ZXI6MjA%3D&limit=10", "/api/v1/events?cursor=YWZ0ZXI6MzA%3D&limit=10",
		},
	},
	"pagination_link": {
		status: "completed",
		data:   map[string]any{"rows": 35, "ids": ids(35), "amount": 35 * 36 / 2 * 5, "pages": 4},
		requests: []string{
			"/api/v1/orders?pageSize=10", "/api/v1/orders?page=2&pageSize=10",
			"/api/v1/orders?page=3&pageSize=10", "/api/v1/orders?page=4&pageSize=10",
		},
	},
	"polling": {
		status: "completed",
		data:   map[string]any{"status": "done", "rows": 35, "polls": 3},
		requests: []string{
			"/api/v1/jobs", "/api/v1/jobs/job-1?ready_after=3",
			"/api/v1/jobs/job-1?ready_after=3", "/api/v1/jobs/job-1?ready_after=3",
		},
	},
	"export_job": {
		workload: map[string]any{"connection": "sqlite:rows.db"},
		status:   "completed", data: map[string]any{"rows": 35, "batches": 4},
		requests: []string{
			"/api/v1/jobs", "/api/v1/jobs/job-1?ready_after=2", "/api/v1/jobs/job-1?ready_after=2", "/api/v1/exports/users.csv.gz",
		},
		after: afterExportJob,
	},
	"lake": {
		status: "completed", data: map[string]any{"orders": 35, "users": 35},
		after: afterLake,
	},
	"error_retry": {
		status: "completed",
		data:   map[string]any{"ok": true, "attempts": 3},
		requests: []string{
			"/flaky?status=503&times=2", "/flaky?status=503&times=2", "/flaky?status=503&times=2",
		},
	},
	"routing": {
		status: "completed",
		data: map[string]any{
			"revenue": 105, "because": "HTTP 404 from GET API/status/404",
			"verdict": "reached: 105 of 100",
		},
		warnings: []string{"step get_price failed, and a route handled the failure: HTTP 404 from GET API/status/404"},
		after:    afterRouting,
	},
	"notices": {
		status: "completed", data: "35 users",
		warnings: []string{"step get_price failed, and a route handled the failure: HTTP 404 from GET API/status/404"},
		after:    afterNotices,
	},
	"incremental": {
		workload: map[string]any{"connection": "sqlite:rows.db"},
		status:   "completed",
		data:     map[string]any{"read": 12, "rows": 12, "sales": 12, "newest": "2026-01-01T00:03:00Z"},
		after:    afterIncremental,
	},
	"full_refresh": {
		workload: map[string]any{"connection": "sqlite:rows.db"},
		status:   "completed",
		data:     map[string]any{"read": 12, "rows": ids(12), "changed": []any{}},
		after:    afterFullRefresh,
	},
	"loop_with_sinks": {
		status: "partial_success",
		data:   map[string]any{"lengths": []any{5, 4, nil, 5}, "failed": []any{2}},
		warnings: []string{
			"step measure: 1 of 4 iterations failed (25%); the first (index 2): ValueError: an empty word has no length",
		},
		after: afterLoopWithSinks,
	},
	"patient_medications": {
		workload: map[string]any{"connection": "sqlite:rows.db"},
		status:   "partial_success",
		data: map[string]any{
			"patients": 25, "success": 24,
			"failed": []any{map[string]any{"patient": demoapi.MissingPatient, "status": 404}},
		},
		warnings: []string{"step fetch_medications: 1 of 25 iterations failed (4%); the first (index 12): " +
			"HTTP 404 from GET API/api/v1/patients/" + demoapi.MissingPatient + "/medications?page=1"},
		after: afterMedications,
	},
}

func TestPlaybooks(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "playbooks", "*.yaml"))
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.yaml") })
	require.Len(t, files, len(runsOfPlaybooks))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		want, known := runsOfPlaybooks[name]
		require.True(t, known, "%s has no expected result", file)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want.check(t, name)
		})
	}
}

func (want runOfPlaybook) check(t *testing.T, name string) {
	w := newWorld(t)
	w.connected["lake"] = "file:lake"
	w.work()
	run := w.start(w.playbook(name+".yaml"), want.workload)
	for _, answer := range want.answers {
		w.answers(run.GetID(), answer)
	}
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.EqualValues(t, want.status, result.Status, "%+v", result.Error)
	require.Equal(t, w.expected(want.data), result.Result.Data)
	require.Equal(t, w.expected(want.warnings), w.expected(result.Warnings))
	if want.requests != nil {
		require.Equal(t, want.requests, requests(w.api.Requests("")))
		require.Equal(t, want.requests, requests(w.api.Requests(run.GetID())), "all requests carry the run's scenario")
	}
	if want.after != nil {
		want.after(t, w, result)
	}
}

// expected is the value as JSON has it, with the demo API's URL, which differs
// between runs, in the place of API.
func (w *world) expected(v any) any {
	w.t.Helper()
	encoded, err := json.Marshal(v)
	require.NoError(w.t, err)
	decoded, err := expression.Decode([]byte(strings.ReplaceAll(string(encoded), "API/", w.api.URL()+"/")))
	require.NoError(w.t, err)
	return decoded
}

func requests(logged []demoapi.Request) []string {
	all := make([]string, len(logged))
	for i, request := range logged {
		all[i] = request.Path
		if request.Query != "" {
			all[i] += "?" + request.Query
		}
	}
	return all
}

// afterRouting: both branches ran, report once, and the other end was skipped.
func afterRouting(t *testing.T, _ *world, result protocol.Result) {
	statuses := map[string]interpreter.Status{}
	for _, record := range result.Steps {
		require.NotContains(t, statuses, record.Step, "every step ran at most once")
		statuses[record.Step] = record.Status
		require.Equal(t, record.Step == "get_price", record.Handled)
	}
	require.Equal(t, map[string]interpreter.Status{
		"start": "completed", "count_users": "completed", "get_price": "failed", "default_price": "completed",
		"report": "completed", "celebrate": "completed", "shrug": "skipped",
	}, statuses)
}

// afterNotices: the step that failed, the one that did not, and the run.
func afterNotices(t *testing.T, w *world, result protocol.Result) {
	bodies := w.bodies()
	require.Len(t, bodies, 3)
	require.Equal(t, map[string]any{"text": "no price: http 404"}, bodies[0])
	require.Equal(t, "count_users", bodies[1].(map[string]any)["step"])
	require.Equal(t, map[string]any{"text": "notices completed "}, bodies[2])
	require.True(t, step(t, result, "get_price").Handled)
}

func afterLoopWithSinks(t *testing.T, w *world, _ protocol.Result) {
	read := func(pattern string) string {
		files, err := filepath.Glob(filepath.Join(w.dir, "out", "loop_with_sinks", pattern))
		require.NoError(t, err)
		require.Len(t, files, 1)
		text, err := os.ReadFile(files[0])
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, `{"length":5,"n":1,"word":"alpha"}
{"length":4,"n":2,"word":"beta"}
{"length":5,"n":4,"word":"delta"}
`, read("*.words.jsonl"))
	require.Equal(t, `{"failed":["ValueError: an empty word has no length"],"success":3,"total":4}
`, read("*.summary.jsonl"))
}

// afterMedications: every row of every patient but one, each once, and one
// summary of the batch.
func afterMedications(t *testing.T, w *world, _ protocol.Result) {
	require.Equal(t, demoapi.MedicationRequests()+1, len(w.api.Requests("")), "and one for the patients")
	var want []any
	for _, medication := range demoapi.AllMedications() {
		want = append(want, map[string]any{
			"id": medication.ID, "patient_id": medication.PatientID, "name": medication.Name, "dose_mg": medication.DoseMG,
		})
	}
	require.Len(t, want, demoapi.MedicationRows())
	require.ElementsMatch(t, want, w.query("SELECT * FROM medications"))
	require.Equal(t, []any{map[string]any{"total": 25, "success": 24, "failed": 1}},
		w.query("SELECT total, success, failed FROM batches"))
}

// afterIncremental: a run reads on from where the one before has ended. What has the time of the
// watermark is read again and known.
func afterIncremental(t *testing.T, w *world, _ protocol.Result) {
	connection := map[string]any{"connection": "sqlite:rows.db"}
	again := func(want map[string]any) {
		result, err := w.outcome(w.start(w.playbook("incremental.yaml"), connection))
		require.NoError(t, err)
		require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
		require.Equal(t, want, result.Result.Data)
	}
	again(map[string]any{"read": 3, "rows": 12, "sales": 12, "newest": "2026-01-01T00:03:00Z"})
	w.changeSale(http.MethodPut, "5")
	w.changeSale(http.MethodPut, "13")
	again(map[string]any{"read": 5, "rows": 14, "sales": 13, "newest": "2026-01-01T00:04:00Z"})
	require.Equal(t, []string{
		"limit=5&offset=0&updated_since=2026-01-01T00%3A00%3A00Z", "limit=5&offset=5&updated_since=2026-01-01T00%3A00%3A00Z",
		"limit=5&offset=10&updated_since=2026-01-01T00%3A00%3A00Z", "limit=5&offset=0&updated_since=2026-01-01T00%3A03%3A00Z",
		"limit=5&offset=0&updated_since=2026-01-01T00%3A03%3A00Z",
	}, queries(w.api.Requests(""), http.MethodGet))
}

// afterLake: the files of the last manifests have the rows of the API, and a second run adds its own.
func afterLake(t *testing.T, w *world, _ protocol.Result) {
	read := func(path string) (number, rows int, lines []string) {
		manifests, err := filepath.Glob(filepath.Join(w.dir, "lake", path, "_manifest", "*.json"))
		require.NoError(t, err)
		content, err := os.ReadFile(manifests[len(manifests)-1])
		require.NoError(t, err)
		var last struct {
			Number, Rows int
			Files        []struct{ Path string }
		}
		require.NoError(t, json.Unmarshal(content, &last))
		for _, file := range last.Files {
			content, err := os.ReadFile(filepath.Join(w.dir, "lake", path, file.Path))
			require.NoError(t, err)
			lines = append(lines, strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")...)
		}
		return last.Number, last.Rows, lines
	}
	number, rows, lines := read("raw/orders")
	require.Equal(t, []int{1, 35, 35}, []int{number, rows, len(lines)})
	require.Contains(t, lines[34], `"id":35`)
	number, rows, lines = read("raw/users")
	require.Equal(t, []int{1, 35, 36}, []int{number, rows, len(lines)}, "of two batches, one file")
	require.Equal(t, "35,2026-01-31,Müller; 35", lines[35])
	result, err := w.outcome(w.start(w.playbook("lake.yaml"), nil))
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	number, rows, _ = read("raw/orders")
	require.Equal(t, []int{2, 70}, []int{number, rows})
}

// afterExportJob: the table has the rows of the file.
func afterExportJob(t *testing.T, w *world, _ protocol.Result) {
	require.Equal(t, []any{map[string]any{"n": 35, "sum": 630, "stay": 28, "last": "Müller; 35"}},
		w.query("SELECT count(*) AS n, sum(id) AS sum, sum(left_at IS NULL) AS stay, max(CASE WHEN id = 35 THEN name END) AS last FROM users"))
}

// afterFullRefresh: what is gone, changed and new in the API is so in the table. The pages that a
// run has read before it fails change nothing.
func afterFullRefresh(t *testing.T, w *world, _ protocol.Result) {
	connection := map[string]any{"connection": "sqlite:rows.db"}
	rows := func() []any { return w.query("SELECT id, version FROM sales ORDER BY id") }
	before := rows()
	w.changeSale(http.MethodDelete, "2")
	w.changeSale(http.MethodPut, "5")
	w.changeSale(http.MethodPut, "13")
	text := w.playbook("full_refresh.yaml")
	broken := strings.Replace(text, "{{ 5 * _retry.page }}", "{{ _retry.page == 1 ? 5 : -1 }}", 1)
	require.NotEqual(t, text, broken)
	result, err := w.outcome(w.start(broken, connection))
	require.NoError(t, err)
	require.EqualValues(t, "failed", result.Status)
	require.Equal(t, before, rows())
	result, err = w.outcome(w.start(text, connection))
	require.NoError(t, err)
	require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
	require.Equal(t, w.expected(map[string]any{
		"read": 12, "rows": []any{1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, "changed": []any{5},
	}), result.Result.Data)
	require.Len(t, w.query("SELECT name FROM sqlite_master WHERE name LIKE 'reprise_staging_%'"), 1, "of the run that failed")
}

// changeSale makes, changes or deletes a sale of the demo API.
func (w *world) changeSale(method, id string) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.api.URL()+"/api/v1/sales/"+id, http.NoBody)
	require.NoError(w.t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(w.t, err)
	require.NoError(w.t, response.Body.Close())
	require.Equal(w.t, http.StatusOK, response.StatusCode)
}

// queries are those of requests of one method.
func queries(logged []demoapi.Request, method string) []string {
	var all []string
	for _, request := range logged {
		if request.Method == method {
			all = append(all, request.Query)
		}
	}
	return all
}

// query reads the SQLite file that the run wrote, in the order of the rows.
func (w *world) query(statement string) []any {
	w.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(w.dir, "rows.db"))
	require.NoError(w.t, err)
	defer db.Close()
	rows, err := db.QueryContext(w.t.Context(), statement)
	require.NoError(w.t, err)
	defer rows.Close()
	names, err := rows.Columns()
	require.NoError(w.t, err)
	var all []any
	for rows.Next() {
		values, places := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			places[i] = &values[i]
		}
		require.NoError(w.t, rows.Scan(places...))
		row := map[string]any{}
		for i, name := range names {
			row[name], err = expression.Canonical(values[i])
			require.NoError(w.t, err)
		}
		all = append(all, row)
	}
	require.NoError(w.t, rows.Err())
	return all
}
