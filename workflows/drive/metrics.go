package drive

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/meter"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows/gate"
)

// CountCall counts a call that has ended in this workflow.
func CountCall(ctx workflow.Context, call *call.Call) {
	facts, result := call.View().TelemetryFacts(), *call.Result()
	meter.CountCall(gate.MetricsOf(ctx), facts, result)
	if facts.Place != "" {
		gate.EmitSpan(ctx, meter.SinkSpan(facts, result))
	}
}

// countAttempt counts an attempt that was not made by an activity.
func countAttempt(ctx workflow.Context, call *call.Call, began time.Time, failure *interpreter.ErrorObject) {
	meter.CountAttempt(gate.MetricsOf(ctx), call.View().TelemetryFacts(), failure, workflow.Now(ctx).Sub(began))
}

// countWait records the duration of a wait that begins in this workflow.
func countWait(ctx workflow.Context, call *call.Call, wait interpreter.Wait) {
	if !wait.Rest {
		facts := call.View().TelemetryFacts()
		gate.MetricsOf(ctx).Observe(meter.Waits, wait.Delay, facts.Playbook, facts.Step, string(wait.Reason))
	}
}
