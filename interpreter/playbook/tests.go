package playbook

import (
	"time"

	"reprise/interpreter/source"
)

// TestSuffix ends the name of a file of tests: users_test.yaml tests users.yaml.
const TestSuffix = "_test.yaml"

// Tests are a file of tests of one playbook (docs/how-to/test-a-playbook.md).
type Tests struct {
	File *source.File
	// Playbook is its file, relative to that of the tests.
	Playbook    string
	PlaybookPos source.Position
	Tests       []*Test
}

// Test is one run of the playbook, with the answers of the outside world and the expected
// outcome.
type Test struct {
	Name string
	Pos  source.Position
	// Workload is laid over that of the playbook.
	Workload map[string]any
	// Connections are made up: a text each, or what a connection of OAuth 2.0 has.
	Connections map[string]any
	Strict      bool
	// Partition is the key of the one that the run is about, "" for the newest.
	Partition string
	// Clock is when the run begins, zero for DefaultClock; ScheduledAt is when a schedule had
	// it due, zero for a run that none has started.
	Clock, ScheduledAt time.Time
	// Files are made in the folder of the test before the run: their texts by their paths.
	Files map[string]string
	// States are the watermarks that steps have kept from runs before, by the names of the
	// states.
	States  map[string]any
	Answers []*TestAnswers
	// Before are runs before this one, in the same folder. They have no name and expect nothing.
	Before []*Test
	At     []*TestAct
	Expect TestExpect
}

// DefaultClock is the start time of tests that do not set one.
var DefaultClock = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// CallName names the calls of a step, or of a sink, as tests do: fetch, fetch[2],
// fetch{id: p03}, fetch.sink, outer/fetch, outer[1]/fetch.
type CallName struct {
	Pos     source.Position
	Written string
	// Place is the step, or the place of a sink, behind the steps that run its playbook.
	Place string
	// Iterations chooses iterations of the step, and Outer those of the steps that run its
	// playbook, the first one first.
	TestIterations
	Outer []TestIterations
}

// TestIterations are some of those of a loop.
type TestIterations struct {
	// Index is the iteration, nil for all; Element are members of the element, nil for all.
	Index   *int
	Element map[string]string
}

// All reports whether all iterations are meant.
func (i TestIterations) All() bool { return i.Index == nil && i.Element == nil }

// TestAnswers are what the attempts of some calls get, in this order.
type TestAnswers struct {
	CallName

	Answers []*TestAnswer
}

// TestAnswer is what an attempt gets.
type TestAnswer struct {
	Pos   source.Position
	Words Words // keys the author wrote
	// Status, Headers and Body describe an HTTP response. BodyText is a body that is sent
	// verbatim.
	Status   int
	Headers  map[string]any
	Body     any
	BodyText string
	// Error is TestErrorConnection or TestErrorTimeout, "" for none.
	Error string
	// Result is what a tool gives in place of running.
	Result any
	// Lost says that the worker is lost with the attempt.
	Lost bool
	// Complete, Fail, Approve, Reject and Progress are said from outside of an attempt that
	// is awaited, by the key that is in Words, After so long.
	Complete any
	Says     map[string]any
	After    time.Duration
	// Recorded is a file whose answers are here.
	Recorded string
	// Repeat says that the answer is also used for all attempts that follow.
	Repeat bool
	// Element is the loop element that the answer is for; nil for any.
	Element any
	// Request is the recorded request, for information only.
	Request any
}

// The errors with which a test can end an attempt.
const (
	TestErrorConnection = "connection"
	TestErrorTimeout    = "timeout"
)

// TestAct is an action of people, or an event, at a time of the run.
type TestAct struct {
	Pos   source.Position
	After time.Duration // since the run began
	Words Words
	// Step is the step to act on, "" for the run; Reason is why.
	Step, Reason string
	// LoseWorker is the step whose next attempt loses its worker.
	LoseWorker string
}

// TestExpect is the expected outcome of a run. Only what is in Words is compared.
type TestExpect struct {
	Pos      source.Position
	Words    Words
	Values   Words
	Status   string
	Result   any
	Error    any
	Requests []*TestList
	Waits    []*TestList
	Sinks    []*TestList
	Steps    map[string]string
	Routes   map[string][]string // the steps that each led to, in order
	Events   []*TestEvent        // in order, among those of their kinds
	Warnings []string
	Within   time.Duration
}

// TestEvent is an event that is expected of the run.
type TestEvent struct {
	Pos  source.Position
	Name string // of its kind
	// Fields are the fields of the event that are compared.
	Fields map[string]any
}

// TestList is what is expected of some calls, in order.
type TestList struct {
	CallName

	Items []any
	// Places are the places of the items.
	Places []source.Position
}

// connecting are the calls that may have a connection: of one that moves rows, those of its source and its destination.
func (pb *Playbook) connecting() (all []*Action) {
	for _, call := range pb.Actions() {
		action := pb.Resolve(call.Action)
		if !action.Traits().Moves {
			all = append(all, call.Action)
			continue
		}
		for _, field := range []string{FieldFrom, FieldTo} {
			if nested := action.Field(field).Call(); nested != nil {
				all = append(all, nested)
			}
		}
	}
	return all
}

// ConnectionsOf are the connections that steps and sinks of a tool name, nil where a
// template names one.
func (pb *Playbook) ConnectionsOf(tool string) []string {
	names := []string{}
	for _, action := range pb.connecting() {
		name, _ := pb.Resolve(action).ToolName()
		auth := action.Auth
		switch {
		case name != tool && name != "" || auth == nil:
		case auth.Template != nil:
			return nil
		default:
			if text, isText := auth.Value.(string); isText {
				names = append(names, text)
			}
		}
	}
	return names
}
