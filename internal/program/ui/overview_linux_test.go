package ui_test

import (
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/runs"
	"reprise/internal/program/ui"
	"reprise/internal/test/testenv"
)

// late takes longer than it is expected to.
const late = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: late}
expect: {within: 1s}
workflow:
  - step: fetch
    tool: http
    url: "http://127.0.0.1:1/"
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 10, delay: 1h}}]
`

// someFail succeeds in part.
const someFail = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: some}
workload: {text: "", api: ""}
workflow:
  - step: fetch
    tool: http
    url: "{{ api }}/{{ item }}"
    loop: {in: [200, 500], iterator: item}
`

// TestPartialSuccesses: a run that succeeded in part is no completed one: it has a count of its own, and needs attention with
// the last line of the response, which has the cause.
func TestPartialSuccesses(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/500" {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, strings.Repeat("  at Export.page\n", 300)+"Caused by: no such table\n")
		}
	}))
	t.Cleanup(api.Close)
	w := newWorld(t)
	partial := w.start("partial-"+w.queue, someFail, map[string]any{"api": api.URL})
	link := `href="/runs/` + url.PathEscape(partial) + `"`
	w.shows("/?status=partial_success&ended=today", link)
	_, body, _ := w.get("/?status=completed&ended=today")
	require.NotContains(t, body, link)
	require.Eventually(t, func() bool { // with the counts of ended runs, and the cause
		_, body, _ = w.get("/")
		return regexp.MustCompile(`<b>[1-9][0-9]*</b> Partial success`).MatchString(body) && strings.Contains(body, "Caused by: no such table</code>")
	}, patience, 100*time.Millisecond)
	require.Contains(t, between(body, "<h2>Needs attention</h2>", "</section>"), link)

	person := w.start("person-"+w.queue, strings.Replace(decides, "http://127.0.0.1:1/", api.URL+"/500", 1), nil)
	body = w.shows("/runs/"+person, "needs a person</span>")
	require.Contains(t, between(body, `<pre class="panel body">`, "</section>"), "Caused by: no such table", "the end of a long body is kept")
	require.Contains(t, body, `">Retry or skip</a>`)
	w.shows("/?q=person-", "needs a person</span>")
}

// TestStartPage: it leads with counts that filter, then has what needs somebody, with the cause and what to do next, and
// then the rest.
func TestStartPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	failed := w.start("overview-failed-"+w.queue, fails, nil)
	person := w.start("overview-person-"+w.queue, decides, nil)
	slow := w.start("overview-late-"+w.queue, late, nil)
	asks := w.start("overview-asks-"+w.queue, approval, nil)
	worked := w.queue
	w.queue = w.env.NewTaskQueue() // of no worker
	alone := w.start("overview-alone-"+w.queue, fails, nil)
	began := time.Now()
	w.shows("/?q=overview-alone", `no-worker">no worker</span>`)
	require.Less(t, time.Since(began), testenv.Within(15*time.Second))
	w.shows("/?q="+failed, ">failed</span>")
	w.shows("/?q="+person, "needs a person, after attempt")
	w.shows("/?q="+asks, "awaiting an answer")
	w.shows("/?q="+slow, "late by ")

	body := ""
	require.Eventually(t, func() bool { // the counts of ended runs last a moment, and runs of other tests are open too
		_, body, _ = w.get("/")
		return !strings.Contains(body, "<b>0</b> Failed") && strings.Contains(body, `href="/runs/`+url.PathEscape(asks)+`"`) &&
			strings.Contains(body, "<strong>No worker responds</strong> for 1 run of the task queue <bdi>"+w.queue)
	}, patience, 100*time.Millisecond)
	needs, rest := between(body, "<h2>Needs attention</h2>", "</section>"), body[strings.Index(body, "</section>"):]
	for id, want := range map[string][]string{
		failed: {"step fetch: 2 of 2 iterations failed", "Run failed iterations again…"}, person: {"needs a person, after attempt", "Retry or skip"},
		slow: {"expected within 1s", "See what it does"}, asks: {"Answer"},
	} {
		row := between(needs, `href="/runs/`+url.PathEscape(id)+`"`, "</tr>")
		require.NotEmpty(t, row, id)
		for _, text := range want {
			require.Contains(t, row, text, id)
		}
		require.False(t, strings.Contains(rest, `href="/runs/`+url.PathEscape(id)+`"`), "%s is listed twice", id)
	}
	row := between(rest, `href="/runs/`+url.PathEscape(alone)+`"`, "</tr>")
	require.NotContains(t, row, ">running</span>", "a run without a worker does not run")

	tiles := regexp.MustCompile(`<a (?:class="below" )?href="([^"]+)"[^>]*>(?:<b>)?([0-9]+)`).FindAllStringSubmatch(between(body, `class="counts"`, "</nav>"), -1)
	require.Len(t, tiles, 11)
	for _, tile := range tiles {
		status, filtered, _ := w.get(strings.ReplaceAll(tile[1], "&amp;", "&"))
		require.Equal(t, http.StatusOK, status)
		if tile[2] != "0" { // other tests have runs too
			require.NotContains(t, filtered, "No run matches.", "%s leads to what it counts, %s", tile[1], tile[2])
		}
		require.NotContains(t, filtered, "<h2>Needs attention</h2>", "a filter shows what it filters")
	}
	for query, has := range map[string]bool{"late": true, slow: true, "overview-l": true, "team=none": false, "econnrefused": false} {
		_, body, _ = w.get("/?q=" + url.QueryEscape(query))
		require.Equal(t, has, strings.Contains(body, `href="/runs/`+url.PathEscape(slow)+`"`), query)
		require.Contains(t, body, `<a href="/failed?q=`+strings.ReplaceAll(url.QueryEscape(query), "%3D", "%3d"), "what cannot be searched here is said")
	}
	for _, wrong := range []string{"ended=never", "now=sleeping"} {
		status, _, _ := w.get("/?" + wrong)
		require.Equal(t, http.StatusBadRequest, status, wrong)
	}
	for filter, has := range map[string]bool{"now=no-worker": true, "now=running": false, "now=waiting": false, "person=1": false} {
		_, body, _ = w.get("/?" + filter)
		require.Equal(t, has, strings.Contains(body, `href="/runs/`+url.PathEscape(alone)+`"`), "%s of a run without a worker", filter)
	}
	before := w.calls.Load()
	w.get("/")
	require.LessOrEqual(t, w.calls.Load()-before, int64(10))
	require.NotEqual(t, worked, w.queue)
	w.localTimes(t)
}

// between is the part of a text from one mark to the next other one.
func between(text, from, to string) string {
	_, rest, found := strings.Cut(text, from)
	if !found {
		return ""
	}
	part, _, _ := strings.Cut(rest, to)
	return part
}

// localTimes: a switch puts local times beside those in UTC, and the day begins at the local midnight.
func (w *world) localTimes(t *testing.T) {
	browser := testenv.NewBrowser(t)
	browser.Open(w.url + "/?key=" + key)
	until := func(expression string) {
		t.Helper()
		require.Eventually(t, func() bool { return browser.Eval(expression) == "true" }, patience, 50*time.Millisecond, "%s: %s", expression, browser.Text())
	}
	until(`document.title === 'Runs – Reprise' && !!document.querySelector('#zone:not([hidden])')`)
	require.Equal(t, "0", browser.Eval(`document.querySelectorAll('.local').length`))
	browser.Click("#zone")
	until(`document.querySelectorAll('.local').length > 3 && document.querySelector('#zone').getAttribute('aria-pressed') === 'true'`)
	browser.Eval(`document.querySelector('#live').dataset.old = 'yes'`)
	until(`!document.querySelector('#live').dataset.old && document.querySelectorAll('#live .local').length > 3`)
	browser.Click("#zone")
	until(`document.querySelectorAll('.local').length === 0`)
}

// TestServerAway: within 2 s a page says that the Temporal server is away, and what to start.
func TestServerAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	away := w.away(t, ui.Options{TemporalAway: "Start it again: starter dev."})
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar}
	answer, err := browser.Get(away + "/?key=" + key)
	require.NoError(t, err)
	_, _, _ = read(t, answer)
	for _, path := range []string{"/", "/runs/any", "/inbox", "/failed", "/schedules"} {
		began := time.Now()
		answer, err := browser.Get(away + path)
		require.NoError(t, err)
		status, body, _ := read(t, answer)
		require.Less(t, time.Since(began), testenv.Within(2*time.Second), path)
		require.Equal(t, http.StatusServiceUnavailable, status, path)
		require.Contains(t, body, `<p id="problem">The Temporal server does not respond. Start it again: starter dev.</p>`, path)
	}
}

// away is a server of pages whose Temporal server has ended.
func (w *world) away(t *testing.T, options ui.Options) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	through, end := relay(t, w.env.Address)
	gone, err := client.Dial(client.Options{HostPort: through, Namespace: w.env.Namespace})
	require.NoError(t, err)
	t.Cleanup(gone.Close)
	end()
	options.Client, options.Namespace, options.Runs = gone, w.env.Namespace, &runs.Reader{Client: gone, Namespace: w.env.Namespace}
	options.Access = ui.Access{Key: key, Owner: "ada@host", Hosts: []string{listener.Addr().String()}}
	server := &http.Server{Handler: ui.New(options), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + listener.Addr().String()
}

// relay passes connections on until it is ended.
func relay(t *testing.T, to string) (address string, end func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			mu.Lock()
			open = append(open, near, far)
			mu.Unlock()
			go func() { _, _ = io.Copy(far, near) }()
			go func() { _, _ = io.Copy(near, far) }()
		}
	}()
	end = func() {
		_ = listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, one := range open {
			_ = one.Close()
		}
	}
	t.Cleanup(end)
	return listener.Addr().String(), end
}
