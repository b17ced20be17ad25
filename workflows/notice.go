package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/call/request"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// Notices notify others of what happens to a run. Those of a step are a part of it, as
// its sinks are. Those of the run go beside its steps: no pause holds them, no cancel
// ends them, and the run waits for them only before it ends. Notices that are not sent
// when the run continues as new are in its input. A notice that fails is a warning and
// nothing else.

// noticePatience is how long a run waits for its notices before it ends, and for their
// running attempts before it continues as new.
const noticePatience = 5 * time.Minute

// newsSignal passes news from a child of a run to its parent workflow; kept in
// histories.
const newsSignal = "news"

// notices are what a run has sent, and what it is sending.
type notices struct {
	open   []*openNotice // the notices that are being sent
	ending bool          // the run only waits for its notices
	// renewing says that the run continues as new once no attempt is running.
	renewing bool
	// once has the events of steps that were sent, each once per visit.
	once map[string]bool
	// outbox is that of the run, which the context of an update does not have.
	outbox *outbox
}

// openNotice is a notice that is being sent.
type openNotice struct {
	sink     *playbook.Sink
	controls *controls
}

// UnsentNotice is a notice of the run that is to be sent in its next history; kept in
// workflow history.
type UnsentNotice struct {
	Place string `json:"place"` // see Playbook.Notices
	// Number is that of the news: see RunState.Notified.
	Number int           `json:"number"`
	News   call.News     `json:"news"`
	Call   call.Snapshot `json:"call"`
}

// notifyStep sends the notices of how a visit of a step has ended, after its sinks and
// before its routes.
func (r *run) notifyStep(ctx workflow.Context, done ended) {
	start, result := done.start, done.result
	status := result.Ended()
	notices := start.Step.Notices(result.Failed())
	if len(notices) == 0 || status == interpreter.Cancelled || ctx.Err() != nil {
		return
	}
	data := r.Data.WithStep(start.Step.Name, result)
	for _, notice := range notices {
		call := call.NewNotice(call.Config{
			Source: request.Source{
				Book: r.book, Run: r.Run, Step: start.Step, Visit: start.Visit,
				Scope: interpreter.EndScope(interpreter.NewScope(r.book, r.Run, data), done.args, result),
			},
			Limits: r.Limits,
			Random: stream(ctx, fmt.Sprintf("%s#%d", notice.Place, start.Visit)),
		}, notice, 1, call.News{
			At: workflow.Now(ctx), Step: start.Step.Name, Visit: start.Visit, Status: status,
			Attempts: result.Meta.Attempts, Error: result.Error,
		}, result.Data.Data)
		r.sent(notice, drive(ctx, call, r.noticeWaiter(ctx, done.record), nil))
	}
}

// noticeWaiter shows in the record of a step that a notice of it waits. The error of
// the notice is not the step's.
func (r *run) noticeWaiter(ctx workflow.Context, record *StepRecord) waitRecorder {
	return func(call *call.Call, wait *interpreter.Wait, until time.Time) {
		failure := record.Error
		record.Await(wait, until, call.View().Last)
		record.Error = failure
		r.describe(ctx)
	}
}

// sent records how the call of a notice has ended.
func (r *run) sent(notice *playbook.Sink, result interpreter.CallResult) {
	if result.Failed() {
		r.warn(call.NoticeFailed(notice, result.Error))
	}
	for _, warning := range result.Warnings {
		r.warn(warning)
	}
}

// warn records a warning of the run, once.
func (r *run) warn(text string) {
	r.Warnings = lists.Add(r.Warnings, text)
}

// notify has all notices sent that report some news, beside what the run does.
func (r *run) notify(ctx workflow.Context, news call.News, result interpreter.CallResult) {
	notices := r.book.Notices(news.Event)
	if len(notices) == 0 || r.notices.ending {
		return
	}
	r.Notified++
	number := r.Notified
	news.At, news.Error = workflow.Now(ctx), news.Error.Shrunk()
	scope := interpreter.EndScope(interpreter.NewScope(r.book, r.Run, r.Data), nil, result)
	for _, notice := range notices {
		r.send(ctx, notice, UnsentNotice{Place: notice.Place, Number: number, News: news}, scope, result.Data.Data)
	}
}

// send has a notice sent beside what the run does, from its state.
func (r *run) send(ctx workflow.Context, notice *playbook.Sink, unsent UnsentNotice, scope *interpreter.Scope, result any) {
	beside, _ := workflow.NewDisconnectedContext(workflow.WithValue(ctx, outboxKey{}, r.notices.outbox))
	beside, controls := withControls(beside, "", interpreter.Control{}, nil)
	under := &openNotice{sink: notice, controls: controls}
	r.notices.open = append(r.notices.open, under)
	workflow.Go(beside, func(ctx workflow.Context) {
		call := r.noticeCall(notice, unsent, scope, result, stream(ctx, fmt.Sprintf("%s/%d", notice.Place, unsent.Number)))
		if call.View().DueWait(workflow.Now(ctx)) != nil {
			call.WaitedUntil(unsent.Call.Until, workflow.Now(ctx))
		}
		d := &driver{call: call, waiting: unshown, renews: func() bool { return r.notices.renewing }}
		snapshot := d.run(ctx)
		at := slices.Index(r.notices.open, under)
		if at < 0 {
			return // the run has not waited for it
		}
		r.notices.open = slices.Delete(r.notices.open, at, at+1)
		if snapshot != nil {
			unsent.Call = *snapshot
			r.Unsent = append(r.Unsent, unsent)
			return
		}
		r.sent(notice, *call.Result())
	})
}

// noticeCall is the call of a notice of the run, with its state.
func (r *run) noticeCall(
	notice *playbook.Sink, unsent UnsentNotice, scope *interpreter.Scope, result any, random func() float64,
) *call.Call {
	call := call.NewNotice(call.Config{
		Source: request.Source{Book: r.book, Run: r.Run, Scope: scope}, Limits: r.Limits, Random: random,
	}, notice, unsent.Number, unsent.News, result)
	call.Load(unsent.Call.State)
	return call
}

// notifyOnce is notify for events that are sent once per visit of a step.
func (r *run) notifyOnce(ctx workflow.Context, news call.News) {
	key := fmt.Sprintf("%s/%s#%d", news.Event, news.Step, news.Visit)
	if r.notices.once[key] || !r.book.Notifies(news.Event) {
		return
	}
	if r.notices.once == nil {
		r.notices.once = map[string]bool{}
	}
	r.notices.once[key] = true
	r.notify(ctx, news, failedWith(news.Error))
}

// failedWith is the result of something that has failed.
func failedWith(failure *interpreter.ErrorObject) interpreter.CallResult {
	if failure == nil {
		return interpreter.CallResult{Status: interpreter.StatusSuccess}
	}
	return interpreter.CallResult{Status: interpreter.StatusError, Error: failure}
}

// settleNotices waits for the notices that are being sent, and drops those that take
// too long.
func (r *run) settleNotices(ctx workflow.Context) {
	if len(r.notices.open) == 0 {
		return
	}
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	_, _ = workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{
		Timeout: noticePatience, TimerOptions: workflow.TimerOptions{Summary: "waits for the run's notices"},
	}, func() bool { return len(r.notices.open) == 0 })
	for _, under := range r.notices.open {
		r.warn(fmt.Sprintf("the notice %s was given up: the run waits %s for its notices and no longer", under.sink.Place, noticePatience))
	}
	r.notices.open = nil
}

// packNotices has the notices that are being sent continue in the next history, once
// their attempts have ended.
func (r *run) packNotices(ctx workflow.Context) {
	r.notices.renewing = len(r.notices.open) > 0
	for _, under := range r.notices.open {
		under.controls.renew()
	}
	r.settleNotices(ctx)
}

// unpackNotices continues with the notices of the history before, or of packNotices.
func (r *run) unpackNotices(ctx workflow.Context) {
	unsent := r.Unsent
	r.Unsent, r.notices.renewing = nil, false
	for _, one := range unsent {
		result := failedWith(one.News.Error)
		scope := interpreter.EndScope(interpreter.NewScope(r.book, r.Run, r.Data), nil, result)
		r.send(ctx, one.notice(r.book), one, scope, result.Data.Data)
	}
}

// notice finds the notice in its playbook, nil where it has none such.
func (u UnsentNotice) notice(book *playbook.Playbook) *playbook.Sink {
	return lists.First(book.Notices(u.News.Event), func(notice *playbook.Sink) bool { return notice.Place == u.Place })
}

// notifyEnd sends the notices of how the run has ended, and waits for them.
func (r *run) notifyEnd(ctx workflow.Context, result *Result) {
	ended := failedWith(result.Error)
	ended.Data = result.Result
	r.notify(ctx, call.News{Event: string(result.Status), Status: result.Status, Error: result.Error}, ended)
	r.notices.ending = true
	r.settleNotices(ctx)
}

// notifyPaused sends the notices that people have paused the run, or a step of it.
func (r *run) notifyPaused(ctx workflow.Context, command CommandInput) {
	r.notify(ctx, call.News{
		Event: playbook.EventPaused, Step: command.Step, Status: interpreter.Paused, Reason: command.Reason, By: command.By,
	}, failedWith(nil))
}

// notifyExhausted sends the notices that a policy has used up its attempts or pages in a visit
// of a step.
func (r *run) notifyExhausted(ctx workflow.Context, done ended) {
	var iterations []interpreter.LoopError
	if done.record.Loop != nil {
		iterations = done.record.Loop.Errors
	}
	if failure, index := call.Exhausted(done.result, iterations); failure != nil {
		r.notifyOnce(ctx, call.News{
			Event: playbook.EventExhausted, Step: done.start.Step.Name, Visit: done.start.Visit, Index: index,
			Status: done.result.Ended(), Attempts: failure.Attempt, Error: failure,
		})
	}
}

// listenForNews handles the news of the children of the run.
func (r *run) listenForNews(ctx workflow.Context) {
	if !hasNewsOfChildren(r.book) {
		return
	}
	onSignal(ctx, newsSignal, func(ctx workflow.Context, news call.News) {
		switch step := r.book.Step(news.Step); {
		case step == nil || news.Event != playbook.EventPaused && news.Event != playbook.EventExhausted:
		case step.Loop == nil: // a call, which people may hold more than once
			r.notify(ctx, news, failedWith(news.Error))
		default:
			r.notifyOnce(ctx, news)
		}
	})
}

// watchLate sends the notices that the run takes longer than it is expected to, counted
// from its first start.
func (r *run) watchLate(ctx workflow.Context) {
	if r.book.Expect == 0 || r.Late {
		return
	}
	left := r.book.Expect - workflow.Now(ctx).Sub(r.startedAt())
	after(ctx, max(left, 0), "when the run is late", func(ctx workflow.Context) {
		if r.notices.ending || r.Failure != nil {
			return
		}
		r.Late = true
		r.warn(fmt.Sprintf("the run was late: it took longer than %s", r.book.Expect))
		r.describe(ctx)
		r.notify(ctx, call.News{Event: playbook.EventLate, Status: interpreter.Running}, failedWith(nil))
	})
}

// waitsForPeople is the news of a call that waits for people, as its policy is
// exhausted; false for other waits.
func waitsForPeople(machine *call.Call, wait *interpreter.Wait, visit int) (call.News, bool) {
	if wait == nil || wait.Reason != interpreter.ReasonPerson {
		return call.News{}, false
	}
	return call.News{
		Event: playbook.EventPaused, Step: machine.Config().Step.Name, Visit: visit, Index: machine.Config().Index, Status: interpreter.RetryPending,
		Attempts: machine.View().Attempts, Error: machine.View().Failure.Shrunk(), Reason: wait.Summary,
	}, true
}

// herald passes news from a child of a run to its parent.
type herald struct {
	book      *playbook.Playbook
	once      bool // each event
	signalled []string
}

// signal signals the parent workflow, where the playbook has notices of the event.
func (h *herald) signal(ctx workflow.Context, news call.News) {
	parent := workflow.GetInfo(ctx).ParentWorkflowExecution
	if parent == nil || !h.book.Notifies(news.Event) || h.once && slices.Contains(h.signalled, news.Event) {
		return
	}
	h.signalled = append(h.signalled, news.Event)
	signal(ctx, parent.ID, newsSignal, news)
}

// hasNewsOfChildren reports whether the playbook has notices of events in children of a run.
func hasNewsOfChildren(book *playbook.Playbook) bool {
	return book.Notifies(playbook.EventPaused) || book.Notifies(playbook.EventExhausted)
}

// listen passes on the news of children.
func (h *herald) listen(ctx workflow.Context) {
	if hasNewsOfChildren(h.book) {
		onSignal(ctx, newsSignal, h.signal)
	}
}

// signalExhausted signals an iteration in which a policy has used up its attempts or pages,
// before the loop has ended.
func (l *loop) signalExhausted(ctx workflow.Context, iteration interpreter.IterationResult) {
	if failure, _ := call.Exhausted(iteration.Result, nil); failure != nil {
		l.herald.signal(ctx, call.News{
			Event: playbook.EventExhausted, At: workflow.Now(ctx), Step: l.step.Name, Visit: l.input.Task.Visit,
			Index: &iteration.Index, Status: iteration.Result.Ended(), Attempts: failure.Attempt, Error: failure.Shrunk(),
		})
	}
}
