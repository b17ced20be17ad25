package runs

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
)

// Reasons that hold a step or an iteration.
const (
	HeldByWait      = "wait"       // it waits before it tries again, polls or turns the page
	HeldByRateLimit = "rate_limit" // it waits for its turn
	HeldByWindow    = "window"     // of its loop, in which no slot is free
	HeldByNoWorker  = "no_worker"  // no worker polls its task queue, or none that does responds
	// HeldByStore and HeldByTask are of a run whose workers cannot continue it: the payload store fails, or something else
	// does, such as a build that does not fit its history.
	HeldByStore  = "payload_store"
	HeldByTask   = "task_failure"
	HeldByPause  = "pause"  // people have paused it, or its run
	HeldByPerson = "person" // its policy leaves it to people how it continues
	HeldByAnswer = "answer" // a person or another system answers its attempt
	// HeldByConcurrency is a run that waits for its turn under its concurrency key, or a step for
	// its state.
	HeldByConcurrency = "concurrency"
	HeldByState       = "state" // what keeps the state of its step is out of reach
)

// Status is where a run is.
type Status struct {
	Found
	// Workers counts those that the server knows to poll the task queue; -1 where
	// that was not requested.
	Workers  int      `json:"workers"`
	Steps    []Step   `json:"steps"`
	Warnings []string `json:"warnings,omitempty"`
	// ValidationWarnings are what validation has warned of when the run began.
	ValidationWarnings []string `json:"validation_warnings,omitempty"`
	// FurtherWarnings are the warnings that say more than the errors of the steps.
	FurtherWarnings []string                 `json:"-"`
	Error           *interpreter.ErrorObject `json:"error,omitempty"`
	// HeldBy is what holds the whole run, "" for nothing.
	HeldBy string `json:"held_by,omitempty"`
	// Failure is the message of what fails where HeldBy is payload_store or task_failure.
	Failure string `json:"failure,omitempty"`
	// NoWorkerSince is, where no worker responds, since when a task of the run waits for one; without
	// a task when a worker has polled last, zero where that is not known.
	NoWorkerSince time.Time `json:"no_worker_since,omitzero"`
	// Turn is the run's turn under its concurrency key; nil without a key or a turn, or if it
	// was not requested.
	Turn *QueueSlot `json:"turn,omitempty"`
	// Control has people's commands to an open run.
	Control interpreter.Control `json:"control,omitzero"`
	// HeldByParents are the parent runs that are paused, or their step which has started this
	// one, the next one first.
	HeldByParents []ChildWait `json:"held_by_parents,omitempty"`
	// Cancel is who has cancelled the run, why and when; nil where it was not, or that
	// was not found.
	Cancel *interpreter.Said `json:"cancel,omitempty"`
	// Stalled says what the run waits for outside of its steps: unreachable states to be moved at its
	// end, or the queue of a concurrency key; "" for nothing.
	Stalled string `json:"stalled,omitempty"`
	// Activities are what workers do for the run just now, or what waits to be delivered to one again.
	Activities []PendingActivity `json:"activities,omitempty"`
	// Late says that the run takes longer than it was expected to, or did.
	Late bool `json:"late,omitempty"`
	// Rows is what the steps did to data, by tables; nil if nothing was counted.
	Rows *interpreter.Rows `json:"rows,omitempty"`
	// Notes say what could not be learnt, and why.
	Notes []string `json:"notes,omitempty"`
	// Calls is how many calls to the server it took, finding the run apart.
	Calls int       `json:"calls"`
	At    time.Time `json:"at"`
}

// Silent reports whether the run gave no answer, so that its steps are not known.
func (s *Status) Silent() bool {
	return s.HeldBy == HeldByNoWorker || s.HeldBy == HeldByStore || s.HeldBy == HeldByTask
}

// PendingActivity is an activity of a run that has not ended.
type PendingActivity struct {
	Type string `json:"type"`
	// Worker is the last worker that the activity was delivered to, at time Since.
	Worker string    `json:"worker,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Running says that a worker has it.
	Running    bool  `json:"running"`
	Deliveries int32 `json:"deliveries"`
	// LastFailure is why it was delivered again.
	LastFailure string `json:"last_failure,omitempty"`
	// Heartbeat is the time of the last report of its worker. Step is the step whose call it makes, and Progress the
	// time of the last response or write, if heartbeats show it.
	Heartbeat time.Time `json:"heartbeat,omitzero"`
	Step      string    `json:"step,omitempty"`
	Progress  time.Time `json:"progress,omitzero"`
}

// Item is the state of a step or an iteration.
type Item struct {
	Status interpreter.Status `json:"status"`
	// Since is when it began to wait, zero where it does not, or that is not known.
	Since time.Time `json:"since,omitzero"`
	// Attempt is the number of the last attempt, which may be running; 0 before the first.
	// MaxAttempts is how many a failing request gets, 0 if unknown, and for what has ended.
	Attempt     int       `json:"attempt"`
	MaxAttempts int       `json:"max_attempts,omitempty"`
	Pages       int       `json:"pages,omitempty"`
	NextRetryAt time.Time `json:"next_retry_at,omitzero"`
	// HeldBy is one of the words above, "" where nothing holds it; Waiting says it in
	// words.
	HeldBy  string `json:"held_by,omitempty"`
	Waiting string `json:"waiting,omitempty"`
	// Phrase is Waiting in pieces, nil where that says no time.
	Phrase *interpreter.WaitPhrase `json:"-"`
	// Awaits is the attempt that a person or another system answers, nil for none.
	Awaits *interpreter.AwaitedDetails `json:"awaits,omitempty"`
	// Error is the last one: of the attempt before, where the item is running.
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
	// Queue is the queue of its state in which the step waits; nil for others, and if it was not
	// queried.
	Queue *QueuePosition `json:"queue,omitempty"`
	// Incremental is the progress of reading of a step that keeps a state; nil for others.
	Incremental *IncrementalStatus `json:"incremental,omitempty"`
	// Rows is what the step has done to data so far; nil if nothing was counted.
	Rows *interpreter.Rows `json:"rows,omitempty"`
	ChildRuns
	Loop *Counts `json:"loop,omitempty"`
	// Iterations are the iterations that Iterations found; Left counts what it left out.
	Iterations []Iteration `json:"iterations,omitempty"`
	// Waits are what the iterations of a running loop wait for, most of them first.
	// WaitsOf is how many iterations were queried.
	Waits   []WaitsFor `json:"waits,omitempty"`
	WaitsOf int        `json:"waits_of,omitempty"`
	Left    int        `json:"iterations_left,omitempty"`

	open  []string // workflow IDs of the children of its loop
	turns int      // iterations that wait for their turns, where they were queried
	// keepers are the keepers that wait for a state that is out of reach.
	keepers int
	// counted says that all of its iterations that are open were queried.
	counted bool
	// waitingSince is when the last of them that wait for a retry began to.
	waitingSince time.Time
	// awaitingSince is when the first of them that await answers began to.
	awaitingSince time.Time
	active        int                   // iterations of these
	ended         interpreter.LoopStats // the other ones that have ended
	silent        bool                  // not all of its loop was queried, or has answered
	failed        []interpreter.LoopError
}

// IncrementalStatus is how far a step has read that keeps a state, or a loop whose iterations do.
type IncrementalStatus struct {
	interpreter.StateRecord
	// Behind is how many seconds the watermark lagged behind the time of the status; nil if cursors
	// are no times.
	Behind *float64 `json:"behind_seconds,omitempty"`
}

// newIncremental returns nil for steps without a state.
func newIncremental(record *interpreter.StateRecord, now time.Time) *IncrementalStatus {
	if record == nil {
		return nil
	}
	shown := &IncrementalStatus{StateRecord: *record}
	if watermark, err := record.Form().Parse(record.Watermark.Data); err == nil {
		if behind, ok := incremental.BehindNow(record.Type, watermark, now); ok {
			seconds := behind.Round(time.Millisecond).Seconds()
			shown.Behind = &seconds
		}
	}
	return shown
}

// Counts says where the iterations of a loop are. Total = Success + Failed + Cancelled + Running + Waiting + Pending +
// Unknown.
type Counts struct {
	WorkflowID string `json:"workflow_id"`
	Total      int    `json:"total"`
	Success    int    `json:"success"`
	Failed     int    `json:"failed"`
	Cancelled  int    `json:"cancelled"`
	// Open says that the source of the loop may give more elements than Total.
	Open bool `json:"open,omitempty"`
	// Source is what the source of an open loop does; nil for a loop over a collection.
	Source    *Item `json:"source,omitempty"`
	Truncated int   `json:"truncated,omitempty"`
	// Running counts iterations with a slot in the window. Those among them that wait for some
	// seconds, or in a sequential loop, are counted as waiting if they were queried.
	Running int `json:"running"`
	// Waiting counts iterations that wait for a retry, or until people resume them.
	Waiting int `json:"waiting"`
	// Awaiting are those among Running whose attempts are answered from outside, where
	// they were queried.
	Awaiting int `json:"awaiting,omitempty"`
	// Asks says that the attempts of its iterations are answered from outside.
	Asks bool `json:"asks,omitempty"`
	// Plays says that its iterations run playbooks.
	Plays   bool `json:"plays,omitempty"`
	Pending int  `json:"pending"`
	// Unknown counts iterations without information because part of the loop has not answered:
	// they may have ended.
	Unknown int `json:"unknown,omitempty"`
	// PerSecond is how many have ended in a second, since the loop began. Left is
	// how many seconds the rest takes at that pace, 0 where that is not known.
	PerSecond float64 `json:"per_second,omitempty"`
	Left      float64 `json:"left_seconds,omitempty"`
}

// Done returns how many iterations have ended.
func (c *Counts) Done() int { return c.Success + c.Failed }

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

// Names returns the names of the steps in a status, each once.
func (s *Status) Names() []string {
	var names []string
	for _, step := range s.Steps {
		names = lists.Add(names, step.Step)
	}
	return names
}
