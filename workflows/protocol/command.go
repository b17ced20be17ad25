package protocol

import (
	"reprise/interpreter"
)

// The updates with which people steer a run (docs/how-to/steer-a-run.md).
// Each takes a CommandInput and answers with a CommandResult; any SDK can send them. They
// are part of histories, so their names never change.
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
	// Step is the step that the command is for; "" is the whole run.
	Step string `json:"step,omitempty"`
	// Index is the iteration of the step's loop that the command is for; nil is all that wait.
	Index *int `json:"index,omitempty"`
	// Reason and By say why, and who.
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// Tuning is what SetUpdate sets.
	Tuning *interpreter.Tuning `json:"tuning,omitempty"`
}

// CommandResult is the control of a run after a command: the answer to an update.
type CommandResult struct {
	// Changed is false if the command changed nothing, such as a pause of a run that is paused.
	Changed bool                `json:"changed"`
	Control interpreter.Control `json:"control"`
	// Ended is how many waits the command has ended in the run's own history. Waits in
	// loops are ended by the loops, and Signalled says that there are some.
	Ended     int  `json:"ended,omitempty"`
	Signalled bool `json:"signalled,omitempty"`
}

// MaxSaid bounds a reason, a note and a name that people give, in bytes: clients can send any, and they are in memos,
// summaries and messages.
const MaxSaid = 500

// Pauses applies a pause of the run or step to its control; false if it was paused already.
func (c CommandInput) Pauses(control *interpreter.Control) bool { return control.Pause(c.Step) }

// Resumes applies a resume to the control; false if it was not paused.
func (c CommandInput) Resumes(control *interpreter.Control) bool { return control.Resume(c.Step) }

// Tunes applies the tuning of a step (window, rate) to the control; false if it was so already.
func (c CommandInput) Tunes(control *interpreter.Control) bool {
	control.TuneStep(c.Step, *c.Tuning)
	return true
}
