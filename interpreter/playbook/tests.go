package playbook

import (
	"time"

	"reprise/interpreter/source"
)

// TestSuffix is the end of the name of a file of tests: users_test.yaml tests users.yaml.
const TestSuffix = "_test.yaml"

// Tests is a file of tests of one playbook (docs/how-to/test-a-playbook.md).
type Tests struct {
	File *source.File
	// Playbook is the path of its file, relative to that of the tests.
	Playbook    string
	PlaybookPos source.Position
	Tests       []*Test
}

// Test is one run of the playbook, with the responses of the outside world and the expected outcome.
type Test struct {
	Name string
	Pos  source.Position
	// Workload is merged over that of the playbook.
	Workload map[string]any
	// Connections are fictitious: each is a text, or the fields of an OAuth 2.0 connection.
	Connections map[string]any
	Strict      bool
	// Partition is the key of the partition that the run loads, "" for the newest.
	Partition string
	// Clock is when the run begins, zero for DefaultClock. ScheduledAt is when a schedule was due to start it, zero
	// for a run without a schedule.
	Clock, ScheduledAt time.Time
	// Files are created in the folder of the test before the run: texts by path.
	Files map[string]string
	// States are the watermarks that steps have kept from earlier runs, by name of the state.
	States  map[string]any
	Answers []*TestAnswers
	// Before are earlier runs in the same folder. They have no name and no expectations.
	Before []*Test
	At     []*TestAct
	Expect TestExpect
}

// DefaultClock is the start time of tests that do not set one.
var DefaultClock = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// CallName identifies calls of a step or of a sink in tests: fetch, fetch[2], fetch{id: p03}, fetch.sink,
// outer/fetch, outer[1]/fetch.
type CallName struct {
	Pos     source.Position
	Written string
	// Place is the last part of the name without its selection of iterations: fetch, or fetch.sink. Steps that run its playbook
	// come before it, as in outer/fetch.
	Place string
	// The embedded TestIterations select iterations of the step, and Outer those of the steps that run its
	// playbook, outermost first.
	TestIterations
	Outer []TestIterations
}

// TestIterations selects iterations of a loop.
type TestIterations struct {
	// Index selects one iteration, nil for all; Element selects by members of the element, nil for all.
	Index   *int
	Element map[string]string
}

// SelectsAll reports whether all iterations are selected.
func (i TestIterations) SelectsAll() bool { return i.Index == nil && i.Element == nil }

// TestAnswers are the answers to the attempts of some calls, in order.
type TestAnswers struct {
	CallName

	Answers []*TestAnswer
}

// TestAnswer is the answer to an attempt.
type TestAnswer struct {
	Pos   source.Position
	Words Words // keys that the author wrote
	// Status, Headers and Body describe an HTTP response. BodyText is a body that is sent verbatim.
	Status   int
	Headers  map[string]any
	Body     any
	BodyText string
	// Error is TestErrorConnection or TestErrorTimeout, "" for none.
	Error string
	// Result is the result of a tool, which is not run.
	Result any
	// Lost says that the worker is lost with the attempt.
	Lost bool
	// Complete, Fail, Approve, Reject and Progress answer an awaited attempt from outside, according to the key in
	// Words, after the time After.
	Complete any
	Says     map[string]any
	After    time.Duration
	// Recorded is the path of a file with the answers.
	Recorded string
	// Repeat says that the answer also applies to all later attempts.
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
	// Step is the step to act on, "" for the run; Reason is the reason given.
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
	Routes   map[string][]string // by step, the steps that it led to, in order
	Events   []*TestEvent        // in order, among those of their kinds
	Warnings []string
	Within   time.Duration
}

// TestEvent is an expected event of the run.
type TestEvent struct {
	Pos  source.Position
	Name string // kind of the event
	// Fields are the fields of the event that are compared.
	Fields map[string]any
}

// TestList has the expectations for some calls, in order.
type TestList struct {
	CallName

	Items []any
	// Places are the positions of the items.
	Places []source.Position
}

// connectedActions returns the calls that may have a connection: for a transfer, those of its source and its destination.
func (pb *Playbook) connectedActions() (all []*Action) {
	for _, call := range pb.AllCalls() {
		action := pb.ResolveAction(call.Action)
		if !action.ToolTraits().Moves {
			all = append(all, call.Action)
			continue
		}
		for _, field := range []string{FieldFrom, FieldTo} {
			if nested := action.Field(field).AsCall(); nested != nil {
				all = append(all, nested)
			}
		}
	}
	return all
}

// ConnectionsOf returns the connections that steps and sinks of a tool name, nil if a template gives one.
func (pb *Playbook) ConnectionsOf(tool string) []string {
	names := []string{}
	for _, action := range pb.connectedActions() {
		name, _ := pb.ResolveAction(action).ToolName()
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
