package runs

import (
	"slices"
	"strings"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/lists"
)

// The kinds of events. Each has a row in the table below.
const (
	ExecutionStarted   = "execution_started"
	ExecutionQueued    = "execution_queued"
	ExecutionAdmitted  = "execution_admitted"
	StepStarted        = "step_started"
	ActionStarted      = "action_started"
	AnswerAwaited      = "answer_awaited"
	ActionCompleted    = "action_completed"
	ActionError        = "action_error"
	StepRetry          = "step_retry"
	StepRetryExhausted = "step_retry_exhausted"
	IterationStarted   = "iteration_started"
	IterationCompleted = "iteration_completed"
	IterationFailed    = "iteration_failed"
	SinkCompleted      = "sink_completed"
	SinkFailed         = "sink_failed"
	StepResult         = "step_result"
	StepFailedTerminal = "step_failed_terminal"
	ExecutionCompleted = "execution_completed"
	ExecutionFailed    = "execution_failed"
	ExecutionCancelled = "execution_cancelled"
)

// Subject is what an event is about.
type Subject int

// The subjects of events.
const (
	OfRun Subject = iota
	OfStep
	OfIteration
	OfAttempt
	OfWait
	OfSink
)

// Phase is what happened to the subject of an event.
type Phase int

// The phases. Only subjects that begin and end have a duration.
const (
	Happens Phase = iota
	Begins
	Ends
)

// Kind describes a kind of event. Filters, help, documents, figures and reports are derived from the table of kinds.
type Kind struct {
	Name  string
	Of    Subject
	Phase Phase
	// Doc says when the event occurs, for the reference.
	Doc string
}

// kinds is the table, in the order in which events of a run occur.
var kinds = []Kind{
	{ExecutionStarted, OfRun, Begins, "The run has started. `by` and `reason` name the person who started it on the page of runs, or who triggered its schedule."},
	{
		ExecutionQueued, OfRun, Happens,
		"The run is queued. `concurrency` is its concurrency key.",
	},
	{ExecutionAdmitted, OfRun, Happens, "The run got its slot, after waiting for `duration`."},
	{StepStarted, OfStep, Begins, "A visit of a step has started."},
	{
		ActionStarted, OfAttempt, Begins,
		"An attempt has started. Pages that are fetched together share one event, with `attempt_to` and `page_to`. `child` is the workflow ID of " +
			"the run of another playbook that the attempt starts; that run has its own events.",
	},
	{
		AnswerAwaited, OfWait, Begins,
		"The attempt waits for an answer from outside. The time until its end counts as a wait with the `reason` `answer`.",
	},
	{ActionCompleted, OfAttempt, Ends, "The attempt succeeded."},
	{ActionError, OfAttempt, Ends, "The attempt failed."},
	{
		StepRetry, OfWait, Begins,
		"A wait begins, with `delay`, `next_retry_at` and `reason` (" + reasonNames() + "). A wait for a `person` has no `delay` and no `next_retry_at`.",
	},
	{
		StepRetryExhausted, OfAttempt, Happens,
		"A policy allows no more attempts, or no more pages, so that the result is incomplete. The end of the step or of the iteration follows.",
	},
	{IterationStarted, OfIteration, Begins, "An iteration has started."},
	{IterationCompleted, OfIteration, Ends, "The iteration succeeded, with what it did to data in `rows`. Its status is `partial_success` if the result is incomplete, for example because a policy limited its pages."},
	{IterationFailed, OfIteration, Ends, "The iteration failed, or was cancelled; its status is then `cancelled`."},
	{
		SinkCompleted, OfSink, Happens,
		"A sink has written, or a notice was sent. Its attempts are actions with `sink`. For a notice, `sink` is " +
			"`fetch.on_success` or, for one of the run, `run.notify.failed`.",
	},
	{SinkFailed, OfSink, Happens, "A sink or a notice failed."},
	{StepResult, OfStep, Ends, "A visit of a step has ended, with what it did to data in `rows`, and its watermark in `incremental` if it keeps a state."},
	{
		StepFailedTerminal, OfStep, Ends,
		"A visit of a step failed. It replaces `step_result`; a failed loop has both.",
	},
	{ExecutionCompleted, OfRun, Ends, "The run succeeded, or partially succeeded, with what it did to data in `rows`."},
	{ExecutionFailed, OfRun, Ends, "The run failed."},
	{ExecutionCancelled, OfRun, Ends, "The run was cancelled. `by` and `reason` are those of the person who cancelled it, if given."},
}

// reasonNames lists the reasons of waits for the reference.
func reasonNames() string {
	names := lists.Map(interpreter.WaitReasons(), func(reason interpreter.Reason) string { return "`" + string(reason) + "`" })
	return strings.Join(names, ", ")
}

// EventKinds returns all kinds of events, in the order in which they occur in a run.
func EventKinds() []Kind { return slices.Clone(kinds) }

// KindNames returns the names of all kinds of events.
func KindNames() []string {
	return lists.Map(kinds, func(kind Kind) string { return kind.Name })
}

// Kind returns the row of the event's kind; an empty row if it is unknown.
func (e Event) Kind() Kind {
	if i := slices.IndexFunc(kinds, func(kind Kind) bool { return kind.Name == e.Event }); i >= 0 {
		return kinds[i]
	}
	return Kind{}
}

// Event is something that happened in a run.
type Event struct {
	Event string    `json:"event"` // the name of its kind
	At    time.Time `json:"at"`
	Step  string    `json:"step,omitempty"`
	Visit int       `json:"visit,omitempty"`
	Index *int      `json:"index,omitempty"` // of the iteration
	// Sink is the place of the sink that the event is about.
	Sink string `json:"sink,omitempty"`
	// Attempt and Page are numbered from 1 within a call. A wait has those of the previous attempt. If several pages
	// were fetched together, AttemptTo and PageTo are the last ones.
	Attempt   int  `json:"attempt,omitempty"`
	AttemptTo int  `json:"attempt_to,omitempty"`
	Page      int  `json:"page,omitempty"`
	PageTo    int  `json:"page_to,omitempty"`
	IsRetry   bool `json:"is_retry,omitempty"` // the attempt before was one of the same request
	// Delay is the length of a wait in seconds, and NextRetryAt its end.
	Delay       float64   `json:"delay,omitempty"`
	NextRetryAt time.Time `json:"next_retry_at,omitzero"`
	// Reason is an interpreter.Reason for a wait, and the reason that people gave for a cancelled run or an attempt
	// they resumed; By is who did that. For the end of an attempt that was answered from outside, By is who answered,
	// and Option the option chosen in an approval.
	Reason string `json:"reason,omitempty"`
	Option string `json:"option,omitempty"`
	By     string `json:"by,omitempty"`
	// Duration is in seconds; zero if the subject has not ended.
	Duration float64 `json:"duration,omitempty"`
	// Deliveries is how often the attempt was delivered to a worker, if more than once.
	Deliveries int                `json:"deliveries,omitempty"`
	Status     interpreter.Status `json:"status,omitempty"` // of what has ended
	// Attempts and Pages are the totals of an ended iteration or step.
	Attempts int `json:"attempts,omitempty"`
	Pages    int `json:"pages,omitempty"`
	// Rows is what a finished run, step or iteration did to data; nil if nothing was counted.
	Rows *interpreter.Rows `json:"rows,omitempty"`
	// Incremental is the progress of a finished step that keeps a state; nil for others.
	Incremental *interpreter.StateRecord `json:"incremental,omitempty"`
	// Concurrency is the key under which the run is queued or got its slot.
	Concurrency string `json:"concurrency,omitempty"`
	// Child is the workflow ID of the child run that the attempt started.
	Child   string                   `json:"child,omitempty"`
	Stats   *interpreter.LoopStats   `json:"stats,omitempty"` // of a loop that has ended
	Handled bool                     `json:"handled,omitempty"`
	Error   *interpreter.ErrorObject `json:"error,omitempty"`
	// ChildRunID is the run ID of Child; "" if it did not start or its end is not awaited.
	ChildRunID string `json:"-"`
	// IsShared says of the start of an open iteration that it shares a child with others: their ends are reported only when the child
	// ends. Of an attempt or a sink with which such an iteration has ended, Ended is how.
	IsShared bool               `json:"-"`
	Ended    interpreter.Status `json:"-"`

	key string // identifies it within the run
}

// EventFilter selects events; its zero value selects all events of the run and its loops, but none within iterations.
type EventFilter struct {
	Step  string
	Index *int
	// Failed selects failed iterations and steps, with their attempts.
	Failed bool
	// Attempts also selects the attempts of all iterations.
	Attempts bool
	Kinds    []string // names of them
	Follow   bool     // continue until the run has ended
}

// withinIterations reports whether attempts of iterations are requested.
func (f EventFilter) withinIterations() bool {
	return f.Attempts || f.Step != "" || f.Index != nil || f.Failed
}

// matchesEvent reports whether the filter selects an event. It does not check Failed, which needs the end of the
// step.
func (f EventFilter) matchesEvent(event Event) bool {
	return (f.Step == "" || event.Step == f.Step) &&
		(f.Index == nil || event.Index != nil && *event.Index == *f.Index) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, event.Event))
}
