package playbook

import (
	"regexp"
	"slices"
)

// word is a name that the language gives a value: the table of
// docs/concepts/expressions.md#names.
type word struct {
	name  string
	where spot
	loop  bool   // known inside a loop only
	known string // where it is known, for messages
	doc   string // what it holds
}

var words = []word{
	{name: "workload", where: allSpots, known: "everywhere", doc: "the inputs of the run: the defaults of the playbook with those of the run laid over them"},
	{name: "steps", where: atRunTime, known: "everywhere but in tool, concurrency and incremental.state", doc: "the envelopes of steps: steps.NAME has status, data, error and meta"},
	{name: "vars", where: atRunTime, known: "everywhere but in tool, concurrency and incremental.state", doc: "what steps have set with vars"},
	{name: "args", where: atRunTime, known: "everywhere but in tool, concurrency and incremental.state", doc: "the args of the call"},
	{name: "execution_id", where: atRunTime | atConcurrency, known: "everywhere but in tool and incremental.state", doc: "the workflow ID of the run"},
	{name: "run", where: atRunTime | atConcurrency, known: "everywhere but in tool and incremental.state", doc: "the run: its first run ID, when it was started, its playbook, and the time that a schedule started it for"},
	{name: "_loop", where: inLoop | atWorkbook, loop: true, known: "in a step with a loop: its tool fields, retry and the sinks of the loop", doc: "the iteration: index from 0, count from 1, and size, the number of elements"},
	{name: "response", where: atAfter, known: "in when, then, sinks, vars and next", doc: "the data of the last success; nothing after a failure"},
	{name: "error", where: atAfter, known: "in when, then, sinks, vars and next", doc: "the error, only after a failure"},
	{name: "this", where: atAfter, known: "in when, then, sinks, vars and next", doc: "the envelope of the attempt: status, data, error and meta"},
	{name: "page", where: atWhen | atThen | atThenSink, known: "in the when and then of retry", doc: "the data of this page"},
	{name: DefaultInto, where: atWhen | atThen | atThenSink, known: "in the when and then of retry", doc: "what was collected, this page included, also under the name that into gives it"},
	{name: "_retry", where: atWhen | atThen | atSinks, known: "in when, then and sinks", doc: "the request: its page and attempt from 1, count of all attempts, and the number of the policy"},
	{name: "result", where: atSinks | atVars | atNext, known: "in sinks, vars and next", doc: "the result of the call, iteration or loop"},
	{name: "operation_key", where: atField | atWorkbook | atSinks, known: "in tool fields and sinks", doc: "the key of the request, the same in each attempt"},
	{name: "attempt_key", where: atField | atWorkbook | atSinks, known: "in tool fields and sinks", doc: "the key of the attempt"},
	{name: IncrementalWord, where: atField | atWorkbook | atWhen | atThen | atThenSink | atLoopSink | atStepSink, known: "in a step with incremental: its tool fields, retry and sinks", doc: "value, from where on the call reads, and watermark, how far the state was, nil at first"},
	{name: PartitionWord, where: atRunTime | atConcurrency, known: "in a playbook with partitions, everywhere but in tool", doc: "the partition that the run is about: its key, index, start and end"},
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
