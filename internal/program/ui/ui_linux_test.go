package ui_test

import (
	"context"
	"fmt"
	"html"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"reprise/activities"
	"reprise/internal/base/connect"
	"reprise/internal/observe/runs"
	"reprise/internal/program/host"
	"reprise/internal/program/start"
	"reprise/internal/program/ui"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/workflows/protocol"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var patience = testenv.Within(30 * time.Second)

const (
	hostile = `<img src=x onerror="document.title='hacked'">`
)

// loops waits in the iterations of a loop, behind a server that never answers.
const loops = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: patients, labels: {team: sales}}
workload: {api: "http://127.0.0.1:1", api_token: "", text: ""}
workflow:
  - step: fetch
    tool: http
    url: "{{ workload.api }}/{{ item }}"
    loop: {in: [1, 2, 3], iterator: item, mode: parallel, max_concurrency: 3}
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 10, delay: 1h}}]
`

// decides waits for a person once its attempt has failed.
const decides = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: decides}
workflow:
  - step: fetch
    tool: http
    url: "http://127.0.0.1:1/"
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 1, on_exhausted: pause}}]
`

const inputs = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: inputs}
workload: {count: 3, day: today, list: [1], sure: true, api_token: hush}
workflow: [{step: begin, vars: {a: 1}}]
output: "{{ workload }}"
`

// broken leads to a step that is not there.
const broken = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: broken}
workflow: [{step: begin, vars: {a: 1}, next: [nowhere]}]
`

// approval asks, with a form whose fields are in no alphabet's order.
const approval = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: asks}
workload: {text: ""}
workflow:
  - step: ask
    tool: approval
    message: "# Load October?\nAll rows of {{ text }}"
    form:
      zeta: {type: text, required: true}
      alpha: {type: integer, default: 7}
output: "{{ ask }}"
`

const fails = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: nightly}
workload: {text: ""}
workflow:
  - step: begin
    vars: {a: 1}
    next: [fetch]
  - step: fetch
    tool: http
    url: "http://127.0.0.1:1/{{ item }}"
    loop: {in: [1, 2], iterator: item}
`

// world is a worker, and a server of pages beside it.
type world struct {
	t     *testing.T
	env   *testenv.Env
	queue string
	url   string
	calls *atomic.Int64     // to Temporal, of the pages
	pages *http.Client      // signed in
	books map[string]string // further playbooks of the folder, by their names
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, testenv.Temporal(t))
}

// newWorldOn is newWorld on a given server.
func newWorldOn(t *testing.T, env *testenv.Env) *world {
	t.Helper()
	w := &world{t: t, env: env, queue: env.NewTaskQueue(), calls: &atomic.Int64{}, books: map[string]string{}}
	catalogue := activities.NewCatalogue(activities.Resources{Directory: t.TempDir()})
	working := host.NewWorker(env.Client(), catalogue, host.Options{TaskQueue: w.queue, StopTimeout: time.Second})
	require.NoError(t, working.Start())
	t.Cleanup(func() {
		working.Stop()
		require.NoError(t, catalogue.Close())
	})
	counting, err := client.Dial(client.Options{
		HostPort: env.Address, Namespace: env.Namespace, Logger: nil,
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(
			func(ctx context.Context, method string, in, out any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
				if strings.Contains(method, "WorkflowService/") && !strings.HasSuffix(method, "/GetSystemInfo") {
					w.calls.Add(1)
				}
				return invoke(ctx, method, in, out, c, options...)
			})}},
	})
	require.NoError(t, err)
	t.Cleanup(counting.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w.url = "http://" + listener.Addr().String()
	starts := func(suffix string) func(context.Context, runs.Found, ui.ChangedBy) (string, error) {
		return func(_ context.Context, found runs.Found, said ui.ChangedBy) (string, error) {
			require.NotEmpty(t, said.By)
			return w.start(found.WorkflowID+suffix, fails, nil), nil
		}
	}
	server := ui.New(ui.Options{
		Client: counting, Namespace: env.Namespace, Runs: &runs.Reader{Client: counting, Namespace: env.Namespace},
		Access: ui.Access{Key: key, Owner: "ada@host", Holder: holder, Hosts: []string{listener.Addr().String()}}, Log: func(_ context.Context, run runs.Found, most int) ([]string, error) {
			return []string{"WARN fetch: " + hostile + " of " + run.WorkflowID}, nil
		},
		Again: starts("-anew"), Reprocess: func(ctx context.Context, found runs.Found, _ ui.Only, said ui.ChangedBy) (string, error) {
			return starts("-again")(ctx, found, said)
		},
		Library: &ui.Library{
			Names: func() []string { return append([]string{"asks", "broken"}, slices.Sorted(maps.Keys(w.books))...) },
			Has:   func(name string) bool { return name == "asks" || name == "broken" || w.books[name] != "" },
			Read: func(name string) (ui.Book, error) {
				if text := w.books[name]; text != "" {
					book, err := interpreter.LoadPlaybook("days.yaml", text)
					return ui.Book{Playbook: book}, err
				}
				if name == "broken" {
					book, _ := playbook.Decode(source.NewFile("broken.yaml", []byte(broken)))
					return ui.Book{Playbook: book, Problems: []string{"broken.yaml:1:1: " + hostile}, Errors: 1, Invalid: true}, nil
				}
				book, err := interpreter.LoadPlaybook("asks.yaml", inputs)
				return ui.Book{Playbook: book}, err
			},
			Start: func(_ context.Context, name string, with ui.StartForm, said ui.ChangedBy) (string, error) {
				require.Equal(t, "ada@host", said.By)
				return w.start("started/"+name+w.queue, inputs, with.Workload), nil
			},
			Backfill: func(ctx context.Context, name string, said ui.ChangedBy) (string, error) {
				require.Equal(t, ui.ChangedBy{By: "ada@host", Reason: "catching up"}, said)
				return w.backfills(ctx, w.books[name])
			},
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, testenv.Receive(t, ended, "the end of the server"))
	})
	jar, _ := cookiejar.New(nil)
	w.pages = &http.Client{Jar: jar}
	w.get("/?key=" + key)
	return w
}

// holder is who has a token in these tests.
func holder(token string) (ui.Person, bool) {
	name, role, found := strings.Cut(token, "/")
	return ui.Person{Name: name, Operator: role == "operator"}, found
}

// start starts a run.
func (w *world) start(id, source string, workload map[string]any) string {
	w.t.Helper()
	book, err := interpreter.LoadPlaybook("book.yaml", source)
	require.NoError(w.t, err)
	return w.startPlan(start.Plan{
		WorkflowID: id, Playbook: book.Name, Labels: book.Labels, Summary: book.Name, Expect: book.Expect,
		Input: protocol.Input{Name: "book.yaml", Source: source, Workload: expression.Of(workload)},
	})
}

// startPlan starts a run as a plan says.
func (w *world) startPlan(plan start.Plan) string {
	w.t.Helper()
	known, err := connect.EnsureAttributes(w.t.Context(), w.env.Client(), w.env.Namespace, protocol.SearchAttributes())
	require.NoError(w.t, err)
	_, err = start.StartRun(w.t.Context(), start.Destination{Client: w.env.Client(), TaskQueue: w.queue}, plan, known)
	require.NoError(w.t, err)
	return plan.WorkflowID
}

// get reads a page.
func (w *world) get(path string) (status int, body string, header http.Header) {
	w.t.Helper()
	answer, err := w.pages.Get(w.url + path)
	require.NoError(w.t, err)
	return read(w.t, answer)
}

func read(t *testing.T, answer *http.Response) (status int, body string, header http.Header) {
	t.Helper()
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text), answer.Header
}

// shows waits until a page has a text.
func (w *world) shows(path, text string) string {
	w.t.Helper()
	body := ""
	require.Eventually(w.t, func() bool {
		_, body, _ = w.get(path)
		return strings.Contains(body, text)
	}, patience, 100*time.Millisecond, "%s does not show %q", path, text)
	return body
}

// TestPages: what people see of runs, and what each button does, with a script and
// without, in a browser.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hostileID := "hostile/" + hostile
	waiting := w.start("ui-"+w.queue, loops, map[string]any{"text": hostile, "api_token": "hush"})
	w.start(hostileID+w.queue, fails, map[string]any{"text": hostile})
	w.shows("/runs/"+url.PathEscape(hostileID+w.queue), "Failed after")
	w.shows("/runs/"+waiting, "waiting to retry")

	t.Run("filters", func(t *testing.T) { w.filters(t, waiting, hostileID+w.queue) })
	t.Run("access", w.access)
	t.Run("tokens", w.tokens)
	t.Run("inbox", w.inbox)
	t.Run("schedules", w.schedules)
	t.Run("playbooks", w.playbooks)
	t.Run("failed", func(t *testing.T) {
		body := w.shows("/failed", "connection econnrefused")
		require.Contains(t, body, "0, 1")
		require.False(t, strings.Contains(body, "<img src=x"))
		status, body := w.post(t, "/failed", "/runs/"+url.PathEscape(hostileID+w.queue)+"/do", url.Values{"command": {"reprocess"}})
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, "<h1>Run failed iterations again?</h1>", "it is confirmed first")
	})
	t.Run("calls", func(t *testing.T) {
		for _, path := range []string{"/", "/?playbook=patients", "/?person=1", "/?label=team=sales", "/inbox", "/failed", "/schedules", "/playbooks", "/playbooks/asks", "/runs/" + waiting, "/runs/" + url.PathEscape(hostileID+w.queue)} {
			w.get(path) // what runs have failed with is read once
			var status int
			var body string
			var header http.Header
			require.Eventually(t, func() bool { // runs of other tests fail meanwhile, and each takes a call once
				before := w.calls.Load()
				status, body, header = w.get(path)
				return w.calls.Load()-before <= 10
			}, patience, 100*time.Millisecond, path)
			require.Equal(t, http.StatusOK, status)
			require.Less(t, len(body), 200<<10)
			require.False(t, strings.Contains(body, "<img src=x"), path)
			require.False(t, strings.Contains(body, "hush"), "the value of api_token is shown on %s", path)
			require.Contains(t, header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
		}
	})
	browser := testenv.NewBrowser(t)
	browser.Open(w.url + "/?key=" + key)
	until := func(expression string) {
		t.Helper()
		require.Eventually(t, func() bool { return browser.Eval(expression) == "true" }, patience, 50*time.Millisecond, "%s: %s", expression, browser.Text())
	}
	until(`document.title === 'Runs – Reprise'`)
	require.Equal(t, "/", browser.Eval(`location.pathname + location.search`), "the key leaves the address")
	t.Run("looks", func(t *testing.T) { w.looks(t, browser, until, waiting, hostileID+w.queue) })
	t.Run("without a script", func(t *testing.T) { w.withoutScript(t, browser, until, waiting) })
	t.Run("stale", func(t *testing.T) { w.stale(browser, until, waiting) })
	t.Run("framed", func(t *testing.T) { w.framed(t, browser, until) })
	t.Run("buttons", func(t *testing.T) { w.buttons(t, browser, until, waiting) })
}

// filters: the list has the runs that its filters name, and no others.
func (w *world) filters(t *testing.T, waiting, failed string) {
	decided := w.start("decides-"+w.queue, decides, nil)
	link := func(id string) string { return `href="/runs/` + url.PathEscape(id) + `"` }
	w.shows("/?person=1", link(decided))
	w.shows("/?label=team%3Dsales", link(waiting))
	w.shows("/?status=failed", link(failed))
	w.shows("/?status=failed", `<span class="error below">step fetch: 2 of 2 iterations failed`)
	w.shows("/?status=retry_pending", link(waiting))
	for query, has := range map[string][]bool{
		"": {true, true, true}, "playbook=patients": {true, false, false}, "status=failed": {false, true, false}, "status=retry_pending": {true, false, true},
		"since=1h": {true, true, true}, "since=1h&playbook=nightly": {false, true, false}, "label=team%3Dsales": {true, false, false},
		"label=team%3Dops": {false, false, false}, "person=1": {false, false, true},
	} {
		_, body, _ := w.get("/?" + query)
		for i, id := range []string{waiting, failed, decided} {
			require.Equal(t, has[i], strings.Contains(body, link(id)), "%s: %s", query, id)
		}
	}
	w.shows("/", "fetch: needs a person, after attempt 1: GET http://127.0.0.1:1/")
	w.shows("/runs/"+decided, "Needs a person")
	for _, query := range []string{"status=gone", "label=sales", "page=%25"} {
		status, _, _ := w.get("/?" + query)
		require.Equal(t, http.StatusBadRequest, status, query)
	}
}

// post posts the form of a page, without a script, and gives where it leads.
func (w *world) post(t *testing.T, page, to string, form url.Values) (status int, body string) {
	t.Helper()
	_, shown, _ := w.get(page)
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(shown)
	require.NotNil(t, token, "%s has no form", page)
	form.Set("token", token[1])
	answer, err := w.pages.PostForm(w.url+to, form)
	require.NoError(t, err)
	status, body, _ = read(t, answer)
	return status, body
}

// inbox: approvals are answered in place, in the name of who is signed in.
func (w *world) inbox(t *testing.T) {
	id := w.start("asks/"+w.queue, approval, map[string]any{"text": hostile})
	body := w.shows("/inbox", "All rows of")
	require.Contains(t, body, "<h2 id=\"card-0\">Load October?</h2>")
	require.Contains(t, body, "All rows of")
	require.False(t, strings.Contains(body, "<img src=x"))
	require.Less(t, strings.Index(body, `name="form.zeta"`), strings.Index(body, `name="form.alpha"`), "the author's order")
	of := "/inbox?run=" + url.QueryEscape(id)
	w.shows("/runs/"+url.PathEscape(id), `<a href="`+of+`">Answer in the inbox</a>`)
	_, body, _ = w.get(of)
	require.Equal(t, 1, strings.Count(body, `name="form.zeta"`))
	status, _, _ := w.get("/inbox?run=nobody-has-this")
	require.Equal(t, http.StatusNotFound, status)
	to := "/inbox/" + url.PathEscape(id)
	form := func() url.Values {
		return url.Values{"step": {"ask"}, "visit": {"1"}, "attempt": {"1"}, "option": {"approve"}, "form.alpha": {"9"}, "by": {"eve"}}
	}
	status, body = w.post(t, "/inbox", to, form())
	require.Equal(t, http.StatusUnprocessableEntity, status, body)
	require.Contains(t, body, "the form needs zeta")
	require.Contains(t, body, `value="9"`, "what was typed stays")
	right := form()
	right.Set("form.zeta", "yes")
	status, body = w.post(t, "/inbox", to, right)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `<span class="done" aria-hidden="true">✓</span> Approved by ada@host. <a href="/runs/`)
	var result protocol.Result
	require.NoError(t, testenv.WaitOutcome(t, w.env.Client().GetWorkflow(t.Context(), id, ""), &result))
	require.Equal(t, "ada@host", result.Result.Data.(map[string]any)["by"])
	w.rejects(t)
}

// stale: a page whose server is away says that it is old, until it is refreshed again.
func (w *world) stale(browser *testenv.Browser, until func(string), waiting string) {
	path := "/runs/" + url.PathEscape(waiting)
	browser.Open(w.url + path)
	until(fmt.Sprintf(`location.pathname === %q && document.readyState === 'complete'`, path))
	browser.Eval(`void (window.responds = window.fetch, window.fetch = () => Promise.reject(new TypeError('away')))`)
	until(`document.querySelector('#stale')?.textContent.endsWith(' UTC: the server of this page does not respond. Start it again with starter ui.') === true`)
	browser.Eval(`void (window.fetch = async () => new Response('', {status: 503}))`)
	until(`document.querySelector('#stale').textContent.endsWith(': the server responds with HTTP 503.')`)
	browser.Eval(`void (window.fetch = window.responds)`)
	until(`document.querySelector('#stale') === null`)
}

// rejects: what turns something down is confirmed, as it cannot be undone, and keeps what was typed.
func (w *world) rejects(t *testing.T) {
	id := w.start("turned-down/"+w.queue, approval, map[string]any{"text": hostile})
	of := "/inbox?run=" + url.QueryEscape(id)
	w.shows(of, "All rows of")
	to := "/inbox/" + url.PathEscape(id)
	form := url.Values{"step": {"ask"}, "visit": {"1"}, "attempt": {"1"}, "option": {"reject"}, "comment": {"not " + hostile}}
	status, body := w.post(t, of, to, form)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "An answer cannot be undone.")
	require.Contains(t, body, `name="option" value="reject"`)
	require.NotContains(t, body, "<img src=x")
	_, open, _ := w.get(of)
	require.Contains(t, open, "All rows of", "nothing was answered yet")
	form.Set("confirmed", "yes")
	status, body = w.post(t, of, to, form)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "Rejected by ada@host.")
	var result protocol.Result
	require.NoError(t, testenv.WaitOutcome(t, w.env.Client().GetWorkflow(t.Context(), id, ""), &result))
	require.Equal(t, "reject", result.Result.Data.(map[string]any)["option"])
	require.Equal(t, "not "+hostile, result.Result.Data.(map[string]any)["comment"])
}

// schedules are paused and resumed with who did it.
func (w *world) schedules(t *testing.T) {
	id := "nightly-" + w.queue
	w.schedule(t, id)
	w.shows("/schedules", id)
	status, body := w.post(t, "/schedules", "/schedules/"+id, url.Values{"command": {"pause"}})
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, id+" is paused.")
	described, err := w.env.Client().ScheduleClient().GetHandle(t.Context(), id).Describe(t.Context())
	require.NoError(t, err)
	require.True(t, described.Schedule.State.Paused)
	require.Equal(t, "by ada@host", described.Schedule.State.Note)
	status, body = w.post(t, "/schedules", "/schedules/"+id, url.Values{"command": {"resume"}})
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, id+" is resumed.")
	status, body = w.post(t, "/schedules", "/schedules/"+id, url.Values{"command": {"trigger"}, "reason": {"the API was down"}})
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "A run of "+id+" is started.")
	run, err := url.PathUnescape(regexp.MustCompile(`/runs/(` + id + `[^"]*)"`).FindStringSubmatch(body)[1])
	require.NoError(t, err)
	body = w.shows("/runs/"+url.PathEscape(run), "by ada@host: the API was down")
	require.Contains(t, body, `Triggered by ada@host in the schedule</span> <a href="/schedules?id=`+id)
	body = w.shows("/schedules?id="+id, `<a href="/runs/`+url.PathEscape(run)+`"`)
	require.Contains(t, body, "every 6h")
	require.Equal(t, 1, strings.Count(body, "Start a run now"))
	status, _, _ = w.get("/schedules?id=nobody-has-this")
	require.Equal(t, http.StatusNotFound, status)
	require.Eventually(t, func() bool {
		described, err := w.env.Client().ScheduleClient().GetHandle(t.Context(), id).Describe(t.Context())
		return err == nil && !described.Schedule.State.Paused && described.Info.NumActions == 1
	}, patience, 100*time.Millisecond)
	status, _ = w.post(t, "/schedules", "/schedules/"+id, url.Values{"command": {"drop"}})
	require.Equal(t, http.StatusBadRequest, status)
	for i := range 9 {
		w.schedule(t, fmt.Sprintf("nightly-%s-%d", w.queue, i))
	}
	last := id + "-8"
	w.shows("/schedules?after="+id+"-7", last)
	body = w.shows("/schedules", "Next page")
	require.NotContains(t, body, last)
	next := html.UnescapeString(regexp.MustCompile(`href="([^"]*)" rel="next"`).FindStringSubmatch(body)[1])
	_, body, _ = w.get(next)
	require.Contains(t, body, last)
	require.Contains(t, body, "First page")
	require.NotContains(t, body, "Next page")
}

// schedule makes a schedule.
func (w *world) schedule(t *testing.T, id string) {
	t.Helper()
	_, err := w.env.Client().ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: id, Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: 6 * time.Hour}}},
		Action: &client.ScheduleWorkflowAction{
			ID: id, Workflow: protocol.PlaybookWorkflowName, TaskQueue: w.queue, StaticSummary: "nightly",
			Args: []any{protocol.Input{Name: "book.yaml", Source: fails}},
		},
	})
	require.NoError(t, err)
}

// playbooks: a run is started with what was typed, in the types of the workload.
func (w *world) playbooks(t *testing.T) {
	_, body, _ := w.get("/playbooks")
	require.Contains(t, body, "1 problem")
	status, body, _ := w.get("/playbooks/broken")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "broken.yaml:1:1: &lt;img")
	require.NotContains(t, body, "Start a run")
	require.Contains(t, body, `alt="The steps of the playbook`, "what is known of it is drawn")
	status, _, _ = w.get("/playbooks/" + url.PathEscape("../asks"))
	require.Equal(t, http.StatusNotFound, status)
	_, body, _ = w.get("/playbooks/asks")
	require.Contains(t, body, "<h1><bdi>inputs</bdi></h1>\n<p class=\"faint\"><bdi>asks.yaml</bdi></p>", "its name, with the file beside it")
	require.False(t, strings.Contains(body, "hush"), "the default of a secret is shown")
	form := url.Values{
		"in.count": {"many"}, "in.day": {"1:30"}, "in.list": {"[1, 2]"}, "in.api_token": {""},
	}
	status, body = w.post(t, "/playbooks/asks", "/playbooks/asks", form)
	require.Equal(t, http.StatusUnprocessableEntity, status)
	require.Contains(t, body, `Count: &#34;many&#34; is not JSON`)
	form.Set("in.count", "4")
	status, body = w.post(t, "/playbooks/asks", "/playbooks/asks", form)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "The run has started.")
	var result protocol.Result
	require.NoError(t, testenv.WaitOutcome(t, w.env.Client().GetWorkflow(t.Context(), "started/asks"+w.queue, ""), &result))
	require.Equal(t, map[string]any{"count": 4, "day": "1:30", "list": []any{1, 2}, "sure": false, "api_token": "hush"}, result.Result.Data)
}

// access: who may see pages, and who may change something.
func (w *world) access(t *testing.T) {
	plain := &http.Client{}
	request := func(method, path string, change func(*http.Request)) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader("command=pause&reason=x"))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		change(r)
		answer, err := plain.Do(r)
		require.NoError(t, err)
		status, body, _ := read(t, answer)
		return status, body
	}
	signedIn := func(r *http.Request) {
		at, _ := url.Parse(w.url)
		for _, one := range w.pages.Jar.Cookies(at) {
			r.AddCookie(one)
		}
	}
	status, body := request(http.MethodGet, "/", func(*http.Request) {})
	require.Equal(t, http.StatusUnauthorized, status)
	require.NotContains(t, body, "patients")
	status, _ = request(http.MethodGet, "/?key=wrong", func(*http.Request) {})
	require.Equal(t, http.StatusUnauthorized, status)
	status, _ = request(http.MethodGet, "/", func(r *http.Request) { signedIn(r); r.Host = "evil.example" })
	require.Equal(t, http.StatusMisdirectedRequest, status, "a name that leads here by another's DNS")
	status, _ = request(http.MethodGet, "/", func(r *http.Request) { r.Header.Set("X-Forwarded-User", "eve") })
	require.Equal(t, http.StatusUnauthorized, status)
	for name, change := range map[string]func(*http.Request){
		"no token":    func(*http.Request) {},
		"other site":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"same domain": func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
	} {
		status, body = request(http.MethodPost, "/runs/ui-"+w.queue+"/do", func(r *http.Request) { signedIn(r); change(r) })
		require.Equal(t, http.StatusForbidden, status, "%s: %s", name, body)
	}
	_, body, _ = w.get("/runs/ui-" + w.queue)
	require.False(t, strings.Contains(body, ">paused<"))
}

// tokens: who signs in with one sees runs, and changes them as an operator.
func (w *world) tokens(t *testing.T) {
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	post := func(path string, form url.Values) (int, string) {
		answer, err := browser.PostForm(w.url+path, form)
		require.NoError(t, err)
		status, body, _ := read(t, answer)
		return status, body
	}
	body := ""
	token := func() string { return regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(body)[1] }
	run := "/runs/ui-" + w.queue
	answer, err := browser.Get(w.url + run)
	require.NoError(t, err)
	status, body, _ := read(t, answer)
	require.Equal(t, http.StatusUnauthorized, status)
	require.Contains(t, body, "<h1>Sign in</h1>")
	require.NotContains(t, body, "patients")
	status, body = post("/sign-in", url.Values{"secret": {"eve"}})
	require.Equal(t, http.StatusUnauthorized, status)
	require.Contains(t, body, "This token is unknown")
	for _, role := range []string{"viewer", "operator"} {
		status, body = post("/sign-in", url.Values{"secret": {"grace/" + role}})
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, body, "<bdi>grace</bdi>")
		status, shown := post(run+"/do", url.Values{"token": {token()}, "command": {"pause"}, "step": {"fetch"}})
		if role == "viewer" {
			require.Equal(t, http.StatusForbidden, status)
			require.Contains(t, shown, "You can see runs here, but not change them.")
			status, shown = post("/sign-out", url.Values{"token": {token()}})
			require.Equal(t, http.StatusUnauthorized, status)
			require.Contains(t, shown, "<h1>Sign in</h1>")
			continue
		}
		require.Equal(t, http.StatusOK, status)
		require.Contains(t, shown, "paused by grace")
		status, _ = post(run+"/do", url.Values{"token": {token()}, "command": {"resume"}, "step": {"fetch"}})
		require.Equal(t, http.StatusOK, status)
	}
}

// looks: nothing is wider than the window, every control has a name, and what comes
// from data stays text.
func (w *world) looks(t *testing.T, browser *testenv.Browser, until func(string), waiting, ended string) {
	for name, path := range map[string]string{
		"runs": "/", "run": "/runs/" + waiting, "failed": "/runs/" + url.PathEscape(ended), "step": "/runs/" + waiting + "/steps/fetch",
		"events": "/runs/" + url.PathEscape(ended) + "/events", "timeline": "/runs/" + url.PathEscape(ended) + "/timeline", "log": "/runs/" + url.PathEscape(ended) + "/log", "confirm": "/runs/" + waiting + "/confirm?command=cancel", "inbox": "/inbox", "lists": "/failed", "schedules": "/schedules", "books": "/playbooks", "book": "/playbooks/asks",
	} {
		browser.Open(w.url + path)
		until(fmt.Sprintf(`location.pathname + location.search === %q && document.readyState === 'complete'`, path))
		for _, width := range []int{320, 390, 768, 1280, 1920} {
			for _, scheme := range []string{"light", "dark"} {
				browser.Screen(width, scheme)
				require.Equal(t, "true", browser.Eval(`document.documentElement.scrollWidth <= innerWidth`), "%s at %d", name, width)
				require.Equal(t, "true", browser.Eval(`[...document.querySelectorAll('td.run')].every(cell => cell.offsetWidth >= 150)`), "%s at %d: the names of runs have room", name, width)
				if folder := pictures(); folder != "" {
					browser.Picture(filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)))
				}
			}
		}
		require.NotEqual(t, "hacked", browser.Eval(`document.title`))
		controls := browser.Controls()
		require.NotEmpty(t, controls)
		for _, control := range controls {
			require.NotEmpty(t, control.Name, "%s: a %s has no name", name, control.Role)
		}
		require.Equal(t, "0", browser.Eval(`document.querySelectorAll('[style], [onclick], [onerror], [tabindex]:not([tabindex="0"])').length`))
		require.Equal(t, "1", browser.Eval(`document.querySelectorAll('h1').length`))
		require.Equal(t, "0", browser.Eval(`new Promise(done => { new ReportingObserver(all => done(all.length), {types: ['csp-violation'], buffered: true}).observe();
			setTimeout(() => done(0), 20) })`), "%s: the policy of the page is violated", name)
		tabs(t, browser, name)
		require.Equal(t, "system-ui", browser.Eval(`getComputedStyle(document.body).fontFamily.split(',')[0]`), "the style counts")
	}
}

// pictures is the folder for pictures of pages, "" for none.
func pictures() string { return os.Getenv("REPRISE_TEST_PICTURES") }

// tabs: the key Tab leads from control to control in the order of the page, and each shows
// that it is the one.
func tabs(t *testing.T, browser *testenv.Browser, name string) {
	const most = 25
	browser.Eval(`document.activeElement.blur(); scrollTo(0, 0)`)
	before := "-1"
	for i := range most {
		browser.PressTab()
		if i == 0 { // from now on nothing on the page is replaced for a while
			browser.Eval(`window.order = [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')]
				.filter(c => c.checkVisibility() && !c.disabled)`)
		}
		at := browser.Eval(`order.indexOf(document.activeElement)`)
		switch {
		case at == "-1": // a part of the page that scrolls
			continue
		case at == "0" && before != "-1": // from the last one to the first
			require.Equal(t, "true", browser.Eval(before+" >= order.length - 2"), "%s: the last was control %s", name, before)
			return
		}
		require.Equal(t, "true", browser.Eval(at+" > "+before), "%s: from control %s to %s", name, before, at)
		require.NotEqual(t, "none", browser.Eval(`getComputedStyle(document.activeElement).outlineStyle`), "%s: control %s", name, at)
		before = at
	}
}

// withoutScript: a run is paused and resumed, and its page read, where scripts are off.
func (w *world) withoutScript(t *testing.T, browser *testenv.Browser, until func(string), id string) {
	browser.EnableScripts(false)
	defer browser.EnableScripts(true)
	for _, step := range []struct{ command, verdict string }{{"pause", "Paused for"}, {"resume", "Waiting to retry"}} {
		browser.Open(w.url + "/runs/" + id)
		until(fmt.Sprintf(`location.pathname === %q && !!document.querySelector('button[value=%s]')`, "/runs/"+id, step.command))
		browser.Click(fmt.Sprintf("button[value=%s]", step.command))
		until(fmt.Sprintf(`!!document.querySelector('.note[role=status], .fault[role=status]') && document.querySelector('.verdict').innerText.startsWith(%q)`, step.verdict))
		if step.command == "pause" {
			w.shows("/?person=1", "/runs/"+id)
		}
	}
	browser.Eval(`document.querySelector('.verdict').dataset.stays = 'yes'`)
	browser.Click(`#input summary`)
	until(`document.querySelector('#input').open`)
	require.Equal(t, "yes", browser.Eval(`document.querySelector('.verdict').dataset.stays`))
}

// framed: a page elsewhere that has one of these in a frame shows nothing of it.
func (w *world) framed(t *testing.T, browser *testenv.Browser, until func(string)) {
	trap := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			_, _ = fmt.Fprintf(out, "<title>trap</title><iframe src=/harmless></iframe><iframe src=%q></iframe>", w.url+"/")
		}
	}))
	defer trap.Close()
	browser.Open(trap.URL)
	until(`document.title === 'trap' && document.readyState === 'complete'`)
	require.Eventually(t, func() bool {
		return maps.Equal(browser.FramesShown(), map[string]bool{trap.URL + "/harmless": true, w.url + "/": false})
	}, patience, 50*time.Millisecond, "%v", browser.FramesShown())
}

// buttons: each is pressed, and its effect is in the run.
func (w *world) buttons(t *testing.T, browser *testenv.Browser, until func(string), id string) {
	press := func(path, command, reason string, fields ...string) {
		t.Helper()
		browser.Open(w.url + path)
		until(fmt.Sprintf(`location.pathname === %q && !!document.querySelector('button[value=%s]')`, path, command))
		browser.Eval(fmt.Sprintf(`document.getElementById('reason').value = %q`, reason))
		for i := 0; i < len(fields); i += 2 {
			browser.Eval(fmt.Sprintf(`document.getElementById(%q).value = %q`, fields[i], fields[i+1]))
		}
		browser.Eval(fmt.Sprintf(`document.querySelector('button[value=%s]').click()`, command))
	}
	run, step := "/runs/"+id, "/runs/"+id+"/steps/fetch"
	press(run, "pause", "the API is "+hostile)
	until(`document.querySelector('[role=status]').innerText.startsWith('Paused; no new attempts start')`)
	until(`document.body.innerText.includes('paused by ada@host: the API is <img')`)
	press(run, "resume", "")
	until(`document.querySelector('[role=status]').innerText === 'Resumed.'`)
	press(step, "retry-now", "", "index", "1")
	until(`document.querySelector('[role=status]').innerText.includes('Step fetch[1] retried now')`)
	press(step, "set", "", "rate_limit", "100/m")
	until(`document.querySelector('[role=status]').innerText.includes('now has rate_limit=100/m')`)
	press(step, "pause", "")
	until(`document.querySelector('[role=status]').innerText.includes('Step fetch paused')`)
	press(step, "resume", "")
	until(`document.querySelector('[role=status]').innerText.includes('Step fetch resumed')`)
	press(step, "skip", "", "index", "2")
	until(`document.title.startsWith('Skip what waits') && document.readyState === 'complete' && !!document.querySelector('.act button')`)
	browser.Eval(`document.querySelector('#reason').value = 'nobody needs it'; document.querySelector('.act button').click()`)
	until(`document.querySelector('[role=status]')?.innerText.includes('Step fetch[2] skipped')`)

	press(run, "cancel", "")
	until(`document.title.startsWith('Cancel the run')`)
	browser.Open(w.url + run) // followed from here on by the script
	until(`document.querySelector('#live[data-live] .verdict') !== null`)
	browser.Eval(`window.stays = true`)
	status, body := w.post(t, run, run+"/do", url.Values{"command": {"cancel"}, "confirmed": {"yes"}, "reason": {"the night is over"}})
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "Cancelling (patients")
	until(`window.stays && document.querySelector('.verdict').innerText.startsWith('Cancelled after')`)
	until(`!document.querySelector('#live[data-live]')`)
	press(run, "reprocess", "again")
	until(`document.title.startsWith('Run failed iterations again') && document.readyState === 'complete' && !!document.querySelector('.act button')`)
	browser.Eval(`document.querySelector('.act button').click()`)
	until(`document.querySelector('[role=status] a')?.innerText === ` + fmt.Sprintf("%q", id+"-again"))
	press(run, "run", "once more")
	until(`document.title.startsWith('Run again') && document.readyState === 'complete' && !!document.querySelector('.act button')`)
	browser.Eval(`document.querySelector('.act button').click()`)
	until(`document.querySelector('[role=status] a')?.innerText === ` + fmt.Sprintf("%q", id+"-anew"))

	reader := &runs.Reader{Client: w.env.Client(), Namespace: w.env.Namespace}
	found, err := reader.Find(t.Context(), id, "")
	require.NoError(t, err)
	history := testenv.Histories(t, w.env.Client(), id, found.RunID)[0].History.String()
	for _, want := range []string{"the API is", "nobody needs it", "the night is over", "ada@host", "per_seconds"} {
		require.True(t, strings.Contains(history, want), want)
	}
}
