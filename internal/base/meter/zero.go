package meter

import (
	"slices"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// To Prometheus, a counter that first appears as 1 has not increased, so that the first failure after a worker's
// start would raise no alert. The series that alert rules use are therefore created as 0 as soon as a worker sees a
// run, step or call that could increase them.

// ZeroRun creates the series of a run that alert rules use: of the run, its loops and its calls.
func ZeroRun(to Recorder, name string, book *playbook.Playbook) {
	to.Add(Runs, 0, name, string(interpreter.Failed))
	for _, step := range book.Steps {
		ZeroStep(to, name, book, step)
	}
}

// ZeroStep creates the series of one step. For a tool whose name is a template, the first attempt creates them.
func ZeroStep(to Recorder, name string, book *playbook.Playbook, step *playbook.Step) {
	if step.Loop != nil {
		to.Add(Iterations, 0, name, step.Name, string(interpreter.Failed))
	}
	if step.Action != nil {
		zeroAction(to, name, book, step, step.Action, RoleStep)
	}
	for _, call := range step.SinkCalls() {
		zeroAction(to, name, book, step, call.Action, RoleSink)
	}
}

func zeroAction(to Recorder, name string, book *playbook.Playbook, step *playbook.Step, action *playbook.Action, role string) {
	if tool, literal := book.ResolveAction(action).ToolName(); literal {
		ZeroCall(to, name, step.Name, tool, role)
	}
}

// failureClasses are the values of LabelClass for errors.
var failureClasses = []interpreter.Class{interpreter.ClassFinal, interpreter.ClassRetryable, interpreter.ClassRateLimited}

// ZeroCall creates the series of the calls of a tool.
func ZeroCall(to Recorder, name, step, tool, role string) {
	for _, class := range failureClasses {
		to.Add(Attempts, 0, name, step, tool, role, string(class))
		to.Add(Exhausted, 0, name, step, tool, string(class))
	}
}

// earlyRetries is the number of retries whose series are created with the call. Series of later retries are created
// by each of these retries: most calls need none.
const earlyRetries = 4

// lateRetries are the values of LabelAttempt for later retries.
var lateRetries = []string{"5", "6", "7", "8", "9", "10", "more"}

// zeroRetries creates the series of later retries if this is an early one.
func zeroRetries(to Recorder, retry int, values ...string) {
	if retry > earlyRetries {
		return
	}
	for _, label := range lateRetries {
		to.Add(Retries, 0, append(slices.Clip(values), label)...)
	}
}
