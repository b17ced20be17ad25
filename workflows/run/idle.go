package run

import (
	"fmt"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// failTooManyVisits fails the run if a step would be visited more often than the operator allows, as in a cycle whose
// conditions never end it.
func (r *run) failTooManyVisits(start interpreter.Start) bool {
	most := r.Limits.MaxVisits
	if most == 0 || start.Visit <= most {
		return false
	}
	r.failRun(&interpreter.ErrorObject{
		Kind: interpreter.KindRepeat, Class: interpreter.ClassFinal,
		Message: fmt.Sprintf("step %s: routes have led to it %d times, the most that %s allows; check the conditions of next that lead back to it",
			start.Step.Name, most, playbook.VisitsVariable),
	})
	return true
}

// maxIdleVisits bounds the steps that may end one after the other without an attempt. A cycle of such steps takes
// no time: it is one workflow task, which no timeout of the run would end and which Temporal would deliver again
// and again.
const maxIdleVisits = 2000

// idle counts the steps that have ended since the last one that made an attempt.
type idle struct{ visits int }

// checkCycles fails the run after too many steps without an attempt.
func (i *idle) checkCycles(r *run, done stepEnd) {
	loop := done.record.Loop
	if done.result.Meta.Attempts > 0 || loop != nil && loop.Stats.Total > 0 {
		i.visits = 0
		return
	}
	if i.visits++; i.visits == maxIdleVisits {
		r.failRun(&interpreter.ErrorObject{
			Kind: interpreter.KindRepeat, Class: interpreter.ClassFinal,
			Message: fmt.Sprintf("step %s: %d steps have ended without an attempt or a wait, so the cycle would never end; "+
				"check the conditions of next", done.start.Step.Name, maxIdleVisits),
		})
	}
}
