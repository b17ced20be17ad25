// Package meter names what is counted of runs, and the spans that are recorded of them once
// they have ended. It knows neither Temporal nor OpenTelemetry: workflows and
// activities count, and package telemetry exports both.
package meter

import (
	"strconv"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// Kind says how a metric is counted.
type Kind string

// The kinds of metrics.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram" // of seconds
)

// Metric is something that is counted, under a name that dashboards know. No
// label of it holds an element, a URL, a message or anything else that comes from
// data.
type Metric struct {
	Name   string // as Prometheus has it
	Kind   Kind
	Labels []string // in the order in which values are given
	Help   string
}

// Labels of metrics.
const (
	LabelPlaybook  = "playbook"
	LabelStep      = "step"
	LabelTool      = "tool"
	LabelRole      = "role"
	LabelStatus    = "status"
	LabelState     = "state"
	LabelClass     = "class"
	LabelKind      = "kind"
	LabelAttempt   = "attempt"
	LabelReason    = "reason"
	LabelResult    = "result"
	LabelOperation = "operation"
)

// Values of LabelRole: whose call it is.
const (
	RoleStep = "step"
	RoleSink = "sink"
)

// ClassNone is the class of what has not failed.
const ClassNone = "none"

// Metrics of workflows, which count once per event, whatever is replayed.
var (
	Runs = &Metric{
		"reprise_runs_total", Counter,
		[]string{LabelPlaybook, LabelStatus},
		"Runs that have ended, by how they did.",
	}
	RunTime = &Metric{
		"reprise_run_duration_seconds", Histogram,
		[]string{LabelPlaybook, LabelStatus},
		"How long runs took, their waits included.",
	}
	Steps = &Metric{
		"reprise_steps_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelStatus},
		"Visits of steps that have ended, by how they did.",
	}
	StepTime = &Metric{
		"reprise_step_duration_seconds", Histogram,
		[]string{LabelPlaybook, LabelStep, LabelStatus},
		"How long visits of steps took, their waits and iterations included.",
	}
	Iterations = &Metric{
		"reprise_iterations_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelState},
		"Iterations of loops that have ended, by their state.",
	}
	DeadLetters = &Metric{
		"reprise_dead_letters_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelKind, LabelClass},
		"Iterations that ended as failed, by kind and class of the error.",
	}
	Calls = &Metric{
		"reprise_calls_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelTool, LabelRole, LabelStatus},
		"Calls that have ended, those of sinks included.",
	}
	CallTime = &Metric{
		"reprise_call_duration_seconds", Histogram,
		[]string{LabelPlaybook, LabelStep, LabelTool, LabelRole, LabelStatus},
		"How long calls took, from the first attempt to the end, with their waits.",
	}
	Retries = &Metric{
		"reprise_task_retry_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelTool, LabelClass, LabelAttempt},
		"Attempts that failed and are made again; attempt is which retry of its request that is: 1 to 10, or more.",
	}
	Exhausted = &Metric{
		"reprise_task_retry_exhausted_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelTool, LabelClass},
		"Calls that failed because a policy was exhausted.",
	}
	Waits = &Metric{
		"reprise_wait_seconds", Histogram,
		[]string{LabelPlaybook, LabelStep, LabelReason},
		"Durable waits, as long as they were planned: before a retry (failure), as the other side asked (rate_limited), before a poll or a page, or for a rate limit (turn).",
	}
)

// WatermarkAge is given the watermark of a step that keeps a state, in seconds since 1970, and shows
// how old it is: that grows until the next run moves it.
var WatermarkAge = &Metric{
	"reprise_watermark_age_seconds", Gauge,
	[]string{LabelPlaybook, LabelStep},
	"How old the watermark is that a step with incremental of type time or date has moved last, of a loop the oldest one.",
}

// Metrics of activities, which count what this worker has done; workflows count
// attempts that are answered from outside, and those that are runs of other playbooks.
var (
	Attempts = &Metric{
		"reprise_attempts_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelTool, LabelRole, LabelClass},
		"Attempts that were made, by the class of the error; none for those that went well.",
	}
	AttemptTime = &Metric{
		"reprise_attempt_duration_seconds", Histogram,
		[]string{LabelPlaybook, LabelStep, LabelTool, LabelRole, LabelClass},
		"How long attempts took, without the wait for a rate limit.",
	}
	InFlight = &Metric{
		"reprise_attempts_in_flight", Gauge,
		[]string{LabelPlaybook, LabelStep, LabelTool, LabelRole},
		"Attempts that this worker is making: those that have not ended and wait for no rate limit.",
	}
	Pages = &Metric{
		"reprise_pages_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelTool},
		"Pages that were fetched: attempts of steps that went well.",
	}
	Rows = &Metric{
		"reprise_rows_written_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelTool},
		"Rows that sinks wrote, as far as the destination reports, else that they were given.",
	}
	TurnTime = &Metric{
		"reprise_rate_limit_wait_seconds", Histogram,
		[]string{LabelPlaybook, LabelStep},
		"How long attempts waited in their worker for a rate limit.",
	}
	StoreTime = &Metric{
		"reprise_payload_store_seconds", Histogram,
		[]string{LabelOperation, LabelResult},
		"Operations of the payload store.",
	}
	StoreBytes = &Metric{
		"reprise_payload_store_bytes_total", Counter,
		[]string{LabelOperation, LabelResult},
		"Bytes that operations of the payload store were about.",
	}
)

// Metrics of the interpreter of this process, replays included.
var (
	Loads = &Metric{
		"reprise_interpreter_loads_total", Counter,
		[]string{LabelResult},
		"Playbooks that were taken from the cache, or compiled; replays count.",
	}
	Evaluations = &Metric{
		"reprise_interpreter_evaluations_total", Counter, nil,
		"Expressions that were evaluated; replays count.",
	}
)

// Memory of this process, and the workflows that it keeps.
var (
	Memory = &Metric{
		"reprise_memory_live_bytes", Gauge, nil,
		"Memory in use, as the last garbage collection found it.",
	}
	MemoryBound = &Metric{
		"reprise_memory_bound_bytes", Gauge, nil,
		"Memory in use above which the workflows that are kept are dropped.",
	}
	CacheDrops = &Metric{
		"reprise_cache_drops_total", Counter, nil,
		"Times that all workflows that were kept were dropped, as the memory in use was above its bound.",
	}
)

// All are the metrics of a worker, in the order in which they are documented.
func All() []*Metric {
	return []*Metric{
		Runs, RunTime, Steps, StepTime, Iterations, DeadLetters, Calls, CallTime, Retries, Exhausted, Waits, WatermarkAge,
		Attempts, AttemptTime, InFlight, Pages, Rows, TurnTime, StoreTime, StoreBytes, Loads, Evaluations,
		Memory, MemoryBound, CacheDrops,
	}
}

// Recorder takes what is counted, with the values of the metric's labels in
// their order. It is safe for concurrent use.
type Recorder interface {
	// Add counts n, which of a gauge may be less than 0.
	Add(m *Metric, n int64, values ...string)
	Observe(m *Metric, took time.Duration, values ...string)
}

// maxRetryLabel is the last retry that LabelAttempt distinguishes.
const maxRetryLabel = 10

// RetryLabel is the value of LabelAttempt for the n-th retry of a request.
func RetryLabel(n int) string {
	if n > maxRetryLabel {
		return "more"
	}
	return strconv.Itoa(max(n, 1))
}

// ClassOf is the value of LabelClass for an error; nil is none.
func ClassOf(failure *interpreter.ErrorObject) string {
	if failure == nil {
		return ClassNone
	}
	return string(failure.Class)
}

// FailedAttempt counts what was decided about an attempt that failed; nil is one that
// did not.
func FailedAttempt(to Recorder, facts call.Facts, failed *call.FailedAttempt) {
	if failed != nil && !failed.Ended {
		to.Add(Retries, 1, facts.Playbook, facts.Step, facts.Tool, ClassOf(failed.Error), RetryLabel(failed.Retry))
	}
}

// Attempt counts an attempt that has ended, with how long it took: less than 0 where
// that is not known.
func Attempt(to Recorder, facts call.Facts, failure *interpreter.ErrorObject, took time.Duration) {
	role := Role(facts.Place)
	values := []string{facts.Playbook, facts.Step, facts.Tool, role, ClassOf(failure)}
	to.Add(Attempts, 1, values...)
	if took >= 0 {
		to.Observe(AttemptTime, took, values...)
	}
	if failure == nil && role == RoleStep {
		to.Add(Pages, 1, facts.Playbook, facts.Step, facts.Tool)
	}
}

// Call counts a call that has ended.
func Call(to Recorder, facts call.Facts, result interpreter.CallResult) {
	role := Role(facts.Place)
	values := []string{facts.Playbook, facts.Step, facts.Tool, role, string(result.Status)}
	to.Add(Calls, 1, values...)
	to.Observe(CallTime, result.Meta.EndedAt.Sub(result.Meta.StartedAt), values...)
	// A step fails with its sink, with the sink's error.
	if failure := result.Error; failure != nil && failure.Exhausted && (role == RoleSink || failure.Kind != interpreter.KindSink) {
		to.Add(Exhausted, 1, facts.Playbook, facts.Step, facts.Tool, ClassOf(failure))
	}
}

// Role is the value of LabelRole for a place in the playbook, which only sinks
// have.
func Role(place string) string {
	if place != "" {
		return RoleSink
	}
	return RoleStep
}
