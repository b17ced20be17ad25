// Package meter defines the metrics and the spans of runs. It depends on neither Temporal nor OpenTelemetry:
// workflows and activities count with it, and package telemetry exports the counts.
package meter

import (
	"strconv"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// Kind is the type of a metric.
type Kind string

// The kinds of metrics.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram" // of seconds
)

// Metric is a metric by the name that dashboards use. No label holds an element, a URL, a message or anything else
// from data.
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
	LabelTable     = "table"
	// LabelConnection is the name of a connection.
	LabelConnection = "connection"
	LabelTaskQueue  = "task_queue"
	LabelType       = "type"
)

// Values of LabelRole: what the call belongs to.
const (
	RoleStep = "step"
	RoleSink = "sink"
)

// ClassNone is the value of LabelClass without an error.
const ClassNone = "none"

// Metrics of workflows, counted once per event; replays count nothing.
var (
	Runs = &Metric{
		"reprise_runs_total", Counter,
		[]string{LabelPlaybook, LabelStatus},
		"Runs that have ended, by status.",
	}
	RunTime = &Metric{
		"reprise_run_duration_seconds", Histogram,
		[]string{LabelPlaybook, LabelStatus},
		"How long runs took, including their waits.",
	}
	Steps = &Metric{
		"reprise_steps_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelStatus},
		"Step visits that have ended, by status.",
	}
	StepTime = &Metric{
		"reprise_step_duration_seconds", Histogram,
		[]string{LabelPlaybook, LabelStep, LabelStatus},
		"How long step visits took, including their waits and iterations.",
	}
	StepRows = &Metric{
		"reprise_rows_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelTable, LabelOperation},
		"Rows of step visits that have ended, by what was done: read (without a table), written, deleted, rejected, discarded; and inserted and updated, the parts of written that are known. Rows of a playbook that a step runs are counted for that playbook's steps.",
	}
	Iterations = &Metric{
		"reprise_iterations_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelState},
		"Iterations of loops that have ended, by state.",
	}
	DeadLetters = &Metric{
		"reprise_dead_letters_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelKind, LabelClass},
		"Iterations that failed, by kind and class of the error.",
	}
	Calls = &Metric{
		"reprise_calls_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelTool, LabelRole, LabelStatus},
		"Calls that have ended, including calls of sinks.",
	}
	CallTime = &Metric{
		"reprise_call_duration_seconds", Histogram,
		[]string{LabelPlaybook, LabelStep, LabelTool, LabelRole, LabelStatus},
		"How long calls took from the first attempt to the end, including their waits.",
	}
	Retries = &Metric{
		"reprise_task_retry_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelTool, LabelClass, LabelAttempt},
		"Failed attempts that are retried. attempt is the number of the retry: 1 to 10, or more.",
	}
	Exhausted = &Metric{
		"reprise_task_retry_exhausted_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelTool, LabelClass},
		"Calls that failed because a policy was exhausted.",
	}
	Waits = &Metric{
		"reprise_wait_seconds", Histogram,
		[]string{LabelPlaybook, LabelStep, LabelReason},
		"Durable waits, by their planned length: before a retry (failure), as the server requested (rate_limited), before a poll or a page, or for a rate limit (turn).",
	}
)

// Readings describe states and the server, not the work of this process: they survive a restart, and every process
// that reads them reads the same.
var (
	// WatermarkAge is also set by runs in this process as they move watermarks, before the next reading.
	WatermarkAge = &Metric{
		"reprise_watermark_age_seconds", Gauge,
		[]string{LabelPlaybook, LabelStep},
		"Age of the watermark of an incremental step of type time or date; for a loop, of its oldest watermark. Of runs that ended within 30 days.",
	}
	OpenRuns = &Metric{
		"reprise_open_runs", Gauge,
		[]string{LabelStatus},
		"Open runs of the namespace, by status.",
	}
	OldestRun = &Metric{
		"reprise_open_run_age_seconds", Gauge,
		[]string{LabelStatus},
		"Age of the oldest open run of the namespace, by status; of a run with several histories, since the last one began.",
	}
	QueueWorkers = &Metric{
		"reprise_task_queue_workers", Gauge,
		[]string{LabelTaskQueue},
		"Workers that have polled the task queue within a minute.",
	}
	BacklogTasks = &Metric{
		"reprise_backlog_tasks", Gauge,
		[]string{LabelTaskQueue, LabelType},
		"Tasks of the task queue that wait for a worker, as the server estimates: workflow or activity.",
	}
	BacklogAge = &Metric{
		"reprise_backlog_age_seconds", Gauge,
		[]string{LabelTaskQueue, LabelType},
		"How long the oldest of these tasks has waited.",
	}
	// StoreUp is whether this process can write to the payload store; it may differ between processes.
	StoreUp = &Metric{
		"reprise_payload_store_up", Gauge, nil,
		"1 while the payload store accepts values of this process, 0 while it does not; without a payload store there is no value.",
	}
	ReadingsAge = &Metric{
		"reprise_readings_age_seconds", Gauge, nil,
		"How long ago open runs, backlog and workers were read from the Temporal server.",
	}
)

// ReadingMetrics returns the metrics that are set to a value, which they keep until the next one.
func ReadingMetrics() []*Metric {
	return []*Metric{WatermarkAge, OpenRuns, OldestRun, QueueWorkers, BacklogTasks, BacklogAge, ReadingsAge, StoreUp, AttemptsMax}
}

// Metrics of logins that all workers share.
var (
	LoginExchanges = &Metric{
		"reprise_login_exchanges_total", Counter,
		[]string{LabelConnection, LabelResult},
		"Exchanges of refresh tokens: token, refused, failed, not_sent or unanswered.",
	}
	LoginsRequired = &Metric{
		"reprise_logins_required_total", Counter,
		[]string{LabelConnection},
		"How often a refresh token was refused, so that somebody has to log in.",
	}
)

// Metrics of activities: the work of this worker. For attempts answered from outside, and attempts that are runs of
// other playbooks, workflows count.
var (
	Attempts = &Metric{
		"reprise_attempts_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelTool, LabelRole, LabelClass},
		"Attempts, by the class of their error; none for those that succeeded.",
	}
	AttemptTime = &Metric{
		"reprise_attempt_duration_seconds", Histogram,
		[]string{LabelPlaybook, LabelStep, LabelTool, LabelRole, LabelClass},
		"How long attempts took, not counting the wait for a rate limit.",
	}
	InFlight = &Metric{
		"reprise_attempts_in_flight", Gauge,
		[]string{LabelPlaybook, LabelStep, LabelTool, LabelRole},
		"Attempts that this worker is making now, not counting those that wait for a rate limit.",
	}
	AttemptsMax = &Metric{
		"reprise_attempts_max", Gauge, nil,
		"Attempts that this worker makes at the same time at most: --max-attempts.",
	}
	Pages = &Metric{
		"reprise_pages_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelTool},
		"Pages that were fetched: successful attempts of steps.",
	}
	Rows = &Metric{
		"reprise_rows_written_total", Counter,
		[]string{LabelPlaybook, LabelStep, LabelTool},
		"Rows that sinks wrote, as reported by the destination, or else the rows passed to it.",
	}
	TurnTime = &Metric{
		"reprise_rate_limit_wait_seconds", Histogram,
		[]string{LabelPlaybook, LabelStep},
		"How long attempts waited in the worker for a rate limit.",
	}
	StoreTime = &Metric{
		"reprise_payload_store_seconds", Histogram,
		[]string{LabelOperation, LabelResult},
		"How long operations of the payload store took.",
	}
	StoreOperations = &Metric{
		"reprise_payload_store_operations_total", Counter,
		[]string{LabelOperation, LabelResult},
		"Operations of the payload store, by their result: ok or error.",
	}
	StoreBytes = &Metric{
		"reprise_payload_store_bytes_total", Counter,
		[]string{LabelOperation, LabelResult},
		"Bytes that were written to and read from the payload store.",
	}
)

// Metrics of the interpreter in this process, replays included.
var (
	Loads = &Metric{
		"reprise_interpreter_loads_total", Counter,
		[]string{LabelResult},
		"Playbooks that were compiled, or found in the cache; includes replays.",
	}
	Evaluations = &Metric{
		"reprise_interpreter_evaluations_total", Counter, nil,
		"Expressions that were evaluated; includes replays.",
	}
)

// Memory of this process, and the workflows it caches.
var (
	Memory = &Metric{
		"reprise_memory_live_bytes", Gauge, nil,
		"Memory in use after the last garbage collection.",
	}
	MemoryBound = &Metric{
		"reprise_memory_bound_bytes", Gauge, nil,
		"Limit of memory in use, above which the worker drops its cached workflows.",
	}
	CacheDrops = &Metric{
		"reprise_cache_drops_total", Counter, nil,
		"How often the worker dropped its cached workflows because memory in use exceeded the limit.",
	}
)

// AllMetrics returns the metrics of a worker, in the order of their documentation.
func AllMetrics() []*Metric {
	return []*Metric{
		Runs, RunTime, Steps, StepTime, StepRows, Iterations, DeadLetters, Calls, CallTime, Retries, Exhausted, Waits, WatermarkAge,
		OpenRuns, OldestRun, QueueWorkers, BacklogTasks, BacklogAge, ReadingsAge, StoreUp, LoginExchanges, LoginsRequired,
		Attempts, AttemptTime, InFlight, AttemptsMax, Pages, Rows, TurnTime, StoreTime, StoreOperations, StoreBytes, Loads, Evaluations,
		Memory, MemoryBound, CacheDrops,
	}
}

// Recorder receives counts, with the label values in the order of the metric's labels. It is safe for concurrent use.
type Recorder interface {
	// Add adds n, which may be negative for a gauge.
	Add(m *Metric, n int64, values ...string)
	Observe(m *Metric, took time.Duration, values ...string)
}

// Gauges receive readings. They are safe for concurrent use.
type Gauges interface {
	// Set sets a reading, with the label values in the order of the metric's labels.
	Set(m *Metric, value float64, values ...string)
	// Age makes the metric show the time since `since` whenever it is read. A value with an older asOf does not
	// replace a newer one.
	Age(m *Metric, since, asOf time.Time, values ...string)
	// Clear removes a reading.
	Clear(m *Metric, values ...string)
}

// maxRetryLabel is the last retry with its own value of LabelAttempt. Each value is a series, and a call may have a
// thousand retries.
const maxRetryLabel = 10

// RetryLabel returns the value of LabelAttempt for the n-th retry of a request.
func RetryLabel(n int) string {
	if n > maxRetryLabel {
		return "more"
	}
	return strconv.Itoa(max(n, 1))
}

// ClassOf returns the value of LabelClass for an error; ClassNone for nil.
func ClassOf(failure *interpreter.ErrorObject) string {
	if failure == nil {
		return ClassNone
	}
	return string(failure.Class)
}

// FailedAttempt counts the decision about a failed attempt; nil counts nothing.
func FailedAttempt(to Recorder, facts call.Facts, failed *call.FailedAttempt) {
	if failed != nil && !failed.Ended {
		zeroRetries(to, failed.Retry, facts.Playbook, facts.Step, facts.Tool, ClassOf(failed.Error))
		to.Add(Retries, 1, facts.Playbook, facts.Step, facts.Tool, ClassOf(failed.Error), RetryLabel(failed.Retry))
	}
}

// CountAttempt counts an attempt that has ended, and how long it took; a negative duration is unknown.
func CountAttempt(to Recorder, facts call.Facts, failure *interpreter.ErrorObject, took time.Duration) {
	role := RoleOf(facts.Place)
	values := []string{facts.Playbook, facts.Step, facts.Tool, role, ClassOf(failure)}
	to.Add(Attempts, 1, values...)
	if took >= 0 {
		to.Observe(AttemptTime, took, values...)
	}
	if failure == nil && role == RoleStep {
		to.Add(Pages, 1, facts.Playbook, facts.Step, facts.Tool)
	}
}

// CountCall counts a call that has ended.
func CountCall(to Recorder, facts call.Facts, result interpreter.CallResult) {
	role := RoleOf(facts.Place)
	values := []string{facts.Playbook, facts.Step, facts.Tool, role, string(result.Status)}
	to.Add(Calls, 1, values...)
	to.Observe(CallTime, result.Meta.EndedAt.Sub(result.Meta.StartedAt), values...)
	// A failed sink fails its step with the same error, which is counted once.
	if failure := result.Error; failure != nil && failure.Exhausted && (role == RoleSink || failure.Kind != interpreter.KindSink) {
		to.Add(Exhausted, 1, facts.Playbook, facts.Step, facts.Tool, ClassOf(failure))
	}
}

// RoleOf returns the value of LabelRole for a place in the playbook; only sinks have a place.
func RoleOf(place string) string {
	if place != "" {
		return RoleSink
	}
	return RoleStep
}
