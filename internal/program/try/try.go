package try

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/internal/base/secrets"
	"reprise/internal/base/sleep"
	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// TryStep tries a step. The error is a *RefusedError if nothing was sent, or that of ctx; failures of requests are in the
// report.
func TryStep(ctx context.Context, options Options) (*Report, error) {
	options.Pages = cmp.Or(options.Pages, DefaultPages)
	options.MaxWait = cmp.Or(options.MaxWait, DefaultMaxWait)
	if options.Sleep == nil {
		options.Sleep = sleep.For
	}
	options.Resources.Secrets = cmp.Or(options.Resources.Secrets, &secrets.Masker{})
	t := &trial{Options: options, report: &Report{Playbook: options.Book.Name, DryRun: options.DryRun, Sinks: []Sink{}, Attempts: []Attempt{}}}
	if err := t.prepareCall(); err != nil {
		return nil, err
	}
	defer func() { _ = t.catalogue.Close() }()
	if t.Begin != nil {
		t.Begin(t.report)
	}
	err := t.driveCall(ctx)
	return t.report, err
}

// trial is one try of a step.
type trial struct {
	Options

	step      *playbook.Step
	call      *call.Call
	catalogue *activities.Catalogue
	report    *Report
	exchanges exchanges
	asked     []call.Evaluation      // of the last outcome
	before    *interpreter.ToolInput // of the attempt before
	requests  int                    // that differ from the one before
}

// prepareCall creates the call and the tools, and refuses what cannot be tried.
func (t *trial) prepareCall() (err error) {
	if t.step, err = findStep(t.Book, t.Step); err != nil {
		return err
	}
	t.report.Step = t.step.Name
	t.report.Tool, _ = t.Book.ResolveAction(t.step.Action).ToolName()
	if err := t.checkInputs(); err != nil {
		return err
	}
	if err := t.checkWrite(); err != nil {
		return err
	}
	data, args, err := t.expressionData()
	if err != nil {
		return err
	}
	id := "reprise-try/" + uuid.NewString()
	task := call.Task{
		Step: t.step.Name, Visit: 1, Name: t.Book.File.Name, Source: t.Book.SourceText(), Data: data, Args: expression.Of(args),
		Run:    interpreter.RunInfo{WorkflowID: id, RunID: id, StartedAt: time.Now().UTC(), Playbook: t.Book.Name, Partition: t.Partition},
		Limits: interpreter.NewRunLimits(t.Resources.Limits),
	}
	snapshot, err := t.snapshotOf(task)
	if err != nil {
		return err
	}
	t.Resources.HTTP.Observe = func(base http.RoundTripper) http.RoundTripper { return seeing{of: &t.exchanges, base: base} }
	if t.DryRun {
		t.Resources.HTTP.Transport = refuses{&t.exchanges}
	}
	t.catalogue = activities.NewCatalogue(t.Resources)
	t.call = task.BuildCall(t.Book, t.step, snapshot, rand.Float64)
	t.call.Explain(func(asked call.Evaluation) { t.asked = append(t.asked, asked) })
	return nil
}

// checkWrite refuses to write if writing only part of the rows would be wrong.
func (t *trial) checkWrite() error {
	if !t.Write {
		return nil
	}
	if t.step.Incremental != nil {
		return refusef("--write: step %q keeps a state between runs, which only a run moves together with its rows", t.step.Name)
	}
	for _, sink := range lists.Filter(t.Book.StagingSinks(t.step), func(sink *playbook.Sink) bool { return t.Book.PublishesWhole(t.step, sink) }) {
		return refusef("%s: --write: the sink replaces what is in its table, and a try reads only a part of that", placeText(t.Book, sink.Pos))
	}
	return nil
}

// driveCall carries out the call's commands, one after the other.
func (t *trial) driveCall(ctx context.Context) error {
	for ctx.Err() == nil && t.report.Stopped == "" {
		now := time.Now().UTC()
		command := t.call.Next(now)
		if paged := t.call.View().Attempts > 0 && t.call.View().RequestAttempts == 0; paged && t.requests >= t.Pages &&
			(command.Kind == call.DoAttempt || command.Kind == call.DoWait) {
			t.report.Notes = append(t.report.Notes, "stopped after "+terminal.Count(t.requests, "page")+"; --pages N requests more")
			t.call.EndHere(now, "--pages")
			continue
		}
		var err error
		switch command.Kind {
		case call.DoAttempt:
			err = t.makeAttempt(ctx, command.Input)
		case call.DoWait:
			err = t.waitShort(ctx, command.Wait)
		case call.DoSink:
			err = t.trySink(ctx, command.Sink)
		case call.DoState:
			t.answerState(command.State, now)
		case call.DoFinish:
			t.showEnd(command.Result)
			return nil
		default: // nobody is there to resume it
			t.report.Stopped = "the call is held for people, who decide how it continues"
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// makeAttempt makes one attempt and shows the result.
func (t *trial) makeAttempt(ctx context.Context, in interpreter.ToolInput) error {
	if why := t.writeReason(in); why != "" && !t.AllowWrites && !t.DryRun {
		message := fmt.Sprintf("%s; --allow-writes makes it, --dry-run shows it", why)
		if len(t.report.Attempts) == 0 {
			return &RefusedError{Message: fmt.Sprintf("step %q: %s", t.step.Name, message)}
		}
		t.report.Stopped = message
		return nil
	}
	if t.call.View().RequestAttempts == 0 {
		t.requests++
	}
	shown := Attempt{Number: in.Attempt, Page: t.requests, Policies: []Policy{}}
	if t.DryRun && !playbook.TraitsOf(in.Tool).Requests {
		shown.Request = t.requestOf(in, nil)
		t.showAttempt(shown, "nothing was sent")
		return nil
	}
	t.exchanges.forgetExchanges()
	began := time.Now()
	if !t.AllowWrites {
		ctx = tool.ReadOnly(ctx)
	}
	outcome, err := t.catalogue.Attempts.TryOnce(ctx, in)
	took := time.Since(began)
	if err != nil {
		return err
	}
	last := t.exchanges.lastExchange()
	shown.Request = t.requestOf(in, last)
	if t.DryRun {
		if last == nil && outcome.Err != nil && !errors.Is(t.exchanges.refusedError(), errDryRun) {
			t.report.Error = t.maskedText(outcome.Err.Message)
		}
		t.showAttempt(shown, "nothing was sent")
		return nil
	}
	t.asked = nil
	t.call.ApplyOutcome(outcome, time.Now().UTC())
	if outcome.PutOff != nil {
		return nil // it was not made, and its turn is waited for
	}
	shown.Answer = t.responseOf(outcome, last, took)
	t.recordAnswer(t.step.Name, outcome, last)
	shown.Policies = t.policiesOf()
	t.before = &in
	shown.Next = t.nextThing(in)
	t.showAttempt(shown, "")
	return nil
}

// showAttempt adds an attempt to the report.
func (t *trial) showAttempt(attempt Attempt, stopped string) {
	t.report.Attempts = append(t.report.Attempts, attempt)
	t.report.Stopped = cmp.Or(t.report.Stopped, stopped)
	if t.Each != nil {
		t.Each(attempt)
	}
}

// writeReason returns why an attempt may change something; "" if it only reads.
func (t *trial) writeReason(in interpreter.ToolInput) string {
	traits := playbook.TraitsOf(in.Tool)
	switch {
	case traits.Requests:
		current := t.call.View().Request
		method := strings.ToUpper(strings.TrimSpace(current.HTTPMethod(false)))
		if !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method) {
			return fmt.Sprintf("a request with %s may change something", method)
		}
	case traits.Moves:
		return "a transfer writes rows to a table"
	case traits.Dialect != "":
		node := t.Book.ResolveAction(t.step.Action).Field(playbook.FieldStatement)
		if node.Statement() == nil || !slices.Contains(readingVerbs, node.Statement().Verb()) {
			return "the statement may change something"
		}
	}
	return ""
}

// waitShort waits, or stops the try if the wait is too long.
func (t *trial) waitShort(ctx context.Context, wait interpreter.Wait) error {
	if wait.Delay > t.MaxWait {
		t.report.Stopped = fmt.Sprintf("the next wait is %s, longer than --max-wait %s: %s", wait.Delay.Round(time.Millisecond), t.MaxWait, t.maskedText(wait.Summary))
		return nil
	}
	if err := t.Sleep(ctx, wait.Delay); err != nil {
		return err
	}
	t.call.EndWait()
	return nil
}

// answerState answers a call that claims its step's state as if there were no state: a try neither reads nor moves
// it.
func (t *trial) answerState(in interpreter.StateInput, now time.Time) {
	if in.Claim != nil {
		t.report.Notes = append(t.report.Notes,
			"the state that the step keeps between runs is neither read nor moved: the step begins at its initial_value")
	}
	t.call.StateAnswered(interpreter.StateOutput{Claimed: incremental.ClaimedState{}}, now)
}

// showEnd adds the end of the call to the report.
func (t *trial) showEnd(result interpreter.CallResult) {
	t.report.Status, t.report.Warnings = result.Status, lists.Map(result.Warnings, t.maskedText)
	data := result.Data
	if result.Failed() {
		t.report.Error = t.maskedText(result.Error.Message)
		data = result.Error.Collected
		if data.Data == nil {
			return
		}
	}
	shown := expression.Of(t.maskedValue(data.Data))
	t.report.Result, t.report.Columns = &shown, columnsOf(rowsOf(shown.Data))
}
