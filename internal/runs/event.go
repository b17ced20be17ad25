package runs

import (
	"slices"
	"time"

	"reprise/interpreter"
)

// The words of events (operations.md, section events).
const (
	ExecutionStarted   = "execution_started"
	ExecutionQueued    = "execution_queued"
	ExecutionAdmitted  = "execution_admitted"
	StepStarted        = "step_started"
	ActionStarted      = "action_started"
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

// Words are all of them.
func Words() []string {
	return []string{
		ExecutionStarted, ExecutionQueued, ExecutionAdmitted, StepStarted, ActionStarted, ActionCompleted, ActionError,
		StepRetry, StepRetryExhausted, IterationStarted, IterationCompleted, IterationFailed, SinkCompleted, SinkFailed,
		StepResult, StepFailedTerminal, ExecutionCompleted, ExecutionFailed, ExecutionCancelled,
	}
}

// Event is something that happened in a run.
type Event struct {
	Event string    `json:"event"` // the word
	At    time.Time `json:"at"`
	Step  string    `json:"step,omitempty"`
	Visit int       `json:"visit,omitempty"`
	Index *int      `json:"index,omitempty"` // of the iteration
	// Sink is the place of the sink whose attempt, wait or end it is.
	Sink string `json:"sink,omitempty"`
	// Attempt and Page are those of an attempt, of the call and from 1; of a wait
	// those of the attempt before it. Where several pages were fetched together
	// AttemptTo and PageTo are the last.
	Attempt   int  `json:"attempt,omitempty"`
	AttemptTo int  `json:"attempt_to,omitempty"`
	Page      int  `json:"page,omitempty"`
	PageTo    int  `json:"page_to,omitempty"`
	IsRetry   bool `json:"is_retry,omitempty"` // the attempt before was one of the same request
	// Delay is how many seconds a wait is to take, NextRetryAt when it is over.
	Delay       float64   `json:"delay,omitempty"`
	NextRetryAt time.Time `json:"next_retry_at,omitzero"`
	// Reason of a wait: failure, rate_limited, poll, page, turn or person. Of a run that was
	// cancelled the reason that was given, and By who did it, and so of the start of an
	// attempt that people let begin; of the end of an attempt By is who has answered it from
	// outside, and Option what was chosen, of an approval.
	Reason string `json:"reason,omitempty"`
	Option string `json:"option,omitempty"`
	By     string `json:"by,omitempty"`
	// Duration is how many seconds it took, of what has ended.
	Duration float64 `json:"duration,omitempty"`
	// Deliveries is how often the attempt was handed to a worker, where that is more
	// than once.
	Deliveries int                `json:"deliveries,omitempty"`
	Status     interpreter.Status `json:"status,omitempty"` // of what has ended
	// Attempts and Pages are how many an iteration or step made and got.
	Attempts int `json:"attempts,omitempty"`
	Pages    int `json:"pages,omitempty"`
	// Concurrency is the key under which the run waits for its turn, or has got it.
	Concurrency string `json:"concurrency,omitempty"`
	// Child is the workflow ID of the run of another playbook that an attempt is.
	Child   string                   `json:"child,omitempty"`
	Stats   *interpreter.LoopStats   `json:"stats,omitempty"` // of a loop that has ended
	Handled bool                     `json:"handled,omitempty"`
	Error   *interpreter.ErrorObject `json:"error,omitempty"`

	key string // tells it from all others of the run
}

// Ask chooses events; zero values choose all of the run and its loops, but not
// what is within iterations.
type Ask struct {
	Step  string
	Index *int
	// Failed takes iterations and steps that failed, with their attempts.
	Failed bool
	// Attempts takes the attempts of all iterations too.
	Attempts bool
	Kinds    []string // words
	Follow   bool     // go on until the run has ended
}

// within reports whether the attempts of iterations are asked for.
func (a Ask) within() bool { return a.Attempts || a.Step != "" || a.Index != nil || a.Failed }

// takes reports whether an event is asked for; that it has failed is looked at
// where that is known.
func (a Ask) takes(event Event) bool {
	return (a.Step == "" || event.Step == a.Step) &&
		(a.Index == nil || event.Index != nil && *event.Index == *a.Index) &&
		(len(a.Kinds) == 0 || slices.Contains(a.Kinds, event.Event))
}
