package playbook

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/interpreter/lists"
	"reprise/interpreter/source"
)

// caller says what a playbook that is called by another one receives.
type caller struct {
	outer *checker
	call  actionAt
	// open says that the names of what it receives are not known here: they come
	// from one template. Its own run checks them.
	open bool
}

// inner are the checkers of the playbooks that calls of this one have written out.
func (c *checker) innerCheckers() []*checker {
	var inner []*checker
	for _, call := range c.pb.actions() {
		if call.action.Inline == nil {
			continue
		}
		inner = append(inner, newChecker(call.action.Inline, c.tools, c.childOptions(call)))
	}
	return inner
}

// childOptions is what is known of a playbook that a call runs.
func (c *checker) childOptions(call actionAt) CheckOptions {
	options := CheckOptions{Workload: map[string]any{}, Limits: c.options.Limits, Files: c.options.Files}
	options.caller = &caller{outer: c, call: call}
	if node := call.action.Field(FieldWorkload); node != nil {
		options.caller.open = node.Template != nil
		for _, entry := range node.Entries {
			options.Workload[entry.Key] = entry.Value.Value
		}
	}
	return options
}

// checkPlaybooks checks the calls that run other playbooks, and the files that they
// name.
func checkPlaybooks(c *checker) {
	for _, call := range c.pb.actions() {
		if TraitsOf(c.toolOf(call.action)).Plays && call.sink == nil {
			c.checkPlaybookCall(call)
		}
	}
}

// checkPlaybookCall checks one call, and the file that it names.
func (c *checker) checkPlaybookCall(call actionAt) {
	action := call.action
	if action.Tool.Template != nil {
		c.errorf(action.Tool.Pos, codeUnknownTool, "tool: %s must be written out: a template cannot give it", PlaybookTool)
		return
	}
	c.checkPlaybookWords(call)
	places := lists.Filter([]string{FieldWorkflow, FieldPath, FieldName}, func(word string) bool { return action.has(word) })
	if len(places) > 1 {
		c.errorf(action.start(), codeCalledPlaybook, "%s has %s; a call runs one playbook, so keep one of them", call.who(), listed(places))
		return
	}
	if !c.checkCalledNames(call) {
		return
	}
	switch {
	case len(places) == 1 && places[0] != FieldWorkflow:
		c.checkFile(call, action.Field(places[0]))
	case len(places) == 1:
		c.checkCalledPartition(call, action.start(), nil)
	}
}

// checkCalledNames has a name with a template come with those that it may give.
func (c *checker) checkCalledNames(call actionAt) bool {
	name, names := call.action.Field(FieldName), call.action.Field(FieldNames)
	templated := name != nil && name.Template != nil
	switch {
	case templated && names == nil:
		c.errorf(name.Pos, codeCalledPlaybook, "a name with a template needs names, the playbooks that it may give, for example names: [report, export]")
		return false
	case names != nil && !templated:
		c.errorf(names.Pos, codeCalledPlaybook, "names are what a template in name may give, and there is none; remove names")
	case names != nil:
		for _, one := range call.action.calledNames() {
			if _, err := FileNamed(one); err != nil {
				c.errorf(names.Pos, codeCalledPlaybook, "%s", err)
			}
		}
	}
	return true
}

// checkPlaybookWords refuses words that mean nothing to a run of its own.
func (c *checker) checkPlaybookWords(call actionAt) {
	action := call.action
	refuse := func(pos source.Position, word, instead string) {
		c.errorf(pos, codeCalledPlaybook, "%s runs another playbook and cannot have %s; %s", call.who(), word, instead)
	}
	if action.Auth != nil {
		refuse(action.Auth.Pos, "auth", "its steps name their connections")
	}
	if action.RateLimit != nil {
		refuse(action.RateLimit.Pos, "rate_limit", "its steps have limits of their own")
	}
	if action.Idempotency != "" {
		refuse(action.start(), "idempotency", "its steps have keys of their own")
	}
	if call.step != nil && call.step.Secret {
		refuse(call.step.SecretPos, "secret", "its steps may be secret")
	}
	if wait := action.Field(FieldWait); wait != nil && wait.Value == false && action.Timeout > 0 {
		c.warnf(wait.Pos, codeNoEffect, "timeout has no effect beside wait: false, as nobody waits; give the playbook itself a timeout")
	}
}

// checkFile checks the playbook that a call names, in a file.
func (c *checker) checkFile(call actionAt, node *Node) {
	files := c.options.Files
	if files == nil {
		return
	}
	name, ok := c.calledName(call, node)
	if !ok {
		return
	}
	file, err := c.pb.Called(call.action, name)
	if err != nil {
		c.errorf(node.Pos, codeCalledPlaybook, "%s", err)
		return
	}
	options := c.childOptions(call)
	key := file + "\x00" + fmt.Sprint(call.action.has(FieldPartition)) + "\x00" + strings.Join(slices.Sorted(maps.Keys(options.Workload)), "\x00") + fmt.Sprint(options.caller.open)
	if files.checked[key] {
		return
	}
	files.checked[key] = true
	text, err := files.text(file)
	switch {
	case errors.Is(err, ErrElsewhere):
		return
	case err != nil:
		c.errorf(node.Pos, codeCalledPlaybook, "%s", err)
		return
	}
	called, found := Validate(source.NewFile(file, []byte(text)), c.tools, options)
	problems := found.Errors()
	if len(problems) == 0 {
		c.checkCalledPartition(call, node.Pos, called)
		return
	}
	more := ""
	if n := len(problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	c.errorf(node.Pos, codeCalledPlaybook, "the playbook that this names is not valid: %s%s", problems[0], more)
}

// checkCalledPartition has a call name a partition where that is needed, and no other one. called is
// nil for steps that are written out.
func (c *checker) checkCalledPartition(call actionAt, pos source.Position, called *Playbook) {
	given := call.action.Field(FieldPartition)
	has := called != nil && called.Partitions != nil
	switch {
	case given != nil && !has:
		c.errorf(given.Pos, codeCalledPlaybook, "the playbook that %s runs has no partitions; remove partition", call.who())
	case given == nil && has && called.Partitions.Listed():
		c.errorf(pos, codeCalledPlaybook, "the playbook that this names has a list of partitions, and its run has to be about one; write such as partition: %q",
			called.Partitions.First())
	}
}

// calledName is the name that a call gives, "" for a path. It is false where that is
// reported already, or is known in the run of the playbook alone.
func (c *checker) calledName(call actionAt, node *Node) (string, bool) {
	literal := node == call.action.Field(FieldPath) || node.Template == nil
	if literal {
		text, isText := node.Value.(string)
		return text, isText && node.Constant()
	}
	if c.namesOutside(node) {
		c.errorf(node.Pos, codeUnavailableName, "name may only use the workload: the playbook is looked up before the run starts")
		return "", false
	}
	if c.options.caller != nil || c.options.Open {
		return "", false
	}
	value, err := node.Render(c.workloadScope(), c.budget())
	if err != nil {
		c.errorf(node.Pos, codeCalledPlaybook, "name cannot be worked out: %s", err)
		return "", false
	}
	name, isText := value.(string)
	if !isText {
		c.errorf(node.Pos, codeCalledPlaybook, "name must give the name of a playbook, but with this workload gives %s", describe(value))
	}
	return name, isText
}

// workloadHint is the hint for a name that a playbook around has, "" for others.
func (c *checker) workloadHint(name string) string {
	first, around := c.options.caller, ""
	for in := first; in != nil && in.call.action.Inline == c.pb; in = in.outer.options.caller {
		if slices.Contains(in.outer.namesAt(in.call.site), name) {
			return fmt.Sprintf(": the steps of this workflow see each other and what is passed to them; pass it with workload: {%s: \"{{ %s }}\"} in %s%s",
				name, name, first.call.who(), around)
		}
		c, around = in.outer, ", and in the steps around it"
	}
	return ""
}
