package interpreter

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter/playbook"
	"reprise/interpreter/ratelimit"
)

// ControlMemo is the key of a run's Control in the memo of its workflow, which is part of every description of the
// run.
const ControlMemo = "reprise_control"

// Control has the pauses and settings that people requested of an open run (docs/how-to/steer-a-run.md). Kept in
// workflow history, and in the memo of the run's workflow.
type Control struct {
	// Version counts the commands, so that a receiver knows which of two Controls is newer.
	Version int  `json:"version"`
	Paused  bool `json:"paused,omitempty"`
	// Steps are the steps that are paused individually, sorted.
	Steps []string `json:"steps,omitempty"`
	// Tunings are settings by step.
	Tunings map[string]Tuning `json:"tunings,omitempty"`
	// Said is who gave the last command, when and why.
	Said Said `json:"said,omitzero"`
	// Held says who paused what is paused: under "" for the run, under their names for steps.
	Held map[string]Said `json:"held,omitempty"`
}

// Said is who requested something, when and why; kept in workflow history.
type Said struct {
	By     string    `json:"by,omitempty"` // a person or system, as it named itself
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"` // when the run received it
}

// Tuning has people's settings for a running step; kept in workflow history.
type Tuning struct {
	// MaxConcurrency replaces that of the step's loop; 0 keeps the value of the playbook.
	MaxConcurrency int `json:"max_concurrency,omitempty"`
	// Rate bounds the step's attempts; nil keeps the rate of the playbook.
	Rate *Rate `json:"rate,omitempty"`
}

// Rate is the number of attempts that may begin in a period; kept in workflow history.
type Rate struct {
	Requests   int     `json:"requests"`
	PerSeconds float64 `json:"per_seconds"`
}

// Hold is the reason why an attempt is not made. Kept in workflow history.
type Hold struct {
	// Version is the version of the Control with the pause.
	Version int `json:"version,omitempty"`
	// Run is the workflow ID of the parent run with that Control; "" for the attempt's own run.
	Run string `json:"run,omitempty"`
	// Exhausted says that the attempts of its policy are used up and that people must decide how the call
	// continues.
	Exhausted bool `json:"exhausted,omitempty"`
	// Failure is the failure of a poll if people give it up, without the last response; nil if the last attempt
	// failed.
	Failure *ErrorObject `json:"failure,omitempty"`
	// Recorded says that the history has a marker of the hold.
	Recorded bool `json:"recorded,omitempty"`
}

// Settlement is what a person decided about a call that waits or is paused: `retry-now` makes its next attempt at once, `skip` fails
// it. Kept in workflow history.
type Settlement struct {
	// Skip makes the call fail; otherwise its next attempt is made now.
	Skip bool `json:"skip,omitempty"`
	// Reason and By say why it was decided, and by whom.
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
}

// SkipText describes who skipped the call, and why.
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

// DescribeWait returns the hold as a wait without a known end. failure is the failure of the call, used if Exhausted is
// set.
func (h Hold) DescribeWait(failure *ErrorObject) Wait {
	if h.Exhausted {
		return Wait{Reason: ReasonPerson, Summary: "needs a person: " + failure.ShortText()}
	}
	return Wait{Reason: ReasonPaused, Summary: "paused"}
}

// IsZero makes encoding/json omit an empty Control.
func (c Control) IsZero() bool { return c.Version == 0 }

// OfStep returns the part of the control that concerns a step: whether it is paused, and its settings. Its size does
// not depend on other steps.
func (c Control) OfStep(step string) Control {
	of := Control{Version: c.Version, Paused: c.Paused}
	if _, alone := slices.BinarySearch(c.Steps, step); alone {
		of.Steps = []string{step}
	}
	if tuning, tuned := c.Tunings[step]; tuned {
		of.Tunings = map[string]Tuning{step: tuning}
	}
	return of
}

// maxControl bounds the Control of a run, in bytes of JSON: it is in the memo, which every attempt and every list
// of runs reads.
const maxControl = 50_000

// CheckSize returns an error if the control is larger than maxControl.
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

// IsPaused reports whether no attempt of a step may begin because the step or the run is paused.
func (c Control) IsPaused(step string) bool {
	_, alone := slices.BinarySearch(c.Steps, playbook.LoopStep(step))
	return c.Paused || alone
}

// AnyPaused reports whether the run or any step is paused.
func (c Control) AnyPaused() bool { return c.Paused || len(c.Steps) > 0 }

// Pause pauses the run or, with a name, one of its steps; it returns false if that was already paused.
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

// Resume resumes the run with all its steps or, with a name, one step; it returns false if nothing was paused.
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

// RecordSaid stores who gave the last command, and for newly paused things who paused them.
func (c *Control) RecordSaid(said Said) {
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

// PausedBy returns who paused a step, or the run.
func (c Control) PausedBy(step string) Said {
	if c.Paused {
		return c.Held[""]
	}
	return c.Held[step]
}

// TuningOf returns people's settings of a step.
func (c Control) TuningOf(step string) Tuning { return c.Tunings[step] }

// TuneStep merges new settings for a step over earlier ones.
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

// OverrideLimit returns a limit of the playbook, which may be nil, with its rate replaced by r, if r is not nil.
func (r *Rate) OverrideLimit(limit *ratelimit.Limit, in ToolInput) *ratelimit.Limit {
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

// ControlPatience is the maximum age of what an attempt knows about its run's Control when it begins.
const ControlPatience = time.Second
