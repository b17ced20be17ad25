package serve_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"reprise/internal/program/serve"
	"reprise/interpreter/playbook"
)

// approval asks people, with every type of field.
const approval = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: approval}
workflow:
  - step: ask
    tool: approval
    timeout: 10m
    message: |
      # Load **42** rows?
      See [the log](https://log.example/1), [a trap](javascript:alert(1)), <data:text/html,x> and ![](http://evil.example/x.png)
      <script>document.title = 'hacked'</script> and <b onclick="alert(1)">bold</b>
    options: [approve, reject, "later \"><script>document.title='hacked'</script>"]
    form:
      ticket: {type: text, required: true, title: "Ticket <img src=x onerror=\"document.title='hacked'\">"}
      rows: {type: integer, default: 12}
      share: number
      sure: {type: boolean, default: true}
      where: {type: choice, choices: [test, "prod\"'<>&"]}
    on_start: {url: "{{ other }}", body: {token: "{{ callback.token }}", complete: "{{ callback.complete }}", page: "{{ callback.page }}"}}
output: "{{ ask }}"
`

// open opens the page of a token.
func (a *asking) open(token string) reply {
	a.t.Helper()
	return a.world.ask(http.MethodGet, "/v1/approvals/"+token, "", nil)
}

// post posts the form of a page.
func (a *asking) post(token string, form url.Values, header ...string) reply {
	a.t.Helper()
	return a.world.ask(http.MethodPost, "/v1/approvals/"+token, "", strings.NewReader(form.Encode()),
		append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
}

func TestApprovalPage(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	run, token := a.ask("page", approval)
	shown := a.open(token)
	require.Equal(t, http.StatusOK, shown.status, string(shown.body))
	require.Equal(t, "no-store", shown.header.Get("Cache-Control"))
	require.Equal(t, "no-referrer", shown.header.Get("Referrer-Policy"))
	policy := shown.header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.Contains(t, policy, "frame-ancestors 'none'")
	require.NotContains(t, policy, "unsafe")
	text := string(shown.body)
	for _, wanted := range []string{
		run.GetID(), "<h1>Load <strong>42</strong> rows?</h1>", "<title>Load 42 rows? – Reprise", `href="https://log.example/1" rel="noopener noreferrer nofollow"`, "a trap", "&lt;script&gt;document.title",
		`class="second"`, `value="12"`, "checked", "<select", `value="reject" class="reject" formnovalidate`,
	} {
		require.Contains(t, text, wanted)
	}
	var names []string
	for _, found := range regexp.MustCompile(`name="form\.(\w+)"`).FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	require.Equal(t, []string{"ticket", "rows", "share", "sure", "where"}, names, "the fields are in the author's order")
	for _, bad := range []string{"<script", "raw HTML", "javascript:", "<img", "<b ", "evil.example", "href=\"data:"} {
		require.NotContains(t, text, bad)
	}

	faulty := a.post(token, url.Values{"option": {"approve"}, "form.rows": {"many"}, "comment": {"<kept> & so"}, "form.sure": {"true"}})
	require.Equal(t, http.StatusUnprocessableEntity, faulty.status)
	for _, wanted := range []string{"the form needs ticket", "rows must be integer", "enter your name", "&lt;kept&gt; &amp; so", `value="many"`} {
		require.Contains(t, string(faulty.body), wanted)
	}
	long := a.post(token, url.Values{"option": {"approve"}, "by": {strings.Repeat("b", 501)}, "comment": {strings.Repeat("c", 4097)}, "form.where": {"x"}, "form.share": {"y"}})
	require.Equal(t, http.StatusUnprocessableEntity, long.status)
	require.Equal(t, 6, strings.Count(string(long.body), `class="fault"`), "five fields and the page: %s", long.body)
	told := a.callback(token, "complete", `{"option": "maybe", "form": {"odd": 1, "rows": "many", "share": "y", "where": "x"}}`)
	require.Equal(t, http.StatusUnprocessableEntity, told.status)
	for _, wanted := range []string{`not "maybe"`, `no field "odd"`, "rows must be integer", "share must be number", "where must be one of", "the form needs ticket"} {
		require.Contains(t, told.values["detail"], wanted)
	}
	require.Equal(t, http.StatusUnprocessableEntity, a.post(token, url.Values{"option": {"maybe"}, "by": {"ada"}}).status)
	require.Equal(t, http.StatusUnprocessableEntity, a.post(token, url.Values{"option": {"reject"}, "by": {"ada"}, "form.odd": {"x"}}).status)

	right := url.Values{"option": {"approve"}, "by": {"Ada <b>"}, "comment": {"two\r\nlines"}, "form.ticket": {"T-1"}, "form.where": {"prod\"'<>&"}}
	given := a.post(token, right, "Origin", a.url, "Sec-Fetch-Site", "same-origin")
	require.Equal(t, http.StatusSeeOther, given.status, string(given.body))
	require.Equal(t, "./"+token, given.header.Get("Location"))
	result, ok := a.ends(run).Result.Data.(map[string]any)
	require.True(t, ok)
	require.NotEmpty(t, result["at"])
	delete(result, "at")
	require.Equal(t, map[string]any{
		"option": "approve", "by": "Ada <b>", "comment": "two\nlines", "ticket": "T-1", "rows": 12, "share": nil, "sure": false, "where": "prod\"'<>&",
	}, result)

	after := a.open(token)
	require.Equal(t, http.StatusOK, after.status)
	require.Contains(t, string(after.body), "Already answered")
	require.Contains(t, string(after.body), "Ada &lt;b&gt;")
	require.Contains(t, string(after.body), "approve")
	require.Contains(t, string(after.body), "ask the person who sent you this link")
	require.NotContains(t, string(after.body), "<form")
	late := a.post(token, url.Values{"option": {"reject"}, "by": {"bob"}})
	require.Equal(t, http.StatusConflict, late.status)
	require.Contains(t, string(late.body), "Ada &lt;b&gt;")
	require.Contains(t, string(late.body), "came too late and was not accepted. The answer below counts.")
	require.NotContains(t, a.log.String(), token)
}

// TestApprovalPagesOfOthers: what is no token of an approval has a page that says so and no more, and pages of others
// cannot post.
func TestApprovalPagesOfOthers(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	run, token := a.ask("others", approval)
	_, ofWebhook := a.ask("webhook", webhook)
	answer := url.Values{"option": {"reject"}, "by": {"eve"}}
	for _, wrong := range []string{"x", token + "x", token[:len(token)-1], strings.ToUpper(token), ofWebhook} {
		for _, given := range []reply{a.open(wrong), a.post(wrong, answer)} {
			require.Equal(t, http.StatusNotFound, given.status)
			require.Contains(t, string(given.body), "<h1>This link does not work</h1>")
			require.NotContains(t, string(given.body), "<form")
		}
	}
	for _, header := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "http://evil.example"},
		{"Origin", "null", "Sec-Fetch-Site", "cross-site"},
	} {
		require.Equal(t, http.StatusForbidden, a.post(token, answer, header...).status, header)
	}
	plain := a.world.ask(http.MethodPost, "/v1/approvals/"+token, "", strings.NewReader(answer.Encode()), "Content-Type", "text/plain")
	require.Equal(t, http.StatusUnsupportedMediaType, plain.status)
	large := url.Values{"option": {"reject"}, "by": {"eve"}, "comment": {strings.Repeat("x", serve.MaxBody)}}
	require.Equal(t, http.StatusRequestEntityTooLarge, a.post(token, large).status)
	require.Equal(t, http.StatusSeeOther, a.post(token, answer, "Origin", "null").status)
	require.Equal(t, "eve", a.ends(run).Result.Data.(map[string]any)["by"])
}

// TestApprovalPageWithoutWorkers says so, and shows the page when there is one again.
func TestApprovalPageWithoutWorkers(t *testing.T) {
	t.Parallel()
	a := newAsking(t)
	run, token := a.ask("asleep", approval)
	require.Equal(t, http.StatusOK, a.open(token).status)
	a.stop()
	answer := url.Values{"option": {"reject"}, "by": {"ada"}}
	for _, given := range []reply{a.open(token), a.post(token, answer)} {
		require.Equal(t, http.StatusServiceUnavailable, given.status, string(given.body))
		require.Contains(t, string(given.body), "try again", a.log.String())
		require.NotEmpty(t, given.header.Get("Retry-After"))
	}
	asked := *a.world
	asked.options.Client = brokenClient{a.env.Client(), serviceerror.NewCanceled("context canceled")} // the worker left while it was asked
	asked.serve()
	given := asked.ask(http.MethodGet, "/v1/approvals/"+token, "", nil)
	require.Equal(t, http.StatusServiceUnavailable, given.status)
	require.Contains(t, string(given.body), "try again")
	a.work()
	require.Eventually(t, func() bool { // the server may still wait for the worker that is gone
		return a.post(token, answer).status == http.StatusSeeOther
	}, patience, 100*time.Millisecond)
	require.Equal(t, "reject", a.ends(run).Result.Data.(map[string]any)["option"])
}

// storingClient is one whose updates come to nobody.
type storingClient struct{ client.Client }

func (storingClient) UpdateWorkflow(context.Context, client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	return nil, errAway
}

// brokenClient is one that cannot ask workflows.
type brokenClient struct {
	client.Client
	err error
}

func (b brokenClient) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return nil, b.err
}

// FuzzApprovalForm: what a page posts is an answer that the approval takes, or is shown
// again with what is wrong, and without markup of its own.
func FuzzApprovalForm(f *testing.F) {
	asks, err := playbook.ParseApproval(map[string]any{
		"options": []any{"approve", "reject", "la\"ter"},
		"form": map[string]any{
			"ticket": map[string]any{"type": "text", "required": true}, "rows": map[string]any{"type": "integer", "default": 12},
			"share": "number", "sure": map[string]any{"type": "boolean", "default": true},
			"where": map[string]any{"type": "choice", "choices": []any{"test", "prod\"'<>&"}},
		},
	})
	require.NoError(f, err)
	for _, body := range []string{
		"option=approve&by=ada&form.ticket=T-1&form.rows=7&form.share=0.5&form.sure=true&form.where=test&comment=two%0D%0Alines",
		"option=reject&by=ada", "option=approve&by=+&form.rows=many&form.where=x", "by=a&by=b", "%zz", "option=maybe&form.odd=1", "a;b", "",
		"option=approve&by=%3Cscript%3E&form.ticket=%3Cscript%3E&form.rows=x", "form.share=NaN&form.ticket=%FF", "form.rows=9223372036854775808",
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		typed, err := serve.ReadForm(body)
		if err != nil {
			var told *serve.Problem
			require.ErrorAs(t, err, &told)
			require.Equal(t, http.StatusBadRequest, told.Status)
			return
		}
		given, faults := serve.ReadApproval(asks, typed)
		if len(faults) == 0 {
			require.NoError(t, given.Check())
			filled, err := asks.FillForm(given.Form, given.Option == playbook.OptionReject)
			require.NoError(t, err)
			require.True(t, serve.Encodes(filled))
			_, err = json.Marshal(given)
			require.NoError(t, err)
			return
		}
		status, page, err := serve.ApprovalAgain(asks, typed)
		require.NoError(t, err)
		require.Equal(t, http.StatusUnprocessableEntity, status)
		require.NotContains(t, strings.ToLower(string(page)), "<script")
		fields := len(faults) - 1
		if !slices.Contains(faults, "option") {
			fields++
		}
		require.Equal(t, fields+1, strings.Count(string(page), `<p class="fault"`), "each fault is at its field, and one on top: %v", faults)
	})
}
