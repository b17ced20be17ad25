package playbook

import (
	"regexp"
	"slices"
)

// word is a name that the language gives a value: the table of
// docs/language.md, section names.
type word struct {
	name  string
	where spot
	loop  bool   // known inside a loop only
	known string // where it is known, for messages
}

var words = []word{
	{name: "workload", where: allSpots, known: "everywhere"},
	{name: "steps", where: atRunTime, known: "everywhere but in tool, concurrency and incremental.state"},
	{name: "vars", where: atRunTime, known: "everywhere but in tool, concurrency and incremental.state"},
	{name: "args", where: atRunTime, known: "everywhere but in tool, concurrency and incremental.state"},
	{name: "execution_id", where: atRunTime | atConcurrency, known: "everywhere but in tool and incremental.state"},
	{name: "run", where: atRunTime | atConcurrency, known: "everywhere but in tool and incremental.state"},
	{name: "_loop", where: inLoop, loop: true, known: "in a step with a loop: its tool fields, retry and the sinks of the loop"},
	{name: "response", where: atAfter, known: "in when, then, sinks, vars and next"},
	{name: "error", where: atAfter, known: "in when, then, sinks, vars and next"},
	{name: "this", where: atAfter, known: "in when, then, sinks, vars and next"},
	{name: "page", where: atWhen | atThen | atThenSink, known: "in the when and then of retry"},
	{name: DefaultInto, where: atWhen | atThen | atThenSink, known: "in the when and then of retry"},
	{name: "_retry", where: atWhen | atThen | atSinks, known: "in when, then and sinks"},
	{name: "result", where: atSinks | atVars | atNext, known: "in sinks, vars and next"},
	{name: "operation_key", where: atField | atWorkbook | atSinks, known: "in tool fields and sinks"},
	{name: "attempt_key", where: atField | atWorkbook | atSinks, known: "in tool fields and sinks"},
	{name: IncrementalWord, where: atField | atWorkbook | atWhen | atThen | atThenSink | atLoopSink | atStepSink, known: "in a step with incremental: its tool fields, retry and sinks"},
	{name: PartitionWord, where: atRunTime | atConcurrency, known: "in a playbook with partitions, everywhere but in tool"},
	{name: "status_code", known: `in the older forms of retry only; write "error.status", or "this.meta.status" after a success`},
	{name: "success", known: `in the older forms of retry only; write "error is not defined"`},
	{name: "attempt", known: `in the older forms of retry only; write "_retry.attempt"`},
	{name: dataWord, known: "in the older forms of retry only"},
}

// CallbackWord is a name that only requests of tools have which await an answer:
// where the answer is to be sent. Elsewhere the name is free.
const CallbackWord = "callback"

// CallbackMembers are the members of CallbackWord.
var CallbackMembers = []string{"url", "token", "complete", "fail", "progress", "page"}

// RequestFields are fields that are requests of their own, as http sends them.
var RequestFields = []string{"on_start", "on_cancel"}

// noticeNames are names that only notices of the run have. They hide what has the
// same name elsewhere, and are kept from nobody.
var noticeNames = []string{"event", "status"}

// operatorWords cannot be names because the expression language reads them as
// something else.
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

var namePattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// nameProblem says why a text cannot be the name of a step, an element or
// into; "" if it can. The name of a function can: before a bracket it is the function,
// elsewhere the name.
func nameProblem(name string) string {
	if !namePattern.MatchString(name) {
		return "may hold letters, digits and _ and must not start with a digit"
	}
	if _, ok := findWord(name); ok {
		return "is a word of the language"
	}
	if slices.Contains(operatorWords, name) {
		return "is a word of expressions"
	}
	return ""
}
