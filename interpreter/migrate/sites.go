package migrate

import (
	"cmp"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/yamltree"
)

// sites walks the tree of a file, without following aliases, and collects what can be rewritten.
type sites struct {
	retries  []retrySite
	requests []requestSite
	steps    []stepSite
	// words are keys that have other spellings in noetl.io/v1.
	words []wordSite
}

// stepSite is a step of the playbook or of an inline playbook.
type stepSite struct {
	node *yaml.Node
	path string // its name, after those of the enclosing steps
	flow bool   // whether it is inside brackets
}

// wordSite is a key that has a newer spelling.
type wordSite struct {
	key   *yaml.Node
	newer string
}

func sitesOf(root *yaml.Node) *sites {
	s := &sites{}
	top := root
	if top.Kind == yaml.DocumentNode && len(top.Content) > 0 {
		top = top.Content[0]
	}
	keys := yamltree.KeyValues(top)
	flow := inBrackets(top)
	for _, entry := range sequenceItems(keys["workbook"]) {
		s.visitCall(entry, "workbook entry")
		s.visitInline(entry, pathTo(workbookPath, yamltree.KeyValues(entry)["name"]), flow || inBrackets(keys["workbook"]))
	}
	s.visitWorkflow(keys["workflow"], "", flow)
	s.visitNotices(keys, flow)
	return s
}

// workbookPath precedes the names of workbook entries; no step has that name.
const workbookPath = "workbook:"

func pathTo(outer string, name *yaml.Node) string {
	if name == nil {
		return outer + "/"
	}
	return outer + "/" + name.Value
}

func (s *sites) visitWorkflow(workflow *yaml.Node, path string, flow bool) {
	for _, step := range sequenceItems(workflow) {
		s.visitStep(step, path, flow || inBrackets(workflow))
	}
}

// visitInline visits the steps of the inline playbook of a call.
func (s *sites) visitInline(call *yaml.Node, path string, flow bool) {
	keys := yamltree.KeyValues(call)
	if call.Kind != yaml.MappingNode || !playbook.TraitsOf(literalTool(keys)).Plays {
		return
	}
	flow = flow || inBrackets(call)
	s.visitWorkflow(keys[playbook.FieldWorkflow], path, flow)
	if tool := groupOf(keys); tool != nil {
		s.visitWorkflow(yamltree.KeyValues(tool)[playbook.FieldWorkflow], path, flow || inBrackets(tool))
	}
}

func inBrackets(n *yaml.Node) bool { return n != nil && n.Style&yaml.FlowStyle != 0 }

func sequenceItems(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

func (s *sites) visitStep(step *yaml.Node, outer string, flow bool) {
	if step.Kind != yaml.MappingNode {
		return
	}
	flow = flow || inBrackets(step)
	s.visitCall(step, "step")
	keys := yamltree.KeyValues(step)
	path := pathTo(outer, keys["step"])
	s.steps = append(s.steps, stepSite{step, path, flow})
	s.requestsOf(keys, flow)
	if tool := groupOf(keys); tool != nil {
		s.requestsOf(yamltree.KeyValues(tool), flow || inBrackets(tool))
	}
	s.visitInline(step, path, flow)
	s.visitRetry(step, literalTool(keys), flow)
	s.visitSink(sinkNode(step), flow)
	s.visitNotices(keys, flow)
	if loop := keys["loop"]; loop != nil {
		s.visitRenamed(loop, "loop")
		s.visitSink(sinkNode(loop), flow || inBrackets(loop))
	}
}

// visitNotices visits the notices of a step or of the playbook.
func (s *sites) visitNotices(words map[string]*yaml.Node, flow bool) {
	for _, word := range []string{"on_success", "on_failure", "notify"} {
		value := words[word]
		notices := sequenceItems(value)
		if value != nil && value.Kind == yaml.MappingNode {
			notices = []*yaml.Node{value}
		}
		for _, notice := range notices {
			s.visitRequest(notice, flow || inBrackets(value))
			s.visitCall(notice, "notice")
			if notice.Kind == yaml.MappingNode {
				s.visitRetry(notice, cmp.Or(literalTool(yamltree.KeyValues(notice)), playbook.NoticeTool), flow || inBrackets(value) || inBrackets(notice))
			}
		}
	}
}

// requestsOf visits the requests among the fields of a call.
func (s *sites) requestsOf(fields map[string]*yaml.Node, flow bool) {
	for _, name := range playbook.RequestFields {
		if request := fields[name]; request != nil {
			s.visitRequest(request, flow)
		}
	}
}

func (s *sites) visitRequest(n *yaml.Node, flow bool) {
	if newer, kind := playbook.OlderRequest(n); newer != nil {
		s.requests = append(s.requests, requestSite{node: n, newer: newer, kind: kind, flow: flow || inBrackets(n)})
	}
}

// sinkNode returns the sink in a map, in either spelling; nil if it has none.
func sinkNode(n *yaml.Node) *yaml.Node {
	if at := indexOfSink(n); at >= 0 {
		return n.Content[at+1]
	}
	return nil
}

// indexOfSink returns the index of a sink's key in the content of a map, -1 if there is none.
func indexOfSink(n *yaml.Node) int {
	if n.Kind != yaml.MappingNode {
		return -1
	}
	return max(yamltree.IndexOf(n, "sink"), yamltree.IndexOf(n, "save"))
}

func (s *sites) visitSink(sink *yaml.Node, flow bool) {
	if sink == nil || sink.Kind != yaml.MappingNode {
		return
	}
	flow = flow || inBrackets(sink)
	s.visitCall(sink, "sink")
	s.visitRetry(sink, literalTool(yamltree.KeyValues(sink)), flow)
}

// literalTool returns the literal tool of a call, in either spelling.
func literalTool(keys map[string]*yaml.Node) string {
	tool := keys["tool"]
	if tool == nil {
		tool = keys["type"]
	}
	if tool != nil && tool.Kind == yaml.MappingNode {
		inner := yamltree.KeyValues(tool)
		if tool = inner["kind"]; tool == nil {
			tool = inner["type"]
		}
	}
	if tool == nil || tool.Kind != yaml.ScalarNode {
		return ""
	}
	return tool.Value
}

// visitRetry records the retry of a step or sink, and visits its policies.
func (s *sites) visitRetry(owner *yaml.Node, tool string, flow bool) {
	for i := 0; i+1 < len(owner.Content); i += 2 {
		if owner.Kind != yaml.MappingNode || owner.Content[i].Value != "retry" {
			continue
		}
		value := owner.Content[i+1]
		s.retries = append(s.retries, retrySite{
			parent: owner, at: i + 1, key: owner.Content[i], value: value, tool: tool, flow: flow,
		})
		flow := flow || inBrackets(value)
		for _, policy := range sequenceItems(value) {
			s.visitThen(yamltree.KeyValues(policy)["then"], flow || inBrackets(policy))
		}
		if value.Kind == yaml.MappingNode {
			s.visitThen(yamltree.KeyValues(value)["on_success"], flow)
		}
	}
}

// visitThen visits the content of a policy's then, or of on_success.
func (s *sites) visitThen(then *yaml.Node, flow bool) {
	if then == nil || then.Kind != yaml.MappingNode {
		return
	}
	flow = flow || inBrackets(then)
	keys := yamltree.KeyValues(then)
	s.visitRenamed(then, "then")
	s.visitSink(sinkNode(then), flow)
	for _, word := range []string{"per_iteration", "per_page"} {
		if pages := keys[word]; pages != nil {
			s.visitRenamed(pages, "per_iteration")
			s.visitSink(sinkNode(pages), flow || inBrackets(pages))
		}
	}
	if next := keys["next_call"]; next != nil {
		s.visitRenamed(next, "next_call")
	}
}

// visitCall records the older words of a call, including one grouped under tool.
func (s *sites) visitCall(n *yaml.Node, section string) {
	if n.Kind != yaml.MappingNode {
		return
	}
	s.visitRenamed(n, section)
	keys := yamltree.KeyValues(n)
	if tool := groupOf(keys); tool != nil {
		s.visitRenamed(tool, "tool")
	}
}

// groupOf returns the map that groups a call under its tool, in either spelling; nil for none.
func groupOf(keys map[string]*yaml.Node) *yaml.Node {
	return lists.First([]*yaml.Node{keys["tool"], keys["type"]}, func(tool *yaml.Node) bool { return tool != nil && tool.Kind == yaml.MappingNode })
}

func (s *sites) visitRenamed(n *yaml.Node, section string) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for key := range yamltree.Pairs(n) {
		if newer := playbook.CurrentSpelling(section, key.Value); newer != "" && newer != key.Value {
			s.words = append(s.words, wordSite{key, newer})
		}
	}
}

// flowList sets the style of the list to one line, for a step that is in brackets.
func flowList(list *yaml.Node) {
	list.Style = yaml.FlowStyle
	for _, inner := range list.Content {
		flowList(inner)
	}
	if list.Kind == yaml.ScalarNode {
		list.Style = 0
		if strings.ContainsAny(list.Value, "{}[],:#\"'") {
			list.Style = yamltree.QuoteStyle(list.Value)
		}
	}
}
