package interpreter

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter/playbook"
	"reprise/interpreter/ratelimit"
)

// ControlMemo is the key under which a run keeps its Control in the memo of its
// workflow, where every description of the run has it.
const ControlMemo = "reprise_control"

// Control is the commands of people to an open run (docs/how-to/steer-a-run.md).
// Kept in workflow history, and in the memo of the run's workflow.
type Control struct {
	// Version counts the commands, so that who receives them in two ways knows
	// which is the later one.
	Version int  `json:"version"`
	Paused  bool `json:"paused,omitempty"`
	// Steps are the steps that are paused by themselves, sorted.
	Steps []string `json:"steps,omitempty"`
	// Tunings are by step.
	Tunings map[string]Tuning `json:"tunings,omitempty"`
	// Said is about the last command.
	Said Said `json:"said,omitzero"`
	// Held says who has paused what is paused: the run under "", steps by name.
	Held map[string]Said `json:"held,omitempty"`
}

// Said is who said something, when and why; kept in workflow history.
type Said struct {
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// Tuning is people's settings of a running step; kept in workflow history.
type Tuning struct {
	// MaxConcurrency replaces that of the step's loop; 0 keeps the playbook's.
	MaxConcurrency int `json:"max_concurrency,omitempty"`
	// Rate is the rate of the step's attempts; nil is the playbook's.
	Rate *Rate `json:"rate,omitempty"`
}

// Rate is how many attempts may begin in a time; kept in workflow history.
type Rate struct {
	Requests   int     `json:"requests"`
	PerSeconds float64 `json:"per_seconds"`
}

// Hold is why an attempt is not made. Kept in workflow history.
type Hold struct {
	// Version is the version of the Control which held it: its run or its step is paused.
	Version int `json:"version,omitempty"`
	// Run is the workflow ID of the run above whose Control that was; "" is the
	// attempt's own.
	Run string `json:"run,omitempty"`
	// Exhausted says that its policy has used up its attempts and leaves it to
	// people how the call continues.
	Exhausted bool `json:"exhausted,omitempty"`
	// Failure is the failure of a poll if people give it up, without its answer; nil if the
	// last attempt failed.
	Failure *ErrorObject `json:"failure,omitempty"`
	// Recorded says that the history has a marker of the hold, because it waits for people.
	Recorded bool `json:"recorded,omitempty"`
}

// Settlement is what a person decided about a call that waits or is paused: `retry-now` makes its next attempt at once, `skip` fails
// it. Kept in workflow history.
type Settlement struct {
	// Skip fails the item; else its next attempt is made now.
	Skip bool `json:"skip,omitempty"`
	// Reason and By say why, and who.
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// SkipText says who has skipped an item, and why.
func (s Settlement) SkipText() string {
	said := "skipped"
	if s.By != "" {
		said += " by " + s.By
	}
	if s.Reason != "" {
		said += ": " + s.Reason
	}
	return said
}

// Wait returns the hold as a wait without a known end. failure comes from the state.
func (h Hold) Wait(failure *ErrorObject) Wait {
	if h.Exhausted {
		return Wait{Reason: ReasonPerson, Summary: "waits for a person: " + failure.ShortText()}
	}
	return Wait{Reason: ReasonPaused, Summary: "paused"}
}

// IsZero has encoding/json omit an empty record.
func (c Control) IsZero() bool { return c.Version == 0 }

// Of returns the part of the control that concerns a step: whether it is held, and its
// settings. Its size does not depend on other steps.
func (c Control) Of(step string) Control {
	of := Control{Version: c.Version, Paused: c.Paused}
	if _, alone := slices.BinarySearch(c.Steps, step); alone {
		of.Steps = []string{step}
	}
	if tuning, tuned := c.Tunings[step]; tuned {
		of.Tunings = map[string]Tuning{step: tuning}
	}
	return of
}

// maxControl bounds the Control of a run, as JSON in bytes: it is in the memo, which
// every attempt and every list of runs reads.
const maxControl = 50_000

// CheckSize returns an error if the control is larger than a run can keep.
func (c Control) CheckSize() error {
	if size := EncodedSize(c); size > maxControl {
		return fmt.Errorf("the pauses and settings, with their authors and reasons, would have %d bytes, and a run can keep %d; "+
			"pause the whole run, resume steps first, or give a shorter reason", size, maxControl)
	}
	return nil
}

// Check returns an error for values that cannot be set.
func (t Tuning) Check() error {
	if t.MaxConcurrency < 0 || t.MaxConcurrency > playbook.MaxConcurrencyLimit {
		return fmt.Errorf("max_concurrency must be from 1 to %d, not %d", playbook.MaxConcurrencyLimit, t.MaxConcurrency)
	}
	if t.Rate != nil && (t.Rate.Requests < 1 || t.Rate.PerSeconds <= 0) {
		return fmt.Errorf("a rate limit needs requests and a time of more than 0")
	}
	return nil
}

// IsPaused reports whether no attempt of a step may begin.
func (c Control) IsPaused(step string) bool {
	_, alone := slices.BinarySearch(c.Steps, playbook.LoopStep(step))
	return c.Paused || alone
}

// AnyPaused reports whether it holds the run or some of its steps.
func (c Control) AnyPaused() bool { return c.Paused || len(c.Steps) > 0 }

// Pause holds the run, or with a name one of its steps; false where it was so
// already.
func (c *Control) Pause(step string) bool {
	at, alone := slices.BinarySearch(c.Steps, step)
	switch {
	case step == "" && c.Paused, step != "" && alone:
		return false
	case step == "":
		c.Paused = true
	default:
		c.Steps = slices.Insert(slices.Clone(c.Steps), at, step)
	}
	c.Version++
	return true
}

// Resume resumes the run, its steps included, or with a name one of them;
// false where nothing was held.
func (c *Control) Resume(step string) bool {
	at, alone := slices.BinarySearch(c.Steps, step)
	switch {
	case step == "" && c.AnyPaused():
		c.Paused, c.Steps = false, nil
	case step != "" && alone:
		c.Steps = slices.Delete(slices.Clone(c.Steps), at, at+1)
	default:
		return false
	}
	c.Version++
	return true
}

// Record keeps who gave the last command, and so who paused what is held since.
func (c *Control) Record(said Said) {
	names := c.Steps
	if c.Paused {
		names = append([]string{""}, names...)
	}
	held := make(map[string]Said, len(names))
	for _, name := range names {
		if before, found := c.Held[name]; found {
			held[name] = before
		} else {
			held[name] = said
		}
	}
	c.Said, c.Held = said, held
}

// PausedBy is who paused a step, or the run with it.
func (c Control) PausedBy(step string) Said {
	if c.Paused {
		return c.Held[""]
	}
	return c.Held[step]
}

// TuningOf returns people's settings of a step.
func (c Control) TuningOf(step string) Tuning { return c.Tunings[step] }

// TuneStep lays what people set for a step over what was set before.
func (c *Control) TuneStep(step string, tuning Tuning) {
	tunings := playbook.CloneMap(c.Tunings, 1)
	laid := tunings[step]
	if tuning.MaxConcurrency > 0 {
		laid.MaxConcurrency = tuning.MaxConcurrency
	}
	if tuning.Rate != nil {
		laid.Rate = tuning.Rate
	}
	tunings[step] = laid
	c.Tunings = tunings
	c.Version++
}

// Over lays the rate over a limit of the playbook, nil for none.
func (r *Rate) Over(limit *ratelimit.Limit, in ToolInput) *ratelimit.Limit {
	if r == nil {
		return limit
	}
	laid := ratelimit.Limit{Key: in.LimitKey()}
	if limit != nil {
		laid = *limit
	}
	laid.Requests, laid.PerSeconds = r.Requests, r.PerSeconds
	return &laid
}

// ControlPatience is how old what an attempt knows of its run's Control may be
// when it begins.
const ControlPatience = time.Second
