package runs

import (
	"slices"
	"strings"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/lists"
)

// The kinds of events; each has a row in the table below.
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

// Subject is the kind of thing that an event is about.
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

// Phase says what happened to the subject of an event.
type Phase int

// The phases. Only what begins and ends takes time.
const (
	Happens Phase = iota
	Begins
	Ends
)

// Kind describes a kind of events. Filters, help, documents, figures and reports are derived from the
// table of kinds.
type Kind struct {
	Name  string
	Of    Subject
	Phase Phase
	// Doc says when there is such an event, in the reference.
	Doc string
}

// kinds is the table, in the order in which a run has its events.
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

// reasonNames lists the reasons of waits, for documents.
func reasonNames() string {
	names := lists.Map(interpreter.WaitReasons(), func(reason interpreter.Reason) string { return "`" + string(reason) + "`" })
	return strings.Join(names, ", ")
}

// Kinds returns the table of the kinds of events, in the order in which a run has them.
func Kinds() []Kind { return slices.Clone(kinds) }

// KindNames returns the names of all kinds of events.
func KindNames() []string {
	return lists.Map(kinds, func(kind Kind) string { return kind.Name })
}

// Kind returns the row of the event's kind; without a name for one that has none.
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
	// Sink is the place of the sink whose attempt, wait or end it is.
	Sink string `json:"sink,omitempty"`
	// Attempt and Page are numbered from 1 within a call; for a wait they belong to the attempt
	// before. If several pages were fetched together, AttemptTo and PageTo are the last ones.
	Attempt   int  `json:"attempt,omitempty"`
	AttemptTo int  `json:"attempt_to,omitempty"`
	Page      int  `json:"page,omitempty"`
	PageTo    int  `json:"page_to,omitempty"`
	IsRetry   bool `json:"is_retry,omitempty"` // the attempt before was one of the same request
	// Delay is how many seconds a wait takes, NextRetryAt when it ends.
	Delay       float64   `json:"delay,omitempty"`
	NextRetryAt time.Time `json:"next_retry_at,omitzero"`
	// Reason of a wait is an interpreter.Reason. Of a run that was cancelled the reason
	// that was given, and By who did it, and so of the start of an attempt that people
	// have resumed; of the end of an attempt By is who has answered it from outside,
	// and Option what was chosen, of an approval.
	Reason string `json:"reason,omitempty"`
	Option string `json:"option,omitempty"`
	By     string `json:"by,omitempty"`
	// Duration in seconds; zero for what has not ended.
	Duration float64 `json:"duration,omitempty"`
	// Deliveries is how often the attempt was delivered to a worker, where that is more
	// than once.
	Deliveries int                `json:"deliveries,omitempty"`
	Status     interpreter.Status `json:"status,omitempty"` // of what has ended
	// Attempts and Pages are how many an iteration or step made and got.
	Attempts int `json:"attempts,omitempty"`
	Pages    int `json:"pages,omitempty"`
	// Rows is what a finished run, step or iteration did to data; nil if nothing was counted.
	Rows *interpreter.Rows `json:"rows,omitempty"`
	// Incremental is the progress of a finished step that keeps a state; nil for others.
	Incremental *interpreter.StateRecord `json:"incremental,omitempty"`
	// Concurrency is the key under which the run waits for its turn, or has got it.
	Concurrency string `json:"concurrency,omitempty"`
	// Child is the workflow ID of the run of another playbook that an attempt is.
	Child   string                   `json:"child,omitempty"`
	Stats   *interpreter.LoopStats   `json:"stats,omitempty"` // of a loop that has ended
	Handled bool                     `json:"handled,omitempty"`
	Error   *interpreter.ErrorObject `json:"error,omitempty"`
	// ChildRunID is the run ID of Child, "" where it did not start or nobody waits for it.
	ChildRunID string `json:"-"`

	key string // identifies it within the run
}

// EventFilter chooses events; zero values choose all of the run and its loops, but not
// what is within iterations.
type EventFilter struct {
	Step  string
	Index *int
	// Failed chooses iterations and steps that failed, with their attempts.
	Failed bool
	// Attempts chooses the attempts of all iterations too.
	Attempts bool
	Kinds    []string // names of them
	Follow   bool     // continue until the run has ended
}

// withinIterations reports whether the attempts of iterations are requested.
func (f EventFilter) withinIterations() bool {
	return f.Attempts || f.Step != "" || f.Index != nil || f.Failed
}

// matchesEvent reports whether an event is requested; whether it has failed is checked where
// that is known.
func (f EventFilter) matchesEvent(event Event) bool {
	return (f.Step == "" || event.Step == f.Step) &&
		(f.Index == nil || event.Index != nil && *event.Index == *f.Index) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, event.Event))
}
