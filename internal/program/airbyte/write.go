package airbyte

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

// warehouse is the connection of the database that rows go to.
const warehouse = "warehouse"

// finish writes the playbook and its test.
func (c *converter) finish(result *Result) {
	result.Name = c.Name
	top := node.Map()
	node.Add(top, "apiVersion", recording.Text(playbook.Version))
	node.Add(top, "kind", recording.Text("Playbook"))
	node.Add(top, "metadata", node.Flow("name", recording.Text(c.Name)))
	workload := c.workload()
	if base := c.commonBase(); base != "" {
		workload["api"] = base
	}
	for _, one := range c.sizes {
		workload[one.name] = one.rows
	}
	if len(workload) > 0 {
		n := recording.Node(canonical(workload), false)
		n.Style = 0
		c.commentWorkload(n)
		node.Add(top, "workload", n)
	}
	policies := c.sharedPolicies()
	if len(policies.Content) > 0 {
		node.Add(top, "policies", policies)
	}
	workflow := node.List()
	if len(c.read.secret) > 0 {
		result.Secrets = c.Connector + ".secrets.json"
		workflow.Content = append(workflow.Content, c.secretsNode(result.Secrets))
	}
	for i, s := range c.list {
		n := c.stepNode(s)
		if i+1 < len(c.list) {
			node.Add(n, "next", recording.Text(c.list[i+1].name))
		}
		workflow.Content = append(workflow.Content, n)
	}
	node.Add(top, "workflow", workflow)
	if n := len(c.list); n > 0 {
		node.Add(top, "output", node.Quoted("{{ steps."+c.list[n-1].name+".status }}"))
	}
	for _, l := range c.logins {
		result.Connections = append(result.Connections, scaffold.NewConnection(l.name, l.text()))
	}
	if c.Sink == scaffold.SinkPostgres {
		result.Connections = append(result.Connections, scaffold.NewConnection(warehouse, "postgres://USER:PASSWORD@HOST/DATABASE"))
	}
	top.HeadComment = c.comment(result)
	result.Playbook = []byte(yamltree.Encode(top))
	for _, s := range c.list {
		for _, at := range playbook.SortedKeys(s.gaps) {
			result.Gaps = append(result.Gaps, s.gaps[at]...)
		}
	}
	result.Notes = c.notes
	if len(c.list) > 0 {
		result.Test = newTester(c, workload, result.Secrets).write()
	}
}

// commonBase is the beginning of the addresses of all steps, "" where they differ. It becomes a key of workload.
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
		s.url = below(s.url, base)
		if s.paging != nil {
			s.paging.url = below(s.paging.url, base)
		}
	}
	return base
}

// below is an address with the key of workload for its beginning.
func below(address any, base string) any {
	text, isText := address.(string)
	if template, isTemplate := address.(node.Verbatim); isTemplate {
		text = string(template)
	} else {
		text = node.Escaped(text)
	}
	if rest, begins := strings.CutPrefix(text, base); begins && (isText || text != "") {
		return node.Verbatim("{{ api }}" + rest)
	}
	return address
}

// comment says what the playbook is, and what it needs.
func (c *converter) comment(result *Result) string {
	lines := []string{c.Connector + ": " + terminal.Count(len(result.Streams), "stream") + " of a low-code connector of Airbyte"}
	for _, one := range result.Connections {
		lines = append(lines, "Connection "+one.Name+": set "+one.Variable)
	}
	if result.Secrets != "" {
		lines = append(lines, "Secrets: "+result.Secrets+" in the worker's directory, a JSON map of "+strings.Join(c.secretNames(), ", "))
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

// commentWorkload says what the specification says of the keys that it requires.
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

func (c *converter) secretsNode(file string) *yaml.Node {
	n := node.Map()
	node.Add(n, "step", recording.Text(secretsStep))
	node.Add(n, "tool", recording.Text("file"))
	node.Add(n, "path", recording.Text(file))
	node.Add(n, "secret", recording.Node(true, true))
	if len(c.list) > 0 {
		node.Add(n, "next", recording.Text(c.list[0].name))
	}
	return n
}

// policyNode is an entry of `retry`.
func policyNode(p policy) *yaml.Node {
	n := node.Map()
	node.Add(n, "when", node.Quoted("{{ "+p.when+" }}"))
	then := node.Map()
	then.Style = yaml.FlowStyle
	for _, one := range p.then {
		node.Add(then, one.name, valueNode(one.value))
	}
	node.Add(n, "then", then)
	n.HeadComment = p.comment
	return n
}

// valueNode is a value in one line.
func valueNode(of any) *yaml.Node {
	if list, isList := of.([]string); isList {
		n := node.FlowList()
		for _, one := range list {
			n.Content = append(n.Content, recording.Text(one))
		}
		return n
	}
	return node.Value(of)
}

// sharedPolicies are the lists of policies that several steps have, which then name them.
func (c *converter) sharedPolicies() *yaml.Node {
	named := node.Map()
	count := map[string]int{}
	texts := map[*step]string{}
	for _, s := range c.list {
		texts[s] = yamltree.Encode(policyList(s.failures))
		count[texts[s]]++
	}
	names := map[string]string{}
	for _, s := range c.list {
		text := texts[s]
		if count[text] < 2 {
			continue
		}
		if names[text] == "" {
			names[text] = "api"
			if n := len(names); n > 1 {
				names[text] = fmt.Sprintf("api_%d", n)
			}
			node.Add(named, names[text], policyList(s.failures))
		}
		s.use = names[text]
	}
	return named
}

func policyList(policies []policy) *yaml.Node {
	list := node.List()
	for _, p := range policies {
		list.Content = append(list.Content, policyNode(p))
	}
	return list
}

// gapped puts the gaps of a place above a key.
func (s *step) gapped(n *yaml.Node, at string) {
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

// stepNode is a step.
func (c *converter) stepNode(s *step) *yaml.Node {
	n := node.Map()
	node.Add(n, "step", recording.Text(s.name))
	c.requestNode(s, n)
	if s.loop != nil {
		node.Add(n, "loop", c.loopNode(s))
	}
	if s.incremental != nil && s.incremental.kept {
		node.Add(n, "incremental", pairsNode(s.incremental.pairs()))
	}
	if s.hasRows {
		node.Add(n, "rows", recording.Text(s.rowsPath()))
	}
	if s.where != nil {
		node.Add(n, "where", node.Quoted("{{ "+s.where.text+" }}"))
	}
	node.Add(n, "retry", c.retryNode(s))
	if sink := c.stepSink(s); sink != nil {
		node.Add(n, "sink", sink)
	}
	var rest []Gap
	for _, at := range []string{atRequest, atLoop, atIncremental, atRows, atRetry, atSink} {
		if yamltree.IndexOf(n, at) < 0 {
			rest = append(rest, s.gaps[at]...)
			continue
		}
		s.gapped(n, at)
	}
	if len(rest) > 0 {
		n.HeadComment = gapComment(rest)
	}
	return n
}

func pairsNode(pairs []pair) *yaml.Node {
	n := node.Map()
	for _, one := range pairs {
		node.Add(n, one.name, valueNode(one.value))
	}
	if text := yamltree.Encode(n); len(text) < 110 && strings.Count(text, "\n") <= 5 {
		n.Style = yaml.FlowStyle
	}
	return n
}

func (c *converter) requestNode(s *step, n *yaml.Node) {
	node.Add(n, "tool", recording.Text("http"))
	if s.auth != "" {
		node.Add(n, "auth", recording.Text(s.auth))
	}
	if s.method != "" {
		node.Add(n, "method", recording.Text(s.method))
	}
	node.Add(n, "url", valueNode(s.url))
	if len(s.args) > 0 {
		node.Add(n, "args", node.Value(s.args))
	}
	for _, one := range []struct {
		key   string
		value map[string]any
	}{{"params", s.params}, {"headers", s.headers}, {"form", s.form}} {
		if len(one.value) > 0 {
			node.Add(n, one.key, node.Value(one.value))
		}
	}
	if s.body != nil {
		node.Add(n, "body", node.Value(s.body))
	}
	if s.format != "" {
		node.Add(n, "format", recording.Text(s.format))
	}
	if s.rateLimit != nil {
		node.Add(n, "rate_limit", node.Flow("requests", recording.Node(s.rateLimit.value, true), "per", recording.Text(s.rateLimit.name)))
	}
}

func (c *converter) loopNode(s *step) *yaml.Node {
	n := node.Map()
	node.Add(n, "in", node.Value(s.loop.collection))
	node.Add(n, "element", recording.Text(s.loop.element))
	if !s.read {
		node.Add(n, "results", recording.Text("stats"))
	}
	if s.written && (!s.pages() || s.collects()) {
		if sink := c.sink(s); sink != nil {
			node.Add(n, "sink", sink)
		}
	}
	return n
}

// collects reports whether rows of several pages are written together: where they replace those of the table.
func (s *step) collects() bool { return s.loop != nil && s.mode() == "replace" }

// stepSink is the sink on the step, nil where it is elsewhere.
func (c *converter) stepSink(s *step) *yaml.Node {
	if s.loop != nil || s.pages() || !s.written {
		return nil
	}
	return c.sink(s)
}

func (c *converter) retryNode(s *step) *yaml.Node {
	list := policyList(s.failures)
	if s.use != "" {
		list = node.List(node.Flow("use", recording.Text(s.use)))
		list.Content[0].Style = 0
	}
	p := s.paging
	if p == nil {
		if s.slices() {
			list.Content = append(list.Content, c.pageNode(s, "error is not defined", node.Map()))
		}
		return list
	}
	next := node.Map()
	if p.url != nil {
		node.Add(next, "url", valueNode(p.url))
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
			node.Add(next, one.key, node.Value(one.value))
		}
	}
	then := node.Map()
	next.Style = yaml.FlowStyle
	if len(next.Content) == 0 {
		node.Add(then, "allow_repeat", recording.Node(true, true))
	}
	node.Add(then, "next_call", next)
	list.Content = append(list.Content, c.pageNode(s, p.when.text, then))
	return list
}

// slices reports whether a step reads in slices of time, which are pages.
func (s *step) slices() bool {
	return s.incremental != nil && s.incremental.kept && s.incremental.step != ""
}

// pages reports whether rows come in several pages.
func (s *step) pages() bool { return s.paging != nil || s.slices() }

// pageNode is the policy for pages, with where they go.
func (c *converter) pageNode(s *step, when string, then *yaml.Node) *yaml.Node {
	if s.read || s.collects() || !s.written || c.Sink == scaffold.SinkNone {
		node.Add(then, "collect", node.Flow())
	}
	if s.written && !s.collects() {
		if sink := c.sink(s); sink != nil {
			node.Add(then, "per_iteration", onlySink(sink))
		}
	}
	policy := node.Map()
	node.Add(policy, "when", node.Quoted("{{ "+when+" }}"))
	node.Add(policy, "then", then)
	return policy
}

func onlySink(sink *yaml.Node) *yaml.Node {
	n := node.Map()
	node.Add(n, "sink", sink)
	return n
}

// mode is how rows are written.
func (s *step) mode() string {
	switch {
	case len(s.key) > 0:
		return "upsert"
	case s.incremental != nil && s.incremental.kept:
		return ""
	}
	return "replace"
}

// sink is what writes the rows, nil for none.
func (c *converter) sink(s *step) *yaml.Node {
	n := node.Map()
	switch c.Sink {
	case scaffold.SinkNone:
		return nil
	case scaffold.SinkFile:
		node.Add(n, "tool", recording.Text("file"))
		node.Add(n, "path", recording.Text(c.Connector+"/"+s.table+".jsonl"))
	case scaffold.SinkPostgres:
		node.Add(n, "tool", recording.Text("postgres"))
		node.Add(n, "auth", recording.Text(warehouse))
	default:
		node.Add(n, "tool", recording.Text("sqlite"))
		node.Add(n, "path", recording.Text(c.Connector+".db"))
	}
	if c.Sink != scaffold.SinkFile {
		c.tableNode(s, n)
	}
	if len(s.fields) > 0 {
		fields := node.Map()
		for _, one := range s.fields {
			node.Add(fields, one.name, valueNode(one.value))
		}
		fields.Style = node.FlowIfShort(s.fields)
		node.Add(n, "fields", fields)
	}
	if len(s.exclude) > 0 {
		node.Add(n, "exclude", valueNode(s.exclude))
	}
	if s.shape != "" {
		node.Add(n, "args", node.Quoted("{{ "+fmt.Sprintf(s.shape, "result")+" }}"))
	}
	if text := yamltree.Encode(n); len(text) < 120 {
		n.Style = yaml.FlowStyle
	}
	return n
}

func (c *converter) tableNode(s *step, n *yaml.Node) {
	node.Add(n, "table", recording.Text(s.table))
	if mode := s.mode(); mode != "" {
		node.Add(n, "mode", recording.Text(mode))
	}
	switch len(s.key) {
	case 0:
	case 1:
		node.Add(n, "key", recording.Text(s.key[0]))
	default:
		node.Add(n, "key", valueNode(s.key))
	}
	node.Add(n, "schema_contract", recording.Text("evolve"))
	if len(s.columns) > 0 {
		columns := node.Map()
		for _, one := range s.columns {
			node.Add(columns, one.name, valueNode(one.value))
		}
		columns.Style = node.FlowIfShort(s.columns)
		node.Add(n, "columns", columns)
	}
}
