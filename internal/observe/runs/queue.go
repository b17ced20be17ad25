package runs

import (
	"context"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"reprise/internal/base/connect"
	"reprise/interpreter/lists"
	"reprise/interpreter/queue"
)

// QueuePosition describes what a queued run waits for.
type QueuePosition struct {
	Name queue.Name `json:"name"`
	// WorkflowID is the ID of the workflow that grants the slots of the key.
	WorkflowID string    `json:"workflow_id"`
	Since      time.Time `json:"since,omitzero"`
	Limit      int       `json:"limit,omitempty"`
	// Position is the run's position in the queue, from 1; 0 if unknown.
	Position int `json:"position,omitempty"`
	// Holders are the workflow IDs of the first few runs that have a slot.
	Holders []string `json:"holders,omitempty"`
	// HoldersSince is when each of Holders got its slot.
	HoldersSince []time.Time `json:"holders_since,omitempty"`
	Running      int         `json:"running,omitempty"`
	// Stopped is set if the queue's workflow was terminated. No run gets a slot until one requests it again, which
	// restarts the workflow.
	Stopped bool `json:"stopped,omitempty"`
	// NoWorker is a workflow without a worker that the run waits for: the queue's workflow, or the first of Holders;
	// nil if none is known.
	NoWorker *MissingWorker `json:"no_worker,omitempty"`
}

// MissingWorker is a workflow that makes no progress: no worker polls its task queue, or none of them responds.
type MissingWorker struct {
	WorkflowID string `json:"workflow_id"`
	TaskQueue  string `json:"task_queue"`
}

// QueueSlot is a run's slot under its concurrency key.
type QueueSlot struct {
	Name       queue.Name `json:"name"`
	WorkflowID string     `json:"workflow_id"` // as Queue has it
	// Limit is the number of slots. Running is how many runs have one, including this one, and Waiting how many are
	// queued.
	Limit   int `json:"limit"`
	Running int `json:"running"`
	Waiting int `json:"waiting"`
}

// queueOf returns what a running run is queued for, from its memo; nil if it is not queued.
func queueOf(memo *commonpb.Memo) *QueuePosition {
	var ticket queue.Ticket
	payload := memo.GetFields()[queue.Memo]
	if payload == nil || converter.GetDefaultDataConverter().FromPayload(payload, &ticket) != nil || ticket.Queue == "" {
		return nil
	}
	return &QueuePosition{Name: ticket.Name, WorkflowID: ticket.Queue, Since: ticket.Since}
}

// queryQueue queries the workflow of a concurrency key for its status, and for the positions of some runs.
func (r *Reader) queryQueue(ctx context.Context, id string, members []queue.Member) (queue.Status, error) {
	var status queue.Status
	err := r.queryWorkflow(ctx, id, "", queue.StatusQuery, &status, members)
	if err == nil && len(status.Positions) != len(members) {
		status.Positions = make([]int, len(members))
	}
	return status, err
}

// QueueStatus returns the status of a concurrency key; zero if no run has requested a slot.
func (r *Reader) QueueStatus(ctx context.Context, name queue.Name) (queue.Status, error) {
	status, err := r.queryQueue(ctx, name.WorkflowID(), nil)
	if connect.IsNotFound(err) {
		return queue.Status{}, nil
	}
	return status, err
}

// queuePosition describes what a run with a ticket waits for, from the queue's answer.
func (r *Reader) queuePosition(ctx context.Context, ticket *queue.Ticket, run queue.Member) (*QueuePosition, error) {
	queued := &QueuePosition{Name: ticket.Name, WorkflowID: ticket.Queue, Since: ticket.Since}
	status, err := r.queryQueue(ctx, ticket.Queue, []queue.Member{run})
	if err == nil {
		queued.applyStatus(status, status.Positions[0])
	}
	return queued, err
}

func (q *QueuePosition) applyStatus(status queue.Status, position int) {
	q.Limit, q.Position, q.Running = status.Limit, position, status.Running
	q.Holders, q.HoldersSince = status.Holders, status.HoldersSince
}

// DescribeQueued describes what a run with a ticket waits for, including missing workers. A worker of the run's own task
// queue must have responded. It makes at most four calls; the error is that the queue did not respond.
func (r *Reader) DescribeQueued(ctx context.Context, run queue.Member, taskQueue string, ticket *queue.Ticket) (*QueuePosition, error) {
	found, err := r.queuePosition(ctx, ticket, run)
	r.findUnpolled(ctx, found, taskQueue, err == nil, func() bool { return true })
	return found, err
}

// findUnpolled sets Stopped and NoWorker; answered says that the queue has responded. It makes one call for the queue
// and two for the first holder, if spend allows.
func (r *Reader) findUnpolled(ctx context.Context, found *QueuePosition, taskQueue string, answered bool, spend func() bool) {
	polled := ""
	if spend() {
		described, err := r.Client.DescribeWorkflowExecution(ctx, found.WorkflowID, "")
		info := described.GetWorkflowExecutionInfo()
		found.Stopped = err == nil && info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		polled = info.GetTaskQueue()
	}
	if !answered {
		if polled != "" && polled != taskQueue && !found.Stopped {
			found.NoWorker = &MissingWorker{WorkflowID: found.WorkflowID, TaskQueue: polled}
		}
		return
	}
	if len(found.Holders) == 0 || !spend() {
		return
	}
	holder := found.Holders[0]
	described, err := r.Client.DescribeWorkflowExecution(ctx, holder, "")
	of := described.GetWorkflowExecutionInfo().GetTaskQueue()
	if err != nil || of == taskQueue || of == polled || !spend() {
		return // a worker of these has responded
	}
	if _, err := r.Progress(ctx, holder, ""); err != nil && ctx.Err() == nil && !connect.IsNotFound(err) && !connect.IsUnavailable(err) {
		found.NoWorker = &MissingWorker{WorkflowID: holder, TaskQueue: of}
	}
}

// mostQueues bounds the keys that SetPositions queries, each a request to a worker.
const mostQueues = 20

// SetPositions sets the positions of queued runs, with a call for each key, for at most 20 keys. Without an answer they
// stay unknown.
func (r *Reader) SetPositions(ctx context.Context, list []Found) {
	waiting := map[string][]*Found{}
	var queues []string
	for i := range list {
		run := &list[i]
		if run.Queue == nil {
			continue
		}
		if waiting[run.Queue.WorkflowID] == nil {
			queues = append(queues, run.Queue.WorkflowID)
		}
		waiting[run.Queue.WorkflowID] = append(waiting[run.Queue.WorkflowID], run)
	}
	runConcurrently(min(len(queues), mostQueues), func(i int) {
		waiting := waiting[queues[i]]
		members := lists.Map(waiting, func(run *Found) queue.Member { return queue.Member{WorkflowID: run.WorkflowID, RunID: run.RunID} })
		status, err := r.queryQueue(ctx, queues[i], members)
		if err != nil {
			return
		}
		for i, run := range waiting {
			run.Queue.applyStatus(status, status.Positions[i])
		}
	})
}
