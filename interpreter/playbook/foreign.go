package playbook

import (
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// level says where in a playbook a word is, as far as the tables of words of
// other systems distinguish places.
type level uint8

const (
	levelPlaybook level = 1 << iota
	levelMetadata
	levelCall // a step, an entry of the workbook, and what is grouped under tool
	levelRetry
	levelLoop
	levelSink
	levelRoute
	levelState
)

// levels are the sections of each level.
var levels = map[string]level{
	"playbook": levelPlaybook, "metadata": levelMetadata,
	"step": levelCall, "workbook entry": levelCall, "tool": levelCall,
	"retry policy": levelRetry, "then": levelRetry, "next_call": levelRetry, "collect": levelRetry,
	"loop": levelLoop, "sink": levelSink, "next entry": levelRoute, "next target": levelRoute,
	"incremental": levelState,
}

// foreignWord is what to write for words of other systems: GitHub Actions, Airflow,
// Kestra, n8n, Airbyte, dlt, Singer, and libraries such as requests. Words are compared without
// regard to case, "-" and "_".
type foreignWord struct {
	words string // with spaces between them
	level level
	// field is the field of a tool that the words stand for; a tool without it has
	// another meaning for them, or none.
	field string
	// word is the one to write instead, else write says what to do; neither is that of no foreign word.
	word, write string
}

// text says what to write, "" for no foreign word.
func (w foreignWord) text() string {
	if w.word != "" {
		return "write " + quote(w.word)
	}
	return w.write
}

// names reports whether a key is one of those to write.
func (w foreignWord) names(key string) bool { return strings.Contains(w.text(), quote(key)) }

// retryPolicy is how a policy for failures is written.
const retryPolicy = `retry: [{when: error is defined, then: {max_attempts: 4, initial_delay: 5s}}]`

const (
	nextPage       = `pages are policies of "retry": retry: [{when: response.next is defined, then: {next_call: {params: {…}}, collect: {strategy: append}}}]`
	dependency     = `the order is written in the step before, with "next" and this step's name`
	connection     = `name a connection that the worker knows with "auth"`
	failureWords   = `to try again write "retry", to continue all the same retry: [{when: error is defined, then: {ignore: true}}], and to be notified "on_failure"`
	continueAnyway = `write retry: [{when: error is defined, then: {ignore: true}}]`
	listOfSteps    = `the list of steps is "workflow"`
	stepName       = `the name of a step is "step"`
	stepTool       = `write "tool", such as tool: http`
	stepLoop       = `write "loop": loop: {collection: "{{ ids }}", element: id}`
	programs       = `write tool: python, with the program in "code" as def main(…)`
	stateOfStep    = `write "incremental": incremental: {cursor_path: updated_at, initial_value: "2024-01-01T00:00:00Z"}`
	times          = `write metadata: {schedule: {cron: "0 6 * * *"}}, or every: 1h in place of cron`
)

// foreignWords is the one table of words that other systems have for those of the
// language. The first entry of a level counts.
var foreignWords = []foreignWord{
	{words: "jobs tasks nodes steps stages states activities dag pipeline", level: levelPlaybook, write: listOfSteps},
	{words: "on triggers trigger", level: levelPlaybook, write: `write metadata: {triggers: […]} for deliveries that start a run, metadata: {schedule: {…}} for times`},
	{words: "schedule scheduleinterval cron timetable crontab", level: levelPlaybook | levelCall, write: times},
	{words: "env inputs input variables parameters params vars defaults", level: levelPlaybook, write: `inputs and constants are "workload"`},
	{words: "outputs outputvalues return", level: levelPlaybook, word: "output"},
	{words: "errors onerror catch onfailurecallback", level: levelPlaybook, write: `write "on_failure", a notice once the run has failed`},
	{words: "onsuccesscallback", level: levelPlaybook | levelCall, word: "on_success"},
	{words: "name id dagid", level: levelPlaybook, write: `write metadata: {name: …}`},
	{words: "tags", level: levelPlaybook | levelMetadata, write: `write metadata: {labels: {…}}`},
	{words: "version specversion", level: levelPlaybook, write: `write apiVersion: ` + Version},
	{words: "executiontimeout dagruntimeout timeoutminutes timeoutseconds", level: levelPlaybook, write: `write "timeout", such as timeout: 2h`},
	{words: "maxactiveruns concurrencylimit", level: levelPlaybook, write: `write concurrency: {key: …, limit: 1}`},

	{words: "name id taskid stepid nodename activity", level: levelCall, write: stepName},
	{words: "description comment notes doc", level: levelCall, word: "desc"},
	{words: "needs dependson upstream requires after waitfor", level: levelCall, write: dependency},
	{words: "goto transition transitions connections nextstep", level: levelCall, write: `write "next" with the name of the step that follows`},
	{words: "if condition runif only unless", level: levelCall, write: `whether a step runs is decided in the step before: next: [{when: "{{ … }}", then: load}, {else: …}]`},
	{words: "triggerrule", level: levelCall, write: `write join: all to wait for all branches; after a failure continue with next: [{when: error is defined, then: …}], or send "on_failure"`},
	{words: "onerror catch errors rescue except onfailurecallback onexception", level: levelCall, write: failureWords},
	{words: "continueonerror continueonfail allowfailure allowfailed ignoreerrors ignorefailure", level: levelCall | levelRetry, write: continueAnyway},
	{words: "retries retrytimes maxretries maxtries numretries retrycount attempts retrypolicy", level: levelCall, write: `write "retry" with max_attempts, which counts the first attempt too: ` + retryPolicy},
	{words: "retries maxretries maxtries attempts", level: levelRetry, write: `write "max_attempts", which counts the first attempt too`},
	{words: "retrydelay retryinterval waitbetweentries backoff retrybackoff", level: levelCall, write: `write "retry" with initial_delay: ` + retryPolicy},
	{words: "interval retrydelay wait sleep waitbetweentries retryinterval", level: levelRetry, write: `write "delay" for a fixed delay, "initial_delay" for one that grows`},
	{words: "backofffactor multiplier backoffcoefficient exponentialbase", level: levelRetry, word: "backoff_multiplier"},
	{words: "maxinterval maximuminterval", level: levelRetry, word: "max_delay"},
	{words: "statusforcelist statuscodes retryon httpcodes onstatus", level: levelCall | levelRetry, write: `the condition says which failures: when: error.status in [500, 502, 503]`},
	{words: "raise throw error abort failif failwhen errormessage", level: levelRetry, write: `write "fail" with the message, in a policy whose when names the answer`},
	{words: "if condition on matches", level: levelRetry | levelRoute, word: "when"},
	{words: "goto target to", level: levelRoute, write: `write "step" or "then" with the name of the step`},
	{words: "timeoutminutes timeoutseconds timeoutms executiontimeout maxtime readtimeout", level: levelCall, write: `write "timeout", such as timeout: 5m`},
	{words: "strategy matrix foreach withitems loopover iterate map each expand split", level: levelCall, write: stepLoop},
	{words: "uses operator plugin nodetype action component requester source", level: levelCall, write: stepTool},
	{words: "run script bash shell exec inline", level: levelCall, write: programs},
	{words: "with arguments opargs opkwargs kwargs parameters inputs input env", level: levelCall, write: `values for the tool are "args", and the tool's own fields belong in the step`},
	{words: "credentials credential token authentication authenticator connid httpconnid connectionid connectionstring secret secrets apikey bearer basicauth username password", level: levelCall | levelSink, write: connection},
	{words: "paginator pagination paginate paging pages nextpage cursor", level: levelCall | levelRetry, write: nextPage},
	{words: "recordselector extractor fieldpath responsefilter datapath recordpath resultpath", level: levelCall | levelRetry, write: `write the path of the rows where pages are collected: retry: [{when: …, then: {next_call: {…}, collect: {path: orders}}}]`},
	{words: "cursorfield cursorcolumn cursorpath replicationkey replicationmethod bookmark bookmarkkey bookmarkproperties incrementalsync incrementalcursor watermark highwatermark lookbackwindow lookback startdate startdatetime stateful checkpoint streamstate defaultcursorfield sourcedefinedcursor", level: levelCall, write: stateOfStep},
	{words: "ratelimiter throttle throttling limiter", level: levelCall, write: `write "rate_limit": rate_limit: {requests: 50, per: 1s}`},
	{words: "register outputs output setvariable", level: levelCall, write: `the result of a step is known by its name; other values are set with "vars"`},
	{words: "destination saveto writeto target load", level: levelCall, write: `write "sink": sink: {tool: postgres, auth: …, table: …}`},

	{words: "items values over foreach list data elements", level: levelLoop, word: "collection"},
	{words: "as item var name itemname loopvar", level: levelLoop, word: "element"},
	{words: "concurrent concurrency concurrencylimit maxparallel parallelism workers threads batchsize", level: levelLoop, write: `write mode: parallel and "max_concurrency"`},
	{words: "parallel async", level: levelLoop, write: `write mode: parallel`},
	{words: "continueonerror failfast", level: levelLoop, write: `the other iterations continue after a failure; "failure_budget" ends the loop early`},

	{words: "cursor cursorfield cursorcolumn defaultcursorfield replicationkey bookmark bookmarkkey bookmarkproperties field column path updatedfield partitionfield", level: levelState, word: "cursor_path"},
	{words: "startdate startdatetime startvalue start since from initial initialstate default defaultvalue initialbookmark", level: levelState, word: "initial_value"},
	{words: "lookbackwindow lookback overlap window attributionwindow delay buffer", level: levelState, word: "lag"},
	{words: "primarykey keyproperties uniquekey mergekey tablekeyproperties keys deduplicationkey", level: levelState, write: `write "key", or leave it out where the sink has one`},
	{words: "syncmode destinationsyncmode replicationmethod writedisposition mode strategy", level: levelState, write: `how rows are written is "mode" of the sink, such as mode: upsert; a step with incremental reads what is new`},
	{words: "cursordatatype cursortype datatype dtype format datetimeformat cursordatetimeformats", level: levelState, write: `write "type": time, date, integer or text`},
	{words: "oncursorvaluemissing missing onnull nulls", level: levelState, word: "on_missing"},
	{words: "roworder order sort sorted sortorder issorted", level: levelState, write: `write "row_order", such as row_order: asc`},
	{words: "startrangeclosed inclusive rangetype closed", level: levelState, write: `write "range_start": closed or open`},
	{words: "lastvaluefunc lastvaluefunction comparator", level: levelState, write: `the watermark is always the largest cursor; leave it out`},
	{words: "end endvalue enddate enddatetime rangeend until to", level: levelState, write: `there is no end: a run reads up to what the source has; leave it out`},
	{words: "step stepsize cursorgranularity granularity slice partition partitionby", level: levelState, write: `loop over what the source is read by, with "loop" in the step; each element has a state`},
	{words: "name statename statekey statepath stateid id namespace", level: levelState, word: "state"},
	{words: "synctoken deltatoken nextsynctoken deltalink changetoken", level: levelState, write: `write "token", such as token: "{{ response.next_sync_token }}"`},

	{words: "json data payload jsonbody rawbody requestbody content", level: levelCall | levelSink | levelRetry, field: "body", write: `write "body", which sends maps and lists as JSON; "form" sends form fields`},
	{words: "formdata files urlencoded", level: levelCall | levelSink, field: "form", word: "form"},
	{words: "query querystring queryparams queryparameters search", level: levelCall | levelSink | levelRetry, field: "params", word: "params"},
	{words: "verb httpmethod requestmethod", level: levelCall | levelSink | levelRetry, field: "method", word: "method"},
	{words: "uri endpoint urlbase baseurl host address link", level: levelCall | levelSink | levelRetry, field: "url", word: "url"},
	{words: "cookies cookie", level: levelCall, field: "headers", write: `write "headers": headers: {Cookie: "session=…"}`},
	{words: "contenttype accept useragent", level: levelCall, field: "headers", write: `write "headers": headers: {Content-Type: …}`},
	{words: "allowredirects redirect followredirect maxredirects", level: levelCall, field: "follow_redirects", word: "follow_redirects"},
	{words: "sql query command stmt", level: levelCall | levelSink, field: "statement", word: "statement"},
	{words: "primarykey uniquekey conflictkey keycolumns mergekey keyproperties dedupkey deduplicationkey", level: levelCall | levelSink, field: "key", write: `write "key" with mode: upsert`},
	{words: "onconflict conflictaction onduplicate insertignore ignoreduplicates", level: levelCall | levelSink, field: "mode", write: `write mode: insert_or_ignore to keep the rows that are there, or mode: upsert with "key" to replace them`},
	{words: "dedup dedupe deduplicate upsert merge append overwrite replace truncate truncatetable fullrefresh emptyfirst", level: levelCall | levelSink, field: "key", write: `write "mode": insert appends, upsert with "key" merges, replace takes the place of all rows`},
	{words: "dedupsort sequencekey versioncolumn sequence orderby sortkey cursorfield", level: levelSink, field: "sequence_by", write: `write "sequence_by" with mode: upsert`},
	{words: "deletedcolumn softdelete isdeleted deleteflag deletecolumn tombstone deletewhen harddeletes", level: levelCall | levelSink, field: "hard_delete", write: `write "hard_delete" with the column that marks deleted rows, and mode: upsert`},
	{words: "deletenotread deleteunread deleteunmatched deletestale deleteorphans deleteabsent removemissing prune whennotmatchedbysource invalidateharddeletes mirror", level: levelCall | levelSink, field: "delete_missing", write: `write "delete_missing": true with mode: upsert and "key"`},
	{words: "overwritewhere partitionoverwrite replaceusing replacerange partitionoverwritemode deletewhere incrementalpredicates", level: levelCall | levelSink, field: "replace_where", write: `write "replace_where" with mode: replace: replace_where: {column: day, from: "2024-01-01", to: "2024-01-02"}`},
	{words: "deletethreshold maxdeletes deletelimit maxdeleteratio", level: levelCall | levelSink, field: "max_delete", write: `write "max_delete", a share of the table such as 0.1`},
	{words: "onschemachange schemaevolution schemaevolutionmode schemachange schemadrift mergeschema evolve autocreate createtable", level: levelCall | levelSink, field: "schema_contract", write: `write "schema_contract", such as schema_contract: evolve`},
	{words: "columntypes datatypes dtypes dtype types schemahints columnoptions", level: levelCall | levelSink, field: "columns", write: `write "columns" with the type of each: columns: {updated_at: timestamptz}`},
	{words: "rejects rejecttable rejectedtable errortable deadlettertable badrows badfile quarantine invalidrows", level: levelCall | levelSink, field: "rejected", write: `write "rejected" with the table for them: rejected: {table: orders_rejected, max: 100}`},
	{words: "tablename into schema", level: levelCall | levelSink, field: "table", write: `write "table", with the schema before it: public.orders`},
	{words: "parameters params values bind", level: levelCall | levelSink, field: "statement", write: `values are in the statement as templates, which are bound: WHERE id = {{ id }}`},
	{words: "writedisposition ifexists loadtype loadmethod syncmode destinationsyncmode incrementalstrategy materialized", level: levelCall | levelSink, field: "mode", write: `write "mode", such as mode: upsert with "key"`},
	{words: "filename file filepath output", level: levelCall | levelSink, field: "path", word: "path"},
	{words: "script source pythoncallable callable function", level: levelCall | levelSink, field: "code", write: `write "code" with def main(…)`},
	{words: "delimiter sep separator quote quotechar header", level: levelCall, field: "csv", write: `write "csv": csv: {delimiter: ";"}`},
	{words: "charset codepage characterset fileencoding", level: levelCall, field: "encoding", word: "encoding"},
	{words: "decompress compressed uncompress unzip gunzip gzip", level: levelCall, field: "compression", write: `write "compression", which is gzip, zstd or none`},
	{words: "responseformat responsetype filetype fileformat parse parser decoder", level: levelCall, field: "format", write: `write "format", which is json, jsonl, csv or text`},
	{words: "steps tasks", level: levelCall, field: "workflow", write: `write "workflow", the list of its steps`},
}

// foreignTools are tools of other systems.
var foreignTools = []foreignWord{
	{words: "bash shell sh script command run cmd powershell docker container exec", write: `programs are run by the worker's python: tool: python, with def main(…) in "code"`},
	{words: "javascript js node code function typescript lambda", write: `write tool: python, with def main(…) in "code"`},
	{words: "requests request rest restapi api curl webrequest graphql fetch httprequest httpoperator simplehttpoperator url https", write: `write tool: http`},
	{words: "postgresql pg psql sql db database mysql jdbc query postgresoperator redshift", write: `write tool: postgres or tool: sqlite, with "statement" or "table"`},
	{words: "csv json jsonl s3 local filesystem disk", write: `write tool: file`},
	{words: "subflow subworkflow flow childworkflow executeworkflow dag triggerdagrun playbooks", write: `write tool: playbook`},
	{words: "if switch branch router branchpythonoperator condition", write: `leave the tool out: a step without one only routes, by "next"`},
	{words: "sleep wait delay pause timer", write: `write "delay" in a policy of "retry", or metadata.schedule for times`},
	{words: "foreach loop map", write: `write the tool of each iteration, and beside it "loop"`},
	{words: "slack email smtp teams", write: `write tool: http with the address of its webhook; "on_failure" and "notify" send such messages for a run`},
}

// foreignNames are names that expressions of other systems have.
var foreignNames = []foreignWord{
	{words: "secrets secret env vault environ credentials", write: `credentials stay with the worker: name a connection with auth: NAME, which puts them into the request`},
	{words: "ds dsnodash executiondate logicaldate dataintervalstart dataintervalend today", write: `the time of the run is run.started_at, of a scheduled one run.scheduled_at, and now() the time of the attempt`},
	{words: "outputs output ti taskinstance tasks task nodes node needs jobs", write: `the result of a step is known by the step's name`},
	{words: "inputs input params parameters variables var config context github flow trigger dagrun", write: `inputs are the keys of workload: workload.name, or name alone`},
	{words: "bookmark bookmarks watermark lastvalue cursorvalue cursor streamstate checkpoint lastsync lastrun lastupdated", write: `what a step keeps between runs is incremental.value, in a step with "incremental"`},
	{words: "loop forloop iteration", write: `it is _loop: _loop.index from 0, _loop.count from 1, _loop.size`},
	{words: "taskrun each current matrix", write: `the element of a loop has the name that "element" gives it`},
	{words: "retry attempts retrycount", write: `it is _retry: _retry.attempt, _retry.page`},
	{words: "body json statuscode headers", write: `the body of an answer is response; status and headers are this.meta.status and this.meta.headers, after a failure error.status and error.headers`},
	{words: "exception err exc failure", write: `it is error: error.kind, error.status, error.message`},
}

// foreignMembers are members that words of the language have elsewhere.
var foreignMembers = map[string][]foreignWord{
	"error": {
		{words: "code statuscode httpstatus", write: "error.status"},
		{words: "msg text reason detail description", write: "error.message"},
		{words: "response data content json", write: "error.body"},
		{words: "name errortype", write: "error.kind"},
	},
	"this": {
		{words: "statuscode code", write: "this.meta.status"},
		{words: "headers", write: "this.meta.headers"},
		{words: "body json content response result", write: "this.data"},
	},
	"_loop": {
		{words: "index0 i position", write: "_loop.index"},
		{words: "index1 number", write: "_loop.count"},
		{words: "length total revindex", write: "_loop.size"},
	},
	"_retry": {
		{words: "pagenumber offset iteration", write: "_retry.page"},
		{words: "number try retry retries", write: "_retry.attempt"},
		{words: "total", write: "_retry.count"},
	},
	IncrementalWord: {
		{words: "startvalue start initialvalue since from last lastvalue cursor bookmark lower", write: "incremental.value"},
		{words: "high max end maximum upper", write: "incremental.watermark"},
	},
	"run": {
		{words: "date start time started created", write: "run.started_at"},
		{words: "runid executionid", write: "run.id"},
		{words: "name flow", write: "run.playbook"},
	},
}

// elementNames are what other systems call the element of a loop.
const elementNames = "item element each taskrun matrix elem"

// plainWord is a word without what systems differ in: case, "-" and "_".
func plainWord(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(name))
}

// foreignIn finds a word in a table; spec is the tool's, nil for none.
func foreignIn(table []foreignWord, name string, at level, spec *ToolSpec) foreignWord {
	plain := plainWord(name)
	for _, one := range table {
		if one.level != 0 && one.level&at == 0 || !slices.Contains(strings.Fields(one.words), plain) {
			continue
		}
		if one.field != "" {
			if spec == nil {
				continue
			}
			if _, ok := spec.field(one.field); !ok {
				continue
			}
		}
		return one
	}
	return foreignWord{}
}

// foreignKey is the foreign word that a key is, zero where it is none.
// Fields of the tool come before words of the language.
func foreignKey(name string, s *section, spec *ToolSpec) foreignWord {
	at := levels[s.name]
	if spec != nil {
		fields := slices.DeleteFunc(slices.Clone(foreignWords), func(w foreignWord) bool { return w.field == "" })
		if found := foreignIn(fields, name, at, spec); found.text() != "" {
			return found
		}
	}
	return foreignIn(foreignWords, name, at, spec)
}

// elsewhere are the places of sections whose words are often written at another
// level, the likeliest first. The braces of each are around the word.
var elsewhere = []struct{ section, place, shown string }{
	{"then", "under then in a policy of retry", "retry: [{when: …, then: {%: …}}]"},
	{"next_call", "under next_call", "then: {next_call: {%: …}}"},
	{"collect", "under collect in a policy of retry", "then: {next_call: {…}, collect: {%: …}}"},
	{"retry policy", "in a policy of retry", "retry: [{%: …}]"},
	{"loop", "under loop", "loop: {%: …}"},
	{"step", "in a step, beside tool", ""},
	{"metadata", "under metadata", "metadata: {%: …}"},
	{"schedule", "under metadata.schedule", "metadata: {schedule: {%: …}}"},
	{"playbook", "at the top of the file", ""},
	{"rate_limit", "under rate_limit", "rate_limit: {%: …}"},
	{"incremental", "under incremental, in a step", "incremental: {%: …}"},
	{"failure_budget", "under failure_budget", "loop: {failure_budget: {%: …}}"},
	{"thresholds", "under thresholds", "loop: {thresholds: {%: …}}"},
}

// shared are words that many sections have, so that one that is unknown here says
// nothing about where it belongs.
var shared = []string{"tool", "args", "auth", "step", "name", "key", "when", "kind", "start", "end", "result", "offset", "per", "path", "shared", "sink", "state", "token", "type"}

// otherLevel finds a word of another section: as it is written, or with near one
// that it resembles.
func otherLevel(name string, here *section, all []*section, near bool) (hint, bool) {
	if levels[here.name] == 0 {
		return hint{}, false
	}
	for _, one := range elsewhere {
		if one.section == here.name || one.section == "step" && here.name == "workbook entry" ||
			one.section == "next_call" && levels[here.name] != levelRetry {
			continue // the words of next_call are fields of tools as well
		}
		i := slices.IndexFunc(all, func(s *section) bool { return s.name == one.section })
		if i < 0 {
			continue
		}
		if word := wordOf(all[i], name, near); word != "" {
			if here.below == all[i] {
				return misplaced(name, word, "under "+one.section, one.section+": {%: …}"), true
			}
			return misplaced(name, word, one.place, one.shown), true
		}
	}
	return hint{}, false
}

// wordOf is the word of a section that a name is, or with near resembles.
func wordOf(s *section, name string, near bool) string {
	const leastLetters = 5 // shorter words resemble too many
	words := lists.Filter(s.names(), func(word string) bool { return !slices.Contains(shared, word) && (!near || len(word) >= leastLetters) })
	switch {
	case !near && slices.Contains(words, name):
		return name
	case near && len(name) >= leastLetters:
		return expression.Suggest(name, words)
	}
	return ""
}

func misplaced(name, word, place, shown string) hint {
	found := says("; it belongs " + place)
	if word != name {
		found = meant(word)
		found.text += " It belongs " + place
	}
	if shown != "" {
		found.text += ": " + strings.ReplaceAll(shown, "%", word)
	}
	return found
}

// foreignName says what to write for a name of another system at a site.
func (c *checker) foreignName(at site, name string) string {
	if slices.Contains(strings.Fields(elementNames), plainWord(name)) && len(c.elements(at)) > 0 {
		return "; the element of this loop is " + quote(c.elements(at)[0])
	}
	if slices.Contains(errorTexts, name) && at.spot&atAfter != 0 {
		return "; a text needs quotes: '" + name + "'"
	}
	if write := foreignIn(foreignNames, name, 0, nil).text(); write != "" {
		return "; " + write
	}
	return ""
}

// errorTexts are texts that error.kind and error.class are compared with.
var errorTexts = slices.Concat(errorKinds, []string{
	"response", "sink", "incremental", "payload_too_large", "repeat", "cancelled", "expression",
}, errorClasses)

// meant reports whether a field that the tool does not have stands for one that it
// has, so that one message is enough.
func (a *Action) meant(spec ToolSpec, s *section, name string) bool {
	return slices.ContainsFunc(a.Fields, func(entry *Entry) bool {
		if _, known := spec.field(entry.Key); known {
			return false
		}
		return foreignKey(entry.Key, s, &spec).names(name) || expression.Suggest(entry.Key, []string{name}) != ""
	})
}
