package connector

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/internal/base/terminal"
	"reprise/internal/program/node"
	"reprise/internal/program/recording"
	"reprise/internal/program/scaffold"
	"reprise/interpreter/playbook"
	"reprise/interpreter/yamltree"
)

// warehouse is the connection of the database to which rows are written.
const warehouse = "warehouse"

// writeResult writes the playbook and its test.
func (c *converter) writeResult(result *Result) {
	result.Name = c.Name
	top := node.EmptyMap()
	node.AddKey(top, "apiVersion", recording.TextNode(playbook.Version))
	node.AddKey(top, "kind", recording.TextNode("Playbook"))
	node.AddKey(top, "metadata", node.FlowMap("name", recording.TextNode(c.Name)))
	workload := c.workloadValues()
	if base := c.commonBase(); base != "" {
		workload["api"] = base
	}
	for _, one := range c.sizes {
		workload[one.name] = one.rows
	}
	if len(workload) > 0 {
		node.AddKey(top, "workload", c.workloadNode(workload))
	}
	makeStubs(c)
	for _, s := range c.list { // parents first
		s.addParentGaps()
		s.endPages()
		s.addIgnoredGap()
	}
	policies := sharedPolicies(c.list)
	if len(policies.Content) > 0 {
		node.AddKey(top, "policies", policies)
	}
	workflow := workflowNode(c, result)
	node.AddKey(top, "workflow", workflow)
	if n := len(c.list); n > 0 && !c.list[n-1].resultIsStats() {
		last := workflow.Content[len(workflow.Content)-1]
		node.AddKey(top, "output", node.QuotedText("{{ steps."+yamltree.KeyValues(last)["step"].Value+".status }}"))
	}
	for _, l := range c.logins {
		result.Connections = append(result.Connections, scaffold.NewConnection(l.name, l.connectionText()))
	}
	if c.Sink == scaffold.SinkPostgres {
		result.Connections = append(result.Connections, scaffold.NewConnection(warehouse, "postgres://USER:PASSWORD@HOST/DATABASE"))
	}
	top.HeadComment = c.headComment(result)
	result.Playbook = []byte(yamltree.EncodeNode(top))
	result.Gaps = append(result.Gaps, c.gaps...)
	for _, s := range c.list {
		for _, at := range playbook.SortedKeys(s.gaps) {
			result.Gaps = append(result.Gaps, s.gaps[at]...)
		}
	}
	result.Unit, result.Notes = c.unit, NoteTexts(c.unit, c.notes)
	if len(c.list) > 0 {
		result.Test = newTester(c, workload, result.Secrets).testFile()
	}
}

// workflowNode returns the steps, each of which leads to the next.
func workflowNode(c *converter, result *Result) *yaml.Node {
	workflow := node.ListOf()
	if len(c.read.secret) > 0 {
		result.Secrets = c.Connector + ".secrets.json"
		workflow.Content = append(workflow.Content, secretsNode(result.Secrets))
	}
	for _, s := range c.list {
		workflow.Content = append(workflow.Content, c.stepNode(s))
		if s.stub != "" {
			workflow.Content = append(workflow.Content, stubNode(c, s))
		}
	}
	for i, step := range workflow.Content[:max(len(workflow.Content)-1, 0)] {
		next := yamltree.KeyValues(workflow.Content[i+1])["step"]
		node.AddKey(step, "next", recording.TextNode(next.Value))
	}
	return workflow
}

func (c *converter) workloadNode(values map[string]any) *yaml.Node {
	n := recording.ValueNode(toCanonical(values), false)
	n.Style = 0
	c.commentWorkload(n)
	onOneLine(n)
	return n
}

// commonBase returns the common base URL of all steps, which becomes a workload key; "" if they differ.
func (c *converter) commonBase() string {
	if len(c.list) == 0 || c.names["api"] {
		return ""
	}
	base := c.list[0].base
	for _, s := range c.list {
		if s.base != base {
			return ""
		}
	}
	if base == "" {
		return ""
	}
	for _, s := range c.list {
		s.url = belowBase(s.url, base)
		if s.paging != nil {
			s.paging.url = belowBase(s.paging.url, base)
		}
	}
	return base
}

// belowBase returns an address in which the base URL is replaced by the workload key.
func belowBase(address any, base string) any {
	text, isText := address.(string)
	if template, isTemplate := address.(node.Verbatim); isTemplate {
		text = string(template)
	} else {
		text = node.EscapeBraces(text)
	}
	if rest, begins := strings.CutPrefix(text, base); begins && (isText || text != "") {
		return node.Verbatim("{{ api }}" + rest)
	}
	return address
}

// headComment returns the comment that describes the playbook and what it needs.
func (c *converter) headComment(result *Result) string {
	lines := []string{c.Connector + ": " + terminal.Count(len(result.Streams), c.unit) + " " + c.origin}
	for _, one := range result.Connections {
		lines = append(lines, "Connection "+one.Name+": set "+one.Variable)
	}
	if result.Secrets != "" {
		lines = append(lines, "Secrets: "+result.Secrets+" in the worker's directory, a JSON map of "+strings.Join(c.secretNames(), ", "))
	}
	if len(c.gaps) > 0 {
		lines = append(lines, gapComment(c.gaps))
	}
	return strings.Join(lines, "\n")
}

func (c *converter) secretNames() (names []string) {
	for _, path := range c.read.secret {
		if name := path[len(path)-1]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// commentWorkload adds the specification's descriptions to required keys.
func (c *converter) commentWorkload(workload *yaml.Node) {
	for i := 0; i+1 < len(workload.Content); i += 2 {
		key, value := workload.Content[i], workload.Content[i+1]
		if value.Kind != yaml.ScalarNode || !c.isRequired([]string{key.Value}) && value.Value != "" {
			continue
		}
		schema := c.schemaOf([]string{key.Value})
		if title := oneLine(schema.text("title")); title != "" && schema["default"] == nil {
			value.LineComment = "# required: " + title
		}
	}
}

func secretsNode(file string) *yaml.Node {
	n := node.EmptyMap()
	node.AddKey(n, "step", recording.TextNode(secretsStep))
	node.AddKey(n, "tool", recording.TextNode("file"))
	node.AddKey(n, "path", recording.TextNode(file))
	node.AddKey(n, "secret", recording.ValueNode(true, true))
	return n
}

// policyNode returns an entry of `retry`.
func policyNode(p policy) *yaml.Node {
	n := node.EmptyMap()
	node.AddKey(n, "when", node.QuotedText("{{ "+p.when+" }}"))
	then := node.EmptyMap()
	then.Style = yaml.FlowStyle
	for _, one := range p.then {
		node.AddKey(then, one.name, valueNode(one.value))
	}
	node.AddKey(n, "then", then)
	n.HeadComment = p.comment
	return n
}

// valueNode returns a value on one line.
func valueNode(of any) *yaml.Node {
	if list, isList := of.([]string); isList {
		n := node.FlowList()
		for _, one := range list {
			n.Content = append(n.Content, recording.TextNode(one))
		}
		return n
	}
	return node.ValueNode(of)
}

// ignoredType is the type of a failure that stands for a response to ignore.
const ignoredType = "IGNORED"

// endPages makes policies that ignore a successful response end the pages of a step: a result alone does not replace the
// rows of the page.
func (s *step) endPages() {
	var policies []policy
	ignores := false
	for _, p := range s.failures {
		if s.hasPages() && len(p.then) == 1 && p.then[0] == (pair{"result", noRows}) {
			p.then = []pair{{"fail", "ignored"}, {"type", ignoredType}}
			ignores = true
		}
		policies = append(policies, p)
	}
	if ignores {
		policies = append([]policy{{when: "error.type == " + quoteText(ignoredType), then: []pair{{"ignore", true}}}}, policies...)
	}
	s.failures = policies
}

// addIgnoredGap says what a failure that is ignored means for a table that is replaced: the manifest writes what it has read.
func (s *step) addIgnoredGap() {
	ignores := func(p policy) bool { return len(p.then) == 1 && p.then[0] == pair{"ignore", true} }
	if s.written && s.writeMode() == "replace" && slices.ContainsFunc(s.failures, ignores) {
		s.addGap(atRetry, "ignored responses", "as there is no key, a run in which a first page is ignored leaves the table as it was")
	}
}

// noRows is the result of a call that read nothing.
const noRows = node.Verbatim("{{ [] }}")

// sharedPolicies returns the lists of policies that so many steps use that the playbook is shorter with a name for them, and
// makes the steps refer to them.
func sharedPolicies(steps []*step) *yaml.Node {
	named := node.EmptyMap()
	saved := map[string]int{} // the lines that steps have less, with a reference in the place of the list
	texts := map[*step]string{}
	for _, s := range steps {
		texts[s] = yamltree.EncodeNode(policyList(s.failures))
		saved[texts[s]] += strings.Count(texts[s], "\n")
		if s.hasPages() {
			saved[texts[s]]--
		}
	}
	names := map[string]string{}
	for _, s := range steps {
		text := texts[s]
		if len(s.failures) == 0 || names[text] == "" && saved[text] < strings.Count(text, "\n")+2 { // it would be longer than the steps as they are
			continue
		}
		if names[text] == "" {
			names[text] = "api"
			if n := len(names); n > 1 {
				names[text] = fmt.Sprintf("api_%d", n)
			}
			node.AddKey(named, names[text], policyList(s.failures))
		}
		s.use = names[text]
	}
	return named
}

func policyList(policies []policy) *yaml.Node {
	list := node.ListOf()
	for _, p := range policies {
		list.Content = append(list.Content, policyNode(p))
	}
	return list
}

// commentGaps puts the gaps of a place in a comment above its key.
func (s *step) commentGaps(n *yaml.Node, at string) {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == at && len(s.gaps[at]) > 0 {
			n.Content[i].HeadComment = gapComment(s.gaps[at])
			return
		}
	}
}

func gapComment(gaps []Gap) string {
	lines := make([]string, len(gaps))
	for i, gap := range gaps {
		lines[i] = "not converted: " + terminal.OneLine(oneLine(gap.String()))
	}
	return strings.Join(lines, "\n")
}

// stepNode returns a step as YAML.
func (c *converter) stepNode(s *step) *yaml.Node {
	n := node.EmptyMap()
	node.AddKey(n, "step", recording.TextNode(s.name))
	c.requestNode(s, n)
	if s.loop != nil {
		node.AddKey(n, "loop", c.loopNode(s))
	}
	if s.incremental != nil && s.incremental.stateful {
		node.AddKey(n, "incremental", pairsNode(s.incremental.incrementalPairs()))
	}
	if s.hasRows {
		node.AddKey(n, "rows", recording.TextNode(s.rowsPath()))
	}
	if s.where != nil {
		node.AddKey(n, "where", node.QuotedText("{{ "+s.where.text+" }}"))
	}
	node.AddKey(n, "retry", c.retryNode(s))
	if sink := c.stepSink(s); sink != nil {
		node.AddKey(n, "sink", sink)
	}
	var rest []Gap
	for _, at := range []string{atRequest, atLoop, atIncremental, atRows, atRetry, atSink} {
		switch {
		case at == atSink && s.stub != "": // it is there that rows are written
			continue
		case yamltree.IndexOf(n, at) < 0:
			rest = append(rest, s.gaps[at]...)
			continue
		}
		s.commentGaps(n, at)
	}
	if len(rest) > 0 {
		n.HeadComment = gapComment(rest)
	}
	return n
}

func pairsNode(pairs []pair) *yaml.Node {
	n := node.EmptyMap()
	for _, one := range pairs {
		node.AddKey(n, one.name, valueNode(one.value))
	}
	if text := yamltree.EncodeNode(n); len(text) < 110 && strings.Count(text, "\n") <= 5 {
		n.Style = yaml.FlowStyle
	}
	return n
}

func (c *converter) requestNode(s *step, n *yaml.Node) {
	node.AddKey(n, "tool", recording.TextNode("http"))
	if s.auth != "" {
		node.AddKey(n, "auth", recording.TextNode(s.auth))
	}
	if s.method != "" {
		node.AddKey(n, "method", recording.TextNode(s.method))
	}
	node.AddKey(n, "url", valueNode(s.url))
	if len(s.args) > 0 {
		node.AddKey(n, "args", node.ValueNode(s.args))
	}
	for _, one := range []struct {
		key   string
		value map[string]any
	}{{"params", s.params}, {"headers", s.headers}, {"form", s.form}} {
		if len(one.value) > 0 {
			value := node.ValueNode(one.value)
			onOneLine(value)
			node.AddKey(n, one.key, value)
		}
	}
	if s.body != nil {
		node.AddKey(n, "body", node.ValueNode(s.body))
	}
	if s.format != "" {
		node.AddKey(n, "format", recording.TextNode(s.format))
	}
	if s.rateLimit != nil {
		node.AddKey(n, "rate_limit", node.FlowMap("requests", recording.ValueNode(s.rateLimit.value, true), "per", recording.TextNode(s.rateLimit.name)))
	}
}

func (c *converter) loopNode(s *step) *yaml.Node {
	n := node.EmptyMap()
	node.AddKey(n, "in", node.ValueNode(s.loop.collection))
	node.AddKey(n, "element", recording.TextNode(s.loop.element))
	if !s.read {
		node.AddKey(n, "results", recording.TextNode("stats"))
	}
	if s.written && (!s.hasPages() || s.collectsPages()) {
		if sink := c.sinkNode(s); sink != nil {
			node.AddKey(n, "sink", sink)
			return n
		}
	}
	onOneLine(n)
	return n
}

// resultIsStats reports whether the result of a step is figures alone, which is what a run that ends with it should have as its
// output.
func (s *step) resultIsStats() bool { return s.loop != nil && !s.read }

// collectsPages reports whether the rows of all pages are written together, because they replace those of the table.
func (s *step) collectsPages() bool { return s.loop != nil && s.writeMode() == "replace" }

// stepSink returns the sink of the step; nil if its rows are written elsewhere.
func (c *converter) stepSink(s *step) *yaml.Node {
	if s.loop != nil || s.hasPages() || !s.written {
		return nil
	}
	return c.sinkNode(s)
}

func (c *converter) retryNode(s *step) *yaml.Node {
	list := policyList(s.failures)
	if s.use != "" {
		list = node.ListOf(node.FlowMap("use", recording.TextNode(s.use)))
		if !s.hasPages() {
			list.Style = yaml.FlowStyle
		} else {
			list.Content[0].Style = 0
		}
	}
	p := s.paging
	if p == nil {
		if s.readsSlices() {
			list.Content = append(list.Content, c.pageNode(s, "error is not defined", node.EmptyMap()))
		}
		return list
	}
	next := node.EmptyMap()
	if p.url != nil {
		node.AddKey(next, "url", valueNode(p.url))
	}
	params := maps.Clone(p.changes.params)
	for _, name := range p.without {
		params[name] = nil
	}
	for _, one := range []struct {
		key   string
		value map[string]any
	}{{"args", p.changes.form}, {"params", params}, {"headers", p.changes.headers}, {"body", p.changes.body}} {
		if len(one.value) > 0 {
			node.AddKey(next, one.key, node.ValueNode(one.value))
		}
	}
	then := node.EmptyMap()
	next.Style = yaml.FlowStyle
	if len(next.Content) == 0 {
		node.AddKey(then, "allow_repeat", recording.ValueNode(true, true))
	}
	node.AddKey(then, "next_call", next)
	list.Content = append(list.Content, c.pageNode(s, p.when.text, then))
	return list
}

// readsSlices reports whether a step reads time slices, which are pages.
func (s *step) readsSlices() bool {
	return s.incremental != nil && s.incremental.stateful && s.incremental.step != ""
}

// hasPages reports whether rows come in several pages.
func (s *step) hasPages() bool { return s.paging != nil || s.readsSlices() }

// countsPages reports whether the next request has the number of rows so far, which are collected for it.
func (s *step) countsPages() bool {
	if s.paging == nil {
		return false
	}
	changes := s.paging.changes
	return strings.Contains(fmt.Sprint(changes.params, changes.headers, changes.body, changes.form, s.paging.url), "len(pages)")
}

// pageNode returns the policy for pages, with the sink of each page.
func (c *converter) pageNode(s *step, when string, then *yaml.Node) *yaml.Node {
	if s.read || s.collectsPages() || !s.written || c.Sink == scaffold.SinkNone || s.countsPages() {
		node.AddKey(then, "collect", node.FlowMap())
	}
	if s.written && !s.collectsPages() {
		if sink := c.sinkNode(s); sink != nil {
			node.AddKey(then, "per_iteration", onlySink(sink))
		}
	}
	if yamltree.IndexOf(then, "per_iteration") < 0 {
		onOneLine(then)
	}
	policy := node.EmptyMap()
	node.AddKey(policy, "when", node.QuotedText("{{ "+when+" }}"))
	node.AddKey(policy, "then", then)
	return policy
}

// lineWidth is how long a map on one line may be, without its key and indentation.
const lineWidth = 115

// onOneLine writes a map on one line if it fits.
func onOneLine(n *yaml.Node) {
	style := n.Style
	n.Style = yaml.FlowStyle
	if text := strings.TrimSuffix(yamltree.EncodeNode(n), "\n"); len(text) > lineWidth || strings.Contains(text, "\n") {
		n.Style = style
	}
}

func onlySink(sink *yaml.Node) *yaml.Node {
	n := node.EmptyMap()
	node.AddKey(n, "sink", sink)
	return n
}

// modeInsert is the mode of sinks that add rows.
const modeInsert = "insert"

// writeMode returns the sink's mode.
func (s *step) writeMode() string {
	switch {
	case s.mode != "":
		return s.mode
	case len(s.key) > 0:
		return "upsert"
	case s.incremental != nil && s.incremental.stateful:
		return ""
	}
	return "replace"
}

// sinkNode returns the sink for the rows; nil if there is none.
func (c *converter) sinkNode(s *step) *yaml.Node {
	n := node.EmptyMap()
	switch c.Sink {
	case scaffold.SinkNone:
		return nil
	case scaffold.SinkFile:
		node.AddKey(n, "tool", recording.TextNode("file"))
		node.AddKey(n, "path", recording.TextNode(c.Connector+"/"+s.table+".jsonl"))
	case scaffold.SinkPostgres:
		node.AddKey(n, "tool", recording.TextNode("postgres"))
		node.AddKey(n, "auth", recording.TextNode(warehouse))
	default:
		node.AddKey(n, "tool", recording.TextNode("sqlite"))
		node.AddKey(n, "path", recording.TextNode(c.Connector+".db"))
	}
	if c.Sink != scaffold.SinkFile {
		c.tableNode(s, n)
	}
	if len(s.fields) > 0 {
		fields := node.EmptyMap()
		for _, one := range s.fields {
			node.AddKey(fields, one.name, valueNode(one.value))
		}
		onOneLine(fields)
		node.AddKey(n, "fields", fields)
	}
	if len(s.exclude) > 0 {
		node.AddKey(n, "exclude", valueNode(s.exclude))
	}
	if s.shape != "" {
		node.AddKey(n, "args", node.QuotedText("{{ "+fmt.Sprintf(s.shape, "result")+" }}"))
	}
	if text := yamltree.EncodeNode(n); len(text) < 120 {
		n.Style = yaml.FlowStyle
	}
	return n
}

func (c *converter) tableNode(s *step, n *yaml.Node) {
	node.AddKey(n, "table", recording.TextNode(s.table))
	if mode := s.writeMode(); mode != "" {
		node.AddKey(n, "mode", recording.TextNode(mode))
		if mode == "replace" { // as peers do: an account may have none of a stream's rows
			node.AddKey(n, "allow_empty", recording.ValueNode(true, true))
		}
	}
	switch {
	case len(s.key) == 0 || s.mode == modeInsert && s.nested == "":
	case len(s.key) == 1:
		node.AddKey(n, "key", recording.TextNode(s.key[0]))
	default:
		node.AddKey(n, "key", valueNode(s.key))
	}
	contract := any("evolve")
	if s.contract != nil {
		contract = s.contract
	}
	node.AddKey(n, "schema_contract", valueNode(contract))
	if s.nested != "" {
		node.AddKey(n, "nested", recording.TextNode(s.nested))
	}
	if len(s.columns) > 0 {
		columns := node.EmptyMap()
		for _, one := range s.columns {
			node.AddKey(columns, one.name, valueNode(one.value))
		}
		onOneLine(columns)
		node.AddKey(n, "columns", columns)
	}
}
