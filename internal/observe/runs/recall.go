package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"

	"reprise/internal/base/connect"
	"reprise/internal/base/heartbeat"
	"reprise/internal/base/payload"
	"reprise/internal/base/visibility"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/protocol"
)

// RecallActivities returns the activities, by name, with which runs read what earlier runs, or stopped workflows of their
// own, have done. store holds large values.
func RecallActivities(store *payload.Store) map[string]any {
	reader := func(ctx context.Context) *earlierRuns {
		return &earlierRuns{&Reader{Client: activity.GetClient(ctx), Store: store, Namespace: activity.GetInfo(ctx).Namespace}}
	}
	return map[string]any{
		interpreter.RecallActivity: func(ctx context.Context, in interpreter.Recall) (interpreter.EarlierAnswers, error) {
			defer heartbeat.StartSending(ctx)()
			return reader(ctx).recallRuns(ctx, in)
		},
		interpreter.StoppedActivity: func(ctx context.Context, in call.StoppedInput) (call.StoppedCall, error) {
			defer heartbeat.StartSending(ctx)()
			return reader(ctx).readStopped(ctx, in)
		},
		interpreter.EndedActivity: func(ctx context.Context, in interpreter.EndedInput) (interpreter.EndedIterations, error) {
			defer heartbeat.StartSending(ctx)()
			return reader(ctx).endedIterations(ctx, in)
		},
	}
}

// earlierRuns reads what earlier runs of a call, or of a loop's iterations, have done, for the run that makes it
// again.
type earlierRuns struct{ *Reader }

// questionTime bounds one query of an earlier run, which a worker answers from its history.
const questionTime = 20 * time.Second

// recallRuns reads what the runs have done that may have made a call before.
func (r *earlierRuns) recallRuns(ctx context.Context, in interpreter.Recall) (interpreter.EarlierAnswers, error) {
	var found interpreter.EarlierAnswers
	for _, id := range in.Attempts {
		if _, err := r.recallOne(ctx, id, in.Key, &found); err != nil {
			return found, err
		}
	}
	for _, run := range in.Runs {
		last, err := r.lastAttempt(ctx, run, in.Suffix)
		if err != nil {
			return found, err
		}
		// An attempt at another page of the call has another key.
		for attempt := last; attempt > max(last-interpreter.MaxEarlier, 0); attempt-- {
			known, err := r.recallOne(ctx, attemptID(run, in.Suffix, attempt), in.Key, &found)
			if err != nil {
				return found, err
			}
			if known {
				break
			}
		}
	}
	trimLargest(&found)
	return found, nil
}

func attemptID(run, suffix string, attempt int) string {
	return protocol.SuffixedID(run, suffix+strconv.Itoa(attempt))
}

// lastAttempt returns the number of the last attempt of a call in a run; 0 if there is none.
func (r *earlierRuns) lastAttempt(ctx context.Context, run, suffix string) (int, error) {
	var failure error // after which nothing is looked for
	exists := func(attempt int) bool {
		if failure != nil {
			return false
		}
		_, err := r.Client.DescribeWorkflowExecution(ctx, attemptID(run, suffix, attempt), "")
		if err != nil && !connect.IsNotFound(err) {
			failure = fmt.Errorf("look for what %s has started: %w", run, err)
		}
		return err == nil
	}
	low, high := 0, 1 // it has made low, and not high
	for exists(high) {
		low, high = high, 2*high
	}
	return low + sort.Search(high-low-1, func(i int) bool { return !exists(low + 1 + i) }), failure
}

// recallOne queries the run with an ID and a key. It returns false if the run does not exist.
func (r *earlierRuns) recallOne(ctx context.Context, id, key string, found *interpreter.EarlierAnswers) (bool, error) {
	described, err := r.Client.DescribeWorkflowExecution(ctx, id, "")
	if connect.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", id, err)
	}
	info := described.GetWorkflowExecutionInfo()
	work, why, err := r.queryWork(ctx, info)
	if err != nil {
		return false, err
	}
	if why == "" && work.Run.Key != key { // other runs have had its ID since
		if work, why, err = r.workOfOlder(ctx, info, key); err != nil {
			return false, err
		}
	}
	switch {
	case why != "":
		found.Silent = append(found.Silent, id+": "+why)
		return true, nil
	case work.Run.Key != key:
		return false, nil
	}
	found.AddEarlier(id, work)
	return true, nil
}

// mostOlder bounds the older workflows with one ID that are searched. An ID that a schedule uses each minute has
// thousands.
const mostOlder = 20

// workOfOlder queries the earlier runs that had an ID.
func (r *earlierRuns) workOfOlder(
	ctx context.Context, newest *workflowpb.WorkflowExecutionInfo, key string,
) (work interpreter.EarlierWork, why string, err error) {
	page, err := r.listRuns(ctx, ofPlaybooks+" AND WorkflowId = "+visibility.Quote(newest.GetExecution().GetWorkflowId()), mostOlder, nil)
	if err != nil {
		return work, "", err
	}
	for _, info := range page.GetExecutions() {
		if info.GetExecution().GetRunId() == newest.GetExecution().GetRunId() {
			continue
		}
		if work, why, err = r.queryWork(ctx, info); err != nil || why == "" && work.Run.Key == key {
			return work, why, err
		}
	}
	return interpreter.EarlierWork{}, "", nil
}

// queryWork queries a run for its work. why says why it cannot answer.
func (r *earlierRuns) queryWork(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) (work interpreter.EarlierWork, why string, err error) {
	id, runID := info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()
	if err := r.awaitEnd(ctx, info); err != nil {
		return work, "", err
	}
	why, err = r.queryEnded(ctx, id, runID, &work, interpreter.EarlierQuery)
	if errors.Is(err, errNotBegun) {
		return work, "", nil
	}
	return work, why, err
}

// errNotBegun means that a workflow was ended before a worker had run it.
var errNotBegun = errors.New("it was ended before it began")

// queryEnded queries an ended workflow. If it no longer exists, into is left unchanged; why says why no worker can
// ever answer.
func (r *earlierRuns) queryEnded(ctx context.Context, id, runID string, into any, query string, args ...any) (why string, err error) {
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	answer, err := r.Client.QueryWorkflow(ctx, id, runID, query, args...)
	failure, isQueryFailed := connect.QueryFailure(err)
	switch {
	case err == nil:
		return "", answer.Get(into)
	case connect.IsNotFound(err):
		return "", nil
	case isQueryFailed && silenceOf(failure).HeldBy != HeldByStore: // which comes back
		return failure.GetMessage(), nil
	case connect.HasNotBegun(err):
		return "", errNotBegun
	}
	return "", fmt.Errorf("query what %s has done: %w", id, err)
}

// mostHops bounds how often a queried workflow refers to another that has the call. Workflows that refer to each
// other would be queried endlessly.
const mostHops = 20

// readStopped reads the state in which a call was stopped. The error means that the state is unknown.
func (r *earlierRuns) readStopped(ctx context.Context, in call.StoppedInput) (call.StoppedCall, error) {
	question := protocol.StoppedQuestion{Step: in.Step, Visit: in.Visit, Index: in.Index}
	id := in.By
	for range mostHops {
		stopped, err := r.stoppedBy(ctx, id, in.Key, question)
		if err != nil || stopped.By == "" {
			return stopped, err
		}
		id = stopped.By
	}
	return call.StoppedCall{}, fmt.Errorf("%s: more than %d runs have left it to the one before", in.By, mostHops)
}

// stoppedBy queries the workflow that had an ID among the runs of a key. Other workflows may have had the ID since.
func (r *earlierRuns) stoppedBy(ctx context.Context, id, key string, question protocol.StoppedQuestion) (stopped call.StoppedCall, err error) {
	described, err := r.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return stopped, fmt.Errorf("look for %s: %w", id, err)
	}
	of := []*workflowpb.WorkflowExecutionInfo{described.GetWorkflowExecutionInfo()}
	for at := 0; at < len(of); at++ {
		runID := of[at].GetExecution().GetRunId()
		if err := r.awaitEnd(ctx, of[at]); err != nil {
			return stopped, err
		}
		stopped = call.StoppedCall{}
		why, err := r.queryEnded(ctx, id, runID, &stopped, interpreter.StoppedQuery, question)
		if errors.Is(err, errNotBegun) {
			stopped, err = r.notBegun(ctx, of[at], question)
		}
		if err == nil && why != "" {
			err = fmt.Errorf("query %s: %s", id, why)
		}
		if err != nil || stopped.Key == key {
			return stopped, err
		}
		if at == 0 {
			older, err := r.listRuns(ctx, "WorkflowId = "+visibility.Quote(id), mostOlder, nil)
			if err != nil {
				return stopped, err
			}
			of = append(of, slices.DeleteFunc(older.GetExecutions(), func(info *workflowpb.WorkflowExecutionInfo) bool {
				return info.GetExecution().GetRunId() == runID
			})...)
		}
	}
	return stopped, fmt.Errorf("the history of %s is gone", id)
}

// awaitEnd waits for the end of a workflow that is certain to end, because the run it belongs to has ended.
func (r *earlierRuns) awaitEnd(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) error {
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil
	}
	id, runID := info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	events := r.Client.GetWorkflowHistory(ctx, id, runID, true, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	if _, err := events.Next(); err != nil && !connect.IsNotFound(err) {
		return fmt.Errorf("%s has not ended: %w", id, err)
	}
	return nil
}

// notBegun reads the state of a call from the input of the workflow that should have made it but ended first.
func (r *earlierRuns) notBegun(
	ctx context.Context, info *workflowpb.WorkflowExecutionInfo, question protocol.StoppedQuestion,
) (stopped call.StoppedCall, err error) {
	id := info.GetExecution().GetWorkflowId()
	first, err := r.readBegun(ctx, id, info.GetExecution().GetRunId())
	if err != nil {
		return stopped, err
	}
	var input protocol.CallsInput
	var script call.Script
	if err := r.newValues(ctx).decodeInput(id, first.input, &input, &script); err != nil {
		return stopped, err
	}
	var snapshot call.Snapshot
	for _, one := range input.Calls {
		if one.Index == nil || question.Index != nil && *one.Index == *question.Index {
			snapshot = one
		}
	}
	task := input.Task.WithScript(script)
	if snapshot.State == nil && snapshot.By != "" {
		return call.StoppedCall{Key: task.Run.KeyPrefix(), By: snapshot.By}, nil
	}
	book, step, err := task.LoadStep()
	if err != nil {
		return stopped, err
	}
	return task.StoppedAs(task.BuildCall(book, step, snapshot, func() float64 { return 0 })), nil
}

// trimLargest removes steps whose results are too large together.
func trimLargest(found *interpreter.EarlierAnswers) {
	size := 0
	found.Steps = slices.DeleteFunc(found.Steps, func(step interpreter.EarlierStep) bool {
		size += interpreter.EncodedSize(step)
		if size > interpreter.MaxEarlierBytes {
			found.Left = append(found.Left, step.Step)
		}
		return size > interpreter.MaxEarlierBytes
	})
}

// endedIterations reads how the iterations of loops ended.
func (r *earlierRuns) endedIterations(ctx context.Context, in interpreter.EndedInput) (interpreter.EndedIterations, error) {
	ended := interpreter.EndedIterations{Iterations: []interpreter.IterationResult{}}
	seen, known, size := map[int]bool{}, map[int]bool{}, 0
	for _, id := range in.Loops {
		loop, prints, err := r.endedLoop(ctx, id, in.Key)
		if err != nil {
			return ended, err
		}
		if loop == nil {
			continue
		}
		slices.SortFunc(loop.ended, func(x, y interpreter.IterationResult) int { return cmp.Compare(x.Index, y.Index) })
		for _, iteration := range loop.ended {
			if seen[iteration.Index] || in.Key != "" && iteration.Result.Failed() {
				continue // a later loop counts
			}
			seen[iteration.Index] = true
			size += interpreter.EncodedSize(iteration)
			if size > interpreter.MaxEarlierBytes {
				ended.Left = append(ended.Left, interpreter.LeftOut{Index: iteration.Index, Failed: iteration.Result.Failed()})
				continue
			}
			ended.Iterations = append(ended.Iterations, iteration)
			if in.Key != "" {
				ended.Prints = append(ended.Prints, prints(iteration))
			}
		}
		ended.Begun = append(ended.Begun, loop.stoppedIterations(known)...)
	}
	slices.SortFunc(ended.Begun, func(x, y interpreter.BegunIteration) int { return cmp.Compare(x.Index, y.Index) })
	return ended, nil
}

// stoppedIterations returns the stopped iterations that no later loop has. known holds the indexes that later loops
// have; it adds its own.
func (l *Loop) stoppedIterations(known map[int]bool) (begun []interpreter.BegunIteration) {
	for _, iteration := range l.begun {
		if !known[iteration.Index] {
			known[iteration.Index] = true
			begun = append(begun, iteration)
		}
	}
	for _, iteration := range l.ended {
		known[iteration.Index] = true
	}
	return begun
}

// endedLoop reads an ended loop or shard; nil if its key differs. prints returns the fingerprint of an iteration's
// request.
func (r *earlierRuns) endedLoop(ctx context.Context, id, key string) (*Loop, func(interpreter.IterationResult) string, error) {
	described, err := r.Client.DescribeWorkflowExecution(ctx, id, "")
	if connect.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("look for %s: %w", id, err)
	}
	info := described.GetWorkflowExecutionInfo()
	runID := info.GetExecution().GetRunId()
	if err := r.awaitEnd(ctx, info); err != nil {
		return nil, nil, err
	}
	var prints func(interpreter.IterationResult) string
	if key != "" {
		prints, err = r.iterationPrints(ctx, id, runID, key)
		if err != nil || prints == nil {
			return nil, nil, err
		}
	}
	loop := &Loop{WorkflowID: id, succeeded: map[int]bool{}, findBegun: key != ""}
	return loop, prints, r.collectChildren(ctx, loop, id, runID)
}

// iterationPrints returns a function for the fingerprints of iterations' requests; nil if the loop's key differs.
func (r *earlierRuns) iterationPrints(ctx context.Context, id, runID, key string) (func(interpreter.IterationResult) string, error) {
	first, err := r.readBegun(ctx, id, runID)
	if err != nil {
		return nil, err
	}
	var input protocol.LoopInput
	var script call.Script
	if err := r.newValues(ctx).decodeInput(id, first.input, &input, &script); err != nil {
		return nil, err
	}
	if input.Task.Run.KeyPrefix() != key {
		return nil, nil
	}
	task := input.Task.WithScript(script)
	book, step, err := task.LoadStep()
	if err != nil {
		return nil, err
	}
	return func(iteration interpreter.IterationResult) string {
		position, size := iteration.Index, len(input.Elements)
		if input.Chosen != nil {
			position, _ = slices.BinarySearch(input.Chosen.Indexes, iteration.Index)
			size = input.Chosen.Size
		}
		if position < 0 || position >= len(input.Elements) {
			return ""
		}
		snapshot := call.Snapshot{Index: &iteration.Index, Size: size, Element: input.Elements[position]}
		return task.IterationDigest(book, step, snapshot, iteration.Result.Meta.StartedAt)
	}, nil
}
