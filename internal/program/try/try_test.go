package try_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/base/secrets"
	"reprise/internal/program/recording"
	"reprise/internal/program/try"
	"reprise/internal/test/samples"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// api answers requests by a list, the last answer again and again, and keeps what it was sent.
type api struct {
	*httptest.Server

	mu      sync.Mutex
	answers []answer
	got     []string
	bodies  []string
	auth    []string
}

type answer struct {
	status  int
	headers map[string]string
	body    string
}

func newAPI(t *testing.T, answers ...answer) *api {
	t.Helper()
	a := &api{answers: answers}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	a.got, a.bodies, a.auth = append(a.got, r.Method+" "+r.URL.RequestURI()), append(a.bodies, string(body)), append(a.auth, r.Header.Get("Authorization"))
	next := a.answers[0]
	if len(a.answers) > 1 {
		a.answers = a.answers[1:]
	}
	w.Header().Set("Content-Type", "application/json")
	for name, value := range next.headers {
		w.Header().Set(name, value)
	}
	if next.status == 0 {
		next.status = 200
	}
	w.WriteHeader(next.status)
	_, _ = io.WriteString(w, next.body)
}

const usersBook = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: users}
workload: {api: "http://x"}
workflow:
  - step: fetch
    tool: http
    url: "{{ api }}/users"
    params: {offset: 0, limit: 2}
    retry:
      - when: "{{ error.class in ['retryable', 'rate_limited'] }}"
        then: {max_attempts: 4, jitter: none}
      - when: "{{ response.has_more }}"
        then:
          max_attempts: 100
          next_call: {params: {offset: "{{ response.offset + response.limit }}"}}
          collect: {path: data}
    sink:
      tool: sqlite
      path: users.db
      table: users
      mode: upsert
      key: id
      columns: {id: bigint}
      schema_contract: evolve
`

func load(t *testing.T, text string) *playbook.Playbook {
	t.Helper()
	file := source.NewFile("book.yaml", []byte(text))
	book, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{})
	require.Empty(t, found.Errors(), file.FormatAll(found))
	return book
}

// tried tries a step of a playbook against an API, with waits that take no time.
func tried(t *testing.T, text, url string, change func(*try.Options)) (*try.Report, []time.Duration, error) {
	t.Helper()
	var waits []time.Duration
	book := load(t, text)
	options := try.Options{
		Book: book, Workload: expression.MergeMaps(book.Workload, map[string]any{"api": url}).(map[string]any),
		Resources: activities.Resources{Directory: t.TempDir(), AllowPython: true, Secrets: &secrets.Masker{}},
		Sleep: func(_ context.Context, wait time.Duration) error {
			waits = append(waits, wait)
			return nil
		},
	}
	if change != nil {
		change(&options)
	}
	report, err := try.TryStep(t.Context(), options)
	return report, waits, err
}

func page(offset int, more bool) answer {
	return answer{body: fmt.Sprintf(`{"data": [{"id": %d, "name": "a"}, {"id": %d, "name": null}], "offset": %d, "limit": 2, "has_more": %t}`,
		offset+1, offset+2, offset, more)}
}

// text is a report as people see it, with addresses and times that are always the same.
func text(t *testing.T, report *try.Report, url string) string {
	t.Helper()
	var out bytes.Buffer
	printer := try.Printer{W: &out, Width: 80, Limit: 5}
	printer.PrintHeader(report)
	for _, attempt := range report.Attempts {
		if attempt.Answer != nil {
			attempt.Answer.Seconds = 0.012
		}
		printer.PrintAttempt(attempt)
	}
	printer.PrintReport(report)
	for line := range strings.Lines(out.String()) {
		require.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 80, line)
	}
	dates := regexp.MustCompile(`date: \w.*`)
	return dates.ReplaceAllString(strings.ReplaceAll(out.String(), url, "https://api.test"), "date: X")
}

// TestPages: a failure is made again, a page turns, and the try ends after the pages that were asked for.
func TestPages(t *testing.T) {
	t.Parallel()
	server := newAPI(t, answer{status: 503, body: `{"error": "busy"}`}, answer{status: 429, headers: map[string]string{"Retry-After": "7"}}, page(0, true), page(2, true), page(4, false))
	report, waits, err := tried(t, usersBook, server.URL, nil)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{time.Second, 7 * time.Second}, waits)
	require.Equal(t, []string{
		"GET /users?limit=2&offset=0", "GET /users?limit=2&offset=0", "GET /users?limit=2&offset=0", "GET /users?limit=2&offset=2",
	}, server.got)
	require.Equal(t, interpreter.StatusSuccess, report.Status)
	require.Len(t, report.Result.Data, 4)
	require.Len(t, report.Attempts, 4)
	require.Equal(t, []try.RequestDiff{{Path: "params.offset", From: "0", To: "2"}}, report.Attempts[2].Next.Changes)
	require.Equal(t, []try.Column{{Name: "id", Type: "number"}, {Name: "name", Type: "string, nil"}}, report.Columns)
	require.Len(t, report.Sinks, 1)
	require.False(t, report.Sinks[0].Written)
	require.Len(t, report.Sinks[0].Rows, 4)
	samples.Golden(t, "pages", text(t, report, server.URL))
}

// TestFileInBatches: the source of a loop over a file is tried as far as its pages were asked for, and says where it would read on.
func TestFileInBatches(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "users.csv"), []byte("id\n1\n2\n3\n4\n5\n"), 0o600))
	report, _, err := tried(t, `apiVersion: reprise/v1
kind: Playbook
metadata: {name: users}
workload: {api: "http://x"}
workflow:
  - step: visit
    tool: http
    url: "{{ api }}/{{ item.id }}"
    loop: {source: {tool: file, path: users.csv, batch: 2}}
`, "", func(o *try.Options) { o.Step, o.Pages, o.Resources.Directory = "visit.source", 2, folder })
	require.NoError(t, err)
	require.Len(t, report.Attempts, 2)
	require.Equal(t, []try.RequestDiff{{Path: "rows before", From: "0", To: "2"}}, report.Attempts[0].Next.Changes)
	require.Equal(t, []try.RequestDiff{{Path: "rows before", From: "2", To: "4"}}, report.Attempts[1].Next.Changes)
	require.Equal(t, "the next page, which is not requested: --pages 2", report.Attempts[1].Next.Text)
	require.Len(t, report.Result.Data, 4)
}

// TestWholeStep: a step that ends by itself before its pages are used up is the same as in a run.
func TestWholeStep(t *testing.T) {
	t.Parallel()
	server := newAPI(t, page(0, true), page(2, false))
	report, _, err := tried(t, usersBook, server.URL, func(o *try.Options) { o.Pages = 10 })
	require.NoError(t, err)
	require.Empty(t, report.Notes)
	require.Len(t, report.Result.Data, 4)
	require.Len(t, server.got, 2)
}

// TestFailure: what is not matched fails the step, with the reason in each policy.
func TestFailure(t *testing.T) {
	t.Parallel()
	server := newAPI(t, answer{status: 404, body: `{"message": "no such list"}`})
	report, waits, err := tried(t, usersBook, server.URL, nil)
	require.NoError(t, err)
	require.Empty(t, waits)
	require.Equal(t, interpreter.StatusError, report.Status)
	require.Contains(t, report.Error, "404")
	require.Empty(t, report.Sinks)
	samples.Golden(t, "failure", text(t, report, server.URL))
}

// TestLongWaitEndsTheTry: nobody sits through it.
func TestLongWaitEndsTheTry(t *testing.T) {
	t.Parallel()
	server := newAPI(t, answer{status: 429, headers: map[string]string{"Retry-After": "120"}})
	report, waits, err := tried(t, usersBook, server.URL, nil)
	require.NoError(t, err)
	require.Empty(t, waits)
	require.Contains(t, report.Stopped, "longer than --max-wait 1m0s")
	require.Len(t, server.got, 1)
}

// TestDryRun: nothing is sent, also not by tools other than http, and the request is shown.
func TestDryRun(t *testing.T) {
	t.Parallel()
	server := newAPI(t, page(0, false))
	report, _, err := tried(t, usersBook, server.URL, func(o *try.Options) { o.DryRun = true })
	require.NoError(t, err)
	require.Empty(t, server.got)
	require.Equal(t, "nothing was sent", report.Stopped)
	require.Equal(t, server.URL+"/users?limit=2&offset=0", report.Attempts[0].Request.URL)
	require.Nil(t, report.Attempts[0].Answer)

	post := strings.Replace(usersBook, "params:", "method: POST\n    auth: login\n    body: {a: 1}\n    params:", 1)
	oauth := fmt.Sprintf(`{"oauth2": {"token_url": "%s/token", "client_id": "me", "client_secret": "s3cr3t-s3cr3t"}}`, server.URL)
	for _, connection := range []string{"bearer:tok-12345678", oauth} {
		report, _, err = tried(t, post, server.URL, func(o *try.Options) {
			o.DryRun, o.Resources.Connections = true, activities.Connections{"login": connection}
		})
		require.NoError(t, err)
		require.Empty(t, server.got)
		require.Equal(t, "POST", report.Attempts[0].Request.Method)
		require.Empty(t, report.Error)
	}

	sql := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: a}\nworkflow:\n  - {step: a, tool: sqlite, path: x.db, statement: \"DELETE FROM t WHERE id = {{ 1 }}\"}\n"
	report, _, err = tried(t, sql, "", func(o *try.Options) { o.DryRun = true })
	require.NoError(t, err)
	require.Contains(t, report.Attempts[0].Request.Fields["statement"], "DELETE")
}

// TestSecretsAreNotShown: neither those of connections nor what a server repeats of them.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	server := newAPI(t, answer{body: `{"data": [{"you_sent": "Bearer tok-12345678", "access_token": "fresh-0000"}], "has_more": false}`, headers: map[string]string{"Set-Cookie": "sid=abcdef"}})
	book := strings.Replace(usersBook, "params:", "auth: login\n    headers: {X-Key: \"{{ workload.key }}\", Cookie: \"a=kookie-99\"}\n    params:", 1)
	book = strings.Replace(book, "workload: {", "workload: {key: visible, ", 1)
	record := &recording.Recording{}
	report, _, err := tried(t, book, server.URL, func(o *try.Options) {
		o.Resources.Connections, o.Recording = activities.Connections{"login": "bearer:tok-12345678"}, record
	})
	require.NoError(t, err)
	require.Equal(t, []string{"Bearer tok-12345678"}, server.auth)
	var recorded bytes.Buffer
	require.NoError(t, recording.Write(&recorded, record, &secrets.Masker{}))
	asJSON, err := json.Marshal(report)
	require.NoError(t, err)
	for _, shown := range []string{text(t, report, server.URL), recorded.String(), string(asJSON)} {
		for _, secret := range []string{"tok-12345678", "fresh-0000", "kookie-99", "abcdef"} {
			require.NotContains(t, shown, secret)
		}
		require.Contains(t, shown, "***")
	}
	require.Equal(t, secrets.Stars, report.Attempts[0].Request.Headers["authorization"])
}

// TestWritesAreRefused: nothing is sent that may change something, unless that is allowed.
func TestWritesAreRefused(t *testing.T) {
	t.Parallel()
	server := newAPI(t, page(0, true), page(2, false))
	post := strings.Replace(usersBook, "params:", "method: POST\n    params:", 1)
	_, _, err := tried(t, post, server.URL, nil)
	require.True(t, try.IsRefused(err))
	require.ErrorContains(t, err, "POST")
	require.ErrorContains(t, err, "--allow-writes")
	require.Empty(t, server.got)
	report, _, err := tried(t, post, server.URL, func(o *try.Options) { o.AllowWrites = true })
	require.NoError(t, err)
	require.Equal(t, interpreter.StatusSuccess, report.Status)

	server = newAPI(t, page(0, true), page(2, false))
	later := strings.Replace(usersBook, "next_call: {", "next_call: {method: DELETE, ", 1)
	report, _, err = tried(t, later, server.URL, nil)
	require.NoError(t, err)
	require.Contains(t, report.Stopped, "DELETE")
	require.Len(t, server.got, 1)

	for statement, reads := range map[string]bool{
		"SELECT 1 AS a": true, "VALUES (1)": true, "DELETE FROM t": false, "WITH x AS (SELECT 1) SELECT * FROM x": true,
		"SELECT 1 AS into_": true, "CREATE TABLE t (a)": false,
	} {
		book := fmt.Sprintf("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: a}\nworkflow:\n  - {step: a, tool: sqlite, path: x.db, statement: %q}\n", statement)
		_, _, err = tried(t, book, "", nil)
		require.Equal(t, reads, err == nil, "%s: %v", statement, err)
	}
}

// TestWriteWritesSinks: with the rows of the pages that were read, once.
func TestWriteWritesSinks(t *testing.T) {
	t.Parallel()
	server := newAPI(t, page(0, true), page(2, false))
	folder := t.TempDir()
	report, _, err := tried(t, usersBook, server.URL, func(o *try.Options) { o.Write, o.Resources.Directory = true, folder })
	require.NoError(t, err)
	require.True(t, report.Sinks[0].Written, report.Sinks[0].Error)
	db, err := sql.Open("sqlite", filepath.Join(folder, "users.db"))
	require.NoError(t, err)
	defer db.Close()
	var rows int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM users").Scan(&rows))
	require.Equal(t, 4, rows)

	_, _, err = tried(t, strings.Replace(usersBook, "mode: upsert", "mode: replace", 1), server.URL, func(o *try.Options) { o.Write = true })
	require.ErrorContains(t, err, "replaces what is in its table")
	require.True(t, try.IsRefused(err))
}

const loopBook = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: visits}
workload: {api: "http://x"}
workflow:
  - step: patients
    tool: http
    url: "{{ api }}/patients"
    next: visits
  - step: visits
    tool: http
    url: "{{ api }}/patients/{{ patient.id }}/visits"
    loop:
      in: "{{ patients.data }}"
      element: patient
      sink:
        tool: file
        path: "visits/{{ patient.id }}.jsonl"
    retry:
      - when: "{{ response.next }}"
        then: {next_call: {url: "{{ response.next }}"}, collect: {path: visits}}
`

// TestLoopElement: the first element of the collection, or the one that was asked for.
func TestLoopElement(t *testing.T) {
	t.Parallel()
	server := newAPI(t, answer{body: `{"visits": [{"at": "2024-01-01"}, {"at": "2024-01-02"}]}`})
	_, _, err := tried(t, loopBook, server.URL, func(o *try.Options) { o.Step = "visits" })
	require.True(t, try.IsRefused(err))
	require.ErrorContains(t, err, "book.yaml:14:15: step \"visits\" needs the result of step patients: {{ patients.data }}")
	require.ErrorContains(t, err, "--with patients=FILE.json")

	given := any(map[string]any{"id": "p7"}) // then the others are not needed
	report, _, err := tried(t, loopBook, server.URL, func(o *try.Options) { o.Step, o.Element = "visits", &given })
	require.NoError(t, err)
	require.Equal(t, "GET /patients/p7/visits", server.got[len(server.got)-1])
	require.Contains(t, text(t, report, server.URL), "element {\"id\":\"p7\"}\n")

	patients := map[string]any{"data": []any{map[string]any{"id": "p1"}, map[string]any{"id": "p2"}}}
	for _, row := range []struct {
		element any
		path    string
	}{
		{nil, "/patients/p1/visits"},
		{map[string]any{"id": "p2"}, "/patients/p2/visits"},
		{map[string]any{"id": "p9"}, "/patients/p9/visits"},
	} {
		report, _, err := tried(t, loopBook, server.URL, func(o *try.Options) {
			o.Step, o.With = "visits", map[string]any{"patients": patients}
			if row.element != nil {
				o.Element = &row.element
			}
		})
		require.NoError(t, err)
		require.Equal(t, "GET "+row.path, server.got[len(server.got)-1])
		require.Equal(t, 2, report.Elements)
		require.Len(t, report.Sinks, 1)
		require.Equal(t, "visits.loop.sink", report.Sinks[0].Place)
		if row.element == nil {
			samples.Golden(t, "loop", text(t, report, server.URL))
		}
	}
}

// TestTablesOfLists: where lists in the rows become tables of their own, each is shown with its key and rows, and the parents are shown without them. What
// a write would refuse is an error.
func TestTablesOfLists(t *testing.T) {
	t.Parallel()
	orders := `[{"id": 1, "tags": ["a", "b"], "items": [{"sku": "x", "taxes": [{"rate": 7}]}, {"sku": "y"}]}, {"id": 2, "tags": [], "items": null}]`
	source := func(words string) string {
		return `apiVersion: reprise/v1
kind: Playbook
metadata: {name: orders}
workload: {api: "http://x"}
workflow:
  - step: fetch
    tool: http
    url: "{{ api }}/orders"
    sink: {tool: sqlite, path: orders.db, table: orders, mode: upsert, key: id, schema_contract: evolve, ` + words + `}
`
	}
	server := newAPI(t, answer{body: orders}, answer{body: orders}, answer{body: `[{"id": 1, "items": ["text"]}]`})
	report, _, err := tried(t, source("nested: tables"), server.URL, nil)
	require.NoError(t, err)
	samples.Golden(t, "tables", text(t, report, server.URL))
	require.Len(t, report.Sinks[0].Tables, 3)
	require.Equal(t, []any{map[string]any{"id": 1}, map[string]any{"id": 2}}, report.Sinks[0].Rows)

	described := "children: {items: {table: lines, key: [order_id, sku], with: {order_id: id}, columns: {sku: text}}}"
	report, _, err = tried(t, source(described), server.URL, nil)
	require.NoError(t, err)
	require.Equal(t, "lines", report.Sinks[0].Tables[0].Table)
	require.Equal(t, []string{"order_id", "sku"}, report.Sinks[0].Tables[0].Key)
	require.Equal(t, []any{
		map[string]any{"order_id": 1, "sku": "x", "taxes": []any{map[string]any{"rate": 7}}}, map[string]any{"order_id": 1, "sku": "y"},
	}, report.Sinks[0].Tables[0].Rows)

	report, _, err = tried(t, source(described), server.URL, nil)
	require.NoError(t, err)
	require.Contains(t, report.Sinks[0].Error, "items[0] is a string; a row of table \"lines\" must be a map of columns to values")
}

// TestPathsOfRows: where path names the row, the paths are shown with how many rows go to each.
func TestPathsOfRows(t *testing.T) {
	t.Parallel()
	server := newAPI(t, answer{body: `[{"id": 1, "day": "b/c"}, {"id": 2, "day": "a"}, {"id": 3, "day": "b/c"}]`})
	report, _, err := tried(t, `apiVersion: reprise/v1
kind: Playbook
metadata: {name: orders}
workload: {api: "http://x"}
workflow:
  - step: fetch
    tool: http
    url: "{{ api }}/orders"
    sink: {tool: file, path: "orders/day={{ row.day }}/", format: parquet}
`, server.URL, nil)
	require.NoError(t, err)
	require.Equal(t, "orders/day={{ row.day }}/", report.Sinks[0].Target)
	require.Equal(t, []try.SinkPath{{Path: "day=a", Rows: 1}, {Path: "day=b%2Fc", Rows: 2}}, report.Sinks[0].Paths)
	require.Contains(t, text(t, report, server.URL), "  2 paths:\n    day=a: 1 row\n    day=b%2Fc: 2 rows\n")
}

// TestRecording: what was answered is what a test of the playbook answers with.
func TestRecording(t *testing.T) {
	t.Parallel()
	server := newAPI(t, answer{status: 503, body: "busy"}, page(0, true), page(2, false))
	record := &recording.Recording{Playbook: "book.yaml"}
	_, _, err := tried(t, usersBook, server.URL, func(o *try.Options) { o.Recording = record })
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, recording.Write(&out, record, nil))
	samples.Golden(t, "recording", strings.ReplaceAll(out.String(), server.URL, "https://api.test"))

	server.Close()
	record = &recording.Recording{}
	_, _, err = tried(t, usersBook, server.URL, func(o *try.Options) { o.Recording, o.Pages = record, 1 })
	require.NoError(t, err)
	require.Len(t, record.StepEntries("fetch"), 4)
	require.Equal(t, recording.ErrorConnection, record.StepEntries("fetch")[0].Error)

	python := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: a}\nworkflow:\n  - step: a\n    tool: python\n    code: |\n      def main():\n        return [{'n': 1}]\n"
	record = &recording.Recording{}
	report, _, err := tried(t, python, "", func(o *try.Options) { o.Recording = record })
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"n": 1}}, report.Result.Data)
	require.Equal(t, []any{map[string]any{"n": 1}}, record.StepEntries("a")[0].Result.Data)
}

// TestRateLimit: attempts wait for their turn.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	server := newAPI(t, page(0, true), page(2, true), page(4, true), page(6, false))
	limited := strings.Replace(usersBook, "params:", "rate_limit: {requests: 10, per: 2s}\n    params:", 1)
	began := time.Now()
	_, _, err := tried(t, limited, server.URL, func(o *try.Options) { o.Pages = 4 })
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(began), 3*200*time.Millisecond)
}

// TestIncremental: a state is neither read nor moved.
func TestIncremental(t *testing.T) {
	t.Parallel()
	server := newAPI(t, answer{body: `{"data": [{"id": 1, "at": "2024-02-01T00:00:00Z"}], "has_more": false}`})
	book := strings.Replace(usersBook, "params: {", "incremental: {cursor_path: at, initial_value: \"2024-01-01T00:00:00Z\"}\n    params: {since: \"{{ incremental.value }}\", ", 1)
	report, _, err := tried(t, book, server.URL, nil)
	require.NoError(t, err)
	require.Equal(t, interpreter.StatusSuccess, report.Status, report.Error)
	require.Contains(t, server.got[0], "since=2024-01-01")
	require.Contains(t, report.Notes[0], "neither read nor moved")
	server = newAPI(t, answer{body: `{"data": [{"id": 1, "at": "2024-02-01T00:00:00Z"}], "offset": 0, "limit": 1, "has_more": true}`})
	report, _, err = tried(t, book, server.URL, func(o *try.Options) { o.Pages = 1 })
	require.NoError(t, err)
	require.Contains(t, report.Notes, "stopped after 1 page; --pages N requests more")
	require.Len(t, report.Warnings, 1)
	require.Contains(t, report.Warnings[0], "increase --pages", "the limit is the flag's, not the playbook's")
	require.NotContains(t, report.Warnings[0], "max_attempts")
	_, _, err = tried(t, book, server.URL, func(o *try.Options) { o.Write = true })
	require.True(t, try.IsRefused(err))
}

// TestRefused: what a try cannot do is said before anything is sent.
func TestRefused(t *testing.T) {
	t.Parallel()
	head := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: a}\nworkflow:\n"
	for steps, message := range map[string]string{
		"  - {step: a, tool: approval, message: ok}\n":                                           "waits for an answer from outside",
		"  - {step: a, tool: playbook, path: b.yaml}\n":                                          "runs another playbook",
		"  - {step: a, tool: http, url: \"http://x\", secret: true}\n":                           "is secret",
		"  - {step: a, tool: http, url: \"http://x/{{ vars.b }}\"}\n":                            "--with vars=FILE.json",
		"  - {step: a, tool: http, url: \"http://x/{{ args.b }}\"}\n":                            "--with args=FILE.json",
		"  - {step: a, next: b}\n  - {step: b, tool: http, url: \"http://x\", loop: {in: []}}\n": "has no elements",
	} {
		file := source.NewFile("book.yaml", []byte(head+steps))
		book, found := playbook.Decode(file)
		require.Empty(t, found.Errors(), steps)
		_, err := try.TryStep(t.Context(), try.Options{Book: book})
		require.True(t, try.IsRefused(err), steps)
		require.ErrorContains(t, err, message)
	}
	book := load(t, usersBook)
	for name, message := range map[string]string{"fetsh": `did you mean "fetch"?`, "zzzzzz": "its steps are fetch"} {
		_, err := try.TryStep(t.Context(), try.Options{Book: book, Step: name})
		require.ErrorContains(t, err, message)
	}
	_, err := try.TryStep(t.Context(), try.Options{Book: book, With: map[string]any{"nobody": 1}})
	require.ErrorContains(t, err, "no step of that name")
	var element any = 1
	_, err = try.TryStep(t.Context(), try.Options{Book: book, Element: &element})
	require.ErrorContains(t, err, "has none")
}

// TestCancelled: Ctrl-C ends a wait.
func TestCancelled(t *testing.T) {
	t.Parallel()
	server := newAPI(t, answer{status: 503})
	ctx, cancel := context.WithCancel(t.Context())
	book := load(t, usersBook)
	_, err := try.TryStep(ctx, try.Options{
		Book: book, Workload: map[string]any{"api": server.URL},
		Each: func(try.Attempt) { cancel() },
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, server.got, 1)
}
