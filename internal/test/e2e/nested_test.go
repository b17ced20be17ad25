package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/internal/observe/ending"
	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// eachPatient runs two steps for each element of a loop.
const eachPatient = `
  - step: each
    tool: playbook
    loop:
      in: "{{ workload.ids }}"
      iterator: id
      mode: parallel
      max_concurrency: 10
    workload:
      id: "{{ id }}"
      bad: "{{ workload.bad }}"
    workflow:
      - step: double
        tool: python
        args: {id: "{{ id }}"}
        code: |
          def main(id):
              return {"twice": 2 * id}
        next: judge
      - step: judge
        tool: python
        args: {id: "{{ id }}", twice: "{{ double.twice }}", bad: "{{ bad }}"}
        code: |
          def main(id, twice, bad):
              if id == bad:
                  raise ValueError("element %d is bad" % id)
              return twice + 1
`

// TestNestedInLoop runs two steps for each of 21 elements, one of which fails in its
// second step.
func TestNestedInLoop(t *testing.T) {
	t.Parallel()

	w := newWorking(t)
	ids := make([]any, 21)
	for i := range ids {
		ids[i] = i
	}
	result, err := w.run(book(eachPatient), map[string]any{"ids": ids, "bad": 7})
	require.NoError(t, err)
	require.Equal(t, interpreter.Completed, result.Status)

	each := result.Steps[0]
	require.Equal(t, 20, each.Loop.Stats.Success)
	require.Equal(t, 1, each.Loop.Stats.Failed)
	failure := each.Loop.Errors[0]
	require.Equal(t, 7, failure.Index)
	require.Equal(t, interpreter.KindPlaybook, failure.Error.Kind)
	require.Contains(t, failure.Error.Message, "/each#1/7!1 failed: ")
	require.Contains(t, failure.Error.Message, "element 7 is bad")

	results := result.Result.Data.(map[string]any)["results"].([]any)
	require.EqualValues(t, 41, results[20])
	require.Nil(t, results[7])
}

// recursion is a playbook that runs itself until a depth is reached.
const recursion = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: deep}
workload: {depth: 0, to: 3}
workflow:
  - step: start
    next:
      - {when: "{{ depth < to }}", step: deeper}
      - {else: {step: bottom}}
  - step: bottom
    tool: python
    args: {depth: "{{ depth }}"}
    code: "def main(depth): return depth"
  - step: deeper
    tool: playbook
    name: deep
    workload: {depth: "{{ depth + 1 }}", to: "{{ to }}"}
`

// folder gives the worker a folder of playbooks.
func (w *world) folder(files map[string]string) {
	w.t.Helper()
	w.resources.Playbooks = w.t.TempDir()
	for name, text := range files {
		require.NoError(w.t, os.WriteFile(filepath.Join(w.resources.Playbooks, name), []byte(text), 0o600))
	}
}

// TestNestedRecursion runs a playbook within itself, as deep as that goes and deeper.
func TestNestedRecursion(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.folder(map[string]string{"deep.yaml": recursion})
	w.work()
	result, err := w.run(recursion, map[string]any{"to": 16})
	require.NoError(t, err)
	require.EqualValues(t, 16, result.Result.Data)

	run := w.start(recursion, map[string]any{"to": 17})
	result, err = w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, "the run "+run.GetID()+"/deeper#1!1 failed, in "+run.GetID()+strings.Repeat("/deeper#1!1", 16)+
		": step deeper: playbooks may run each other at most 16 levels deep, and this one is already at that level", result.Error.Message)
}

// TestNestedName checks that a run goes by the playbooks that it found when it began.
func TestNestedName(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	score := `apiVersion: reprise/v1
kind: Playbook
metadata: {name: score}
workload: {n: 1, add: 10}
workflow:
  - step: start
    tool: playbook
    path: parts/add.yaml
    workload: {n: "{{ n }}", add: "{{ add }}"}
`
	add := `apiVersion: reprise/v1
kind: Playbook
metadata: {name: add}
workflow:
  - step: start
    tool: python
    args: {n: "{{ n }}", add: "{{ add }}"}
    code: "def main(n, add): return n + add"
`
	w.folder(map[string]string{"score.yaml": score})
	parts := filepath.Join(w.resources.Playbooks, "parts")
	require.NoError(t, os.Mkdir(parts, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(parts, "add.yaml"), []byte(add), 0o600))
	require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(w.resources.Playbooks, "out.yaml")))
	w.work()
	hold := w.api.HoldRequests(func(r *http.Request) bool { return r.URL.Path == "/echo" })
	run := w.start(book(`
  - step: wait
    tool: http
    url: "{{ workload.api }}/echo"
    next: each
  - step: each
    tool: playbook
    loop: {in: [1, 2], iterator: n}
    name: "{{ workload.which }}"
    names: [other, score]
    workload: {n: "{{ n }}"}
`), map[string]any{"which": "score"})
	require.Eventually(t, func() bool { return hold.HeldRequests() > 0 }, patience, tick)
	require.NoError(t, os.RemoveAll(w.resources.Playbooks))
	hold.Release()
	result := w.endsAs(run, interpreter.Completed)
	require.Equal(t, w.expected([]any{11, 12}), result.Result.Data.(map[string]any)["results"])
}

// TestNestedUnknownName checks what the door says of names that it cannot find.
func TestNestedUnknownName(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.folder(map[string]string{"score.yaml": recursion, "bad.yaml": "kind: Playbook\n"})
	require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(w.resources.Playbooks, "out.yaml")))
	w.work()
	for name, want := range map[string]string{
		"scor":  `there is no playbook "scor" in the worker's folder [`,
		"other": `there is no playbook "other" in the worker's folder [`,
		"out":   `there is no playbook "out" in the worker's folder`,
		"bad":   `the named playbook is invalid: name:bad.yaml:1:1: the playbook needs "apiVersion"`,
		"../x":  `"../x" is not the name of a playbook`,
	} {
		require.Contains(t, w.refused(book("  - step: start\n    tool: playbook\n    name: "+name+"\n")), want)
	}
	require.Contains(t, w.refused(book("  - step: start\n    tool: playbook\n    path: x.yaml\n")),
		`the run was started without the file "x.yaml", which starter would send with it`)
}

// TestNestedRetry runs another playbook anew where it has failed, and takes its
// partial success for what it is.
func TestNestedRetry(t *testing.T) {
	t.Parallel()

	w := newWorking(t)
	w.recordAs("playbooks")
	result, err := w.run(book(`
  - step: flaky
    tool: playbook
    workload: {url: "{{ workload.api }}"}
    workflow:
      - step: fetch
        tool: http
        url: "{{ url }}/flaky?times=1&key=nested"
    retry:
      - when: "{{ error.kind == 'playbook' and error.type == 'http' and error.body.error.status == 503 }}"
        then: {max_attempts: 3, delay: 10ms}
    next: half
  - step: half
    tool: playbook
    workload: {url: "{{ workload.api }}"}
    workflow:
      - step: each
        tool: http
        loop: {in: [200, 404], iterator: status}
        url: "{{ url }}/status/{{ status }}"
    next: halves
  - step: halves
    tool: playbook
    loop: {in: [200, 404], iterator: other, mode: parallel, batch: 2}
    workload: {url: "{{ workload.api }}", other: "{{ other }}"}
    workflow:
      - step: each
        tool: http
        loop: {in: ["{{ other }}", 200], iterator: status}
        url: "{{ url }}/status/{{ status }}"
`), nil)
	require.NoError(t, err)
	require.Equal(t, interpreter.Partial, result.Status)
	require.Equal(t, interpreter.Completed, result.Steps[0].Status)
	require.Equal(t, 2, result.Steps[0].Attempts)
	require.True(t, strings.HasSuffix(result.Steps[0].Child, "/flaky#1!2"), result.Steps[0].Child)
	require.Equal(t, interpreter.Partial, result.Steps[1].Status)
	require.Equal(t, interpreter.Partial, result.Steps[2].Status)
	require.Equal(t, 2, result.Steps[2].Loop.Stats.Success)
}

// TestNestedDetached starts a playbook and does not wait for it.
func TestNestedDetached(t *testing.T) {
	t.Parallel()

	w := newWorking(t)
	hold := w.api.HoldRequests(func(r *http.Request) bool { return r.URL.Path == "/echo" })
	run := w.start(book(`
  - step: start
    tool: playbook
    wait: false
    workload: {url: "{{ workload.api }}"}
    workflow:
      - step: fetch
        tool: http
        url: "{{ url }}/echo"
`), nil)
	result, err := ending.WaitForResult(t.Context(), run)
	require.NoError(t, err)
	started := result.Result.Data.(map[string]any)
	require.Equal(t, run.GetID()+"/start#1!1", started["workflow_id"])
	child := w.env.Client().GetWorkflow(t.Context(), started["workflow_id"].(string), started["run_id"].(string))
	require.Eventually(t, func() bool { return hold.HeldRequests() == 1 }, patience, tick, "it goes on")
	hold.Release()
	inner, err := ending.WaitForResult(t.Context(), child)
	require.NoError(t, err)
	require.Equal(t, interpreter.Completed, inner.Status)
	_, err = w.outcome(run)
	require.NoError(t, err)
}

// slowInner is a loop over a playbook whose two steps ask an API.
const slowInner = `
  - step: each
    tool: playbook
    loop: {in: "{{ 1..20 }}", iterator: n, mode: parallel, max_concurrency: 4}
    workload: {n: "{{ n }}", url: "{{ workload.api }}"}
    workflow:
      - step: inner
        tool: http
        loop: {in: [1, 2, 3], iterator: part}
        url: "{{ url }}/"
        params: {n: "{{ n }}", takes: 100ms}
        next: after
      - step: after
        tool: http
        url: "{{ url }}/"
        params: {n: "{{ n }}", takes: 100ms}
`

// TestNestedPause holds the attempts of runs below, and lets them go on.
func TestNestedPause(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"", "each"} {
		t.Run("step "+step, func(t *testing.T) {
			t.Parallel()

			w, api := newWorking(t), newGauge(t)
			run := w.start(book(slowInner), map[string]any{"api": api.url})
			require.Eventually(t, func() bool { return api.began(time.Time{}) >= 8 }, patience, tick)
			require.True(t, w.steers(run, protocol.PauseUpdate, protocol.CommandInput{Step: step}).Changed)
			told := testenv.Within(2 * time.Second) // every run below
			paused := time.Now().Add(told)
			require.Never(t, func() bool { return api.began(paused) > 0 }, told+3*time.Second, 100*time.Millisecond)
			require.Less(t, api.began(time.Time{}), 80)

			resumed := time.Now()
			require.True(t, w.steers(run, protocol.ResumeUpdate, protocol.CommandInput{Step: step}).Changed)
			require.Eventually(t, func() bool { return api.began(resumed) > 0 }, patience, tick)
			result, err := w.outcome(run)
			require.NoError(t, err)
			require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Steps[0].Loop)
			require.Equal(t, 80, api.began(time.Time{}), "each attempt once")
		})
	}
}

// TestNestedPauseAlone pauses a run below by its own ID.
func TestNestedPauseAlone(t *testing.T) {
	t.Parallel()

	w, api := newWorking(t), newGauge(t)
	api.set(true)
	run := w.start(book(`
  - step: outer
    tool: playbook
    workload: {url: "{{ workload.api }}"}
    workflow:
      - step: fetch
        tool: http
        url: "{{ url }}/"
        retry: [{when: "{{ error is defined }}", then: {max_attempts: 3, delay: 1h}}]
`), map[string]any{"api": api.url})
	child := w.env.Client().GetWorkflow(t.Context(), run.GetID()+"/outer#1!1", "")
	require.Eventually(t, func() bool {
		progress, ok := w.progress(child)
		return ok && len(progress.Steps) == 1 && progress.Steps[0].Status == interpreter.RetryPending
	}, patience, tick)
	require.Equal(t, child.GetID(), w.await(run, "outer", interpreter.Running).Child)
	require.True(t, w.steers(child, protocol.PauseUpdate, protocol.CommandInput{}).Changed)
	require.True(t, w.steers(child, protocol.ResumeUpdate, protocol.CommandInput{}).Changed)
	api.set(false)
	w.steers(child, protocol.RetryNowUpdate, protocol.CommandInput{})
	w.endsAs(run, interpreter.Completed)
}

const waitsForever = `
  - step: outer
    tool: playbook
    loop: {in: [1, 2], iterator: n, mode: parallel}
    workload: {url: "{{ workload.api }}"}
    workflow:
      - step: fetch
        tool: http
        url: "{{ url }}/status/503"
        retry: [{when: "{{ error is defined }}", then: {max_attempts: 3, delay: 1h}}]
`

// waiting waits until a run below waits for its next attempt.
func (w *world) waiting(id string) client.WorkflowRun {
	w.t.Helper()
	child := w.env.Client().GetWorkflow(w.t.Context(), id, "")
	require.Eventually(w.t, func() bool {
		progress, ok := w.progress(child)
		return ok && len(progress.Steps) == 1 && progress.Steps[0].Status == interpreter.RetryPending
	}, patience, tick)
	return child
}

// TestNestedCancel cancels a run, which cancels those below.
func TestNestedCancel(t *testing.T) {
	t.Parallel()

	w := newWorking(t)
	run := w.start(book(waitsForever), nil)
	child := w.waiting(run.GetID() + "/outer#1/0!1")
	result := w.cancel(run)
	require.Equal(t, interpreter.Cancelled, step(t, result, "outer").Status)
	inner, _ := ending.WaitForResult(t.Context(), child)
	require.Equal(t, interpreter.Cancelled, inner.Status)
}

// TestNestedCancelAlone cancels a run below by itself: its step has failed.
func TestNestedCancelAlone(t *testing.T) {
	t.Parallel()

	w := newWorking(t)
	run := w.start(book(waitsForever), nil)
	for _, index := range []string{"0", "1"} {
		child := w.waiting(run.GetID() + "/outer#1/" + index + "!1")
		require.NoError(t, w.env.Client().CancelWorkflow(t.Context(), child.GetID(), ""))
	}
	result := w.endsAs(run, interpreter.Failed)
	failures := step(t, result, "outer").Loop.Errors
	require.Len(t, failures, 2)
	require.Equal(t, interpreter.KindPlaybook, failures[1].Error.Kind)
	require.Equal(t, interpreter.ClassFinal, failures[1].Error.Class)
	require.Equal(t, "the run "+run.GetID()+"/outer#1/1!1 was cancelled", failures[1].Error.Message)
}

// TestNestedTimeout bounds a run below.
func TestNestedTimeout(t *testing.T) {
	t.Parallel()

	w := newWorking(t)
	run := w.start(book(strings.ReplaceAll(waitsForever, "    loop: {in: [1, 2], iterator: n, mode: parallel}\n", "    timeout: 2s\n")), nil)
	result := w.endsAs(run, interpreter.Failed)
	require.Equal(t, interpreter.KindTimeout, result.Error.Kind)
	require.Equal(t, "the run "+run.GetID()+"/outer#1!1 did not end within 2s and was cancelled", result.Error.Message)

	var ends []runs.Event
	reader := w.looker()
	found, err := reader.Find(t.Context(), run.GetID(), "")
	require.NoError(t, err)
	_, err = reader.Events(t.Context(), found, runs.EventFilter{Kinds: []string{runs.ActionStarted, runs.ActionError}}, func(event runs.Event) error {
		ends = append(ends, event)
		return nil
	})
	require.NoError(t, err)
	require.Len(t, ends, 2)
	require.Equal(t, run.GetID()+"/outer#1!1", ends[0].Child)
	require.Equal(t, interpreter.KindTimeout, ends[1].Error.Kind)
}

// TestNestedLarge hands a large workload in, and a large result out.
func TestNestedLarge(t *testing.T) {
	t.Parallel()

	w := newStoring(t, nil)
	large := strings.Repeat("x", 5_000_000)
	result, err := w.run(book(`
  - step: outer
    tool: playbook
    workload: {text: "{{ workload.text }}"}
    workflow:
      - step: again
        tool: python
        args: {text: "{{ text }}"}
        code: "def main(text): return text + 'y'"
`), map[string]any{"text": large})
	require.NoError(t, err)
	require.Equal(t, large+"y", result.Result.Data)
}

// TestNestedIsListedApart leaves the runs that steps have started out of what is
// listed and of beginnings of IDs, and finds them by their own.
func TestNestedIsListedApart(t *testing.T) {
	t.Parallel()

	w := newWorking(t)
	run := w.start(book(`
  - step: outer
    tool: playbook
    workflow:
      - step: quick
        tool: python
        code: "def main(): return 1"
`), nil)
	_, err := w.outcome(run)
	require.NoError(t, err)
	reader := w.looker()
	listed := func(children bool) (ids []string) {
		list, err := reader.List(t.Context(), runs.Filter{Children: children})
		require.NoError(t, err)
		for _, found := range list.Runs {
			if strings.HasPrefix(found.WorkflowID, run.GetID()) {
				ids = append(ids, found.WorkflowID)
			}
		}
		return ids
	}
	child := run.GetID() + "/outer#1!1"
	require.Eventually(t, func() bool { return len(listed(true)) == 2 }, patience, tick)
	require.Equal(t, []string{run.GetID()}, listed(false))
	found, err := reader.Find(t.Context(), run.GetID()[:len(run.GetID())-1], "")
	require.NoError(t, err)
	require.Equal(t, run.GetID(), found.WorkflowID)
	found, err = reader.Find(t.Context(), child[:len(child)-2], "")
	require.NoError(t, err)
	require.Equal(t, child, found.WorkflowID)
	described, err := w.env.Client().DescribeWorkflowExecution(t.Context(), child, "")
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, described.GetWorkflowExecutionInfo().GetStatus())
}

// TestNestedOnlyFromItsParent refuses what a client cannot know: that a run has started
// another one.
func TestNestedOnlyFromItsParent(t *testing.T) {
	t.Parallel()

	w := newWorking(t)
	for name, input := range map[string]protocol.Input{
		"called": {Called: &protocol.ParentAttempt{Step: "x", Visit: 1, Depth: 1}},
		"named":  {Files: map[string]string{"name:x.yaml": recursion}},
	} {
		input.Name, input.Source = "test.yaml", book("  - step: x\n    tool: python\n    code: \"def main(): return 1\"\n")
		run, err := w.env.Client().ExecuteWorkflow(t.Context(),
			client.StartWorkflowOptions{ID: w.queue + "-" + name, TaskQueue: w.queue}, protocol.PlaybookWorkflowName, input)
		require.NoError(t, err)
		require.ErrorContains(t, testenv.WaitOutcome(t, run, nil), "the input of the workflow was refused: it claims that a step of another run started it")
	}
}
