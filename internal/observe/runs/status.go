package runs

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
)

// What may hold a step or an iteration.
const (
	HeldByWait      = "wait"       // it waits before it tries again, polls or turns the page
	HeldByRateLimit = "rate_limit" // it waits for its turn
	HeldByWindow    = "window"     // of its loop, in which no slot is free
	HeldByNoWorker  = "no_worker"  // no worker polls its task queue, or none that does responds
	// HeldByStore and HeldByTask hold a run whose workers cannot continue it: because the payload store fails, or for
	// another reason, such as a build that does not match its history.
	HeldByStore  = "payload_store"
	HeldByTask   = "task_failure"
	HeldByPause  = "pause"  // people have paused it, or its run
	HeldByPerson = "person" // its policy leaves it to people how it continues
	HeldByAnswer = "answer" // a person or another system answers its attempt
	// HeldByConcurrency holds a run that is queued under its concurrency key, or a step that is queued for its state.
	HeldByConcurrency = "concurrency"
	HeldByState       = "state" // what keeps the state of its step is out of reach
)

// Status is the status of a run and its steps.
type Status struct {
	Found
	// Workers counts the workers that poll the task queue, according to the server; -1 if that was not requested.
	Workers  int      `json:"workers"`
	Steps    []Step   `json:"steps"`
	Warnings []string `json:"warnings,omitempty"`
	// ValidationWarnings are the warnings of the validation at the start of the run.
	ValidationWarnings []string `json:"validation_warnings,omitempty"`
	// FurtherWarnings are the warnings that add something to the errors of the steps.
	FurtherWarnings []string                 `json:"-"`
	Error           *interpreter.ErrorObject `json:"error,omitempty"`
	// Failure is the message of what fails where HeldBy is payload_store or task_failure.
	Failure string `json:"failure,omitempty"`
	// NoCurrentBuild is set if no worker gets the run because its workers are of a deployment without a current build: the name
	// of that deployment.
	NoCurrentBuild string `json:"no_current_build,omitempty"`
	// NoWorkerSince is set if no worker responds: since when a task of the run waits for one or, without a task, when
	// a worker last polled; zero if unknown.
	NoWorkerSince time.Time `json:"no_worker_since,omitzero"`
	// Slot is the run's slot under its concurrency key; nil without a key or slot, or if it was not requested.
	Slot *QueueSlot `json:"turn,omitempty"`
	// Control has people's commands to an open run.
	Control interpreter.Control `json:"control,omitzero"`
	// HeldByParents are the parent runs that hold this run because they, or their step that started it, are paused;
	// the direct parent first.
	HeldByParents []ChildWait `json:"held_by_parents,omitempty"`
	// Cancel is who cancelled the run, why and when; nil if it was not cancelled, or that was not found.
	Cancel *interpreter.Said `json:"cancel,omitempty"`
	// Stalled says what the run waits for outside of its steps: unreachable states to be moved at its end, or the
	// queue of a concurrency key; "" if nothing.
	Stalled string `json:"stalled,omitempty"`
	// Activities are the activities that workers are running for the run, or that wait to be delivered again.
	Activities []PendingActivity `json:"activities,omitempty"`
	// Rows is what the steps did to data, by tables; nil if nothing was counted.
	Rows *interpreter.Rows `json:"rows,omitempty"`
	// Notes describe what could not be found out, and why.
	Notes []string `json:"notes,omitempty"`
	// Calls is the number of calls to the server, not counting those that found the run.
	Calls int       `json:"calls"`
	At    time.Time `json:"at"`
}

// FailedRun returns the workflow ID of the child run with which the run, one of its steps or the first of its failed iterations
// failed; "" for none.
func (s *Status) FailedRun() string {
	id, _ := s.Error.FailedRun()
	for _, step := range s.Steps {
		if id != "" {
			break
		}
		if id, _ = step.Error.FailedRun(); id == "" && len(step.failed) > 0 {
			id, _ = step.failed[0].Error.FailedRun()
		}
	}
	return id
}

// IsSilent reports whether the run did not respond, so that its steps are unknown.
func (s *Status) IsSilent() bool {
	return s.HeldBy == HeldByNoWorker || s.HeldBy == HeldByStore || s.HeldBy == HeldByTask
}

// PendingActivity is an activity of a run that has not ended.
type PendingActivity struct {
	Type string `json:"type"`
	// Worker is the worker to which the activity was last delivered, at time Since.
	Worker string    `json:"worker,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Running is set if a worker is running the activity.
	Running    bool  `json:"running"`
	Deliveries int32 `json:"deliveries"`
	// LastFailure is why the activity was delivered again.
	LastFailure string `json:"last_failure,omitempty"`
	// Heartbeat is the time of the worker's last heartbeat. Step is the step whose call the activity makes, and
	// Progress the time of the last response or write, if heartbeats show it.
	Heartbeat time.Time `json:"heartbeat,omitzero"`
	Step      string    `json:"step,omitempty"`
	Progress  time.Time `json:"progress,omitzero"`
}

// Item is the status of a step or an iteration.
type Item struct {
	Status interpreter.Status `json:"status"`
	// Since is when it began to wait; zero if it does not wait or that is unknown.
	Since time.Time `json:"since,omitzero"`
	// Attempt is the number of the last attempt, which may be running; 0 before the first. MaxAttempts is how many
	// attempts a failing request gets; 0 if unknown, and for ended items.
	Attempt     int       `json:"attempt"`
	MaxAttempts int       `json:"max_attempts,omitempty"`
	Pages       int       `json:"pages,omitempty"`
	NextRetryAt time.Time `json:"next_retry_at,omitzero"`
	// HeldBy is one of the HeldBy constants, "" if nothing holds the item; Waiting describes it in words.
	HeldBy  string `json:"held_by,omitempty"`
	Waiting string `json:"waiting,omitempty"`
	// Phrase is Waiting in parts; nil if Waiting includes no time.
	Phrase *interpreter.WaitPhrase `json:"-"`
	// Awaits is the attempt that a person or another system answers; nil if there is none.
	Awaits *interpreter.AwaitedDetails `json:"awaits,omitempty"`
	// Error is the last error; for a running item, that of the previous attempt.
	Error *interpreter.ErrorObject `json:"error,omitempty"`
}

// Step is one visit of a step; Visit is 0 if no branch has reached the step.
type Step struct {
	Step  string `json:"step"`
	Visit int    `json:"visit"`
	Item
	StartedAt time.Time `json:"started_at,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	Handled   bool      `json:"handled,omitempty"` // a route took the failure
	// Child is the workflow ID of the last child run that the step started.
	Child string `json:"child,omitempty"`
	// Queue is the queue of its state in which the step waits; nil for other steps, and if it was not queried.
	Queue *QueuePosition `json:"queue,omitempty"`
	// Incremental is the reading progress of a step that keeps a state; nil for others.
	Incremental *IncrementalStatus `json:"incremental,omitempty"`
	// Rows is what the step has done to data so far; nil if nothing was counted.
	Rows *interpreter.Rows `json:"rows,omitempty"`
	ChildRuns
	Loop *Counts `json:"loop,omitempty"`
	// Iterations are the iterations that Reader.AddIterations found; Left counts the others.
	Iterations []Iteration `json:"iterations,omitempty"`
	// Waits are what the iterations of a running loop wait for, the largest group first. WaitsOf is how many
	// iterations were queried.
	Waits   []WaitsFor `json:"waits,omitempty"`
	WaitsOf int        `json:"waits_of,omitempty"`
	Left    int        `json:"iterations_left,omitempty"`

	open  []string // workflow IDs of the children of its loop
	turns int      // iterations that wait for their turns, where they were queried
	// keepers counts the iterations whose state's keeper is unreachable.
	keepers int
	// counted is set if all open iterations were queried.
	counted bool
	// waitingSince is when the last of the iterations that wait for a retry began to wait.
	waitingSince time.Time
	// awaitingSince is when the first of the iterations that await answers began to wait.
	awaitingSince time.Time
	active        int                   // iterations of these
	ended         interpreter.LoopStats // the other ones that have ended
	silent        bool                  // not all of its loop was queried, or has answered
	failed        []interpreter.LoopError
}

// IncrementalStatus is the reading progress of a step that keeps a state, or of a loop whose iterations do.
type IncrementalStatus struct {
	interpreter.StateRecord
	// Behind is how many seconds the watermark lagged behind the time of the status; nil if cursors are not times.
	Behind *float64 `json:"behind_seconds,omitempty"`
}

// newIncremental returns the reading progress at a time; nil for a step without a state.
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

// Counts has the iterations of a loop by status. Total = Success + Failed + Cancelled + Running + Waiting + Pending +
// Unknown.
type Counts struct {
	WorkflowID string `json:"workflow_id"`
	Total      int    `json:"total"`
	Success    int    `json:"success"`
	Failed     int    `json:"failed"`
	Cancelled  int    `json:"cancelled"`
	// Open is set if the source of the loop may add more elements to Total.
	Open bool `json:"open,omitempty"`
	// Source is the state of an open loop's source; nil for a loop over a collection.
	Source    *Item `json:"source,omitempty"`
	Truncated int   `json:"truncated,omitempty"`
	// Running counts iterations with a slot in the window. Those that wait for a few seconds, or in a sequential
	// loop, count as waiting if they were queried.
	Running int `json:"running"`
	// Waiting counts iterations that wait for a retry, or until people resume them.
	Waiting int `json:"waiting"`
	// Awaiting counts the running iterations whose attempts are answered from outside, as far as they were queried.
	Awaiting int `json:"awaiting,omitempty"`
	// Asks is set if attempts of the loop's iterations are answered from outside.
	Asks bool `json:"asks,omitempty"`
	// Plays is set if the loop's iterations run playbooks.
	Plays   bool `json:"plays,omitempty"`
	Pending int  `json:"pending"`
	// Unknown counts iterations in a part of the loop that did not respond: they may have ended.
	Unknown int `json:"unknown,omitempty"`
	// PerSecond is how many iterations have ended per second since the loop began. Left is how many seconds the rest
	// takes at that pace; 0 if unknown.
	PerSecond float64 `json:"per_second,omitempty"`
	Left      float64 `json:"left_seconds,omitempty"`
}

// CountDone returns how many iterations have succeeded or failed.
func (c *Counts) CountDone() int { return c.Success + c.Failed }

// Visits returns the visits of a step; for "", those of all steps.
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
		names = lists.AddUnique(names, step.Step)
	}
	return names
}
