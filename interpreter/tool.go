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

// ToolInput is the argument of every tool activity: one attempt of one request. It is kept in workflow history, so
// it contains names of connections and never their secrets.
type ToolInput struct {
	Tool     string `json:"tool"`
	Step     string `json:"step"`
	Playbook string `json:"playbook,omitempty"` // its name
	// Attestation says which bytes the playbook of the attempt has. Workers decide by it what the playbook may use.
	Attestation playbook.Attestation `json:"attestation,omitzero"`
	Visit       int                  `json:"visit"`           // number of the visit of the step, from 1
	Index       *int                 `json:"index,omitempty"` // index of the iteration, nil without a loop
	Page        int                  `json:"page"`            // number of the page: successes so far + 1
	Attempt     int                  `json:"attempt"`         // number of the attempt of this call, from 1
	// Place is the sink's place in the playbook, "" for the call of a step.
	Place string `json:"place,omitempty"`
	// Fields are the tool's rendered fields. A statement is unchanged; the values of its parameters are in Params,
	// in the order of statement.Params.
	Fields map[string]expression.Value `json:"fields,omitempty"`
	Params []expression.Value          `json:"params,omitempty"`
	// Args are the rendered args, nil if there are none.
	Args *expression.Value `json:"args,omitempty"`
	// Result is what a sink without args and statement writes.
	Result *expression.Value `json:"result,omitempty"`
	// Shape says how each row of a sink is changed before it is written; nil for no changes. Args and Result have
	// the unchanged rows.
	Shape *RowWork `json:"shape,omitempty"`
	// Auth is the name of a connection, which the activity resolves.
	Auth string `json:"auth,omitempty"`
	// Origin is the scheme and host of the call's first request, as in https://api.example.com:8443, if Auth is set
	// and url has a host. Credentials of a connection without a host are only sent there, whatever later pages
	// name. "" stands for the host of this request.
	Origin string `json:"origin,omitempty"`
	// NextURL says that url comes from a next_call. Without a host, a path with a leading slash is then relative to
	// the connection's host, and any other path to the connection's path, which it may leave.
	NextURL bool `json:"next_url,omitempty"`
	// TimeoutSeconds is the time limit of the attempt, which the tool enforces.
	TimeoutSeconds float64 `json:"timeout_seconds"`
	OperationKey   string  `json:"operation_key"`
	AttemptKey     string  `json:"attempt_key"`
	// RateLimit is the limit under which the attempt waits for a slot, before its timeout begins; nil for none.
	RateLimit *ratelimit.Limit `json:"rate_limit,omitempty"`
	// Turn is the reserved slot for which the attempt has waited; nil if it has not.
	Turn *ratelimit.Reservation `json:"turn,omitempty"`
	// IdempotencyKey is sent as the Idempotency-Key header, "" for none.
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// Fingerprint distinguishes writes with the same operation key; "" is not compared. It is derived from the
	// result, so that it does not change when the sink's args are rendered again.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Lost is how often earlier attempts of the request have lost their workers.
	Lost int `json:"lost,omitempty"`
	// ControlID is the workflow ID of the run whose Control is read before the attempt begins, "" for none.
	// ControlVersion is the version that the workflow knew; an older Control is ignored.
	ControlID      string `json:"control_id,omitempty"`
	ControlVersion int    `json:"control_version,omitempty"`
	// RunID is the run ID of the first history of the playbook's run. A reprocess has that of the original run, and
	// its own ControlID.
	RunID string `json:"run_id,omitempty"`
	// Sends is the field with the request to send, for a tool with several: on_start or on_cancel.
	Sends string `json:"sends,omitempty"`
	// Parents are the parent runs of the attempt's run, whose Control is read too; they only contain its version.
	Parents []Parent `json:"parents,omitempty"`
	// Secret says which secret results the attempt uses or produces; nil for none.
	Secret *SecretWork `json:"secret,omitempty"`
	// State is what the write does to the state of its call; nil if there is none, or if it is not kept where the
	// sink writes.
	State *incremental.StateWrite `json:"state,omitempty"`
	// Cursor is the cursor field of the rows that a sink writes, nil for none.
	Cursor *incremental.CursorField `json:"cursor,omitempty"`
	// Staging is set if the written rows are published at the end of the call or loop.
	Staging *Staging `json:"staging,omitempty"`
	// Batch is set if the attempt reads a part of a file; nil for the whole.
	Batch *RowBatch `json:"batch,omitempty"`
	// Sinks are, for the first attempt of a call, the connections of its sinks: if the worker does not have one of
	// them, the call fails before it sends anything.
	Sinks []SinkConnection `json:"sinks,omitempty"`
	// Note is the entry that a sink's ledger stores with the write, if the writing activity also made the attempt;
	// nil otherwise.
	Note *LedgerEntry `json:"-"`
	// Prepared returns what the tool has prepared for the write, if that began before the ledger entry was made;
	// nil otherwise.
	Prepared func() any `json:"-"`
	// RowPaths are the folders of the rows that a sink of files writes, below its path: one for each row of SinkRows, or nil if all
	// go to the path.
	RowPaths []string `json:"-"`
	// Reshaped returns the shaped rows of the attempt, if shaping began before the attempt; nil otherwise.
	Reshaped func() (ShapedRows, error) `json:"-"`
	// Columns are the columns that each of the rows has, and no row has others; nil if that is not known.
	Columns []string `json:"-"`
	// OwnsRows says that nobody but this attempt has its rows, so that their shape may be changed in place.
	OwnsRows bool `json:"-"`
}

// RowBatch says which part of a file an attempt reads; kept in workflow history.
type RowBatch struct {
	// After is where it continues; nil for the beginning.
	After *SourcePlace `json:"after,omitempty"`
	// Path leads to the rows of JSON and XML; nil if the author has not said it.
	Path []string `json:"path,omitempty"`
}

// SourcePlace is a place between two rows of a file; kept in workflow history.
type SourcePlace struct {
	// Source identifies the content of the file: another one cannot be continued.
	Source string `json:"source,omitempty"`
	Rows   int64  `json:"rows"` // the rows before it
	// Offset is the number of bytes before it, and Line the line that begins there. They are 0 where the file has to be read from its
	// beginning, as one that is compressed. Columns and Delimiter are those of CSV.
	Offset    int64    `json:"offset,omitempty"`
	Line      int      `json:"line,omitempty"`
	Columns   []string `json:"columns,omitempty"`
	Delimiter string   `json:"delimiter,omitempty"`
}

// SinkConnection is a connection named by a sink. Kept in workflow history.
type SinkConnection struct {
	Auth  string `json:"auth"`
	Place string `json:"place"` // of the sink
	At    string `json:"at"`    // position in its file, as in shop.yaml:12:20
}

// Timeout returns the attempt's time limit.
func (in ToolInput) Timeout() time.Duration {
	return time.Duration(in.TimeoutSeconds * float64(time.Second))
}

// SinkRows returns the rows that a sink writes: its args, or otherwise the result. A list is many rows, nil is none,
// any other value is one.
func (in ToolInput) SinkRows() []any {
	var v any
	switch {
	case in.Args != nil:
		v = in.Args.Data
	case in.Result != nil:
		v = in.Result.Data
	}
	return incremental.ContributedRows(v)
}

// NestedCall returns the call of a tool that is the value of a field, such as `from` of tool transfer. It has the
// attempt's parameters, which are those of `from`, the only such call with a statement. The error says that the
// field is not a call.
func (in ToolInput) NestedCall(field string) (ToolInput, error) {
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

// ContributedRows returns the rows of the page that a sink writes, before its args are applied.
func (in ToolInput) ContributedRows() []any {
	if in.Args != nil && in.Result != nil {
		return incremental.ContributedRows(in.Result.Data)
	}
	return in.SinkRows()
}

// ToolResult is the result of a successful attempt; kept in workflow history.
type ToolResult struct {
	// Turn is the number of seconds that the attempt waited for a slot under a rate limit before it began, for
	// display only. It is the first field, so that it can be read without the data. Tools leave it 0.
	Turn float64          `json:"turn,omitempty"`
	Data expression.Value `json:"data,omitzero"`
	Meta ToolMeta         `json:"meta,omitzero"`
	// PutOff is set if the attempt was not made yet. Tools leave it nil.
	PutOff *PutOff `json:"put_off,omitempty"`
	// Noted is the continuation that a ledger already had in place of ToolInput.Note. Nothing was written in that
	// case.
	Noted []byte `json:"-"`
	// Unnotable says that the sink's destination has no ledger. Nothing was written in that case.
	Unnotable bool `json:"-"`
}

// ToolMeta is what a tool reports in addition to the data: docs/concepts/runs.md#results.
type ToolMeta struct {
	Status  int               `json:"status,omitempty"`
	Headers map[string]string `json:"headers,omitempty"` // lower-case names
	Links   map[string]string `json:"links,omitempty"`   // rel -> absolute URL
	URL     string            `json:"url,omitempty"`     // of the response, after redirects
	// RetryAfter is the number of seconds that a successful response asks clients to wait, which polls respect;
	// expressions do not see it.
	RetryAfter *float64 `json:"retry_after,omitempty"`
	// LeftOut counts what a table did not accept, nil if it accepted everything.
	LeftOut *RowCounts `json:"left_out,omitempty"`
	// Notes are warnings of expressions over rows about questionable data. Tools leave it nil.
	Notes []string `json:"notes,omitempty"`
	// Rows counts what the attempt did to data. Tools that write no table leave it nil: the worker counts for them,
	// or leaves it empty if the call must count. Nil in a result means that nothing was counted, as by older
	// workers.
	Rows *Rows `json:"rows,omitempty"`
	// Next is the place behind the batch of rows that was read; nil if nothing follows. Expressions do not see it.
	Next *SourcePlace `json:"next,omitempty"`
}

// HasNoBody reports whether the response has no body.
func (m ToolMeta) HasNoBody() bool {
	return m.Status == http.StatusNoContent || m.Headers["content-length"] == "0"
}

// OmitsBody reports whether the response has no body although its status does not say so (RFC 9110, sections 15.3.5 and 15.3.6).
func (m ToolMeta) OmitsBody() bool {
	return m.HasNoBody() && m.Status != http.StatusNoContent && m.Status != http.StatusResetContent
}

// RowCounts counts what a table, or files, did not accept of the rows to be written; kept in workflow history.
type RowCounts struct {
	DiscardedValues int `json:"discarded_values,omitempty"` // of columns that are unknown, or that do not take them
	DiscardedRows   int `json:"discarded_rows,omitempty"`   // left out by the contract
	RejectedRows    int `json:"rejected_rows,omitempty"`    // set aside as rejected
	// RoundedValues counts values that a column stores only in part: numbers with more digits than it stores, times
	// with more decimal places or, in columns of dates, with a time of day, and texts that it cuts off.
	RoundedValues int `json:"rounded_values,omitempty"`
	// RoundedKeys counts those of them in columns of the key, by which rows with different keys may become one.
	RoundedKeys int `json:"rounded_keys,omitempty"`
	// UnwrittenRows counts rows that the database accepted but did not write, because of a trigger or a rule of the
	// table.
	UnwrittenRows int `json:"unwritten_rows,omitempty"`
	// OlderRows counts rows that took the place of newer ones with their key, by the cursor of the step.
	OlderRows int `json:"older_rows,omitempty"`
	// UndeletedRows counts rows that should have been deleted from the table and are still in it, because of a trigger.
	UndeletedRows int `json:"undeleted_rows,omitempty"`
}

// Plus returns the sum of two counts, each of which may be nil.
func (l *RowCounts) Plus(more *RowCounts) *RowCounts {
	if l == nil || more == nil {
		return cmp.Or(l, more)
	}
	return &RowCounts{
		DiscardedValues: l.DiscardedValues + more.DiscardedValues,
		DiscardedRows:   l.DiscardedRows + more.DiscardedRows, RejectedRows: l.RejectedRows + more.RejectedRows,
		RoundedValues: l.RoundedValues + more.RoundedValues, RoundedKeys: l.RoundedKeys + more.RoundedKeys,
		UnwrittenRows: l.UnwrittenRows + more.UnwrittenRows, UndeletedRows: l.UndeletedRows + more.UndeletedRows,
		OlderRows: l.OlderRows + more.OlderRows,
	}
}

// Outcome returns the result as an Outcome.
func (r ToolResult) Outcome() Outcome {
	return Outcome{Data: r.Data.Data, Meta: r.Meta, PutOff: r.PutOff}
}

// IsZero makes encoding/json omit an empty meta.
func (m ToolMeta) IsZero() bool {
	return m.Status == 0 && len(m.Headers) == 0 && len(m.Links) == 0 && m.URL == "" && m.RetryAfter == nil && m.LeftOut == nil && m.Rows == nil &&
		len(m.Notes) == 0 && m.Next == nil
}

// Kind is the kind of an error: error.kind in expressions, and the type of the ApplicationError in Temporal's
// history.
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

// MaxDeliveries bounds the deliveries of an attempt that may have acted: one, and three more after lost workers
// (docs/concepts/attempts.md).
const MaxDeliveries = 4

// WorkerLostError returns the failure of an attempt after MaxDeliveries.
func WorkerLostError() *ErrorObject {
	return &ErrorObject{
		Kind: KindWorkerLost, Class: ClassRetryable,
		Message: fmt.Sprintf("the attempt was dispatched %d times, and its worker was lost each time", MaxDeliveries),
	}
}

// WorkersLost returns the failure of a request that seems to crash its workers: whatever the policies say, it is
// not repeated. taking says that this happened while the worker read the response.
func WorkersLost(taking bool) *ErrorObject {
	message := "the request lost its workers, was repeated, and lost another worker; it is not repeated again"
	if taking {
		message = "the request lost two workers, the last one while it read the response; it is not repeated"
	}
	return &ErrorObject{Kind: KindWorkerLost, Class: ClassFinal, Message: message, Final: true}
}

// TypeStopped is the error type of a KindWorkerLost whose workers were shut down in order.
const TypeStopped = "stopped"

// Class is the class of an error: policies and defaults depend on it. A policy that matches a final error still
// repeats the attempt.
type Class string

// The classes of errors.
const (
	ClassFinal       Class = "final"
	ClassRetryable   Class = "retryable"
	ClassRateLimited Class = "rate_limited"
)

// ErrorObject is `error` in expressions, and the details of a failed activity; kept in workflow history.
type ErrorObject struct {
	Kind       Kind     `json:"kind"`
	Class      Class    `json:"class"`
	Message    string   `json:"message"`
	Status     int      `json:"status,omitempty"`
	Type       string   `json:"type,omitempty"`
	RetryAfter *float64 `json:"retry_after,omitempty"` // seconds that the server asked clients to wait
	// Headers are the headers of a failed response, with lower-case names and without those that carry credentials.
	Headers map[string]string `json:"headers,omitempty"`
	// URL and Params are those of the failed request, with secrets masked.
	URL       string           `json:"url,omitempty"`
	Params    expression.Value `json:"params,omitzero"`
	Body      expression.Value `json:"body,omitzero"`
	Attempt   int              `json:"attempt,omitempty"`
	Page      int              `json:"page,omitempty"`
	Policy    int              `json:"policy,omitempty"`
	Exhausted bool             `json:"exhausted,omitempty"`
	Collected expression.Value `json:"collected,omitzero"`
	// Answer is what an attempt reports of a failed response besides Status and Headers, for the meta of the call.
	Answer *ToolMeta `json:"answer,omitempty"`
	// Cause is why the store of a state cannot be reached, without the name of the state, which Message contains;
	// expressions do not see it.
	Cause string `json:"cause,omitempty"`
	// At is when the attempt ended; expressions do not see it.
	At time.Time `json:"at,omitzero"`
	// Final marks errors on which policies do not rule, such as a bad configuration of the worker: they end the
	// call.
	Final bool `json:"final,omitempty"`
}

// MaxErrorType bounds ErrorObject.Type, in bytes: code and servers choose it, and the summaries of timers contain
// it.
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
	// Files are the playbooks that it names, by file name, as far as the run has them.
	Files map[string]string `json:"files,omitempty"`
	// Partition requests the run's partition, for a playbook with partitions; nil if the run has one already.
	Partition *PartitionRequest `json:"partition,omitempty"`
	// Missing requests the partitions that a backfill must run.
	Missing bool `json:"missing,omitempty"`
}

// PartitionRequest requests the partition with a key, which must be complete at a time or, without a key, the
// newest complete one. Kept in workflow history.
type PartitionRequest struct {
	Key string    `json:"key,omitempty"`
	At  time.Time `json:"at"`
}

// UnknownPlaybook is the type of the error of a playbook that a worker does not run because it does not know its bytes.
const UnknownPlaybook = "unknown_playbook"

// CheckResult is the result of the validation; kept in workflow history, so that a replay sees the same result
// whatever tools the worker has by then.
type CheckResult struct {
	// Problems is the formatted text of all errors, "" if the playbook may run.
	Problems string `json:"problems,omitempty"`
	Count    int    `json:"count,omitempty"`
	// Refusal is UnknownPlaybook if Problems says that the worker does not run the playbook, whatever it has in it; else "".
	Refusal string `json:"refusal,omitempty"`
	// Warnings say what the worker's settings change in the playbook; they become warnings of the run's result. In
	// histories from before ValidationWarnings, they include those.
	Warnings []string `json:"warnings,omitempty"`
	// ValidationWarnings are the warnings of `validate`. The run only records them.
	ValidationWarnings []string `json:"validation_warnings,omitempty"`
	// Limits are the operator's limits at the start of the run, which apply until its end.
	Limits RunLimits `json:"limits,omitzero"`
	// Files are the playbooks from the worker's folder that the run names.
	Files []RecordedFile `json:"files,omitempty"`
	// Partition is the run's partition, and Identity identifies its playbook. They are computed once, by the worker
	// that begins the run, because workers with other time zone rules would get other values.
	Partition *partition.Partition `json:"partition,omitempty"`
	Identity  string               `json:"identity,omitempty"`
	// Missing are the partitions that a backfill must run; nil if they were not requested.
	Missing *partition.Selection `json:"missing,omitempty"`
	// Sinks is what the worker knows about the connections of sinks; nil if that was not requested.
	Sinks *SinkCheck `json:"sinks,omitempty"`
}

// FileSources returns the sources of Files by name; nil for none.
func (r CheckResult) FileSources() map[string]string {
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
	Names []string `json:"names,omitempty"` // the connections that were found
	// Missing is the error about the first one that the worker does not have, nil for none.
	Missing *ErrorObject `json:"missing,omitempty"`
}

// SinksActivity is the name of the local activity that checks the connections of sinks; its argument is a list of
// SinkConnection, and its result a SinkCheck.
const SinksActivity = "sinks"

// RecordedFile is a playbook from a worker's folder as it was when the run began; kept in workflow history.
type RecordedFile struct {
	Name   string `json:"name"`
	Hash   string `json:"hash"` // SHA-256 of the source, hex
	Source string `json:"source"`
}

// RunLimits are the operator's limits as a run records them; kept in workflow history. Zero means no limit on
// retries.
type RunLimits struct {
	MaxRetries      int     `json:"max_retries,omitempty"`
	MaxDelaySeconds float64 `json:"max_delay_seconds,omitempty"`
	// MaxRuns bounds the descendants of a root run; 0 is unbounded.
	MaxRuns int `json:"max_runs,omitempty"`
	// MaxVisits bounds how often a run may visit a step; 0 is unbounded.
	MaxVisits int `json:"max_visits,omitempty"`
	// MaxPayload is the maximum size of a payload in bytes of JSON; 0 is MaxInlinePayload.
	MaxPayload int `json:"max_payload,omitempty"`
	// OffloadAbove is the size in bytes above which a value goes to the payload store, so that Temporal only gets a
	// reference; 0 disables that.
	OffloadAbove int `json:"offload_above,omitempty"`
	// RetriesTables says that a table sink without its own retry has playbook.TableRetry. It is false in older
	// histories.
	RetriesTables bool `json:"retries_tables,omitempty"`
	// MapsRows says that args of a sink whose mapping exceeds the budget of a decision are mapped by its attempts,
	// row by row. It is false in older histories, whose runs fail in that case.
	MapsRows bool `json:"maps_rows,omitempty"`
	// CollectsRows says that pages of a step with `rows` are collected without a collect:
	// playbook.Step.PagesCollect. It is false in older histories, whose runs keep only the last page.
	CollectsRows bool `json:"collects_rows,omitempty"`
	// StagesFiles says that what sinks write below a connection becomes files at the end of the call or loop. It is
	// false in older histories, whose runs make a manifest with each write.
	StagesFiles bool `json:"stages_files,omitempty"`
	// HeartbeatSeconds is the time between two heartbeats of an activity; 0 is DefaultHeartbeat.
	HeartbeatSeconds float64 `json:"heartbeat_seconds,omitempty"`
}

// DefaultHeartbeat is the time between two heartbeats of an activity, each an action that Temporal Cloud bills.
const DefaultHeartbeat = 2 * time.Second

// MissedHeartbeats is the number of missed heartbeats after which a worker counts as lost. It allows for servers
// and networks that hang for a while, which is not a reason to repeat attempts.
const MissedHeartbeats = 5

// HeartbeatTimeout returns the time after which a worker without heartbeats counts as lost.
func (l RunLimits) HeartbeatTimeout() time.Duration {
	interval := time.Duration(l.HeartbeatSeconds * float64(time.Second))
	return MissedHeartbeats * cmp.Or(interval, DefaultHeartbeat)
}

// SinkPolicies returns the policies for failures of a sink with the given tool.
func (l RunLimits) SinkPolicies(book *playbook.Playbook, sink *playbook.Sink, tool string) []*playbook.Policy {
	if l.RetriesTables && !sink.Action.OwnRetry && book.RetriesTable(sink, tool) {
		return playbook.TableRetry()
	}
	return sink.Action.Retry
}

// StagesRows reports whether what a sink of the step writes is published together at the end of the call or loop.
func (l RunLimits) StagesRows(book *playbook.Playbook, step *playbook.Step, sink *playbook.Sink) bool {
	return book.StagesRows(step, sink) && (l.StagesFiles || !book.StagesFile(step, sink))
}

// MaxInlinePayload is the maximum size of a payload, in bytes of JSON, without a payload store. Temporal rejects
// values over 2 MB, in a way that leaves the run hanging.
const MaxInlinePayload = 1_900_000

// StorePatience is how long an attempt waits for an unavailable payload store: before it begins, and again after
// it, with the outcome in the worker's memory.
const StorePatience = 10 * time.Minute

// PayloadCap returns the maximum size of a payload, in bytes of JSON.
func (l RunLimits) PayloadCap() int { return cmp.Or(l.MaxPayload, MaxInlinePayload) }

// referenceSize is an upper bound for the size of a reference to a stored value, in bytes.
const referenceSize = 1000

// InlineSize returns how many bytes of a value of the given size are sent through Temporal itself.
func (l RunLimits) InlineSize(size int) int { return l.inlineSize(size, l.OffloadAbove) }

// InlineScriptSize is InlineSize for a script.
func (l RunLimits) InlineScriptSize(size int) int { return l.inlineSize(size, ScriptsAbove) }

// inlineSize returns how many bytes of a value are sent through Temporal itself, if the payload store stores values
// of at least storedFrom bytes.
func (l RunLimits) inlineSize(size, storedFrom int) int {
	if l.OffloadAbove > 0 && size >= storedFrom {
		return referenceSize
	}
	return size
}

// NewRunLimits converts the limits of a worker.
func NewRunLimits(limits playbook.Limits) RunLimits {
	return RunLimits{
		MaxRetries: limits.MaxRetries, MaxDelaySeconds: limits.MaxDelay.Seconds(), MaxRuns: limits.MaxRuns, MaxVisits: limits.MaxVisits,
		RetriesTables: true, MapsRows: true, CollectsRows: true, StagesFiles: true,
	}
}

// ActivityName returns the name of the activity that makes the attempt.
func (in ToolInput) ActivityName() string {
	if in.Place != "" {
		return WriteActivity(in.Tool)
	}
	return in.Tool
}

// WriteActivity returns the name of the activity in which a tool writes a sink.
func WriteActivity(tool string) string { return tool + ".write" }

// A write and how the call continues after it are recorded together
// (docs/concepts/written-once.md#repeated-writes). A host that makes attempts and writes their results,
// without going through history in between, lets the sink's ledger record how the call continues, in the
// transaction of the write. After the loss of a worker the call continues from there, and does not read the source
// again, which may have changed.

// LedgerEntry says how a call continues after one of its writes. It is passed between the call and the ledger of a
// sink, never through history.
type LedgerEntry struct {
	Call    string // key of the call
	Written int    // number of the write in the call, from 1
	// Forget is the number of the last write whose entry is no longer needed, because the state of the call after
	// it is in history.
	Forget       int
	Continuation []byte // for Call.ResumeAfterWrite
}

// LimitKey returns the default key of a rate limit on the attempt: the host of its request, otherwise the tool with
// its connection.
func (in ToolInput) LimitKey() string {
	if address, err := url.Parse(expression.Text(in.Fields[playbook.FieldURL].Data)); err == nil && address.Host != "" {
		return address.Host
	}
	return in.Tool + "/" + in.Auth
}

// ScriptMark is the metadata that marks a value as a script. ScriptsAbove is the size in bytes from which the
// payload store stores scripts, much smaller than for other values, because every child refers to the same script.
// Histories depend on both.
const (
	ScriptMark   = "reprise-script"
	ScriptsAbove = 4 << 10
)
