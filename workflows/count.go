package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/meter"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/incremental"
)

// counter counts what a workflow does, with the handler of the SDK, which counts
// nothing while the workflow replays.
type counter struct{ ctx workflow.Context }

// Add counts n.
func (c counter) Add(m *meter.Metric, n int64, values ...string) {
	workflow.GetMetricsHandler(c.ctx).WithTags(tags(m, values)).Counter(m.Name).Inc(n)
}

// Observe counts a time.
func (c counter) Observe(m *meter.Metric, took time.Duration, values ...string) {
	workflow.GetMetricsHandler(c.ctx).WithTags(tags(m, values)).Timer(m.Name).Record(took)
}

// Mark gives a gauge the time whose age it shows.
func (c counter) Mark(m *meter.Metric, at time.Time, values ...string) {
	seconds := float64(at.Unix()) + float64(at.Nanosecond())/float64(time.Second)
	workflow.GetMetricsHandler(c.ctx).WithTags(tags(m, values)).Gauge(m.Name).Update(seconds)
}

func tags(m *meter.Metric, values []string) map[string]string {
	all := make(map[string]string, len(values))
	for i, label := range m.Labels {
		all[label] = values[i]
	}
	return all
}

// SpanRecorder records the spans of a run as they end, also when they are replayed.
type SpanRecorder interface {
	Ended(ctx workflow.Context, span meter.Span)
}

type spansKey struct{}

// WithSpans makes a context in which spans of a run are recorded.
func WithSpans(ctx workflow.Context, spans SpanRecorder) workflow.Context {
	return workflow.WithValue(ctx, spansKey{}, spans)
}

func emit(ctx workflow.Context, span meter.Span) {
	if spans, ok := ctx.Value(spansKey{}).(SpanRecorder); ok {
		spans.Ended(ctx, span)
	}
}

// countCall counts a call that has ended here.
func countCall(ctx workflow.Context, call *call.Call) {
	facts, result := call.View().Facts(), *call.Result()
	meter.Call(counter{ctx}, facts, result)
	if facts.Place != "" {
		emit(ctx, meter.SinkSpan(facts, result))
	}
}

// countAttempt counts an attempt that no activity has made.
func countAttempt(ctx workflow.Context, call *call.Call, began time.Time, failure *interpreter.ErrorObject) {
	meter.Attempt(counter{ctx}, call.View().Facts(), failure, workflow.Now(ctx).Sub(began))
}

// countWait counts a wait that begins here.
func countWait(ctx workflow.Context, call *call.Call, wait interpreter.Wait) {
	if !wait.Rest {
		facts := call.View().Facts()
		counter{ctx}.Observe(meter.Waits, wait.Delay, facts.Playbook, facts.Step, string(wait.Reason))
	}
}

// countIteration counts an iteration that has ended, and its dead letter.
func (l *loop) countIteration(ctx workflow.Context, iteration interpreter.IterationResult) {
	book, step, state := l.input.Task.Run.Playbook, l.step.Name, interpreter.Completed
	if iteration.Cancelled {
		return // as are those that never began: their run counts them
	}
	if failure := iteration.Result.Error; iteration.Result.Failed() {
		state = interpreter.Failed
		counter{ctx}.Add(meter.DeadLetters, 1, book, step, string(failure.Kind), meter.ClassOf(failure))
	}
	counter{ctx}.Add(meter.Iterations, 1, book, step, string(state))
	emit(ctx, meter.IterationSpan(book, step, l.input.Task.Visit, iteration))
}

// countCancelled counts the iterations of a loop that were cancelled, or never
// began.
func (r *run) countCancelled(ctx workflow.Context, record *StepRecord) {
	if n := record.Loop.Stats.Cancelled; n > 0 {
		counter{ctx}.Add(meter.Iterations, int64(n), r.Run.Playbook, record.Step, string(interpreter.Cancelled))
	}
}

// countStep counts a visit of a step that has ended.
func (r *run) countStep(ctx workflow.Context, record *StepRecord) {
	counter{ctx}.Add(meter.Steps, 1, r.Run.Playbook, record.Step, string(record.Status))
	counter{ctx}.Observe(meter.StepTime, record.EndedAt.Sub(record.StartedAt), r.Run.Playbook, record.Step, string(record.Status))
	emit(ctx, meter.Span{
		Kind: meter.SpanStep, Playbook: r.Run.Playbook, Step: record.Step, Visit: record.Visit, Status: record.Status,
		Attempts: record.Attempts, Pages: record.Pages, Error: record.Error, Started: record.StartedAt, Ended: record.EndedAt,
	})
}

// markWatermark reports the watermark of a step that has moved it, if it is a time.
func (r *run) markWatermark(ctx workflow.Context, step string, of incremental.CursorType, watermark incremental.Cursor) {
	if at, ok := incremental.TimeOf(of, watermark); ok {
		counter{ctx}.Mark(meter.WatermarkAge, at, r.Run.Playbook, step)
	}
}

// countRun counts a run that has ended.
func (r *run) countRun(ctx workflow.Context, result *Result) {
	started, now := r.startedAt(), workflow.Now(ctx)
	counter{ctx}.Add(meter.Runs, 1, r.Run.Playbook, string(result.Status))
	counter{ctx}.Observe(meter.RunTime, now.Sub(started), r.Run.Playbook, string(result.Status))
	emit(ctx, meter.Span{
		Kind: meter.SpanRun, Playbook: r.Run.Playbook, Status: result.Status, Error: result.Error, Started: started, Ended: now,
	})
}
