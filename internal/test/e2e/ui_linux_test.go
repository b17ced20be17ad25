package e2e_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"reprise/internal/test/testenv"
)

// viewer looks at Temporal's web UI with a browser, as somebody would who looks for
// what went wrong.
type viewer struct {
	*world
	browser *testenv.Browser
}

// open leads to a page of a workflow: a tab of its own, or "" for the first.
func (v *viewer) open(id, tab string) {
	v.t.Helper()
	described, err := v.env.Client().DescribeWorkflowExecution(v.t.Context(), id, "")
	require.NoError(v.t, err)
	v.browser.Open(v.env.UIURL + "/namespaces/" + v.env.Namespace + "/workflows/" + url.PathEscape(id) + "/" +
		described.GetWorkflowExecutionInfo().GetExecution().GetRunId() + "/" + tab)
}

// uiPatience is how long a page may take to show what it has to.
const uiPatience = 3 * time.Minute

var notInName = regexp.MustCompile(`\W+`)

// sees waits until the page shows all of these texts, in frames too. TEST_PICTURES
// is a folder for pictures of what was seen.
func (v *viewer) sees(texts ...string) {
	v.t.Helper()
	shown := ""
	seen := func() bool {
		shown = strings.NewReplacer("⁄", "/", "\u00a0", " ").Replace(v.browser.Text()) // the UI sets fractions
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				return false
			}
		}
		return true
	}
	for began := time.Now(); !seen(); time.Sleep(10 * tick) {
		if time.Since(began) > uiPatience {
			v.picture()
			require.FailNow(v.t, "not all on the page", "%q, and it shows:\n%s", texts, shown)
		}
	}
	v.picture()
}

// picture keeps what the page shows.
func (v *viewer) picture() {
	v.t.Helper()
	if dir := os.Getenv("TEST_PICTURES"); dir != "" {
		_, at, _ := strings.Cut(v.browser.Eval("location.href"), "/workflows")
		v.browser.Picture(filepath.Join(dir, "ui"+notInName.ReplaceAllString(at, "_")+".png"))
	}
}

// settled waits until the server counts so many workflows of a run in each status.
func (v *viewer) settled(id string, counts map[string]int64) {
	v.t.Helper()
	require.Eventually(v.t, func() bool {
		for status, n := range counts {
			counted, err := v.env.Client().CountWorkflow(v.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
				Namespace: v.env.Namespace, Query: fmt.Sprintf("WorkflowId STARTS_WITH '%s' AND ExecutionStatus = '%s'", id, status),
			})
			if err != nil || counted.GetCount() != n {
				return false
			}
		}
		return true
	}, uiPatience, 10*tick)
}

// inOrder says that the page shows these texts first in this order.
func (v *viewer) inOrder(texts ...string) {
	v.t.Helper()
	v.sees(texts...)
	shown := v.browser.Text()
	for i := range texts[1:] {
		require.Less(v.t, strings.Index(shown, texts[i]), strings.Index(shown, texts[i+1]), "%q, then %q:\n%s", texts[i], texts[i+1], shown)
	}
}

// TestWebUI: who looks at a run in Temporal's web UI finds what failed, with its
// status and where, and what waits, what for and until when. Elements are texts there.
func TestWebUI(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	v := &viewer{world: w, browser: testenv.NewBrowser(t)}
	run := w.start(book(`
  - step: begin
    next: [single, batched]
  - step: single
    tool: http
    url: "{{ api }}/status/{{ item.code }}"
    loop: {collection: [{code: 200}, {code: 503}, {code: 401, n: "![x](/favicon.ico) [y](/y)"}], batch: 1, mode: parallel}
    retry: [{when: error.status == 503, then: {max_attempts: 5, delay: 4000s, jitter: none}}]
  - step: batched
    tool: http
    url: "{{ api }}/status/{{ item }}"
    loop: {collection: [401, 403, 200, 503], batch: 2, mode: parallel}
    retry: [{when: error.status == 503, then: {max_attempts: 5, delay: 4000s, jitter: none}}]
`), nil)
	id := run.GetID()
	v.settled(id, map[string]int64{"Running": 5, "Failed": 2, "Completed": 1}) // the list shows what there was when it was opened
	v.browser.Open(v.env.UIURL + "/namespaces/" + v.env.Namespace + "/workflows?query=" +
		url.QueryEscape("WorkflowId STARTS_WITH '"+id+"'"))
	v.sees(id, id+"/single#1/2", "5 RUNNING", "2 FAILED", "1 COMPLETED")

	v.open(id, "user-metadata")
	v.sees("batched\trunning\t4 iterations", "single\trunning\t3 iterations", "starter status "+id)
	v.browser.Open(v.browser.Eval(`[...document.querySelectorAll('iframe')].flatMap(f => [...f.contentDocument.links])
		.find(a => a.innerText == '3 iterations').href`))
	v.sees(id+"/single#1", "RUNNING", `single 2/3: {"code":503}`, `single 3/3: {"code":401,"n":"![x](/favicon.ico) [y](/y)"}`)

	v.open(id+"/single#1", "user-metadata")
	v.sees("1\t1\t1\t0\t0", "2\tHTTP 401\t1\t"+id+"/single#1/2",
		"1\tsingle[1]: attempt 2 of 5 after 1h6m40s: HTTP 503", id+"/single#1/1")
	if *soak { // each page costs a browser some seconds
		v.open(id+"/single#1/1", "history")
		v.inOrder(`"element"`, `"code": 503`, `"step": "single"`, "apiVersion: reprise/v1")
		v.open(id+"/single#1/2", "history")
		v.sees("FAILED", "HTTP 401")
		v.open(id+"/batched#1/0", "user-metadata")
		v.sees("FAILED", "batched: 2 failed", "0\tfailed\t1", "HTTP 401", "1\tfailed\t1", "HTTP 403")
	}
	v.open(id, "history")
	v.inOrder(`"workload"`, "apiVersion: reprise/v1")
	v.open(id+"/single#1/1", "timeline")
	v.sees("RUNNING", "drive", "single[1]", "single[1]: attempt 2 of 5 after 1h6m40s: HTTP 503")
	v.open(id+"/batched#1/2", "user-metadata")
	v.sees("RUNNING", "batched: 1 retry_pending, 1 completed", "batched[3]: attempt 2 of 5 after 1h6m40s: HTTP 503")
	w.cancel(run)
}
