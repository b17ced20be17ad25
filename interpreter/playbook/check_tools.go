package playbook

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// formerTools are tools that older playbooks name and this language says
// otherwise, with what to write instead.
var formerTools = map[string]string{
	"duckdb":    "tool: sqlite or tool: postgres runs SQL, and tool: file reads and writes csv and jsonl",
	"end":       "a run ends by itself where a step has no next; leave the tool out, or the step",
	"event":     eventLogHint,
	"event_log": eventLogHint,
	"iterator":  "write the tool of its task on the step itself, and beside it loop: {in: …, iterator: …} with the collection and the element",
	"noop":      "leave the tool out: a step without one only routes",
	"save":      "write a sink on the step whose result is to be written: sink: {tool: postgres, …}",
	"start":     "leave the tool out: a run begins at the step named start, or at the first",
}

const eventLogHint = "every event is in Temporal's history anyway; leave this out"

// checkTools checks every call against the spec of its tool.
func checkTools(c *checker) {
	for _, call := range c.pb.actions() {
		if call.action.Tool == nil {
			c.misspeltTool(call)
			continue
		}
		name := c.toolOf(call.action)
		switch name {
		case "":
			c.checkToolTemplate(call.action)
		case WorkbookTool:
			c.checkWorkbookCall(call)
		default:
			c.checkCall(call, name)
		}
	}
}

// misspeltTool reports a key that was meant to be tool. Decoding reports a tool
// that is missing only where no key looks like it.
func (c *checker) misspeltTool(call actionAt) {
	for _, entry := range call.action.Fields {
		if near := expression.Suggest(entry.Key, []string{"tool", "kind"}); near != "" {
			c.errorf(entry.KeyPos, codeUnknownKey, "unknown key %q in %s; did you mean %q?", entry.Key, call.who(), near)
			c.offer(entry.Key, expression.Certain(entry.Key, []string{"tool", "kind"}))
		}
	}
}

// toolOf is the name of an action's tool, with a template over workload
// resolved as in the validation; "" where that does not work.
func (c *checker) toolOf(action *Action) string {
	if name, ok := c.resolved[action]; ok {
		return name
	}
	name, ok := action.ToolName()
	if !ok && action.Tool != nil && action.Tool.Template != nil && c.options.caller == nil {
		value, err := action.Tool.Render(c.workloadScope(), c.budget())
		if err == nil {
			name, _ = value.(string)
		}
	}
	c.resolved[action] = name
	return name
}

// workloadScope holds workload and its keys: all that a tool's name may use.
func (c *checker) workloadScope() expression.MapScope {
	scope := expression.MapScope{}
	maps.Copy(scope, c.workload)
	scope["workload"] = c.workload
	return scope
}

func (c *checker) budget() *expression.Budget {
	return expression.NewBudget(expression.DecisionLimits, time.Time{})
}

func (c *checker) checkToolTemplate(action *Action) {
	if action.Tool.Template == nil || c.options.caller != nil || c.options.Open {
		return // decoding has said so, or the run of its own will
	}
	value, err := action.Tool.Render(c.workloadScope(), c.budget())
	switch {
	case err != nil:
		pos := action.Tool.Pos
		if failed, ok := errors.AsType[*EvalError](err); ok {
			pos = failed.Pos
		}
		c.errorf(pos, codeUnknownTool, "the tool cannot be worked out: %s", err)
	case c.namesOutside(action.Tool):
		// check_names.go says which name is wrong.
	default:
		c.errorf(action.Tool.Pos, codeUnknownTool, "tool must give the name of a tool, but with this workload gives %s; the tools are %s",
			describe(value), listed(c.toolNames()))
	}
}

// namesOutside reports whether a tool's template uses more than the workload.
func (c *checker) namesOutside(node *Node) bool {
	return slices.ContainsFunc(node.Refs(), func(ref expression.Ref) bool {
		_, known := c.workload[ref.Root]
		if _, isWord := findWord(ref.Root); c.options.Open && !isWord && c.pb.Step(ref.Root) == nil {
			return false // a run may supply it
		}
		return !known && ref.Root != "workload"
	})
}

// toolNames are all names that tool may have, sorted.
func (c *checker) toolNames() []string {
	names := append([]string{WorkbookTool}, c.tools.Names()...)
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *checker) checkWorkbookCall(call actionAt) {
	action := call.action
	switch {
	case call.sink != nil:
		c.errorf(action.Tool.Pos, codeSinkNotWritable, "%s cannot call the workbook; name the tool itself, one of %s", call.kind(), listed(c.writers()))
		return
	case call.spot == atWorkbook:
		c.errorf(action.Tool.Pos, codeUnknownTool, "an entry of the workbook cannot call the workbook; name the tool itself, one of %s", listed(c.tools.Names()))
		return
	}
	c.checkFields(call, workbookSpec)
	name, ok := action.entryName()
	if !ok {
		return
	}
	if c.pb.Action(name) != nil {
		return
	}
	var names []string
	for _, entry := range c.pb.Workbook {
		names = lists.Add(names, entry.Name)
	}
	switch near := expression.Suggest(name, names); {
	case near != "":
		c.errorf(action.Field("name").Pos, codeUnknownEntry, "the workbook has no entry %q; did you mean %q?", name, near)
		c.offer(name, expression.Certain(name, names))
	case len(names) == 0:
		c.errorf(action.Field("name").Pos, codeUnknownEntry, "the workbook has no entry %q: the playbook has no workbook; add one with - name: %s and its tool", name, name)
	default:
		c.errorf(action.Field("name").Pos, codeUnknownEntry, "the workbook has no entry %q; its entries are %s", name, listed(names))
	}
}

var workbookSpec = ToolSpec{
	Name:   WorkbookTool,
	Fields: []Field{{Name: "name", Kind: KindLiteral, Required: true}},
}

func (c *checker) writers() []string {
	return lists.Filter(c.tools.Names(), func(name string) bool {
		spec, ok := c.tools.Spec(name)
		return ok && spec.Writes
	})
}

func (c *checker) checkCall(call actionAt, name string) {
	pos := call.action.Tool.Pos
	spec, ok := c.tools.Spec(name)
	switch {
	case !ok && formerTools[name] != "":
		c.errorf(pos, codeUnknownTool, "there is no tool %q; %s", name, formerTools[name])
		return
	case !ok:
		if write := foreignIn(foreignTools, name, 0, nil).text(); write != "" {
			c.errorf(pos, codeUnknownTool, "there is no tool %q; %s", name, write)
			return
		}
		if near := expression.Suggest(name, c.toolNames()); near != "" {
			c.errorf(pos, codeUnknownTool, "there is no tool %q; did you mean %q?", name, near)
			c.offer(name, expression.Certain(name, c.toolNames()))
			return
		}
		c.errorf(pos, codeUnknownTool, "there is no tool %q; the tools are %s", name, listed(c.toolNames()))
		return
	case call.sink != nil && !spec.Writes:
		c.errorf(pos, codeSinkNotWritable, "the tool %q cannot write, so it cannot be %s; tools that write are %s", name, call.kind(), listed(c.writers()))
		return
	case call.sink == nil && spec.SinkOnly:
		c.errorf(pos, codeSinkOnly, "the tool %q only writes; use it in a sink", name)
		return
	}
	c.checkFields(call, spec)
	c.checkAwaits(call, name)
}

// checkAwaits checks a call whose attempts are answered from outside.
func (c *checker) checkAwaits(call actionAt, name string) {
	if !TraitsOf(name).Awaits {
		return
	}
	if call.step != nil && call.step.Secret {
		c.errorf(call.step.SecretPos, codeSecretStep,
			"step %q is secret, but its result is said from outside, in clear; fetch the secret in a step of its own", call.step.Name)
	}
	if TraitsOf(name).AsksPeople {
		c.checkApproval(call.action)
	}
}

// checkApproval reads what an approval asks, as far as it is written out.
func (c *checker) checkApproval(action *Action) {
	known := map[string]any{}
	for _, entry := range action.Fields {
		if entry.Value.constant {
			known[entry.Key] = entry.Value.Value
		}
	}
	if options := action.Field("options"); options != nil && !options.constant {
		delete(known, "on_timeout") // which names one of them
	}
	if form := action.Field("form"); form != nil && form.kind == mapNode {
		known["form"] = c.checkForm(form)
	}
	for {
		_, err := parseApproval(known)
		if err == nil {
			return
		}
		field := action.Field(err.field)
		if delete(known, err.field); err.field == "options" {
			delete(known, "on_timeout")
		}
		switch {
		case err.item >= 0 && err.item < len(field.Items):
			c.errorf(field.Items[err.item].Pos, codeFieldType, "the approval cannot be requested: %s", err)
		case err.field == "options" && field.kind != listNode, err.field == "form" && field.kind != mapNode: // checkField reports it
		default:
			c.errorf(field.Pos, codeFieldType, "the approval cannot be requested: %s", err)
		}
	}
}

// checkForm reports the fields of a form that no approval can have, each in its line. It returns
// the other fields; one with a template counts as a text.
func (c *checker) checkForm(form *Node) map[string]any {
	good := make(map[string]any, len(form.Entries))
	for _, entry := range form.Entries {
		var described any = "text"
		if entry.Value.constant {
			described = entry.Value.Value
		}
		if _, err := parseItem(entry.Key, described); err != nil {
			c.errorf(entry.KeyPos, codeFieldType, "the approval cannot be requested: form.%s: %s", entry.Key, err)
			continue
		}
		good[entry.Key] = described
	}
	return good
}

// describe names a value in a message: its text if short, else its type.
func describe(v any) string {
	if s, ok := v.(string); ok && len(s) <= 40 {
		return `"` + s + `"`
	}
	name := expression.TypeName(v)
	if strings.ContainsAny(name[:1], "aeiou") {
		return "an " + name
	}
	if v == nil {
		return name
	}
	return "a " + name
}
