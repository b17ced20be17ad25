package attempt

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/internal/base/audit"
	"reprise/internal/base/seal"
	"reprise/internal/base/secrets"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// Resources is what a worker provides to the attempts of its tools.
type Resources struct {
	// Connections finds the URL behind a connection's name.
	Connections tool.ConnectionResolver
	// Access decides who may use connections.
	Access   tool.ConnectionAccess
	Payloads Payloads
	// RateLimits are the operator's limits, which apply in addition to those of playbooks.
	RateLimits RateLimits
	Logger     *slog.Logger
	// Secrets are masked in what leaves an attempt. What it opens is added.
	Secrets *secrets.Masker
	// SecretKeys encrypt the results of secret steps; nil refuses them.
	SecretKeys *seal.Keys
	// Audit is the log of denials; nil keeps none.
	Audit *audit.Trail
	// Telemetry records what attempts do; nil records nothing.
	Telemetry Telemetry
	// Around wraps the tools' work in an attempt, by the name of the activity; nil for no
	// wrapper.
	Around func(activity string, run Func) Func
}

// Activity is a function to register under a name with a worker.
type Activity struct {
	Name string
	Run  Func
}

// Runner makes the attempts of a worker's tools. It is safe for concurrent use once no
// tool is added any more.
type Runner struct {
	Resources Resources
	// Tools are the tools whose attempts it makes, by name; tools may be added before the first attempt.
	Tools map[string]tool.Tool

	pacer *pacer
	gate  *pauseGate
	// memory is shared by all attempts for what they read.
	memory *memory.Pool

	functions sync.Once // fills byName
	byName    map[string]measuredFunc
}

// NewRunner makes the attempts of tools.
func NewRunner(res Resources, tools map[string]tool.Tool) *Runner {
	return &Runner{
		Resources: res, Tools: tools, pacer: newPacer(res.RateLimits, res.Logger), gate: newGate(res.Logger),
		memory: memory.NewPool(res.Payloads.AnswersBytes),
	}
}

// MemoryAcquired is how many bytes attempts have acquired in total to read data.
func (r *Runner) MemoryAcquired() int64 { return r.memory.Acquired() }

// Activities returns the functions to register with a worker, sorted by name: Run
// of every tool under the tool's name and Write of every writer under
// interpreter.WriteActivity.
func (r *Runner) Activities() []Activity {
	wrapped := r.wrappedTools()
	return lists.Map(slices.Sorted(maps.Keys(wrapped)), func(name string) Activity { return Activity{Name: name, Run: wrapped[name].plainFunc()} })
}

// wrappedTools returns the functions of all activities by name.
func (r *Runner) wrappedTools() map[string]measuredFunc {
	byName := map[string]measuredFunc{}
	for name, one := range r.Tools {
		if traits := playbook.TraitsOf(name); traits.InWorkflow && !traits.Awaits { // what is awaited begins with a request
			continue
		}
		_, waits := one.(tool.Beginner)
		run := r.aroundTool(name, one.Run)
		if _, itself := one.(tool.Shaper); !itself {
			run = shapeRows(run)
		}
		byName[name] = r.limitRun(r.watchRun(r.auditDenials(r.wrapTool(run, waits))))
		if writer, ok := one.(tool.Writer); ok {
			write := interpreter.WriteActivity(name)
			byName[write] = r.limitRun(r.watchRun(r.auditDenials(r.wrapTool(shapeRows(r.aroundTool(write, writer.Write)), waits))))
		}
	}
	return byName
}

// aroundTool wraps a tool in everything that surrounds its attempts.
func (r *Runner) aroundTool(activity string, run Func) Func {
	if r.Resources.Around != nil {
		run = r.Resources.Around(activity, run)
	}
	return countRows(run)
}

// limitRun puts the attempts of a function under the operator's rate limits.
func (r *Runner) limitRun(run measuredFunc) measuredFunc {
	return func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, int, error) {
		in.RateLimit = r.pacer.limitOf(in)
		return run(ctx, in)
	}
}

// functionNamed returns the activity function with a name, nil if there is none.
func (r *Runner) functionNamed(name string) measuredFunc {
	r.functions.Do(func() { r.byName = r.wrappedTools() })
	return r.byName[name]
}

// TryOnce makes one attempt outside of Temporal as an activity would: under its rate limit, within
// its time limit, and with secrets masked in its outcome. A failure of the tool is an outcome;
// the error is that of ctx.
func (r *Runner) TryOnce(ctx context.Context, in interpreter.ToolInput) (interpreter.Outcome, error) {
	made, err := r.MakeAttempt(WithDelivery(ctx, NewDelivery(ctx, false)), in)
	if ctx.Err() != nil {
		return interpreter.Outcome{}, context.Cause(ctx)
	}
	return made.Outcome, err
}

// MakeAttempt makes one attempt, in an activity that hosts its call, with the tool's own wrapping, and takes its failure
// apart again. The error is one that ends the activity.
func (r *Runner) MakeAttempt(ctx context.Context, input interpreter.ToolInput) (Attempt, error) {
	run := r.functionNamed(input.ActivityName())
	if run == nil {
		return failedAttempt(&interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true,
			Message: fmt.Sprintf("this worker has no tool %q", input.Tool),
		}), nil
	}
	result, size, err := run(ctx, input)
	if err == nil {
		return Attempt{Outcome: result.Outcome(), Size: size, Noted: result.Noted, Unnotable: result.Unnotable, Turn: result.Turn}, nil
	}
	application, object := failureIn(err)
	if object == nil {
		return Attempt{}, err
	}
	made := failedAttempt(object)
	made.Turn = interpreter.SlotTurn(application)
	return made, nil
}

// CallTool has a tool do something repeatable, such as reading its own records, in the way attempts are made: within
// the time limit, with the connection, and with secrets masked in errors.
func CallTool[R any](
	ctx context.Context, r *Runner, in interpreter.ToolInput, do func(context.Context, interpreter.ToolInput) (R, error),
) (R, error) {
	var answer atomic.Pointer[R] // a tool that is abandoned may still give it
	const beginsItself = true    // and never does: whatever is done may be done again
	ask := r.auditDenials(r.wrapTool(func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		found, err := do(ctx, in)
		answer.Store(&found)
		return interpreter.ToolResult{}, err
	}, beginsItself))
	_, _, err := ask(ctx, in)
	if found := answer.Load(); found != nil {
		return *found, err
	}
	var none R
	return none, err
}

// CheckConnections refuses a call whose sinks name a connection that this worker does not have, before it requests anything:
// the sink at its end would find that once all pages were read.
func (r *Runner) CheckConnections(ctx context.Context, sinks []interpreter.SinkConnection) error {
	for _, sink := range sinks {
		configured, ok := r.Resources.Connections.Connection(sink.Auth)
		if !ok && tool.IsConnectionName(sink.Auth) {
			return tool.ConfigErrorf("%s: sink %s: %w", sink.At, sink.Place, tool.NotConfiguredError(sink.Auth))
		}
		if err := r.Resources.Access.RefuseUse(ctx, sink.Auth, configured, ""); err != nil {
			denied := tool.ConfigErrorf("%s: sink %s: %w", sink.At, sink.Place, err)
			denied.Type = tool.TypeConnectionDenied
			return denied
		}
	}
	return nil
}

// Attempt is the outcome of an attempt.
type Attempt struct {
	Outcome interpreter.Outcome
	Size    int // bytes of JSON
	// Noted and Unnotable are as in [interpreter.ToolResult].
	Noted     []byte
	Unnotable bool
	Turn      float64 // seconds that it waited for its turn
}

// failedAttempt returns an attempt that failed.
func failedAttempt(object *interpreter.ErrorObject) Attempt {
	outcome := interpreter.Outcome{Err: object}
	return Attempt{Outcome: outcome, Size: interpreter.EncodedSize(outcome)}
}
