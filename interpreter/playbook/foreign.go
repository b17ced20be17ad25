package playbook

import (
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// level is a kind of place of a word, as the tables of foreign words distinguish them.
type level uint8

const (
	levelPlaybook level = 1 << iota
	levelMetadata
	levelCall // a step, an entry of the workbook, and the map under tool
	levelRetry
	levelLoop
	levelSink
	levelRoute
	levelState
)

// levels are the levels of sections.
var levels = map[string]level{
	"playbook": levelPlaybook, "metadata": levelMetadata,
	"step": levelCall, "workbook entry": levelCall, "tool": levelCall, "source": levelCall,
	"retry policy": levelRetry, "then": levelRetry, "next_call": levelRetry, "collect": levelRetry,
	"loop": levelLoop, "sink": levelSink, "next entry": levelRoute, "next target": levelRoute,
	"incremental": levelState,
}

// ForeignWord is the replacement for words of other systems: GitHub Actions, Airflow, Kestra, n8n, Airbyte, dlt,
// Singer, and libraries such as requests. Words are compared without regard to case, "-" and "_".
type ForeignWord struct {
	Words string // separated by spaces
	level level
	// field is the tool's field that the words stand for. For a tool without it, the words have another meaning, or
	// none.
	field string
	// word is the replacement to write, or else Write says what to do; both are "" for unknown words.
	word, Write string
}

// Text returns what to write, "" for an unknown word.
func (w ForeignWord) Text() string {
	if w.word != "" {
		return "write " + QuoteWord(w.word)
	}
	return w.Write
}

// namesKey reports whether the replacement mentions a key.
func (w ForeignWord) namesKey(key string) bool { return strings.Contains(w.Text(), QuoteWord(key)) }

// retryPolicy is an example of a policy for failures.
const retryPolicy = `retry: [{when: error is defined, then: {max_attempts: 4, initial_delay: 5s}}]`

const (
	nextPage       = `pages are policies of "retry": retry: [{when: response.next, then: {next_call: {params: {…}}, collect: {strategy: append}}}]`
	dependency     = `the previous step sets the order, with "next" and this step's name`
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

// foreignWords has the words of other systems. The first entry for a level counts.
var foreignWords = []ForeignWord{
	{Words: "jobs tasks nodes steps stages states activities dag pipeline", level: levelPlaybook, Write: listOfSteps},
	{Words: "on triggers trigger", level: levelPlaybook, Write: `write metadata: {triggers: […]} for deliveries that start a run, metadata: {schedule: {…}} for times`},
	{Words: "schedule scheduleinterval cron timetable crontab", level: levelPlaybook | levelCall, Write: times},
	{Words: "env inputs input variables parameters params vars defaults", level: levelPlaybook, Write: `inputs and constants are "workload"`},
	{Words: "outputs outputvalues return", level: levelPlaybook, word: "output"},
	{Words: "errors onerror catch onfailurecallback", level: levelPlaybook, Write: `write "on_failure", a notice once the run has failed`},
	{Words: "onsuccesscallback", level: levelPlaybook | levelCall, word: "on_success"},
	{Words: "name id dagid", level: levelPlaybook, Write: `write metadata: {name: …}`},
	{Words: "tags", level: levelPlaybook | levelMetadata, Write: `write metadata: {labels: {…}}`},
	{Words: "version specversion", level: levelPlaybook, Write: `write apiVersion: ` + Version},
	{Words: "executiontimeout dagruntimeout timeoutminutes timeoutseconds", level: levelPlaybook, Write: `write "timeout", such as timeout: 2h`},
	{Words: "maxactiveruns concurrencylimit", level: levelPlaybook, Write: `write concurrency: {key: …, limit: 1}`},

	{Words: "name id taskid stepid nodename activity", level: levelCall, Write: stepName},
	{Words: "description comment notes doc", level: levelCall, word: "desc"},
	{Words: "needs dependson upstream requires after waitfor", level: levelCall, Write: dependency},
	{Words: "goto transition transitions connections nextstep", level: levelCall, Write: `write "next" with the name of the step that follows`},
	{Words: "if condition runif only unless", level: levelCall, Write: `the previous step decides whether a step runs: next: [{when: "{{ … }}", then: load}, {else: …}]`},
	{Words: "triggerrule", level: levelCall, Write: `write join: all to wait for all branches; after a failure continue with next: [{when: error is defined, then: …}], or send "on_failure"`},
	{Words: "onerror catch errors rescue except onfailurecallback onexception", level: levelCall, Write: failureWords},
	{Words: "continueonerror continueonfail allowfailure allowfailed ignoreerrors ignorefailure", level: levelCall | levelRetry, Write: continueAnyway},
	{Words: "retries retrytimes maxretries maxtries numretries retrycount attempts retrypolicy", level: levelCall, Write: `write "retry" with max_attempts, which counts the first attempt too: ` + retryPolicy},
	{Words: "retries maxretries maxtries attempts", level: levelRetry, Write: `write "max_attempts", which counts the first attempt too`},
	{Words: "retrydelay retryinterval waitbetweentries backoff retrybackoff", level: levelCall, Write: `write "retry" with initial_delay: ` + retryPolicy},
	{Words: "interval retrydelay wait sleep waitbetweentries retryinterval", level: levelRetry, Write: `write "delay" for a fixed delay, "initial_delay" for one that grows`},
	{Words: "backofffactor multiplier backoffcoefficient exponentialbase", level: levelRetry, word: "backoff_multiplier"},
	{Words: "maxinterval maximuminterval", level: levelRetry, word: "max_delay"},
	{Words: "statusforcelist statuscodes retryon httpcodes onstatus", level: levelCall | levelRetry, Write: `the condition selects failures: when: error.status in [500, 502, 503]`},
	{Words: "raise throw error abort failif failwhen errormessage", level: levelRetry, Write: `write "fail" with the message, in a policy whose when names the answer`},
	{Words: "if condition on matches", level: levelRetry | levelRoute, word: "when"},
	{Words: "goto target to", level: levelRoute, Write: `write "step" or "then" with the name of the step`},
	{Words: "timeoutminutes timeoutseconds timeoutms executiontimeout maxtime readtimeout", level: levelCall, Write: `write "timeout", such as timeout: 5m`},
	{Words: "strategy matrix foreach withitems loopover iterate map each expand split", level: levelCall, Write: stepLoop},
	{Words: "uses operator plugin nodetype action component requester source", level: levelCall, Write: stepTool},
	{Words: "run script bash shell exec inline", level: levelCall, Write: programs},
	{Words: "with arguments opargs opkwargs kwargs parameters inputs input env", level: levelCall, Write: `values for the tool are "args", and the tool's own fields belong in the step`},
	{Words: "credentials credential token authentication authenticator connid httpconnid connectionid connectionstring secret secrets apikey bearer basicauth username password", level: levelCall | levelSink, Write: connection},
	{Words: "paginator pagination paginate paging pages nextpage cursor", level: levelCall | levelRetry, Write: nextPage},
	{Words: "recordselector extractor fieldpath dataselector responsefilter datapath recordpath resultpath", level: levelCall, Write: `write the path of the rows as "rows", such as rows: data.items, or items[*].node of each element`},
	{Words: "recordfilter rowfilter", level: levelCall, Write: `write the condition as "where", such as where: row.status == 'open'`},
	{Words: "recordselector extractor fieldpath dataselector responsefilter datapath recordpath resultpath", level: levelRetry, Write: `write the path of the rows where pages are collected: retry: [{when: …, then: {next_call: {…}, collect: {path: orders}}}]`},
	{Words: "cursorfield cursorcolumn cursorpath replicationkey replicationmethod bookmark bookmarkkey bookmarkproperties incrementalsync incrementalcursor watermark highwatermark lookbackwindow lookback startdate startdatetime stateful checkpoint streamstate defaultcursorfield sourcedefinedcursor", level: levelCall, Write: stateOfStep},
	{Words: "ratelimiter throttle throttling limiter", level: levelCall, Write: `write "rate_limit": rate_limit: {requests: 50, per: 1s}`},
	{Words: "register outputs output setvariable", level: levelCall, Write: `the result of a step is known by its name; other values are set with "vars"`},
	{Words: "destination saveto writeto target load", level: levelCall, Write: `write "sink": sink: {tool: postgres, auth: …, table: …}`},

	{Words: "items values over foreach list data elements", level: levelLoop, word: "collection"},
	{Words: "as item var name itemname loopvar", level: levelLoop, word: "element"},
	{Words: "concurrent concurrency concurrencylimit maxparallel parallelism workers threads batchsize", level: levelLoop, Write: `write mode: parallel and "max_concurrency"`},
	{Words: "parallel async", level: levelLoop, Write: `write mode: parallel`},
	{Words: "continueonerror failfast", level: levelLoop, Write: `the other iterations continue after a failure; "failure_budget" ends the loop early`},

	{Words: "cursor cursorfield cursorcolumn defaultcursorfield replicationkey bookmark bookmarkkey bookmarkproperties field column path updatedfield partitionfield", level: levelState, word: "cursor_path"},
	{Words: "startdate startdatetime startvalue start since from initial initialstate default defaultvalue initialbookmark", level: levelState, word: "initial_value"},
	{Words: "lookbackwindow lookback overlap window attributionwindow delay buffer", level: levelState, word: "lag"},
	{Words: "primarykey keyproperties uniquekey mergekey tablekeyproperties keys deduplicationkey", level: levelState, Write: `write "key", or leave it out where the sink has one`},
	{Words: "syncmode destinationsyncmode replicationmethod writedisposition mode strategy", level: levelState, Write: `how rows are written is "mode" of the sink, such as mode: upsert; a step with incremental reads what is new`},
	{Words: "datetimeformat cursordatetimeformats timeformat dateformat layout", level: levelState, word: "format"},
	{Words: "cursordatatype cursortype datatype dtype", level: levelState, Write: `write "type": time, date, integer or text`},
	{Words: "oncursorvaluemissing missing onnull nulls", level: levelState, word: "on_missing"},
	{Words: "enddate enddatetime endvalue end to stopdate untildate", level: levelState, word: "until"},
	{Words: "cursorgranularity slice slicesize windowsize chunk", level: levelState, word: "step"},
	{Words: "roworder order sort sorted sortorder issorted", level: levelState, Write: `write "row_order", such as row_order: asc`},
	{Words: "startrangeclosed inclusive rangetype closed", level: levelState, Write: `write "range_start": closed or open`},
	{Words: "lastvaluefunc lastvaluefunction comparator", level: levelState, Write: `the watermark is always the largest cursor; remove it`},
	{Words: "end endvalue enddate enddatetime rangeend until to", level: levelState, Write: `there is no end: a run reads everything that the source has; remove it`},
	{Words: "step stepsize cursorgranularity granularity slice partition partitionby", level: levelState, Write: `loop over the parts of the source, with "loop" in the step; each element has a state`},
	{Words: "name statename statekey statepath stateid id namespace", level: levelState, word: "state"},
	{Words: "synctoken deltatoken nextsynctoken deltalink changetoken", level: levelState, Write: `write "token", such as token: "{{ response.next_sync_token }}"`},

	{Words: "json data payload jsonbody rawbody requestbody content", level: levelCall | levelSink | levelRetry, field: "body", Write: `write "body", which sends maps and lists as JSON; "form" sends form fields`},
	{Words: "formdata files urlencoded", level: levelCall | levelSink, field: "form", word: "form"},
	{Words: "query querystring queryparams queryparameters search", level: levelCall | levelSink | levelRetry, field: "params", word: "params"},
	{Words: "verb httpmethod requestmethod", level: levelCall | levelSink | levelRetry, field: "method", word: "method"},
	{Words: "uri endpoint urlbase baseurl host address link", level: levelCall | levelSink | levelRetry, field: "url", word: "url"},
	{Words: "cookies cookie", level: levelCall, field: "headers", Write: `write "headers": headers: {Cookie: "session=…"}`},
	{Words: "contenttype accept useragent", level: levelCall, field: "headers", Write: `write "headers": headers: {Content-Type: …}`},
	{Words: "allowredirects redirect followredirect maxredirects", level: levelCall, field: "follow_redirects", word: "follow_redirects"},
	{Words: "sql query command stmt", level: levelCall | levelSink, field: "statement", word: "statement"},
	{Words: "primarykey uniquekey conflictkey keycolumns mergekey keyproperties dedupkey deduplicationkey", level: levelCall | levelSink, field: "key", Write: `write "key" with mode: upsert`},
	{Words: "onconflict conflictaction onduplicate insertignore ignoreduplicates", level: levelCall | levelSink, field: "mode", Write: `write mode: insert_or_ignore to keep the rows that are there, or mode: upsert with "key" to replace them`},
	{Words: "dedup dedupe deduplicate upsert merge append overwrite replace truncate truncatetable fullrefresh emptyfirst", level: levelCall | levelSink, field: "key", Write: `write "mode": insert appends, upsert with "key" merges, replace takes the place of all rows`},
	{Words: "dedupsort sequencekey versioncolumn sequence orderby sortkey cursorfield", level: levelSink, field: "sequence_by", Write: `write "sequence_by" with mode: upsert`},
	{Words: "deletedcolumn softdelete isdeleted deleteflag deletecolumn tombstone deletewhen harddeletes", level: levelCall | levelSink, field: "hard_delete", Write: `write "hard_delete" with the column that marks deleted rows, and mode: upsert`},
	{Words: "deletenotread deleteunread deleteunmatched deletestale deleteorphans deleteabsent removemissing prune whennotmatchedbysource invalidateharddeletes mirror", level: levelCall | levelSink, field: "delete_missing", Write: `write "delete_missing": true with mode: upsert and "key"`},
	{Words: "overwritewhere partitionoverwrite replaceusing replacerange partitionoverwritemode deletewhere incrementalpredicates", level: levelCall | levelSink, field: "replace_where", Write: `write "replace_where" with mode: replace: replace_where: {column: day, from: "2024-01-01", to: "2024-01-02"}`},
	{Words: "deletethreshold maxdeletes deletelimit maxdeleteratio", level: levelCall | levelSink, field: "max_delete", Write: `write "max_delete", a share of the table such as 0.1`},
	{Words: "onschemachange schemaevolution schemaevolutionmode schemachange schemadrift mergeschema evolve autocreate createtable", level: levelCall | levelSink, field: "schema_contract", Write: `write "schema_contract", such as schema_contract: evolve`},
	{Words: "columntypes datatypes dtypes dtype types schemahints columnoptions", level: levelCall | levelSink, field: "columns", Write: `write "columns" with the type of each: columns: {updated_at: timestamptz}`},
	{Words: "rejects rejecttable rejectedtable errortable deadlettertable badrows badfile quarantine invalidrows", level: levelCall | levelSink, field: "rejected", Write: `write "rejected" with the table for them: rejected: {table: orders_rejected, max: 100}; a sink of files has path instead of table`},
	{Words: "tablename into schema", level: levelCall | levelSink, field: "table", Write: `write "table", with the schema before it: public.orders`},
	{Words: "parameters params values bind", level: levelCall | levelSink, field: "statement", Write: `values in the statement are templates, which are bound: WHERE id = {{ id }}`},
	{Words: "writedisposition ifexists loadtype loadmethod syncmode destinationsyncmode incrementalstrategy materialized", level: levelCall | levelSink, field: "mode", Write: `write "mode", such as mode: upsert with "key"`},
	{Words: "filename file filepath output", level: levelCall | levelSink, field: "path", word: "path"},
	{Words: "script source pythoncallable callable function", level: levelCall | levelSink, field: "code", Write: `write "code" with def main(…)`},
	{Words: "delimiter sep separator quote quotechar header", level: levelCall, field: "csv", Write: `write "csv": csv: {delimiter: ";"}`},
	{Words: "charset codepage characterset fileencoding", level: levelCall, field: "encoding", word: "encoding"},
	{Words: "decompress compressed uncompress unzip gunzip gzip", level: levelCall, field: "compression", Write: `write "compression", which is gzip, zstd or none`},
	{Words: "responseformat responsetype filetype fileformat parse parser decoder", level: levelCall, field: "format", Write: `write "format", which is json, jsonl, csv, xml or text`},
	{Words: "steps tasks", level: levelCall, field: "workflow", Write: `write "workflow", the list of its steps`},
}

// PlainWord returns a word without differences between systems: in lower case, without "-", "_" and ".".
func PlainWord(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(name))
}

// ForeignIn finds a word in a table; spec is that of the tool, nil for none.
func ForeignIn(table []ForeignWord, name string, at level, spec *ToolSpec) ForeignWord {
	plain := PlainWord(name)
	for _, one := range table {
		if one.level != 0 && one.level&at == 0 || !slices.Contains(strings.Fields(one.Words), plain) {
			continue
		}
		if one.field != "" {
			if spec == nil {
				continue
			}
			if _, ok := spec.Field(one.field); !ok {
				continue
			}
		}
		return one
	}
	return ForeignWord{}
}

// foreignKey finds the replacement of a key from another system; zero if there is none. Fields of the tool come
// before words of the language.
func foreignKey(name string, s *section, spec *ToolSpec) ForeignWord {
	at := levels[s.name]
	if spec != nil {
		fields := slices.DeleteFunc(slices.Clone(foreignWords), func(w ForeignWord) bool { return w.field == "" })
		if found := ForeignIn(fields, name, at, spec); found.Text() != "" {
			return found
		}
	}
	return ForeignIn(foreignWords, name, at, spec)
}

// elsewhere lists sections whose words are often written at another level, the likeliest first. shown has the
// braces around the word.
var elsewhere = []struct{ section, place, shown string }{
	{"then", "under then in a policy of retry", "retry: [{when: …, then: {%: …}}]"},
	{"next_call", "under next_call", "then: {next_call: {%: …}}"},
	{"collect", "under collect, in a step or a policy of retry", "collect: {%: …}"},
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

// shared are words of many sections, so that their use says nothing about the section that was meant.
var shared = []string{"tool", "args", "auth", "step", "name", "key", "when", "kind", "start", "end", "result", "offset", "per", "path", "shared", "sink", "state", "token", "type"}

// otherLevel finds the section that a word belongs to; near also accepts similar words.
func otherLevel(name string, here *section, all []*section, near bool) (Hint, bool) {
	if levels[here.name] == 0 {
		return Hint{}, false
	}
	for _, one := range elsewhere {
		if one.section == here.name || one.section == "step" && here.name == "workbook entry" ||
			one.section == "next_call" && levels[here.name] != levelRetry {
			continue // the words of next_call are also fields of tools
		}
		i := slices.IndexFunc(all, func(s *section) bool { return s.name == one.section })
		if i < 0 {
			continue
		}
		if word := sectionWord(all[i], name, near); word != "" {
			if here.below == all[i] {
				return misplacedHint(name, word, "under "+one.section, one.section+": {%: …}"), true
			}
			return misplacedHint(name, word, one.place, one.shown), true
		}
	}
	return Hint{}, false
}

// sectionWord returns the word of a section that equals name or, with near, resembles it.
func sectionWord(s *section, name string, near bool) string {
	const leastLetters = 5 // shorter words resemble too many
	words := lists.Filter(s.keyNames(), func(word string) bool { return !slices.Contains(shared, word) && (!near || len(word) >= leastLetters) })
	switch {
	case !near && slices.Contains(words, name):
		return name
	case near && len(name) >= leastLetters:
		return expression.Suggest(name, words)
	}
	return ""
}

func misplacedHint(name, word, place, shown string) Hint {
	found := PlainHint("; it belongs " + place)
	if word != name {
		found = DidYouMean(word)
		found.Text += " It belongs " + place
	}
	if shown != "" {
		found.Text += ": " + strings.ReplaceAll(shown, "%", word)
	}
	return found
}

// FieldHint suggests what is meant by a key that is neither a field of the tool nor a word of the section.
func FieldHint(name, of string, spec ToolSpec) Hint {
	s := sectionNamed(of)
	if known, ok := s.findKey(name, true); ok {
		return writeInstead(known.name)
	}
	if newer, ok := olderFields[name]; ok {
		if _, known := spec.Field(newer); known {
			return writeInstead(newer)
		}
	}
	if found := foreignKey(name, s, &spec); found.Text() != "" {
		return foreignHint(found)
	}
	if hint, found := otherLevel(name, s, sections, false); found {
		return hint
	}
	if near := expression.Suggest(name, append(spec.FieldNames(), s.keyNames()...)); near != "" {
		return DidYouMean(near)
	}
	if hint, found := otherLevel(name, s, sections, true); found {
		return hint
	}
	return PlainHint("; its fields are " + JoinNames(spec.FieldNames()))
}

// MeansField reports whether an unknown key of a section is another system's name for a field, or a misspelling of
// it.
func MeansField(key, of string, spec ToolSpec, field string) bool {
	return foreignKey(key, sectionNamed(of), &spec).namesKey(field) || expression.Suggest(key, []string{field}) != ""
}
