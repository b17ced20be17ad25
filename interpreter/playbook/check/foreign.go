package check

import (
	"slices"
	"strings"

	"reprise/interpreter/playbook"
)

// foreignName suggests a replacement for a name from another system; "" for none.
func (c *checker) foreignName(at playbook.StepSpot, name string) string {
	if slices.Contains(strings.Fields(elementNames), playbook.PlainWord(name)) && len(c.elementNames(at)) > 0 {
		return "; the element of this loop is " + playbook.QuoteWord(c.elementNames(at)[0])
	}
	if slices.Contains(errorTexts, name) && at.Spot&playbook.AtAfter != 0 {
		return "; a text needs quotes: '" + name + "'"
	}
	if write := playbook.ForeignIn(foreignNames, name, 0, nil).Text(); write != "" {
		return "; " + write
	}
	return ""
}

// errorTexts are texts to which error.kind and error.class are compared.
var errorTexts = slices.Concat(playbook.ErrorKinds, []string{
	"response", "sink", "incremental", "payload_too_large", "repeat", "cancelled", "expression",
}, playbook.ErrorClasses)

// meantField reports whether an unknown field of the action is a misspelling, or another system's name, of the
// named field. Then one message is enough.
func meantField(action *playbook.Action, spec playbook.ToolSpec, section, name string) bool {
	return slices.ContainsFunc(action.Fields, func(entry *playbook.Entry) bool {
		if _, known := spec.Field(entry.Key); known {
			return false
		}
		return playbook.MeansField(entry.Key, section, spec, name)
	})
}

// foreignTools are names of tools in other systems.
var foreignTools = []playbook.ForeignWord{
	{Words: "bash shell sh script command run cmd powershell docker container exec", Write: `programs run in the worker's Python: tool: python, with def main(…) in "code"`},
	{Words: "javascript js node code function typescript lambda", Write: `write tool: python, with def main(…) in "code"`},
	{Words: "requests request rest restapi api curl webrequest graphql fetch httprequest httpoperator simplehttpoperator url https", Write: `write tool: http`},
	{Words: "postgresql pg psql sql db database mysql jdbc query postgresoperator redshift", Write: `write tool: postgres or tool: sqlite, with "statement" or "table"`},
	{Words: "csv json jsonl s3 local filesystem disk", Write: `write tool: file`},
	{Words: "subflow subworkflow flow childworkflow executeworkflow dag triggerdagrun playbooks", Write: `write tool: playbook`},
	{Words: "if switch branch router branchpythonoperator condition", Write: `remove the tool: a step without one only routes, by "next"`},
	{Words: "sleep wait delay pause timer", Write: `write "delay" in a policy of "retry", or metadata.schedule for times`},
	{Words: "foreach loop map", Write: `write the tool of each iteration, and beside it "loop"`},
	{Words: "slack email smtp teams", Write: `write tool: http with the URL of its webhook; "on_failure" and "notify" send such messages for a run`},
}

// foreignNames are names in expressions of other systems.
var foreignNames = []playbook.ForeignWord{
	{Words: "secrets secret env vault environ credentials", Write: `credentials stay with the worker: use a connection, auth: NAME, which adds them to the request`},
	{Words: "ds dsnodash executiondate logicaldate dataintervalstart dataintervalend today", Write: `the start of the run is run.started_at, its scheduled time run.scheduled_at, and the time of the attempt now()`},
	{Words: "outputs output ti taskinstance tasks task nodes node needs jobs", Write: `use the step's name for its result`},
	{Words: "inputs input params parameters variables var config context github flow trigger dagrun", Write: `inputs are keys of workload: use workload.name, or name`},
	{Words: "bookmark bookmarks watermark lastvalue cursorvalue cursor streamstate checkpoint lastsync lastrun lastupdated", Write: `what a step keeps between runs is incremental.value, in a step with "incremental"`},
	{Words: "loop forloop iteration", Write: `it is _loop: _loop.index from 0, _loop.count from 1, _loop.size`},
	{Words: "taskrun each current matrix", Write: `the element of a loop has the name that "element" gives it`},
	{Words: "retry attempts retrycount", Write: `it is _retry: _retry.attempt, _retry.page`},
	{Words: "body json statuscode headers", Write: `the body of a response is response; status and headers are this.meta.status and this.meta.headers, or error.status and error.headers after a failure`},
	{Words: "exception err exc failure", Write: `it is error: error.kind, error.status, error.message`},
}

// foreignMembers are members that values have in other systems.
var foreignMembers = map[string][]playbook.ForeignWord{
	"error": {
		{Words: "code statuscode httpstatus", Write: "error.status"},
		{Words: "msg text reason detail description", Write: "error.message"},
		{Words: "response data content json", Write: "error.body"},
		{Words: "name errortype", Write: "error.kind"},
	},
	"this": {
		{Words: "statuscode code", Write: "this.meta.status"},
		{Words: "headers", Write: "this.meta.headers"},
		{Words: "body json content response result", Write: "this.data"},
	},
	"_loop": {
		{Words: "index0 i position", Write: "_loop.index"},
		{Words: "index1 number", Write: "_loop.count"},
		{Words: "length total revindex", Write: "_loop.size"},
	},
	"_retry": {
		{Words: "pagenumber offset iteration", Write: "_retry.page"},
		{Words: "number try retry retries", Write: "_retry.attempt"},
		{Words: "total", Write: "_retry.count"},
	},
	playbook.IncrementalWord: {
		{Words: "startvalue start initialvalue since from last lastvalue cursor bookmark lower", Write: "incremental.value"},
		{Words: "high max end maximum upper", Write: "incremental.watermark"},
	},
	"run": {
		{Words: "date start time started created", Write: "run.started_at"},
		{Words: "runid executionid", Write: "run.id"},
		{Words: "name flow", Write: "run.playbook"},
	},
}

// elementNames are names of a loop's element in other systems.
const elementNames = "item element each taskrun matrix elem"
