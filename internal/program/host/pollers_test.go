package host_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"reprise/internal/test/testenv"
	"reprise/workflows/protocol"
)

// polls counts the open polls for workflow tasks, and says of each sticky queue that more tasks
// wait there than do: as a server does whose backlog has just been worked off.
type polls struct {
	mu   sync.Mutex
	open map[enumspb.TaskQueueKind]int
}

func (p *polls) change(kind enumspb.TaskQueueKind, by int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[kind] += by
}

func (p *polls) both() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open[enumspb.TASK_QUEUE_KIND_NORMAL] > 0 && p.open[enumspb.TASK_QUEUE_KIND_STICKY] > 0
}

func (p *polls) intercept(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	poll, is := request.(*workflowservice.PollWorkflowTaskQueueRequest)
	if !is {
		return invoke(ctx, method, request, reply, conn, options...)
	}
	kind := poll.GetTaskQueue().GetKind()
	p.change(kind, 1)
	defer p.change(kind, -1)
	err := invoke(ctx, method, request, reply, conn, options...)
	if task, is := reply.(*workflowservice.PollWorkflowTaskQueueResponse); is && kind == enumspb.TASK_QUEUE_KIND_STICKY {
		task.BacklogCountHint = 5
	}
	return err
}

// TestBothQueuesArePolled: a worker asks for the first tasks of runs while it asks for others, whatever the
// server says of how many others wait. One that does not leaves new runs and children alone until the server
// forwards their tasks.
func TestBothQueuesArePolled(t *testing.T) {
	t.Parallel()
	seen := &polls{open: map[enumspb.TaskQueueKind]int{}}
	c, queue, url := interceptedWorker(t, seen.intercept)
	book := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: plain}\nworkflow: [{step: fetch, tool: http, url: \"" + url + "\"}]\n"
	for i := range 4 {
		began := time.Now()
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: fmt.Sprintf("%s-%d", queue, i), TaskQueue: queue},
			protocol.PlaybookWorkflowName, protocol.Input{Name: "plain.yaml", Source: book})
		require.NoError(t, err)
		require.NoError(t, testenv.WaitOutcome(t, run, nil))
		t.Logf("run %d took %s", i, time.Since(began))
		require.Eventually(t, seen.both, testenv.Within(10*time.Second), 10*time.Millisecond, "after %d runs no worker asks for the first tasks of others", i+1)
	}
}
