package scaffold

import (
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/internal/base/terminal"
	"reprise/internal/program/node"
	"reprise/internal/program/recording"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/yamltree"
)

// writer writes one playbook with its test.
type writer struct {
	Options

	of     *Description
	made   *Draft
	found  *finder
	paging paging
	// element is the name of the loop's element, list the key of workload that has them; "" without a loop.
	element, list string
	elements      []any
	table         string // for the rows
	loads         bool   // rows go to warehouse
	guesses       []string
}

// plan decides how the request pages, what it loops over, and what its rows are called.
func (w *writer) plan() {
	w.know()
	w.found = newFinder(w.of)
	switch w.Style {
	case "":
		w.paging = w.found.find()
		if w.paging.style == "" && w.found.isJob() {
			w.paging.style = StylePoll
		}
	case StylePoll, StyleExport, StyleWebhook:
		w.paging.style = w.Style
	default:
		if w.paging = w.found.find(); w.paging.style != w.Style {
			w.assume()
		}
	}
	w.probed()
	w.made.Style = w.paging.style
	if w.paging.guess != "" {
		w.suppose(w.paging.guess)
	}
	w.planLoop()
	segments := strings.Split(strings.Trim(w.of.Path, "/"), "/")
	last := segments[0]
	if named := slices.DeleteFunc(slices.Clone(segments), func(segment string) bool { return strings.HasPrefix(segment, "{") }); len(named) > 0 {
		last = named[len(named)-1]
	}
	if n := len(w.found.rows); n > 0 && !slices.Contains(usualRows, plain(w.found.rows[n-1])) {
		last = w.found.rows[n-1]
	}
	w.table = NameOf(strings.TrimSuffix(last, ".json"), w.made.Name)
	if w.Name == "" && w.of.Name == "" {
		w.made.Name = w.table
	}
}

// assume has the request page in the style that was asked for, by the names that this style usually has.
func (w *writer) assume() {
	usual := styleOf(w.Style)
	if w.of.Answer == nil || !w.found.hasRows {
		w.of.Answer = usual.Answer
	} else {
		w.of.Answer = &Response{Body: merge(w.of.Answer.Body, usual.Answer.Body, w.found.rows), Linked: usual.Answer.Linked}
	}
	w.of.Accepts = append(w.of.Accepts, usual.Accepts...)
	if w.Style == StyleGraphQL && w.of.Body == nil {
		w.of.Body, w.of.Method = usual.Body, "POST"
	}
	w.of.Later = nil
	w.found = newFinder(w.of)
	look := map[string]func() (paging, bool){
		StylePage: w.found.page, StyleOffset: w.found.offset, StyleCursor: w.found.mark, StyleGraphQL: w.found.graphql,
		StyleLink: func() (paging, bool) {
			if p, ok := w.found.address(); ok {
				return p, true
			}
			return w.found.linkHeader()
		},
	}[w.Style]
	w.paging, _ = look()
	w.suppose("parameters and fields have the names that are usual for this style")
}

// merge is an answer with what another one has beside its rows.
func merge(answer, more any, rows []string) any {
	if len(rows) == 0 {
		return more
	}
	merged := answer
	for key, value := range expression.MapOf(more) {
		if _, isList := value.([]any); !isList {
			merged = set(merged, []string{key}, value)
		}
	}
	return merged
}

// isJob reports whether the answer is that of a job which has not ended.
func (f *finder) isJob() bool {
	status, has := f.member([]string{"status", "state"}, func(m answerMember) bool {
		text, isText := m.value.(string)
		return isText && len(m.path) == 1 && slices.Contains(openStatuses, strings.ToLower(text))
	})
	return has && status.value != nil && !f.hasRows && f.of.Method == "GET"
}

// openStatuses are the statuses of jobs that have not ended.
var openStatuses = []string{"pending", "queued", "running", "processing", "in_progress", "started", "created", "waiting", "inprogress"}

var (
	inPath   = regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_.-]*)\}`)
	asColon  = regexp.MustCompile(`/:([A-Za-z_][A-Za-z0-9_]*)`)
	likeAnID = regexp.MustCompile(`^(\d+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[0-9a-fA-F]{24})$`)
)

// planLoop finds what of the path is filled in, and by what.
func (w *writer) planLoop() {
	w.of.Path = asColon.ReplaceAllString(w.of.Path, "/{$1}")
	if w.Each == "" {
		return
	}
	w.element = check.FreeName(w.Each)
	w.list = check.FreeName(w.element + "s")
	segments := strings.Split(w.of.Path, "/")
	place := slices.IndexFunc(segments, func(segment string) bool { return segment == "{"+w.Each+"}" })
	if place < 0 {
		place = lastIndex(segments, inPath.MatchString)
	}
	if place < 0 {
		if place = lastIndex(segments, likeAnID.MatchString); place >= 0 {
			w.elements = []any{numberOf(segments[place])}
		}
	}
	switch {
	case place >= 0:
		segments[place] = "{" + w.element + "}"
		w.of.Path = strings.Join(segments, "/")
	default:
		w.of.Params = append(without(w.of.Params, func(p Pair) bool { return p.Name == w.Each }), Pair{w.Each, node.Verbatim("{{ " + w.element + " }}")})
	}
	if w.elements == nil {
		w.elements = []any{"A"}
		w.made.Notes = append(w.made.Notes, "workload."+w.list+" holds a made-up element: replace it, or pass your own with --set "+w.list+"='[…]'")
	}
}

func lastIndex(list []string, fits func(string) bool) int {
	for i := len(list) - 1; i >= 0; i-- {
		if fits(list[i]) {
			return i
		}
	}
	return -1
}

// write writes both files.
func (w *writer) write() {
	top := node.Map()
	node.Add(top, "apiVersion", recording.Text(playbook.Version))
	node.Add(top, "kind", recording.Text("Playbook"))
	head := node.Flow("name", recording.Text(w.made.Name))
	if w.of.Desc != "" {
		node.Add(head, "description", recording.Text(node.Escaped(w.of.Desc)))
		head.Style = 0
	}
	node.Add(top, "metadata", head)
	steps := w.steps()
	node.Add(top, "workload", w.workload())
	node.Add(top, "workflow", steps)
	node.Add(top, "output", w.output())
	top.HeadComment = w.comment()
	w.made.Playbook = []byte(yamltree.Encode(top))
	w.made.Test = w.test()
	if login := w.of.login; login != nil {
		w.made.Connections = append(w.made.Connections, NewConnection(login.name, login.form))
	}
	if w.loads {
		w.made.Connections = append(w.made.Connections, NewConnection(warehouse, "postgres://USER:PASSWORD@HOST/DATABASE"))
	}
}

// warehouse is the connection of the database that rows go to.
const warehouse = "warehouse"

// comment says what the file needs.
func (w *writer) comment() string {
	lines := []string{terminal.OneLine(w.made.Name + ": " + w.of.Method + " " + w.of.Path)}
	if login := w.of.login; login != nil {
		lines = append(lines, "Connection "+login.name+": set "+NewConnection(login.name, "").Variable)
	}
	return strings.Join(lines, "\n")
}

// workload has what differs between runs.
func (w *writer) workload() *yaml.Node {
	workload := node.Map()
	if !w.isBelow() {
		node.Add(workload, "api", recording.Text(w.of.Base))
	}
	for _, name := range w.places() {
		node.Add(workload, name, recording.Text("1"))
	}
	for _, name := range w.of.given {
		if !slices.Contains(w.places(), name) {
			node.Add(workload, name, recording.Text(""))
		}
	}
	if w.paging.sized {
		node.Add(workload, pageSize, recording.Node(w.pageSize(), true))
	}
	if w.element != "" {
		node.Add(workload, w.list, recording.Node(w.elements, true))
	}
	return workload
}

// pageSize is the key of workload for the number of rows of a page.
const pageSize = "page_size"

func (w *writer) pageSize() int {
	const usual = 100
	_, value := w.found.param([]string{plain(w.found.size)})
	if n, isNumber := value.(int); isNumber && n > 0 {
		return n
	}
	return usual
}

// places are the names in the path that workload has.
func (w *writer) places() (names []string) {
	for _, match := range inPath.FindAllStringSubmatch(w.of.Path, -1) {
		if name := w.placeName(match[1]); match[1] != w.element && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// placeName is the key of workload for a place of the path.
func (w *writer) placeName(name string) string { return check.FreeName(NameOf(name, "id")) }

// url is the address as a template.
func (w *writer) url() string {
	path, begin := node.Escaped(w.of.Path), "{{ api }}"
	if w.isBelow() {
		path, begin = strings.TrimPrefix(path, "/"), ""
	}
	return begin + inPath.ReplaceAllStringFunc(path, func(place string) string {
		name := strings.Trim(place, "{}")
		if name == w.element {
			return "{{ " + name + " }}"
		}
		return "{{ " + w.placeName(name) + " }}"
	})
}

// isBelow reports whether the address is below the path of its connection.
func (w *writer) isBelow() bool { return w.of.login != nil && w.of.login.below }

// steps are the steps of the playbook.
func (w *writer) steps() *yaml.Node {
	switch w.paging.style {
	case StyleExport:
		return w.exportSteps()
	case StyleWebhook:
		return w.webhookSteps()
	}
	step := node.Map()
	node.Add(step, "step", recording.Text(stepName))
	w.request(step)
	if w.element != "" {
		w.loop(step)
	}
	node.Add(step, "retry", w.policies())
	if sink := w.sink(); sink != nil && w.element == "" {
		node.Add(step, "sink", sink)
	}
	return &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{step}}
}

// stepName is the name of the step that fetches.
const stepName = "fetch"

// request adds the fields of the request to a step.
func (w *writer) request(step *yaml.Node) {
	node.Add(step, "tool", recording.Text("http"))
	if w.of.login != nil {
		node.Add(step, "auth", recording.Text(w.of.login.name))
	}
	if w.of.Method != "GET" {
		node.Add(step, "method", recording.Text(w.of.Method))
	}
	node.Add(step, "url", node.Quoted(w.url()))
	params := slices.Clone(w.of.Params)
	if name, usual := w.found.param(sizeParams); w.paging.when != "" && usual != nil && !w.found.inBody(name) {
		params = withPair(params, Pair{name, usual}, false) // large pages are fewer requests
	}
	if w.paging.sized {
		params = withPair(params, Pair{w.found.size, node.Verbatim("{{ " + pageSize + " }}")}, w.found.inBody(w.found.size))
	}
	for _, part := range []struct {
		name  string
		pairs []Pair
	}{{"params", params}, {"headers", w.of.Headers}, {"form", w.of.Form}} {
		if len(part.pairs) == 0 {
			continue
		}
		fields := node.Map()
		for _, pair := range part.pairs {
			if pair.Value != nil && yamltree.IndexOf(fields, pair.Name) < 0 && !strings.Contains(pair.Name, "{{") {
				node.Add(fields, pair.Name, node.Value(pair.Value))
			}
		}
		if len(fields.Content) > 0 {
			fields.Style = node.FlowIfShort(part.pairs)
			node.Add(step, part.name, fields)
		}
	}
	switch {
	case w.of.Body != nil:
		node.Add(step, "body", node.Value(w.body()))
	case w.of.Text != "":
		node.Add(step, "body", recording.Text(node.Escaped(w.of.Text)))
	}
}

// body is the body of the request, with the number of rows of a page where that is in it.
func (w *writer) body() any {
	if w.paging.sized && w.found.inBody(w.found.size) {
		return set(w.of.Body, []string{w.found.size}, node.Verbatim("{{ "+pageSize+" }}"))
	}
	return w.of.Body
}

// withPair replaces or adds a pair, unless it is elsewhere.
func withPair(pairs []Pair, pair Pair, elsewhere bool) []Pair {
	for i := range pairs {
		if pairs[i].Name == pair.Name {
			pairs[i] = pair
			return pairs
		}
	}
	if elsewhere {
		return pairs
	}
	return append(pairs, pair)
}

func (w *writer) loop(step *yaml.Node) {
	loop := node.Map()
	node.Add(loop, "in", node.Quoted("{{ "+w.list+" }}"))
	node.Add(loop, "element", recording.Text(w.element))
	node.Add(loop, "mode", recording.Text("parallel"))
	node.Add(loop, "max_concurrency", recording.Node(5, true))
	if sink := w.sink(); sink != nil {
		node.Add(loop, "sink", sink)
	}
	node.Add(step, "loop", loop)
}

// policies are the policies of the step: what failed and may work later, and what there is more of.
func (w *writer) policies() *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	if _, isOK := expression.MapOf(w.found.answer)["ok"].(bool); isOK {
		list.Content = append(list.Content, policy("The response reports an error.", "response.ok == false", node.Flow("fail", node.Quoted("{{ response.error }}"))))
	}
	if w.paging.style == StyleGraphQL {
		list.Content = append(list.Content, policy("The response reports an error.", "response.errors", node.Flow("fail", node.Quoted("{{ response.errors[0].message }}"))))
	}
	list.Content = append(list.Content, w.failurePolicy())
	if w.paging.style == StylePoll {
		list.Content = append(list.Content, pollPolicy("response.status"))
	}
	if w.paging.when == "" {
		return list
	}
	then := node.Map()
	node.Add(then, "max_attempts", recording.Node(defaultPages, true))
	next := node.Map()
	switch {
	case w.paging.url != "":
		node.Add(next, "url", node.Quoted(w.paging.url))
	case w.paging.body != nil:
		node.Add(next, "body", node.Value(w.paging.body))
	default:
		params := node.Map()
		for _, pair := range w.paging.params {
			node.Add(params, pair.Name, node.Value(pair.Value))
		}
		params.Style = yaml.FlowStyle
		node.Add(next, "params", params)
	}
	next.Style = yaml.FlowStyle
	node.Add(then, "next_call", next)
	switch {
	case len(w.found.rows) == 0:
		node.Add(then, "collect", node.Flow("strategy", recording.Text("append")))
	case collectable(w.found.rows):
		node.Add(then, "collect", node.Flow("path", recording.Text(strings.Join(w.found.rows, "."))))
	}
	comment := "There is more: request the next page."
	for _, guess := range w.guesses {
		comment += "\nA guess: " + guess + "."
	}
	list.Content = append(list.Content, policy(comment, w.paging.when, then))
	return list
}

// defaultPages is how many pages a playbook requests at most.
const defaultPages = 1000

// failurePolicy tries again what may work later.
func (w *writer) failurePolicy() *yaml.Node {
	return policy("Retry a failure that may pass; after a 429, wait as long as the server says.", "error.class in ['retryable', 'rate_limited']",
		node.Flow("max_attempts", recording.Node(5, true)))
}

// pollPolicy asks again until a job has ended.
func pollPolicy(status string) *yaml.Node {
	open := "['" + strings.Join(openStatuses[:len(openStatuses)-1], "', '") + "']"
	return policy("The job is still running: check again, for up to an hour.", "lower("+status+") in "+open,
		node.Flow("max_attempts", recording.Node(120, true), "delay", recording.Text("30s")))
}

func policy(comment, when string, then *yaml.Node) *yaml.Node {
	n := node.Map()
	node.Add(n, "when", node.Quoted("{{ "+when+" }}"))
	node.Add(n, "then", then)
	n.HeadComment = comment
	return n
}

// collects reports whether the result of the call is the list of rows.
func (w *writer) collects() bool {
	return w.paging.when != "" && collectable(w.found.rows)
}

// sink is what writes the rows away, nil for none.
func (w *writer) sink() *yaml.Node {
	if w.Sink == SinkNone {
		return nil
	}
	sink := node.Map()
	switch w.Sink {
	case SinkFile:
		path := w.made.Name + ".jsonl"
		if w.element != "" {
			path = w.made.Name + "/{{ " + w.element + " }}.jsonl"
		}
		node.Add(sink, "tool", recording.Text("file"))
		node.Add(sink, "path", node.Quoted(path))
		node.Add(sink, "mode", recording.Text("overwrite"))
	default:
		w.tableSink(sink)
	}
	if args := w.sinkArgs(); args != "" {
		node.Add(sink, "args", node.Quoted(args))
	}
	return sink
}

func (w *writer) tableSink(sink *yaml.Node) {
	node.Add(sink, "tool", recording.Text(w.Sink))
	if w.Sink == SinkSQLite {
		node.Add(sink, "path", recording.Text(w.made.Name+".db"))
	} else {
		node.Add(sink, "auth", recording.Text(warehouse))
		w.loads = true
	}
	node.Add(sink, "table", recording.Text(w.table))
	if key := w.key(); key != "" {
		node.Add(sink, "mode", recording.Text("upsert"))
		node.Add(sink, "key", recording.Text(key))
	}
	node.Add(sink, "schema_contract", recording.Text("evolve"))
}

// key is the column that distinguishes the rows of a sink, "" where that is not known. Without
// it another run writes the rows twice.
func (w *writer) key() string {
	switch {
	case w.found.hasRows:
		return keyOf(at(w.found.answer, w.found.rows))
	case w.paging.style == "" && w.Each != "": // the answer about an element is a row
		return keyOf([]any{w.found.answer})
	}
	return ""
}

// sinkArgs are the rows where the result is something else; "" where it is them.
func (w *writer) sinkArgs() string {
	rows := "result"
	if !w.collects() && len(w.found.rows) > 0 {
		rows = expressionOf(rows, w.found.rows)
	}
	first := any(map[string]any{})
	if list, _ := at(w.found.answer, w.found.rows).([]any); w.found.hasRows && len(list) > 0 {
		first = list[0]
	}
	if _, isMap := first.(map[string]any); !isMap && first != nil && w.Sink != SinkFile {
		return "{{ map(" + rows + ", {'value': #}) }}"
	}
	if rows == "result" {
		return ""
	}
	return "{{ " + rows + " }}"
}

// output is what a run gives.
func (w *writer) output() *yaml.Node {
	switch {
	case w.paging.style == StyleExport:
		return node.Flow("rows", node.Quoted("{{ len("+downloadStep+") }}"))
	case w.paging.style == StyleWebhook:
		return node.Quoted("{{ start }}")
	case w.element != "":
		return node.Flow("done", node.Quoted("{{ "+stepName+".stats.success }}"), "of", node.Quoted("{{ "+stepName+".stats.total }}"))
	case w.collects():
		return node.Flow("rows", node.Quoted("{{ len("+stepName+") }}"))
	case w.found.hasRows:
		return node.Flow("rows", node.Quoted("{{ len("+expressionOf(stepName, w.found.rows)+") }}"))
	case w.paging.style == StylePoll:
		return node.Flow("status", node.Quoted("{{ "+stepName+".status }}"))
	}
	return node.Flow("status", node.Quoted("{{ steps."+stepName+".meta.status }}"))
}
