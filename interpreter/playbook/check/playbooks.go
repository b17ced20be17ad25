package check

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// caller describes what a called playbook receives from its caller.
type caller struct {
	outer *checker
	call  playbook.CallAt
	// open says that the received names are unknown here, because they come from one template. The called run
	// checks them itself.
	open bool
}

// innerCheckers returns checkers for the playbooks that calls of this one contain.
func (c *checker) innerCheckers() []*checker {
	var inner []*checker
	for _, call := range c.pb.AllCalls() {
		if call.Action.Inline == nil {
			continue
		}
		inner = append(inner, newChecker(call.Action.Inline, c.tools, c.childOptions(call)))
	}
	return inner
}

// childOptions returns the options for checking a playbook that a call runs.
func (c *checker) childOptions(call playbook.CallAt) Options {
	options := Options{Workload: map[string]any{}, Limits: c.options.Limits, Files: c.options.Files}
	options.caller = &caller{outer: c, call: call}
	if node := call.Action.Field(playbook.FieldWorkload); node != nil {
		options.caller.open = node.Template != nil
		for _, entry := range node.Entries {
			options.Workload[entry.Key] = entry.Value.Value
		}
	}
	return options
}

// checkPlaybooks checks the calls that run other playbooks, and the files that they name.
func checkPlaybooks(c *checker) {
	for _, call := range c.pb.AllCalls() {
		if playbook.TraitsOf(c.toolOf(call.Action)).Plays && call.Sink == nil {
			checkPlaybookCall(c, call)
		}
	}
}

// checkPlaybookCall checks one call, and the file that it names.
func checkPlaybookCall(c *checker, call playbook.CallAt) {
	action := call.Action
	if action.Tool.Template != nil {
		c.Errorf(action.Tool.Pos, codeUnknownTool, "tool: %s must not come from a template", playbook.PlaybookTool)
		return
	}
	checkPlaybookWords(c, call)
	places := lists.Filter([]string{playbook.FieldWorkflow, playbook.FieldPath, playbook.FieldName}, func(word string) bool { return hasField(action, word) })
	if len(places) > 1 {
		c.Errorf(startOf(action), codeCalledPlaybook, "%s has %s; a call runs a single playbook, so keep one of them", callName(call), playbook.JoinNames(places))
		return
	}
	if !checkCalledNames(c, call) {
		return
	}
	switch {
	case len(places) == 1 && places[0] != playbook.FieldWorkflow:
		checkFile(c, call, action.Field(places[0]))
	case len(places) == 1:
		checkCalledPartition(c, call, startOf(action), nil)
		checkReplacingChild(c, call, action.Inline)
	}
}

// checkCalledNames reports a name with a template without `names`, the list of names that it may give.
func checkCalledNames(c *checker, call playbook.CallAt) bool {
	name, names := call.Action.Field(playbook.FieldName), call.Action.Field(playbook.FieldNames)
	templated := name != nil && name.Template != nil
	switch {
	case templated && names == nil:
		c.Errorf(name.Pos, codeCalledPlaybook, "a name with a template needs names, a list of the playbooks that it may return, for example names: [report, export]")
		return false
	case names != nil && !templated:
		c.Errorf(names.Pos, codeCalledPlaybook, "names lists what a template in name may return, and name has no template; remove names")
	case names != nil:
		for _, one := range call.Action.CalledNames() {
			if _, err := playbook.PlaybookFileName(one); err != nil {
				c.Errorf(names.Pos, codeCalledPlaybook, "%s", err)
			}
		}
	}
	return true
}

// checkPlaybookWords reports words that have no meaning for a separate run.
func checkPlaybookWords(c *checker, call playbook.CallAt) {
	action := call.Action
	refuse := func(pos source.Position, word, instead string) {
		c.Errorf(pos, codeCalledPlaybook, "%s runs another playbook and cannot have %s; %s", callName(call), word, instead)
	}
	if action.Auth != nil {
		refuse(action.Auth.Pos, "auth", "its steps have their own connections")
	}
	if action.RateLimit != nil {
		refuse(action.RateLimit.Pos, "rate_limit", "its steps have their own limits")
	}
	if action.Idempotency != "" {
		refuse(startOf(action), "idempotency", "its steps have their own keys")
	}
	if call.Step != nil && call.Step.Secret {
		refuse(call.Step.SecretPos, "secret", "its steps may be secret")
	}
	if wait := action.Field(playbook.FieldWait); wait != nil && wait.Value == false && action.Timeout > 0 {
		c.Warnf(wait.Pos, codeNoEffect, "timeout has no effect beside wait: false; set a timeout in the other playbook")
	}
}

// checkFile checks the file of the playbook that a call names.
func checkFile(c *checker, call playbook.CallAt, node *playbook.Node) {
	files := c.options.Files
	if files == nil {
		return
	}
	name, ok := c.calledName(call, node)
	if !ok {
		return
	}
	file, err := c.pb.CalledFile(call.Action, name)
	if err != nil {
		c.Errorf(node.Pos, codeCalledPlaybook, "%s", err)
		return
	}
	options := c.childOptions(call)
	key := file + "\x00" + fmt.Sprint(hasField(call.Action, playbook.FieldPartition)) + "\x00" + strings.Join(slices.Sorted(maps.Keys(options.Workload)), "\x00") + fmt.Sprint(options.caller.open)
	if called, checked := files.checked[key]; checked {
		checkReplacingChild(c, call, called)
		return
	}
	files.checked[key] = nil
	text, err := files.readText(file)
	switch {
	case errors.Is(err, ErrElsewhere):
		return
	case err != nil:
		c.Errorf(node.Pos, codeCalledPlaybook, "%s", err)
		return
	}
	called, found := Validate(source.NewFile(file, []byte(text)), c.tools, options)
	problems := found.Errors()
	if len(problems) == 0 {
		files.checked[key] = called
		checkCalledPartition(c, call, node.Pos, called)
		checkReplacingChild(c, call, called)
		return
	}
	more := ""
	if n := len(problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	c.Errorf(node.Pos, codeCalledPlaybook, "the named playbook is invalid: %s%s", problems[0], more)
}

// checkCalledPartition reports a missing partition of a call, or one that the called playbook does not have. called
// is nil for inline steps.
func checkCalledPartition(c *checker, call playbook.CallAt, pos source.Position, called *playbook.Playbook) {
	given := call.Action.Field(playbook.FieldPartition)
	has := called != nil && called.Partitions != nil
	switch {
	case given != nil && !has:
		c.Errorf(given.Pos, codeCalledPlaybook, "the playbook that %s runs has no partitions; remove partition", callName(call))
	case given == nil && has && called.Partitions.IsList():
		c.Errorf(pos, codeCalledPlaybook, "the named playbook has a list of partitions, so its run needs one; add for example partition: %q",
			called.Partitions.FirstKey())
	}
}

// calledName returns the name in a call, "" for a path. It returns false if the name is already reported, or only
// known in the run.
func (c *checker) calledName(call playbook.CallAt, node *playbook.Node) (string, bool) {
	literal := node == call.Action.Field(playbook.FieldPath) || node.Template == nil
	if literal {
		text, isText := node.Value.(string)
		return text, isText && node.IsConstant()
	}
	if c.namesOutside(node) {
		c.Errorf(node.Pos, codeUnavailableName, "name may only use the workload, because the playbook is looked up before the run starts")
		return "", false
	}
	if c.options.caller != nil || c.options.Open {
		return "", false
	}
	value, err := node.Render(c.workloadScope(), c.newBudget())
	if err != nil {
		c.Errorf(node.Pos, codeCalledPlaybook, "name cannot be evaluated: %s", err)
		return "", false
	}
	name, isText := value.(string)
	if !isText {
		c.Errorf(node.Pos, codeCalledPlaybook, "name must be the name of a playbook, but with this workload it is %s", playbook.DescribeValue(value))
	}
	return name, isText
}

// workloadHint returns a hint for a name that an enclosing playbook has, "" for others.
func (c *checker) workloadHint(name string) string {
	first, around := c.options.caller, ""
	for in := first; in != nil && in.call.Action.Inline == c.pb; in = in.outer.options.caller {
		if slices.Contains(in.outer.namesAt(in.call.StepSpot), name) {
			return fmt.Sprintf(": the steps of this workflow see each other and the values in workload; pass it with workload: {%s: \"{{ %s }}\"} in %s%s",
				name, name, callName(first.call), around)
		}
		c, around = in.outer, ", and in the steps around it"
	}
	return ""
}
