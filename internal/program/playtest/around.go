package playtest

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// around intercepts the workflows and activities of a test.
type around struct {
	interceptor.WorkerInterceptorBase

	stage *stage
}

// InterceptWorkflow intercepts the workflows.
func (a *around) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &inbound{interceptor.WorkflowInboundInterceptorBase{Next: next}, a.stage}
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase

	stage *stage
}

func (i *inbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&outbound{interceptor.WorkflowOutboundInterceptorBase{Next: out}, i.stage})
}

func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	info, parent := workflow.GetInfo(ctx), ""
	if info.ParentWorkflowExecution != nil {
		parent = info.ParentWorkflowExecution.ID
	}
	i.stage.seen.enterWorkflow(info.WorkflowExecution.ID, parent, in.Args)
	return i.Next.ExecuteWorkflow(gate.WithRehearsal(ctx, i.stage), in)
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase

	stage *stage
}

// GetInfo adds the first run ID of the chain, which a server would know.
func (o *outbound) GetInfo(ctx workflow.Context) *workflow.Info {
	info := o.Next.GetInfo(ctx)
	if info.FirstRunID == "" {
		info.FirstRunID = fmt.Sprintf("%s-%d", info.WorkflowExecution.RunID, o.stage.number)
	}
	return info
}

// NewTimerWithOptions records the waits of calls.
func (o *outbound) NewTimerWithOptions(ctx workflow.Context, d time.Duration, options workflow.TimerOptions) workflow.Future {
	if mark, ok := interpreter.ParseTimerMark(options.Summary); ok && mark.Limits == 0 {
		id := workflow.GetInfo(ctx).WorkflowExecution.ID
		o.stage.seen.addWait(id, mark, d)
		if o.stage.seen.loopPlace(id) == "" {
			o.stage.addWait(mark, d)
		}
	}
	return o.Next.NewTimerWithOptions(ctx, d, options)
}

// SignalExternalWorkflow drops signals to workflows that serve many runs, because a test has none of them.
func (o *outbound) SignalExternalWorkflow(ctx workflow.Context, workflowID, runID, name string, arg any) workflow.Future {
	if o.stage.seen.knowsWorkflow(workflowID) {
		return o.Next.SignalExternalWorkflow(ctx, workflowID, runID, name, arg)
	}
	future, settable := workflow.NewFuture(ctx)
	settable.Set(nil, nil)
	return future
}

// Observer returns an observer that records what the calls of a workflow decide.
func (s *stage) Observer(workflowID string) call.Observer {
	return func(seen call.Observation) {
		prefix := s.seen.loopPlace(workflowID)
		s.seen.addDecision(prefix, seen)
		if prefix == "" {
			s.addAttempt(seen)
		}
		if seen.Awaits != nil {
			s.answerFromOutside(workflowID, seen)
		}
	}
}

// hostedObserver returns the observer of the calls that an activity hosts.
func (s *stage) hostedObserver(ctx context.Context) call.Observer {
	if !activity.IsActivity(ctx) {
		return func(call.Observation) {}
	}
	return s.Observer(activity.GetInfo(ctx).WorkflowExecution.ID)
}

// RecordRoute records where a branch continues after a step.
func (s *stage) RecordRoute(book *playbook.Playbook, step *playbook.Step, arrivals []interpreter.Arrival) {
	s.seen.addRoute(book, step, arrivals, book.Hash == s.suite.Book.Hash)
}

// StepBegan records that a visit of a step has begun.
func (s *stage) StepBegan(book *playbook.Playbook, record protocol.StepRecord) {
	if book.Hash == s.suite.Book.Hash {
		s.addEvents(runs.StepEvents(protocol.StepRecord{Step: record.Step, Visit: record.Visit, StartedAt: record.StartedAt})...)
	}
}

// StepEnded records how a visit of a step ended.
func (s *stage) StepEnded(book *playbook.Playbook, record protocol.StepRecord) {
	if book.Hash == s.suite.Book.Hash {
		s.addEvents(runs.StepEvents(record)[1:]...)
	}
}

// IterationEnded records how an iteration ended.
func (s *stage) IterationEnded(workflowID string, task call.Task, iteration interpreter.IterationResult) {
	if s.seen.loopPlace(workflowID) == "" {
		s.addEvents(runs.IterationEvents(runs.Event{Step: task.Step, Visit: task.Visit, Index: &iteration.Index}, iteration)...)
	}
}

// InterceptActivity makes activities use the test's server instead of a Temporal client.
func (a *around) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &attempts{interceptor.ActivityInboundInterceptorBase{Next: next}, a.stage}
}

type attempts struct {
	interceptor.ActivityInboundInterceptorBase

	stage *stage
}

func (a *attempts) Init(out interceptor.ActivityOutboundInterceptor) error {
	return a.Next.Init(withTestClient(out, out.GetClient, a.stage.server))
}

type lostKey struct{}

// ExecuteActivity runs an activity. When its worker is lost, it runs the activity again; the result of the lost one
// is dropped.
func (a *attempts) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	type ended struct {
		result any
		err    error
	}
	bounded, cancel := context.WithCancel(ctx)
	lost, done := make(chan struct{}, 1), make(chan ended, 1)
	go func() {
		a.stage.attempts.RLock()
		defer a.stage.attempts.RUnlock()
		result, err := a.Next.ExecuteActivity(context.WithValue(bounded, lostKey{}, lost), in)
		done <- ended{result, err}
	}()
	select {
	case e := <-done:
		cancel()
		return e.result, e.err
	case <-lost:
		cancel()
		<-done // so that nothing is done behind its back
		return nil, temporal.NewApplicationError("the worker was lost", string(interpreter.KindWorkerLost))
	}
}

// loseWorker simulates the loss of the worker. It returns when the activity's context has ended.
func loseWorker(ctx context.Context) error {
	if lost, ok := ctx.Value(lostKey{}).(chan struct{}); ok {
		select {
		case lost <- struct{}{}:
		default:
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// clientInterceptor replaces the activities' client. The SDK has no name for the client's type.
type clientInterceptor[C any] struct {
	interceptor.ActivityOutboundInterceptorBase

	server *server
}

func withTestClient[C any](next interceptor.ActivityOutboundInterceptor, _ func(context.Context) C, server *server) *clientInterceptor[C] {
	return &clientInterceptor[C]{interceptor.ActivityOutboundInterceptorBase{Next: next}, server}
}

// GetClient returns the client of the test.
func (s *clientInterceptor[C]) GetClient(context.Context) C { return any(s.server).(C) }
