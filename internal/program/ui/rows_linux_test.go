package ui_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/backfill"
	"reprise/internal/program/start"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// daily loads a day, with a watermark for each; one day fails.
const daily = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: NAME, schedule: {every: 24h}}
workload: {api: API}
partitions: {every: day, start: 2024-01-29, end: 2024-03-04}
workflow:
  - step: fetch
    tool: http
    url: "{{ api }}/{{ partition.key }}"
    sink: {tool: sqlite, path: rows.db, table: "a_long_table_name_of_orders_and_customers", mode: upsert, key: id, schema_contract: evolve}
`

// dailyBook is a playbook of partitions in the folder of a world, and what starts a backfill of it.
func (w *world) dailyBook(t *testing.T) (name, text string) {
	t.Helper()
	var requests atomic.Int64 // each changes all rows
	api := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/2024-02-03" {
			out.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(out, "No such day:\n", strings.Repeat("a line of a trace\n", 300), "the table is locked")
			return
		}
		out.Header().Set("Content-Type", "application/json")
		day := strings.ReplaceAll(strings.TrimPrefix(r.URL.Path, "/"), "-", "")
		n, rows := requests.Add(1), make([]string, 1234)
		for i := range rows {
			rows[i] = fmt.Sprintf(`{"id": %s%04d, "n": %d}`, day, i, n)
		}
		_, _ = fmt.Fprint(out, "[", strings.Join(rows, ","), "]")
	}))
	t.Cleanup(api.Close)
	name = "daily-" + strings.ToLower(w.queue)
	return name, strings.NewReplacer("NAME", name, "API", api.URL).Replace(daily)
}

// backfills starts a run for the partitions of a playbook that are missing.
func (w *world) backfills(ctx context.Context, text string) (string, error) {
	book, err := interpreter.LoadPlaybook("days.yaml", text)
	if err != nil {
		return "", err
	}
	matrix, err := backfill.Read(ctx, w.env.Client(), book, time.Now())
	if err != nil {
		return "", err
	}
	keys := matrix.SelectKeys(backfill.OnlyMissing)
	claim := matrix.BackfillClaim(keys)
	return w.startPlan(start.Plan{
		WorkflowID: "backfill-" + w.queue, Playbook: backfill.PlaybookName(book), Input: protocol.Input{
			Name: backfill.FileName("days.yaml"), Source: string(backfill.PlaybookSource(book, "days.yaml", 4)), Claim: &claim,
			Workload: expression.Of(backfill.BackfillWorkload(keys, nil)), Files: map[string]string{"days.yaml": text},
		},
	}), nil
}

// TestRowsAndPartitions: lists and the page of a playbook show rows, its page how fresh they are and a calendar of its partitions with a
// button that runs what is missing; nothing overflows, and no number breaks.
func TestRowsAndPartitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name, text := w.dailyBook(t)
	w.books[name] = text
	path := "/playbooks/" + name
	_, body, _ := w.get(path)
	require.Contains(t, body, "35 partitions, 35 missing")
	require.Contains(t, body, `<text x="84" y="10">8</text>`)
	w.shows("/playbooks", `href="`+path+`#partitions">35 days missing</a>`)
	require.Contains(t, body, "<button>Run 35 missing partitions</button>")
	for who, reading := range map[string]bool{"bob/reader": true, "eve/operator": false} {
		browser := w.signedIn(t, who)
		answer, err := browser.Get(w.url + path)
		require.NoError(t, err)
		_, body, _ := read(t, answer)
		require.Contains(t, body, "35 partitions, 35 missing", who)
		require.Equal(t, !reading, strings.Contains(body, "Run 35 missing partitions"), who)
	}
	forged, err := w.pages.PostForm(w.url+path+"/backfill", url.Values{"token": {"forged"}})
	require.NoError(t, err)
	status, _, _ := read(t, forged)
	require.Equal(t, http.StatusForbidden, status, "a form of another page starts nothing")
	status, body = w.post(t, path, path+"/backfill", url.Values{"reason": {"catching up"}})
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "The backfill has started.")
	var result protocol.Result
	require.NoError(t, testenv.WaitOutcome(t, w.env.Client().GetWorkflow(t.Context(), "backfill-"+w.queue, ""), &result))
	require.Equal(t, int64(34*1234), result.Rows.Totals().Written)
	w.shows("/?q=backfill-"+w.queue, `title="41,956 read, 41,956 written">41,956</span>`)
	_, body, _ = w.get("/runs/backfill-" + w.queue)
	require.Contains(t, body, `Backfill of</span> <a href="`+path+`"`)
	_, body, _ = w.get("/?" + url.Values{"q": {"backfill-" + w.queue + "/backfill#"}}.Encode())
	require.Contains(t, body, `href="/runs/`+url.PathEscape("backfill-"+w.queue+"/backfill#1/"), "runs of partitions are found by their step")
	_, body, _ = w.get("/runs/backfill-" + w.queue)
	failed := regexp.MustCompile(`<dt>Failed run</dt><dd><a href="([^"]+)"[^>]*><bdi>` + name + ` 2024-02-03</bdi></a>, step <bdi>fetch</bdi></dd><dt>Its error</dt><dd>([^<]+)</dd>`).FindStringSubmatch(body)
	require.NotNil(t, failed, "what failed is linked, with the first line of its error")
	cause := between(body, `class="cause"`, "</section>")
	for _, want := range []string{"/2024-02-03</code>", "HTTP 404", "No policy of retry matched", "No such day:", "the table is locked</pre>"} {
		require.Contains(t, cause, want, "the cause is that of the run of the partition")
	}
	require.NotContains(t, body, "the first (index 5)", "the cause says that at length")
	status, body, _ = w.get(html.UnescapeString(failed[1]))
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "<h1><bdi>"+name+" 2024-02-03</bdi></h1>")
	child, err := url.PathUnescape(strings.TrimPrefix(html.UnescapeString(failed[1]), "/runs/"))
	require.NoError(t, err)
	named := `title="` + child + `"><bdi>` + name + " 2024-02-03</bdi></a>"
	for _, at := range []string{"/runs/backfill-" + w.queue + "/steps/backfill", "/?" + url.Values{"q": {"backfill-" + w.queue + "/backfill#"}, "status": {"failed"}}.Encode()} {
		_, body, _ = w.get(at)
		require.Contains(t, body, named, at)
	}
	body = w.shows("/?q=backfill-"+w.queue, "the table is locked")
	require.Contains(t, body, `<span class="error below">HTTP 404 from GET`, "what failed is the run of a partition")
	body = w.shows("/failed?run=backfill-"+w.queue, named)
	require.Contains(t, body, `title="iteration 5"><bdi>2024-02-03</bdi></a>`)
	require.Contains(t, between(body, "<summary>Response</summary>", "</details>"), "the table is locked")
	_, body, _ = w.get("/runs/backfill-" + w.queue + "/events?step=backfill")
	require.Contains(t, body, name+" 2024-02-03</bdi></a>")
	body = w.shows(path, "35 partitions, 34 done, 1 failed")
	w.shows("/playbooks", `href="`+path+`#partitions">1 day failed</a>`)
	require.Contains(t, body, "If the field is empty, the run loads 2024-03-03, the last complete partition.")
	require.Contains(t, body, "<button>Run 1 failed partition</button>")
	require.Contains(t, body, `aria-label="2024-02: 28 done, 1 failed"`)
	for i := range 3 {
		w.startPlan(start.Plan{WorkflowID: fmt.Sprintf("%s-%d", name, i), Playbook: name, Input: protocol.Input{
			Name: "days.yaml", Source: text, Partition: fmt.Sprintf("2024-02-1%d", i),
		}})
	}
	w.shows(path, `aria-label="Last runs as bars"`)
	require.Regexp(t, regexp.MustCompile(`Fresh: [^<]*, expected within 24h`), w.shows(path, "Fresh: "))
	w.shows(path, `<td data-label="Written" class="n">1,234</td>`)
	w.narrow(t, map[string]string{"list": "/?q=" + name, "playbook": path, "run": "/runs/" + name + "-0"})
}

// narrow looks at pages on a phone and on a desk, in both schemes.
func (w *world) narrow(t *testing.T, pages map[string]string) {
	browser := testenv.NewBrowser(t)
	browser.Open(w.url + "/?key=" + key)
	require.Eventually(t, func() bool { return browser.Eval(`document.title`) == "Runs – Reprise" }, patience, 50*time.Millisecond) // the page of the key leads there
	for name, path := range pages {
		browser.Open(w.url + path)
		require.Eventually(t, func() bool {
			return browser.Eval(fmt.Sprintf(`location.pathname + location.search === %q && document.readyState === 'complete'`, path)) == "true"
		}, patience, 50*time.Millisecond)
		for _, width := range []int{320, 1280} {
			for _, scheme := range []string{"light", "dark"} {
				browser.Screen(width, scheme)
				require.Equal(t, "true", browser.Eval(`document.documentElement.scrollWidth <= innerWidth`), "%s at %d", name, width)
				require.Equal(t, "[]", browser.Eval(brokenNumbers), "%s at %d: numbers and names of days stay on one line", name, width)
				require.Equal(t, "0", browser.Eval(`[...document.querySelectorAll('.calendar svg, .calendar .month')].filter(of => of.getBoundingClientRect().right > innerWidth).length`), "%s at %d", name, width)
				if folder := pictures(); folder != "" {
					browser.Picture(filepath.Join(folder, fmt.Sprintf("rows-%s-%d-%s.png", name, width, scheme)))
				}
			}
		}
		require.Equal(t, "0", browser.Eval(`document.querySelectorAll('[style]').length`), name)
	}
}

// brokenNumbers are the numbers of a page that are on more than one line, apart from those in texts of others.
const brokenNumbers = `JSON.stringify((() => {
	const broken = [], walk = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const node = walk.currentNode;
		if (!node.parentElement.checkVisibility() || node.parentElement.closest('bdi, pre, code, title, a, .error')) continue;
		for (const found of node.data.matchAll(/\d[\d,.]*\d/g)) {
			const range = document.createRange();
			range.setStart(node, found.index);
			range.setEnd(node, found.index + found[0].length);
			const tops = new Set([...range.getClientRects()].filter(r => r.width > 0).map(r => Math.round(r.top)));
			if (tops.size > 1) broken.push(found[0]);
		}
	}
	return broken;
})())`

// signedIn is a browser of somebody with a token.
func (w *world) signedIn(t *testing.T, token string) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	answer, err := browser.PostForm(w.url+"/sign-in", url.Values{"secret": {token}})
	require.NoError(t, err)
	status, _, _ := read(t, answer)
	require.Equal(t, http.StatusOK, status)
	return browser
}
