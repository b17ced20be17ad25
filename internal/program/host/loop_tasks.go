package host

import (
	"context"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"reprise/workflows/protocol"
)

// maxLoopTasks bounds the remembered workflow tasks of loops: more than a worker has at a time. Tasks that were never
// answered are evicted.
const maxLoopTasks = 4096

// loopTasks makes the server dispatch the next workflow task of a loop through its task queue. The SDK requests it in
// the response to the previous task, so that a loop whose children start and end at the same time has a task for
// every one or two of these events, each of which locks the loop's workflow. A queued task collects events until a
// worker polls it, which takes longer the busier the server is. If no event has arrived, there is no next task, and
// no difference.
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
	// A task that begins another one while a local activity runs needs the next one at once.
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

// rememberTask records a task that the worker received, if it is of a loop.
func (l *loopTasks) rememberTask(task *workflowservice.PollWorkflowTaskQueueResponse) {
	if task.GetWorkflowType().GetName() == protocol.LoopWorkflowName && task.GetQuery() == nil {
		l.open.Add(string(task.GetTaskToken()), struct{}{})
	}
}
