package host

import (
	"context"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"reprise/workflows/protocol"
)

// maxLoopTasks bounds the workflow tasks of loops that are remembered: more than a worker
// has at a time. Those that were never answered make room for others.
const maxLoopTasks = 4096

// loopTasks makes the next workflow task of a loop come from its queue. The SDK requests it
// with the response to the previous task, so a loop whose children start and end at the same
// time has a task for every one or two of these events, each of which locks the loop's
// workflow. On the queue a task collects what comes until a worker polls it, which is longer
// the busier the server is. Where nothing has come meanwhile, there is no next task, and no
// difference.
type loopTasks struct {
	open *lru.Cache[string, struct{}] // tokens of the loops' tasks
}

func newLoopTasks() *loopTasks {
	open, err := lru.New[string, struct{}](maxLoopTasks)
	if err != nil {
		panic(err) // of a size that is not positive
	}
	return &loopTasks{open: open}
}

func (l *loopTasks) interceptPoll(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	// A task that begins another one while a local activity runs needs that one at once.
	if done, is := request.(*workflowservice.RespondWorkflowTaskCompletedRequest); is && !done.GetForceCreateNewWorkflowTask() {
		if l.open.Remove(string(done.GetTaskToken())) {
			done.ReturnNewWorkflowTask = false
		}
	}
	if err := invoke(ctx, method, request, reply, conn, options...); err != nil {
		return err
	}
	switch reply := reply.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		l.rememberTask(reply)
	case *workflowservice.RespondWorkflowTaskCompletedResponse:
		l.rememberTask(reply.GetWorkflowTask())
	}
	return nil
}

// rememberTask remembers a task that the worker has got, where it is a loop's.
func (l *loopTasks) rememberTask(task *workflowservice.PollWorkflowTaskQueueResponse) {
	if task.GetWorkflowType().GetName() == protocol.LoopWorkflowName && task.GetQuery() == nil {
		l.open.Add(string(task.GetTaskToken()), struct{}{})
	}
}
