package workflows

import (
	"fmt"

	"reprise/interpreter"
)

// maxIdleVisits bounds how many steps may end in one workflow task. A cycle
// without an attempt or a wait takes no time, so no timeout would ever end it,
// and Temporal would deliver its task again and again.
const maxIdleVisits = 2000

// idle counts the steps that ended since one made an attempt.
type idle struct{ visits int }

// check fails the run once a cycle has gone round too often.
func (i *idle) check(r *run, done ended) {
	loop := done.record.Loop
	if done.result.Meta.Attempts > 0 || loop != nil && loop.Stats.Total > 0 {
		i.visits = 0
		return
	}
	if i.visits++; i.visits == maxIdleVisits {
		r.fail(&interpreter.ErrorObject{
			Kind: interpreter.KindRepeat, Class: interpreter.ClassFinal,
			Message: fmt.Sprintf("step %s: %d steps have ended without an attempt or a wait, so the cycle would never end; "+
				"check the conditions of next", done.start.Step.Name, maxIdleVisits),
		})
	}
}
