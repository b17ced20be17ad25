package ui_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/start"
	"reprise/internal/test/testenv"
	"reprise/workflows/protocol"
)

// breaks fails with a long answer, after a page that went well and a retry.
const breaks = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: breaks}
workload: {api: "http://127.0.0.1:1", api_token: ""}
workflow:
  - step: fetch
    tool: http
    url: "{{ workload.api }}/orders"
    params: {page: 2, api_token: "{{ workload.api_token }}"}
    retry:
      - when: "{{ error.status == 500 }}"
        then: {max_attempts: 2, delay: 100ms}
    next: [each]
  - step: each
    vars: {a: 1}
`

// TestCauseAndTimeline: the page of a failed run has the request, the answer with both ends, and the policy that decided; and its
// timeline has the attempts and waits, each of which leads to its event.
func TestCauseAndTimeline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var long strings.Builder
	for i := range 300 {
		fmt.Fprintf(&long, "at frame %d of the server, in a function with a long name, of a module\n", i)
	}
	api := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "text/plain")
		out.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprint(out, long.String(), "Caused by: the disk is full")
	}))
	defer api.Close()
	id := w.start("breaks-"+w.queue, breaks, map[string]any{"api": api.URL, "api_token": "hush"})
	body := w.shows("/runs/"+id, "Failed after")
	cause := between(body, `class="cause"`, "</section>")
	for _, want := range []string{
		"<code>" + api.URL + "/orders", "HTTP 500", "retry[1], line 11", "It was exhausted after 2 attempts", "at frame 0 of", "Caused by: the disk is full", "bytes with",
	} {
		require.Contains(t, cause, want)
	}
	require.NotContains(t, body, "hush")

	loop := w.start("looped-"+w.queue, fails, nil)
	w.shows("/runs/"+loop, "Failed after")
	_, body, _ = w.get("/runs/" + loop + "/timeline")
	require.Equal(t, 2, strings.Count(body, `class="line iteration"`))
	require.Equal(t, 2, strings.Count(body, `<rect class="attempt failed" x`), "the attempts of iterations too")

	_, body, _ = w.get("/runs/" + id + "/timeline")
	require.Equal(t, 2, strings.Count(body, `<rect class="attempt failed" x`), body)
	require.Contains(t, body, "attempt 1")
	require.Contains(t, body, "wait (failure)")

	browser := testenv.NewBrowser(t)
	browser.Open(w.url + "/?key=" + key)
	until := func(expression string) {
		t.Helper()
		require.Eventually(t, func() bool { return browser.Eval(expression) == "true" }, patience, 50*time.Millisecond, "%s: %s", expression, browser.Text())
	}
	until(`document.title === 'Runs – Reprise'`)
	browser.Open(w.url + "/runs/" + id)
	until(fmt.Sprintf(`location.pathname === %q && document.querySelectorAll('#timeline rect.attempt.failed').length === 3`, "/runs/"+id)) // one is in the legend
	require.Equal(t, "true", browser.Eval(`document.querySelectorAll('#timeline .axis text').length > 1`))
	browser.Eval(`location.href = document.querySelectorAll('#timeline .line a[aria-label^="attempt 2"]')[0].getAttribute('href')`)
	until(`location.hash === '#attempt-1-2' && !!document.querySelector('tr:target')`)
	require.Contains(t, browser.Eval(`document.querySelector('tr:target').innerText`), "attempt 2")
	require.Equal(t, "/runs/"+url.PathEscape(id)+"/events", browser.Eval(`location.pathname`))
}

// parent runs another playbook, in which an iteration fails.
const parent = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: parent}
workflow:
  - step: below
    tool: playbook
    workflow:
      - step: fetch
        tool: http
        url: "http://127.0.0.1:1/{{ item }}"
        loop: {in: [1, 2], iterator: item}
`

// TestWaysBetweenRuns: a run leads to those that it has started, to the one that has started it, and to its playbook's others.
func TestWaysBetweenRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start("above-"+w.queue, parent, nil)
	body := w.shows("/runs/"+id, "Failed after")
	child := regexp.MustCompile(`runs <a href="(/runs/[^"]+)"`).FindStringSubmatch(body)
	require.NotNil(t, child)
	_, body, _ = w.get(child[1])
	require.Contains(t, body, `Started by step below, of</span> <a href="/runs/`+id+`"`)
	siblings := regexp.MustCompile(`Other runs of the step</span> <a href="([^"]+)"`).FindStringSubmatch(body)
	require.NotNil(t, siblings)
	_, body, _ = w.get("/runs/" + id + "/steps/below")
	require.Contains(t, body, `<a href="`+siblings[1]+`">All runs that this step started</a>`)
	w.shows(strings.ReplaceAll(siblings[1], "&amp;", "&"), `href="`+child[1]+`"`)
	_, body, _ = w.get("/runs/" + id + "/events")
	require.Contains(t, body, `run <a href="`+child[1]+`"`)
	_, body, _ = w.get("/runs/" + id)
	require.Contains(t, body, `Other runs of</span> <a href="/?playbook=parent"`)
}

// TestFailedIterations: they are grouped by cause, searched by error and element, and one of them, or all that are open, runs again.
func TestFailedIterations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start("letters-"+w.queue, fails, nil)
	of := `href="/runs/` + id + `"`
	body := w.shows("/failed", of)
	row := between(body, of, "</tr>")
	require.Contains(t, row, "2 iterations: ")
	require.Contains(t, row, "Run 2 open iterations again…")
	browser := testenv.NewBrowser(t)
	browser.Open(w.url + "/?key=" + key)
	require.Eventually(t, func() bool { return browser.Eval(`document.title`) == "Runs – Reprise" }, patience, 50*time.Millisecond)
	browser.Open(w.url + "/failed")
	browser.Screen(768, "light")
	require.Eventually(t, func() bool { return browser.Eval(`document.querySelector('td.step a') !== null`) == "true" }, patience, 50*time.Millisecond)
	require.Equal(t, "true", browser.Eval(`[...document.querySelectorAll('td.step a')].every(a => a.getClientRects().length === 1)`), "short names stay on one line")
	for query, has := range map[string]bool{"refused": true, "REFUSED": true, "no such error": false} {
		_, body, _ = w.get("/failed?q=" + url.QueryEscape(query))
		require.Equal(t, has, strings.Contains(body, of), query)
	}
	_, body, _ = w.get("/runs/" + id + "/steps/fetch")
	again := regexp.MustCompile(`href="(/runs/[^"]+/confirm\?[^"]+)">Run this one again`).FindStringSubmatch(body)
	require.NotNil(t, again)
	_, body, _ = w.get(strings.ReplaceAll(again[1], "&amp;", "&"))
	require.Contains(t, body, "<h1>Run iteration 0 of step fetch again?</h1>")
}

// TestPartialRunsSayWhy: a run that succeeded in part is listed with the first reason.
func TestPartialRunsSayWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	api := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/2" {
			out.WriteHeader(http.StatusNotFound)
		}
	}))
	defer api.Close()
	id := w.start("partial-"+w.queue, strings.Replace(fails, "http://127.0.0.1:1", api.URL, 1), nil)
	body := w.shows("/?q="+id, "of-partial_success\">partial success</span>")
	row := between(body, `href="/runs/`+id+`"`, "</tr>")
	require.Contains(t, row, "1 failed")
	require.Contains(t, row, "HTTP 404 from GET "+api.URL+"/2")
	parent := w.startPlan(start.Plan{WorkflowID: "parent-" + w.queue, Playbook: "parent", Input: protocol.Input{
		Name: "parent.yaml", Source: "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: parent}\nworkflow:\n  - {step: load, tool: playbook, path: nightly.yaml}\n",
		Files: map[string]string{"nightly.yaml": strings.Replace(fails, "http://127.0.0.1:1", api.URL, 1)},
	}})
	body = w.shows("/?q="+parent, "of-partial_success\">partial success</span>")
	require.Contains(t, between(body, `href="/runs/`+parent+`"`, "</tr>"), "the run that it started was a partial success")
}
