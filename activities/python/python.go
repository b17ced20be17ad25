// Package python is the tool that runs code that a playbook brings.
package python

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/ratelimit"
)

// hostCode reads the code and its arguments, calls main and reports.
//
//go:embed python_host.py
var hostCode string

// Tool runs code that the playbook brings, each attempt in a process of
// its own. It protects the worker from accidents, not from attackers: the code
// has the rights of the worker's user.
type Tool struct {
	res     tool.Resources
	options Options
}

// Options are the operator's settings.
type Options struct {
	Allow   bool   // playbooks may run code with the worker's rights
	Command string // such as python3
	// Check may refuse code in the activity that would run it; nil allows all.
	Check func(ctx context.Context, code string) error
}

var _ tool.Writer = (*Tool)(nil)

// New makes the tool.
func New(res tool.Resources, options Options) *Tool {
	return &Tool{res: res, options: options}
}

// logPrinted logs what the code has printed; of a secret step, that it has.
func (t *Tool) logPrinted(ctx context.Context, in interpreter.ToolInput, output string) {
	if in.Secret != nil && in.Secret.Seals {
		output = fmt.Sprintf("(%d bytes, not shown: the step is secret)", len(output))
	}
	tool.Logger(ctx, t.res.Logger, in).Info("python printed", "output", output)
}

// Spec describes the tool.
func (t *Tool) Spec() playbook.ToolSpec {
	return playbook.ToolSpec{
		Name:    "python",
		Secrets: []string{"args"},
		Summary: "Runs Python code; its result is what main returns.",
		Doc: `code defines main. The step's args are its keyword arguments, by name. What main
returns is the result, and must be representable as JSON. code is not a template:
values are passed as args. As a sink, main gets args, else result=….

The code runs in isolated mode (python3 -I), in the worker's directory, with PATH, LANG
and HOME as its only environment. Its output goes to the worker's log. When main has
returned, its time is over, or the worker dies, every process that the code has started
is killed, on Linux also processes that left its process group.

An exception is an error of kind tool, with the name of its class as type. Set the
attribute retryable of the exception to say whether another attempt may help (the
default is yes), and retry_after to say in how many seconds. Code that does not compile,
a missing main, an async main, and arguments that do not match are final and end the
call without asking retry; most of these are reported before the run.

The tool is off unless the worker allows it.`,
		Fields: []playbook.Field{
			{Name: "code", Kind: playbook.KindCode, Required: true, Doc: "Python code that defines a function `main`."},
		},
		Writes: true,
		Example: `step: score
tool: python
args: {dose_mg: 20, factor: 3}
code: |
  def main(dose_mg, factor=1):
      return {"score": dose_mg * factor}
`,
	}
}

// Run calls main with the step's args.
func (t *Tool) Run(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	if in.Args == nil {
		return t.runCode(ctx, in, map[string]any{})
	}
	return t.runCode(ctx, in, in.Args.Data)
}

// Write calls main with the sink's args, else with the result. The write is as
// idempotent as the code; operation_key in args helps it.
func (t *Tool) Write(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	if in.Args == nil {
		return t.runCode(ctx, in, map[string]any{"result": tool.SinkData(in)})
	}
	return t.runCode(ctx, in, in.Args.Data)
}

func (t *Tool) runCode(ctx context.Context, in interpreter.ToolInput, args any) (interpreter.ToolResult, error) {
	if !t.options.Allow {
		return interpreter.ToolResult{}, tool.ConfigErrorf("python is off on this worker: " +
			"the code of playbooks runs with the worker's rights, so the operator must allow it")
	}
	code, err := tool.RequiredText(in, "code")
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	if t.options.Check != nil {
		if err := t.options.Check(ctx, code); err != nil {
			return interpreter.ToolResult{}, err
		}
	}
	if args == nil {
		args = map[string]any{}
	}
	if _, isMap := args.(map[string]any); !isMap {
		return interpreter.ToolResult{}, tool.ConfigErrorf("step %q: args of python must be a map of keyword arguments, not a %s",
			in.Step, expression.TypeName(args))
	}
	nonce := rand.Text()
	input, err := expression.Encode(map[string]any{"code": code, "name": cmp.Or(in.Place, in.Step), "args": args, "nonce": nonce})
	if err != nil {
		return interpreter.ToolResult{}, tool.Errorf("step %q: the args cannot be written as JSON: %w", in.Step, err)
	}
	process := &process{
		command: t.options.Command, directory: t.res.Directory,
		input: input, nonce: nonce, limit: t.res.MaxResponseBytes,
	}
	err = process.runProcess(ctx)
	if len(process.log) > 0 {
		t.logPrinted(ctx, in, string(process.log))
	}
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	const around = 1 << 10 // bytes that the report has beside the result
	if err := memory.AcquireJSON(ctx, process.output, t.res.MaxPayload+around, "what main returned"); err != nil {
		return interpreter.ToolResult{}, err
	}
	return resultOf(process)
}

// report is what the host writes to file descriptor 3.
type report struct {
	Result     exactValue `json:"result"`
	Type       string     `json:"type"` // of the exception, "" after a success
	Message    string     `json:"message"`
	Traceback  string     `json:"traceback"`
	Retryable  *bool      `json:"retryable"` // what the exception says
	RetryAfter *string    `json:"retry_after"`
	Final      bool       `json:"final"`
	Unfit      bool       `json:"unfit"` // main cannot be called with the args, or is not there
}

// exactValue is a value of Python without loss: two keys may be one in JSON, as 1 and "1" are, and texts may have half of a surrogate pair.
type exactValue struct{ expression.Value }

// UnmarshalJSON refuses what a value cannot represent.
func (v *exactValue) UnmarshalJSON(data []byte) (err error) {
	v.Data, err = expression.DecodeExact(data)
	return err
}

func resultOf(process *process) (interpreter.ToolResult, error) {
	report, err := process.readReport()
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	if report.Type == "" {
		return interpreter.ToolResult{Data: report.Result.Value}, nil
	}
	return interpreter.ToolResult{}, report.toError()
}

func (r *report) toError() error {
	e := &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: r.Type,
		Message: r.Type, Err: errors.New(r.Type), Final: r.Unfit,
	}
	if r.Message != "" {
		e.Message = fmt.Sprintf("%s: %s", r.Type, r.Message)
	}
	if r.Traceback != "" {
		e.Body = map[string]any{"traceback": r.Traceback}
	}
	final := r.Final || (r.Retryable != nil && !*r.Retryable)
	if r.RetryAfter != nil {
		r.requestWait(e)
	}
	if final {
		e.Class = interpreter.ClassFinal
	}
	return e
}

// requestWait has the error request the wait that the exception names.
func (r *report) requestWait(e *tool.Error) {
	wait, readable := ratelimit.ParseWait(*r.RetryAfter, time.Now())
	if !readable {
		e.Message += fmt.Sprintf("; retry_after is %s, and must be %s", ratelimit.QuoteWait(*r.RetryAfter), ratelimit.WaitForms)
		return
	}
	if e.Class = interpreter.ClassRateLimited; wait > 0 {
		e.RetryAfter = &wait
	}
}
