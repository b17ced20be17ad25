package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/base/callback"
	"reprise/internal/observe/deadletter"
	"reprise/internal/observe/ending"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/queue"
	"reprise/workflows/protocol"
)

// asksBelow runs a playbook that has another system do something, and asks people.
const asksBelow = `
  - step: outer
    tool: playbook
    workload: {etl: "{{ workload.etl }}"}
    workflow:
      - step: import
        tool: webhook
        on_start: {url: "{{ etl }}/start", body: {token: "{{ callback.token }}"}}
        on_cancel: {url: "{{ etl }}/cancel", method: DELETE}
        next: ask
      - {step: ask, tool: approval, message: "load {{ import.rows }} rows?"}
`

// awaited waits until a run says that a step of it awaits an answer.
func (w *world) awaited(id, step string) client.WorkflowRun {
	w.t.Helper()
	run := w.env.Client().GetWorkflow(w.t.Context(), id, "")
	require.Eventually(w.t, func() bool {
		asked, _, err := w.looker().AwaitingAttempts(w.t.Context(), id, step, nil)
		return err == nil && len(asked) == 1
	}, patience, tick, "step %s of %s awaits no answer", step, id)
	return run
}

// TestNestedAnswers answers what a run below asks: by token, and by way of the run
// above, which is paused meanwhile.
func TestNestedAnswers(t *testing.T) {
	t.Parallel()
	w, keys := newAnswering(t)
	other := newETL(t)
	run := w.start(book(asksBelow), map[string]any{"etl": other.URL})
	child := run.GetID() + "/outer#1!1"
	token := other.nth(t, 1).token
	address, err := callback.OpenToken(keys, token)
	require.NoError(t, err)
	require.Equal(t, child, address.Workflow)
	w.awaited(child, "import")
	require.True(t, w.steers(run, protocol.PauseUpdate, protocol.CommandInput{}).Changed)
	_, err = w.answer(keys, token, interpreter.Answer{
		Verb: interpreter.AnswerComplete, Result: expression.Of(map[string]any{"rows": 7}),
	})
	require.NoError(t, err)
	require.True(t, w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{}).Changed)

	w.awaited(child, "ask")
	asked, left, err := w.looker().AwaitingInChildren(t.Context(), run.GetID(), "", nil)
	require.NoError(t, err)
	require.Zero(t, left)
	require.Len(t, asked, 1)
	require.Equal(t, child, asked[0].Run)
	require.Equal(t, "load 7 rows?", asked[0].Question())
	_, err = w.looker().SendAnswer(t.Context(), asked[0].WorkflowID, interpreter.Answer{
		Verb: interpreter.AnswerComplete, Option: "approve", By: "ada", AnswerTo: asked[0].AttemptAddress(),
	})
	require.NoError(t, err)
	result := w.endsAs(run, interpreter.Completed)
	require.Equal(t, "approve", result.Result.Data.(map[string]any)["option"])
}

// TestNestedAnswersInALoop looks into the runs that iterations have started.
func TestNestedAnswersInALoop(t *testing.T) {
	t.Parallel()
	w, _ := newAnswering(t)
	run := w.start(book(`
  - step: each
    tool: playbook
    loop: {in: [1, 2, 3], iterator: n, mode: parallel, max_concurrency: 3, batch: 1}
    workload: {n: "{{ n }}"}
    workflow:
      - {step: ask, tool: approval, message: "{{ n }}?"}
`), nil)
	for n := 3; n > 0; n-- {
		require.Eventually(t, func() bool {
			asked, _, err := w.looker().AwaitingInChildren(t.Context(), run.GetID(), "ask", nil)
			return err == nil && len(asked) == n
		}, patience, tick)
		asked, _, err := w.looker().AwaitingInChildren(t.Context(), run.GetID(), "ask", nil)
		require.NoError(t, err)
		last := asked[n-1]
		require.Equal(t, fmt.Sprintf("%s/each#1/%d!1", run.GetID(), n-1), last.Run)
		_, err = w.looker().SendAnswer(t.Context(), last.WorkflowID, interpreter.Answer{
			Verb: interpreter.AnswerComplete, Option: "reject", By: "ada", AnswerTo: last.AttemptAddress(),
		})
		require.NoError(t, err)
	}
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, 3, step(t, result, "each").Loop.Stats.Success)
}

// TestNestedAwaitIsCancelled ends a run that awaits an answer from above: the other
// side is told once.
func TestNestedAwaitIsCancelled(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]struct{ playbook, step string }{
		"cancel":               {},
		"timeout of the run":   {playbook: "timeout: 5s\n"},
		"timeout of the step":  {step: "    timeout: 4s\n"},
		"failure of its twin":  {},
		"timeout of the child": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.makeKeys()
			w.resources.CallbackURL = "https://serve.example.com/"
			w.folder(map[string]string{"below.yaml": strings.Replace(book(`
  - step: import
    tool: webhook
    on_start: {url: "{{ etl }}/start", body: {token: "{{ callback.token }}"}}
    on_cancel: {url: "{{ etl }}/cancel", method: DELETE}
`), "workflow:", "timeout: 4s\nworkflow:", 1)})
			w.work()
			other := newETL(t)
			source := strings.Replace(book(asksBelow), "workflow:", words.playbook+"workflow:", 1)
			source = strings.Replace(source, "    tool: playbook\n", "    tool: playbook\n"+words.step, 1)
			switch name {
			case "failure of its twin":
				source = strings.Replace(source, "  - step: outer\n", `  - {step: begin, next: [outer, twin]}
  - {step: twin, tool: approval, message: "fail?"}
  - step: outer
`, 1)
			case "timeout of the child":
				source = book("  - {step: outer, tool: playbook, name: below, workload: {etl: \"{{ workload.etl }}\"}}\n")
			}
			run := w.start(source, map[string]any{"etl": other.URL})
			child := run.GetID() + "/outer#1!1"
			other.nth(t, 1)
			switch name {
			case "cancel":
				w.awaited(child, "import")
				w.cancel(run)
			case "failure of its twin":
				w.awaited(child, "import")
				no := false
				_, err := w.answerTo(run.GetID(), interpreter.Answer{
					Verb: interpreter.AnswerFail, Message: "no", Retryable: &no, AnswerTo: interpreter.AnswerTo{Step: "twin"},
				})
				require.NoError(t, err)
				result, err := w.outcome(run)
				require.NoError(t, err)
				require.Equal(t, interpreter.Failed, result.Status)
			default:
				result, err := w.outcome(run)
				require.NoError(t, err)
				require.Equal(t, interpreter.Failed, result.Status)
				if name == "timeout of the child" {
					require.Equal(t, interpreter.KindPlaybook, result.Error.Kind)
					require.Equal(t, "timeout", result.Error.Type)
				} else {
					require.Equal(t, interpreter.KindTimeout, result.Error.Kind)
				}
			}
			inner, _ := ending.WaitForResult(t.Context(), w.env.Client().GetWorkflow(t.Context(), child, ""))
			require.Contains(t, []interpreter.Status{interpreter.Cancelled, interpreter.Failed}, inner.Status)
			other.mu.Lock()
			defer other.mu.Unlock()
			require.Equal(t, []string{"POST /start", "DELETE /cancel"}, other.paths)
		})
	}
}

// TestNestedOwnKey refuses a run that would wait for one above it.
func TestNestedOwnKey(t *testing.T) {
	t.Parallel()
	for words, message := range map[string]string{
		"limit: 1":                              `waits for itself`,
		"limit: 1, on_conflict: cancel_running": `waits for itself`,
		"limit: 2":                              "",
		"limit: 1, on_conflict: skip":           "",
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			head := fmt.Sprintf("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: N%s}\n"+
				"workload: {deep: false, etl: x}\nconcurrency: {shared: \"{{ workload.line }}\", %s}\nworkflow:\n", w.queue, words)
			inner := head + "  - {step: quick, tool: python, code: \"def main(): return 1\"}\n"
			w.folder(map[string]string{"inner.yaml": inner})
			w.work()
			line := "line-" + w.queue
			run := w.start(head+`
  - step: between
    tool: playbook
    loop: {in: [1], iterator: n, mode: parallel}
    workload: {line: "{{ workload.line }}"}
    workflow:
      - {step: again, tool: playbook, name: inner, workload: {line: "{{ line }}"}}
`, map[string]any{"line": line})
			result, err := w.outcome(run)
			require.NoError(t, err)
			if message == "" {
				require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Error)
				require.Equal(t, strings.Contains(words, "skip"), strings.Contains(fmt.Sprint(result.Warnings), "has 1 warning: "), result.Warnings)
				return
			}
			require.Equal(t, interpreter.Failed, result.Status)
			failure := step(t, result, "between").Loop.Errors[0].Error
			require.Equal(t, interpreter.ClassFinal, failure.Class)
			require.Contains(t, failure.Message, message)
			require.Contains(t, failure.Message, run.GetID())
		})
	}
}

// TestNestedQueue has a run below wait for its turn while the one above waits for it.
func TestNestedQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inner := fmt.Sprintf("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: Q%s}\nconcurrency: {key: one}\nworkflow:\n", w.queue) +
		"  - {step: ask, tool: approval, message: \"go?\"}\n"
	w.folder(map[string]string{"inner.yaml": inner})
	w.work()
	first := w.start(inner, nil)
	w.awaited(first.GetID(), "ask")
	run := w.start(book("  - {step: outer, tool: playbook, name: inner}\n"), nil)
	child := w.env.Client().GetWorkflow(t.Context(), run.GetID()+"/outer#1!1", "")
	require.Eventually(t, func() bool {
		progress, ok := w.progress(child)
		return ok && progress.Ticket.Waits() && progress.Ticket.State == queue.Queued
	}, patience, tick)
	for _, of := range []client.WorkflowRun{first, child} {
		w.awaited(of.GetID(), "ask")
		_, err := w.answerTo(of.GetID(), interpreter.Answer{
			Verb: interpreter.AnswerComplete, Option: "approve", By: "ada", AnswerTo: interpreter.AnswerTo{Step: "ask"},
		})
		require.NoError(t, err)
	}
	_, err := w.outcome(first)
	require.NoError(t, err)
	w.endsAs(run, interpreter.Completed)
}

// TestNestedScheduledAt gives runs below the time for which a schedule has started
// the first one.
func TestNestedScheduledAt(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	at := time.Date(2026, 3, 29, 1, 0, 0, 0, time.UTC)
	scheduled := temporal.NewSearchAttributeKeyTime(protocol.ScheduledAttribute)
	run, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "scheduled-" + w.queue, TaskQueue: w.queue,
		TypedSearchAttributes: temporal.NewSearchAttributes(scheduled.ValueSet(at)),
	}, protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: book(`
  - step: each
    tool: playbook
    loop: {in: [1, 2], iterator: n, mode: parallel}
    workflow:
      - step: again
        tool: playbook
        workflow:
          - {step: when, tool: python, args: {at: "{{ run.scheduled_at }}"}, code: "def main(at): return at"}
`)})
	require.NoError(t, err)
	result := w.endsAs(run, interpreter.Completed)
	require.Equal(t, []any{"2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z"}, result.Result.Data.(map[string]any)["results"])
}

// TestNestedSecret refuses to hand a secret result to a run below.
func TestNestedSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.makeKeys()
	w.work()
	w.secrets = []string{fetchedToken}
	v := newVault(t)
	login := `
  - {step: login, tool: http, secret: true, method: POST, url: "{{ vault }}/token", next: outer}
`
	require.Contains(t, w.refused(book(login+`
  - step: outer
    tool: playbook
    workload: {token: "{{ login.access_token }}"}
    workflow:
      - {step: use, tool: python, args: {t: "{{ token }}"}, code: "def main(t): return len(t)"}
`)), `the result of step "login" is secret and cannot be used in workload`)
	result, err := w.run(book(login+`
  - step: outer
    tool: playbook
    workload: {vault: "{{ vault }}"}
    workflow:
      - {step: login, tool: http, secret: true, method: POST, url: "{{ vault }}/token", next: use}
      - step: use
        tool: python
        args: {t: "{{ login.access_token }}"}
        code: |
          def main(t):
              return len(t)
`), map[string]any{"vault": v.URL})
	require.NoError(t, err)
	require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Error)
	require.EqualValues(t, len(fetchedToken), result.Result.Data)
}

// TestNestedSecretResult keeps the secret of a run below that ends with it.
func TestNestedSecretResult(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.makeKeys()
	w.work()
	w.secrets = []string{fetchedToken}
	v := newVault(t)
	result, err := w.run(book(`
  - step: outer
    tool: playbook
    workload: {vault: "{{ workload.vault }}"}
    workflow:
      - {step: login, tool: http, secret: true, method: POST, url: "{{ vault }}/token"}
`), map[string]any{"vault": v.URL})
	require.NoError(t, err)
	require.Equal(t, "***", result.Result.Data)
}

// TestNestedWarnings says in the run above that one below has warnings, and where.
func TestNestedWarnings(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	result, err := w.run(book(`
  - step: outer
    tool: playbook
    workload: {url: "{{ workload.api }}"}
    workflow:
      - step: bad
        tool: http
        url: "{{ url }}/status/404"
        next: [{when: "{{ error is defined }}", step: good}]
      - {step: good, tool: http, url: "{{ url }}/status/200", next: worse}
      - step: worse
        tool: http
        url: "{{ url }}/status/410"
        next: [{when: "{{ error is defined }}", step: final}]
      - {step: final, tool: http, url: "{{ url }}/status/200"}
`), nil)
	require.NoError(t, err)
	require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Error)
	require.Equal(t, []string{"step outer: the run that it started has 2 warnings: " + w.t.Name() + "-" + w.queue + "/outer#1!1"}, result.Warnings)
}

// TestNestedNotices: what happens in a run below is told by its own notices, and in
// the run above once, as what became of its step.
func TestNestedNotices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	receiver := newReceiver(t, nil)
	w.folder(map[string]string{"below.yaml": `apiVersion: reprise/v1
kind: Playbook
metadata: {name: below}
notify:
  - {on: [exhausted, failed], tool: http, method: POST, url: "{{ hook }}/below", body: {event: "{{ event.name }}", step: "{{ event.step }}"}}
workflow:
  - step: bad
    tool: http
    url: "{{ url }}/status/503"
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, delay: 10ms}}]
    on_failure: {tool: http, method: POST, url: "{{ hook }}/step", body: {event: failure, step: bad}}
`})
	w.work()
	source := strings.Replace(book(`
  - step: outer
    tool: playbook
    name: below
    workload: {url: "{{ workload.api }}", hook: "{{ workload.hook }}"}
    on_failure: {tool: http, method: POST, url: "{{ workload.hook }}/above", body: {event: failure, step: outer}}
`), "workflow:", `notify:
  - {on: [exhausted, failed], tool: http, method: POST, url: "{{ workload.hook }}/run", body: {event: "{{ event.name }}", step: "{{ event.step }}"}}
workflow:`, 1)
	result, err := w.run(source, map[string]any{"hook": receiver.URL})
	require.NoError(t, err)
	require.Equal(t, interpreter.Failed, result.Status)
	told := map[string][]string{}
	for _, got := range receiver.got() {
		body := got.body.(map[string]any)
		told[got.path] = append(told[got.path], fmt.Sprint(body["event"], " ", body["step"]))
	}
	require.ElementsMatch(t, []string{"exhausted bad", "failed <nil>"}, told["POST /below"])
	require.Equal(t, []string{"failed <nil>"}, told["POST /run"])
	require.Len(t, told["POST /step"], 1)
	require.Len(t, told["POST /above"], 1)
}

// TestNestedDeadLetters takes up iterations that run a playbook, and those of a loop
// in a run below.
func TestNestedDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	source := book(`
  - step: each
    tool: playbook
    loop: {in: [1, 2, 3], iterator: n}
    workload: {n: "{{ n }}", bad: "{{ workload.bad }}"}
    workflow:
      - step: inner
        tool: python
        loop: {in: "{{ [n, 10 * n] }}", iterator: m}
        args: {m: "{{ m }}", bad: "{{ bad }}"}
        code: |
          def main(m, bad):
              if m in bad: raise ValueError("bad")
              return m
        next: final
      - {step: final, tool: python, args: {all: "{{ inner.results }}"}, code: "def main(all): return all[0]"}
`)
	run := w.start(source, map[string]any{"bad": []any{2, 20, 30}})
	w.endsAs(run, interpreter.Partial)
	letters := w.chain(run).Select(deadletter.Filter{})
	require.Len(t, letters, 1)
	child := w.env.Client().GetWorkflow(t.Context(), run.GetID()+"/each#1/2!1", "")
	below := w.chain(child).Select(deadletter.Filter{})
	require.Len(t, below, 1)

	again := w.reprocess(run, letters, "", map[string]any{"bad": []any{}})
	result := w.endsAs(again, interpreter.Completed)
	require.Equal(t, 1, step(t, result, "each").Loop.Stats.Success)

	again = w.reprocess(child, below, "", map[string]any{"bad": []any{}})
	w.endsAs(again, interpreter.Completed)
}

// TestNestedContinuesAsNew: a run goes on in another history while a run below asks, which
// goes on in others itself.
func TestNestedContinuesAsNew(t *testing.T) {
	t.Parallel()
	w, _ := newAnswering(t)
	pages := `
  - {step: begin, vars: {n: 0}, next: visit}
  - step: visit
    tool: http
    url: "{{ api }}/body"
    params: {bytes: 100000, n: "{{ vars.n }}"}
    vars: {n: "{{ vars.n + 1 }}"}
    next:
      - {when: "{{ vars.n < 35 }}", step: visit}
      - {else: {step: outer}}
`
	run := w.start(book(pages+`
  - step: outer
    tool: playbook
    workload: {api: "{{ api }}"}
    workflow:`+strings.ReplaceAll(pages, "\n  ", "\n      ")+`
      - {step: outer, tool: approval, message: "go?"}
`), nil)
	child := run.GetID() + "/outer#1!1"
	w.awaited(child, "outer")
	require.True(t, w.steers(run, protocol.PauseUpdate, protocol.CommandInput{}).Changed)
	require.True(t, w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{}).Changed)
	asked, _, err := w.looker().AwaitingInChildren(t.Context(), run.GetID(), "outer", nil)
	require.NoError(t, err)
	require.Len(t, asked, 1)
	_, err = w.looker().SendAnswer(t.Context(), asked[0].WorkflowID, interpreter.Answer{
		Verb: interpreter.AnswerComplete, Option: "approve", By: "ada", AnswerTo: asked[0].AttemptAddress(),
	})
	require.NoError(t, err)
	w.endsAs(run, interpreter.Completed)
}
