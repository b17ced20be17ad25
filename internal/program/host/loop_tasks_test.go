package host_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// completions are how many workflow tasks of each type a worker has completed, by whether it
// requested the next one in the response.
type completions struct {
	mu    sync.Mutex
	types map[string]string // of open tasks, by token
	tasks map[bool]map[string]int
}

func (c *completions) intercept(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	err := invoke(ctx, method, request, reply, conn, options...)
	c.mu.Lock()
	defer c.mu.Unlock()
	if done, is := request.(*workflowservice.RespondWorkflowTaskCompletedRequest); is {
		c.tasks[done.GetReturnNewWorkflowTask()][c.types[string(done.GetTaskToken())]]++
	}
	switch reply := reply.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		c.types[string(reply.GetTaskToken())] = reply.GetWorkflowType().GetName()
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		c.types[string(reply.GetWorkflowTask().GetTaskToken())] = reply.GetWorkflowTask().GetWorkflowType().GetName()
	}
	return err
}

// TestTasksOfLoopsAreQueued: the next workflow task of a loop comes from its queue, with what
// has come until then; all others are requested at once, as the SDK does.
func TestTasksOfLoopsAreQueued(t *testing.T) {
	t.Parallel()
	seen := &completions{types: map[string]string{}, tasks: map[bool]map[string]int{true: {}, false: {}}}
	c, queue, url := interceptedWorker(t, seen.intercept)
	const size = 40
	book := fmt.Sprintf("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: loop}\nworkflow:\n"+
		"  - {step: fetch, tool: http, url: %q, loop: {collection: \"{{ 1..%d }}\", mode: parallel}}\n", url, size)
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue},
		protocol.PlaybookWorkflowName, protocol.Input{Name: "loop.yaml", Source: book})
	require.NoError(t, err)
	var result protocol.Result
	require.NoError(t, testenv.WaitOutcome(t, run, &result))
	require.Equal(t, interpreter.Completed, result.Status)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	require.Equal(t, []string{protocol.LoopWorkflowName}, playbook.SortedKeys(seen.tasks[false]))
	require.Equal(t, []string{protocol.CallsWorkflowName, protocol.PlaybookWorkflowName}, playbook.SortedKeys(seen.tasks[true]))
	require.Equal(t, 2*size, seen.tasks[true][protocol.CallsWorkflowName])
}
