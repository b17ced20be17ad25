package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"reprise/internal/base/connect"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/queue"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

const (
	// queryTimeout bounds one query; without a worker it gets no response.
	queryTimeout = 2 * time.Second
	// mostDescribed bounds how many open iterations are described per poll, each with a request to the server.
	mostDescribed = 50
	// describing is how many of those requests are concurrent.
	describing = 8
)

// line is a line about one step visit.
type line struct {
	key  string // stays the same while the text changes
	text string
	live string // in place of the text where lines are drawn again and again, "" for the same
}

// observer polls the progress of a run.
type observer struct {
	session  *session.Session
	run      client.WorkflowRun
	failures int // queries in a row without an answer
	// loops are the latest progress of loops, by workflow ID.
	loops map[string]protocol.Progress
	// calls are the latest records of calls that have continued as new, by workflow ID.
	calls map[string]protocol.IterationRecord
	// idle are the iterations that had no work at the last poll.
	idle map[string]bool
	// held is set if something was paused at the last poll.
	held bool
	// noWorker is set while no worker responds: the last query was unanswered, and the run waits for a worker.
	noWorker      bool
	noWorkerSince time.Time
	// queued are the queue positions of the run and its steps, by the workflow IDs of the queues.
	queued map[string]queuedAt
}

// queuedAt is a queue position and when it was read.
type queuedAt struct {
	*runs.QueuePosition
	at time.Time
}

func newObserver(s *session.Session, run client.WorkflowRun) *observer {
	return &observer{
		session: s, run: run, loops: map[string]protocol.Progress{}, calls: map[string]protocol.IterationRecord{},
		idle: map[string]bool{}, queued: map[string]queuedAt{},
	}
}

func (o *observer) newReader() *runs.Reader {
	reader := o.session.Runs()
	reader.Patience = queryTimeout
	return reader
}

// mostFailed is how many queries in a row may fail before that is shown. A server lists workers for minutes after
// they have died, so one failure means nothing.
const mostFailed = 1

// observeSteps returns a line per step visit so far, or what is known of the workers if none polls. An error means
// that there is nothing new; connect.IsUnreachable reports whether the server is the reason.
func (o *observer) observeSteps(ctx context.Context) ([]line, error) {
	progress, err := o.newReader().Progress(ctx, o.run.GetID(), "")
	if err != nil {
		return o.workerLines(ctx, err)
	}
	lines := append(o.answeredLines(), o.controlLines(progress.Control)...)
	if ticket := progress.Ticket; ticket.Waits() {
		return append(lines, o.queueLines(ctx, ticket)...), nil
	}
	for _, record := range progress.Steps {
		lines = append(lines, o.visitLines(ctx, o.latestRecord(ctx, record))...)
		visit := protocol.VisitName(record.Step, record.Visit)
		if ticket, queued := progress.States[visit]; queued {
			lines = append(lines, o.stuckLines(visit, o.queuePosition(ctx, &ticket))...)
		}
	}
	if wait := progress.Moving; wait != nil {
		lines = append(lines, line{key: "moving", text: "waits: " + terminal.Shorten(wait.Summary, 200)})
	}
	return lines, nil
}

// visitLines returns the lines about a visit of a step, with the command that answers it.
func (o *observer) visitLines(ctx context.Context, record protocol.StepRecord) []line {
	key := fmt.Sprintf("%s#%d", record.Step, record.Visit)
	text := o.describeVisit(ctx, record)
	lines := []line{{key: key, text: text, live: text}}
	if waitsAlone(record) {
		lines[0].text += render.DueText(record.CallStatus)
		lines[0].live += render.CountDown(record.CallStatus, time.Now())
	}
	if command := o.answerCommand(record); command != "" {
		lines = append(lines, line{key: key + " answer", text: command})
	}
	return lines
}

// controlLines returns a line if the run is paused, or was resumed.
func (o *observer) controlLines(control interpreter.Control) []line {
	text := ""
	switch held := render.DescribePaused(control, time.Now()); {
	case held != "":
		text, o.held = held+"; "+render.ResumeCommand(o.run.GetID(), control), true
	case o.held:
		text, o.held = "resumed"+render.Attribution(control.Said), false
	default:
		return nil
	}
	return []line{{key: "control", text: text}}
}

// queueInterval is the shortest time between two reads of a queue position: each takes up to four requests to the
// server.
const queueInterval = 5 * time.Second

// queueLines returns the lines about the queue that a run waits in, with what would help.
func (o *observer) queueLines(ctx context.Context, ticket *queue.Ticket) []line {
	now, position := time.Now(), o.queuePosition(ctx, ticket)
	texts := render.QueueTexts(position, now)
	lines := []line{{
		key: "queue", text: "queued " + texts[0],
		live: "queued for " + terminal.Duration(now.Sub(ticket.Since)) + " " + texts[0],
	}}
	for i, text := range texts[1:] {
		lines = append(lines, line{key: fmt.Sprint("queue ", i), text: text})
	}
	return append(lines, o.startLines("queue", position)...)
}

// queuePosition returns the queue position of a ticket, which the run or a step visit holds. It is read at most once
// per queueInterval.
func (o *observer) queuePosition(ctx context.Context, ticket *queue.Ticket) *runs.QueuePosition {
	known, found := o.queued[ticket.Queue]
	if !found || time.Since(known.at) >= queueInterval {
		waits := queue.Member{WorkflowID: o.run.GetID()}
		known.QueuePosition, _ = o.newReader().DescribeQueued(ctx, waits, o.session.TaskQueue, ticket) // without an answer the key is known
		known.at = time.Now()
		o.queued[ticket.Queue] = known
	}
	return known.QueuePosition
}

// stuckLines returns why a step visit does not get the state that it is queued for, and what would help; nothing if
// the queue moves.
func (o *observer) stuckLines(visit string, position *runs.QueuePosition) []line {
	stuck := render.StuckQueue(position)
	if stuck == "" {
		return nil
	}
	return append([]line{{key: visit + " queue", text: stuck}}, o.startLines(visit, position)...)
}

// startLines returns the command that starts the worker which a queue waits for.
func (o *observer) startLines(key string, position *runs.QueuePosition) []line {
	if position.NoWorker == nil {
		return nil
	}
	return []line{{key: key + " worker", text: render.StartWorker(position.NoWorker.TaskQueue, o.session.Flags)}}
}

// answeredLines returns a line if a worker responds again after none did.
func (o *observer) answeredLines() []line {
	o.failures = 0
	if !o.noWorker {
		return nil
	}
	o.noWorker = false
	return []line{{key: "worker", text: "a worker responds"}}
}

// workerLines handles an unanswered query: it returns lines about whether workers poll, and how to start one.
func (o *observer) workerLines(ctx context.Context, unanswered error) ([]line, error) {
	found, workers, err := o.findWorkers(ctx)
	if err != nil && (ctx.Err() != nil || connect.IsUnreachable(err)) {
		return nil, err // so nothing is known of workers
	}
	o.failures++
	now, text := time.Now(), ""
	switch {
	case err == nil && !workers.HavePolled(now):
		text = fmt.Sprintf("waiting for a worker on task queue %q", o.session.TaskQueue)
		if found.Build != nil || workers.Deployment != "" {
			text = workers.AbsenceReason(found)
		}
	case o.failures > mostFailed:
		text = fmt.Sprintf("no worker of task queue %q responds", o.session.TaskQueue)
	default:
		return nil, fmt.Errorf("%w: %s", errUnanswered, unanswered.Error())
	}
	if !o.noWorker {
		o.noWorker, o.noWorkerSince = true, o.waitsSince(ctx, workers, now)
	}
	return []line{
		{key: "worker", text: text, live: text + ", for " + terminal.Duration(now.Sub(o.noWorkerSince).Round(time.Second))},
		{key: "start worker", text: render.StartWorker(o.session.TaskQueue, o.session.Flags)},
	}, nil
}

// waitsSince returns since when a run has waited for a worker: since its task was scheduled, else since the last poll
// of a worker.
func (o *observer) waitsSince(ctx context.Context, workers runs.Workers, now time.Time) time.Time {
	if found, err := o.newReader().Find(ctx, o.run.GetID(), o.run.GetRunID()); err == nil && !found.TaskSince.IsZero() {
		return found.TaskSince
	}
	if !workers.LastPoll.IsZero() {
		return workers.LastPoll
	}
	return now
}

// errUnanswered is the error for a query that reached the server and that no worker answered.
var errUnanswered = errors.New("no worker responds")

// isPolled reports whether a worker polls the task queue.
func (o *observer) isPolled(ctx context.Context) (bool, error) {
	_, workers, err := o.findWorkers(ctx)
	return workers.HavePolled(time.Now()), err
}

// findWorkers finds the run, and the workers that get it.
func (o *observer) findWorkers(ctx context.Context) (runs.Found, runs.Workers, error) {
	found, err := o.newReader().Find(ctx, o.run.GetID(), o.run.GetRunID())
	if err != nil {
		return found, runs.Workers{}, err
	}
	workers, err := o.newReader().WorkersOf(ctx, found)
	return found, workers, err
}

// IsPolled reports whether a worker polls the task queue of a run.
func IsPolled(ctx context.Context, s *session.Session, run client.WorkflowRun) (bool, error) {
	return newObserver(s, run).isPolled(ctx)
}

// waitsAlone reports whether a visit has nothing to show but what its call waits for.
func waitsAlone(record protocol.StepRecord) bool {
	return record.Loop == nil && record.Awaits == nil && record.Waiting != ""
}

// describeVisit describes a visit of a step, except for what waitsAlone covers.
func (o *observer) describeVisit(ctx context.Context, record protocol.StepRecord) string {
	text := render.StepName(record) + " "
	switch {
	case record.Loop != nil:
		text += o.loopText(ctx, record)
	case record.Awaits != nil:
		text += "awaits an answer"
		if more := cmp.Or(render.DescribeProgress(record.Awaits), terminal.Shorten(record.Awaits.Question(), 100)); more != "" {
			text += ": " + more
		}
	case !waitsAlone(record):
		text += string(record.Status) + progressOf(record)
	}
	if record.Error != nil && record.Status == interpreter.Failed {
		text += ": " + terminal.Shorten(record.Error.Message, 100)
	}
	return text
}

// answerCommand returns the command that answers what a step awaits; "" if it awaits nothing.
func (o *observer) answerCommand(record protocol.StepRecord) string {
	id := o.run.GetID()
	switch {
	case !record.EndedAt.IsZero():
		return ""
	case record.Awaits != nil:
		return "to answer: " + render.AnswerCommand(id, record.Step, nil, record.Awaits)
	case record.Loop != nil && o.loops[record.Loop.WorkflowID].Awaits:
		return fmt.Sprintf("to see what they are waiting for: %s status %s %s", terminal.ProgramName(), terminal.ShellWord(id), terminal.ShellWord(record.Step))
	}
	return ""
}

// latestRecord returns the record of a step, updated from its call if that has continued as new; other records are
// returned unchanged.
func (o *observer) latestRecord(ctx context.Context, record protocol.StepRecord) protocol.StepRecord {
	if record.Call == "" || !record.EndedAt.IsZero() {
		return record
	}
	if call, err := o.newReader().CallProgress(ctx, record.Call); err == nil {
		o.calls[record.Call] = call
	}
	if last, found := o.calls[record.Call]; found { // else it is about to begin or to end
		record = runs.WithCall(record, last)
	}
	return record
}

// progressOf returns the attempts and pages of a running step.
func progressOf(record protocol.StepRecord) string {
	if record.Status != interpreter.Running || record.Attempts < 2 {
		return ""
	}
	text := fmt.Sprintf(", attempt %d", record.Attempts)
	if record.Pages > 0 {
		text += ", " + terminal.Count(record.Pages, "page")
	}
	return text
}

// endedStats returns the counts of ended iterations, including those in open batches.
func endedStats(progress protocol.Progress) interpreter.LoopStats {
	stats := progress.Stats
	stats.Success += progress.Within.Success
	stats.Failed += progress.Within.Failed
	return stats
}

func doneCount(progress protocol.Progress) int {
	return endedStats(progress).Success + endedStats(progress).Failed
}

// loopWaitsFor returns what n waiting iterations of a loop wait for.
func loopWaitsFor(n int, record protocol.StepRecord, progress protocol.Progress) string {
	switch {
	case progress.Awaits:
		return interpreter.Awaiting.DisplayWord()
	case record.Status == interpreter.Paused:
		return "waiting"
	case progress.Waiting > 0 && progress.NextRetryAt.IsZero(): // without a time
		return render.PeopleNeeded(n)
	}
	return "waiting to retry"
}

// loopText returns the counts of iterations: ended, failed, waiting, running.
func (o *observer) loopText(ctx context.Context, record protocol.StepRecord) string {
	stats, open, waiting, waitsFor := record.Loop.Stats, 0, 0, ""
	if record.EndedAt.IsZero() {
		progress, err := o.newReader().LoopProgress(ctx, record.Loop.WorkflowID)
		before := o.loops[record.Loop.WorkflowID]
		if err != nil || doneCount(progress) < doneCount(before) { // it, or a part of it, is busy with its end
			progress = before
		}
		if err != nil && !connect.IsNotFound(err) && progress.Stats.Total == 0 {
			return fmt.Sprintf("%d iterations; how many have ended is unknown until their loop responds", stats.Total)
		}
		if o.loops[record.Loop.WorkflowID] = progress; progress.Stats.Total > 0 {
			stats, open = endedStats(progress), progress.Active+progress.Waiting
			waiting = min(max(o.countWaiting(ctx, progress.Open), progress.Waiting), open)
		}
		waitsFor = loopWaitsFor(waiting, record, progress)
	}
	if record.EndedAt.IsZero() {
		stats.Cancelled = 0 // as long as nobody knows better, all that has not ended counts so
	}
	text := stats.TextSoFar(record.EndedAt.IsZero() && record.Loop.Open) + render.AmongText([]render.StatusCount{{N: waiting, What: waitsFor}, {N: open - waiting, What: "running"}})
	if !record.EndedAt.IsZero() || record.Status == interpreter.Paused {
		text += ", " + string(record.Status)
	}
	return text
}

// countWaiting counts the iterations that wait for a timer: they have no pending activity, workflow task or child
// run. A single poll may fall between two of those, so it takes two polls in a row.
func (o *observer) countWaiting(ctx context.Context, open []string) int {
	open = open[:min(len(open), mostDescribed)]
	waits := make([]bool, len(open))
	var group errgroup.Group
	group.SetLimit(describing)
	for i, id := range open {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, queryTimeout)
			defer cancel()
			description, err := o.session.Client.DescribeWorkflowExecution(ctx, id, "")
			waits[i] = err == nil && description.GetPendingWorkflowTask() == nil &&
				len(description.GetPendingActivities()) == 0 && len(description.GetPendingChildren()) == 0 &&
				description.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
			return nil
		})
	}
	_ = group.Wait() // an iteration that cannot be described does not count
	n := 0
	for i, id := range open {
		switch {
		case !waits[i]:
			delete(o.idle, id)
		case o.idle[id]:
			n++
		default:
			o.idle[id] = true
		}
	}
	return n
}
