package playbook

import (
	"cmp"
	"slices"
)

// Codes of the problems that checks report; decoding has its own beside them.
// Each is a heading of docs/reference/diagnostics.md.
const (
	codeBounds                 = "bounds"
	codeCalledPlaybook         = "called-playbook"
	codeCannotRestart          = "cannot-restart"
	codeCodeMain               = "code-main"
	CodeCodeSyntax             = "code-syntax"
	codeCollectWithoutNextCall = "collect-without-next-call"
	codeCollectionInIteration  = "collection-in-iteration"
	codeCron                   = "cron"
	codeCronDays               = "cron-days"
	codeDuplicateEntry         = "duplicate-entry"
	codeDuplicateStep          = "duplicate-step"
	codeDuplicateTarget        = "duplicate-target"
	CodeElementInStepSink      = "element-in-step-sink"
	codeElse                   = "else"
	codeFieldType              = "field-type"
	codeHiddenName             = "hidden-name"
	codeMissingField           = "missing-field"
	codeMissingTarget          = "missing-target"
	codeMixedTypes             = "mixed-types"
	codeNextCallAfterFailure   = "next-call-after-failure"
	codeNoEffect               = "no-effect"
	codeNotYetRun              = "not-yet-run"
	codeIgnoreAfterSuccess     = "ignore-after-success"
	codeIncremental            = "incremental"
	codeJSONText               = "json-text"
	codeLiteralSecret          = "literal-secret"
	codeOperatorLimit          = "operator-limit"
	codePageIndex              = "page-index"
	codePagesNotCollected      = "pages-not-collected"
	codeRawOutsideURL          = "raw-outside-url"
	codeRepeatedWrite          = "repeated-write"
	codeReservedName           = "reserved-name"
	codeRouter                 = "router"
	codeSecretStep             = "secret-step"
	codeSecretUse              = "secret-use"
	codeSharedOutput           = "shared-output"
	codeShortInterval          = "short-interval"
	codeSinkNotWritable        = "sink-not-writable"
	codeSinkOnly               = "sink-only"
	codeSinkRetry              = "sink-retry"
	codeStaging                = "staging"
	codeStateName              = "state-name"
	codeTemplateInCode         = "template-in-code"
	codeUnavailableName        = "unavailable-name"
	codeUnknownEntry           = "unknown-entry"
	codeUnknownField           = "unknown-field"
	codeUnknownMember          = "unknown-member"
	codeUnknownName            = "unknown-name"
	codeUnknownTool            = "unknown-tool"
	codeUnusedPolicies         = "unused-policies"
	codeFailAfterFailure       = "fail-after-failure"
	codeUnreachable            = "unreachable-step"
	codeUnreachablePolicy      = "unreachable-policy"
	codeUnusedEntry            = "unused-entry"
	codeURLValue               = "url-value"
)

// CodeDoc is the meaning of one code.
type CodeDoc struct {
	Code    string
	Meaning string // one line
}

// Codes are the codes of every diagnostic a playbook can get, sorted.
func Codes() []CodeDoc {
	all := slices.Concat(checkCodes, decodeCodes, expressionCodes, statementCodes)
	slices.SortFunc(all, func(a, b CodeDoc) int { return cmp.Compare(a.Code, b.Code) })
	return slices.CompactFunc(all, func(a, b CodeDoc) bool { return a.Code == b.Code })
}

var checkCodes = []CodeDoc{
	{codeBounds, "a number or duration is outside of what the word allows"},
	{codeCalledPlaybook, "a call runs another playbook that is not there or not valid, or says more than one"},
	{codeCannotRestart, "`restart` is in a policy for successes, or beside a sink that would keep what is dropped or write it twice, or is `full` without `incremental`"},
	{codeCodeMain, "the function main of code cannot be called with the args of the call"},
	{CodeCodeSyntax, "code does not compile"},
	{codeCollectWithoutNextCall, "`collect` is in a policy that polls, whose answers are not collected (warning)"},
	{codeCollectionInIteration, "an expression of an iteration needs all of the loop's collection"},
	{codeCron, "times of a schedule that cannot be read, or never come"},
	{codeCronDays, "times of a schedule are days of the month and of the week at once (warning)"},
	{codeDuplicateEntry, "two entries of the workbook have one name"},
	{codeDuplicateStep, "two steps have one name"},
	{codeDuplicateTarget, "one route names a step twice"},
	{CodeElementInStepSink, "the sink on a step names the element of its loop; `loop.sink` runs once per iteration"},
	{codeElse, "`next` has two defaults, or an `else` without a `when`"},
	{codeFieldType, "a tool field holds something of the wrong type, or a template where none may be"},
	{codeHiddenName, "a workload key or a step is hidden by a name that is found earlier (warning)"},
	{codeMissingField, "a call lacks a field that its tool needs"},
	{codeMissingTarget, "`next` leads to a step that does not exist"},
	{codeNextCallAfterFailure, "a policy for failures has `next_call`, which follows a success"},
	{codeIgnoreAfterSuccess, "a policy for successes has `ignore`, which is for failures"},
	{codeIncremental, "a step cannot keep a state between runs as it is written, or would read too much or too little (some are warnings)"},
	{codeNoEffect, "a word does nothing where it is written (warning)"},
	{codeMixedTypes, "a text is compared with a number, so that it always gives the same (warning)"},
	{codeNotYetRun, "a step names the result of one that cannot have run by then (warning)"},
	{codeJSONText, "JSON is written as text with templates in it (warning)"},
	{codeLiteralSecret, "a password, token or key is written out in the file (warning)"},
	{codeOperatorLimit, "a policy is above a limit that the worker's environment sets"},
	{codePageIndex, "`next_call` counts on with `_retry.index`, which is 1 on the first page (warning)"},
	{codePagesNotCollected, "`next_call` keeps only the last page, as nothing collects or writes the others (warning)"},
	{codeRawOutsideURL, "there is a `| raw` where nothing is escaped"},
	{codeRepeatedWrite, "a sink writes again what it has written when a worker dies meanwhile (warning)"},
	{codeReservedName, "a step, element or into has a name that expressions cannot distinguish from a word"},
	{codeRouter, "a step without a tool has retry, loop, incremental or sink"},
	{codeSecretStep, "a step is secret and has something that would read its result"},
	{codeSecretUse, "the result of a secret step is used where it would become known"},
	{codeSharedOutput, "the elements of a loop replace one file, of which the last stays (warning)"},
	{codeShortInterval, "a schedule starts a run more often than every 10 seconds (warning)"},
	{codeSinkNotWritable, "the tool of a sink cannot write"},
	{codeSinkOnly, "a step calls a tool that is a sink only"},
	{codeSinkRetry, "the retry of a sink has more than policies for failures"},
	{codeStaging, "rows of a sink with `mode: replace` or `delete_missing` could not be published together, or would delete others"},
	{codeStateName, "two steps, or the iterations of a loop, would have one state, or a state has no name"},
	{codeTemplateInCode, "there is a template in code, which is none; in a string of the code a warning"},
	{codeUnavailableName, "a name is known elsewhere, but not in this expression"},
	{codeUnknownEntry, "a step calls an entry that the workbook does not have"},
	{codeUnknownField, "the tool of a call has no such field"},
	{codeUnknownMember, "a word of the language, or a result of known shape, has no such member, so that it is always nil (warning)"},
	{codeUnknownName, "an expression names something that no step, workload key or word is called"},
	{codeUnknownTool, "there is no tool of that name"},
	{codeUnusedPolicies, "no `retry` uses a list of policies (warning)"},
	{codeFailAfterFailure, "a policy for failures has `fail`, which makes one of an answer"},
	{codeUnreachable, "no route leads to a step"},
	{codeUnreachablePolicy, "earlier policies match everything that a policy could match (warning)"},
	{codeUnusedEntry, "no step uses an entry of the workbook (warning)"},
	{codeURLValue, "a value in a url that is probably not meant to be escaped (warning)"},
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
