package call

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
)

// Witness is shown what calls decide, in the order in which they do. It changes nothing
// and is part of no history: tests of playbooks have one, workers have none.
type Witness func(Seen)

// Seen is one thing that a call has decided.
type Seen struct {
	Facts
	// Policies are those that matched an outcome, the one that decided last; none where
	// no policy did.
	Policies []*playbook.Policy
	// Decided says that Policies are about the outcome of an attempt, whose number is
	// Attempt, and Repeats that another one follows.
	Decided, Repeats bool
	Attempt          int
	// Error is the failure that was decided about, nil for a success.
	Error *interpreter.ErrorObject
	// Why says in words why a policy that matched does not repeat; "" where it does.
	Why string
	// Awaits is the attempt that an answer from outside is awaited for from now on, nil
	// for none, for as long as Limit says; 0 is for ever.
	Awaits *interpreter.AnswerTo
	Limit  time.Duration
}

// Watch shows what the call decides from now on, and what its sinks do; nil is nobody.
func (c *Call) Watch(witness Witness) *Call {
	c.config.witness = witness
	return c
}

// showDecision shows what the policies say of an outcome.
func (c *Call) showDecision(outcome interpreter.Outcome, decision retry.Decision) {
	if c.config.witness == nil {
		return
	}
	seen := Seen{
		Facts: c.Facts(), Decided: true, Repeats: decision.Repeats(), Attempt: c.state.Attempts, Error: outcome.Err, Why: decision.Why,
	}
	for _, number := range decision.Matched {
		seen.Policies = append(seen.Policies, c.config.Policies[number-1])
	}
	c.config.witness(seen)
}

// showAwaited shows that an attempt is awaited.
func (c *Call) showAwaited() {
	if c.config.witness != nil {
		address := c.Address()
		c.config.witness(Seen{Facts: c.Facts(), Attempt: c.View().Attempt, Awaits: &address, Limit: c.state.head().Await.Limit})
	}
}
