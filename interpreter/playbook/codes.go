package playbook

import (
	"cmp"
	"slices"
)

// Codes of the problems that checks report; decoding has its own beside them.
// Each is a heading of docs/reference/diagnostics.md.
var (
	codeBounds                 = code("bounds", "a number or duration is outside of what the word allows")
	codeCalledPlaybook         = code("called-playbook", "a call runs another playbook that is not there or not valid, or says more than one")
	codeCannotRestart          = code("cannot-restart", "`restart` is in a policy for successes, or beside a sink that would keep what is dropped or write it twice, or is `full` without `incremental`")
	codeCodeMain               = code("code-main", "the function main of code cannot be called with the args of the call")
	CodeCodeSyntax             = code("code-syntax", "code does not compile")
	codeCollectWithoutNextCall = code("collect-without-next-call", "`collect` is in a policy that polls, whose answers are not collected (warning)")
	codeCollectionInIteration  = code("collection-in-iteration", "an expression of an iteration needs all of the loop's collection")
	codeCron                   = code("cron", "times of a schedule that cannot be read, or never come")
	codeCronClocks             = code("cron-clocks", "times of a schedule are left out or come twice where clocks move (warning)")
	codeCronDays               = code("cron-days", "times of a schedule are days of the month and of the week at once (warning)")
	codeCronStep               = code("cron-step", "steps of a schedule do not divide the hour or the day, so that one of them is shorter (warning)")
	codeDuplicateEntry         = code("duplicate-entry", "two entries of the workbook have one name")
	codeDuplicateStep          = code("duplicate-step", "two steps have one name")
	codeDuplicateTarget        = code("duplicate-target", "one route names a step twice")
	CodeElementInStepSink      = code("element-in-step-sink", "the sink on a step names the element of its loop; `loop.sink` runs once per iteration")
	codeElse                   = code("else", "`next` has two defaults, or an `else` without a `when`")
	codeFieldType              = code("field-type", "a tool field holds something of the wrong type, or a template where none may be")
	codeHiddenName             = code("hidden-name", "a workload key or a step is hidden by a name that is found earlier (warning)")
	codeMissingField           = code("missing-field", "a call lacks a field that its tool needs")
	codeMissingTarget          = code("missing-target", "`next` leads to a step that does not exist")
	codeMixedTypes             = code("mixed-types", "a text is compared with a number, so that it always gives the same (warning)")
	codeNextCallAfterFailure   = code("next-call-after-failure", "a policy for failures has `next_call`, which follows a success")
	codeNoEffect               = code("no-effect", "a word does nothing where it is written (warning)")
	codeNotYetRun              = code("not-yet-run", "a step names the result of one that cannot have run by then (warning)")
	codeIgnoreAfterSuccess     = code("ignore-after-success", "a policy for successes has `ignore`, which is for failures")
	codeIncremental            = code("incremental", "a step cannot keep a state between runs as it is written, or would read too much or too little (some are warnings)")
	codeJSONText               = code("json-text", "JSON is written as text with templates in it (warning)")
	codeLiteralSecret          = code("literal-secret", "a password, token or key is written out in the file (warning)")
	codeOperatorLimit          = code("operator-limit", "a policy is above a limit that the worker's environment sets")
	codePageIndex              = code("page-index", "`next_call` counts on with `_retry.index`, which is 1 on the first page (warning)")
	codePagesNotCollected      = code("pages-not-collected", "`next_call` keeps only the last page, as nothing collects or writes the others (warning)")
	codeRawOutsideURL          = code("raw-outside-url", "there is a `| raw` where nothing is escaped")
	codeRepeatedWrite          = code("repeated-write", "a sink writes again what it has written when a worker dies meanwhile (warning)")
	codeReservedName           = code("reserved-name", "a step, element or into has a name that expressions cannot distinguish from a word")
	codeRouter                 = code("router", "a step without a tool has retry, loop, incremental or sink")
	codeSecretStep             = code("secret-step", "a step is secret and has something that would read its result")
	codeSecretUse              = code("secret-use", "the result of a secret step is used where it would become known")
	codeSharedOutput           = code("shared-output", "the elements of a loop replace one file, of which the last stays (warning)")
	codeShortInterval          = code("short-interval", "a schedule starts a run more often than every 10 seconds (warning)")
	codeSinkNotWritable        = code("sink-not-writable", "the tool of a sink cannot write")
	codeSinkOnly               = code("sink-only", "a step calls a tool that is a sink only")
	codeSinkRetry              = code("sink-retry", "the retry of a sink has more than policies for failures")
	codeStaging                = code("staging", "rows of a sink with `mode: replace` or `delete_missing` could not be published together, or would delete others")
	codeStateName              = code("state-name", "two steps, or the iterations of a loop, would have one state, or a state has no name")
	codeTemplateInCode         = code("template-in-code", "there is a template in code, which is none; in a string of the code a warning")
	codeUnavailableName        = code("unavailable-name", "a name is known elsewhere, but not in this expression")
	codeUnknownEntry           = code("unknown-entry", "a step calls an entry that the workbook does not have")
	codeUnknownField           = code("unknown-field", "the tool of a call has no such field")
	codeUnknownMember          = code("unknown-member", "a word of the language, or a result of known shape, has no such member, so that it is always nil (warning)")
	codeUnknownName            = code("unknown-name", "an expression names something that no step, workload key or word is called")
	codeUnknownTool            = code("unknown-tool", "there is no tool of that name")
	codeUnusedPolicies         = code("unused-policies", "no `retry` uses a list of policies (warning)")
	codeFailAfterFailure       = code("fail-after-failure", "a policy for failures has `fail`, which makes one of an answer")
	codeUnreachable            = code("unreachable-step", "no route leads to a step")
	codeUnboundedCycle         = code("unbounded-cycle", "routes lead back to a step, and nothing bounds how often (warning)")
	codeUnreachablePolicy      = code("unreachable-policy", "earlier policies match everything that a policy could match (warning)")
	codeUnusedEntry            = code("unused-entry", "no step uses an entry of the workbook (warning)")
	codeURLValue               = code("url-value", "a value in a url that is probably not meant to be escaped (warning)")
)

// ownCodes are those of this package.
var ownCodes []CodeDoc

// code is a code, and what it means in the documents.
func code(name, meaning string) string {
	ownCodes = append(ownCodes, CodeDoc{name, meaning})
	return name
}

// CodeDoc is the meaning of one code.
type CodeDoc struct {
	Code    string
	Meaning string // one line
}

// Codes are the codes of every diagnostic a playbook can get, sorted.
func Codes() []CodeDoc {
	all := slices.Concat(ownCodes, expressionCodes, statementCodes)
	slices.SortFunc(all, func(a, b CodeDoc) int { return cmp.Compare(a.Code, b.Code) })
	return slices.CompactFunc(all, func(a, b CodeDoc) bool { return a.Code == b.Code })
}

// expressionCodes are those of package expression.
var expressionCodes = []CodeDoc{
	{"ambiguous", "an expression that Jinja and expr read differently"},
	{"arguments", "a function has too few or too many arguments"},
	{"condition-text", "there is text beside the braces of a condition"},
	{"jinja-block", "a Jinja block, such as {% if %}, which templates do not have"},
	{"pattern", "a regular expression that does not compile"},
	{"syntax", "an expression or template that cannot be read"},
	{"template-in-string", "there is a template in a string of an expression, where it is text"},
	{"too-large", "an expression, statement or playbook is beyond a limit of size"},
	{"unknown-function", "an expression calls a function, filter or test that does not exist"},
	{"unsupported", "an expression uses a form of Jinja or expr that the language does not have"},
}

// statementCodes are those of package statement.
var statementCodes = []CodeDoc{
	{"own-placeholder", "a statement has placeholders of its own, such as $1, beside templates"},
	{"sql-replace-dropped", "a replace that doubles quotes is dropped, as values are bound (warning)"},
	{"sql-syntax", "a statement that cannot be read"},
	{"statement-not-one", "a statement field holds no statement or more than one"},
	{"template-not-a-value", "a template is where SQL has no value"},
}
