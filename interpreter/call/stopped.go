package call

import "reprise/interpreter/call/await"

// StoppedInput identifies a call whose stopped state is requested; kept in workflow history.
type StoppedInput struct {
	By    string `json:"by"` // workflow ID
	Key   string `json:"key"`
	Step  string `json:"step"`
	Visit int    `json:"visit"`
	Index *int   `json:"index,omitempty"`
}

// StoppedCall is the state in which a call was stopped; kept in workflow history.
type StoppedCall struct {
	Key   string `json:"key"` // prefix of the operation keys of its run
	Print string `json:"print,omitempty"`
	// Ledger is the key of the call in ledgers, which may hold more than State.
	Ledger string `json:"ledger,omitempty"`
	// State is nil if the call has failed, or if its state is not known.
	State *State `json:"state,omitempty"`
	// By is set instead of State if the workflow that began the call still has the state: its workflow ID.
	By string `json:"by,omitempty"`
}

// TypeNotContinued is the error type of a call that should continue an earlier one whose state cannot be read. It
// does not start anew, because it might write twice.
const TypeNotContinued = "not_continued"

// isFresh reports whether the state contains nothing that a continuation could use.
func (s *State) isFresh() bool {
	return s.Successes == 0 && s.Restarts == 0 && s.Written == 0 && s.nextTodo().End == nil
}

// CanStartAnew reports whether a call with this state can start anew without losing progress or repeating a write.
func (s *State) CanStartAnew() bool { return s.isFresh() && s.Ledger == "" }

// StoppedState returns the state from which a later call may continue; nil if the call failed for a reason other than a
// cancel.
func (c *Call) StoppedState() *State {
	switch result := c.Result(); {
	case c.stopped != nil:
		state := *c.stopped
		return &state
	case result != nil && result.Failed():
		return nil
	}
	state := c.View().Snapshot()
	return &state
}

// saveStopped saves the state of the call before it ends, so that a later call can continue from it.
func (c *Call) saveStopped() {
	if c.stopped == nil {
		c.stopped = c.StoppedState()
	}
}

// ContinueFrom restores the state of a stopped call. Its due request gets all attempts again, without the wait before
// it. Ledgers must be read first.
func (c *Call) ContinueFrom(stopped StoppedCall) {
	state := *stopped.State
	if c.keeps != nil {
		return // it reads from the state as it is now
	}
	if state.isFresh() {
		state = State{Counters: c.state.Counters}
	} else {
		state.Counters.Limits = c.config.Limits
		if state.nextTodo().End == nil {
			state.dropAttempt(c.config)
		}
	}
	state.Ledger, state.Recalls = stopped.Ledger, true
	c.setState(state)
}

// StoppedAs returns StoppedState together with what identifies the call.
func (t Task) StoppedAs(call *Call) StoppedCall {
	stopped := StoppedCall{Key: t.Run.KeyPrefix(), State: call.StoppedState()}
	if stopped.State != nil {
		stopped.Ledger, stopped.Print = call.newReader().ledgerKey(), t.CallDigest(call, stopped.State.StartedAt)
	}
	return stopped
}

// CanContinue reports whether a call makes the same request as a stopped one, so that it may continue it.
func (t Task) CanContinue(call *Call, stopped StoppedCall) bool {
	return stopped.State != nil && stopped.Print != "" && stopped.Print == t.CallDigest(call, stopped.State.StartedAt)
}

// dropAttempt removes the parts of a state that belong to the attempt that was due.
func (s *State) dropAttempt(config Config) {
	s.Turn, s.Answers, s.Lost, s.RequestAttempts = nil, await.Answers{}, 0, 0
	s.Counters.ResetResumed(config.Policies)
	var todo []Todo
	for _, next := range s.Todo {
		switch {
		case next.Wait != nil, next.Hold != nil, next.Await != nil:
		case next.Sink != nil:
			todo = append(todo, sinkTodo(next.Sink.Choice)...)
		default:
			todo = append(todo, next)
		}
	}
	s.Todo = todo
}
