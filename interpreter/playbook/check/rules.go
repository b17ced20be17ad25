package check

import (
	"cmp"
	"slices"

	"reprise/interpreter/playbook"
)

// allRules returns all rules. Their order does not matter, because problems are sorted.
func allRules() []func(*checker) {
	return []func(*checker){
		checkReserved,
		checkHidden,
		checkRouter,
		checkRouting,
		checkRetry,
		checkPaging,
		checkOnePage,
		checkSinkRetry,
		checkRepeatedWrites,
		checkPolicyLists,
		checkNotices,
		checkLoop,
		checkSources,
		checkSharedOutput,
		checkReplacedRows,
		checkCollection,
		checkIncremental,
		checkStates,
		checkStaging,
		checkChildren,
		checkContributed,
		checkRows,
		checkWorkbook,
		checkTools,
		checkStatements,
		checkCode,
		checkNames,
		checkNotYetRun,
		checkMixedTypes,
		checkNested,
		checkURL,
		checkJSONText,
		checkSecret,
		checkLiteralSecrets,
		checkSchedule,
		checkPartitions,
		checkTriggers,
		checkPlaybooks,
	}
}

// The codes of problems that checks report, in addition to those of decoding. Each is a heading of
// docs/reference/diagnostics.md.
var (
	codeCalledPlaybook         = codeDoc("called-playbook", "a call runs another playbook that does not exist or is invalid, or names more than one")
	codeCannotRestart          = codeDoc("cannot-restart", "`restart` is in a policy for successes, beside a sink that would keep dropped rows or write rows twice, or is `full` without `incremental`")
	codeChildTables            = codeDoc("child-tables", "`children` of a sink would lose rows, or write those of two lists to one table")
	codeCodeMain               = codeDoc("code-main", "the function `main` of the code cannot be called with the args of the call, or has no result for the sink (warning)")
	CodeCodeSyntax             = codeDoc("code-syntax", "the code does not compile")
	codeCollectWithoutNextCall = codeDoc("collect-without-next-call", "`collect` is in a policy that polls, and responses of polls are not collected (warning)")
	codeCollectionInIteration  = codeDoc("collection-in-iteration", "an expression of an iteration uses the whole collection of the loop")
	codeCron                   = codeDoc("cron", "the times of a schedule cannot be parsed, or never occur")
	codeCronClocks             = codeDoc("cron-clocks", "times of a schedule are skipped or occur twice when the clocks change (warning)")
	codeCronDays               = codeDoc("cron-days", "a schedule names both days of the month and days of the week (warning)")
	codeCronStep               = codeDoc("cron-step", "a step of a schedule does not divide the hour or the day, so one interval is shorter (warning)")
	codeDuplicateStep          = codeDoc("duplicate-step", "two steps have the same name")
	codeDuplicateTarget        = codeDoc("duplicate-target", "a route names the same step twice")
	codeElse                   = codeDoc("else", "`next` has two defaults, or an `else` without a `when`")
	codeFieldType              = codeDoc("field-type", "a tool field has a value of the wrong type, or a template where none is allowed")
	codeHiddenName             = codeDoc("hidden-name", "a workload key or a step is hidden by a name that takes precedence (warning)")
	codeMissingField           = codeDoc("missing-field", "a call lacks a field that its tool requires")
	codeMissingTarget          = codeDoc("missing-target", "`next` leads to a step that does not exist")
	codeMixedTypes             = codeDoc("mixed-types", "a text is compared with a number, so the result is always the same (warning)")
	codeMovingOrder            = codeDoc("moving-order", "a transfer reads rows in the order of a value that each of its statements computes anew (warning)")
	codeNextCallAfterFailure   = codeDoc("next-call-after-failure", "a policy for failures has `next_call`, which applies only after a success")
	codeNoEffect               = codeDoc("no-effect", "a key has no effect where it is written (warning)")
	codeNotYetRun              = codeDoc("not-yet-run", "a step uses the result of a step that cannot have run yet (warning)")
	codeIgnoredPages           = codeDoc("ignored-pages", "a failure of a further page is ignored, although what was read by then counts as everything (warning)")
	codeIgnoreAfterSuccess     = codeDoc("ignore-after-success", "a policy for successes has `ignore`, which applies only to failures")
	codeIncremental            = codeDoc("incremental", "a step with `incremental` cannot keep its state between runs, or would read too much or too little (some are warnings)")
	codeJSONText               = codeDoc("json-text", "JSON is written as text that contains templates (warning)")
	codeLiteralSecret          = codeDoc("literal-secret", "a password, token or key is written in the file (warning)")
	codeOnePage                = codeDoc("one-page", "a request asks for one page or a number of rows, and no policy fetches the next page (warning)")
	codeOperatorLimit          = codeDoc("operator-limit", "a policy exceeds a limit that the worker's environment sets")
	codePageIndex              = codeDoc("page-index", "`next_call` counts with `_retry.index`, which is 1 on the first page (warning)")
	codePagesNotCollected      = codeDoc("pages-not-collected", "nothing collects or writes the pages of `next_call`, so only the last page is kept (warning)")
	codeRawOutsideURL          = codeDoc("raw-outside-url", "`| raw` is used where nothing is escaped")
	codeRepeatedWrite          = codeDoc("repeated-write", "a sink writes rows twice if a worker dies while it writes, or if a schedule runs a partition again (warning)")
	codeReservedName           = codeDoc("reserved-name", "a step, an element or `into` has a name that the language reserves")
	codeRowShape               = codeDoc("row-shape", "`fields` or `exclude` of a sink have no rows to change, or leave out a column that the sink needs, or `path` names the row where rows cannot have paths of their own")
	codeSecretStep             = codeDoc("secret-step", "a secret step has a part that would reveal its result")
	codeSecretUse              = codeDoc("secret-use", "the result of a secret step is used where it would become visible")
	codeReplacedBody           = codeDoc("replaced-body", "a `body` of `next_call` replaces parts of the first body that it does not name (warning)")
	codeReplacedRows           = codeDoc("replaced-rows", "a sink replaces what an earlier step or iteration of the same run has written (warning)")
	codeSharedOutput           = codeDoc("shared-output", "the pages of a call or the iterations of a loop overwrite one file, so only the last one stays (warning)")
	codeShortInterval          = codeDoc("short-interval", "a schedule starts a run more often than every 10 seconds (warning)")
	codeSinkNotWritable        = codeDoc("sink-not-writable", "the tool of a sink cannot write")
	codeSinkOnly               = codeDoc("sink-only", "a step calls a tool that can only be a sink")
	codeSinkRetry              = codeDoc("sink-retry", "the `retry` of a sink has policies for successes")
	codeStaging                = codeDoc("staging", "rows of a sink with `mode: replace` or `delete_missing` cannot be published together, or would delete other rows")
	codeStateName              = codeDoc("state-name", "two steps, or the iterations of a loop, would share one state, or a state has no name")
	codeTemplateInCode         = codeDoc("template-in-code", "code contains a template, which is not rendered there; a warning if it is in a string of the code")
	codeUnavailableName        = codeDoc("unavailable-name", "a name exists, but not in this expression")
	codeUnknownEntry           = codeDoc("unknown-entry", "a step calls an entry that is not in the workbook")
	codeUnknownField           = codeDoc("unknown-field", "the tool of a call does not have this field")
	codeUnknownMember          = codeDoc("unknown-member", "a name of the language, or a result of known shape, has no such member, so the value is always nil (warning)")
	codeUnknownName            = codeDoc("unknown-name", "an expression uses a name that is neither a step, a workload key nor a name of the language")
	codeUnknownTool            = codeDoc("unknown-tool", "there is no tool with this name")
	codeUnusedPolicies         = codeDoc("unused-policies", "no `retry` uses a list of policies (warning)")
	codeFailAfterFailure       = codeDoc("fail-after-failure", "a policy for failures has `fail`, which ends the call, beside words that try again")
	codeUnreadPages            = codeDoc("unread-pages", "a condition ends the pages at a number, although what was read by then counts as everything (warning)")
	codeUnreachable            = codeDoc("unreachable-step", "no route leads to a step")
	codeUnboundedCycle         = codeDoc("unbounded-cycle", "routes lead back to a step, and nothing limits how often (warning)")
	codeUnreachablePolicy      = codeDoc("unreachable-policy", "earlier policies match everything that this policy could match (warning)")
	codeUnusedEntry            = codeDoc("unused-entry", "no step uses this entry of the workbook (warning)")
	codeURLValue               = codeDoc("url-value", "a value in a URL is escaped, probably by mistake (warning)")
)

// ownCodes are the codes of this package.
var ownCodes []playbook.CodeDoc

// codeDoc registers a code with its meaning, for the documents, and returns it.
func codeDoc(name, meaning string) string {
	ownCodes = append(ownCodes, playbook.CodeDoc{Code: name, Meaning: meaning})
	return name
}

// DiagnosticCodes returns the codes of all diagnostics about playbooks, sorted.
func DiagnosticCodes() []playbook.CodeDoc {
	all := slices.Concat(ownCodes, playbook.DecodingCodes())
	slices.SortFunc(all, func(a, b playbook.CodeDoc) int { return cmp.Compare(a.Code, b.Code) })
	return slices.CompactFunc(all, func(a, b playbook.CodeDoc) bool { return a.Code == b.Code })
}
