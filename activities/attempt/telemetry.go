package attempt

import (
	"context"
	"errors"
	"net/http"
	"time"

	"go.temporal.io/sdk/temporal"

	"reprise/internal/base/meter"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/playbook"
)

// Telemetry records what the activities of a worker do. It is safe for
// concurrent use.
type Telemetry interface {
	meter.Recorder
	// Attempt begins an attempt, and end ends it: with the error, nil for none.
	// An attempt that is left to another worker ends as not made.
	Attempt(ctx context.Context, in interpreter.ToolInput) (within context.Context, end func(failure *interpreter.ErrorObject, made bool))
	// Ended records a span that has ended in an activity.
	Ended(ctx context.Context, span meter.Span)
	// Propagate adds the request headers that identify the attempt of ctx to the other side.
	Propagate(ctx context.Context, headers http.Header)
}

// watch is the telemetry of one attempt. A nil *watch records nothing.
type watch struct {
	to    Telemetry
	in    interpreter.ToolInput
	began time.Time
	end   func(*interpreter.ErrorObject, bool)
}

type watchKey struct{}

func watchOf(ctx context.Context) *watch {
	w, _ := ctx.Value(watchKey{}).(*watch)
	return w
}

// watchRun counts the attempts of a function.
func (r *Runner) watchRun(run measuredFunc) measuredFunc {
	if r.Resources.Telemetry == nil {
		return run
	}
	return func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, int, error) {
		w := &watch{to: r.Resources.Telemetry, in: in, end: func(*interpreter.ErrorObject, bool) {}}
		defer func() {
			if !w.began.IsZero() {
				w.countRunning(-1)
			}
		}()
		result, size, err := run(context.WithValue(ctx, watchKey{}, w), in)
		w.countEnd(result, err)
		return result, size, err
	}
}

// noteTurn notes that the attempt has its turn.
func (w *watch) noteTurn(ctx context.Context) context.Context {
	if w == nil {
		return ctx
	}
	w.began = time.Now()
	w.countRunning(1)
	meter.ZeroCall(w.to, w.in.Playbook, w.in.Step, w.in.Tool, meter.RoleOf(w.in.Place))
	ctx, w.end = w.to.Attempt(ctx, w.in)
	return ctx
}

// countRunning counts the attempt as running, or no longer.
func (w *watch) countRunning(n int64) {
	w.to.Add(meter.InFlight, n, w.in.Playbook, w.in.Step, w.in.Tool, meter.RoleOf(w.in.Place))
}

// noteWait notes how long the attempt has waited for its turn.
func (w *watch) noteWait(since time.Time) {
	if w != nil {
		w.to.Observe(meter.TurnTime, time.Since(since), w.in.Playbook, w.in.Step)
	}
}

// addHeaders adds to the headers of the attempt's request, unless the author has.
func (w *watch) addHeaders(ctx context.Context, headers http.Header) {
	if w != nil && headers.Get("traceparent") == "" {
		w.to.Propagate(ctx, headers)
	}
}

// countEnd counts the attempt.
func (w *watch) countEnd(result interpreter.ToolResult, err error) {
	failure := FailureOf(err)
	made := (err == nil || failure != nil) && result.PutOff == nil && result.Noted == nil && !result.Unnotable
	w.end(failure, made)
	if !made || failure == nil && playbook.TraitsOf(w.in.Tool).Awaits { // it has only been sent
		return
	}
	took := time.Duration(-1)
	if !w.began.IsZero() {
		took = time.Since(w.began)
	}
	facts := call.Facts{Playbook: w.in.Playbook, Step: w.in.Step, Tool: w.in.Tool, Place: w.in.Place}
	meter.CountAttempt(w.to, facts, failure, took)
	if failure == nil && w.in.Place != "" {
		w.to.Add(meter.Rows, rowsWritten(w.in, result), w.in.Playbook, w.in.Step, w.in.Tool)
	}
}

// FailureOf returns the error that an attempt has ended with; nil where it went well or is left
// to another worker.
func FailureOf(err error) *interpreter.ErrorObject {
	_, object := failureIn(err)
	return object
}

// MessageOf returns the message of an error of an activity.
func MessageOf(err error) string {
	if failure := FailureOf(err); failure != nil {
		return failure.Message
	}
	return err.Error()
}

// failureIn is FailureOf with the error of its activity.
func failureIn(err error) (*temporal.ApplicationError, *interpreter.ErrorObject) {
	var application *temporal.ApplicationError
	var object interpreter.ErrorObject
	if errors.As(err, &application) && application.NonRetryable() && application.HasDetails() &&
		application.Details(&object) == nil {
		return application, &object
	}
	return nil, nil
}

// rowsWritten is how many rows a sink has written: as the destination reports, or else as many
// as it was given.
func rowsWritten(in interpreter.ToolInput, result interpreter.ToolResult) int64 {
	figures, _ := result.Data.Data.(map[string]any)
	if n, ok := figures["rows_affected"].(int); ok {
		return int64(n)
	}
	return int64(len(in.SinkRows()))
}
