package check

import (
	"errors"
	"maps"
	"slices"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// formerTools are tools of older playbooks that this language replaces, with what to write instead.
var formerTools = map[string]string{
	"duckdb":    "tool: sqlite or tool: postgres runs SQL, and tool: file reads and writes csv and jsonl",
	"end":       "a run ends after a step without next; remove the tool, or the step",
	"event":     eventLogHint,
	"event_log": eventLogHint,
	"iterator":  "write the tool of its task on the step itself, and beside it loop: {in: …, iterator: …} with the collection and the element",
	"noop":      "remove the tool: a step without one only routes",
	"save":      "add a sink to the step whose result should be written: sink: {tool: postgres, …}",
	"start":     "remove the tool: a run starts at the step named start, or at the first",
}

const eventLogHint = "every event is in Temporal's history; remove this"

// checkTools checks every call against the spec of its tool.
func checkTools(c *checker) {
	for _, call := range c.pb.AllCalls() {
		if call.Action.Tool == nil {
			misspeltTool(c, call)
			continue
		}
		name := c.toolOf(call.Action)
		switch name {
		case "":
			checkToolTemplate(c, call.Action)
		case playbook.WorkbookTool:
			checkWorkbookCall(c, call)
		default:
			checkCall(c, call, name)
		}
	}
}

// misspeltTool reports a key that was meant to be tool. Decoding reports a missing tool only if no key resembles
// it.
func misspeltTool(c *checker, call playbook.CallAt) {
	for _, entry := range call.Action.Fields {
		if near := expression.Suggest(entry.Key, []string{"tool", "kind"}); near != "" {
			c.Errorf(entry.KeyPos, playbook.CodeUnknownKey, "unknown key %q in %s; did you mean %q?", entry.Key, callName(call), near)
			c.AddFix(entry.Key, expression.SuggestCertain(entry.Key, []string{"tool", "kind"}))
		}
	}
}

// toolOf returns the name of an action's tool. A template over the workload is evaluated; "" if that is not
// possible.
func (c *checker) toolOf(action *playbook.Action) string {
	if name, ok := c.resolved[action]; ok {
		return name
	}
	name, ok := action.ToolName()
	if !ok && action.Tool != nil && action.Tool.Template != nil && c.options.caller == nil {
		value, err := action.Tool.Render(c.workloadScope(), c.newBudget())
		if err == nil {
			name, _ = value.(string)
		}
	}
	c.resolved[action] = name
	return name
}

// workloadScope has workload and its keys, which is all that a tool's name may use.
func (c *checker) workloadScope() expression.MapScope {
	scope := expression.MapScope{}
	maps.Copy(scope, c.workload)
	scope["workload"] = c.workload
	return scope
}

func (c *checker) newBudget() *expression.Budget {
	return expression.NewBudget(expression.DecisionLimits, time.Time{})
}

func checkToolTemplate(c *checker, action *playbook.Action) {
	if action.Tool.Template == nil || c.options.caller != nil || c.options.Open {
		return // decoding has said so, or the run of its own will
	}
	value, err := action.Tool.Render(c.workloadScope(), c.newBudget())
	switch {
	case err != nil:
		pos := action.Tool.Pos
		if failed, ok := errors.AsType[*playbook.EvalError](err); ok {
			pos = failed.Pos
		}
		c.Errorf(pos, codeUnknownTool, "the tool cannot be evaluated: %s", err)
	case c.namesOutside(action.Tool):
		// names.go reports the wrong name.
	default:
		c.Errorf(action.Tool.Pos, codeUnknownTool, "tool must be the name of a tool, but with this workload it is %s; the tools are %s",
			playbook.DescribeValue(value), playbook.JoinNames(c.toolNames()))
	}
}

// namesOutside reports whether a tool's template uses more than the workload.
func (c *checker) namesOutside(node *playbook.Node) bool {
	return slices.ContainsFunc(node.Refs(), func(ref expression.Ref) bool {
		_, known := c.workload[ref.Root]
		if w, isWord := findWord(ref.Root); c.options.Open && (!isWord || w.row) && c.pb.Step(ref.Root) == nil {
			return false // a run may provide it
		}
		return !known && ref.Root != "workload"
	})
}

// toolNames returns all values of tool, sorted.
func (c *checker) toolNames() []string {
	names := append([]string{playbook.WorkbookTool}, c.tools.Names()...)
	slices.Sort(names)
	return slices.Compact(names)
}

func checkWorkbookCall(c *checker, call playbook.CallAt) {
	action := call.Action
	switch {
	case call.Sink != nil:
		c.Errorf(action.Tool.Pos, codeSinkNotWritable, "%s cannot call the workbook; use a tool: %s", writingCallName(call), playbook.JoinNames(c.writerTools()))
		return
	case call.Spot == playbook.AtWorkbook:
		c.Errorf(action.Tool.Pos, codeUnknownTool, "an entry of the workbook cannot call the workbook; use a tool: %s", playbook.JoinNames(c.tools.Names()))
		return
	}
	checkFields(c, call, workbookSpec)
	name, ok := action.EntryName()
	if !ok {
		return
	}
	if c.pb.Action(name) != nil {
		return
	}
	var names []string
	for _, entry := range c.pb.Workbook {
		names = lists.AddUnique(names, entry.Name)
	}
	switch near := expression.Suggest(name, names); {
	case near != "":
		c.Errorf(action.Field("name").Pos, codeUnknownEntry, "the workbook has no entry %q; did you mean %q?", name, near)
		c.AddFix(name, expression.SuggestCertain(name, names))
	case len(names) == 0:
		c.Errorf(action.Field("name").Pos, codeUnknownEntry, "the workbook has no entry %q: the playbook has no workbook; add one with - name: %s and its tool", name, name)
	default:
		c.Errorf(action.Field("name").Pos, codeUnknownEntry, "the workbook has no entry %q; its entries are %s", name, playbook.JoinNames(names))
	}
}

var workbookSpec = playbook.ToolSpec{
	Name:   playbook.WorkbookTool,
	Fields: []playbook.Field{{Name: "name", Kind: playbook.KindLiteral, Required: true}},
}

func (c *checker) writerTools() []string {
	return lists.Filter(c.tools.Names(), func(name string) bool {
		spec, ok := c.tools.Spec(name)
		return ok && spec.Writes
	})
}

func checkCall(c *checker, call playbook.CallAt, name string) {
	pos := call.Action.Tool.Pos
	spec, ok := c.tools.Spec(name)
	switch {
	case !ok && formerTools[name] != "":
		c.Errorf(pos, codeUnknownTool, "there is no tool %q; %s", name, formerTools[name])
		return
	case !ok:
		if write := playbook.ForeignIn(foreignTools, name, 0, nil).Text(); write != "" {
			c.Errorf(pos, codeUnknownTool, "there is no tool %q; %s", name, write)
			return
		}
		if near := expression.Suggest(name, c.toolNames()); near != "" {
			c.Errorf(pos, codeUnknownTool, "there is no tool %q; did you mean %q?", name, near)
			c.AddFix(name, expression.SuggestCertain(name, c.toolNames()))
			return
		}
		c.Errorf(pos, codeUnknownTool, "there is no tool %q; the tools are %s", name, playbook.JoinNames(c.toolNames()))
		return
	case call.Sink != nil && !spec.Writes:
		c.Errorf(pos, codeSinkNotWritable, "the tool %q cannot write, so it cannot be %s; tools that write are %s", name, writingCallName(call), playbook.JoinNames(c.writerTools()))
		return
	case call.Sink == nil && spec.SinkOnly:
		c.Errorf(pos, codeSinkOnly, "the tool %q only writes; use it in a sink", name)
		return
	}
	checkFields(c, call, spec)
	if playbook.TraitsOf(name).IntoFile {
		if call.Sink != nil {
			checkWrittenFile(c, call.Action)
		} else {
			checkReadFile(c, call.Action)
			checkReadBatch(c, call)
		}
	}
	checkAwaits(c, call, name)
}

// checkAwaits checks a call whose attempts are answered from outside.
func checkAwaits(c *checker, call playbook.CallAt, name string) {
	if !playbook.TraitsOf(name).Awaits {
		return
	}
	if call.Step != nil && call.Step.Secret {
		c.Errorf(call.Step.SecretPos, codeSecretStep,
			"step %q is secret, but its result comes from outside unencrypted; fetch the secret in a separate step", call.Step.Name)
	}
	if playbook.TraitsOf(name).AsksPeople {
		checkApproval(c, call.Action)
	}
}

// checkApproval checks the literal parts of an approval.
func checkApproval(c *checker, action *playbook.Action) {
	known := map[string]any{}
	for _, entry := range action.Fields {
		if entry.Value.IsConstant() {
			known[entry.Key] = entry.Value.Value
		}
	}
	if options := action.Field("options"); options != nil && !options.IsConstant() {
		delete(known, "on_timeout") // it names one of them
	}
	if form := action.Field("form"); form != nil && form.Kind == playbook.MapNode {
		known["form"] = checkForm(c, form)
	}
	for {
		_, failure := playbook.ParseApproval(known)
		err, isAbout := errors.AsType[*playbook.ApprovalError](failure)
		if !isAbout {
			return
		}
		field := action.Field(err.Field)
		if delete(known, err.Field); err.Field == "options" {
			delete(known, "on_timeout")
		}
		switch {
		case err.Item >= 0 && err.Item < len(field.Items):
			c.Errorf(field.Items[err.Item].Pos, codeFieldType, "the approval cannot be requested: %s", err)
		case err.Field == "options" && field.Kind != playbook.ListNode, err.Field == "form" && field.Kind != playbook.MapNode: // checkField reports it
		default:
			c.Errorf(field.Pos, codeFieldType, "the approval cannot be requested: %s", err)
		}
	}
}

// checkForm reports the invalid fields of a form, each at its line. It returns the other fields; one with a
// template counts as a text.
func checkForm(c *checker, form *playbook.Node) map[string]any {
	good := make(map[string]any, len(form.Entries))
	for _, entry := range form.Entries {
		var described any = "text"
		if entry.Value.IsConstant() {
			described = entry.Value.Value
		}
		if _, err := playbook.ParseApprovalItem(entry.Key, described); err != nil {
			c.Errorf(entry.KeyPos, codeFieldType, "the approval cannot be requested: form.%s: %s", entry.Key, err)
			continue
		}
		good[entry.Key] = described
	}
	return good
}

// startOf returns where an action begins: its tool, otherwise the action itself.
func startOf(a *playbook.Action) source.Position {
	if a.Tool != nil {
		return a.Tool.Pos
	}
	return a.Pos
}
