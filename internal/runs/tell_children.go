package runs

import (
	"context"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/workflows"
)

// timer tells a wait.
func (t *teller) timer(event *historypb.HistoryEvent) {
	wait, ok := interpreter.ParseWait(summaryOf(event))
	if !ok { // a timeout of the run, or of a loop, which tells of those that wait itself
		return
	}
	at := t.waiter(wait.Name, wait.Index)
	t.goesOnWith(at)
	delay := event.GetTimerStartedEventAttributes().GetStartToFireTimeout().AsDuration()
	told := t.waits(event, at, wait.Reason)
	told.Delay, told.NextRetryAt = delay.Seconds(), told.At.Add(delay)
	t.add(event.GetEventId(), "", told)
}

// held tells a wait for a person.
func (t *teller) held(event *historypb.HistoryEvent, mark workflows.HoldMark) {
	at := t.waiter(mark.Held, mark.Index)
	t.goesOnWith(at)
	t.add(event.GetEventId(), "", t.waits(event, at, interpreter.ReasonPerson))
}

// waiter is the call of a step or of the place of a sink.
func (t *teller) waiter(name string, index *int) call {
	at := call{step: name, visit: t.visit, index: indexOr(index)}
	if step, _, isSink := strings.Cut(name, "."); isSink {
		at.step, at.sink = step, name
		if playbook.OfRun(name) {
			at.step = ""
		}
	}
	if t.visit == 0 {
		at.visit = t.visits[at.step]
	}
	if index == nil && len(t.indexes) == 1 {
		at.index = t.indexes[0]
	}
	return at
}

// waits is the beginning of a call's wait.
func (t *teller) waits(event *historypb.HistoryEvent, at call, reason interpreter.Reason) Event {
	told := Event{
		Event: StepRetry, At: event.GetEventTime().AsTime(), Step: at.step, Visit: at.visit, Sink: at.sink, Reason: string(reason),
	}
	if at.index >= 0 {
		told.Index = &at.index
	}
	last := t.calls[at]
	if last == nil { // one that waits before its first attempt
		last = &lastMade{}
		t.calls[at] = last
	}
	last.waits, last.settled = true, nil
	told.Attempt, told.Page = last.attempt, last.page
	switch reason {
	case interpreter.ReasonFailure, interpreter.ReasonRateLimited, interpreter.ReasonPerson:
		told.Error = last.failure
	}
	return told
}

// settles notes what people have decided about waits. It is false for an event of
// something else.
func (t *teller) settles(ctx context.Context, event *historypb.HistoryEvent) (bool, error) {
	if signal := event.GetWorkflowExecutionSignaledEventAttributes(); signal.GetSignalName() == workflows.ControlSignal {
		var steering workflows.Steering
		if err := t.decode(ctx, t.workflowID, signal.GetInput(), &steering); err != nil {
			return true, err
		}
		if steering.Settle != nil {
			t.settled(*steering.Settle)
		}
		for _, then := range steering.Then {
			t.settled(then)
		}
		return true, nil
	}
	request := event.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest()
	if request.GetInput().GetName() != workflows.RetryNowUpdate {
		return request != nil, nil
	}
	var command workflows.Command
	if err := t.decode(ctx, t.workflowID, request.GetInput().GetArgs(), &command); err != nil {
		return true, err
	}
	t.settled(workflows.Settlement{
		Step: command.Step, Index: command.Index, Settlement: interpreter.Settlement{By: command.By, Reason: command.Reason},
	})
	return true, nil
}

// settled notes what people have decided about calls that wait. That one is given up
// its failure tells.
func (t *teller) settled(decided workflows.Settlement) {
	for at, last := range t.calls {
		index := &at.index
		if at.index < 0 {
			index = nil
		}
		if last.waits && last.settled == nil && !decided.Skip && decided.Means(at.step, index) {
			last.settled = &decided.Settlement
		}
	}
}

// begins notes that a call goes on with its next attempt, and gives what people have
// decided that led to it; nil where its wait ended by itself.
func (t *teller) begins(at call) *interpreter.Settlement {
	last := t.calls[at]
	if last == nil {
		return nil
	}
	settled := last.settled
	last.waits, last.settled = false, nil
	return settled
}

// closed tells the end of a run.
func (t *teller) closed(ctx context.Context, event *historypb.HistoryEvent) error {
	if t.h.endedAt.IsZero() || !event.GetEventTime().AsTime().Equal(t.h.endedAt) || !ends(event) {
		return nil
	}
	result, err := t.resultOf(ctx, &child{workflowID: t.workflowID, end: event})
	if err != nil {
		return err
	}
	told := Event{Event: ExecutionFailed, At: t.h.endedAt, Status: result.Status, Error: result.Error}
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		told.Event = ExecutionCompleted
		if result.Status == interpreter.Failed { // the output could not be made
			told.Event = ExecutionFailed
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		told.Event, told.Status = ExecutionCancelled, interpreter.Cancelled
		told.Reason, told.By = t.cancelled.GetCause(), t.cancelled.GetIdentity()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		told.Error = noResult("the run was terminated: " + event.GetWorkflowExecutionTerminatedEventAttributes().GetReason())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		told.Error = noResult("the run timed out")
	}
	if told.Status == "" {
		told.Status = interpreter.Failed
	}
	t.add(event.GetEventId(), "", told)
	return nil
}

func noResult(message string) *interpreter.ErrorObject {
	return &interpreter.ErrorObject{Kind: "no_result", Class: interpreter.ClassFinal, Message: message}
}

func ends(event *historypb.HistoryEvent) bool {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		return true
	}
	return false
}

// children tells of the loops, calls and iterations below, and which of their
// histories are to be told too.
func (t *teller) children(ctx context.Context) error {
	batches, failed, err := t.batches(ctx)
	if err != nil {
		return err
	}
	if t.ask.Failed {
		t.only = failed
		if t.workflow != workflows.LoopWorkflowName {
			t.only = nil
		}
	}
	for _, begun := range t.h.children {
		if begun.workflow == workflows.PlaybookWorkflowName {
			continue // a run of its own
		}
		below := opening{at: begun.initiated, source: source{
			workflowID: begun.workflowID, runID: begun.runID, workflow: begun.workflow, step: t.step, visit: t.visit, first: true,
		}}
		if t.step == "" {
			loop := &Loop{WorkflowID: begun.workflowID}
			if loop.identify() != nil {
				continue
			}
			below.step, below.visit = loop.Step, loop.Visit
		}
		if told := batches[begun]; told != nil {
			if err := t.iterations(ctx, begun, told); err != nil {
				return err
			}
			if !t.ask.within() || !t.wanted(told, failed) {
				continue
			}
			if t.ask.Failed {
				below.only = failed
			}
		}
		if begun.runID != "" && (t.ask.Step == "" || t.ask.Step == below.step) {
			t.below = append(t.below, below)
		}
	}
	return nil
}

// batches are what the history of a loop has of its children, with the indexes of
// the iterations that failed.
func (t *teller) batches(ctx context.Context) (map[*child]*batchTold, map[int]bool, error) {
	batches, failed := map[*child]*batchTold{}, map[int]bool{}
	for _, begun := range t.h.children {
		if begun.workflow != workflows.CallsWorkflowName || t.workflow != workflows.LoopWorkflowName {
			continue
		}
		told, err := t.batch(ctx, begun)
		if err != nil {
			return nil, nil, err
		}
		batches[begun] = told
		for _, iteration := range told.output.Iterations {
			if iteration.Result.Failed() && !iteration.Cancelled {
				failed[iteration.Index] = true
			}
		}
		if begun.end != nil && !told.told && !wasCancelled(begun) {
			for _, carried := range told.input.Calls {
				failed[*carried.Index] = true
			}
		}
	}
	return batches, failed, nil
}

// batchTold is what a loop's history has of a child.
type batchTold struct {
	input  workflows.CallsInput
	output workflows.CallsOutput
	told   bool
}

func (t *teller) batch(ctx context.Context, begun *child) (*batchTold, error) {
	told := &batchTold{}
	if err := t.decode(ctx, begun.workflowID, begun.input, &told.input); err != nil {
		return nil, err
	}
	var err error
	told.told, err = t.result(ctx, begun, &told.output)
	return told, err
}

// wanted reports whether the history of a child is asked for.
func (t *teller) wanted(told *batchTold, failed map[int]bool) bool {
	for _, carried := range told.input.Calls {
		if (t.ask.Index == nil || *t.ask.Index == *carried.Index) && (!t.ask.Failed || failed[*carried.Index]) {
			return true
		}
	}
	return false
}

// iterations tells of those of one child: their start, and how they ended. An element of
// a batch begins and ends when its call does, and not when the batch does.
func (t *teller) iterations(ctx context.Context, begun *child, told *batchTold) error {
	event := func(word string, at time.Time, index int) Event {
		return Event{Event: word, At: at, Step: t.step, Visit: t.visit, Index: &index}
	}
	start := func(at time.Time, index int) {
		t.add(begun.event, fmt.Sprint(index), event(IterationStarted, at, index))
	}
	if begun.end == nil {
		sequential, err := t.sequential(ctx, told)
		for i, carried := range told.input.Calls {
			if carried.State == nil && (i == 0 || !sequential) {
				start(begun.initiated, *carried.Index)
			}
		}
		return err
	}
	iterations := told.output.Iterations
	if !told.told && !wasCancelled(begun) {
		for _, carried := range told.input.Calls {
			iterations = append(iterations, lost(*carried.Index, begun))
		}
	}
	fresh := map[int]bool{}
	for _, carried := range told.input.Calls {
		fresh[*carried.Index] = carried.State == nil
	}
	ended := begun.end.GetEventTime().AsTime()
	for _, iteration := range iterations {
		from, to, meta := begun.initiated, ended, iteration.Result.Meta
		switch {
		case len(told.input.Calls) == 1:
		case !meta.StartedAt.IsZero():
			to = between(from, meta.EndedAt, ended)
			from = between(from, meta.StartedAt, to)
		case iteration.Cancelled: // it has not begun
			from = ended
		}
		if fresh[iteration.Index] {
			start(from, iteration.Index)
		}
		t.iteration(begun.event, event(IterationCompleted, to, iteration.Index), iteration)
	}
	return nil
}

// sequential reports whether an element of a loop's batch begins when the one before it
// has ended.
func (t *teller) sequential(ctx context.Context, told *batchTold) (bool, error) {
	if len(told.input.Calls) < 2 {
		return false, nil
	}
	var known converter.RawValue // of the loop's input
	var script interpreter.Script
	if err := t.decode(ctx, t.workflowID, t.h.input, &known, &script); err != nil {
		return false, err
	}
	_, step, err := told.input.Task.With(script).Load()
	return err == nil && step.Loop != nil && step.Loop.Mode != playbook.Parallel, nil
}

// iteration tells how one ended.
func (t *teller) iteration(by int64, event Event, iteration interpreter.IterationResult) {
	result, which := iteration.Result, fmt.Sprint(iteration.Index)
	event.Attempts, event.Pages, event.Status = result.Meta.Attempts, result.Meta.Pages, interpreter.Completed
	if !result.Meta.StartedAt.IsZero() {
		event.Duration = result.Meta.EndedAt.Sub(result.Meta.StartedAt).Seconds()
	}
	switch {
	case iteration.Cancelled:
		event.Event, event.Status, event.Error = IterationFailed, interpreter.Cancelled, result.Error
	case result.Failed():
		event.Event, event.Status, event.Error = IterationFailed, interpreter.Failed, result.Error
		for _, before := range endings(result.Error) {
			told := event
			told.Event, told.Duration, told.Status = before, 0, ""
			t.add(by, which, told)
		}
	}
	t.add(by, which, event)
}

// endings are what comes before the failure of an iteration or a step.
func endings(failure *interpreter.ErrorObject) []string {
	switch {
	case failure == nil:
		return nil
	case failure.Kind == interpreter.KindSink:
		return []string{SinkFailed}
	case failure.Exhausted:
		return []string{StepRetryExhausted}
	}
	return nil
}

// pending tells of attempts under way, which the history does not tell yet.
func (t *teller) pending(ctx context.Context) error {
	if !t.goesOn() || len(t.made) == len(t.ended) {
		return nil
	}
	described, err := t.Client.DescribeWorkflowExecution(ctx, t.workflowID, t.runID)
	if err != nil {
		return fmt.Errorf("look for what %s does: %w", t.workflowID, err)
	}
	for _, activity := range described.GetPendingActivities() {
		if activity.GetState() != enumspb.PENDING_ACTIVITY_STATE_STARTED {
			continue
		}
		for id, of := range t.made {
			if of.id != activity.GetActivityId() || t.ended[id] || of.many != nil {
				continue
			}
			started := t.attemptStarted(of)
			started.At = activity.GetLastStartedTime().AsTime()
			t.add(id, "", started)
		}
	}
	return nil
}
