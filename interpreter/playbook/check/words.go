package check

import (
	"slices"

	"reprise/interpreter/playbook"
)

const (
	// inLoop are the spots whose expressions can use the iteration of the step's loop.
	inLoop = playbook.AtField | playbook.AtWhen | playbook.AtThen | playbook.AtThenSink | playbook.AtLoopSink
	// anywhere are all spots with expressions.
	anywhere = playbook.AtRunTime | playbook.AtBegin | playbook.AtState
)

// word is a name with a meaning in expressions: a row of the table in docs/concepts/expressions.md#names.
type word struct {
	name  string
	where playbook.Spot
	loop  bool   // available only inside a loop
	row   bool   // available where a value is evaluated for each row; elsewhere the playbook may use the name
	known string // where it is available, for messages
	doc   string // what its value is
}

var words = []word{
	{name: "workload", where: anywhere, known: "everywhere", doc: "the inputs of the run: the playbook's defaults, overridden by the inputs that the run was given"},
	{name: "steps", where: playbook.AtRunTime, known: "everywhere except in tool, concurrency and incremental.state", doc: "the envelopes of steps: `steps.NAME` has `status`, `data`, `error` and `meta`"},
	{name: "vars", where: playbook.AtRunTime, known: "everywhere except in tool, concurrency and incremental.state", doc: "the values that steps have set with `vars`"},
	{name: "args", where: playbook.AtRunTime, known: "everywhere except in tool, concurrency and incremental.state", doc: "the `args` of the call"},
	{name: "execution_id", where: playbook.AtRunTime | playbook.AtConcurrency, known: "everywhere except in tool and incremental.state", doc: "the workflow ID of the run"},
	{name: "run", where: playbook.AtRunTime | playbook.AtConcurrency, known: "everywhere except in tool and incremental.state", doc: "the run: its first run ID, start time and playbook, and the scheduled time if a schedule started it"},
	{name: "_loop", where: inLoop | playbook.AtWorkbook, loop: true, known: "in a step with a loop: its tool fields, retry and the sinks of the loop", doc: "the iteration: `index` from 0, `count` from 1, and `size`, the number of elements"},
	{name: "response", where: playbook.AtAfter, known: "in when, then, sinks, vars and next", doc: "the data of the last attempt if it succeeded; nil after a failure"},
	{name: "error", where: playbook.AtAfter, known: "in when, then, sinks, vars and next", doc: "the error of the last attempt if it failed"},
	{name: "this", where: playbook.AtAfter, known: "in when, then, sinks, vars and next", doc: "the envelope of the attempt: `status`, `data`, `error` and `meta`"},
	{name: "page", where: playbook.AtWhen | playbook.AtThen | playbook.AtThenSink, known: "in the when and then of retry", doc: "the data of this page"},
	{name: playbook.DefaultInto, where: playbook.AtWhen | playbook.AtThen | playbook.AtThenSink, known: "in the when and then of retry", doc: "what was collected so far, including this page; also available under the name in `into`"},
	{name: "_retry", where: playbook.AtWhen | playbook.AtThen | playbook.AtSinks, known: "in when, then and sinks", doc: "the request: its `page` and `attempt` from 1, the `count` of all attempts, and the number of the policy"},
	{name: "result", where: playbook.AtSinks | playbook.AtVars | playbook.AtNext, known: "in sinks, vars and next", doc: "the result of the call, iteration or loop"},
	{name: "operation_key", where: playbook.AtField | playbook.AtWorkbook | playbook.AtSinks, known: "in tool fields and sinks", doc: "the idempotency key of the request, the same in each attempt"},
	{name: "attempt_key", where: playbook.AtField | playbook.AtWorkbook | playbook.AtSinks, known: "in tool fields and sinks", doc: "the idempotency key of the attempt"},
	{name: playbook.IncrementalWord, where: playbook.AtField | playbook.AtWorkbook | playbook.AtWhen | playbook.AtThen | playbook.AtThenSink | playbook.AtLoopSink | playbook.AtStepSink, known: "in a step with incremental: its tool fields, retry and sinks", doc: "`value`, from which the call reads, and `watermark`, how far the state has come; the watermark is nil in the first run"},
	{name: playbook.PartitionWord, where: playbook.AtRunTime | playbook.AtConcurrency, known: "in a playbook with partitions, everywhere except in tool", doc: "the partition of the run: its `key`, `index`, `start` and `end`"},
	{name: playbook.RowWord, where: playbook.AtThen | playbook.AtField | playbook.AtWorkbook | playbook.AtSinks, row: true, known: "in where of a step, in fields of a sink and in its path where rows go to several, and in args, fields and path of to in transfer", doc: "the row that is at hand"},
	{name: "status_code", known: `in the older forms of retry only; write "error.status", or "this.meta.status" after a success`},
	{name: "success", known: `in the older forms of retry only; write "error is not defined"`},
	{name: "attempt", known: `in the older forms of retry only; write "_retry.attempt"`},
	{name: playbook.DataWord, known: "in the older forms of retry only"},
}

// operatorWords cannot be names because the expression language gives them another meaning.
var operatorWords = []string{
	"and", "or", "not", "in", "is", "if", "else", "let", "true", "false", "nil", "null", "none",
	"True", "False", "None", "matches", "contains", "startsWith", "endsWith",
}

func findWord(name string) (word, bool) {
	i := slices.IndexFunc(words, func(w word) bool { return w.name == name })
	if i < 0 {
		return word{}, false
	}
	return words[i], true
}

// nameProblem says why a text cannot be the name of a step, an element or into; "" if it can. The name of a
// function can: before a parenthesis it is the function, elsewhere the name.
func nameProblem(name string) string {
	if !playbook.NamePattern.MatchString(name) {
		return "may hold letters, digits and _ and must not start with a digit"
	}
	if w, ok := findWord(name); ok && !w.row {
		return "is a keyword of the language"
	}
	if slices.Contains(operatorWords, name) {
		return "is a word of expressions"
	}
	return ""
}
