package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/workflows/loop"
	"reprise/workflows/protocol"
)

// loopAlone is the name under which a loop runs without its run.
const loopAlone = "loop"

// slowServer counts what a server would add to the history of a loop if it told the
// loop of each event alone, so that each has a workflow task: three events more.
type slowServer struct {
	interceptor.WorkerInterceptorBase
	stage  *stage
	length int
}

func (s *slowServer) add(events int) {
	s.length += events
	s.stage.env.SetCurrentHistoryLength(s.length)
}

// ofChild adds events of a child, unless it is one of another workflow.
func (s *slowServer) ofChild(child *workflow.Info, events int) {
	if child.ParentWorkflowExecution.ID == child.RootWorkflowExecution.ID {
		s.add(events)
	}
}

func (s *slowServer) InterceptWorkflow(ctx workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	if workflow.GetInfo(ctx).WorkflowType.Name != loopAlone {
		return next
	}
	return &slowLoop{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, server: s}
}

type slowLoop struct {
	interceptor.WorkflowInboundInterceptorBase
	server *slowServer
}

func (l *slowLoop) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	return l.Next.Init(&slowSignals{WorkflowOutboundInterceptorBase: interceptor.WorkflowOutboundInterceptorBase{Next: outbound}, server: l.server})
}

func (l *slowLoop) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	l.server.add(1 + 3)
	return l.Next.HandleSignal(ctx, in)
}

type slowSignals struct {
	interceptor.WorkflowOutboundInterceptorBase
	server *slowServer
}

func (s *slowSignals) SignalExternalWorkflow(ctx workflow.Context, id, run, name string, message any) workflow.Future {
	s.server.add(1 + 1 + 3)
	return s.Next.SignalExternalWorkflow(ctx, id, run, name, message)
}

// playLoop runs the loop of a step alone, on a slow server, and returns the length of its history.
func playLoop(t *testing.T, elements int, step string, answer play) (length int) {
	t.Helper()
	s := newStage(t, answer)
	s.env.RegisterWorkflowWithOptions(loop.LoopWorkflow, workflow.RegisterOptions{Name: loopAlone})
	server := &slowServer{stage: s, length: 3}
	s.env.SetWorkerOptions(worker.Options{
		DeadlockDetectionTimeout: testenv.Within(time.Minute), Interceptors: []interceptor.WorkerInterceptor{server},
	})
	s.env.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context, _ converter.EncodedValues) {
		server.ofChild(info, 1+1+3)
	})
	s.env.SetOnChildWorkflowCompletedListener(func(info *workflow.Info, _ converter.EncodedValue, _ error) {
		server.ofChild(info, 1+3)
	})
	input := protocol.LoopInput{Reserves: true, Task: call.Task{Name: "test.yaml", Step: "fetch", Visit: 1, Run: interpreter.RunInfo{StartedAt: s.env.Now()}, Source: `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: test}
workflow:
  - step: fetch
` + step}}
	for i := range elements {
		input.Elements = append(input.Elements, expression.Of(i))
	}
	task, script := input.Task.SplitScript()
	input.Task = task
	s.env.ExecuteWorkflow(loopAlone, input, script)
	require.NoError(t, s.env.GetWorkflowError())
	var result interpreter.LoopResult
	require.NoError(t, s.env.GetWorkflowResult(&result))
	require.Equal(t, interpreter.LoopStats{Total: elements, Success: elements}, result.Stats)
	return server.length
}

// TestHistoryOfALoopWhoseChildrenWait: all iterations of a loop wait for an hour, twice, as they do where a store is
// away, and release their slots meanwhile. The loop has room in its history for what they still add to it.
func TestHistoryOfALoopWhoseChildrenWait(t *testing.T) {
	t.Parallel()
	const bound = 4096
	length := playLoop(t, 300, `
    tool: http
    url: http://x
    loop: {collection: "{{ 1..300 }}", batch: 1, mode: parallel, max_concurrency: 100}
    retry: [{when: error is defined, then: {max_attempts: 3, delay: 1h, jitter: none}}]
`, func(_ int, in interpreter.ToolInput) (any, error) {
		if in.Attempt <= 2 {
			return nil, unavailable()
		}
		return *in.Index, nil
	})
	require.LessOrEqual(t, length, bound)
	require.Greater(t, length, bound*3/4, "most of the room is used")
}

// TestHistoryOfALoopWhoseChildRunsPoll: the iterations are runs of a playbook that ask each minute whether an export is
// ready. Lists show that they wait, but what each reports to its loop does not fill the loop's history.
func TestHistoryOfALoopWhoseChildRunsPoll(t *testing.T) {
	t.Parallel()
	length := playLoop(t, 200, `
    tool: playbook
    workflow:
      - step: poll
        tool: http
        url: http://x
        retry: [{when: error is defined, then: {max_attempts: 200, delay: 1m, jitter: none}}]
    loop: {collection: "{{ 1..200 }}", batch: 1, mode: parallel, max_concurrency: 200}
`, func(_ int, in interpreter.ToolInput) (any, error) {
		if in.Attempt <= 120 {
			return nil, unavailable()
		}
		return nil, nil
	})
	require.LessOrEqual(t, length, 4096)
	require.Greater(t, length, 200*9, "each run has reported a wait")
}
