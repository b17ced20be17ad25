package ui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/audit"
	"reprise/internal/observe/runs"
	"reprise/internal/program/ui"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// auditedPage is a server of pages with an audit log. Every person sends requests in a way of their own.
type auditedPage struct {
	t      *testing.T
	server *ui.Server
	path   string
	form   string // a page with a form, for everybody who may change something
}

func newAuditedPage(t *testing.T, options ui.Options) *auditedPage {
	t.Helper()
	p := &auditedPage{t: t, path: filepath.Join(t.TempDir(), "audit.log")}
	trail, err := audit.Open(p.path, "ui", nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, trail.Close()) })
	options.Audit = trail
	options.Access = ui.Access{
		Key: key, Owner: "ada", Holder: holder, UserHeader: "X-User", Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, Hosts: []string{"runs.example"},
	}
	p.server = ui.New(options)
	return p
}

// request sends a request for a person: link, NAME/operator, NAME/viewer, or the name that a proxy gives.
func (p *auditedPage) request(who, method, path string, form url.Values) (status int, body string) {
	p.t.Helper()
	request := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	switch {
	case who == "link":
		request.AddCookie(&http.Cookie{Name: "reprise_web", Value: key})
	case strings.Contains(who, "/"):
		request.AddCookie(&http.Cookie{Name: "reprise_web", Value: who})
	default:
		request.Header.Set("X-User", who)
	}
	return visits(p.server, "10.0.0.7:4000", request)
}

// post posts a form, with the token of the person's forms.
func (p *auditedPage) post(who, path string, form url.Values) (status int, body string) {
	p.t.Helper()
	_, shown := p.request(who, http.MethodGet, nowhere, nil)
	token := regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(shown)
	if token == nil { // a page without a form of its own
		_, shown = p.request(who, http.MethodGet, p.form, nil)
		token = regexp.MustCompile(`name="token" value="([^"]+)"`).FindStringSubmatch(shown)
	}
	require.NotNil(p.t, token, shown)
	form.Set("token", token[1])
	return p.request(who, http.MethodPost, path, form)
}

// lines are those of the log, in short. Their chain fits together.
func (p *auditedPage) lines() (all []string) {
	p.t.Helper()
	text, err := os.ReadFile(p.path)
	require.NoError(p.t, err)
	_, err = audit.Verify(strings.NewReader(string(text)), "")
	require.NoError(p.t, err)
	for one := range strings.Lines(string(text)) {
		var line audit.LoggedAction
		require.NoError(p.t, json.Unmarshal([]byte(one), &line))
		of := line.Target
		all = append(all, strings.TrimSpace(fmt.Sprint(line.Actor, " ", line.Proof, " ", line.Action, " ", line.Outcome, " ", strings.TrimSpace(strings.Join([]string{of.Playbook, of.Schedule, of.Run, of.Step}, " ")))))
	}
	return all
}

// TestStartsOfThePageAreAudited: with how the person is known, and the denials of viewers; nothing starts while the log cannot be
// written.
func TestStartsOfThePageAreAudited(t *testing.T) {
	t.Parallel()
	started := 0
	start := func(_ context.Context, name string, said ui.ChangedBy) (string, error) {
		if said.Reason == "fail" {
			return "", errors.New("no room")
		}
		started++
		return name + "-run", nil
	}
	const days = `{apiVersion: reprise/v1, kind: Playbook, metadata: {name: days}, partitions: {every: day, start: 2026-01-01, end: 2026-01-05}, workflow: [{step: a, vars: {x: 1}}]}`
	env := testenv.Temporal(t)
	p := newAuditedPage(t, ui.Options{Client: env.Client(), Namespace: env.Namespace, Runs: &runs.Reader{Client: env.Client(), Namespace: env.Namespace}, Library: &ui.Library{
		Names: func() []string { return []string{"days", "plain"} }, Has: func(string) bool { return true },
		Read: func(name string) (ui.Book, error) {
			text := days
			if name == "plain" {
				text = decides
			}
			book, err := interpreter.LoadPlaybook("book.yaml", text)
			return ui.Book{Playbook: book}, err
		},
		Start: func(ctx context.Context, name string, _ ui.StartForm, said ui.ChangedBy) (string, error) {
			return start(ctx, name, said)
		},
		Backfill: start,
	}})
	p.form = "/playbooks/plain"
	for _, who := range []string{"link", "ada/operator", "grace"} {
		status, body := p.post(who, "/playbooks/plain", url.Values{})
		require.Equal(t, http.StatusSeeOther, status, body)
	}
	status, _ := p.post("link", "/playbooks/plain", url.Values{"reason": {"fail"}})
	require.NotEqual(t, http.StatusSeeOther, status)
	status, body := p.post("link", "/playbooks/days/backfill", url.Values{"reason": {"fail"}})
	require.Equal(t, http.StatusConflict, status, body)
	for _, path := range []string{"/playbooks/plain", "/runs/nightly/do", "/schedules/nightly", "/inbox/nightly"} {
		status, _ = p.post("eve/viewer", path, url.Values{})
		require.Equal(t, http.StatusForbidden, status)
	}
	want := []string{
		"ada link start begun plain", "ada link start done plain  plain-run", "ada token start begun plain", "ada token start done plain  plain-run",
		"grace proxy start begun plain", "grace proxy start done plain  plain-run", "ada link start begun plain", "ada link start failed plain",
		"ada link backfill begun days", "ada link backfill failed days", "eve token change denied plain", "eve token change denied nightly",
		"eve token change denied nightly", "eve token change denied nightly",
	}
	require.Equal(t, want, p.lines())
	require.NoError(t, os.Rename(p.path, p.path+".away"))
	for path, who := range map[string]string{"/playbooks/plain": "link", "/playbooks/days/backfill": "grace", "/runs/nightly/do": "eve/viewer"} {
		status, body = p.post(who, path, url.Values{})
		require.Equal(t, http.StatusServiceUnavailable, status)
		require.Contains(t, body, "The audit log cannot be written")
	}
	require.Equal(t, 3, started)
}

// TestCommandsOfThePageAreAudited: what steers and answers a run, and what a run refuses.
func TestCommandsOfThePageAreAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := newAuditedPage(t, ui.Options{
		Client: w.env.Client(), Namespace: w.env.Namespace, Runs: &runs.Reader{Client: w.env.Client(), Namespace: w.env.Namespace},
		Again: func(context.Context, runs.Found, ui.ChangedBy) (string, error) { return "another", nil },
	})
	id := w.start("audited/"+w.queue, approval, nil)
	do := func(form url.Values) {
		t.Helper()
		status, body := p.post("grace", "/runs/"+url.PathEscape(id)+"/do", form)
		require.Equal(t, http.StatusSeeOther, status, body)
	}
	p.form = "/inbox?run=" + url.QueryEscape(id)
	w.shows("/inbox?run="+url.QueryEscape(id), "Load October?")
	do(url.Values{"command": {"pause"}})
	do(url.Values{"command": {"pause"}})
	do(url.Values{"command": {"cancel"}}) // asks for confirmation, and does nothing
	do(url.Values{"command": {"resume"}})
	do(url.Values{"command": {"pause"}, "step": {"nowhere"}})
	status, body := p.post("grace", "/inbox/"+url.PathEscape(id), url.Values{"step": {"ask"}, "visit": {"1"}, "attempt": {"1"}, "option": {"approve"}, "form.zeta": {"yes"}})
	require.Equal(t, http.StatusSeeOther, status, body)
	require.NoError(t, testenv.WaitOutcome(t, w.env.Client().GetWorkflow(t.Context(), id, ""), nil))
	p.form = "/runs/" + url.PathEscape(id)
	do(url.Values{"command": {"run"}, "confirmed": {"yes"}})
	var want []string
	for _, one := range []string{"pause done", "pause repeated", "resume done", "pause refused nowhere", "answer done ask", "run-again done"} {
		action, rest, _ := strings.Cut(one, " ")
		outcome, step, _ := strings.Cut(rest, " ")
		for _, said := range []string{"begun", outcome} {
			want = append(want, strings.TrimSpace("grace proxy "+action+" "+said+" "+id+" "+step))
		}
	}
	require.Equal(t, want, p.lines())
}
