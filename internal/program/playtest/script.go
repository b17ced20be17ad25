package playtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.temporal.io/sdk/activity"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// script has the answers of a test, which attempts consume. It is safe for concurrent use.
type script struct {
	mu         sync.Mutex
	lists      []*answerList
	lose       map[string]bool // steps whose next attempt loses its worker
	performed  map[*playbook.TestAct]bool
	unanswered []unansweredRequest
	complaints []complaint
}

// answerList has the answers for calls with a name.
type answerList struct {
	playbook.CallName

	entries []*entry
}

// entry is an answer, and whether it was used.
type entry struct {
	*playbook.TestAnswer

	used bool
}

// unansweredRequest is a request for which no answer was left.
type unansweredRequest struct {
	who     caller
	request map[string]any
	// needs is an entry that would answer the request.
	needs string
}

// complaint is a mistake in the test that only the run showed.
type complaint struct {
	pos  source.Position
	text string
}

// caller identifies a call in the terms of tests.
type caller struct {
	place string
	iteration
	// outer are the iterations whose child runs contain the call, the outermost first.
	outer   []iteration
	visit   int
	attempt int
}

// iteration is an iteration of a loop, or none.
type iteration struct {
	index   *int
	element any
}

// displayName returns the name of the call for people.
func (c caller) displayName() string {
	parts := strings.Split(c.place, "/")
	for i, part := range parts {
		of := c.iteration
		if i < len(parts)-1 {
			of = iteration{}
			if i < len(c.outer) {
				of = c.outer[i]
			}
		}
		if of.index == nil {
			continue
		}
		step, rest, sink := strings.Cut(part, ".")
		if parts[i] = fmt.Sprintf("%s[%d]", step, *of.index); sink {
			parts[i] += "." + rest
		}
	}
	return strings.Join(parts, "/")
}

// isNamed reports whether a name in a test refers to the call.
func (c caller) isNamed(name playbook.CallName) bool {
	if name.Place != c.place || !c.isAmong(name.TestIterations) {
		return false
	}
	for i, chosen := range name.Outer {
		of := iteration{}
		if i < len(c.outer) {
			of = c.outer[i]
		}
		if !of.isAmong(chosen) {
			return false
		}
	}
	return true
}

// isAmong reports whether an iteration is one of the chosen ones.
func (i iteration) isAmong(chosen playbook.TestIterations) bool {
	if chosen.Index != nil && (i.index == nil || *chosen.Index != *i.index) {
		return false
	}
	for member, wanted := range chosen.Element {
		value := i.element
		if object, isMap := i.element.(map[string]any); isMap {
			value = object[member]
		}
		if expression.Text(value) != wanted {
			return false
		}
	}
	return true
}

func newScript(suite *Suite, test *playbook.Test) *script {
	s := &script{lose: map[string]bool{}, performed: map[*playbook.TestAct]bool{}}
	for _, answers := range test.Answers {
		list := &answerList{CallName: answers.CallName}
		for _, answer := range answers.Answers {
			if answer.Recorded == "" {
				list.entries = append(list.entries, &entry{TestAnswer: answer})
				continue
			}
			for _, recorded := range suite.recordedAnswers(answer, answers.CallName) {
				list.entries = append(list.entries, &entry{TestAnswer: recorded})
			}
		}
		s.lists = append(s.lists, list)
	}
	// Lists that name iterations take precedence.
	slices.SortStableFunc(s.lists, func(a, b *answerList) int { return chosenIndex(b.CallName) - chosenIndex(a.CallName) })
	return s
}

func chosenIndex(name playbook.CallName) int {
	n := 0
	for _, one := range append([]playbook.TestIterations{name.TestIterations}, name.Outer...) {
		if !one.SelectsAll() {
			n++
		}
	}
	return n
}

// nextAnswer consumes the next answer of a call if it fits; nil if there is none.
func (s *script) nextAnswer(who caller, fits func(*playbook.TestAnswer) bool) *playbook.TestAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.findEntry(who)
	if found == nil || !fits(found.TestAnswer) {
		return nil
	}
	found.used = true
	return found.TestAnswer
}

// findEntry returns the next unused answer for a call.
func (s *script) findEntry(who caller) *entry {
	for _, list := range s.lists {
		if !who.isNamed(list.CallName) {
			continue
		}
		for _, one := range list.entries {
			if (!one.used || one.Repeat) && (one.Element == nil || coversValue(one.Element, who.element)) {
				return one
			}
		}
	}
	return nil
}

// hasAnswers reports whether the test has any answers for a call.
func (s *script) hasAnswers(who caller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.lists, func(list *answerList) bool { return who.isNamed(list.CallName) })
}

// addMiss records a request without an answer.
func (s *script) addMiss(u unansweredRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unanswered = append(s.unanswered, u)
}

func (s *script) addComplaint(pos source.Position, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complaints = append(s.complaints, complaint{pos, text})
}

// loseNext makes the next attempt of a step lose its worker.
func (s *script) loseNext(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose[step] = true
}

// dueAct records that an action of people is due.
func (s *script) dueAct(act *playbook.TestAct) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.performed[act] = true
}

// losesWorker reports, once, whether the current attempt loses its worker.
func (s *script) losesWorker(who caller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	step := stepOf(who.place)
	if !s.lose[step] {
		return false
	}
	delete(s.lose, step)
	return true
}

// unusedAnswers returns the unused answers, in the order of the file. The caller must hold the lock.
func (s *script) unusedAnswers() []*playbook.TestAnswer {
	var all []*playbook.TestAnswer
	for _, list := range s.lists {
		for _, one := range list.entries {
			if !one.used {
				all = append(all, one.TestAnswer)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *playbook.TestAnswer) int { return a.Pos.Line - b.Pos.Line })
	return all
}

// callerOf returns the call that an attempt belongs to.
func (s *stage) callerOf(ctx context.Context, in interpreter.ToolInput) caller {
	prefix := ""
	for _, parent := range in.Parents {
		prefix += parent.Step + "/"
	}
	place := cmp.Or(in.Place, in.Step)
	who := caller{place: prefix + place, visit: in.Visit, attempt: in.Attempt}
	if activity.IsActivity(ctx) {
		who.iteration, who.outer = s.seen.iterationAt(activity.GetInfo(ctx).WorkflowExecution.ID, in.Index)
	}
	return who
}
