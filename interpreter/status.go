package interpreter

import (
	"slices"
	"strings"

	"reprise/interpreter/lists"
)

// Status is the status of a step, an iteration or a run, or what an envelope says. These
// are two sets: an envelope is StatusSuccess, StatusError or Partial, the others are
// never any of the first two.
type Status string

// The statuses of steps, iterations and runs; each has a row in the table below.
const (
	Completed Status = "completed"
	Partial   Status = "partial_success"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
	Skipped   Status = "skipped"
	Running   Status = "running"
	Pending   Status = "pending"
	// Awaiting is the status of what has an attempt that a person or another system answers.
	Awaiting Status = "awaiting"
	// RetryPending is what waits before it tries again.
	RetryPending Status = "retry_pending"
	// Paused is a step, an iteration or a run that people hold.
	Paused Status = "paused"
	// Queued is a run that waits for its turn under its concurrency key.
	Queued Status = "queued"
)

// Owner says whose status a status can be.
type Owner int

// The owners of statuses, which add up.
const (
	OfStep Owner = 1 << iota
	OfIteration
	OfRun
)

// Ending says whether a status is open, or ended well, in part or badly.
type Ending int

// The endings.
const (
	Open Ending = iota
	Good
	Mixed
	Bad
)

// Tally is the figure of a loop that counts the iterations of a status.
type Tally int

// The tallies. Those of an open loop add up to its size.
const (
	TallyNone Tally = iota // of no iteration
	TallySuccess
	TallyFailed
	TallyCancelled
	TallyRunning
	TallyWaiting
	TallyPending
)

// Colour is how a status is drawn. Fill is a background for dark letters, distinct from the
// others in grey too; Ink and DarkInk are for letters and bars on light and dark pages, and
// Tone is for terminals, whose users choose the colours.
type Colour struct {
	Fill, Ink, DarkInk string
	Tone               Tone
}

// Tone classifies statuses for terminals.
type Tone int

// The tones.
const (
	ToneNone    Tone = iota // of no status
	ToneBad                 // it failed
	ToneWarning             // something went wrong, and may still end well
	ToneGood                // it ended well
	ToneActive              // it runs
	ToneAsks                // somebody has to act
	ToneHeld                // people or a queue hold it
	ToneQuiet               // it needs no attention
)

// Listing is how the server's list of runs knows a status.
type Listing struct {
	// Executions are the statuses of such runs in Temporal.
	Executions []string
	// Attribute says that finding them requires our search attribute; Default that a run
	// without that attribute has this status.
	Attribute, Default bool
}

// StatusInfo describes a status. Code that shows, counts, filters or documents statuses reads it,
// so a new status is a new row.
type StatusInfo struct {
	Status Status
	Of     Owner
	Ending Ending
	Tally  Tally
	Colour Colour
	List   Listing
	// Doc says in whole sentences what it means, for docs/reference/statuses.md.
	Doc string
}

// The colours that several statuses share.
const (
	amber, darkAmber = "#9a5b00", "#f0a840"
	grey, darkGrey   = "#667080", "#98a2b1"
)

// statuses is the table, in display order: what is wrong, what waits, what runs, what is done.
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
		Doc:    "It waits before the next attempt. A run has this status when everything in it waits.",
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

// Statuses returns the table, in display order.
func Statuses() []StatusInfo { return slices.Clone(statuses) }

// EachStatus calls yield with the statuses in the order of the table, until it returns false.
func EachStatus(yield func(Status) bool) {
	for i := range statuses {
		if !yield(statuses[i].Status) {
			return
		}
	}
}

// StatusesOf are the statuses that something can have, in the order of the table.
func StatusesOf(owner Owner) []Status {
	return lists.Pick(statuses, func(info StatusInfo) (Status, bool) { return info.Status, info.Of&owner != 0 })
}

// Info is the row of the status; false for one without.
func (s Status) Info() (StatusInfo, bool) {
	i := slices.IndexFunc(statuses, func(info StatusInfo) bool { return info.Status == s })
	if i < 0 {
		return StatusInfo{}, false
	}
	return statuses[i], true
}

// Word is the status as people read it on pages and in pictures.
func (s Status) Word() string {
	switch s {
	case RetryPending:
		return "waiting to retry"
	case Awaiting:
		return "awaiting an answer"
	}
	return strings.ReplaceAll(string(s), "_", " ")
}

// Ending is the ending of the status; Open for one without a row.
func (s Status) Ending() Ending {
	info, _ := s.Info()
	return info.Ending
}

// Ended reports whether what has the status has ended.
func (s Status) Ended() bool { return s.Ending() != Open }

// Tally is the figure of a loop that counts an iteration of the status. One without a figure
// counts as running, so none is uncounted.
func (s Status) Tally() Tally {
	if info, _ := s.Info(); info.Tally != TallyNone {
		return info.Tally
	}
	return TallyRunning
}

// StatusColour is the colour of the status, or of one that is pending.
func (s Status) StatusColour() Colour {
	info, known := s.Info()
	if !known {
		info, _ = Pending.Info()
	}
	return info.Colour
}

// RunStatus is the status of a run from its status in Temporal, and maybe the
// search attribute another.
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

// String names the owners as documents do.
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
