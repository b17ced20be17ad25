package protocol

import (
	"reprise/interpreter"
)

// The updates with which people steer a run (docs/how-to/steer-a-run.md). Each takes a CommandInput and returns a
// CommandResult; any SDK can send them. They are part of histories, so their names never change.
const (
	PauseUpdate    = "pause"
	ResumeUpdate   = "resume"
	RetryNowUpdate = "retry_now"
	SkipUpdate     = "skip"
	SetUpdate      = "set"
)

// CommandInput is the argument of the updates; kept in workflow history. Which fields
// are read depends on the update.
type CommandInput struct {
	// Step is the step that the command is for; "" means the whole run.
	Step string `json:"step,omitempty"`
	// Index is the iteration of the step's loop that the command is for; nil means all that wait.
	Index *int `json:"index,omitempty"`
	// Reason and By say why the command was given, and by whom; both may be "".
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// Tuning is the new setting, for SetUpdate.
	Tuning *interpreter.Tuning `json:"tuning,omitempty"`
}

// CommandResult is the result of an update: the control of the run after the command.
type CommandResult struct {
	// Changed is false if the command had no effect, such as a pause of a run that is already paused.
	Changed bool                `json:"changed"`
	Control interpreter.Control `json:"control"`
	// Ended is the number of waits that the command ended in the run's own history. Signalled says that the command
	// was also sent to child workflows, which end their waits themselves.
	Ended     int  `json:"ended,omitempty"`
	Signalled bool `json:"signalled,omitempty"`
}

// MaxSaid bounds a reason, a note and a name that people give, in bytes: clients can send any, and they appear in
// memos, summaries and messages.
const MaxSaid = 500

// ApplyPause applies a pause of the run or step to its control; false if it was already paused.
func (c CommandInput) ApplyPause(control *interpreter.Control) bool { return control.Pause(c.Step) }

// ApplyResume applies a resume to the control; false if it was not paused.
func (c CommandInput) ApplyResume(control *interpreter.Control) bool { return control.Resume(c.Step) }

// ApplyTuning applies the tuning of a step (window, rate) to the control. It always returns true.
func (c CommandInput) ApplyTuning(control *interpreter.Control) bool {
	control.TuneStep(c.Step, *c.Tuning)
	return true
}
