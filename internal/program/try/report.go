// Package try makes the requests of one step of a playbook without Temporal, with the interpreter and the tools of a
// run. It shows what was sent, what was received, what each policy decided, and what the step and its sinks would
// get.
package try

import (
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// Report is the result of trying a step. Secrets are masked in it.
type Report struct {
	Playbook string            `json:"playbook"`
	Step     string            `json:"step"`
	Tool     string            `json:"tool"`
	Element  *expression.Value `json:"element,omitempty"`  // of the loop; nil outside of one
	Elements int               `json:"elements,omitempty"` // of the loop, 0 where that is not known
	DryRun   bool              `json:"dry_run,omitempty"`
	Attempts []Attempt         `json:"attempts"`
	// Stopped says why the try ended before the step did; "" if the step ended.
	Stopped string             `json:"stopped,omitempty"`
	Status  interpreter.Status `json:"status,omitempty"` // success or error; "" where it was stopped
	Error   string             `json:"error,omitempty"`
	Result  *expression.Value  `json:"result,omitempty"` // nil where there is none
	// Columns are the columns of the result, if it is a list of maps.
	Columns  []Column `json:"columns,omitempty"`
	Sinks    []Sink   `json:"sinks"`
	Warnings []string `json:"warnings,omitempty"`
	Notes    []string `json:"notes,omitempty"`
}

// Attempt is one attempt: a request, its response, and what follows.
type Attempt struct {
	Number   int        `json:"attempt"` // of the call, from 1
	Page     int        `json:"page"`    // from 1
	Request  Request    `json:"request"`
	Answer   *Response  `json:"answer,omitempty"` // nil in a dry run
	Policies []Policy   `json:"policies"`         // in order; of those behind the one that decided nothing was asked
	Next     *NextThing `json:"next,omitempty"`   // nil in a dry run
}

// Request is what was sent or, for tools other than http, the fields that the tool got.
type Request struct {
	Method  string            `json:"method,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"` // the beginning of a long one
	Fields  map[string]any    `json:"fields,omitempty"`
}

// Response is the response of http, with a status, or the result of another tool. Error is set if the attempt failed.
type Response struct {
	Status  int               `json:"status,omitempty"`
	Type    string            `json:"type,omitempty"` // the content type of http, else what kind of value it is
	Bytes   int               `json:"bytes"`
	Seconds float64           `json:"seconds"`
	Headers map[string]string `json:"headers,omitempty"`
	Data    expression.Value  `json:"data"`
	Error   string            `json:"error,omitempty"`
	Kind    string            `json:"kind,omitempty"`  // of the error
	Class   string            `json:"class,omitempty"` // of the error
	// RetryAfter is how many seconds the response asks to wait; nil if it does not say.
	RetryAfter *float64 `json:"retry_after,omitempty"`
}

// Policy is what one policy decided about a response.
type Policy struct {
	Number     int         `json:"policy"`
	Conditions []Condition `json:"conditions"` // none where it was not asked
}

// Condition is a condition of a policy, with the values of its parts.
type Condition struct {
	Word  string `json:"word"` // when or stop_when
	Text  string `json:"text"`
	Holds bool   `json:"holds"`
	Parts []Part `json:"parts,omitempty"`
	Error string `json:"error,omitempty"`
}

// Part is a part of an expression with its value as JSON, shortened if it is long.
type Part struct {
	Text  string `json:"text"`
	Value string `json:"value,omitempty"`
	Error string `json:"error,omitempty"`
}

// What may follow an attempt.
const (
	NextRequest = "request" // another one, for which Changes say how it differs
	NextWait    = "wait"    // the same request again, after Seconds
	NextEnd     = "end"     // the step has ended
	NextStop    = "stop"    // it would continue, and is left here
)

// NextThing is what follows an attempt.
type NextThing struct {
	Kind    string        `json:"kind"`
	Text    string        `json:"text"`              // what follows and why, for people
	Seconds float64       `json:"seconds,omitempty"` // that are waited first
	Changes []RequestDiff `json:"changes,omitempty"`
}

// RequestDiff is a difference between the next request and the previous one, with values as JSON; "" for a missing
// value.
type RequestDiff struct {
	Path string `json:"path"` // such as params.offset
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Column is a column of rows, with the types of its values.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // such as "number", or "string, nil"
}

// Sink is what a sink would get, once for each page or at the end.
type Sink struct {
	Place   string             `json:"place"`
	Tool    string             `json:"tool"`
	Auth    string             `json:"auth,omitempty"`
	Target  string             `json:"target,omitempty"` // table, file or URL
	Page    int                `json:"page"`
	Rows    []any              `json:"rows"`
	Columns []Column           `json:"columns,omitempty"`
	Params  []expression.Value `json:"params,omitempty"` // of a statement
	// Paths are the folders to which the rows go, where the path names the row, sorted.
	Paths []SinkPath `json:"paths,omitempty"`
	// Tables are those of the lists in the rows, which are not in Rows then: each at any depth, after the one it is in.
	Tables []SinkTable `json:"tables,omitempty"`
	// Written is set if the sink was written to, and Error why writing failed.
	Written bool   `json:"written"`
	Error   string `json:"error,omitempty"`
}

// SinkPath is a folder to which rows of a sink go, below its path.
type SinkPath struct {
	Path string `json:"path"`
	Rows int    `json:"rows"`
}

// SinkTable is a table for lists in the rows of a sink.
type SinkTable struct {
	Table   string   `json:"table"`
	Key     []string `json:"key,omitempty"`
	Rows    []any    `json:"rows"`
	Columns []Column `json:"columns,omitempty"`
}
