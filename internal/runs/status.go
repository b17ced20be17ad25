package runs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"reprise/interpreter"
	"reprise/workflows"
)

// StatusCalls is how many calls to the server Status takes at most. What it could
// not ask within them is a note.
const StatusCalls = 6

// What holds a step or an iteration.
const (
	HeldByWait      = "wait"       // it waits before it tries again, polls or turns the page
	HeldByRateLimit = "rate_limit" // it waits for its turn
	HeldByWindow    = "window"     // of its loop, in which no place is free
	HeldByNoWorker  = "no_worker"  // nobody listens on its task queue
	HeldByPause     = "pause"      // people have paused it, or its run
	HeldByPerson    = "person"     // its policy leaves it to people how it goes on
	HeldByAnswer    = "answer"     // somebody outside answers its attempt
	// HeldByConcurrency is a run that waits for its turn under its concurrency key.
	HeldByConcurrency = "concurrency"
)

// Status is where a run is.
type Status struct {
	Found
	// Workers counts those that the server knows to listen on the task queue; -1
	// where that was not asked.
	Workers  int                      `json:"workers"`
	Steps    []Step                   `json:"steps"`
	Warnings []string                 `json:"warnings,omitempty"`
	Error    *interpreter.ErrorObject `json:"error,omitempty"`
	// HeldBy is what holds the whole run, "" for nothing.
	HeldBy string `json:"held_by,omitempty"`
	// Turn is what the run has under its concurrency key; nil where it has no key, no turn
	// yet, or that was not asked.
	Turn *Turn `json:"turn,omitempty"`
	// Control is what people have told the run, of one that goes on.
	Control interpreter.Control `json:"control,omitzero"`
	// Above are the runs above that are paused, or their step which has started this one,
	// the next one first.
	Above []Held `json:"held_above,omitempty"`
	// Cancel is who has cancelled the run, why and when; nil where nobody has, or that
	// was not found.
	Cancel *interpreter.Said `json:"cancel,omitempty"`
	// Late says that the run takes longer than it was expected to, or did.
	Late bool `json:"late,omitempty"`
	// Notes say what could not be learnt, and why.
	Notes []string `json:"notes,omitempty"`
	// Calls is how many calls to the server it took, finding the run apart.
	Calls int       `json:"calls"`
	At    time.Time `json:"at"`
}

// Item is the state of a step or an iteration.
type Item struct {
	Status interpreter.Status `json:"status"`
	// Attempt is the number of the one that was made last, or is under way; 0 before
	// the first. MaxAttempts is how many a request that goes on failing gets, 0 where
	// that is not known, and of what has ended.
	Attempt     int       `json:"attempt"`
	MaxAttempts int       `json:"max_attempts,omitempty"`
	Pages       int       `json:"pages,omitempty"`
	NextRetryAt time.Time `json:"next_retry_at,omitzero"`
	// HeldBy is one of the words above, "" where nothing holds it; Waiting says it in
	// words.
	HeldBy  string `json:"held_by,omitempty"`
	Waiting string `json:"waiting,omitempty"`
	// Awaits is the attempt that somebody outside answers, nil for none.
	Awaits *interpreter.Awaiting `json:"awaits,omitempty"`
	// Error is the last one: of the attempt before, where the item goes on.
	Error *interpreter.ErrorObject `json:"error,omitempty"`
}

// Step is one visit of a step; Visit is 0 where no branch has reached it.
type Step struct {
	Step  string `json:"step"`
	Visit int    `json:"visit"`
	Item
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	Handled   bool      `json:"handled,omitempty"` // a route took the failure
	// Child is the workflow ID of the run of another playbook that it has started last.
	Child string `json:"child,omitempty"`
	Under
	Loop *Counts `json:"loop,omitempty"`
	// Iterations are those that Iterations told of; Left counts what it left out.
	Iterations []Iteration `json:"iterations,omitempty"`
	Left       int         `json:"iterations_left,omitempty"`

	open   []string              // workflow IDs of the children of its loop
	turns  int                   // iterations that wait for their turns, where they were asked
	under  int                   // iterations of these
	ended  interpreter.LoopStats // the other ones that have ended
	silent bool                  // not all of its loop was asked, or has answered
	failed []interpreter.LoopError
}

// Counts is where a loop is. Total = Success + Failed + Cancelled + Running +
// Waiting + Pending.
type Counts struct {
	WorkflowID string `json:"workflow_id"`
	Total      int    `json:"total"`
	Success    int    `json:"success"`
	Failed     int    `json:"failed"`
	Cancelled  int    `json:"cancelled"`
	Truncated  int    `json:"truncated,omitempty"`
	// Running are those that have a place in the window. Those among them that
	// wait for some seconds, or in a sequential loop, count as waiting where they
	// were asked.
	Running int `json:"running"`
	// Waiting are those that wait for a retry, or until people let them go on.
	Waiting int `json:"waiting"`
	// Awaiting are those among Running whose attempts somebody outside answers, where
	// they were asked.
	Awaiting int `json:"awaiting,omitempty"`
	// Asks says that somebody outside answers the attempts of its iterations.
	Asks bool `json:"asks,omitempty"`
	// Plays says that its iterations run playbooks.
	Plays   bool `json:"plays,omitempty"`
	Pending int  `json:"pending"`
	// PerSecond is how many have ended in a second, since the loop began. Left is
	// how many seconds the rest takes at that pace, 0 where that is not known.
	PerSecond float64 `json:"per_second,omitempty"`
	Left      float64 `json:"left_seconds,omitempty"`
}

// Done counts the iterations that have ended.
func (c *Counts) Done() int { return c.Success + c.Failed }

// inquiry is what is asked for one Status.
type inquiry struct {
	*Reader
	status *Status
	run    Found
}

// spend takes a call from the budget, false where it is spent.
func (q *inquiry) spend() bool {
	if q.status.Calls == StatusCalls {
		return false
	}
	q.status.Calls++
	return true
}

func (q *inquiry) notef(format string, args ...any) {
	q.status.Notes = append(q.status.Notes, fmt.Sprintf(format, args...))
}

// Status tells where a run is: of one that goes on, what its workflows answer; of
// one that has ended, its result. It takes at most StatusCalls calls, and reads no
// history but the last event of a run that has ended, and of one that was cancelled
// the last ones.
func (r *Reader) Status(ctx context.Context, run Found, now time.Time) (*Status, error) {
	status := &Status{Found: run, Workers: -1, Steps: []Step{}, At: now}
	q := &inquiry{Reader: r, status: status, run: run}
	if run.cancelling || run.ended == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED {
		q.cancelled(ctx)
	}
	if run.Ended() {
		return status, q.ended(ctx)
	}
	return status, q.going(ctx)
}

// lastEvents is how many of a run's last events are searched for a cancel: what
// follows it are some for each child that it ends, and for each notice.
const lastEvents = 200

// cancelled finds out who has cancelled the run.
func (q *inquiry) cancelled(ctx context.Context) {
	q.spend()
	page, err := q.Client.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: q.Namespace, MaximumPageSize: lastEvents,
		Execution: &commonpb.WorkflowExecution{WorkflowId: q.run.WorkflowID, RunId: q.run.last},
	})
	if err != nil {
		q.notef("who cancelled the run cannot be told: %v", err)
		return
	}
	for _, event := range page.GetHistory().GetEvents() {
		if asked := event.GetWorkflowExecutionCancelRequestedEventAttributes(); asked != nil {
			q.status.Cancel = &interpreter.Said{By: asked.GetIdentity(), Reason: asked.GetCause(), At: event.GetEventTime().AsTime()}
			return
		}
	}
}

// going asks a run that has not ended, and meanwhile for its workers.
func (q *inquiry) going(ctx context.Context) error {
	q.status.Calls += 2
	var progress workflows.Progress
	var unanswered, unknown error
	asking, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	group.Go(func() error {
		progress, unanswered = q.Progress(asking, q.run.WorkflowID, "")
		return nil
	})
	if q.status.Workers, unknown = q.Workers(ctx, q.run.TaskQueue); unknown == nil && q.status.Workers == 0 {
		stop() // nobody will answer
	}
	_ = group.Wait()
	switch {
	case unknown != nil:
		return fmt.Errorf("ask for the workers of the run %s: %w", q.run.WorkflowID, unknown)
	case q.status.Workers == 0:
		q.status.HeldBy = HeldByNoWorker
		q.notef("no worker polls the task queue %q, so nobody can tell where the run is; it goes on when one starts", q.run.TaskQueue)
		return nil
	case unanswered != nil && (ctx.Err() != nil || unavailable(unanswered)):
		return unanswered
	case unanswered != nil:
		q.status.HeldBy = HeldByNoWorker
		q.notef("no worker of the task queue %q answers, so where the run is cannot be told; is one running?", q.run.TaskQueue)
		return nil
	}
	q.status.Control, q.status.Late = progress.Control, progress.Late
	var missed string
	if q.status.Above, missed = q.above(ctx, progress.Above, q.spend); missed != "" {
		q.notef("whether the run %s above holds this one was not answered within %d calls to the server", missed, StatusCalls)
	}
	for _, record := range progress.Steps {
		q.step(ctx, record)
	}
	for _, name := range progress.Pending {
		q.status.Steps = append(q.status.Steps, Step{Step: name, Item: Item{Status: interpreter.Pending}})
	}
	q.status.Status, q.status.HeldBy = standing(q.status.Steps, progress.Control.Paused || len(q.status.Above) > 0)
	q.queue(ctx, progress.Ticket)
	return nil
}

// queue tells what a run waits for that has not got its turn, and who waits for that
// of one that has.
func (q *inquiry) queue(ctx context.Context, ticket *interpreter.Ticket) {
	var err error
	switch {
	case ticket.Waits():
		if q.status.Status != interpreter.Paused {
			q.status.Status, q.status.HeldBy = interpreter.Queued, HeldByConcurrency
		}
		q.spend()
		run := interpreter.Member{WorkflowID: q.run.WorkflowID, RunID: q.run.RunID}
		if q.status.Queue, err = q.queued(ctx, ticket, run); err != nil {
			q.notef("which place it has was not answered")
		}
		q.status.Queue.Stopped = q.spend() && q.stopped(ctx, ticket.Line)
	case ticket != nil && ticket.State == interpreter.LineGranted && q.spend():
		standing, err := q.line(ctx, ticket.Line, nil)
		if err != nil {
			q.notef("who waits for its turn under the concurrency key %s was not answered", ticket.Name.Key)
			return
		}
		q.status.Turn = &Turn{
			Name: ticket.Name, Line: ticket.Line, Limit: standing.Limit, Running: standing.Running, Waiting: standing.Waiting,
		}
	}
}

// standing is the status of a run that goes on, and what holds all of it.
func standing(steps []Step, paused bool) (status interpreter.Status, heldBy string) {
	if paused {
		return interpreter.Paused, HeldByPause
	}
	waiting := 0
	for _, step := range steps {
		switch step.Status {
		case interpreter.Running:
			return interpreter.Running, ""
		case interpreter.RetryPending, interpreter.Paused:
			if waiting++; waiting == 1 || heldBy == step.HeldBy {
				status, heldBy = step.Status, step.HeldBy
			} else {
				status, heldBy = interpreter.RetryPending, HeldByWait
			}
		}
	}
	if waiting == 0 {
		return interpreter.Running, ""
	}
	return status, heldBy
}

func unavailable(err error) bool {
	var lost *serviceerror.Unavailable
	return errors.As(err, &lost)
}

// step tells where a visit of a step is.
func (q *inquiry) step(ctx context.Context, record workflows.StepRecord) {
	if record.Call != "" && record.EndedAt.IsZero() && q.spend() {
		if progress, err := q.Progress(ctx, record.Call, ""); err == nil && len(progress.Steps) == 1 {
			record = HandedOver(record, progress.Steps[0])
		}
	}
	step := stepOf(record)
	if record.EndedAt.IsZero() && underWay(record.Loop) {
		if len(q.status.Above) > 0 {
			step.Status, step.HeldBy = interpreter.Paused, HeldByPause
		}
		q.loop(ctx, &step)
	}
	if step.EndedAt.IsZero() && step.Child != "" {
		q.below(ctx, &step)
	}
	q.status.Steps = append(q.status.Steps, step)
}

// below asks the run that a step waits for, and those below that, what holds them.
func (q *inquiry) below(ctx context.Context, step *Step) {
	under, missed := q.look(ctx, step.Child, q.spend)
	if step.Under = under; missed != "" {
		q.notef("what the run %s waits for was not asked: that would take more than %d calls to the server", missed, StatusCalls)
	}
}

// underWay reports whether a loop has not ended, as far as its run knows: until
// then it counts every iteration as cancelled. The sink on the step comes after.
func underWay(loop *workflows.LoopRecord) bool {
	return loop != nil && loop.Stats.Cancelled == loop.Stats.Total
}

// HandedOver is the record of a step whose call goes on in histories of its own,
// as far as that has come.
func HandedOver(record, call workflows.StepRecord) workflows.StepRecord {
	record.Status, record.Waiting, record.NextRetryAt = call.Status, call.Waiting, call.NextRetryAt
	record.Child = cmp.Or(call.Child, record.Child)
	record.Attempts, record.Pages, record.Error, record.LastError = call.Attempts, call.Pages, call.Error, call.LastError
	record.Awaits = call.Awaits
	return record
}

func stepOf(record workflows.StepRecord) Step {
	step := Step{
		Step: record.Step, Visit: record.Visit, StartedAt: record.StartedAt, EndedAt: record.EndedAt, Handled: record.Handled,
		Child: record.Child,
		Item: itemOf(record.Status, record.Attempts, record.MaxAttempts, record.Pages, record.NextRetryAt, record.Waiting,
			record.Error, record.LastError).awaiting(record.Awaits),
	}
	if loop := record.Loop; loop != nil {
		step.failed = loop.Errors
		step.Loop = &Counts{
			WorkflowID: loop.WorkflowID, Total: loop.Stats.Total, Success: loop.Stats.Success, Failed: loop.Stats.Failed,
			Cancelled: loop.Stats.Cancelled, Truncated: loop.Stats.Truncated,
		}
		step.Loop.pace(step.StartedAt, step.EndedAt)
	}
	return step
}

func itemOf(
	status interpreter.Status, attempt, most, pages int, next time.Time, waiting string, failures ...*interpreter.ErrorObject,
) Item {
	item := Item{
		Status: status, Attempt: attempt, MaxAttempts: most, Pages: pages, NextRetryAt: next, Waiting: waiting,
		Error: cmp.Or(failures...),
	}
	wait, ok := interpreter.ParseWait(waiting)
	switch {
	case status == interpreter.Paused:
		item.HeldBy = HeldByPause
	case waiting == "":
	case waiting == interpreter.WaitsForPlace:
		item.HeldBy = HeldByWindow
	case ok && wait.Reason == interpreter.ReasonTurn:
		item.HeldBy = HeldByRateLimit
	case !ok && status == interpreter.RetryPending && next.IsZero(): // nobody knows how long
		item.HeldBy = HeldByPerson
	default:
		item.HeldBy = HeldByWait
	}
	item.MaxAttempts = cmp.Or(wait.Most, item.MaxAttempts)
	if status.Ended() {
		item.MaxAttempts = 0
	}
	return item
}

// awaiting is the item with the attempt that it awaits, if any.
func (i Item) awaiting(attempt *interpreter.Awaiting) Item {
	if i.Awaits = attempt; attempt != nil && i.HeldBy != HeldByPause {
		i.HeldBy = HeldByAnswer
	}
	return i
}

// pace tells how fast a loop is.
func (c *Counts) pace(from, to time.Time) {
	if took := to.Sub(from).Seconds(); took > 0 && c.Done() > 0 {
		c.PerSecond = float64(c.Done()) / took
		c.Left = float64(c.Running+c.Waiting+c.Pending) / c.PerSecond
	}
}

// loop asks a loop that goes on, with its parts, and with what is left of the
// budget its children.
func (q *inquiry) loop(ctx context.Context, step *Step) {
	progress, whole, err := q.loopProgress(ctx, step.Loop.WorkflowID, q.spend)
	if step.silent = !whole; !whole {
		q.notef("where the loop of step %s is was not asked: that would take more than %d calls to the server", step.Step, StatusCalls)
	}
	if err != nil || progress.Stats.Total == 0 { // it is about to begin or to end
		step.Loop.Pending, step.Loop.Cancelled = step.Loop.Total, 0
		return
	}
	c := step.Loop
	c.Success, c.Failed = progress.Stats.Success+progress.Within.Success, progress.Stats.Failed+progress.Within.Failed
	c.Truncated = progress.Stats.Truncated
	c.Running, c.Waiting, c.Cancelled = progress.Under, progress.Waiting, 0
	c.Asks, c.Plays = progress.Asks, progress.Plays
	c.Pending = max(0, c.Total-c.Done()-c.Running-c.Waiting)
	step.open, step.NextRetryAt, step.ended = progress.Open, progress.NextRetryAt, progress.Stats
	step.under = progress.Under + progress.Waiting + progress.Returning + progress.Within.Success + progress.Within.Failed
	q.inPlace(ctx, step)
	step.stand(q.status.At)
}

// stand says of a loop that goes on, and was counted, what holds it.
func (s *Step) stand(now time.Time) {
	c := s.Loop
	c.pace(s.StartedAt, now)
	if wait := s.NextRetryAt.Sub(now).Seconds(); c.Waiting > 0 && c.Left > 0 {
		c.Left = max(c.Left, wait) // whoever waits does so until then
	}
	if s.Status != interpreter.Paused {
		s.Status, s.HeldBy, s.Waiting = interpreter.Running, "", ""
	}
	switch {
	case s.Status == interpreter.Paused:
	case c.Running == 0 && c.Waiting > 0 && c.Waiting == s.turns:
		s.HeldBy, s.Waiting = HeldByRateLimit, "all under way wait for their turns"
	case c.Running == 0 && c.Waiting > 0:
		s.Status, s.HeldBy = interpreter.RetryPending, HeldByWait
		if s.NextRetryAt.IsZero() {
			s.HeldBy = HeldByPerson
		}
	case c.Awaiting > 0 && c.Awaiting == c.Running:
		s.HeldBy = HeldByAnswer
	case c.Pending > 0:
		s.HeldBy = HeldByWindow
		s.Waiting = fmt.Sprintf("%d iterations wait for a place in the loop's window", c.Pending)
		if c.Pending == 1 {
			s.Waiting = "an iteration waits for a place in the loop's window"
		}
	}
	if c.Asks || s.HeldBy == HeldByPause || s.HeldBy == HeldByPerson || s.HeldBy == HeldByAnswer {
		c.Left = 0 // people decide
	}
}

// inPlace asks the children of a loop where few are open which of their iterations
// wait or have ended: the loop does not know of those in places.
func (q *inquiry) inPlace(ctx context.Context, step *Step) {
	if len(step.open) > StatusCalls-q.status.Calls {
		return
	}
	answers := make([]workflows.Iterations, len(step.open))
	var group errgroup.Group
	for i, id := range step.open {
		q.spend()
		group.Go(func() error {
			_ = q.ask(ctx, id, "", workflows.IterationsQuery, &answers[i]) // one that gives none runs
			return nil
		})
	}
	_ = group.Wait()
	step.recount(answers)
	var children []string
	for _, answer := range answers {
		for _, iteration := range answer.Iterations {
			if iteration.Child != "" {
				children = append(children, iteration.Child)
			}
		}
	}
	if len(children) <= StatusCalls-q.status.Calls {
		for _, id := range children {
			found, _ := q.look(ctx, id, q.spend)
			step.add(found)
		}
	}
}

// recount counts the iterations of a loop that were under way by what all of its open
// children answered; of one that gave no answer they run.
func (s *Step) recount(answers []workflows.Iterations) {
	c, told := s.Loop, Counts{}
	s.turns = 0
	for _, answer := range answers {
		for _, iteration := range answer.Iterations {
			told.count(iteration)
			switch {
			case waitsForTurn(iteration):
				s.turns++
			case iteration.Status != interpreter.RetryPending && iteration.Status != interpreter.Paused:
				continue
			}
			s.NextRetryAt = sooner(s.NextRetryAt, iteration.NextRetryAt)
			s.Error = cmp.Or(iteration.Error, s.Error)
		}
	}
	c.Success, c.Failed = s.ended.Success+told.Success, s.ended.Failed+told.Failed
	c.Waiting, c.Awaiting, c.Cancelled = told.Waiting, told.Awaiting, told.Cancelled
	c.Running = max(0, s.under-told.Done()-told.Cancelled-told.Waiting-told.Pending)
	c.Pending = max(0, c.Total-c.Done()-c.Cancelled-c.Running-c.Waiting)
}

// count counts an iteration by its state.
func (c *Counts) count(iteration workflows.IterationRecord) {
	if iteration.Awaits != nil {
		c.Awaiting++
	}
	switch iteration.Status.Tally() {
	case interpreter.TallySuccess:
		c.Success++
	case interpreter.TallyFailed:
		c.Failed++
	case interpreter.TallyCancelled:
		c.Cancelled++
	case interpreter.TallyWaiting:
		c.Waiting++
	case interpreter.TallyPending:
		c.Pending++
	default:
		if waitsForTurn(iteration) {
			c.Waiting++
		}
	}
}

// waitsForTurn reports whether an iteration waits for its turn under a rate limit, which
// is no retry.
func waitsForTurn(iteration workflows.IterationRecord) bool {
	wait, ok := interpreter.ParseWait(iteration.Waiting)
	return ok && wait.Reason == interpreter.ReasonTurn && iteration.Status == interpreter.Running
}

// ended reads the result of a run that has ended.
func (q *inquiry) ended(ctx context.Context) error {
	q.spend()
	result, err := q.lastResult(ctx, q.run)
	if err != nil {
		return err
	}
	q.status.Status, q.status.Error = cmp.Or(result.Status, q.status.Status), result.Error
	q.status.Warnings, q.status.Late = result.Warnings, result.Late
	if result.Status == "" && q.run.ended != enumspb.WORKFLOW_EXECUTION_STATUS_FAILED {
		q.left(ctx)
		return nil
	}
	for _, record := range result.Steps {
		q.status.Steps = append(q.status.Steps, stepOf(record))
	}
	return nil
}

// left tells where a run was that ended without a result: a worker can still
// say. What had not ended then never will.
func (q *inquiry) left(ctx context.Context) {
	q.notef("the run ended without a result: %s", endWord(q.run.ended))
	q.spend()
	progress, err := q.Progress(ctx, q.run.WorkflowID, q.run.last)
	if err != nil {
		q.notef("no worker of the task queue %q answers, so how far it was cannot be told", q.run.TaskQueue)
		return
	}
	for _, record := range progress.Steps {
		step := stepOf(record)
		if step.EndedAt.IsZero() {
			step.Item = Item{Status: interpreter.Cancelled, Attempt: step.Attempt, Pages: step.Pages, Error: step.Error}
			step.EndedAt = q.run.EndedAt
		}
		q.status.Steps = append(q.status.Steps, step)
	}
	for _, name := range progress.Pending {
		q.status.Steps = append(q.status.Steps, Step{Step: name, Item: Item{Status: interpreter.Skipped}})
	}
}

func endWord(status enumspb.WorkflowExecutionStatus) string {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return "it was terminated"
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return "it timed out"
	}
	return strings.ToLower(status.String())
}

// lastResult is the result of a run that has ended, by its last event. A run that gave none
// has no status; one that was refused has the error.
func (r *Reader) lastResult(ctx context.Context, run Found) (workflows.Result, error) {
	events := r.Client.GetWorkflowHistory(ctx, run.WorkflowID, run.last, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	end, err := events.Next()
	if err != nil {
		return workflows.Result{}, fmt.Errorf("read how %s ended: %w", run.WorkflowID, err)
	}
	return r.values(ctx).resultOf(&child{workflowID: run.WorkflowID, end: end})
}

// Visits finds the visits of a step in a status: all of them for "".
func (s *Status) Visits(name string) []*Step {
	var visits []*Step
	for i := range s.Steps {
		if name == "" || s.Steps[i].Step == name {
			visits = append(visits, &s.Steps[i])
		}
	}
	return visits
}

// Names are those of the steps in a status, each once.
func (s *Status) Names() []string {
	var names []string
	for _, step := range s.Steps {
		if !slices.Contains(names, step.Step) {
			names = append(names, step.Step)
		}
	}
	return names
}
