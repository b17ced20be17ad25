package codec

import (
	"context"
	"log/slog"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// holdTime is how long a held workflow task is kept from other workers: long enough that one that nobody can decrypt costs
	// little, and below the 10 s after which the server dispatches it by itself.
	holdTime = 5 * time.Second
	// returnDelay is the time before the server dispatches an activity again that could not be decrypted. It gets 1000 deliveries:
	// hours to add a key.
	returnDelay = 15 * time.Second
	// answerTime bounds one response to the server.
	answerTime = 3 * time.Second
	// logEvery is the least time between two log lines about held tasks that were held before.
	logEvery = time.Minute
)

// taskSender answers for a task, past the codec: the reason must be readable without the key.
type taskSender struct {
	invoke grpc.UnaryInvoker
	cc     *grpc.ClientConn
	logger *slog.Logger
}

func (s taskSender) send(ctx context.Context, method string, request, reply any) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	// If the request is lost, the timeout of the task has the same effect later.
	_ = s.invoke(ctx, "/temporal.api.workflowservice.v1.WorkflowService/"+method, request, reply, s.cc)
}

// heldTasks are workflow tasks that are kept from other workers for a while.
type heldTasks struct {
	mu     sync.Mutex
	next   int
	tasks  map[int]func() // returns the task to the server
	logged time.Time
}

// holdTask replaces a task that cannot be decrypted by an empty response to the poll, and makes the server keep the task: nothing fails
// for the lack of a key. The first failure of a workflow task is an event of the history, from which `starter status`
// has the reason. For all other requests it returns the reason.
func (c *Codec) holdTask(ctx context.Context, s taskSender, request, reply any, reason *KeyError) error {
	switch task := reply.(type) {
	case *workflowservice.PollWorkflowTaskQueueResponse:
		poll, _ := request.(*workflowservice.PollWorkflowTaskQueueRequest)
		c.holdWorkflowTask(ctx, s, poll, proto.CloneOf(task), reason)
		proto.Reset(task)
	case *workflowservice.PollActivityTaskQueueResponse:
		poll, _ := request.(*workflowservice.PollActivityTaskQueueRequest)
		c.logHeld(s.logger, true, task.GetWorkflowExecution(), reason)
		go s.returnActivity(ctx, poll, proto.CloneOf(task), reason)
		proto.Reset(task)
	default:
		return reason
	}
	return nil
}

func (c *Codec) holdWorkflowTask(
	ctx context.Context, s taskSender, poll *workflowservice.PollWorkflowTaskQueueRequest, task *workflowservice.PollWorkflowTaskQueueResponse, reason *KeyError,
) {
	if task.GetQuery() != nil {
		go s.send(ctx, "RespondQueryTaskCompleted", &workflowservice.RespondQueryTaskCompletedRequest{
			TaskToken: task.GetTaskToken(), Namespace: poll.GetNamespace(), CompletedType: enumspb.QUERY_RESULT_TYPE_FAILED,
			ErrorMessage: reason.Error(), Failure: reason.failure(),
		}, &workflowservice.RespondQueryTaskCompletedResponse{})
		return
	}
	release := sync.OnceFunc(func() {
		s.send(ctx, "RespondWorkflowTaskFailed", &workflowservice.RespondWorkflowTaskFailedRequest{
			TaskToken: task.GetTaskToken(), Namespace: poll.GetNamespace(), Identity: poll.GetIdentity(),
			Cause: enumspb.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE, Failure: reason.failure(),
		}, &workflowservice.RespondWorkflowTaskFailedResponse{})
	})
	first := task.GetAttempt() < 2
	c.logHeld(s.logger, first, task.GetWorkflowExecution(), reason)
	if first {
		go release()
		return
	}
	c.held.holdTask(release)
}

// holdTask holds a task for holdTime.
func (h *heldTasks) holdTask(release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tasks == nil {
		h.tasks = map[int]func(){}
	}
	h.next++
	id := h.next
	h.tasks[id] = release
	time.AfterFunc(holdTime, func() {
		h.mu.Lock()
		delete(h.tasks, id)
		h.mu.Unlock()
		release()
	})
}

// releaseTasks returns all held tasks to the server, because this worker stops: the longer a task has been tried, the later the
// server would do so by itself, up to ten minutes.
func (c *Codec) releaseTasks() {
	if c == nil {
		return
	}
	c.held.mu.Lock()
	tasks := c.held.tasks
	c.held.tasks = nil
	c.held.mu.Unlock()
	var group sync.WaitGroup
	for _, release := range tasks {
		group.Go(release)
	}
	group.Wait()
}

// logHeld reports a held task: each once, and those that stay held now and then.
func (c *Codec) logHeld(logger *slog.Logger, first bool, run *commonpb.WorkflowExecution, reason *KeyError) {
	c.held.mu.Lock()
	defer c.held.mu.Unlock()
	if !first && time.Since(c.held.logged) < logEvery {
		return
	}
	c.held.logged = time.Now()
	logger.Error("a run waits because its values cannot be decrypted", "WorkflowID", run.GetWorkflowId(), "RunID", run.GetRunId(), "error", reason)
}

// returnActivity makes the server dispatch an activity again. Nothing of it has run, which a first delivery has to say, because the
// next one takes what is unknown for an attempt that may have acted.
func (s taskSender) returnActivity(
	ctx context.Context, poll *workflowservice.PollActivityTaskQueueRequest, task *workflowservice.PollActivityTaskQueueResponse, reason *KeyError,
) {
	failure := reason.failure()
	failure.GetApplicationFailureInfo().NextRetryDelay = durationpb.New(returnDelay)
	failed := &workflowservice.RespondActivityTaskFailedRequest{
		TaskToken: task.GetTaskToken(), Namespace: poll.GetNamespace(), Identity: poll.GetIdentity(), Failure: failure,
	}
	if task.GetAttempt() < 2 && task.GetHeartbeatDetails() == nil {
		failed.LastHeartbeatDetails = &commonpb.Payloads{Payloads: []*commonpb.Payload{UnbegunDelivery()}}
	}
	s.send(ctx, "RespondActivityTaskFailed", failed, &workflowservice.RespondActivityTaskFailedResponse{})
}

// failure returns the error in the form of the server. Its text stays readable.
func (e *KeyError) failure() *failurepb.Failure {
	return &failurepb.Failure{Message: e.text, Source: "reprise", FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
		ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: FailureType},
	}}
}

// UnbegunDelivery is the detail of a heartbeat that says that the first delivery of an activity has not begun, as
// activities/attempt reads it. It is the only plain value that is read if encryption is required.
func UnbegunDelivery() *commonpb.Payload {
	return &commonpb.Payload{
		Metadata: map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}, Data: []byte(`{"delivery":{"delivery":1}}`),
	}
}
