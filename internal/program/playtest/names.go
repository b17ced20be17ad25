package playtest

import (
	"maps"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// names are the calls of a playbook by the names that tests use for them.
type names struct {
	steps  map[string]*playbook.Step
	places map[string]bool // of sinks and notices
	opaque bool            // it runs other playbooks, whose calls are not known here
}

func (n *names) addNames(book *playbook.Playbook, prefix string) {
	for _, place := range book.SinkPlaces() {
		n.places[prefix+place] = true
	}
	for _, step := range book.CallSteps() {
		n.steps[prefix+step.Name] = step
		if step.Action == nil || !book.ResolveAction(step.Action).ToolTraits().Plays {
			continue
		}
		if inner := book.ResolveAction(step.Action).Inline; inner != nil {
			n.addNames(inner, prefix+step.Name+"/")
		} else {
			n.opaque = true
		}
	}
}

// isKnown reports whether there is a call with a name.
func (n *names) isKnown(place string) bool {
	notice, _, _ := cutLast(place) // of an event
	return n.steps[place] != nil || n.places[place] || n.places[notice] || n.opaque && strings.Contains(place, "/")
}

// cutLast splits a text at its last dot.
func cutLast(place string) (before, behind string, found bool) {
	at := strings.LastIndexByte(place, '.')
	if at < 0 {
		return place, "", false
	}
	return place[:at], place[at+1:], true
}

func (n *names) allNames() []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(n.steps)), maps.Keys(n.places))
	slices.Sort(all)
	return slices.Compact(all)
}

// checkNames finds names of calls that the playbook lacks, and lists of answers whose order is not determined.
func checkNames(tests *playbook.Tests, book *playbook.Playbook) (found source.Diagnostics) {
	known := names{steps: map[string]*playbook.Step{}, places: map[string]bool{}}
	known.addNames(book, "")
	say := func(pos source.Position, code, format string, args ...any) {
		found = append(found, newProblem(tests.File, pos, code, format, args...))
	}
	check := func(name playbook.CallName) {
		if !known.isKnown(name.Place) {
			hint := ""
			if near := expression.Suggest(name.Place, known.allNames()); near != "" {
				hint = "; did you mean \"" + near + "\"?"
			} else {
				hint = "; it has " + strings.Join(known.allNames(), ", ")
			}
			say(name.Pos, "unknown-name", "the playbook has no step or sink %q%s", name.Place, hint)
			return
		}
		step := known.steps[stepOf(name.Place)]
		if (name.Index != nil || name.Element != nil) && step != nil && step.Loop == nil {
			say(name.Pos, "unknown-name", "step %q has no loop, so there are no iterations to choose from; write %q", step.Name, name.Place)
		}
	}
	for _, test := range tests.Tests {
		for _, answers := range answersOf(test) {
			check(answers.CallName)
			if outer := known.outerLoop(answers.CallName); outer != "" && sharedAnswers(answers) > 1 {
				say(answers.Pos, "conflicting-keys", "step %q runs its playbooks in parallel, so the order of their requests varies; "+
					"name its iteration: %q", outer, outer+"[0]/"+strings.TrimPrefix(answers.Place, outer+"/"))
			}
			if step := known.steps[stepOf(answers.Place)]; step != nil && sharesAnswers(step, answers) {
				say(answers.Pos, "conflicting-keys", "step %q makes its requests in parallel, so their order varies; name the iteration: %q, "+
					"%q or `element` in each answer", step.Name, step.Name+"[0]", step.Name+"{id: p03}")
			}
		}
		for _, lists := range [][]*playbook.TestList{test.Expect.Requests, test.Expect.Waits, test.Expect.Sinks} {
			for _, list := range lists {
				check(list.CallName)
			}
		}
		for _, act := range test.At {
			for _, step := range []string{act.Step, act.LoseWorker} {
				if step != "" && known.steps[step] == nil && !known.isKnown(step) {
					say(act.Pos, "unknown-name", "the playbook has no step %q", step)
				}
			}
		}
		found = append(found, checkEvents(tests.File, test, known)...)
		for step := range test.Expect.Steps {
			if known.steps[step] == nil {
				say(test.Expect.Words["steps"], "unknown-name", "the playbook has no step %q", step)
			}
		}
	}
	return found
}

// answersOf returns the answers of a test, including those of earlier runs that it describes.
func answersOf(test *playbook.Test) []*playbook.TestAnswers {
	all := slices.Clone(test.Answers)
	for _, before := range test.Before {
		all = append(all, before.Answers...)
	}
	return all
}

// stepOf returns the step of a place. The source of a loop counts as a separate step, which has no iterations.
func stepOf(place string) string {
	if strings.HasSuffix(place, playbook.SourceSuffix) {
		return place
	}
	step, _, _ := strings.Cut(place, ".")
	return step
}

// sharesAnswers reports whether concurrent iterations share a list of answers, so that their order is not determined.
func sharesAnswers(step *playbook.Step, answers *playbook.TestAnswers) bool {
	return runsInParallel(step) && answers.Index == nil && answers.Element == nil && sharedAnswers(answers) > 1
}

func runsInParallel(step *playbook.Step) bool {
	return step != nil && step.Loop != nil && step.Loop.Mode == playbook.Parallel
}

// sharedAnswers returns how many of the answers can be used by any iteration.
func sharedAnswers(answers *playbook.TestAnswers) int {
	n := 0
	for _, answer := range answers.Answers {
		if answer.Element == nil && answer.Recorded == "" {
			n++
		}
	}
	return n
}

// outerLoop returns a step with a concurrent loop around a call whose iteration the name does not give; "" if there
// is none.
func (n *names) outerLoop(name playbook.CallName) string {
	parts := strings.Split(name.Place, "/")
	for i, chosen := range name.Outer {
		if step := strings.Join(parts[:i+1], "/"); chosen.SelectsAll() && runsInParallel(n.steps[step]) {
			return step
		}
	}
	return ""
}
