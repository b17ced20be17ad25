package hosting

import (
	"context"

	"reprise/internal/base/meter"
	"reprise/interpreter/call"
)

// countAttempt counts what was decided about the last attempt of a call.
func (d *driveRun) countAttempt(call *call.Call, failed *call.FailedAttempt) {
	if to := d.host.Attempts.Resources.Telemetry; to != nil && failed != nil {
		meter.FailedAttempt(to, call.View().TelemetryFacts(), failed)
	}
}

// countSink counts a sink that has ended.
func (d *driveRun) countSink(ctx context.Context, sink *call.Call) {
	if to := d.host.Attempts.Resources.Telemetry; to != nil {
		facts, result := sink.View().TelemetryFacts(), *sink.Result()
		meter.CountCall(to, facts, result)
		to.Ended(ctx, meter.SinkSpan(facts, result))
	}
}
