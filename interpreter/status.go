package interpreter

import (
	"slices"
	"strings"

	"reprise/interpreter/lists"
)

// Status is the status of a step, an iteration, a run or an envelope. StatusSuccess and StatusError are statuses of
// envelopes only, which have no other status but Partial.
type Status string

// The statuses of steps, iterations and runs; each has a row in statuses.
const (
	Completed Status = "completed"
	Partial   Status = "partial_success"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
	Skipped   Status = "skipped"
	Running   Status = "running"
	Pending   Status = "pending"
	// Awaiting means that an attempt waits for the answer of a person or another system.
	Awaiting Status = "awaiting"
	// RetryPending means waiting for the next attempt.
	RetryPending Status = "retry_pending"
	// Paused means held by people.
	Paused Status = "paused"
	// Queued means that a run waits for a slot under its concurrency key.
	Queued Status = "queued"
)

// Owner says what can have a status.
type Owner int

// The owners of statuses, as bits.
const (
	OfStep Owner = 1 << iota
	OfIteration
	OfRun
)

// Ending says whether a status is open, or how it has ended: well, in part, or badly.
type Ending int

// The endings.
const (
	Open Ending = iota
	Good
	Mixed
	Bad
)

// Tally is the counter of a loop that includes the iterations with a status.
type Tally int

// The tallies. For an open loop, their sum is its size.
const (
	TallyNone Tally = iota // for statuses that iterations do not have
	TallySuccess
	TallyFailed
	TallyCancelled
	TallyRunning
	TallyWaiting
	TallyPending
)

// Colour says how a status is drawn. Fill is a background for dark letters, distinct from the others in grayscale
// too; Ink and DarkInk are for letters and bars on light and dark pages; Tone is for terminals, whose users choose
// the colours.
type Colour struct {
	Fill, Ink, DarkInk string
	Tone               Tone
}

// Tone classifies statuses for the colours of terminals.
type Tone int

// The tones.
const (
	ToneNone    Tone = iota // for no status
	ToneBad                 // it failed
	ToneWarning             // something went wrong, and may still succeed
	ToneGood                // it ended well
	ToneActive              // it is running
	ToneAsks                // somebody has to act
	ToneHeld                // held by people or a queue
	ToneQuiet               // it needs no attention
)

// Listing says how the server's list of runs represents a status.
type Listing struct {
	// Executions are the Temporal statuses of such runs.
	Executions []string
	// Attribute says that finding such runs requires StatusAttribute; Default that a run without that attribute has
	// this status.
	Attribute, Default bool
}

// StatusInfo describes a status. All code that shows, counts, filters or documents statuses reads it, so a new
// status is a new row.
type StatusInfo struct {
	Status Status
	Of     Owner
	Ending Ending
	Tally  Tally
	Colour Colour
	List   Listing
	// Doc explains the status in whole sentences, for docs/reference/statuses.md.
	Doc string
}

// The colours that several statuses share.
const (
	amber, darkAmber = "#9a5b00", "#f0a840"
	grey, darkGrey   = "#667080", "#98a2b1"
)

// statuses has all statuses in display order: problems, waiting, running, done.
var statuses = []StatusInfo{
	{
		Status: Failed, Of: OfStep | OfIteration | OfRun, Ending: Bad, Tally: TallyFailed,
		Colour: Colour{"#f5b7b1", "#c5303c", "#ff6b75", ToneBad},
		List:   Listing{Executions: []string{"Failed", "Terminated", "TimedOut"}, Default: true},
		Doc:    "It ended with a failure.",
	},
	{
		Status: Awaiting, Of: OfStep | OfIteration | OfRun, Tally: TallyRunning,
		Colour: Colour{"#ffc4e1", "#b8327a", "#ff85bd", ToneAsks},
		List:   Listing{Executions: []string{"Running"}, Attribute: true},
		Doc:    "An attempt waits for the answer of a person or of another system.",
	},
	{
		Status: RetryPending, Of: OfStep | OfIteration | OfRun, Tally: TallyWaiting,
		Colour: Colour{"#ffd8a8", amber, darkAmber, ToneWarning},
		List:   Listing{Executions: []string{"Running"}, Attribute: true},
		Doc: "It waits before the next attempt. A run has this status when everything in it waits. " +
			"If its policy leaves it to a person how it continues, tables and pages show `needs a person`, and `held_by` is `person` in JSON.",
	},
	{
		Status: Paused, Of: OfStep | OfIteration | OfRun, Tally: TallyWaiting,
		Colour: Colour{"#e1d5f5", "#8a5cc7", "#bb96f2", ToneHeld},
		List:   Listing{Executions: []string{"Running"}, Attribute: true},
		Doc:    "Somebody paused it. It continues when somebody resumes it.",
	},
	{
		Status: Queued, Of: OfRun,
		Colour: Colour{"#d6eaf0", "#2b7a8c", "#6cc3d6", ToneHeld},
		List:   Listing{Executions: []string{"Running"}, Attribute: true},
		Doc:    "The run waits for a slot under its concurrency key.",
	},
	{
		Status: Running, Of: OfStep | OfIteration | OfRun, Tally: TallyRunning,
		Colour: Colour{"#bbdefb", "#1f6fd0", "#63a7ff", ToneActive},
		List:   Listing{Executions: []string{"Running"}, Default: true},
		Doc:    "It is running.",
	},
	{
		Status: Pending, Of: OfStep | OfIteration, Tally: TallyPending,
		Colour: Colour{"#ffffff", grey, darkGrey, ToneQuiet}, Doc: "It has not started yet.",
	},
	{
		Status: Completed, Of: OfStep | OfIteration | OfRun, Ending: Good, Tally: TallySuccess,
		Colour: Colour{"#c8e6c9", "#1a7a43", "#4cc483", ToneGood},
		List:   Listing{Executions: []string{"Completed"}, Attribute: true, Default: true},
		Doc:    "It succeeded.",
	},
	{
		Status: Partial, Of: OfStep | OfIteration | OfRun, Ending: Mixed, Tally: TallySuccess,
		Colour: Colour{"#fff3b0", amber, darkAmber, ToneWarning},
		List:   Listing{Executions: []string{"Completed"}, Attribute: true},
		Doc:    "Enough iterations succeeded, but not all. Used for loops, runs and steps that run a playbook.",
	},
	{
		Status: Cancelled, Of: OfStep | OfIteration | OfRun, Ending: Bad, Tally: TallyCancelled,
		Colour: Colour{"#d5d8dc", grey, darkGrey, ToneQuiet},
		List:   Listing{Executions: []string{"Canceled"}, Default: true},
		Doc:    "It was cancelled, or never started.",
	},
	{
		Status: Skipped, Of: OfStep | OfRun, Ending: Good,
		Colour: Colour{"#eceff1", grey, darkGrey, ToneQuiet},
		List:   Listing{Executions: []string{"Completed"}, Attribute: true},
		Doc:    "No branch reached the step; or the run found no free slot under its concurrency key, with `on_conflict: skip`.",
	},
}

// Statuses returns all statuses with their descriptions, in display order.
func Statuses() []StatusInfo { return slices.Clone(statuses) }

// EachStatus calls yield with the statuses in display order, until it returns false.
func EachStatus(yield func(Status) bool) {
	for i := range statuses {
		if !yield(statuses[i].Status) {
			return
		}
	}
}

// StatusesOf returns the statuses that an owner can have, in display order.
func StatusesOf(owner Owner) []Status {
	return lists.Pick(statuses, func(info StatusInfo) (Status, bool) { return info.Status, info.Of&owner != 0 })
}

// Info returns the description of the status; false for an unknown one.
func (s Status) Info() (StatusInfo, bool) {
	i := slices.IndexFunc(statuses, func(info StatusInfo) bool { return info.Status == s })
	if i < 0 {
		return StatusInfo{}, false
	}
	return statuses[i], true
}

// DisplayWord returns the status as pages and graphs show it.
func (s Status) DisplayWord() string {
	switch s {
	case RetryPending:
		return "waiting to retry"
	case Awaiting:
		return "awaiting an answer"
	}
	return strings.ReplaceAll(string(s), "_", " ")
}

// Ending returns the ending of the status; Open for an unknown one.
func (s Status) Ending() Ending {
	info, _ := s.Info()
	return info.Ending
}

// Ended reports whether the status is final.
func (s Status) Ended() bool { return s.Ending() != Open }

// LoopTally returns the counter of a loop for iterations with the status. Unknown statuses count as running, so that
// every iteration is counted.
func (s Status) LoopTally() Tally {
	if info, _ := s.Info(); info.Tally != TallyNone {
		return info.Tally
	}
	return TallyRunning
}

// StatusColour returns the colour of the status; of pending for an unknown one.
func (s Status) StatusColour() Colour {
	info, known := s.Info()
	if !known {
		info, _ = Pending.Info()
	}
	return info.Colour
}

// RunStatus returns the status of a run from its Temporal status and its search attribute, which may be "".
func RunStatus(execution string, attribute Status) Status {
	status := Running // of whatever else a run that is open can be
	for _, info := range statuses {
		switch {
		case !slices.Contains(info.List.Executions, execution):
		case info.Status == attribute:
			return attribute
		case info.List.Default:
			status = info.Status
		}
	}
	return status
}

// String returns the names of the owners, for documents.
func (o Owner) String() string {
	text := ""
	for _, of := range []struct {
		owner Owner
		name  string
	}{{OfStep, "step"}, {OfIteration, "iteration"}, {OfRun, "run"}} {
		if o&of.owner == 0 {
			continue
		}
		if text != "" {
			text += ", "
		}
		text += of.name
	}
	return text
}
