package meter

import (
	"slices"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// A counter that first appears as 1 has not increased, as Prometheus sees it: the first failure after a worker
// started would raise no alert. The series that alert rules count therefore begin as 0, as soon as a
// worker sees what they count.

// ZeroRun begins the series that alerts count of a run of a playbook: of the run, its loops and calls.
func ZeroRun(to Recorder, name string, book *playbook.Playbook) {
	to.Add(Runs, 0, name, string(interpreter.Failed))
	for _, step := range book.Steps {
		ZeroStep(to, name, book, step)
	}
}

// ZeroStep begins those of one step. A tool whose name is a template begins with its first attempt.
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
	if tool, literal := book.Resolve(action).ToolName(); literal {
		ZeroCall(to, name, step.Name, tool, role)
	}
}

// failureClasses are the values of LabelClass for errors.
var failureClasses = []interpreter.Class{interpreter.ClassFinal, interpreter.ClassRetryable, interpreter.ClassRateLimited}

// ZeroCall begins those of the calls of a tool.
func ZeroCall(to Recorder, name, step, tool, role string) {
	for _, class := range failureClasses {
		to.Add(Attempts, 0, name, step, tool, role, string(class))
		to.Add(Exhausted, 0, name, step, tool, string(class))
	}
}

// earlyRetries are the first retries of a request. The series of later ones begin with each of these, and not before:
// most calls need none.
const earlyRetries = 4

// lateRetries are the values of LabelAttempt for later retries.
var lateRetries = []string{"5", "6", "7", "8", "9", "10", "more"}

// zeroRetries begins the series of later retries, where a retry is one of the first.
func zeroRetries(to Recorder, retry int, values ...string) {
	if retry > earlyRetries {
		return
	}
	for _, label := range lateRetries {
		to.Add(Retries, 0, append(slices.Clip(values), label)...)
	}
}
