package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// maxIdleVisits bounds how many steps may end in one workflow task. A cycle
// without an attempt or a wait takes no time, so no timeout would ever end it,
// and Temporal would deliver its task again and again.
const maxIdleVisits = 2000

// idle counts the steps that ended since the history last grew.
type idle struct {
	length int
	visits int
}

// check fails the run once a cycle has gone round too often.
func (i *idle) check(ctx workflow.Context, r *run, step string) {
	if length := workflow.GetInfo(ctx).GetCurrentHistoryLength(); length != i.length {
		i.length, i.visits = length, 0
	}
	if i.visits++; i.visits == maxIdleVisits {
		r.fail(&interpreter.ErrorObject{
			Kind: interpreter.KindRepeat, Class: interpreter.ClassFinal,
			Message: fmt.Sprintf("step %s: %d steps have ended without an attempt or a wait, so the cycle would never end; "+
				"check the conditions of next", step, maxIdleVisits),
		})
	}
}
