package runs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

const (
	// mostQueried bounds the open children of a loop that are queried for their iterations, each a request to a
	// worker; for the others the counts of the loop are shown.
	mostQueried = 100
	// queriesAtOnce is how many queries are sent concurrently.
	queriesAtOnce = 8
)

// runConcurrently calls do for each i below n, a few at a time.
func runConcurrently(n int, do func(i int)) {
	var group errgroup.Group
	group.SetLimit(queriesAtOnce)
	for i := range n {
		group.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = group.Wait()
}

// Iteration is the state of an iteration.
type Iteration struct {
	Index int `json:"index"`
	// Child is the workflow ID of the last child run that the iteration started.
	Child string `json:"child,omitempty"`
	// Element is the element of a failed iteration of an ended run.
	Element expression.Value `json:"-"`
	ChildRuns
	Item
	// Incremental is the reading progress of an open iteration that keeps a state, as of its last ended activity; nil
	// for others.
	Incremental *IncrementalStatus `json:"incremental,omitempty"`
	// Rows is what the child run has done to data so far; nil if nothing was counted.
	Rows *interpreter.Rows `json:"rows,omitempty"`
}

// AddIterations adds to a visit of a looping step the iterations that failed, wait or are running, by index; those that
// succeeded or have not begun are only counted. It calls the loop and each of its shards, at most a hundred children,
// and at most a hundred child runs that they started. For an ended run it makes no calls.
func (r *Reader) AddIterations(ctx context.Context, run *Status, step *Step) {
	if step.Loop == nil {
		return
	}
	if run.Ended() {
		step.addFailed()
		return
	}
	answered := map[int]Iteration{}
	r.queryLoop(ctx, run, step, answered)
	r.queryOpen(ctx, run, step, answered)
	step.addAnswered(answered)
	r.describeChildren(ctx, run, step)
}

// addFailed adds the failed iterations of an ended run.
func (s *Step) addFailed() {
	for _, failure := range s.failed {
		s.Iterations = append(s.Iterations, Iteration{Index: failure.Index, Element: failure.Element, Item: Item{
			Status: interpreter.Failed, Attempt: failure.Attempts, Error: failure.Error,
		}})
	}
	s.Left = s.Loop.Failed - len(s.Iterations)
}

// queryLoop queries a loop and its shards for the iterations that they know about.
func (r *Reader) queryLoop(ctx context.Context, run *Status, step *Step, answered map[int]Iteration) {
	for ids := []string{step.Loop.WorkflowID}; len(ids) > 0; ids = ids[1:] {
		var answer protocol.Iterations
		progress, err := r.Progress(ctx, ids[0], "")
		if err == nil {
			err = r.queryWorkflow(ctx, ids[0], "", protocol.IterationsQuery, &answer)
		}
		if err != nil {
			step.silent = true
			run.Notes = append(run.Notes, fmt.Sprintf("the loop of step %s gave no answer, so its iterations are not all here", step.Step))
			continue
		}
		addIterations(answered, answer, run.At)
		step.Left += answer.Left
		ids = append(ids, progress.Shards...)
	}
}

// queryOpen queries the open children of a loop, which know more about their iterations than the loop.
func (r *Reader) queryOpen(ctx context.Context, run *Status, step *Step, answered map[int]Iteration) {
	answers := make([]protocol.Iterations, min(len(step.open), mostQueried))
	runConcurrently(len(answers), func(i int) {
		if r.queryWorkflow(ctx, step.open[i], "", protocol.IterationsQuery, &answers[i]) != nil {
			answers[i] = silentAnswer(step.open[i])
		}
		if len(answers[i].Hosted) > 0 {
			r.addHosted(ctx, step.open[i], answers[i])
		}
	})
	for _, answer := range answers {
		addIterations(answered, answer, run.At)
	}
	step.Left += len(step.open) - len(answers)
	if len(answers) < len(step.open) || len(answers) == 0 {
		return
	}
	step.recountLoop(answers)
	step.summarizeLoop(run.At)
	if run.Status != interpreter.Queued {
		run.deriveStatus()
	}
}

// addHosted records how far an activity is with the iterations that it drives for a loop's child, from its last heartbeat. Until the
// first one, all of them run.
func (r *Reader) addHosted(ctx context.Context, child string, answer protocol.Iterations) {
	described, err := r.Client.DescribeWorkflowExecution(ctx, child, "")
	if err != nil {
		return // it has ended meanwhile
	}
	for _, activity := range described.GetPendingActivities() {
		var read hostHeartbeat
		if r.newValues(ctx).decodeInput(child, activity.GetHeartbeatDetails(), &read) == nil && len(read.Calls) == len(answer.Hosted) {
			read.addTo(answer)
		}
	}
}

// addTo records how far the hosted calls are.
func (h hostHeartbeat) addTo(answer protocol.Iterations) {
	for at, driven := range h.Calls {
		i := slices.IndexFunc(answer.Iterations, func(of protocol.IterationRecord) bool { return of.Index == answer.Hosted[at] })
		if i < 0 || driven == nil || answer.Iterations[i].Status != interpreter.Running {
			continue
		}
		record := &answer.Iterations[i]
		doing := slices.IndexFunc(h.Doing, func(of call.Doing) bool { return of.Call == at })
		switch {
		case driven.Result != nil:
			record.CallStatus = driven.Result.CallStatus()
		case doing < 0 && driven.State == nil:
			record.CallStatus = interpreter.CallStatus{Status: interpreter.Pending, MaxAttempts: record.MaxAttempts}
		case doing >= 0 && h.Doing[doing].Turn:
			record.Reason = interpreter.ReasonTurn
		}
	}
}

// addAnswered adds the answered iterations, by index.
func (s *Step) addAnswered(answered map[int]Iteration) {
	awaiting := 0
	for _, iteration := range answered {
		if iteration.Awaits != nil {
			awaiting++
		}
		if iteration.Status != interpreter.Completed {
			s.Iterations = append(s.Iterations, iteration)
		}
	}
	s.Loop.Awaiting = min(max(awaiting, s.Loop.Awaiting), s.Loop.Running)
	slices.SortFunc(s.Iterations, func(x, y Iteration) int { return cmp.Compare(x.Index, y.Index) })
}

// describeChildren describes the child runs that the iterations of a step started.
func (r *Reader) describeChildren(ctx context.Context, run *Status, step *Step) {
	var looked atomic.Int64
	runConcurrently(len(step.Iterations), func(i int) {
		if of := &step.Iterations[i]; of.Child != "" && of.Status == interpreter.Running {
			of.ChildRuns, _ = r.describeChild(ctx, of.Child, func() bool { return looked.Add(1) <= mostChildRuns })
		}
	})
	if looked.Load() > mostChildRuns {
		run.Notes = append(run.Notes, fmt.Sprintf("of the runs that step %s has started, %d were queried for what they wait for", step.Step, mostChildRuns))
	}
}

// silentAnswer returns the answer of a child that did not respond, because it is about to begin or end: only the
// index of its first element is known.
func silentAnswer(workflowID string) protocol.Iterations {
	index, err := firstIndex(workflowID)
	if err != nil {
		return protocol.Iterations{}
	}
	return protocol.Iterations{Iterations: []protocol.IterationRecord{{Index: index, CallStatus: interpreter.CallStatus{Status: interpreter.Running}}}}
}

// firstIndex returns the index of the first iteration in a child of a loop. The child's workflow ID ends with it.
func firstIndex(workflowID string) (int, error) {
	return strconv.Atoi(workflowID[strings.LastIndex(workflowID, "/")+1:])
}

func addIterations(into map[int]Iteration, answer protocol.Iterations, now time.Time) {
	for _, record := range answer.Iterations {
		into[record.Index] = Iteration{Index: record.Index, Child: record.Child, Item: itemOf(record.CallStatus), Incremental: newIncremental(record.Incremental, now), Rows: record.Rows}
	}
}
