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

// writer generates one playbook and its test.
type writer struct {
	Options

	of     *Description
	made   *Draft
	found  *finder
	paging paging
	// element is the name of the loop's element, and list the workload key of the elements; "" without a loop.
	element, list string
	elements      []any
	table         string // for the rows
	loads         bool   // rows go to warehouse
	guesses       []string
}

// planCall decides how the request paginates, what it loops over, and what its rows are called.
func (w *writer) planCall() {
	w.applyKnownService()
	w.found = newFinder(w.of)
	switch w.Style {
	case "":
		w.paging = w.found.findPaging()
		if w.paging.style == "" && w.found.isJob() {
			w.paging.style = StylePoll
		}
	case StylePoll, StyleExport, StyleWebhook:
		w.paging.style = w.Style
	default:
		if w.paging = w.found.findPaging(); w.paging.style != w.Style {
			w.assumeStyle()
		}
	}
	w.noteProbe()
	w.made.Style = w.paging.style
	if w.paging.guess != "" {
		w.noteGuess(w.paging.guess)
	}
	w.planLoop()
	segments := strings.Split(strings.Trim(w.of.Path, "/"), "/")
	last := segments[0]
	if named := slices.DeleteFunc(slices.Clone(segments), func(segment string) bool { return strings.HasPrefix(segment, "{") }); len(named) > 0 {
		last = named[len(named)-1]
	}
	if n := len(w.found.rows); n > 0 && !slices.Contains(usualRows, plainName(w.found.rows[n-1])) {
		last = w.found.rows[n-1]
	}
	w.table = NameOf(strings.TrimSuffix(last, ".json"), w.made.Name)
	if w.Name == "" && w.of.Name == "" {
		w.made.Name = w.table
	}
}

// assumeStyle makes the request paginate in the given style, with the usual names of that style.
func (w *writer) assumeStyle() {
	usual := styleOf(w.Style)
	if w.of.Answer == nil || !w.found.hasRows {
		w.of.Answer = usual.Answer
	} else {
		w.of.Answer = &Response{Body: mergeAnswers(w.of.Answer.Body, usual.Answer.Body, w.found.rows), Linked: usual.Answer.Linked}
	}
	w.of.Accepts = append(w.of.Accepts, usual.Accepts...)
	if w.Style == StyleGraphQL && w.of.Body == nil {
		w.of.Body, w.of.Method = usual.Body, "POST"
	}
	w.of.Later = nil
	w.found = newFinder(w.of)
	look := map[string]func() (paging, bool){
		StylePage: w.found.numberPaging, StyleOffset: w.found.offsetPaging, StyleCursor: w.found.markPaging, StyleGraphQL: w.found.graphqlPaging,
		StyleLink: func() (paging, bool) {
			if p, ok := w.found.addressPaging(); ok {
				return p, true
			}
			return w.found.linkHeader()
		},
	}[w.Style]
	w.paging, _ = look()
	w.noteGuess("parameters and fields have the names that are usual for this style")
}

// mergeAnswers adds the members of another response, except its rows.
func mergeAnswers(answer, more any, rows []string) any {
	if len(rows) == 0 {
		return more
	}
	merged := answer
	for key, value := range expression.MapOf(more) {
		if _, isList := value.([]any); !isList {
			merged = setAt(merged, []string{key}, value)
		}
	}
	return merged
}

// isJob reports whether the response describes a job that has not ended.
func (f *finder) isJob() bool {
	status, has := f.findMember([]string{"status", "state"}, func(m answerMember) bool {
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

// planLoop decides which parts of the path are filled in, and from where.
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
		w.of.Params = append(dropPairs(w.of.Params, func(p Pair) bool { return p.Name == w.Each }), Pair{w.Each, node.Verbatim("{{ " + w.element + " }}")})
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

// writeFiles writes both files.
func (w *writer) writeFiles() {
	top := node.EmptyMap()
	node.AddKey(top, "apiVersion", recording.TextNode(playbook.Version))
	node.AddKey(top, "kind", recording.TextNode("Playbook"))
	head := node.FlowMap("name", recording.TextNode(w.made.Name))
	if w.of.Desc != "" {
		node.AddKey(head, "description", recording.TextNode(node.EscapeBraces(w.of.Desc)))
		head.Style = 0
	}
	node.AddKey(top, "metadata", head)
	steps := w.stepsNode()
	node.AddKey(top, "workload", w.workloadNode())
	node.AddKey(top, "workflow", steps)
	node.AddKey(top, "output", w.outputNode())
	top.HeadComment = w.headComment()
	w.made.Playbook = []byte(yamltree.EncodeNode(top))
	w.made.Test = w.testFile()
	if login := w.of.login; login != nil {
		w.made.Connections = append(w.made.Connections, NewConnection(login.name, login.form))
	}
	if w.loads {
		w.made.Connections = append(w.made.Connections, NewConnection(warehouse, "postgres://USER:PASSWORD@HOST/DATABASE"))
	}
}

// warehouse is the connection of the database that rows are written to.
const warehouse = "warehouse"

// headComment describes what the playbook needs.
func (w *writer) headComment() string {
	lines := []string{terminal.OneLine(w.made.Name + ": " + w.of.Method + " " + w.of.Path)}
	if login := w.of.login; login != nil {
		lines = append(lines, "Connection "+login.name+": set "+NewConnection(login.name, "").Variable)
	}
	return strings.Join(lines, "\n")
}

// workloadNode returns the workload: what differs between runs.
func (w *writer) workloadNode() *yaml.Node {
	workload := node.EmptyMap()
	if !w.isBelow() {
		node.AddKey(workload, "api", recording.TextNode(w.of.Base))
	}
	for _, name := range w.pathNames() {
		node.AddKey(workload, name, recording.TextNode("1"))
	}
	for _, name := range w.of.given {
		if !slices.Contains(w.pathNames(), name) {
			node.AddKey(workload, name, recording.TextNode(""))
		}
	}
	if w.paging.sized {
		node.AddKey(workload, pageSize, recording.ValueNode(w.pageSize(), true))
	}
	if w.element != "" {
		node.AddKey(workload, w.list, recording.ValueNode(w.elements, true))
	}
	return workload
}

// pageSize is the workload key of the page size.
const pageSize = "page_size"

func (w *writer) pageSize() int {
	const usual = 100
	_, value := w.found.findParam([]string{plainName(w.found.size)})
	if n, isNumber := value.(int); isNumber && n > 0 {
		return n
	}
	return usual
}

// pathNames returns the workload keys that are used in the path.
func (w *writer) pathNames() (names []string) {
	for _, match := range inPath.FindAllStringSubmatch(w.of.Path, -1) {
		if name := w.placeName(match[1]); match[1] != w.element && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// placeName returns the workload key for a placeholder in the path.
func (w *writer) placeName(name string) string { return check.FreeName(NameOf(name, "id")) }

// urlTemplate returns the URL as a template.
func (w *writer) urlTemplate() string {
	path, begin := node.EscapeBraces(w.of.Path), "{{ api }}"
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

// isBelow reports whether the URL is relative to the path of its connection.
func (w *writer) isBelow() bool { return w.of.login != nil && w.of.login.below }

// stepsNode returns the steps of the playbook.
func (w *writer) stepsNode() *yaml.Node {
	switch w.paging.style {
	case StyleExport:
		return w.exportSteps()
	case StyleWebhook:
		return w.webhookSteps()
	}
	step := node.EmptyMap()
	node.AddKey(step, "step", recording.TextNode(stepName))
	w.writeRequest(step)
	if w.element != "" {
		w.writeLoop(step)
	}
	node.AddKey(step, "retry", w.policiesNode())
	if sink := w.sinkNode(); sink != nil && w.element == "" {
		node.AddKey(step, "sink", sink)
	}
	return &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{step}}
}

// stepName is the name of the step that fetches.
const stepName = "fetch"

// writeRequest adds the fields of the request to a step.
func (w *writer) writeRequest(step *yaml.Node) {
	node.AddKey(step, "tool", recording.TextNode("http"))
	if w.of.login != nil {
		node.AddKey(step, "auth", recording.TextNode(w.of.login.name))
	}
	if w.of.Method != "GET" {
		node.AddKey(step, "method", recording.TextNode(w.of.Method))
	}
	node.AddKey(step, "url", node.QuotedText(w.urlTemplate()))
	params := slices.Clone(w.of.Params)
	if name, usual := w.found.findParam(sizeParams); w.paging.when != "" && usual != nil && !w.found.isInBody(name) {
		params = withPair(params, Pair{name, usual}, false) // large pages are fewer requests
	}
	if w.paging.sized {
		params = withPair(params, Pair{w.found.size, node.Verbatim("{{ " + pageSize + " }}")}, w.found.isInBody(w.found.size))
	}
	for _, part := range []struct {
		name  string
		pairs []Pair
	}{{"params", params}, {"headers", w.of.Headers}, {"form", w.of.Form}} {
		if len(part.pairs) == 0 {
			continue
		}
		fields := node.EmptyMap()
		for _, pair := range part.pairs {
			if pair.Value != nil && yamltree.IndexOf(fields, pair.Name) < 0 && !strings.Contains(pair.Name, "{{") {
				node.AddKey(fields, pair.Name, node.ValueNode(pair.Value))
			}
		}
		if len(fields.Content) > 0 {
			fields.Style = node.FlowIfShort(part.pairs)
			node.AddKey(step, part.name, fields)
		}
	}
	switch {
	case w.of.Body != nil:
		node.AddKey(step, "body", node.ValueNode(w.bodyValue()))
	case w.of.Text != "":
		node.AddKey(step, "body", recording.TextNode(node.EscapeBraces(w.of.Text)))
	}
}

// bodyValue returns the body of the request, with the page size replaced by the workload key.
func (w *writer) bodyValue() any {
	if w.paging.sized && w.found.isInBody(w.found.size) {
		return setAt(w.of.Body, []string{w.found.size}, node.Verbatim("{{ "+pageSize+" }}"))
	}
	return w.of.Body
}

// withPair replaces or adds a pair, unless another part of the request has it.
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

func (w *writer) writeLoop(step *yaml.Node) {
	loop := node.EmptyMap()
	node.AddKey(loop, "in", node.QuotedText("{{ "+w.list+" }}"))
	node.AddKey(loop, "element", recording.TextNode(w.element))
	node.AddKey(loop, "mode", recording.TextNode("parallel"))
	node.AddKey(loop, "max_concurrency", recording.ValueNode(5, true))
	if sink := w.sinkNode(); sink != nil {
		node.AddKey(loop, "sink", sink)
	}
	node.AddKey(step, "loop", loop)
}

// policiesNode returns the step's policies: for failures, polls and pages.
func (w *writer) policiesNode() *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	if _, isOK := expression.MapOf(w.found.answer)["ok"].(bool); isOK {
		list.Content = append(list.Content, policyNode("The response reports an error.", "response.ok == false", node.FlowMap("fail", node.QuotedText("{{ response.error }}"))))
	}
	if w.paging.style == StyleGraphQL {
		list.Content = append(list.Content, policyNode("The response reports an error.", "response.errors", node.FlowMap("fail", node.QuotedText("{{ response.errors[0].message }}"))))
	}
	list.Content = append(list.Content, w.failurePolicy())
	if w.paging.style == StylePoll {
		list.Content = append(list.Content, pollPolicy("response.status"))
	}
	if w.paging.when == "" {
		return list
	}
	then := node.EmptyMap()
	node.AddKey(then, "max_attempts", recording.ValueNode(defaultPages, true))
	next := node.EmptyMap()
	switch {
	case w.paging.url != "":
		node.AddKey(next, "url", node.QuotedText(w.paging.url))
	case w.paging.body != nil:
		node.AddKey(next, "body", node.ValueNode(w.paging.body))
	default:
		params := node.EmptyMap()
		for _, pair := range w.paging.params {
			node.AddKey(params, pair.Name, node.ValueNode(pair.Value))
		}
		params.Style = yaml.FlowStyle
		node.AddKey(next, "params", params)
	}
	next.Style = yaml.FlowStyle
	node.AddKey(then, "next_call", next)
	switch {
	case len(w.found.rows) == 0:
		node.AddKey(then, "collect", node.FlowMap("strategy", recording.TextNode("append")))
	case canCollect(w.found.rows):
		node.AddKey(then, "collect", node.FlowMap("path", recording.TextNode(strings.Join(w.found.rows, "."))))
	}
	comment := "There is more: request the next page."
	for _, guess := range w.guesses {
		comment += "\nA guess: " + guess + "."
	}
	list.Content = append(list.Content, policyNode(comment, w.paging.when, then))
	return list
}

// defaultPages is the default maximum number of pages.
const defaultPages = 1000

// failurePolicy returns the policy that retries temporary failures.
func (w *writer) failurePolicy() *yaml.Node {
	return policyNode("Retry a failure that may pass; after a 429, wait as long as the server says.", "error.class in ['retryable', 'rate_limited']",
		node.FlowMap("max_attempts", recording.ValueNode(5, true)))
}

// pollPolicy returns the policy that polls until a job has ended.
func pollPolicy(status string) *yaml.Node {
	open := "['" + strings.Join(openStatuses[:len(openStatuses)-1], "', '") + "']"
	return policyNode("The job is still running: check again, for up to an hour.", "lower("+status+") in "+open,
		node.FlowMap("max_attempts", recording.ValueNode(120, true), "delay", recording.TextNode("30s")))
}

func policyNode(comment, when string, then *yaml.Node) *yaml.Node {
	n := node.EmptyMap()
	node.AddKey(n, "when", node.QuotedText("{{ "+when+" }}"))
	node.AddKey(n, "then", then)
	n.HeadComment = comment
	return n
}

// collectsRows reports whether the result of the call is the list of rows.
func (w *writer) collectsRows() bool {
	return w.paging.when != "" && canCollect(w.found.rows)
}

// sinkNode returns the sink for the rows; nil if there is none.
func (w *writer) sinkNode() *yaml.Node {
	if w.Sink == SinkNone {
		return nil
	}
	sink := node.EmptyMap()
	switch w.Sink {
	case SinkFile:
		path := w.made.Name + ".jsonl"
		if w.element != "" {
			path = w.made.Name + "/{{ " + w.element + " }}.jsonl"
		}
		node.AddKey(sink, "tool", recording.TextNode("file"))
		node.AddKey(sink, "path", node.QuotedText(path))
		node.AddKey(sink, "mode", recording.TextNode("overwrite"))
	default:
		w.tableSink(sink)
	}
	if args := w.sinkArgs(); args != "" {
		node.AddKey(sink, "args", node.QuotedText(args))
	}
	return sink
}

func (w *writer) tableSink(sink *yaml.Node) {
	node.AddKey(sink, "tool", recording.TextNode(w.Sink))
	if w.Sink == SinkSQLite {
		node.AddKey(sink, "path", recording.TextNode(w.made.Name+".db"))
	} else {
		node.AddKey(sink, "auth", recording.TextNode(warehouse))
		w.loads = true
	}
	node.AddKey(sink, "table", recording.TextNode(w.table))
	if key := w.rowKey(); key != "" {
		node.AddKey(sink, "mode", recording.TextNode("upsert"))
		node.AddKey(sink, "key", recording.TextNode(key))
	}
	node.AddKey(sink, "schema_contract", recording.TextNode("evolve"))
}

// rowKey returns the column that identifies the rows of a sink; "" if unknown. Without it, another run writes the
// rows twice.
func (w *writer) rowKey() string {
	switch {
	case w.found.hasRows:
		return keyOf(valueAt(w.found.answer, w.found.rows))
	case w.paging.style == "" && w.Each != "": // the answer about an element is a row
		return keyOf([]any{w.found.answer})
	}
	return ""
}

// sinkArgs returns the expression for the rows if the result is something else; "" if the result is the rows.
func (w *writer) sinkArgs() string {
	rows := "result"
	if !w.collectsRows() && len(w.found.rows) > 0 {
		rows = expressionOf(rows, w.found.rows)
	}
	first := any(map[string]any{})
	if list, _ := valueAt(w.found.answer, w.found.rows).([]any); w.found.hasRows && len(list) > 0 {
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

// outputNode returns the output of a run.
func (w *writer) outputNode() *yaml.Node {
	switch {
	case w.paging.style == StyleExport:
		return node.FlowMap("rows", node.QuotedText("{{ len("+downloadStep+") }}"))
	case w.paging.style == StyleWebhook:
		return node.QuotedText("{{ start }}")
	case w.element != "":
		return node.FlowMap("done", node.QuotedText("{{ "+stepName+".stats.success }}"), "of", node.QuotedText("{{ "+stepName+".stats.total }}"))
	case w.collectsRows():
		return node.FlowMap("rows", node.QuotedText("{{ len("+stepName+") }}"))
	case w.found.hasRows:
		return node.FlowMap("rows", node.QuotedText("{{ len("+expressionOf(stepName, w.found.rows)+") }}"))
	case w.paging.style == StylePoll:
		return node.FlowMap("status", node.QuotedText("{{ "+stepName+".status }}"))
	}
	return node.FlowMap("status", node.QuotedText("{{ steps."+stepName+".meta.status }}"))
}
