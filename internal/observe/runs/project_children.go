package runs

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// addChildren adds the iterations of child workflows, and links to their histories if those are requested.
func (p *projector) addChildren() error {
	batches, failed, err := p.readBatches()
	if err != nil {
		return err
	}
	if p.filter.Failed && p.workflow == protocol.LoopWorkflowName {
		p.only = failed
	}
	for _, begun := range p.h.children {
		if begun.workflow == protocol.PlaybookWorkflowName {
			continue // a run of its own
		}
		next, belongs := p.linkTo(begun)
		if !belongs {
			continue
		}
		if report := batches[begun]; report != nil {
			if err := p.addIterations(begun, report); err != nil {
				return err
			}
			if !p.filter.withinIterations() || !p.isRequested(report, failed) {
				continue
			}
			if p.filter.Failed {
				next.only = failed
			}
		}
		if begun.runID != "" && (p.filter.Step == "" || p.filter.Step == next.step) {
			p.links = append(p.links, next)
		}
	}
	return nil
}

// linkTo returns a link to the history of a child; false if the child belongs to no step.
func (p *projector) linkTo(begun *child) (link, bool) {
	to := link{at: begun.initiated, source: source{
		workflowID: begun.workflowID, runID: begun.runID, workflow: begun.workflow, step: p.step, visit: p.visit, first: true,
	}}
	if p.step != "" {
		return to, true
	}
	loop := &Loop{WorkflowID: begun.workflowID}
	if loop.identifyStep() != nil {
		return to, false
	}
	to.step, to.visit = loop.Step, loop.Visit
	return to, true
}

// readBatches returns what the history of a loop records about its children, and the indexes of failed iterations.
func (p *projector) readBatches() (map[*child]*batchReport, map[int]bool, error) {
	batches, failed := map[*child]*batchReport{}, map[int]bool{}
	for _, begun := range p.h.children {
		if begun.workflow != protocol.CallsWorkflowName || p.workflow != protocol.LoopWorkflowName {
			continue
		}
		report, err := p.readBatch(begun)
		if err != nil {
			return nil, nil, err
		}
		batches[begun] = report
		for _, iteration := range report.output.Iterations {
			if iteration.Result.Failed() && !iteration.Cancelled {
				failed[iteration.Index] = true
			}
		}
		if begun.end != nil && !report.complete && !wasCancelled(begun) {
			for _, snapshot := range report.input.Calls {
				failed[*snapshot.Index] = true
			}
		}
	}
	return batches, failed, nil
}

// batchReport is what a loop's history records about a child.
type batchReport struct {
	input    protocol.CallsInput
	output   protocol.CallsOutput
	complete bool
}

func (p *projector) readBatch(begun *child) (*batchReport, error) {
	report := &batchReport{}
	if err := p.decodeInput(begun.workflowID, begun.input, &report.input); err != nil {
		return nil, err
	}
	var err error
	report.complete, err = p.decodeResult(begun, &report.output)
	return report, err
}

// isRequested reports whether the history of a child is requested.
func (p *projector) isRequested(report *batchReport, failed map[int]bool) bool {
	for _, snapshot := range report.input.Calls {
		if (p.filter.Index == nil || *p.filter.Index == *snapshot.Index) && (!p.filter.Failed || failed[*snapshot.Index]) {
			return true
		}
	}
	return false
}

// addIterations adds the starts and ends of a child's iterations.
func (p *projector) addIterations(begun *child, report *batchReport) error {
	if begun.end == nil {
		return p.iterationsOpen(begun, report)
	}
	iterations := report.output.Iterations
	if !report.complete && !wasCancelled(begun) {
		for _, snapshot := range report.input.Calls {
			iterations = append(iterations, lostIteration(*snapshot.Index, begun))
		}
	}
	fresh := map[int]bool{}
	for _, snapshot := range report.input.Calls {
		fresh[*snapshot.Index] = snapshot.State == nil
	}
	for _, iteration := range iterations {
		from, to := spanOf(iteration, begun, len(report.input.Calls))
		if fresh[iteration.Index] {
			p.iterationStarted(begun, from, iteration.Index)
		}
		p.addIteration(begun.event, p.iterationEvent(IterationCompleted, to, iteration.Index), iteration)
	}
	return nil
}

// iterationsOpen adds the starts of iterations in a child that has not ended.
func (p *projector) iterationsOpen(begun *child, report *batchReport) error {
	sequential, err := p.isSequential(report)
	for i, snapshot := range report.input.Calls {
		if snapshot.State == nil && (i == 0 || !sequential) {
			event := p.iterationEvent(IterationStarted, begun.initiated, *snapshot.Index)
			event.IsShared = len(report.input.Calls) > 1
			p.addEvent(begun.event, fmt.Sprint(*snapshot.Index), event)
		}
	}
	return err
}

func (p *projector) iterationStarted(begun *child, at time.Time, index int) {
	p.addEvent(begun.event, fmt.Sprint(index), p.iterationEvent(IterationStarted, at, index))
}

func (p *projector) iterationEvent(kind string, at time.Time, index int) Event {
	return Event{Event: kind, At: at, Step: p.step, Visit: p.visit, Index: &index}
}

// spanOf returns when an iteration began and ended. If a child has several iterations, each begins and ends with its
// call, not with the child.
func spanOf(iteration interpreter.IterationResult, begun *child, size int) (from, to time.Time) {
	from, to = begun.initiated, begun.end.GetEventTime().AsTime()
	meta := iteration.Result.Meta
	switch {
	case size == 1:
		return from, to
	case !meta.StartedAt.IsZero():
		ended := clampTime(from, meta.EndedAt, to)
		return clampTime(from, meta.StartedAt, ended), ended
	case iteration.Cancelled: // it has not begun
		return to, to
	}
	return from, to
}

// isSequential reports whether each element of a loop's batch begins when the previous one has ended.
func (p *projector) isSequential(report *batchReport) (bool, error) {
	if len(report.input.Calls) < 2 {
		return false, nil
	}
	var known converter.RawValue // of the loop's input
	var script call.Script
	if err := p.decodeInput(p.workflowID, p.h.input, &known, &script); err != nil {
		return false, err
	}
	_, step, err := report.input.Task.WithScript(script).LoadStep()
	return err == nil && step.Loop != nil && step.Loop.Mode != playbook.Parallel, nil
}

// addIteration adds how an iteration ended.
func (p *projector) addIteration(by int64, event Event, iteration interpreter.IterationResult) {
	which := fmt.Sprint(iteration.Index)
	events := IterationEvents(event, iteration)
	for i, one := range events {
		if last := i == len(events)-1; last {
			p.addEvent(by, which, one)
		} else {
			p.addEvent(by, fmt.Sprintf("%s/%d", which, i), one)
		}
	}
}

// IterationEvents returns the events with which an iteration ends; event is the last of them.
func IterationEvents(event Event, iteration interpreter.IterationResult) (events []Event) {
	result := iteration.Result
	event.Event, event.Attempts, event.Pages, event.Status = IterationCompleted, result.Meta.Attempts, result.Meta.Pages, result.FinalStatus()
	event.Rows = result.Meta.Rows
	if !result.Meta.StartedAt.IsZero() {
		event.Duration = result.Meta.EndedAt.Sub(result.Meta.StartedAt).Seconds()
	}
	switch {
	case iteration.Cancelled:
		event.Event, event.Status, event.Error = IterationFailed, interpreter.Cancelled, result.Error
		return []Event{event}
	case result.Failed():
		event.Event, event.Status, event.Error = IterationFailed, interpreter.Failed, result.Error
	}
	for _, before := range endingEvents(result.CallStatus()) {
		earlier := event
		earlier.Event, earlier.Error, earlier.Duration, earlier.Status = before.Event, before.Error, 0, ""
		events = append(events, earlier)
	}
	return append(events, event)
}

// endingEvents returns what precedes the end of an iteration or a step that failed or lacks pages: events with their
// kind and error only.
func endingEvents(status interpreter.CallStatus) []Event {
	var events []Event
	switch failure := status.Error; {
	case failure == nil && status.Cut != nil:
		events = append(events, Event{Event: StepRetryExhausted, Error: status.Cut})
	case failure == nil:
	case failure.Kind == interpreter.KindSink:
		events = append(events, Event{Event: SinkFailed, Error: failure})
	case failure.Exhausted:
		events = append(events, Event{Event: StepRetryExhausted, Error: failure})
	}
	for _, failure := range status.SinkErrors {
		events = append(events, Event{Event: SinkFailed, Error: &failure})
	}
	return events
}
