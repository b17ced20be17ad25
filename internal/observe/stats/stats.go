// Package stats sums up runs: how many attempts items needed, which errors occurred, what they waited for and what
// took long. It consumes the events of internal/observe/runs in order, and its size is bounded, however many
// iterations a run has.
package stats

import (
	"fmt"
	"time"

	"reprise/internal/observe/cost"
	"reprise/interpreter"
)

// Stats sums up one or several runs, each with its child runs.
type Stats struct {
	Runs []RunSummary `json:"runs"`
	// ChildRuns counts the child runs that steps started and wait for, at any depth.
	ChildRuns ChildRunCounts `json:"child_runs"`
	// Attempts is the histogram of attempts until success, for successful iterations and steps without a loop. Pages
	// do not count: an item that fetched ten pages with twelve attempts needed 3.
	Attempts []Bar        `json:"attempts"`
	Errors   []ErrorCount `json:"errors"`
	Waits    []Waits      `json:"waits"`
	// AttemptsMade counts all attempts, including one for each page. Attempts that are child runs do not count: their
	// own attempts do.
	AttemptsMade int `json:"attempts_made"`
	// AttemptSeconds and WaitSeconds are the total times of these attempts and of all waits. LimitSeconds is the part
	// of the waits with the reason rate_limited or turn, and LimitShare its share of attempts and waits.
	AttemptSeconds float64   `json:"attempt_seconds"`
	WaitSeconds    float64   `json:"wait_seconds"`
	LimitSeconds   float64   `json:"limit_seconds"`
	LimitShare     float64   `json:"limit_share"`
	Steps          []Figures `json:"steps"`
	// Rows is what the runs did to data, by table, including child runs, counted once; nil if nothing was counted.
	Rows *interpreter.Rows `json:"rows,omitempty"`
	// Watermarks are the watermarks of steps that keep a state, in the order in which the steps ended. WatermarksLeft
	// counts those beyond the hundred that are listed.
	Watermarks     []WatermarkMove `json:"watermarks,omitempty"`
	WatermarksLeft int             `json:"watermarks_left,omitempty"`
	// Cost estimates what Temporal Cloud bills for the runs and their child runs. Queries, and the workflows that runs
	// share, are not part of it.
	Cost cost.Cost `json:"cost"`
	// SlowestSteps and SlowestIterations are the ten that took longest, including running ones.
	SlowestSteps      []Slow         `json:"slowest_steps"`
	SlowestIterations []Slow         `json:"slowest_iterations"`
	Failures          []FailureGroup `json:"failures"`
	// FailuresLeft counts the failed items beyond the hundred groups in Failures.
	FailuresLeft int      `json:"failures_left,omitempty"`
	Notes        []string `json:"notes"`
}

// ChildRunCounts counts child runs at any depth.
type ChildRunCounts struct {
	Runs int `json:"runs"` // whose figures are counted
	// Running counts the child runs that have not ended.
	Running int `json:"running"`
	// Unread counts child runs without figures because the server has deleted them.
	Unread int `json:"unread"`
}

// RunSummary is one of the runs.
type RunSummary struct {
	WorkflowID string             `json:"workflow_id"`
	RunID      string             `json:"run_id"`
	Playbook   string             `json:"playbook,omitempty"`
	Status     interpreter.Status `json:"status"`
	StartedAt  time.Time          `json:"started_at"`
	EndedAt    time.Time          `json:"ended_at,omitzero"`
	// At is the time up to which the run was read.
	At     time.Time `json:"at"`
	Events int       `json:"events"`
	// Rows is what the run did to data, including child runs; so far, if it is open.
	Rows *interpreter.Rows `json:"rows,omitempty"`
}

// Bar counts the items that needed From to To attempts; a To of 0 means any larger number.
type Bar struct {
	From  int `json:"from"`
	To    int `json:"to,omitempty"`
	Items int `json:"items"`
}

// ErrorCount counts similar errors: the attempts, and the iterations and steps, that ended with one.
type ErrorCount struct {
	Class    interpreter.Class `json:"class"`
	Kind     interpreter.Kind  `json:"kind"`
	Status   int               `json:"status,omitempty"`
	Attempts int               `json:"attempts"`
	Items    int               `json:"items"`
}

// Waits sums up the waits with one reason.
type Waits struct {
	Reason  string  `json:"reason"`
	Waits   int     `json:"waits"`
	Seconds float64 `json:"seconds"`
}

// Figures are the figures of a step, over all its visits and runs. An item is an iteration, or a visit of a step
// without a loop. Items = Success + Failed + Cancelled + Open.
type Figures struct {
	Playbook string `json:"playbook,omitempty"`
	Step     string `json:"step"`
	// InChildRuns is set if the figures are of child runs only.
	InChildRuns bool `json:"in_child_runs,omitempty"`
	Visits      int  `json:"visits"`
	Items       int  `json:"items"`
	Success     int  `json:"success"`
	Failed      int  `json:"failed"`
	Cancelled   int  `json:"cancelled"`
	Open        int  `json:"open"`
	// FirstTry counts the items that succeeded without a retry, Retried those that were retried, however they ended,
	// and Retries their retries.
	FirstTry int `json:"first_try"`
	Retried  int `json:"retried"`
	Retries  int `json:"retries"`
	// Reliability is FirstTry divided by the number of items that succeeded, failed, or failed once and are still
	// open. RetryRate is Retried divided by the same number. SuccessRate is Success divided by the ended items. They
	// are nil if the divisor is 0.
	Reliability *float64 `json:"reliability"`
	SuccessRate *float64 `json:"success_rate"`
	RetryRate   *float64 `json:"retry_rate"`
	// AttemptsMade is as in Stats; ChildRuns counts the attempts that were child runs.
	AttemptsMade int `json:"attempts_made"`
	ChildRuns    int `json:"child_runs,omitempty"`
	// AttemptSeconds, WaitSeconds and LimitSeconds are as in Stats, but include attempts that are child runs.
	AttemptSeconds float64 `json:"attempt_seconds"`
	WaitSeconds    float64 `json:"wait_seconds"`
	LimitSeconds   float64 `json:"limit_seconds"`
	// Rows is what the step did to data. For a step that runs playbooks, it includes what they did, which the figures
	// of their own steps show too.
	Rows *interpreter.Rows `json:"rows,omitempty"`

	looped       bool    // its items are iterations
	missed       int     // of those that are open have failed once
	childSeconds float64 // of attempts that are child runs
}

// Slow is a step or an iteration and how long it took.
type Slow struct {
	WorkflowID string             `json:"workflow_id"`
	Step       string             `json:"step"`
	Visit      int                `json:"visit"`
	Index      *int               `json:"index,omitempty"`
	Seconds    float64            `json:"seconds"`
	Attempts   int                `json:"attempts,omitempty"`
	Status     interpreter.Status `json:"status"`
}

// FailureGroup has the items of a step that failed in the same way.
type FailureGroup struct {
	Playbook    string            `json:"playbook,omitempty"`
	Step        string            `json:"step"`
	InChildRuns bool              `json:"in_child_runs,omitempty"`
	Class       interpreter.Class `json:"class"`
	Kind        interpreter.Kind  `json:"kind"`
	Status      int               `json:"status,omitempty"`
	Items       int               `json:"items"`
	// Message is the message of the first failure; Indexes lists the first iterations.
	Message string `json:"message"`
	Indexes []int  `json:"indexes,omitempty"`
}

// Name returns the range of attempts that a bar counts.
func (b Bar) Name() string {
	switch b.To {
	case b.From:
		return fmt.Sprint(b.From)
	case 0:
		return fmt.Sprintf("%d or more", b.From)
	}
	return fmt.Sprintf("%d–%d", b.From, b.To)
}

// Name returns the step with its visit and index.
func (s Slow) Name() string {
	name := s.Step
	if s.Visit > 1 {
		name += fmt.Sprintf("#%d", s.Visit)
	}
	if s.Index != nil {
		name += fmt.Sprintf("[%d]", *s.Index)
	}
	return name
}

// PercentText formats a share. It shows 0% and 100% only for exact values.
func PercentText(share float64) string {
	switch text := fmt.Sprintf("%.1f%%", 100*share); {
	case text == "100.0%" && share < 1:
		return "99.9%"
	case text == "0.0%" && share > 0:
		return "<0.1%"
	default:
		return text
	}
}
