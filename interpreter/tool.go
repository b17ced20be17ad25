package interpreter

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
	"reprise/interpreter/ratelimit"
)

// ToolInput is the argument of every tool activity: one attempt of one
// request. It is kept in workflow history, so it holds names of connections
// and never their secrets.
type ToolInput struct {
	Tool     string `json:"tool"`
	Step     string `json:"step"`
	Playbook string `json:"playbook,omitempty"` // its name
	Visit    int    `json:"visit"`              // visits of the step so far, from 1
	Index    *int   `json:"index,omitempty"`    // iteration, nil without a loop
	Page     int    `json:"page"`               // successes so far + 1
	Attempt  int    `json:"attempt"`            // attempts of this call, from 1
	// Place is the sink's place in the playbook, "" for a step's own call.
	Place string `json:"place,omitempty"`
	// Fields are the tool's fields, rendered. A statement is kept as the author
	// wrote it; its values are in Params, in the order of statement.Params.
	Fields map[string]expression.Value `json:"fields,omitempty"`
	Params []expression.Value          `json:"params,omitempty"`
	// Args are the rendered args, nil when the author gave none.
	Args *expression.Value `json:"args,omitempty"`
	// Result is what a sink without args and statement writes.
	Result *expression.Value `json:"result,omitempty"`
	// Shape says how each row of a sink is changed before it is written, nil for not at all. Args and Result have the
	// unchanged rows.
	Shape *RowWork `json:"shape,omitempty"`
	// Auth names a connection, resolved inside the activity.
	Auth string `json:"auth,omitempty"`
	// Origin is the scheme and host of the call's first request if Auth is given and url names
	// a host: https://api.example.com:8443. Credentials without a host of their own are only
	// sent there, whatever later pages name. "" stands for the current request.
	Origin string `json:"origin,omitempty"`
	// NextURL says that url comes from a next_call. Without a host, a path with a leading slash is relative to the
	// connection's host, and any other to the connection's path, which it may leave.
	NextURL bool `json:"next_url,omitempty"`
	// TimeoutSeconds bounds the attempt; the tool enforces it.
	TimeoutSeconds float64 `json:"timeout_seconds"`
	OperationKey   string  `json:"operation_key"`
	AttemptKey     string  `json:"attempt_key"`
	// RateLimit paces the attempt; it waits for its turn before its timeout
	// begins to run.
	RateLimit *ratelimit.Limit `json:"rate_limit,omitempty"`
	// Turn is the turn for which the attempt comes back; nil if it has not waited.
	Turn *ratelimit.Reservation `json:"turn,omitempty"`
	// IdempotencyKey is what the tool sends as Idempotency-Key, "" for none.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// Fingerprint distinguishes writes with the same operation key; "" is not compared. It is
	// computed from the result, so that it does not change when the sink's args are rendered
	// again.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Lost is how often the request has lost its workers before this attempt.
	Lost int `json:"lost,omitempty"`
	// ControlID is the workflow ID of the run whose Control is read before the
	// attempt begins, "" for none, and ControlVersion that of the Control which the
	// workflow knew of: an older one is not believed.
	ControlID      string `json:"control_id,omitempty"`
	ControlVersion int    `json:"control_version,omitempty"`
	// RunID is the ID of the playbook's run, the first of its chain. A run that makes up
	// for another has that one's, and a ControlID of its own.
	RunID string `json:"run_id,omitempty"`
	// Sends is the field with the request that the attempt is, where its tool has
	// several: on_start or on_cancel.
	Sends string `json:"sends,omitempty"`
	// Parents are the parent runs of the attempt's, whose Control is read too; only its
	// version is here.
	Parents []Parent `json:"parents,omitempty"`
	// Secret says which secret results the attempt uses or makes, nil for none.
	Secret *SecretWork `json:"secret,omitempty"`
	// State is what the write does to the state that its call keeps between runs; nil if there
	// is none, or it is kept elsewhere than the sink writes to.
	State *incremental.StateWrite `json:"state,omitempty"`
	// Cursor is the cursor of the rows which a sink writes, nil for none.
	Cursor *incremental.CursorField `json:"cursor,omitempty"`
	// Staging is set where what is written is published at the end of the call or loop.
	Staging *Staging `json:"staging,omitempty"`
	// Sinks are the connections of what the call may write to, in its first attempt: one that its worker does not have fails
	// the call before it requests anything.
	Sinks []SinkConnection `json:"sinks,omitempty"`
	// Note is what a sink's ledger stores with the write, if the writing activity also made the
	// attempt; nil elsewhere.
	Note *LedgerEntry `json:"-"`
	// Prepared gives what the tool has prepared of the write, where that began before the note was made; nil elsewhere.
	Prepared func() any `json:"-"`
	// ShapedRows gives the rows of the attempt in shape, where that began before the attempt was made; nil elsewhere.
	Reshaped func() (ShapedRows, error) `json:"-"`
}

// SinkConnection is a connection that a sink names. Kept in workflow history.
type SinkConnection struct {
	Auth  string `json:"auth"`
	Place string `json:"place"` // of the sink
	At    string `json:"at"`    // in its file, as in shop.yaml:12:20
}

// Timeout is the attempt's time limit.
func (in ToolInput) Timeout() time.Duration {
	return time.Duration(in.TimeoutSeconds * float64(time.Second))
}

// Rows returns the rows that a sink writes: its args, or else the result. A list is many rows,
// nil is none, anything else is one.
func (in ToolInput) Rows() []any {
	var v any
	switch {
	case in.Args != nil:
		v = in.Args.Data
	case in.Result != nil:
		v = in.Result.Data
	}
	return incremental.ContributedRows(v)
}

// Nested is the call that a field of the attempt is, such as from of tool transfer. The parameters of the attempt are those of
// from, the only one with a statement. The error is that of a field which is none.
func (in ToolInput) Nested(field string) (ToolInput, error) {
	fields, isMap := in.Fields[field].Data.(map[string]any)
	name, isText := fields[playbook.FieldTool].(string)
	if !isMap || !isText {
		return ToolInput{}, fmt.Errorf("step %q: %s must be a map with tool and the fields of that tool", in.Step, field)
	}
	nested := in
	nested.Tool, nested.Fields, nested.Auth = name, make(map[string]expression.Value, len(fields)), ""
	nested.Args, nested.Result, nested.Shape, nested.IdempotencyKey, nested.Sends = nil, nil, nil, "", ""
	if field != playbook.FieldFrom {
		nested.Params = nil
	}
	for key, value := range fields {
		switch key {
		case playbook.FieldTool:
		case "auth":
			nested.Auth = expression.Text(value)
		default:
			nested.Fields[key] = expression.Of(value)
		}
	}
	return nested, nil
}

// Contributed are the rows of the page that a sink writes, whatever its args make of them.
func (in ToolInput) Contributed() []any {
	if in.Args != nil && in.Result != nil {
		return incremental.ContributedRows(in.Result.Data)
	}
	return in.Rows()
}

// ToolResult is the result of an attempt that has not failed; kept in workflow history.
type ToolResult struct {
	// Turn is how many seconds the attempt waited for its turn under a rate limit before
	// it began. Nothing is decided by it; it is first, so that it is read without the
	// data. Tools leave it 0.
	Turn float64          `json:"turn,omitempty"`
	Data expression.Value `json:"data,omitzero"`
	Meta ToolMeta         `json:"meta,omitzero"`
	// PutOff is set where the attempt was not made yet. Tools leave it nil.
	PutOff *PutOff `json:"put_off,omitempty"`
	// Noted is the continuation that a ledger had already, instead of ToolInput.Note. Nothing
	// was written in that case.
	Noted []byte `json:"-"`
	// Unnotable says that the sink's destination keeps no ledger. Nothing was
	// written then.
	Unnotable bool `json:"-"`
}

// ToolMeta is what http reports in addition to the data: docs/concepts/runs.md#results.
type ToolMeta struct {
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"` // lower-case names
	Links   map[string]string `json:"links,omitempty"`   // rel -> absolute URL
	URL     string            `json:"url,omitempty"`
	// RetryAfter is how many seconds a successful response asks clients to wait, which
	// polls do; expressions do not see it.
	RetryAfter *float64 `json:"retry_after,omitempty"`
	// LeftOut counts what a table did not accept, nil if it accepted everything.
	LeftOut *RowCounts `json:"left_out,omitempty"`
	// Notes are what expressions over rows have to say of data that they could use. Tools leave it nil.
	Notes []string `json:"notes,omitempty"`
	// Rows is what the attempt did to data. Tools that write no table leave it nil: the worker counts for them, or
	// leaves it empty if the call has to count. Nil in a result says that nothing was counted, as by older workers.
	Rows *Rows `json:"rows,omitempty"`
}

// Bodiless reports whether the answer came without a body.
func (m ToolMeta) Bodiless() bool {
	return m.Status == http.StatusNoContent || m.Headers["content-length"] == "0"
}

// RowCounts counts what a table did not get of the rows that were to be written; kept in workflow history.
type RowCounts struct {
	DiscardedValues int `json:"discarded_values,omitempty"`
	DiscardedRows   int `json:"discarded_rows,omitempty"`
	RejectedRows    int `json:"rejected_rows,omitempty"`
	// RoundedValues counts values of which the column keeps a part: numbers with more digits than it stores, times with
	// more decimal places or, where it stores dates, with a time of day, and texts whose end it cuts off.
	RoundedValues int `json:"rounded_values,omitempty"`
	// UnwrittenRows counts rows that the database accepted and did not write, as a trigger or a rule of the table
	// asks for.
	UnwrittenRows int `json:"unwritten_rows,omitempty"`
}

// Plus is the sum of two counts, either of which may be nil.
func (l *RowCounts) Plus(more *RowCounts) *RowCounts {
	if l == nil || more == nil {
		return cmp.Or(l, more)
	}
	return &RowCounts{
		DiscardedValues: l.DiscardedValues + more.DiscardedValues,
		DiscardedRows:   l.DiscardedRows + more.DiscardedRows, RejectedRows: l.RejectedRows + more.RejectedRows,
		RoundedValues: l.RoundedValues + more.RoundedValues, UnwrittenRows: l.UnwrittenRows + more.UnwrittenRows,
	}
}

// Outcome is the result as the outcome of its attempt.
func (r ToolResult) Outcome() Outcome {
	return Outcome{Data: r.Data.Data, Meta: r.Meta, PutOff: r.PutOff}
}

// IsZero has encoding/json omit an empty meta.
func (m ToolMeta) IsZero() bool {
	return m.Status == 0 && len(m.Headers) == 0 && len(m.Links) == 0 && m.URL == "" && m.RetryAfter == nil && m.LeftOut == nil && m.Rows == nil &&
		len(m.Notes) == 0
}

// Kind is the kind of an error: error.kind in expressions and the type of the
// ApplicationError in Temporal's history.
type Kind string

// The kinds of errors.
const (
	KindHTTP            Kind = "http"
	KindResponse        Kind = "response"
	KindTimeout         Kind = "timeout"
	KindConnection      Kind = "connection"
	KindTool            Kind = "tool"
	KindSink            Kind = "sink"
	KindExplicit        Kind = "explicit"
	KindWebhookFailure  Kind = "webhook_failure"
	KindWorkerLost      Kind = "worker_lost"
	KindPayloadTooLarge Kind = "payload_too_large"
	KindPayloadStore    Kind = "payload_store"
	KindExhausted       Kind = "exhausted"
	KindRepeat          Kind = "repeat"
	KindLoop            Kind = "loop"
	KindCancelled       Kind = "cancelled"
	KindExpression      Kind = "expression"
	KindIncremental     Kind = "incremental"
)

// MaxDeliveries is how often an attempt that may act is delivered: once, and
// three times more when its worker was lost (docs/concepts/attempts.md).
const MaxDeliveries = 4

// WorkerLost is the failure of an attempt that was delivered so often.
func WorkerLost() *ErrorObject {
	return &ErrorObject{
		Kind: KindWorkerLost, Class: ClassRetryable,
		Message: fmt.Sprintf("the attempt was dispatched %d times, and its worker was lost each time", MaxDeliveries),
	}
}

// WorkersLost is the failure of a request that ends its workers, as it seems:
// whatever the policies say, it is not made again. taking says that they took in
// its answer.
func WorkersLost(taking bool) *ErrorObject {
	message := "the request lost its workers, was repeated, and lost another worker; it is not repeated again"
	if taking {
		message = "the request lost two workers, the last one while it read the response; it is not repeated"
	}
	return &ErrorObject{Kind: KindWorkerLost, Class: ClassFinal, Message: message, Final: true}
}

// TypeStopped is the type of a KindWorkerLost whose workers have stopped in order.
const TypeStopped = "stopped"

// Class is the class of an error: it informs policies and defaults; a policy that
// matches a final error does repeat.
type Class string

// The classes of errors.
const (
	ClassFinal       Class = "final"
	ClassRetryable   Class = "retryable"
	ClassRateLimited Class = "rate_limited"
)

// ErrorObject is `error` in expressions and the details of a failed activity;
// kept in workflow history.
type ErrorObject struct {
	Kind       Kind     `json:"kind"`
	Class      Class    `json:"class"`
	Message    string   `json:"message"`
	Status     int      `json:"status,omitempty"`
	Type       string   `json:"type,omitempty"`
	RetryAfter *float64 `json:"retry_after,omitempty"` // seconds that the server asked for
	// Headers are the headers of a failed answer, with lower-case names and without
	// those that carry credentials.
	Headers map[string]string `json:"headers,omitempty"`
	// URL and Params of the failed request, with secrets masked.
	URL       string           `json:"url,omitempty"`
	Params    expression.Value `json:"params,omitzero"`
	Body      expression.Value `json:"body,omitzero"`
	Attempt   int              `json:"attempt,omitempty"`
	Page      int              `json:"page,omitempty"`
	Policy    int              `json:"policy,omitempty"`
	Exhausted bool             `json:"exhausted,omitempty"`
	Collected expression.Value `json:"collected,omitzero"`
	// Answer is what an attempt reports of a response besides Status and Headers, for the meta
	// of the call.
	Answer *ToolMeta `json:"answer,omitempty"`
	// Cause is why a state is out of reach, without its name, which Message has too; expressions
	// do not see it.
	Cause string `json:"cause,omitempty"`
	// At is when the attempt ended; expressions do not see it.
	At time.Time `json:"at,omitzero"`
	// Final marks errors that end the call without asking the policies, such as
	// bad configuration of the worker.
	Final bool `json:"final,omitempty"`
}

// MaxErrorType bounds ErrorObject.Type, in bytes: code and servers choose it, and
// the summaries of timers have it.
const MaxErrorType = 200

// Error makes an ErrorObject usable as a Go error.
func (e *ErrorObject) Error() string { return e.Message }

// CheckActivity is the name of the local activity that validates a playbook.
const CheckActivity = "check"

// CheckInput is the argument of CheckActivity; kept in workflow history.
type CheckInput struct {
	Name     string           `json:"name"`
	Source   string           `json:"source"`
	Workload expression.Value `json:"workload,omitzero"`
	// Files are the playbooks that it names, by the names of their files, as far as
	// the run has them.
	Files map[string]string `json:"files,omitempty"`
	// Partition says which one the run is about, of a playbook with partitions; nil for a run
	// that has one already.
	Partition *PartitionRequest `json:"partition,omitempty"`
	// Missing asks for the partitions that a backfill is to run.
	Missing bool `json:"missing,omitempty"`
}

// PartitionRequest requests the partition of a key, which has to be complete at a time, or
// without a key the newest complete one. Kept in workflow history.
type PartitionRequest struct {
	Key string    `json:"key,omitempty"`
	At  time.Time `json:"at"`
}

// CheckResult is the result of the validation; kept in workflow history, so that a
// replay sees the same answer whatever the worker's tools are by then.
type CheckResult struct {
	// Problems is the formatted text of every error, "" when the playbook may run.
	Problems string `json:"problems,omitempty"`
	Count    int    `json:"count,omitempty"`
	// Warnings become those of the run's result: what the worker's settings change of the playbook. In
	// histories from before ValidationWarnings these are among them.
	Warnings []string `json:"warnings,omitempty"`
	// ValidationWarnings are what `validate` warns of. The run records them and does nothing else with them.
	ValidationWarnings []string `json:"validation_warnings,omitempty"`
	// Limits are the operator's at the start of the run; the run keeps them.
	Limits RunLimits `json:"limits,omitzero"`
	// Files are the playbooks of the worker's folder that the run names.
	Files []RecordedFile `json:"files,omitempty"`
	// Partition is the run's partition, and Identity its playbook's. The worker that begins the
	// run computes them, because workers with other time zone rules would compute others.
	Partition *partition.Partition `json:"partition,omitempty"`
	Identity  string               `json:"identity,omitempty"`
	// Missing are the partitions that a backfill has to run; nil if they were not requested.
	Missing *partition.Selection `json:"missing,omitempty"`
	// Sinks is what the worker knows about the connections of sinks; nil if it was not requested.
	Sinks *SinkCheck `json:"sinks,omitempty"`
}

// Recorded are the sources of Files by their names, nil for none.
func (r CheckResult) Recorded() map[string]string {
	if len(r.Files) == 0 {
		return nil
	}
	files := make(map[string]string, len(r.Files))
	for _, file := range r.Files {
		files[file.Name] = file.Source
	}
	return files
}

// SinkCheck says which connections of sinks a worker has; kept in workflow history.
type SinkCheck struct {
	Names []string `json:"names,omitempty"` // of those that were found
	// Missing says which one the worker does not have, nil for none.
	Missing *ErrorObject `json:"missing,omitempty"`
}

// SinksActivity is the name of the local activity that looks for the connections of sinks; its argument
// is a list of SinkConnection and its result a SinkCheck.
const SinksActivity = "sinks"

// RecordedFile is a playbook from a worker's folder as it was when the run began; kept in
// workflow history.
type RecordedFile struct {
	Name   string `json:"name"`
	Hash   string `json:"hash"` // SHA-256 of the source, hex
	Source string `json:"source"`
}

// RunLimits are the operator's limits as a run records them; kept in workflow
// history. Zero is no limit on retries.
type RunLimits struct {
	MaxRetries      int     `json:"max_retries,omitempty"`
	MaxDelaySeconds float64 `json:"max_delay_seconds,omitempty"`
	// MaxRuns bounds the runs that may start below a root run; 0 is unbounded.
	MaxRuns int `json:"max_runs,omitempty"`
	// MaxVisits bounds how often a run may visit a step; 0 is unbounded.
	MaxVisits int `json:"max_visits,omitempty"`
	// MaxPayload is how many bytes of JSON may cross a boundary at once; 0 is
	// MaxInlinePayload.
	MaxPayload int `json:"max_payload,omitempty"`
	// OffloadAbove is the size in bytes above which a value goes to the payload store, and only
	// a reference to it through Temporal; 0 switches that off.
	OffloadAbove int `json:"offload_above,omitempty"`
	// RetriesTables says that a table sink without a retry of its own has that of playbook.TableRetry. Runs that
	// began before there was one do not have it.
	RetriesTables bool `json:"retries_tables,omitempty"`
	// MapsRows says that args of a sink that map more than a decision may are mapped by its attempts, row by row. Runs that began
	// before that was so fail.
	MapsRows bool `json:"maps_rows,omitempty"`
	// CollectsRows says that pages whose rows the step names are collected without a collect: playbook.Step.PagesCollect. Runs that
	// began before that was so keep the last page.
	CollectsRows bool `json:"collects_rows,omitempty"`
	// HeartbeatSeconds is the time between two heartbeats of an activity; 0 is DefaultHeartbeat.
	HeartbeatSeconds float64 `json:"heartbeat_seconds,omitempty"`
}

// DefaultHeartbeat is the time between two heartbeats of an activity, each an action that Temporal Cloud bills.
const DefaultHeartbeat = 2 * time.Second

// MissedHeartbeats is how many heartbeats a worker misses until it counts as lost: a server or a network that hangs for
// some of them is no reason to repeat attempts.
const MissedHeartbeats = 5

// HeartbeatTimeout is how long a lost worker stays unnoticed.
func (l RunLimits) HeartbeatTimeout() time.Duration {
	interval := time.Duration(l.HeartbeatSeconds * float64(time.Second))
	return MissedHeartbeats * cmp.Or(interval, DefaultHeartbeat)
}

// SinkPolicies are the policies that rule on the failures of a sink, whose tool is given.
func (l RunLimits) SinkPolicies(book *playbook.Playbook, sink *playbook.Sink, tool string) []*playbook.Policy {
	if l.RetriesTables && !sink.Action.OwnRetry && book.RetriesTable(sink, tool) {
		return playbook.TableRetry()
	}
	return sink.Action.Retry
}

// MaxInlinePayload is the largest JSON, in bytes, that may cross a boundary
// without a payload store. Temporal refuses values over 2 MB, and refuses them
// in a way that leaves the run hanging.
const MaxInlinePayload = 1_900_000

// StorePatience is how long a payload store may be away: before an attempt, and
// again after it, with the outcome in the worker's memory.
const StorePatience = 10 * time.Minute

// PayloadCap is how many bytes of JSON may cross a boundary at once.
func (l RunLimits) PayloadCap() int { return cmp.Or(l.MaxPayload, MaxInlinePayload) }

// referenceSize is more than the size of a reference to a stored value.
const referenceSize = 1000

// InlineSize is how many bytes of a value of the given size travel through
// Temporal itself.
func (l RunLimits) InlineSize(size int) int { return l.inlineSize(size, l.OffloadAbove) }

// InlineScriptSize is InlineSize for a script.
func (l RunLimits) InlineScriptSize(size int) int { return l.inlineSize(size, ScriptsAbove) }

// inlineSize is how many bytes travel through Temporal of a value that a payload store,
// if there is one, takes from a size on.
func (l RunLimits) inlineSize(size, storedFrom int) int {
	if l.OffloadAbove > 0 && size >= storedFrom {
		return referenceSize
	}
	return size
}

// NewRunLimits takes the limits that a worker has.
func NewRunLimits(limits playbook.Limits) RunLimits {
	return RunLimits{
		MaxRetries: limits.MaxRetries, MaxDelaySeconds: limits.MaxDelay.Seconds(), MaxRuns: limits.MaxRuns, MaxVisits: limits.MaxVisits,
		RetriesTables: true, MapsRows: true, CollectsRows: true,
	}
}

// Activity is the name of the activity that makes the attempt.
func (in ToolInput) Activity() string {
	if in.Place != "" {
		return WriteActivity(in.Tool)
	}
	return in.Tool
}

// WriteActivity is the activity name under which a tool is called as a sink.
func WriteActivity(tool string) string { return tool + ".write" }

// What was written and the way on from it are one fact (docs/concepts/written-once.md#a-write-that-is-made-again).
// A host that makes attempts and writes what they gave, without
// history in between, has the sink's ledger record how the call continues, in the
// transaction of the write. After a death the notes are followed, not the
// source, which may have changed.

// LedgerEntry says how a call continues after one of its writes. It is passed between the call
// and the ledger of a sink, never through history.
type LedgerEntry struct {
	Call    string // key of the call
	Written int    // which of its writes this is, from 1
	// Forget is the last write whose entry is no longer needed, because the state of the call
	// after it is in history.
	Forget       int
	Continuation []byte // for Call.Resume
}

// LimitKey is what a limit on the attempt belongs to, unless its step says
// otherwise: the host that a request goes to, else the tool with its connection.
func (in ToolInput) LimitKey() string {
	if address, err := url.Parse(expression.Text(in.Fields[playbook.FieldURL].Data)); err == nil && address.Host != "" {
		return address.Host
	}
	return in.Tool + "/" + in.Auth
}

// ScriptMark is the metadata that marks a value as a script. ScriptsAbove is the size in bytes
// above which the payload store stores scripts, much smaller than for other values, because
// every child refers to the same script. Histories depend on both.
const (
	ScriptMark   = "reprise-script"
	ScriptsAbove = 4 << 10
)
