package call

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Noted says which ledger entries a call has; kept in workflow history. Entries serve the
// activity that has made them: once its result is in history they are not needed any
// more, and are deleted.
type Noted int

const (
	// NotNoted says that there are no entries.
	NotNoted Noted = iota
	// NotedOnce says that there are entries of an activity that was delivered once.
	NotedOnce
	// NotedAgain says that there are entries of one that was delivered more than once. A worker that was
	// frozen and not lost may still write, and must find that this was written. So
	// an entry is emptied and not deleted.
	NotedAgain
)

// ForgetInput is the argument of ForgetActivity. It does not travel.
type ForgetInput struct {
	Task  Task
	Calls []Snapshot // that have ended
	Again bool       // NotedAgain, of one of them
}

// MaxContinuation bounds a continuation, in bytes. What is larger goes through
// history before it is written.
const MaxContinuation = 128 << 10

// continuation is the JSON form of Note.Continuation. What the call had before
// is left out of State, which would otherwise grow with every page.
type continuation struct {
	State State `json:"state"`
	// Collected and Seen are how many elements and bytes come before those of
	// State. Collected is nil where State has all that was collected.
	Collected *int `json:"collected,omitempty"`
	Seen      int  `json:"seen,omitempty"`
}

// Mark is a point of a call to which its host can return.
type Mark struct{ restarts, collected, seen int }

// Mark is the current point of the call.
func (c *Call) Mark() Mark {
	return Mark{restarts: c.state.Restarts, collected: c.state.collectedSoFar(), seen: len(c.state.Seen)}
}

// collectedSoFar counts also what a detached call has left with its workflow.
func (s *State) collectedSoFar() int {
	list, _ := s.Collected.Data.([]any)
	return s.Detached + len(list)
}

// LedgerEntry is the entry of the write that is due, for its ledger: how
// the call continues once the sink has written. since is the state of the call at
// the entry before, or when its host loaded it; noted is what its ledgers hold then.
func (c *Call) LedgerEntry(since Mark, noted Noted, now time.Time) (interpreter.LedgerEntry, error) {
	after := *c
	after.SetNoted(noted)
	after.SinkDone(interpreter.CallResult{Status: interpreter.StatusSuccess}, now)
	next := continuation{State: after.Snapshot()}
	state := &next.State
	whole := since.restarts != state.Restarts // nothing of what was there at since is left
	if whole {
		since.seen = 0
	}
	if after.Finished() {
		next.State = State{Todo: state.Todo, Written: state.Written, Noted: state.Noted, Ledger: state.Ledger}
	} else {
		next.Seen = since.seen
		state.Seen = state.Seen[since.seen:]
		if list, isList := state.Collected.Data.([]any); isList && c.config.appends() && !whole {
			next.Collected = &since.collected
			state.Collected = expression.Of(list[since.collected-c.state.Detached:])
		}
		state.Detached = 0
	}
	encoded, err := json.Marshal(next)
	if err != nil {
		return interpreter.LedgerEntry{}, fmt.Errorf("encode how the call continues: %w", err)
	}
	return interpreter.LedgerEntry{Call: c.ledgerKey(), Written: state.Written, Continuation: encoded}, nil
}

// SetNoted sets what ledgers hold of the call.
func (c *Call) SetNoted(noted Noted) { c.state.Noted = max(c.state.Noted, noted) }

// Resume restores the call as it was behind a write, from the continuation
// in the ledger entry of that write.
func (c *Call) Resume(noted []byte) error {
	var next continuation
	if err := json.Unmarshal(noted, &next); err != nil {
		return fmt.Errorf("decode how the call continues: %w", err)
	}
	state := next.State
	if len(state.Todo) == 0 {
		return fmt.Errorf("the note of write %d does not say how the call continues", state.Written)
	}
	if state.head().End == nil {
		if next.Seen > len(c.state.Seen) {
			return fmt.Errorf("the note of write %d does not belong to this call", state.Written)
		}
		state.Seen = slices.Concat(c.state.Seen[:next.Seen], state.Seen)
		if next.Collected != nil {
			before, _ := c.state.Collected.Data.([]any)
			kept := *next.Collected - c.state.Detached
			if kept < 0 || kept > len(before) {
				return fmt.Errorf("the note of write %d does not belong to this call", state.Written)
			}
			added, _ := state.Collected.Data.([]any)
			all := make([]any, 0, kept+len(added)) // not nil: an empty list is what was collected
			state.Collected = expression.Of(append(append(all, before[:kept]...), added...))
			state.Detached = c.state.Detached
		}
	}
	c.state = state
	return nil
}

// ledgerKey names the call in ledgers. Each run of an identity makes calls of its
// own, unless it continues one that an earlier run has begun.
func (c *Call) ledgerKey() string {
	if c.state.Ledger != "" {
		return c.state.Ledger
	}
	index := any(nil)
	if c.config.Index != nil {
		index = *c.config.Index
	}
	run := c.config.Run
	return expression.Digest(run.Identity(), run.WholeLap(), c.config.Step.Name, c.config.Visit, index)[:operationKeyLength]
}

// Ledgers are where entries of this call may be, as the inputs with which their
// tools are queried: one for each sink whose target does not depend on results
// of attempts.
func (c *Call) Ledgers(now time.Time) []interpreter.ToolInput {
	var asked []interpreter.ToolInput
	for _, sink := range c.config.sinks() {
		if input, fixed := c.ledger(sink, now); fixed {
			input.Note = &interpreter.LedgerEntry{Call: c.ledgerKey(), Written: c.state.Written}
			asked = append(asked, input)
		}
	}
	return asked
}

// sinks are all that the call may write to.
func (c *Config) sinks() []*playbook.Sink {
	var all []*playbook.Sink
	for _, policy := range c.Policies {
		all = append(all, policy.Then.PerIteration, policy.Then.Sink)
	}
	all = append(append(all, c.After...), c.DeadLetter)
	return slices.DeleteFunc(all, func(sink *playbook.Sink) bool { return sink == nil })
}

// ledger is where a sink writes to, without what it writes. It is not fixed
// where that is only known once there is something to write.
func (c *Call) ledger(sink *playbook.Sink, now time.Time) (input interpreter.ToolInput, fixed bool) {
	action := c.config.Book.Resolve(sink.Action)
	if !playbook.FixedPlace(action, c.config.Policies) {
		return interpreter.ToolInput{}, false
	}
	budget := decisionBudget(now)
	name, err := action.Tool.Render(c.config.Scope, budget)
	if err != nil {
		return interpreter.ToolInput{}, false
	}
	request, err := renderer{action: action, scope: c.config.Scope, budget: budget}.request(Request{})
	if err != nil {
		return interpreter.ToolInput{}, false // the write reports why
	}
	tool := expression.Text(name)
	return interpreter.ToolInput{
		Tool: tool, Step: c.config.Step.Name, Visit: c.config.Visit, Index: c.config.Index, Place: sink.Place,
		Fields: request.Fields, Auth: request.Auth, TimeoutSeconds: timeoutOf(action, tool).Seconds(),
	}, true
}

// Fixed reports whether the target of the sink that is due, which could be
// rendered, is among Ledgers.
func (c *Call) Fixed() bool {
	return playbook.FixedPlace(c.config.Book.Resolve(c.config.pendingSink(*c.state.head().Sink).Action), c.config.Policies)
}

// appends reports whether what the call collects only ever grows at its end.
func (c *Config) appends() bool {
	return !c.collectsBy(playbook.Replace) && !c.collectsBy(playbook.Merge)
}

func (c *Config) collectsBy(strategy playbook.Strategy) bool {
	return slices.ContainsFunc(c.Policies, func(policy *playbook.Policy) bool {
		return policy.Then.Collect != nil && policy.Then.Collect.Strategy == strategy
	})
}
