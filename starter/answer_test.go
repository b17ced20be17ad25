package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/base/answers"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/program/host"
	"reprise/internal/program/steer"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/starter/answer"
	"reprise/starter/cli"
	"reprise/workflows/protocol"
)

// desk is where runs are started and answered with the commands.
type desk struct {
	t     *testing.T
	env   *testenv.Env
	queue string
	stop  func()
}

// newDesk has a worker, which stop ends.
func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, env: testenv.Temporal(t)}
	d.queue = d.env.NewTaskQueue()
	d.work()
	return d
}

// work has another worker poll.
func (d *desk) work() {
	d.t.Helper()
	catalogue := activities.NewCatalogue(activities.Resources{Directory: d.t.TempDir()})
	working := host.NewWorker(d.env.Client(), catalogue, host.Options{TaskQueue: d.queue, StopTimeout: time.Second})
	require.NoError(d.t, working.Start())
	stopped := false
	d.stop = func() {
		if !stopped {
			stopped = true
			working.Stop()
			require.NoError(d.t, catalogue.Close())
		}
	}
	d.t.Cleanup(d.stop)
}

// said is what a command has printed.
type said struct {
	status   int
	out, err string
}

func (d *desk) say(args ...string) said {
	d.t.Helper()
	var out, errs bytes.Buffer
	args = append(args, "--address", d.env.Address, "--namespace", d.env.Namespace)
	status := Main(d.t.Context(), args, cli.Streams{In: strings.NewReader(`{"from": "stdin"}`), Out: &out, Err: &errs})
	program := strings.NewReplacer(terminal.ProgramName()+" ", "starter ").Replace
	return said{status, program(out.String()), program(errs.String())}
}

// does has a command succeed, and gives what it says.
func (d *desk) does(args ...string) string {
	d.t.Helper()
	got := d.say(args...)
	require.Equal(d.t, exitcode.OK, got.status, "%v: %s%s", args, got.out, got.err)
	return got.out
}

// refuses has a command refused with an exit status, and gives why.
func (d *desk) refuses(status int, args ...string) string {
	d.t.Helper()
	got := d.say(args...)
	require.Equal(d.t, status, got.status, "%v: %s%s", args, got.out, got.err)
	require.Empty(d.t, got.out)
	return got.err
}

// start starts a run of steps, and gives its ID.
func (d *desk) start(steps string) string {
	d.t.Helper()
	return d.startAs(d.env.NewTaskQueue(), steps)
}

func (d *desk) startAs(id, steps string) string {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "book.yaml")
	source := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: asks}\nworkflow:\n" + steps
	require.NoError(d.t, os.WriteFile(file, []byte(source), 0o600))
	d.does("run", file, "--detach", "--task-queue", d.queue, "--workflow-id", id)
	return id
}

func (d *desk) status(id string, args ...string) *runs.Status {
	d.t.Helper()
	status := &runs.Status{}
	require.NoError(d.t, json.Unmarshal([]byte(d.does(append([]string{"status", id, "--output", "json"}, args...)...)), status))
	return status
}

// listed waits until the server finds a run by the beginning of its ID, and gives that.
func (d *desk) listed(id string) string {
	d.t.Helper()
	part := id[:len(id)-1]
	require.Eventually(d.t, func() bool { return d.say("status", part).status == exitcode.OK }, patience, 50*time.Millisecond)
	return part
}

// listedAs waits until the list finds a run by its status, which the list shows too.
func (d *desk) listedAs(status interpreter.Status, id string) {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		var list runs.List
		require.NoError(d.t, json.Unmarshal([]byte(d.does("list", "--status", string(status), "--limit", "0", "--output", "json")), &list))
		return slices.ContainsFunc(list.Runs, func(run runs.Found) bool { return run.WorkflowID == id && run.Status == status })
	}, patience, 50*time.Millisecond, "no %s run %s", status, id)
}

// awaits waits until so many attempts of a run await their answers, one at least of
// them an attempt with that number.
func (d *desk) awaits(id string, n, attempt int) []runs.AwaitedAttempt {
	d.t.Helper()
	reader := &runs.Reader{Client: d.env.Client(), Namespace: d.env.Namespace}
	var asked []runs.AwaitedAttempt
	require.Eventually(d.t, func() bool {
		var err error
		asked, _, err = reader.AwaitingAttempts(d.t.Context(), id, "", nil)
		return err == nil && len(asked) == n && asked[n-1].Attempt == attempt
	}, patience, 50*time.Millisecond, "nobody is asked")
	return asked
}

// ends waits for the end of a run, and gives its result.
func (d *desk) ends(id string) protocol.Result {
	d.t.Helper()
	var result protocol.Result
	err := testenv.WaitOutcome(d.t, d.env.Client().GetWorkflow(d.t.Context(), id, ""), &result)
	if err != nil {
		status := d.status(id)
		return protocol.Result{Status: status.Status, Error: status.Error}
	}
	return result
}

const importStep = `
  - step: import
    tool: webhook
    timeout: 1h
    retry: [{when: error.kind == 'explicit' and error.class == 'retryable', then: {max_attempts: 5, delay: 0s}}]
`

func TestCompleteFailProgress(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start(importStep)
	d.awaits(id, 1, 1)

	require.Equal(t, id+": import: 3 of 10, reading rows; its timeout starts again\n",
		d.does("progress", id, "import", "--done", "3", "--total", "10", "--message", "reading rows"))
	status := d.status(id)
	awaits := status.Steps[0].Awaits
	require.NotNil(t, awaits)
	require.Equal(t, []any{1, int64(3), int64(10), "reading rows"}, []any{awaits.Attempt, awaits.Done, awaits.Total, awaits.Message})
	require.True(t, awaits.Until.After(awaits.Since.Add(time.Hour)), "the time begins anew")
	require.Equal(t, runs.HeldByAnswer, status.Steps[0].HeldBy)
	shown := d.does("status", id)
	require.Regexp(t, `(?m)^import: awaiting an answer for \w+, until \w{3} \d+ \w{3}, \d\d:\d\d UTC$`, shown)
	require.Contains(t, shown, "import: [######--------------] 3 of 10, reading rows\n")
	require.Contains(t, shown, "starter complete "+id+" import\n")

	// The same words for two attempts are two answers.
	require.Equal(t, id+": import failed; the policies of the step decide what follows\n",
		d.does("fail", id, "import", "--error", "locked", "--details", `{"by": "ada"}`))
	d.awaits(id, 1, 2)
	require.Equal(t, id+": import attempt 2 failed; the policies of the step decide what follows\n",
		d.does("fail", id, "import", "--error", "locked", "--details", `{"by": "ada"}`))
	d.awaits(id, 1, 3)

	for _, wrong := range []struct {
		status int
		says   string
		args   []string
	}{
		{exitcode.Usage, "the run has no step \"imprt\"; did you mean \"import\"?", []string{"complete", id, "imprt"}},
		{exitcode.Failed, "step import has no loop, so it has no iteration 1", []string{"complete", id, "import", "--index", "1"}},
		{exitcode.Failed, "step import does not ask for an approval; answer its attempt with complete or fail", []string{"approve", id, "import"}},
		{exitcode.Failed, "no approval is waiting in the run", []string{"approve", id}},
		{exitcode.Usage, "done is 3, which is more than the total of 2", []string{"progress", id, "import", "--done", "3", "--total", "2"}},
	} {
		require.Contains(t, d.refuses(wrong.status, wrong.args...), wrong.says)
	}
	require.Contains(t, d.refuses(exitcode.Failed, "approve", id), "these attempts await an answer:\n  import attempt 3 awaiting an answer for ")

	require.Equal(t, id+": import attempt 3 is complete\n", d.does("complete", id, "import", "--result", "-", "--by", "grace"))
	result := d.ends(id)
	require.Equal(t, map[string]any{"from": "stdin"}, result.Result.Data)

	// The run has ended, and is still known to have had that answer.
	require.Equal(t, id+": import attempt 3 already has this answer\n", d.does("complete", id, "import", "--result", "-", "--by", "grace"))
	require.Contains(t, d.refuses(exitcode.Failed, "complete", id, "import", "--result", "7"), "the run has ended (completed) and accepts no more answers")
	require.Contains(t, d.refuses(exitcode.Failed, "progress", id, "import", "--done", "7"), "the run has ended (completed)")
	require.Regexp(t, `action_completed +import attempt 3, .*by grace`, d.does("events", id))
}

func TestFailForGood(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start(importStep)
	d.awaits(id, 1, 1)
	var doc answer.AnswerDocument
	out := d.does("fail", id[:len(id)-1], "import", "--error", "no such file", "--final", "--output", "json")
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	require.Equal(t, answer.AnswerDocument{
		Command: "fail", WorkflowID: id, AnswerTo: interpreter.AnswerTo{Step: "import", Visit: 1, Attempt: 1},
		Outcome: steer.Done, Message: "import failed permanently",
	}, doc)
	result := d.ends(id)
	require.EqualValues(t, "failed", result.Status)
	require.EqualValues(t, "explicit final", fmt.Sprint(result.Error.Kind, " ", result.Error.Class))
	require.Contains(t, d.does("fail", id, "import", "--error", "no such file", "--final"), "import already has this answer")
}

const askStep = `
  - step: ask
    tool: approval
    message: "# Load *it*?\n\nThere is more."
    form:
      rows: {type: integer, required: true}
      ok: boolean
      how: {type: choice, choices: [a, b], default: b}
`

func TestApprove(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start(askStep)
	d.awaits(id, 1, 1)
	approval := d.status(id).Steps[0].Awaits.Approval
	require.Equal(t, []string{"approve", "reject"}, approval.Options)
	require.Len(t, approval.Form, 3)
	shown := d.does("status", id)
	require.Regexp(t, "^"+id+` \(asks\): awaiting for [\w.]+, started [\w.]+ ago\n`, shown)
	require.Contains(t, d.refuses(exitcode.Failed, "retry-now", id), "step ask awaits an answer; starter approve "+id+" ask")
	d.listedAs(interpreter.Awaiting, id)
	require.Contains(t, shown, "ask: asks: Load *it*?\nask: options: approve, reject\n"+
		"ask: form: rows (integer, required), ok (boolean), how (a or b, else b)\n")
	require.Contains(t, shown, "starter approve "+id+" ask --set rows=INTEGER\n")
	for _, wrong := range []struct {
		says string
		args []string
	}{
		{"refused: the form needs rows", []string{"approve", id}},
		{"rows must be integer, not \"many\"", []string{"approve", id, "ask", "--set", "rows=many"}},
		{"the form has no field \"row\"; its fields are rows, ok, how", []string{"approve", id, "--set", "row=1"}},
		{"how must be one of a, b, not \"quick\"", []string{"approve", id, "--set", "rows=1", "--set", "how=quick"}},
		{"the options of step ask are approve, reject, not \"later\"", []string{"approve", id, "--set", "rows=1", "--option", "later"}},
		{"step ask is an approval; answer it with approve or reject, not with a result", []string{"complete", id, "ask"}},
	} {
		says := d.refuses(exitcode.Failed, wrong.args...)
		require.Contains(t, says, wrong.says)
		require.Contains(t, says, "    form: rows (integer, required), ok (boolean), how (a or b, else b)\n")
	}
	require.Equal(t, id+": ask: approve, by ada\n",
		d.does("approve", id, "--by", "ada", "--comment", "fine", "--set", "rows=1200", "--set", "ok=true"))
	encoded, err := json.Marshal(d.ends(id).Result)
	require.NoError(t, err)
	result := map[string]any{}
	require.NoError(t, json.Unmarshal(encoded, &result))
	delete(result, "at")
	require.Equal(t, map[string]any{
		"option": "approve", "by": "ada", "comment": "fine", "rows": 1200.0, "ok": true, "how": "b",
	}, result)
	require.Regexp(t, `action_completed +ask attempt 1, approve, by ada, `, d.does("events", id))
	require.Contains(t, d.does("events", id, "--output", "jsonl"), `"option":"approve","by":"ada"`)
	require.Contains(t, d.refuses(exitcode.Failed, "approve", id), "the run has ended (completed) and accepts no more answers")
}

// Loops: each iteration is answered by its index, whatever child has it.
func TestAnswersInLoops(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 2} {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			id := d.start(fmt.Sprintf(`
  - step: ask
    tool: approval
    message: "Load {{ n }}?"
    loop: {collection: [5, 6, 7, 8, 9], element: n, mode: parallel, max_concurrency: 10, batch: %d}
`, batch))
			d.awaits(id, 5, 1)
			status := d.status(id, "--step", "ask")
			require.Equal(t, 5, status.Steps[0].Loop.Awaiting)
			require.Len(t, status.Steps[0].Iterations, 5)
			require.Equal(t, "Load 8?", status.Steps[0].Iterations[3].Awaits.Approval.Message)
			shown := d.does("status", id, "--step", "ask")
			require.Contains(t, shown, "5 awaiting an answer")
			require.Regexp(t, `(?m)^  \[3\] awaiting an answer for [\w.]+, attempt 1: Load 8\?$`, shown)
			require.Equal(t, []interpreter.Status{"awaiting", "awaiting", "awaiting"}, []interpreter.Status{status.Status, status.Steps[0].Status, status.Steps[0].Iterations[3].Status})
			require.Equal(t, status.Steps[0].Since, status.Since)
			d.listedAs(interpreter.Awaiting, id)
			require.Contains(t, shown, "starter approve "+id+" ask --index 0\n")

			says := d.does("retry-now", id)
			require.Contains(t, says, "nothing waits, so nothing was changed; 5 iterations of step ask await an answer; to answer: starter approve "+id+" ask --index 0\n")
			says = d.refuses(exitcode.Failed, "approve", id)
			require.Contains(t, says, "5 approvals are waiting; name the STEP, and the iteration with --index")
			require.Contains(t, says, "    starter approve "+id+" ask --index 4\n")
			require.Contains(t, d.refuses(exitcode.Failed, "reject", id, "ask"), "5 iterations of step ask await an answer; name one with --index")
			says = d.refuses(exitcode.Failed, "reject", id, "ask", "--index", "5")
			require.Contains(t, says, "these attempts await an answer:\n  ask[0] awaiting an answer for ")

			require.Equal(t, id+": ask[3]: reject, by ada\n", d.does("reject", id, "ask", "--index", "3", "--by", "ada"))
			require.Equal(t, id+": ask[3] already has this answer\n", d.does("reject", id, "ask", "--index", "3", "--by", "ada"))
			for _, index := range []string{"0", "1", "2", "4"} {
				d.does("approve", id, "ask", "--index", index, "--by", "ada")
			}
			encoded, err := json.Marshal(d.ends(id).Result)
			require.NoError(t, err)
			require.Equal(t, 4, strings.Count(string(encoded), `"option":"approve"`))
			require.Equal(t, 1, strings.Count(string(encoded), `"option":"reject"`))
			require.Equal(t, id+": ask[3] already has this answer\n", d.does("reject", id, "ask", "--index", "3", "--by", "ada"))
			require.Contains(t, d.refuses(exitcode.Failed, "approve", id, "ask", "--index", "3", "--by", "ada"), "the run has ended (completed)")
		})
	}
}

// TestAnswerToAnIterationThatHasNotBegun: it is refused, and not as if the iteration were over.
func TestAnswerToAnIterationThatHasNotBegun(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start("  - {step: ask, tool: approval, message: \"Load {{ n }}?\", loop: {collection: [5, 6], element: n}}\n")
	d.awaits(id, 1, 1)
	says := d.refuses(exitcode.Failed, "approve", id, "ask", "--index", "1", "--by", "ada")
	require.Contains(t, says, "ask[1] has not started, or ended so long ago that the server has deleted it")
	require.Contains(t, says, "these attempts await an answer:\n  ask[0] awaiting an answer for ")
	for _, index := range []string{"0", "1"} {
		d.awaits(id, 1, 1)
		d.does("approve", id, "ask", "--index", index, "--by", "ada")
	}
	require.Equal(t, interpreter.Completed, d.ends(id).Status)
}

// TestAnswersThatARunCannotAccept are refused before they reach the server, by what they
// take on their way, and the attempt waits on.
func TestAnswersThatARunCannotAccept(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start("  - {step: ask, tool: webhook}\n")
	d.awaits(id, 1, 1)
	for _, letter := range []string{"x", "<"} { // which JSON on its way writes in six letters
		file := filepath.Join(t.TempDir(), "result.json")
		size := map[string]int{"x": 3_000_000, "<": 400_000}[letter]
		require.NoError(t, os.WriteFile(file, []byte(`"`+strings.Repeat(letter, size)+`"`), 0o600))
		require.Contains(t, d.refuses(exitcode.Usage, "complete", id, "ask", "--result", "@"+file), "and a run accepts at most 1900000")
	}
	require.Contains(t, d.does("complete", id, "ask", "--result", "1"), "complete")
}

func TestAnswerWithoutWorker(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start(importStep)
	d.awaits(id, 1, 1)
	d.stop()
	began := time.Now()
	for range 2 {
		out := d.does("fail", id, "import", "--error", "locked")
		require.Contains(t, out, "the server keeps the answer until a worker is back, which accepts it")
	}
	require.Less(t, time.Since(began), patience)
	require.Contains(t, d.refuses(exitcode.Failed, "approve", id), "so it is unknown which approval is waiting; name the step")
	d.work()
	d.awaits(id, 1, 2)
	require.Contains(t, d.does("complete", id, "import"), "import attempt 2 is complete")
	require.Equal(t, interpreter.Completed, d.ends(id).Status)
}

// TestAnswerAfterTheEnd: a server gives the outcome of an answer that it knows, though
// the run that took it has ended.
func TestAnswerAfterTheEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start(importStep)
	reader := &runs.Reader{Client: d.env.Client(), Namespace: d.env.Namespace}
	answer := interpreter.Answer{Verb: interpreter.AnswerComplete, AnswerTo: d.awaits(id, 1, 1)[0].AttemptAddress(), ID: "one"}
	_, err := reader.SendAnswer(t.Context(), id, answer)
	require.NoError(t, err)
	d.ends(id)
	answer.ID = "two"
	taken, err := reader.SendAnswer(t.Context(), id, answer)
	require.NoError(t, err)
	require.Equal(t, "one", taken.ID)
	answer.By = "somebody else"
	_, err = reader.SendAnswer(t.Context(), id, answer)
	require.ErrorIs(t, err, answers.ErrClosed)
	_, found := reader.FindReceipt(t.Context(), id, answer, 1)
	require.False(t, found)
}

// TestAnswerTwice: an answer whose sender could not tell that it came is taken once,
// though the next attempt waits by then.
func TestAnswerTwice(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start(importStep)
	d.awaits(id, 1, 1)
	reader := &runs.Reader{Client: d.env.Client(), Namespace: d.env.Namespace}
	answer := interpreter.Answer{Verb: interpreter.AnswerFail, Message: "locked", AnswerTo: interpreter.AnswerTo{Step: "import"}, ID: "one"}
	require.NoError(t, reader.DepositAnswer(t.Context(), id, answer))
	d.awaits(id, 1, 2)
	taken, err := reader.SendAnswer(t.Context(), id, answer)
	require.NoError(t, err)
	require.Equal(t, 1, taken.Attempt, "it was taken before")
	require.Equal(t, 2, d.awaits(id, 1, 2)[0].Attempt)
	_, err = reader.SendAnswer(t.Context(), id, interpreter.Answer{Verb: interpreter.AnswerComplete})
	require.NoError(t, err)
	d.ends(id)
}

func TestAnswerUsage(t *testing.T) {
	t.Parallel()
	for _, wrong := range []struct {
		says string
		args []string
	}{
		{"name the run and the step: starter complete RUN STEP", []string{"complete", "x"}},
		{"name the run and the step: starter approve RUN [STEP]", []string{"approve"}},
		{"\"z\" is one too many", []string{"reject", "x", "y", "z"}},
		{"--index -1 is less than 0", []string{"complete", "x", "y", "--index", "-1"}},
		{"--error is missing: say why the attempt failed", []string{"fail", "x", "y"}},
		{"--done is missing: say how much is done", []string{"progress", "x", "y"}},
		{"--option is empty", []string{"approve", "x", "--option", ""}},
		{"--result: not JSON: invalid character 'o' at start of value at byte 0; a text needs double quotes", []string{"complete", "x", "y", "--result", "ok"}},
		{"--details: open nowhere.json: ", []string{"fail", "x", "y", "--error", "e", "--details", "@nowhere.json"}},
		{"--set \"rows\": expected field=value, each field once", []string{"approve", "x", "--set", "rows"}},
		{"--set \"rows=2\": expected field=value, each field once", []string{"approve", "x", "--set", "rows=1", "--set", "rows=2"}},
		{"done and total must not be negative", []string{"progress", "x", "y", "--done", "-1"}},
		{"--output \"yaml\" is unknown", []string{"approve", "x", "--output", "yaml"}},
	} {
		var out, errs bytes.Buffer
		status := Main(t.Context(), wrong.args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		require.Equal(t, exitcode.Usage, status, "%v: %s", wrong.args, errs.String())
		require.Contains(t, strings.ReplaceAll(errs.String(), terminal.ProgramName()+" ", "starter "), wrong.says)
	}
	var errs bytes.Buffer
	status := Main(t.Context(), []string{"approve", "x", "--address", "127.0.0.1:1"}, cli.Streams{In: strings.NewReader(""), Out: &errs, Err: &errs})
	require.Equal(t, exitcode.NoServer, status, errs.String())
}
