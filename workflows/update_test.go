package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/partition"
	"reprise/interpreter/ratelimit"
	"reprise/interpreter/tree"
	"reprise/workflows/protocol"
)

// sentUpdate is an update that arrives with the first task of a workflow.
type sentUpdate struct {
	name string
	arg  any
}

// outcomes sends updates with the first task of the workflow, and collects what becomes of each: "accepted", or its
// refusal.
func (s *stage) outcomes(sent ...sentUpdate) []string {
	all := make([]string, len(sent))
	s.env.RegisterDelayedCallback(func() {
		for i, one := range sent {
			s.env.UpdateWorkflow(one.name, fmt.Sprint(i), &testsuite.TestUpdateCallback{
				OnAccept: func() {},
				OnReject: func(err error) { all[i] = message(err) },
				OnComplete: func(_ any, err error) {
					if all[i] = "accepted"; err != nil {
						all[i] = message(err)
					}
				},
			}, one.arg)
		}
	}, 0)
	return all
}

// message is the message of an error, as senders of updates see it.
func message(err error) string {
	if application, is := errors.AsType[*temporal.ApplicationError](err); is {
		return application.Message()
	}
	return err.Error()
}

// approvals is a playbook whose first step awaits an answer.
const approvals = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: test}
workflow:
  - {step: ask, tool: approval, message: "go?", next: load}
  - {step: load, tool: http, url: http://x}
`

// approve is an answer to the first step of approvals.
var approve = sentUpdate{protocol.AnswerUpdate, interpreter.Answer{
	AnswerTo: interpreter.AnswerTo{Step: "ask"}, Verb: interpreter.AnswerComplete, Option: "approve",
}}

// everyUpdate are all updates of a run, of which the answer ends its first step.
var everyUpdate = []sentUpdate{
	approve,
	{protocol.SetUpdate, protocol.CommandInput{Step: "load", Tuning: &interpreter.Tuning{Rate: &interpreter.Rate{Requests: 5, PerSeconds: 1}}}},
	{protocol.SkipUpdate, protocol.CommandInput{Step: "ask"}},
	{protocol.RetryNowUpdate, protocol.CommandInput{}},
	{protocol.ResumeUpdate, protocol.CommandInput{}},
	{protocol.PauseUpdate, protocol.CommandInput{Step: "fech"}},
}

// everyOutcome are the outcomes of everyUpdate: commands come before the first step begins, and answers once it awaits
// them.
var everyOutcome = []string{
	"accepted", "accepted", "step ask is not running, so it is not waiting; running: nothing", "nothing waits: no attempt is due", "accepted",
	`the playbook has no step "fech"; its steps are ask, load`,
}

// TestUpdatesOfTheFirstTask: updates may arrive with the first task of a workflow, when it has
// set none of their handlers. None of them is unknown, whatever the order of the handlers.
func TestUpdatesOfTheFirstTask(t *testing.T) {
	t.Parallel()
	states, err := (&incremental.Keeper{}).Snapshot()
	require.NoError(t, err)
	ledger, err := (&partition.Ledger{}).Snapshot()
	require.NoError(t, err)
	first := tree.Tree{Root: "r", Most: 5}
	for name, c := range map[string]struct {
		workflow string
		input    any
		sent     []sentUpdate
		want     []string
	}{
		"a run": {
			protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: approvals}, everyUpdate, everyOutcome,
		},
		"states of a step": {incremental.WorkflowName, states, []sentUpdate{
			{incremental.SetUpdate, incremental.StateChange{}}, {incremental.MoveUpdate, []incremental.StateWrite{}}, {incremental.ClaimUpdate, incremental.Claim{}},
		}, nil},
		"partitions": {partition.WorkflowName, ledger, []sentUpdate{
			{partition.NoteUpdate, partition.Note{}}, {partition.ClaimUpdate, partition.ClaimRequest{}},
		}, nil},
		"a tree of runs": {tree.WorkflowName, tree.Census{}, []sentUpdate{
			{tree.AdmitUpdate, tree.Admission{Tree: first, Runs: []string{"r"}, Count: 1}},
		}, []string{"accepted"}},
		"a rate limit": {ratelimit.WorkflowName, ratelimit.Limiter{}, []sentUpdate{
			{ratelimit.LeaseUpdate, ratelimit.LeaseRequest{Limit: ratelimit.Limit{Requests: 5, PerSeconds: 1}, Count: 1}},
		}, []string{"accepted"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, always(nil))
			got := s.outcomes(c.sent...)
			s.env.RegisterDelayedCallback(s.env.CancelWorkflow, time.Hour)
			s.env.ExecuteWorkflow(c.workflow, c.input)
			for i, outcome := range got {
				require.NotEmpty(t, outcome, c.sent[i].name)
				require.NotContains(t, outcome, "unknown update")
			}
			if c.want != nil {
				require.Equal(t, c.want, got)
			}
		})
	}
}

// TestProgressDuringTheValidation: a run says how far it has come while it validates its playbook, which
// may take long where no worker is free.
func TestProgressDuringTheValidation(t *testing.T) {
	t.Parallel()
	s := newStage(t, always(nil))
	var progress protocol.Progress
	var failed error
	s.register(interpreter.CheckActivity, func(context.Context, interpreter.CheckInput) (interpreter.CheckResult, error) {
		value, err := s.env.QueryWorkflow(protocol.ProgressQuery)
		if failed = err; err == nil {
			failed = value.Get(&progress)
		}
		return interpreter.CheckResult{}, nil
	})
	s.env.RegisterDelayedCallback(s.env.CancelWorkflow, time.Hour)
	s.env.ExecuteWorkflow(protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: approvals})
	require.NoError(t, failed)
	require.Empty(t, progress.Steps)
}

// TestUpdatesOfTheNextHistory: updates may arrive with the first task of a run that has
// continued as new, too.
func TestUpdatesOfTheNextHistory(t *testing.T) {
	t.Parallel()
	s := newStage(t, always(nil))
	for minute := range 3 {
		s.env.RegisterDelayedCallback(func() {
			for i := range 250 {
				s.env.UpdateWorkflow(protocol.ResumeUpdate, fmt.Sprint(minute, i), &testsuite.TestUpdateCallback{
					OnAccept: func() {}, OnReject: func(err error) { t.Error(err) }, OnComplete: func(any, error) {},
				}, protocol.CommandInput{})
			}
		}, time.Minute)
	}
	s.env.RegisterDelayedCallback(func() {
		s.env.UpdateWorkflow(protocol.AnswerUpdate, "", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { t.Error(err) }, OnComplete: func(any, error) {},
		}, interpreter.Answer{AnswerTo: interpreter.AnswerTo{Step: "start"}, Verb: interpreter.AnswerComplete, Option: "approve"})
	}, 2*time.Minute)
	s.env.ExecuteWorkflow(protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: `apiVersion: reprise/v1
kind: Playbook
metadata: {name: test}
workflow:
  - {step: start, tool: approval, message: "begin?", next: ask}
  - {step: ask, tool: approval, message: "go?", next: load}
  - {step: load, tool: http, url: http://x}
`})
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, s.env.GetWorkflowError(), &next)
	var input protocol.Input
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &input))

	s = newStage(t, always(nil))
	s.env.SetContinuedExecutionRunID("before")
	got := s.outcomes(everyUpdate[:5]...)
	s.env.ExecuteWorkflow(protocol.PlaybookWorkflowName, input)
	require.NoError(t, s.env.GetWorkflowError())
	require.Equal(t, everyOutcome[:5], got)
}

// TestAnswersOfTheFirstTask: an answer may come with the first task of a workflow, as an update or
// a signal, whose sender is not heard again. It waits until the calls have come to what they wait for.
func TestAnswersOfTheFirstTask(t *testing.T) {
	t.Parallel()
	calls := func(mode string) protocol.CallsInput {
		input := protocol.CallsInput{Task: call.Task{Name: "test.yaml", Step: "ask", Visit: 1, Source: `apiVersion: reprise/v1
kind: Playbook
metadata: {name: test}
workflow:
  - {step: ask, tool: approval, message: "go?", loop: {collection: [a, b], batch: 2, mode: ` + mode + `}}
`}}
		for index := range 2 {
			input.Calls = append(input.Calls, call.Snapshot{Index: &index, Size: 2, Element: expression.Of("a")})
		}
		return input
	}
	to := func(index int) interpreter.Answer {
		answer := approve.arg.(interpreter.Answer)
		answer.Index = &index
		return answer
	}
	run := func(s *stage) {
		s.env.ExecuteWorkflow(protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: approvals})
	}
	second := "no attempt awaits this answer; these await one: ask[0]"
	for name, c := range map[string]struct {
		run     func(s *stage)
		answers []interpreter.Answer
		want    []string
	}{
		"a run":          {run, []interpreter.Answer{approve.arg.(interpreter.Answer)}, []string{"accepted"}},
		"parallel calls": {func(s *stage) { s.runBatch(calls("parallel")) }, []interpreter.Answer{to(0), to(1)}, []string{"accepted", "accepted"}},
		"one by one":     {func(s *stage) { s.runBatch(calls("sequential")) }, []interpreter.Answer{to(0), to(1)}, []string{"accepted", second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, always(nil))
			var sent []sentUpdate
			for _, answer := range c.answers {
				sent = append(sent, sentUpdate{protocol.AnswerUpdate, answer})
			}
			got := s.outcomes(sent...)
			s.env.RegisterDelayedCallback(s.env.CancelWorkflow, time.Hour)
			c.run(s)
			require.Equal(t, c.want, got)
		})
	}
	for name, run := range map[string]func(s *stage){"a signal to a run": run, "a signal to calls": func(s *stage) {
		input := calls("sequential")
		input.Calls = input.Calls[:1]
		s.runBatch(input)
	}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, always(nil))
			s.env.RegisterDelayedCallback(func() { s.env.SignalWorkflow(protocol.AnswerSignal, approve.arg) }, 0)
			s.env.RegisterDelayedCallback(s.env.CancelWorkflow, time.Hour)
			run(s)
			require.NoError(t, s.env.GetWorkflowError())
		})
	}
}

// TestUpdatesOfARunThatDoesNotBegin: who sends an update to a run that is refused, or cancelled before
// it begins, learns that and why.
func TestUpdatesOfARunThatDoesNotBegin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		checked interpreter.CheckResult
		failed  error
		want    string
	}{
		"refused":   {checked: interpreter.CheckResult{Problems: "test.yaml:5:12: unknown tool"}, want: "test.yaml:5:12: unknown tool"},
		"cancelled": {failed: temporal.NewCanceledError(), want: "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, always(nil))
			s.env.OnActivity(interpreter.CheckActivity, mock.Anything, mock.Anything).Return(c.checked, c.failed)
			got := s.outcomes(approve, sentUpdate{protocol.PauseUpdate, protocol.CommandInput{}})
			s.env.ExecuteWorkflow(protocol.PlaybookWorkflowName, protocol.Input{Name: "test.yaml", Source: approvals})
			require.Error(t, s.env.GetWorkflowError())
			require.Equal(t, slices.Repeat([]string{"the run ended before it started: " + c.want}, 2), got)
		})
	}
}

// TestUpdatesOfARunThatBeginsNothing: an answer to a run that ends before any step begins is refused,
// and not lost.
func TestUpdatesOfARunThatBeginsNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t, always(nil))
	got := s.outcomes(approve)
	s.env.ExecuteWorkflow(protocol.PlaybookWorkflowName, protocol.Input{
		Name: "test.yaml", Source: strings.Replace(approvals, "workflow:", `concurrency: {key: "{{ 1 / 0 }}"}`+"\nworkflow:", 1),
	})
	require.Error(t, s.env.GetWorkflowError())
	require.Equal(t, []string{"nothing awaits an answer here"}, got)
}
