package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"reprise/internal/base/exitcode"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/starter/cli"
)

// pages are the page of runs as `starter ui` serves it, and somebody who has opened its link.
type pages struct {
	t    *testing.T
	base string
	link string // which signs a browser in
	http *http.Client
}

// openPages serves the page until the test ends.
func (d *desk) openPages(args ...string) *pages {
	d.t.Helper()
	ctx, stop := context.WithCancel(d.t.Context())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	args = append([]string{"ui", "--listen", "127.0.0.1:0", "--address", d.env.Address, "--namespace", d.env.Namespace, "--task-queue", d.queue}, args...)
	go func() {
		ended <- Main(ctx, args, cli.Streams{In: strings.NewReader(""), Out: in, Err: io.Discard})
		_ = in.Close()
	}()
	lines := bufio.NewReader(out)
	line := testenv.ReadLine(d.t, lines, "the link of starter ui")
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	d.t.Cleanup(func() {
		stop()
		require.Equal(d.t, exitcode.OK, testenv.Receive(d.t, ended, "the end of starter ui"))
	})
	link, err := url.Parse(strings.TrimSpace(strings.TrimPrefix(line, "Runs: ")))
	require.NoError(d.t, err)
	jar, _ := cookiejar.New(nil)
	p := &pages{t: d.t, base: "http://" + link.Host, link: link.String(), http: &http.Client{Jar: jar, Timeout: testenv.Within(time.Minute)}}
	p.read(p.http.Get(link.String()))
	return p
}

func (p *pages) read(answer *http.Response, err error) string {
	p.t.Helper()
	require.NoError(p.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(p.t, err)
	require.Equal(p.t, http.StatusOK, answer.StatusCode, "%s", body)
	return string(body)
}

// startedRun is the run that a page names which has started one.
var startedRun = regexp.MustCompile(`role="status">[^<]*<a href="[^"]*"><bdi>([^<]+)</bdi>`)

// press sends the form of a page, and gives the run that has started.
func (p *pages) press(page, to string, form url.Values) string {
	p.t.Helper()
	shown := p.read(p.http.Get(p.base + page))
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(shown)
	require.NotNil(p.t, token, "%s", shown)
	form.Set("token", token[1])
	answer, err := p.http.PostForm(p.base+to, form)
	body := p.read(answer, err)
	if started := startedRun.FindStringSubmatch(body); started != nil {
		return started[1]
	}
	id, found := strings.CutPrefix(answer.Request.URL.Path, "/runs/") // it leads to the run itself
	require.True(p.t, found, "%s", body)
	return id
}

// TestButtonsThatStartRuns: run again, run failed iterations again, and start: each starts what
// the command of the same name starts, and keeps who has asked for it, and why.
func TestButtonsThatStartRuns(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "greet.yaml"), []byte(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: greet}
workload: {name: world}
workflow: [{step: greet, vars: {text: "Hello, {{ name }}!"}}]
output: "{{ vars.text }}"
`), 0o600))
	name := "days-" + strings.ToLower(d.queue)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "days.yaml"), []byte(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: `+name+`}
partitions: {every: day, start: 2024-01-01, end: 2024-01-04}
workflow: [{step: greet, vars: {day: "{{ partition.key }}"}}]
`), 0o600))
	listed := "regions-" + strings.ToLower(d.queue)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "regions.yaml"), []byte(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: `+listed+`}
partitions: [eu, us, asia pacific]
workflow: [{step: greet, vars: {region: "{{ partition.key }}"}}]
output: "{{ vars.region }}"
`), 0o600))
	p := d.openPages("--playbooks", folder)
	missing := p.press("/playbooks/days", "/playbooks/days/backfill", url.Values{"reason": {"catching up"}})
	require.True(t, strings.HasPrefix(missing, name+".backfill"), missing)
	require.Equal(t, interpreter.Completed, d.ends(missing).Status)
	require.Contains(t, p.read(p.http.Get(p.base+"/playbooks/days")), "3 partitions, 3 done")
	first := d.start(`
  - step: fetch
    tool: http
    url: "http://127.0.0.1:1/{{ n }}"
    loop: {in: [5, 6], iterator: n}
`)
	require.EqualValues(t, "failed", d.ends(first).Status)
	run := "/runs/" + url.PathEscape(first)
	for command, reason := range map[string]string{"run": "it was the network", "reprocess": "the API is back"} {
		id := p.press(run, run+"/do", url.Values{"command": {command}, "confirmed": {"yes"}, "reason": {reason}})
		require.NotEqual(t, first, id)
		result := d.ends(id)
		require.Contains(t, result.Error.Message, "2 of 2 iterations failed", command)
		described, err := d.env.Client().DescribeWorkflowExecution(t.Context(), id, "")
		require.NoError(t, err)
		memo := map[string]string{}
		for _, name := range []string{"started_by", "reason"} {
			var text string
			require.NoError(t, converter.GetDefaultDataConverter().FromPayload(described.GetWorkflowExecutionInfo().GetMemo().GetFields()[name], &text))
			memo[name] = text
		}
		require.Equal(t, map[string]string{"started_by": cli.Whoami(), "reason": reason}, memo)
		require.Regexp(t, `execution_started +by `+regexp.QuoteMeta(cli.Whoami())+`, because: `+reason, strings.Join(strings.Fields(d.does("events", id)), " "))
		require.Contains(t, p.read(p.http.Get(p.base+"/runs/"+url.PathEscape(id))), "</time> by "+cli.Whoami()+": "+reason)
		if command == "reprocess" {
			require.Contains(t, d.does("dead-letters", "show", first+"/fetch#1/0"), "2 runs, the last "+id)
		}
	}
	require.Contains(t, p.read(p.http.Get(p.base+"/docs/tutorial.html")), "<h1")
	id := p.press("/playbooks/greet", "/playbooks/greet", url.Values{"in.name": {"Ada"}})
	result := d.ends(id)
	require.Equal(t, interpreter.Completed, result.Status)
	require.Equal(t, "Hello, Ada!", result.Result.Data)
	d.startsPartitions(p)
}

// startsPartitions: the form of a playbook with partitions offers those of a list, and takes the key of any other; a run of the
// chosen one starts. What no partition has starts nothing.
func (d *desk) startsPartitions(p *pages) {
	t := d.t
	browser := testenv.NewBrowser(t)
	until := func(expression string) {
		t.Helper()
		require.Eventually(t, func() bool { return browser.Eval(expression) == "true" }, testenv.Within(30*time.Second), 50*time.Millisecond, "%s: %s", expression, browser.Text())
	}
	opens := func(path, about string) {
		t.Helper()
		browser.Open(p.base + path)
		until(`location.pathname === "` + path + `" && document.querySelector('#partition') !== null`)
		browser.Eval(about)
		browser.Click(`form[action="` + path + `"] button`)
	}
	run := func() string {
		t.Helper()
		until(`location.pathname.startsWith('/runs/')`)
		id, err := url.PathUnescape(browser.Eval(`location.pathname.slice('/runs/'.length)`))
		require.NoError(t, err)
		return id
	}
	browser.Open(p.link)
	until(`document.title === 'Runs – Reprise'`)
	opens("/playbooks/regions", `1`)
	require.Equal(t, "false", browser.Eval(`document.querySelector('#partition').checkValidity()`), "a person has to choose one")
	opens("/playbooks/regions", `document.querySelector('#partition').value = 'asia pacific'`)
	result := d.ends(run())
	require.Equal(t, interpreter.Completed, result.Status)
	require.Equal(t, "asia pacific", result.Result.Data)
	opens("/playbooks/days", `document.querySelector('#partition').value = '2024-02-30'`)
	until(`document.querySelector('[role=alert]') !== null && document.querySelector('#partition').value === '2024-02-30'`)
	require.Contains(t, browser.Text(), "No run has started.")
	opens("/playbooks/days", `document.querySelector('#partition').value = '2024-01-02'`)
	require.Equal(t, interpreter.Completed, d.ends(run()).Status)
	require.Contains(t, p.read(p.http.Get(p.base+"/playbooks/regions")), "<button>Run 2 missing partitions</button>")
	rest := p.press("/playbooks/regions", "/playbooks/regions/backfill", url.Values{})
	require.Equal(t, interpreter.Completed, d.ends(rest).Status)
	require.Contains(t, p.read(p.http.Get(p.base+"/playbooks/regions")), "3 partitions, 3 done")
}
