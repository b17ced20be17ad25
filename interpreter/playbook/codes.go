package playbook

import (
	"cmp"
	"slices"
)

// Codes of the problems that checks report; decoding has its own beside them.
// Each is an anchor of docs/language.md.
const (
	CodeBounds                 = "bounds"
	CodeCannotRestart          = "cannot-restart"
	CodeCodeMain               = "code-main"
	CodeCodeSyntax             = "code-syntax"
	CodeCollectWithoutNextCall = "collect-without-next-call"
	CodeCollectionInIteration  = "collection-in-iteration"
	CodeDuplicateEntry         = "duplicate-entry"
	CodeDuplicateStep          = "duplicate-step"
	CodeDuplicateTarget        = "duplicate-target"
	CodeElementInStepSink      = "element-in-step-sink"
	CodeElse                   = "else"
	CodeFieldType              = "field-type"
	CodeHiddenName             = "hidden-name"
	CodeMissingField           = "missing-field"
	CodeMissingTarget          = "missing-target"
	CodeNextCallAfterFailure   = "next-call-after-failure"
	CodeNoEffect               = "no-effect"
	CodeIgnoreAfterSuccess     = "ignore-after-success"
	CodeJSONText               = "json-text"
	CodeManyElements           = "many-elements"
	CodeNotYet                 = "not-yet"
	CodeOperatorLimit          = "operator-limit"
	CodePagesNotCollected      = "pages-not-collected"
	CodeRawOutsideURL          = "raw-outside-url"
	CodeReservedName           = "reserved-name"
	CodeRouter                 = "router"
	CodeSecretStep             = "secret-step"
	CodeSecretUse              = "secret-use"
	CodeSinkNotWritable        = "sink-not-writable"
	CodeSinkOnly               = "sink-only"
	CodeSinkRetry              = "sink-retry"
	CodeTemplateInCode         = "template-in-code"
	CodeUnavailableName        = "unavailable-name"
	CodeUnknownEntry           = "unknown-entry"
	CodeUnknownField           = "unknown-field"
	CodeUnknownMember          = "unknown-member"
	CodeUnknownName            = "unknown-name"
	CodeUnknownTool            = "unknown-tool"
	CodeUnreachable            = "unreachable-step"
	CodeUnreachablePolicy      = "unreachable-policy"
	CodeUnusedEntry            = "unused-entry"
	CodeURLValue               = "url-value"
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
	{CodeBounds, "a number or duration is outside of what the word allows"},
	{CodeCannotRestart, "restart stands in a policy for successes, or beside a page sink that would keep what is dropped"},
	{CodeCodeMain, "the function main of code cannot be called with the args of the call"},
	{CodeCodeSyntax, "code does not compile"},
	{CodeCollectWithoutNextCall, "collect in a policy that polls, whose answers are not collected (warning)"},
	{CodeCollectionInIteration, "an expression of an iteration needs all of the loop's collection"},
	{CodeDuplicateEntry, "two entries of the workbook have one name"},
	{CodeDuplicateStep, "two steps have one name"},
	{CodeDuplicateTarget, "one route names a step twice"},
	{CodeElementInStepSink, "the sink on a step names the element of its loop; loop.sink runs once per iteration"},
	{CodeElse, "next has two defaults, or an else without a when"},
	{CodeFieldType, "a tool field holds something of the wrong type, or a template where none may stand"},
	{CodeHiddenName, "a workload key or a step is hidden by a name that is found earlier (warning)"},
	{CodeMissingField, "a call lacks a field that its tool needs"},
	{CodeMissingTarget, "next leads to a step that does not exist"},
	{CodeNextCallAfterFailure, "a policy for failures has next_call, which follows a success"},
	{CodeIgnoreAfterSuccess, "a policy for successes has ignore, which is for failures"},
	{CodeNoEffect, "a word does nothing where it stands (warning)"},
	{CodeJSONText, "JSON is written as text with templates in it (warning)"},
	{CodeManyElements, "a loop over 100 elements or more without `batch` (warning)"},
	{CodeNotYet, "a word or tool that the language keeps for later"},
	{CodeOperatorLimit, "a policy is above a limit that the worker's environment sets"},
	{CodePagesNotCollected, "next_call keeps only the last page, as nothing collects or writes the others (warning)"},
	{CodeRawOutsideURL, "there is a | raw where nothing is escaped"},
	{CodeReservedName, "a step, element or into has a name that expressions cannot tell from a word or a function"},
	{CodeRouter, "a step without a tool has retry, loop or sink"},
	{CodeSecretStep, "a step is secret and has something that would look at its result"},
	{CodeSecretUse, "the result of a secret step is used where it would become known"},
	{CodeSinkNotWritable, "the tool of a sink cannot write"},
	{CodeSinkOnly, "a step calls a tool that is a sink only"},
	{CodeSinkRetry, "the retry of a sink has more than policies for failures"},
	{CodeTemplateInCode, "there is a template in code, which is none; in a string of the code a warning"},
	{CodeUnavailableName, "a name is known elsewhere, but not where the expression stands"},
	{CodeUnknownEntry, "a step calls an entry that the workbook does not have"},
	{CodeUnknownField, "the tool of a call has no such field"},
	{CodeUnknownMember, "a word of the language, or a result of known shape, has no such member, so that it is always nil (warning)"},
	{CodeUnknownName, "an expression names something that no step, workload key or word is called"},
	{CodeUnknownTool, "there is no tool of that name"},
	{CodeUnreachable, "no route leads to a step"},
	{CodeUnreachablePolicy, "earlier policies match everything that a policy could match (warning)"},
	{CodeUnusedEntry, "no step uses an entry of the workbook (warning)"},
	{CodeURLValue, "a value in a url that is probably not meant to be escaped (warning)"},
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
	{"template-not-a-value", "a template stands where SQL takes no value"},
}
