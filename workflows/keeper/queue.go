package keeper

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
	"reprise/interpreter/source"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

const (
	// queueIdle is how long the workflow of an unused concurrency key stays open.
	queueIdle = time.Minute
	// Intervals of checks for runs that ended without releasing their slot, such as terminated ones. While runs
	// wait, the first check comes after checkFirst, and the interval doubles up to checkLast; otherwise it is
	// checkIdle.
	checkFirst = 5 * time.Second
	checkLast  = time.Minute
	checkIdle  = time.Hour
	// mostChecked bounds the runs with a slot that one activity checks: each check is a request to the server.
	mostChecked = 100
	// mostCheckedWaiting bounds the waiting runs, from the head of the queue, that are checked in the same way.
	mostCheckedWaiting = 20
	// mostDelivering bounds the messages of a queue that are being sent at the same time; Temporal accepts 2,000.
	mostDelivering = 200
)

// ConcurrencyWorkflow grants slots to the runs of one concurrency key. Runs request and release a slot by signals,
// and it answers with signals. Package interpreter/queue makes the decisions. It ends when no run has a slot or
// waits for one; the next run starts it again.
func ConcurrencyWorkflow(ctx workflow.Context, state queue.Queue) error {
	ctx, _ = workflow.NewDisconnectedContext(ctx) // a cancel would make it forget which runs have a turn
	ctx = gate.WithOutbox(ctx, interpreter.RunLimits{})
	k := &queueService{queue: &state, requests: workflow.GetSignalChannel(ctx, queue.RequestSignal)}
	err := errors.Join(
		workflow.SetQueryHandler(ctx, queue.StatusQuery, func(members []queue.Member) (queue.Status, error) { return state.Status(members), nil }),
		workflow.SetQueryHandler(ctx, queue.SnapshotQuery, func() (queue.Queue, error) { return state, nil }),
	)
	if err != nil {
		return err
	}
	k.drainRequests(ctx)
	return serveUntilOver(ctx, k)
}

// queueService connects the queue of a key to its workflow.
type queueService struct {
	queue           *queue.Queue
	requests        workflow.ReceiveChannel
	delivering      int // number of messages being sent
	gone            []queue.Member
	mode            queueMode
	alarm           workflow.Future // the timer that ends the mode
	stop            workflow.CancelFunc
	patience        time.Duration // interval before the next check while a run waits
	checked         int           // runs with a slot that were checked so far
	checkingCircles bool          // an activity is looking for runs that wait for each other
	over            bool          // the queue has been empty for queueIdle
	delivered       int           // value of delivering when the wait began
	victim          queue.Victim
}

// queueMode is the timer that a queue waits for, in addition to requests.
type queueMode int

const (
	queueEmpty   queueMode = iota + 1 // the end of the workflow
	queueHeld                         // a check of the runs with a slot
	queueWaiting                      // the same check while runs wait
)

// drainRequests applies the requests that have arrived, and removes runs that have ended.
func (k *queueService) drainRequests(ctx workflow.Context) {
	for request := range gate.ArrivedSignals[queue.Request](k.requests) {
		if err := request.Check(); err != nil {
			gate.Logger(ctx).Warn("ignored a request that no run has made", "error", err)
			continue
		}
		k.checkHolder(ctx, request)
		k.queue.Apply(request, workflow.Now(ctx))
	}
	if len(k.gone) > 0 {
		k.queue.Remove(workflow.Now(ctx), k.gone...)
		k.gone = nil
	}
	if k.isCircle() {
		k.queue.RefuseVictim(workflow.Now(ctx), k.victim)
		k.victim = queue.Victim{}
	}
}

// isCircle reports whether a run must fail because runs wait for each other.
func (k *queueService) isCircle() bool { return k.victim.WorkflowID != "" }

// deliverMessages starts sending messages, up to mostDelivering at the same time.
func (k *queueService) deliverMessages(ctx workflow.Context) {
	for k.mayDeliver() {
		message := k.queue.Messages[0]
		k.queue.Messages = k.queue.Messages[1:]
		k.delivering++
		workflow.Go(ctx, func(ctx workflow.Context) {
			k.deliverDecision(ctx, message)
			k.delivering--
		})
	}
}

func (k *queueService) mayDeliver() bool {
	return len(k.queue.Messages) > 0 && k.delivering < mostDelivering
}

// deliverDecision signals a decision to a run. If that fails, the run has ended.
func (k *queueService) deliverDecision(ctx workflow.Context, message queue.Message) {
	if err := gate.SignalWorkflow(ctx, message.To.WorkflowID, queue.DecisionSignal, message.Decision).Get(ctx, nil); err != nil {
		k.gone = append(k.gone, message.To)
		return
	}
	if message.Decision.State != queue.Replaced {
		return
	}
	cancel := queue.Cancel{Member: message.To, Reason: fmt.Sprintf(
		"the run %s took the concurrency key %q (on_conflict: cancel_running)", message.Decision.By, k.queue.Name.Key)}
	to := gate.ToTool(queue.CancelActivity, gate.QueueTimeout, "cancels "+source.CutText(message.To.WorkflowID, protocol.MaxText))
	if _, err := gate.Send[struct{}](ctx, to, cancel, "the reason of a cancel"); err != nil {
		gate.Logger(ctx).Warn("cannot cancel the run that should be replaced", "workflow_id", message.To.WorkflowID, "error", err)
	}
}

func (k *queueService) isOver(workflow.Context) bool { return k.over }

func (k *queueService) isLong(ctx workflow.Context) bool { return gate.HistoryIsLong(ctx) }

// actWhenDue sends decisions and starts the timer of the next check, or of the end.
func (k *queueService) actWhenDue(ctx workflow.Context) {
	k.deliverMessages(ctx)
	k.describeQueue(ctx)
	mode, length := queueEmpty, queueIdle
	switch {
	case len(k.queue.Waiting) > 0:
		if k.mode != queueWaiting {
			k.patience = checkFirst
		}
		mode, length = queueWaiting, k.patience
	case !k.queue.Empty() || k.delivering > 0:
		mode, length = queueHeld, checkIdle
	}
	if k.mode != mode || k.alarm.IsReady() {
		if k.stop != nil {
			k.stop()
		}
		var timer workflow.Context
		timer, k.stop = workflow.WithCancel(ctx)
		k.mode = mode
		k.alarm = workflow.NewTimerWithOptions(timer, length, workflow.TimerOptions{Summary: []string{
			queueEmpty: "idle", queueHeld: "until it checks which runs have slots", queueWaiting: "until it checks which runs have slots",
		}[mode]})
	}
	k.delivered = k.delivering
}

func (k *queueService) isDue(workflow.Context) bool {
	return k.alarm.IsReady() || k.requests.Len() > 0 || len(k.gone) > 0 || k.mayDeliver() || k.isCircle() ||
		k.delivering < k.delivered && k.queue.Empty()
}

// afterWait handles what ended the wait. A queue that was empty for queueIdle ends.
func (k *queueService) afterWait(ctx workflow.Context) {
	switch {
	case !k.alarm.IsReady():
	case k.mode != queueEmpty:
		k.checkMembers(ctx)
	case k.requests.Len() == 0:
		k.over = true
		return
	}
	k.drainRequests(ctx)
}

// checkHolder releases the state held by a terminated run, before another run fails because of a conflict that no
// longer exists.
func (k *queueService) checkHolder(ctx workflow.Context, request queue.Request) {
	if !k.queue.Name.State || request.OnConflict != playbook.ConflictSkip || len(k.queue.Holders) == 0 || k.queue.Has(request.Member) {
		return
	}
	holders := lists.Map(k.queue.Holders, func(holder queue.Entry) queue.Member { return holder.Member })
	ended, err := gate.Send[[]queue.Member](ctx, gate.ToTool(queue.EndedActivity, gate.QueueTimeout, "finds out whether the run that holds the state is open"), holders, "runs to check")
	if err != nil {
		gate.Logger(ctx).Warn("cannot find out whether runs are open", "error", err)
	}
	k.queue.Remove(workflow.Now(ctx), ended...)
}

// nextMembers returns the runs to check now: the next ones that have a slot, all of them in turn, and the first that wait.
func (k *queueService) nextMembers() (members []queue.Member) {
	holders := k.queue.Holders
	for range min(len(holders), mostChecked) {
		members = append(members, holders[k.checked%len(holders)].Member)
		k.checked++
	}
	for _, waiting := range k.queue.Waiting[:min(len(k.queue.Waiting), mostCheckedWaiting)] {
		members = append(members, waiting.Member)
	}
	return members
}

// checkMembers releases the slots of runs that have ended without a release.
func (k *queueService) checkMembers(ctx workflow.Context) {
	members := k.nextMembers()
	to := gate.ToTool(queue.EndedActivity, gate.QueueTimeout, fmt.Sprintf("finds out whether %d runs are open", len(members)))
	ended, err := gate.Send[[]queue.Member](ctx, to, members, "runs to check")
	if err != nil {
		gate.Logger(ctx).Warn("cannot find out whether runs are open", "error", err)
		return
	}
	k.patience = min(2*k.patience, checkLast)
	if len(ended) > 0 {
		k.gone, k.patience = append(k.gone, ended...), checkFirst
	}
	k.checkCircles(ctx)
}

// checkCircles looks for runs that wait for each other, in the background, since it queries other queues, which may
// not respond.
func (k *queueService) checkCircles(ctx workflow.Context) {
	if k.checkingCircles || len(k.queue.ParentQueues()) == 0 {
		return
	}
	k.checkingCircles = true
	workflow.Go(ctx, func(ctx workflow.Context) {
		to := gate.ToTool(queue.DeadlockActivity, gate.QueueTimeout, "checks whether runs wait for each other")
		to.Tries = 1 // the next check follows soon
		victim, err := gate.Send[queue.Victim](ctx, to, k.queue.Name.WorkflowID(), "the name of concurrency")
		if k.checkingCircles = false; err != nil {
			gate.Logger(ctx).Warn("cannot check whether runs wait for each other", "error", err)
			return
		}
		k.victim = victim
	})
}

// continueAsNew continues with the requests that have arrived and the messages that remain to be sent.
func (k *queueService) continueAsNew(ctx workflow.Context) (failure *interpreter.ErrorObject, next error) {
	if err := workflow.Await(ctx, func() bool { return k.delivering == 0 && !k.checkingCircles }); err != nil {
		return nil, err
	}
	k.drainRequests(ctx)
	return gate.ContinueAsNew(ctx, queue.WorkflowName, *k.queue, "the queue of the concurrency key")
}

// shownInDetails bounds the runs that the details list.
const shownInDetails = 20

// describeQueue writes the status of the queue into the details.
func (k *queueService) describeQueue(ctx workflow.Context) {
	table := gate.NewMarkdownTable("run", "state", "since")
	row := func(member queue.Entry, state string) {
		table.Row(gate.LinkTo(ctx, source.MarkdownCode(member.WorkflowID, protocol.MaxText), member.WorkflowID), state, gate.RenderTime(member.Since))
	}
	for _, holder := range k.queue.Holders[:min(len(k.queue.Holders), shownInDetails)] {
		state := "**has a slot**"
		if holder.Leaving {
			state = "**is cancelled**"
		}
		row(holder, state)
	}
	for i, waiting := range k.queue.Waiting[:min(len(k.queue.Waiting), shownInDetails)] {
		row(waiting, fmt.Sprintf("position %d", i+1))
	}
	what := "Concurrency key"
	if k.queue.Name.State {
		what = "State"
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("%s %s, limit %d: %d with a slot, %d queued\n\n%s",
		what, source.MarkdownCode(k.queue.Name.Key, protocol.MaxText), k.queue.Limit, len(k.queue.Holders), len(k.queue.Waiting), table))
}
