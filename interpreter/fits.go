package interpreter

import (
	"cmp"
	"errors"
	"fmt"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// What a call is carried with was written by a worker, and comes back from
// history. Anybody who may start workflows can write something else in its place,
// so it is held against the playbook before any of it is used: what does not fit
// is an error, and no state makes the machine panic.

// Check holds a task and the calls that go with it against its step. The error
// says what does not fit.
func (t Task) Check(book *playbook.Playbook, step *playbook.Step, calls ...Carried) error {
	if step.Action == nil {
		return fmt.Errorf("step %q has no tool", step.Name)
	}
	if t.Visit < 0 {
		return fmt.Errorf("visit %d of step %q", t.Visit, step.Name)
	}
	if err := cmp.Or(t.Limits.Check(), t.Data.Check(), mapOrNil("args", t.Args), t.Nesting.Check()); err != nil {
		return err
	}
	for _, carried := range calls {
		if err := carried.check(step); err != nil {
			return fmt.Errorf("step %q: %w", step.Name, err)
		}
		if carried.State == nil {
			continue
		}
		if err := t.Call(book, step, carried, nil).Check(); err != nil {
			return fmt.Errorf("step %q: the state of the call: %w", step.Name, err)
		}
	}
	return nil
}

// check holds the place of a call against its step.
func (c Carried) check(step *playbook.Step) error {
	switch {
	case step.Loop == nil && c.Index == nil:
		return nil
	case step.Loop == nil:
		return fmt.Errorf("iteration %d of a step without a loop", *c.Index)
	case c.Index == nil:
		return errors.New("a call without its place in the loop")
	case *c.Index < 0 || *c.Index >= c.Size:
		return fmt.Errorf("iteration %d of %d", *c.Index, c.Size)
	}
	return nil
}

// Check finds limits that no worker has.
func (l RunLimits) Check() error {
	if l.MaxRetries < 0 || l.MaxDelaySeconds < 0 || l.MaxRuns < 0 || l.MaxPayload < 0 || l.OffloadAbove < 0 {
		return errors.New("a limit is below 0")
	}
	return nil
}

// Check finds data that no run gathers: each part is a map, or nothing.
func (d Data) Check() error {
	return cmp.Or(mapOrNil("workload", d.Workload), mapOrNil("vars", d.Vars), mapOrNil("steps", d.Steps))
}

func mapOrNil(what string, value expression.Value) error {
	if _, isMap := value.Data.(map[string]any); !isMap && value.Data != nil {
		return fmt.Errorf("%s is a %s and no map", what, expression.TypeName(value.Data))
	}
	return nil
}

// Check holds a routing that goes on in another history against the graph: no
// step is under way then.
func (g *Graph) Check(routing Routing) error {
	if routing.Visits == nil {
		return errors.New("the visits of the steps are missing")
	}
	for _, name := range sortedKeys(routing.Visits) {
		if _, found := g.place[name]; !found || routing.Visits[name] < 1 {
			return fmt.Errorf("%d visits of %q", routing.Visits[name], name)
		}
	}
	if len(routing.Running) > 0 {
		return fmt.Errorf("step %q is under way", routing.Running[0])
	}
	for _, arrival := range routing.Waiting {
		if _, found := g.place[arrival.Step]; !found {
			return fmt.Errorf("a branch waits at %q, which is no step", arrival.Step)
		}
		if arrival.From < -1 || arrival.From >= len(g.book.Steps) {
			return fmt.Errorf("a branch comes from step %d of %d", arrival.From, len(g.book.Steps))
		}
		if err := mapOrNil("args", arrival.Args); err != nil {
			return err
		}
	}
	return nil
}

// Check finds a result that no call gives.
func (r CallResult) Check() error {
	switch r.Status {
	case StatusSuccess, Partial:
		return nil
	case StatusError:
		if r.Error == nil {
			return errors.New("a failure without an error")
		}
		return nil
	}
	return fmt.Errorf("a result with the status %q", r.Status)
}

// Check holds the state of a call that was carried here against its playbook.
func (c *Call) Check() error {
	return cmp.Or(c.config.check(&c.State), c.checkAwait())
}

// checkAwait finds an attempt that awaits an answer which its tool does not ask
// for, and an answer that is to nothing or that nobody could have given.
func (c *Call) checkAwait() error {
	answer := c.State.Answer
	switch {
	case c.Awaits() == nil && answer == nil:
		return nil
	case c.Awaits() == nil:
		return errors.New("it has an answer, and awaits none")
	case !c.Asks():
		return errors.New("it awaits an answer, and its tool asks for none")
	}
	if err := c.asksWell(); err != nil || answer == nil {
		return err
	}
	if answer.Verb == AnswerProgress {
		return errors.New("it goes on, and has its answer")
	}
	return c.checkAnswer(*answer)
}

// check holds a state of a call of these against them.
func (c *CallConfig) check(s *CallState) error {
	if s.head().End == nil {
		if err := cmp.Or(c.checkCounts(s), c.checkPolicies(s)); err != nil {
			return err
		}
	}
	return c.checkTodo(s)
}

// checkCounts finds numbers that counting from 0 does not give.
func (c *CallConfig) checkCounts(s *CallState) error {
	for _, counted := range []struct {
		what string
		n    int
	}{
		{"attempts", s.Attempts},
		{"request_attempts", s.RequestAttempts},
		{"lost", s.Lost},
		{"restarts", s.Restarts},
		{"successes", s.Successes},
		{"written", s.Written},
		{"detached", s.Detached},
		{"noted", int(s.Noted)},
		{"told", s.Counters.Told},
		{"told_in_row", s.Counters.ToldInRow},
	} {
		if counted.n < 0 {
			return fmt.Errorf("%s is %d", counted.what, counted.n)
		}
	}
	if s.RequestAttempts > s.Attempts {
		return fmt.Errorf("%d attempts of a request, of %d of the call", s.RequestAttempts, s.Attempts)
	}
	if len(s.Counters.Policies) != len(c.Policies) {
		return fmt.Errorf("counters of %d policies, where there are %d", len(s.Counters.Policies), len(c.Policies))
	}
	for _, counter := range s.Counters.Policies {
		if counter.Failures < 0 || counter.Successes < 0 {
			return errors.New("a policy has counted below 0")
		}
	}
	if s.Counters.Limits != c.Limits {
		return errors.New("its limits are not those of the run")
	}
	return nil
}

// checkPolicies finds numbers of policies that the call does not have, or that do
// not do what they are named for.
func (c *CallConfig) checkPolicies(s *CallState) error {
	numbers := append([]int{s.Last.Policy}, s.Matched...)
	if s.PagedBy != nil {
		numbers = append(numbers, s.PagedBy.Policy)
		if s.PagedBy.Policy == 0 {
			return errors.New("paged_by names policy 0")
		}
	}
	for _, number := range append(numbers, s.Collector, s.Pager) {
		if number < 0 || number > len(c.Policies) {
			return fmt.Errorf("policy %d of %d", number, len(c.Policies))
		}
	}
	if s.Collector != 0 && c.then(s.Collector).Collect == nil {
		return fmt.Errorf("policy %d collects nothing", s.Collector)
	}
	if s.Pager != 0 && c.then(s.Pager).PerIteration == nil {
		return fmt.Errorf("policy %d has no sink for pages", s.Pager)
	}
	return nil
}

// checkTodo finds a row of things to do that no outcome gives: see Todo.
func (c *CallConfig) checkTodo(s *CallState) error {
	if len(s.Todo) == 0 {
		if s.Attempts > 0 || s.Written > 0 || !s.StartedAt.IsZero() {
			return errors.New("it has begun, and nothing is to do")
		}
		return nil
	}
	for at, next := range s.Todo {
		if !next.isOne() {
			return fmt.Errorf("what is to do is not one thing, in place %d of %d", at+1, len(s.Todo))
		}
		if next.Sink != nil {
			if err := c.checkSink(*next.Sink, at == 0); err != nil {
				return err
			}
		}
	}
	row, behindPage := s.Todo, false
	if first := row[0].Sink; first != nil && first.Page {
		row, behindPage = row[1:], true
	}
	switch last := s.last(); {
	case last.Attempt != nil:
		return checkAttempt(row, behindPage)
	case last.End != nil:
		return checkEnd(row)
	}
	return errors.New("it comes to no attempt and to no end")
}

// isOne reports whether exactly one field is set.
func (t Todo) isOne() bool {
	set := 0
	for _, is := range []bool{t.Attempt != nil, t.Await != nil, t.Wait != nil, t.Hold != nil, t.Sink != nil, t.End != nil} {
		if is {
			set++
		}
	}
	return set == 1
}

// checkAttempt finds an attempt behind anything but a wait, and one without its
// request: it brings that along where the sink of a page comes before it.
func checkAttempt(row []Todo, behindPage bool) error {
	last := len(row) - 1
	switch request := row[last].Attempt.Request; {
	case behindPage && request == nil:
		return errors.New("the attempt behind a page has no request")
	case !behindPage && request != nil:
		return errors.New("the attempt has another request")
	case last > 1, last == 1 && !row[0].waits(behindPage):
		return errors.New("it waits for nothing")
	}
	return nil
}

// waits reports whether an attempt may stand behind it. None behind a page has been
// made, so none awaits an answer.
func (t Todo) waits(behindPage bool) bool {
	switch {
	case t.Hold != nil:
		return t.Hold.Version >= 0
	case t.Await != nil:
		return !behindPage && t.Await.Limit >= 0
	}
	return t.Wait != nil && t.Wait.Delay >= 0
}

// checkEnd finds an end behind anything but sinks, and a dead letter of none.
func checkEnd(row []Todo) error {
	last := len(row) - 1
	end := row[last].End
	for at, next := range row[:last] {
		if next.Sink == nil {
			return errors.New("it goes on before its end with more than sinks")
		}
		if next.Sink.DeadLetter && (!end.Failed() || at < last-1) {
			return errors.New("a dead letter of a call that has not failed")
		}
	}
	return end.Check()
}

// checkSink finds a sink that the call does not have, and one that comes too early:
// only the first may be that of a page, or under way.
func (c *CallConfig) checkSink(sink pendingSink, first bool) error {
	under := sink.State
	sink.State = nil
	switch {
	case !c.hasSink(sink):
		return fmt.Errorf("there is no sink %+v", sink)
	case !first && (sink.Page || under != nil):
		return fmt.Errorf("before the sink %+v comes another", sink)
	case under == nil:
		return nil
	}
	config := *c
	config.Policies, config.After, config.DeadLetter = c.pendingSink(sink).Action.Retry, nil, nil
	if under.head().Await != nil || under.Answer != nil {
		return errors.New("a sink awaits an answer")
	}
	if err := config.check(under); err != nil {
		return fmt.Errorf("the sink under way: %w", err)
	}
	return nil
}

// hasSink reports whether a sink is one of the call's.
func (c *CallConfig) hasSink(sink pendingSink) bool {
	switch sink {
	case pendingSink{Policy: sink.Policy, Page: sink.Page}:
		return sink.Policy > 0 && sink.Policy <= len(c.Policies) && c.pendingSink(sink) != nil
	case pendingSink{After: sink.After}:
		return sink.After > 0 && sink.After <= len(c.After)
	case pendingSink{DeadLetter: true}:
		return c.DeadLetter != nil
	}
	return false
}
