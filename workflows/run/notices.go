package run

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/call/request"
	"reprise/interpreter/playbook"
	"reprise/workflows/control"
	"reprise/workflows/drive"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// Notices report events of a run to others. Notices of a step are part of it, as its sinks are. Notices of the run
// are sent beside its steps: they are not affected by pauses and cancels, and the run waits for them only before it
// ends. Those not sent when the run continues as new are in its next input. A notice that fails causes only a
// warning.

// noticePatience is how long a run waits for its notices before it ends, and for their running attempts before it
// continues as new.
const noticePatience = 5 * time.Minute

// notices is the part of a run that sends notices.
type notices struct {
	*frame
	protocol.RunNotices
	// describe updates the displayed status of the run.
	describe func(workflow.Context)
	open     []*openNotice // notices that are being sent
	ending   bool          // the run only waits for its notices
	// renewing says that the run continues as new once no attempt of a notice is running.
	renewing bool
	// once has the events of steps that are sent once per visit and have been.
	once map[string]bool
	// outbox is the outbox of the run, which the context of an update handler lacks.
	outbox *gate.Outbox
}

// openNotice is a notice that is being sent.
type openNotice struct {
	sink     *playbook.Sink
	controls *control.Controls
}

// notifyStep sends the notices about the end of a visit of a step, after its sinks and before its routes.
func (n *notices) notifyStep(ctx workflow.Context, done stepEnd) {
	start, result := done.start, done.result
	status := result.FinalStatus()
	notices := start.Step.Notices(result.Failed())
	if len(notices) == 0 || status == interpreter.Cancelled || ctx.Err() != nil {
		return
	}
	data := n.Data.WithStep(start.Step.Name, result)
	for _, notice := range notices {
		call := call.NewNotice(call.Config{
			Source: request.Source{
				Book: n.book, Run: n.Run, Step: start.Step, Visit: start.Visit,
				Scope: interpreter.EndScope(interpreter.NewScope(n.book, n.Run, data), done.args, result),
			},
			Limits: n.Limits,
			Random: gate.RandomStream(ctx, fmt.Sprintf("%s#%d", notice.Place, start.Visit)),
		}, notice, 1, call.News{
			At: workflow.Now(ctx), Step: start.Step.Name, Visit: start.Visit, Status: status,
			Attempts: result.Meta.Attempts, Error: result.Error,
		}, result.Data.Data)
		n.recordSent(notice, drive.Drive(ctx, call, n.noticeWaiter(ctx, done.record), nil))
	}
}

// noticeWaiter returns a recorder that shows the waits of a notice in the record of its step, without the error of
// the notice.
func (n *notices) noticeWaiter(ctx workflow.Context, record *protocol.StepRecord) drive.WaitRecorder {
	return func(call *call.Call, wait *interpreter.Wait, until time.Time) {
		failure := record.Error
		record.Await(wait, until, call.View().Last)
		record.Error = failure
		n.describe(ctx)
	}
}

// recordSent records the outcome of a notice.
func (n *notices) recordSent(notice *playbook.Sink, result interpreter.CallResult) {
	if result.Failed() {
		n.addWarning(call.NoticeFailed(notice, result.Error))
	}
	for _, warning := range result.Warnings {
		n.addWarning(warning)
	}
}

// notifyAll starts sending all notices about an event, beside the steps of the run.
func (n *notices) notifyAll(ctx workflow.Context, news call.News, result interpreter.CallResult) {
	notices := n.book.Notices(news.Event)
	if len(notices) == 0 || n.ending {
		return
	}
	n.Notified++
	number := n.Notified
	news.At, news.Error = workflow.Now(ctx), news.Error.ShrunkError()
	scope := interpreter.EndScope(n.newScope(), nil, result)
	for _, notice := range notices {
		n.sendNotice(ctx, notice, protocol.UnsentNotice{Place: notice.Place, Number: number, News: news}, scope, result.Data.Data)
	}
}

// sendNotice starts sending a notice beside the steps of the run, from its stored state if it has one.
func (n *notices) sendNotice(ctx workflow.Context, notice *playbook.Sink, unsent protocol.UnsentNotice, scope *interpreter.Scope, result any) {
	beside, _ := workflow.NewDisconnectedContext(n.outbox.With(ctx))
	beside, controls := control.WithControls(beside, "", interpreter.Control{}, nil)
	under := &openNotice{sink: notice, controls: controls}
	n.open = append(n.open, under)
	workflow.Go(beside, func(ctx workflow.Context) {
		call := n.noticeCall(notice, unsent, scope, result, gate.RandomStream(ctx, fmt.Sprintf("%s/%d", notice.Place, unsent.Number)))
		if call.View().DueWait(workflow.Now(ctx)) != nil {
			call.WaitedUntil(unsent.Call.Until, workflow.Now(ctx))
		}
		d := &drive.Driver{Call: call, Waiting: drive.RecordNoWait, Renews: func() bool { return n.renewing }}
		snapshot := d.Run(ctx)
		at := slices.Index(n.open, under)
		if at < 0 {
			return // the run has not waited for the notice
		}
		n.open = slices.Delete(n.open, at, at+1)
		if snapshot != nil {
			unsent.Call = *snapshot
			n.Unsent = append(n.Unsent, unsent)
			return
		}
		n.recordSent(notice, *call.Result())
	})
}

// noticeCall returns the call of a notice of the run, with its stored state.
func (n *notices) noticeCall(
	notice *playbook.Sink, unsent protocol.UnsentNotice, scope *interpreter.Scope, result any, random func() float64,
) *call.Call {
	call := call.NewNotice(call.Config{
		Source: request.Source{Book: n.book, Run: n.Run, Scope: scope}, Limits: n.Limits, Random: random,
	}, notice, unsent.Number, unsent.News, result)
	call.Load(unsent.Call.State)
	return call
}

// notifyOnce is notifyAll for events that are sent once per visit of a step.
func (n *notices) notifyOnce(ctx workflow.Context, news call.News) {
	key := fmt.Sprintf("%s/%s#%d", news.Event, news.Step, news.Visit)
	if n.once[key] || !n.book.HasNotice(news.Event) {
		return
	}
	if n.once == nil {
		n.once = map[string]bool{}
	}
	n.once[key] = true
	n.notifyAll(ctx, news, protocol.NewCallResult(news.Error))
}

// settleOpen waits for the notices that are being sent, and drops those that take too long.
func (n *notices) settleOpen(ctx workflow.Context) {
	if len(n.open) == 0 {
		return
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	_, _ = workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout: noticePatience, TimerOptions: workflow.TimerOptions{Summary: "waits for the run's notices"},
	}, func() bool { return len(n.open) == 0 })
	for _, under := range n.open {
		n.addWarning(fmt.Sprintf("the notice %s was not sent: the run waits at most %s for its notices", under.sink.Place, noticePatience))
	}
	n.open = nil
}

// packOpen stores the notices that are being sent for the next history, once their attempts have ended.
func (n *notices) packOpen(ctx workflow.Context) {
	n.renewing = len(n.open) > 0
	for _, under := range n.open {
		under.controls.EndWaits()
	}
	n.settleOpen(ctx)
}

// unpackOpen continues with notices that packOpen has stored.
func (n *notices) unpackOpen(ctx workflow.Context) {
	unsent := n.Unsent
	n.Unsent, n.renewing = nil, false
	for _, one := range unsent {
		result := protocol.NewCallResult(one.News.Error)
		scope := interpreter.EndScope(n.newScope(), nil, result)
		n.sendNotice(ctx, one.FindNotice(n.book), one, scope, result.Data.Data)
	}
}

// notifyEnd sends the notices about the end of the run, and waits for all notices.
func (n *notices) notifyEnd(ctx workflow.Context, result *protocol.Result) {
	ended := protocol.NewCallResult(result.Error)
	ended.Data = result.Result
	n.notifyAll(ctx, call.News{Event: string(result.Status), Status: result.Status, Error: result.Error}, ended)
	n.ending = true
	n.settleOpen(ctx)
}

// notifyPaused sends the notices that people have paused the run or a step.
func (n *notices) notifyPaused(ctx workflow.Context, command protocol.CommandInput) {
	n.notifyAll(ctx, call.News{
		Event: playbook.EventPaused, Step: command.Step, Status: interpreter.Paused, Reason: command.Reason, By: command.By,
	}, protocol.NewCallResult(nil))
}

// notifyExhausted sends the notices that a policy has used up its attempts or pages in a visit
// of a step.
func (n *notices) notifyExhausted(ctx workflow.Context, done stepEnd) {
	var iterations []interpreter.LoopError
	if done.record.Loop != nil {
		iterations = done.record.Loop.Errors
	}
	if failure, index := call.ExhaustedError(done.result, iterations); failure != nil {
		n.notifyOnce(ctx, call.News{
			Event: playbook.EventExhausted, Step: done.start.Step.Name, Visit: done.start.Visit, Index: index,
			Status: done.result.FinalStatus(), Attempts: failure.Attempt, Error: failure,
		})
	}
}

// listenForNews sends notices about the news of child workflows.
func (n *notices) listenForNews(ctx workflow.Context) {
	if !drive.HasNewsOfChildren(n.book) {
		return
	}
	gate.HandleSignal(ctx, protocol.NewsSignal, func(ctx workflow.Context, news call.News) {
		switch step := n.book.Step(news.Step); {
		case step == nil || news.Event != playbook.EventPaused && news.Event != playbook.EventExhausted:
		case step.Loop == nil: // people may hold a call more than once
			n.notifyAll(ctx, news, protocol.NewCallResult(news.Error))
		default:
			n.notifyOnce(ctx, news)
		}
	})
}

// watchLate sends the notices that the run takes longer than expected, measured from its first start.
func (n *notices) watchLate(ctx workflow.Context) {
	if n.book.Expect == 0 || n.Late {
		return
	}
	left := n.book.Expect - workflow.Now(ctx).Sub(n.startedAt())
	gate.AfterWait(ctx, max(left, 0), "when the run is late", func(ctx workflow.Context) {
		if n.ending || n.Failure != nil {
			return
		}
		n.Late = true
		n.addWarning(fmt.Sprintf("the run was late: it took longer than %s", n.book.Expect))
		n.describe(ctx)
		n.notifyAll(ctx, call.News{Event: playbook.EventLate, Status: interpreter.Running}, protocol.NewCallResult(nil))
	})
}
