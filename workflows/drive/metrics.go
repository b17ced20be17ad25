package drive

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/meter"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/gate"
)

// CountCall counts a call that has ended here.
func CountCall(ctx workflow.Context, call *call.Call) {
	facts, result := call.View().Facts(), *call.Result()
	meter.Call(gate.MetricsOf(ctx), facts, result)
	if facts.Place != "" {
		gate.Emit(ctx, meter.SinkSpan(facts, result))
	}
}

// countAttempt counts an attempt that no activity has made.
func countAttempt(ctx workflow.Context, call *call.Call, began time.Time, failure *interpreter.ErrorObject) {
	meter.Attempt(gate.MetricsOf(ctx), call.View().Facts(), failure, workflow.Now(ctx).Sub(began))
}

// countWait counts a wait that begins here.
func countWait(ctx workflow.Context, call *call.Call, wait interpreter.Wait) {
	if !wait.Rest {
		facts := call.View().Facts()
		gate.MetricsOf(ctx).Observe(meter.Waits, wait.Delay, facts.Playbook, facts.Step, string(wait.Reason))
	}
}
