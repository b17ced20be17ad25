package serve_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/base/connect"
	"reprise/internal/program/serve"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// staff is a world whose callers have roles.
type staff struct {
	*asking

	tokens map[string]string // by names
}

// newStaff gives callers roles: each value has entries PATTERN=ROLE,ROLE.
func newStaff(t *testing.T, roles map[string][]string, change ...func(*serve.Options)) *staff {
	t.Helper()
	s := &staff{asking: newAsking(t, change...), tokens: map[string]string{}}
	text, err := os.ReadFile(s.callers)
	require.NoError(t, err)
	for name, one := range roles {
		token, line, err := serve.NewToken(name, nil, serve.RoleNone, one...)
		require.NoError(t, err)
		s.tokens[name] = token
		text = append(text, line+"\n"...)
	}
	s.rewriteCallers(string(text))
	return s
}

// named starts a run that does not come from a caller, as starter does: with the name in metadata.
func (s *staff) named(id, name, source string) client.WorkflowRun {
	s.t.Helper()
	_, err := connect.EnsureAttributes(s.t.Context(), s.env.Client(), s.env.Namespace, protocol.SearchAttributes())
	require.NoError(s.t, err)
	var run client.WorkflowRun
	require.Eventually(s.t, func() bool { // an attribute that is new is not known at once
		run, err = s.env.Client().ExecuteWorkflow(s.t.Context(), client.StartWorkflowOptions{
			ID: s.queue + "-" + id, TaskQueue: s.queue,
			TypedSearchAttributes: temporal.NewSearchAttributes(temporal.NewSearchAttributeKeyKeyword(protocol.PlaybookAttribute).ValueSet(name)),
		}, protocol.PlaybookWorkflowName, protocol.Input{Name: "x.yaml", Source: source, Workload: expression.Of(map[string]any{"other": s.other})})
		return err == nil
	}, patience, tick)
	return run
}

// command sends a command to a run.
func (s *staff) command(who, id, name, body string) reply {
	s.t.Helper()
	return s.world.ask(http.MethodPost, "/v1/runs/"+url.PathEscape(id)+"/"+name, s.tokens[who], strings.NewReader(body), "Content-Type", "application/json")
}

// waiting is a playbook whose first step waits until somebody resumes it, and then asks.
const waiting = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: billing-eu}
workflow:
  - step: ask
    tool: approval
    message: "Load?"
output: "{{ ask.option }} by {{ ask.by }}"
`

// TestRolesOfPlaybooks: a role counts for the playbooks that its pattern names, and for nothing else; what is not allowed looks
// like what is not there, and is in the audit log.
func TestRolesOfPlaybooks(t *testing.T) {
	t.Parallel()
	var path string
	s := newStaff(t, map[string][]string{
		"reader": {"billing-*=read", "hello=read"}, "steerer": {"billing-*=steer"}, "answerer": {"billing-*=answer"}, "starter": {"hello=start", "signed=read"}, "decoder": {"*=decode"},
		"admin": {"*=admin"}, "other": {"billing=admin", "billing-us=admin", "hello?=admin"},
	}, withAudit(t, &path))
	run := s.named("roles", "billing-eu", waiting)
	id := run.GetID()
	s.write("billing-eu", waiting)
	for _, row := range []struct {
		do      func(who string) reply
		allowed []string
	}{
		{func(who string) reply { return s.world.ask(http.MethodGet, "/v1/runs/"+id, s.tokens[who], nil) }, []string{"reader", "admin"}},
		{func(who string) reply { return s.command(who, id, "pause", `{}`) }, []string{"steerer", "admin"}},
		{func(who string) reply { return s.start("hello/runs", s.tokens[who], `{}`) }, []string{"starter", "admin"}},
		{func(who string) reply { return s.start("billing-eu/runs", s.tokens[who], `{}`) }, []string{"admin"}},
	} {
		for who := range maps.Keys(s.tokens) {
			given := row.do(who)
			if !slices.Contains(row.allowed, who) {
				require.Equal(t, http.StatusNotFound, given.status, "%s: %s", who, given.body)
				require.JSONEq(t, `{"type": "urn:reprise:problem:not-found", "title": "Not Found", "status": 404, "detail": "not found, or not visible to you"}`, string(given.body))
				continue
			}
			require.Less(t, given.status, 300, "%s: %s", who, given.body)
		}
	}
	for _, who := range []string{"reader", "steerer", "starter", "other", "decoder"} {
		require.Equal(t, http.StatusNotFound, s.command(who, id, "answer", `{"option": "approve"}`).status, who)
	}
	require.Equal(t, http.StatusNotFound, s.world.ask(http.MethodGet, "/v1/runs/"+id, s.ci, nil).status, "who has no roles reads its own runs")
	require.Equal(t, http.StatusNotFound, s.command("admin", id, "restart", `{}`).status)
	require.Equal(t, http.StatusNotFound, s.command("admin", id[:len(id)-1], "pause", `{}`).status, "the beginning of an ID is not an ID")
	require.Equal(t, http.StatusUnauthorized, s.command("nobody", id, "pause", `{}`).status)

	own := s.start("hello/runs?wait=60s", s.tokens["starter"], `{"name": "Ada"}`)
	require.Equal(t, "hello Ada", own.values["result"], "who may start reads its own runs")
	require.Equal(t, http.StatusOK, s.world.ask(http.MethodGet, own.header.Get("Location"), s.tokens["starter"], nil).status)
	require.Equal(t, "hello Ada", s.world.ask(http.MethodGet, own.header.Get("Location"), s.tokens["reader"], nil).values["result"])

	require.Equal(t, http.StatusAccepted, s.command("answerer", id, "answer", `{"option": "approve"}`).status)
	require.Equal(t, http.StatusConflict, s.command("answerer", id, "answer", `{"option": "approve"}`).status)
	s.command("admin", id, "resume", `{}`)
	require.Equal(t, "approve by answerer", s.ends(run).Result.Data)

	denied := map[string]int{}
	for _, line := range auditedLines(t, path) {
		if line["outcome"] == "denied" {
			require.Equal(t, []any{"token", "not-found"}, []any{line["proof"], line["type"]})
			target := line["target"].(map[string]any)
			require.NotEmpty(t, target["playbook"])
			denied[fmt.Sprint(line["action"])]++
		}
	}
	require.Equal(t, map[string]int{"read": 6, "pause": 5, "start": 5 + 6, "answer": 5}, denied)
}

// TestCommandsOfCallers: commands do and say what those of starter do, who gives one is in the history and in the audit log, and
// what a run refuses is a conflict.
func TestCommandsOfCallers(t *testing.T) {
	t.Parallel()
	var path string
	s := newStaff(t, map[string][]string{"steward": {"*=steer"}, "grace": {"*=answer,steer"}}, withAudit(t, &path))
	run := s.named("commands", "billing-eu", strings.Replace(waiting, "    tool:", "    loop: {in: [a, b], mode: parallel}\n    tool:", 1))
	id := run.GetID()
	require.Eventually(t, func() bool { return s.command("steward", id, "retry-now", `{"step": "ask"}`).status == http.StatusOK }, patience, tick)
	done := func(name, body, outcome, message string) {
		t.Helper()
		given := s.command("steward", id, name, body)
		require.Equal(t, http.StatusOK, given.status, string(given.body))
		require.Equal(t, map[string]any{"workflow_id": id, "command": name, "outcome": outcome, "message": given.values["message"]}, given.values)
		require.Contains(t, given.values["message"], message)
	}
	done("pause", `{"reason": "maintenance"}`, "done", "paused; no new attempts start")
	done("pause", ``, "unchanged", "already paused")
	done("resume", `{}`, "done", "resumed")
	done("pause", `{"step": "ask"}`, "done", "step ask paused; no new attempts start")
	done("resume", `{"step": "ask"}`, "done", "step ask resumed")
	done("set", `{"step": "ask", "max_concurrency": 3, "rate_limit": "5/s"}`, "done", "step ask now has")
	done("retry-now", `{"step": "ask", "index": 0}`, "unchanged", "nothing waits")
	for body, says := range map[string]string{
		"pause {\"stepp\": \"ask\"}":                               `pause has no field \"stepp\", expected reason, step`,
		"pause {\"index\": 1}":                                     `pause has no field \"index\"`,
		"cancel {\"step\": \"ask\"}":                               `cancel has no field \"step\"`,
		"skip {\"step\": \"ask\"}":                                 "skip needs a reason",
		"skip {\"reason\": \"x\"}":                                 "skip needs a step",
		"skip {\"step\": \"ask\", \"index\": -1}":                  "index must be a whole number from 0",
		"retry-now {\"index\": 1}":                                 "index needs a step",
		"set {\"step\": \"ask\"}":                                  "max_concurrency",
		"set {\"step\": \"ask\", \"rate_limit\": \"often\"}":       "expected attempts per time",
		"set {\"step\": \"ask\", \"rate_limit\": []}":              "rate_limit must be a text or a number",
		"pause {\"reason\": \"" + strings.Repeat("x", 501) + "\"}": "reason has 501 bytes; at most 500 are kept",
		"answer {\"form\": {}}":                                    "answer needs option",
		"answer {\"option\": \"approve\", \"by\": \"ada\"}":        `answer has no field \"by\"`,
	} {
		name, text, _ := strings.Cut(body, " ")
		given := s.command("grace", id, name, text)
		require.Equal(t, http.StatusBadRequest, given.status, body)
		require.Contains(t, string(given.body), says)
	}
	refused := s.command("steward", id, "pause", `{"step": "absent"}`)
	require.Equal(t, http.StatusConflict, refused.status)
	require.Equal(t, "urn:reprise:problem:command-refused", refused.values["type"])
	require.Contains(t, refused.values["detail"], "absent")
	several := s.command("grace", id, "answer", `{"option": "approve"}`)
	require.Equal(t, http.StatusConflict, several.status)
	require.Equal(t, "2 approvals of the run await an answer; say with step and index which one: ask[0], ask[1]", several.values["detail"])
	require.Equal(t, http.StatusUnprocessableEntity, s.command("grace", id, "answer", `{"option": "maybe", "index": 1}`).status)
	require.Equal(t, http.StatusAccepted, s.command("grace", id, "answer", `{"option": "approve", "step": "ask", "index": 1}`).status)
	require.Equal(t, http.StatusOK, s.command("steward", id, "cancel", `{"reason": "enough"}`).status)
	require.ErrorContains(t, testenv.WaitOutcome(t, run, nil), "canceled")
	ended := s.command("steward", id, "pause", `{}`)
	require.Equal(t, http.StatusConflict, ended.status)
	require.Contains(t, ended.values["detail"], "the run has ended (cancelled), so there is nothing to pause")

	seen := map[string]bool{}
	for _, line := range auditedLines(t, path)[1:] { // behind that of the changed file
		require.Equal(t, "token", line["proof"])
		target := line["target"].(map[string]any)
		require.Equal(t, []any{id, "billing-eu"}, []any{target["run"], target["playbook"]})
		seen[fmt.Sprint(line["actor"], " ", line["action"], " ", line["outcome"], " ", target["step"])] = true
	}
	for _, wanted := range []string{
		"steward pause begun <nil>", "steward pause done <nil>", "steward pause repeated <nil>", "steward resume done ask", "steward set done ask", "steward retry_now repeated ask",
		"steward pause refused absent", "grace answer done ask", "grace answer refused ask", "steward cancel done <nil>", "steward pause refused <nil>",
	} {
		require.True(t, seen[wanted], "%s in %v", wanted, seen)
	}
	history := testenv.Histories(t, s.env.Client(), id, run.GetRunID())[0].History.String()
	require.Contains(t, history, "maintenance")
	require.Contains(t, history, "enough")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), "maintenance", "reasons are in the history")
}

// TestCommandsWithoutAnAnswer: the outcome of a command that nobody answers is unknown, and so it is in the audit log; what
// awaits an answer is then unknown too.
func TestCommandsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	var path string
	s := newStaff(t, map[string][]string{"steward": {"*=steer,answer"}}, withAudit(t, &path))
	id := s.named("alone", "billing-eu", waiting).GetID()
	send := func(c client.Client, name, body string) reply {
		failing := *s.world
		failing.options.Client = c
		failing.serve()
		return failing.ask(http.MethodPost, "/v1/runs/"+id+"/"+name, s.tokens["steward"], strings.NewReader(body), "Content-Type", "application/json")
	}
	given := send(storingClient{s.env.Client()}, "pause", `{}`)
	require.Equal(t, http.StatusServiceUnavailable, given.status, string(given.body))
	require.Equal(t, "urn:reprise:problem:unanswered", given.values["type"])
	require.Contains(t, given.values["detail"], "may still take effect")
	given = send(brokenClient{s.env.Client(), errors.New("no")}, "answer", `{"option": "approve"}`)
	require.Equal(t, http.StatusServiceUnavailable, given.status, string(given.body))
	require.Equal(t, "urn:reprise:problem:no-worker", given.values["type"])
	lines := auditedLines(t, path)[1:] // behind that of the changed file
	require.Len(t, lines, 2)
	require.Equal(t, []any{"pause", "unknown"}, []any{lines[1]["action"], lines[1]["outcome"]})
}

// TestRolesThatAreNone: what is wrong in the file of callers has its place, and what it should have been.
func TestRolesThatAreNone(t *testing.T) {
	t.Parallel()
	hash, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	for text, says := range map[string]string{
		"ci:\n  sha256: " + hash + "\n  roles:\n    nightly: raed":                                                   `:4:5: ci: the role "raed" is unknown; did you mean "read"?`,
		"ci:\n  sha256: " + hash + "\n  roles:\n    nightly:\n      - start\n      - anser":                          `:6:9: ci: the role "anser" is unknown; did you mean "answer"?`,
		"ci: {sha256: " + hash + ", roles: {a: rpr_token}}":                                                          ":1:88: ci: the role is unknown, expected start, read, steer, answer, decode, admin",
		"ci: {sha256: " + hash + ", roles: {'[a': read}}":                                                            ":1:88: ci: this is no pattern",
		"ci: {sha256: " + hash + ", roles: {'': read}}":                                                              ":1:88: ci: this is no pattern",
		"ci: {sha256: " + hash + ", roles: {a: []}}":                                                                 ":1:88: ci: expected a role or a list of roles",
		"ci: {sha256: " + hash + ", roles: [read]}":                                                                  ":1:80: ci: roles must be a map of playbooks to roles",
		"ci: {sha256: " + hash + ", roles: {a: decode}}":                                                             `decode needs the pattern "*"`,
		"ci: {sha256: " + hash + ", roles: {}}":                                                                      "roles must be a map",
		"ci: {sha256: " + hash + ", roles: {a: read}, playbooks: [a]}":                                               "playbooks and roles exclude each other",
		"ci: {sha256: " + hash + ", roles: {a: read}, playbook: [b]}":                                                `:1:98: ci: the key "playbook" is unknown; did you mean "playbooks"?`,
		"ci: {sha256: " + hash + ", role: read}":                                                                     "role must be viewer or operator, for the page of runs; what a caller may do over HTTP is in roles",
		"ci: {sha256: " + hash + ", playbooks: [a]}\n\nci: {sha256: " + other + ", playbooks: [b]}":                  ":3:1: this name or key is already above, and each may be there once [duplicate-key]",
		"ci: {sha256: " + hash + ", playbooks: [a]}\nops: {sha256: [" + other + ", " + hash + "], roles: {a: read}}": ":2:7: ops: this is the token of ci as well, and a token belongs to one caller",
	} {
		path := filepath.Join(t.TempDir(), "callers.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := serve.OpenCallers(path)
		require.ErrorContains(t, err, says, text)
		require.ErrorContains(t, err, path+":", text)
		require.NotContains(t, err.Error(), "rpr_")
		require.NotContains(t, err.Error(), hash)
	}
	for _, roles := range [][]string{{"a"}, {"a=raed"}, {"=read"}, {"a=decode"}, {"a=read", "a=start"}, {"a="}} {
		_, _, err := serve.NewToken("ci", nil, serve.RoleNone, roles...)
		require.Error(t, err, roles)
	}
	_, _, err := serve.NewToken("ci", []string{"a"}, serve.RoleNone, "a=read")
	require.ErrorContains(t, err, "playbooks and roles exclude each other")
	_, line, err := serve.NewToken("ci", nil, serve.RoleViewer, "billing-*=read,steer", `a"b=start`)
	require.NoError(t, err)
	require.Regexp(t, `^ci: \{sha256: "[0-9a-f]{64}", roles: \{"billing-\*": \[read, steer\], "a\\"b": \[start\]\}, role: viewer\}$`, line)
	path := filepath.Join(t.TempDir(), "callers.yaml")
	require.NoError(t, os.WriteFile(path, []byte(line), 0o600))
	_, err = serve.OpenCallers(path)
	require.NoError(t, err)
}
