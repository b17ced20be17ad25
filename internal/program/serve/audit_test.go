package serve_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"reprise/internal/base/audit"
	"reprise/internal/program/serve"
)

// withAudit lets a server keep an audit log, which the test reads at the path.
func withAudit(t *testing.T, path *string) func(*serve.Options) {
	t.Helper()
	*path = filepath.Join(t.TempDir(), "audit.log")
	trail, err := audit.Open(*path, "serve", nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, trail.Close()) })
	return func(o *serve.Options) { o.Audit = trail }
}

// auditedLines are the lines of a log whose chain fits together, without what differs from run to run.
func auditedLines(t *testing.T, path string) []map[string]any {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	_, err = audit.Verify(file, "")
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var lines []map[string]any
	for one := range strings.Lines(string(text)) {
		var line map[string]any
		require.NoError(t, json.Unmarshal([]byte(one), &line))
		require.NotEmpty(t, line["time"])
		if target := line["target"].(map[string]any); line["outcome"] == "done" && line["action"] == "start" {
			require.NotEmpty(t, target["run_id"])
			delete(target, "run_id")
		}
		for _, key := range []string{"time", "previous", "n", "program"} {
			delete(line, key)
		}
		lines = append(lines, line)
	}
	return lines
}

// TestStartsAreAudited: who starts what, and how that ended, with the proof of the name; without keys, bodies and signatures.
func TestStartsAreAudited(t *testing.T) {
	t.Parallel()
	var path string
	w := newWorld(t, withAudit(t, &path))
	key := w.queue + "-k"
	require.Equal(t, http.StatusAccepted, w.start("hello/runs", w.ci, `{"name": "A value of a run"}`, "Idempotency-Key", key).status)
	require.Equal(t, http.StatusOK, w.start("hello/runs", w.ci, `{"name": "A value of a run"}`, "Idempotency-Key", key).status)
	require.Equal(t, http.StatusUnprocessableEntity, w.start("hello/runs", w.ci, `{}`, "Idempotency-Key", key).status)
	require.Equal(t, http.StatusNotFound, w.start("signed/runs", w.ops, `{}`).status)
	require.Equal(t, http.StatusUnauthorized, w.start("hello/runs", "rpr_nobody", `{}`).status)
	body := `{"after": "` + w.queue + `"}`
	require.Equal(t, http.StatusAccepted, w.deliver(body, "Content-Type", "application/json", "X-GitHub-Event", "push",
		"X-Hub-Signature-256", "sha256="+mac(secret, body)).status)
	lines := auditedLines(t, path)
	require.Len(t, lines, 9)
	of := func(playbook string) map[string]any { return map[string]any{"playbook": playbook} }
	run := map[string]any{"playbook": "hello", "run": "hello:ci:" + key}
	line := func(actor, proof, outcome string, target map[string]any, more ...any) map[string]any {
		all := map[string]any{"actor": actor, "proof": proof, "action": "start", "target": target, "outcome": outcome}
		for i := 0; i < len(more); i += 2 {
			all[more[i].(string)] = more[i+1]
		}
		return all
	}
	for _, at := range []int{3, 5} {
		delete(lines[at]["target"].(map[string]any), "run_id")
	}
	require.Equal(t, []map[string]any{
		line("ci", "token", "begun", of("hello")), line("ci", "token", "done", run, "begun", 1.),
		line("ci", "token", "begun", of("hello")), line("ci", "token", "repeated", run, "begun", 3.),
		line("ci", "token", "begun", of("hello")), line("ci", "token", "refused", run, "begun", 5.),
		line("ops", "token", "denied", of("signed"), "type", "not-found"),
		line("@hook", "signature", "begun", of("signed")),
	}, lines[:8])
	require.Equal(t, "done", lines[8]["outcome"])
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, hidden := range []string{w.ci, w.ops, secret, mac(secret, body), "A value of a run", "rpr_nobody"} {
		require.NotContains(t, string(text), hidden)
	}
}

// TestAnswersAreAudited: with the name that somebody gives, which proves nothing, and without what they answer.
func TestAnswersAreAudited(t *testing.T) {
	t.Parallel()
	var path string
	a := newAsking(t, withAudit(t, &path))
	run, token := a.ask("audited", webhook)
	require.Equal(t, http.StatusAccepted, a.callback(token, "progress", `{"done": 1}`).status)
	require.Equal(t, http.StatusAccepted, a.callback(token, "complete", `{"result": "a value"}`).status)
	a.ends(run)
	require.Equal(t, http.StatusConflict, a.callback(token, "fail", `{"message": "a reason"}`).status)
	asked, link := a.ask("approved", approval)
	require.Equal(t, http.StatusSeeOther, a.post(link, url.Values{"option": {"approve"}, "by": {"ada"}, "form.ticket": {"T-1"}, "form.where": {"test"}}).status)
	a.ends(asked)
	target := func(id string) map[string]any { return map[string]any{"run": id, "step": "ask"} }
	line := func(actor, proof, outcome string, target map[string]any, begun float64) map[string]any {
		all := map[string]any{"proof": proof, "action": "answer", "target": target, "outcome": outcome}
		if actor != "" {
			all["actor"] = actor
		}
		if begun > 0 {
			all["begun"] = begun
		}
		return all
	}
	require.Equal(t, []map[string]any{
		line("", "none", "begun", target(run.GetID()), 0), line("", "none", "done", target(run.GetID()), 1),
		line("", "none", "begun", target(run.GetID()), 0), line("", "none", "refused", target(run.GetID()), 3),
		line("ada", "claimed", "begun", target(asked.GetID()), 0), line("ada", "claimed", "done", target(asked.GetID()), 5),
	}, auditedLines(t, path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, hidden := range []string{token, link, "a value", "a reason"} {
		require.NotContains(t, string(text), hidden)
	}
}

// TestNothingIsDoneUnlogged: while the log cannot be written, starts, answers and refusals of callers are 503, and nothing was
// started or answered. Reading goes on, and so does everything once the log is back.
func TestNothingIsDoneUnlogged(t *testing.T) {
	t.Parallel()
	var path string
	a := newAsking(t, withAudit(t, &path))
	run, token := a.ask("unlogged", webhook)
	key := a.queue + "-k"
	require.NoError(t, os.Rename(path, path+".away"))
	refused := func(given reply) {
		t.Helper()
		require.Equal(t, http.StatusServiceUnavailable, given.status, string(given.body))
		require.Equal(t, "urn:reprise:problem:audit-log", given.values["type"])
		require.NotEmpty(t, given.header.Get("Retry-After"))
	}
	refused(a.start("hello/runs", a.ci, `{}`, "Idempotency-Key", key))
	refused(a.start("signed/runs", a.ops, `{}`))
	refused(a.callback(token, "complete", `{"result": 1}`))
	body := `{"after": "` + a.queue + `"}`
	refused(a.deliver(body, "Content-Type", "application/json", "X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+mac(secret, body)))
	_, err := a.env.Client().DescribeWorkflowExecution(t.Context(), "hello:ci:"+key, "")
	var absent *serviceerror.NotFound
	require.ErrorAs(t, err, &absent)
	require.Equal(t, http.StatusOK, a.world.ask(http.MethodGet, "/healthz", "", nil).status)
	require.Contains(t, a.log.String(), "the audit log cannot be written")
	require.NoError(t, os.Rename(path+".away", path))
	require.Equal(t, http.StatusAccepted, a.start("hello/runs", a.ci, `{}`, "Idempotency-Key", key).status)
	require.Equal(t, http.StatusAccepted, a.callback(token, "complete", `{"result": 2}`).status)
	require.Equal(t, 2, a.ends(run).Result.Data)
	require.Len(t, auditedLines(t, path), 4)
}

// TestChangedCallersAreAudited: once for each change of the file, and once for each reason for which it cannot be read.
func TestChangedCallersAreAudited(t *testing.T) {
	t.Parallel()
	var path string
	w := newWorld(t, withAudit(t, &path))
	text, err := os.ReadFile(w.callers)
	require.NoError(t, err)
	for _, one := range []string{string(text) + "\n", "- no map", string(text)} {
		require.NoError(t, os.WriteFile(w.callers, []byte(one), 0o600))
		for range 2 {
			w.ask(http.MethodGet, "/v1/runs/absent", w.ci, nil)
		}
	}
	line := func(outcome string) map[string]any {
		return map[string]any{"proof": "none", "action": "file-changed", "target": map[string]any{"file": "the file of callers"}, "outcome": outcome}
	}
	require.Equal(t, []map[string]any{line("done"), line("refused"), line("done")}, auditedLines(t, path))
}
