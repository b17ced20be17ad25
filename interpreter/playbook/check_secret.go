package playbook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/source"
)

// checkSecret checks that no more than fields of later calls use the result of a
// secret step: docs/concepts/security.md#secret-results.
func checkSecret(c *checker) {
	for _, step := range c.pb.Steps {
		if step.Secret {
			c.checkSecretStep(step)
		}
	}
	if !c.pb.HasSecrets() {
		return
	}
	c.checkShadowed()
	allowed := c.secretPlaces()
	check := func(at site, top, leaf *Node, ref expression.Ref) {
		pos := c.place(leaf, ref.Offset)
		switch names := c.pb.secretsOf(ref); {
		case len(names) > 0 && anyStep(ref):
			c.errorf(pos.at(), codeSecretUse,
				"steps without the name of a step would hold the secret result of %q; write steps.NAME", names[0])
		case len(names) > 0 && !allowed[top]:
			c.errorf(pos.at(), codeSecretUse, "the result of step %q is secret and cannot be used %s; %s",
				names[0], c.spotName(at), c.secretHint(at))
		}
		c.checkOwnSecret(at, pos, ref)
		c.checkSecretArgs(at, pos, ref)
	}
	for _, at := range c.pb.values() {
		for leaf := range at.node.Templates() {
			for _, ref := range leaf.Template.Refs() {
				check(at.site, at.node, leaf, ref)
			}
		}
	}
	c.statementRefs(func(at site, node *Node, ref expression.Ref) { check(at, node, node, ref) })
	c.checkSecretForms()
}

// checkSecretStep refuses what would need to look at the result.
func (c *checker) checkSecretStep(step *Step) {
	refuse := func(pos source.Position, what, instead string) {
		c.errorf(pos, codeSecretStep, "step %q is secret and cannot have %s; %s", step.Name, what, instead)
	}
	if step.Action == nil {
		c.errorf(step.SecretPos, codeSecretStep, "step %q is secret and has no tool; a step that only routes has no result", step.Name)
		return
	}
	if step.Loop != nil {
		refuse(step.Loop.Pos, "a loop", "a later step may loop and use the result in each iteration")
	}
	if step.Sink != nil {
		refuse(step.Sink.Pos, "a sink", "its result is for fields of later calls")
	}
	for _, policy := range step.Retry {
		then := policy.Then
		has := map[string]bool{
			"sink": then.Sink != nil, "per_iteration": then.PerIteration != nil, "next_call": then.NextCall != nil,
			"collect": then.Collect != nil, "result": then.Result != nil, "fail": then.Fail != nil,
		}
		for _, word := range slices.Sorted(maps.Keys(has)) {
			if has[word] {
				refuse(then.Words.at(word, then.Pos), word, "its policies repeat the attempt and no more")
			}
		}
	}
}

// checkOwnSecret refuses the other names of the result in the step itself.
func (c *checker) checkOwnSecret(at site, pos place, ref expression.Ref) {
	if at.step == nil || !at.step.Secret || at.spot&atAfter == 0 {
		return
	}
	own := slices.Contains([]string{"response", "page", DefaultInto, "result", dataWord}, ref.Root)
	if ref.Root == "this" {
		members := ConstantMembers(ref.Path)
		own = len(members) == 0 || members[0] == "data"
	}
	if own {
		c.errorf(pos.at(), codeSecretUse, "%q holds the result of step %q, which is secret; "+
			"error, this.status and this.meta.status can be used", ref.Root, at.step.Name)
	}
}

// checkSecretArgs refuses to take secret args of a step from args: what they hold
// is not known before the attempt.
func (c *checker) checkSecretArgs(at site, pos place, ref expression.Ref) {
	if ref.Root != "args" || at.step == nil && at.action == nil {
		return
	}
	actions := []*Action{at.action}
	if at.step != nil && at.step.Action != nil {
		actions = append(actions, at.step.Action)
		actions = append(actions, c.pb.workbookEntry(at.step.Action))
	}
	for _, action := range actions {
		if action == nil || action.Args == nil {
			continue
		}
		members := ConstantMembers(ref.Path)
		args := action.Args
		if len(members) > 0 && args.Get(members[0]) != nil {
			args = args.Get(members[0])
		} else if len(members) > 0 && args.Entries != nil {
			continue
		}
		if names := c.pb.SecretsNamed(args.Refs()); len(names) > 0 {
			c.errorf(pos.at(), codeSecretUse, "these args hold the result of step %q, which is secret; name %s itself here, if this may use it",
				names[0], names[0])
			return
		}
	}
}

// secretPlaces are the values that may use secret results: fields of calls by
// tools that take them, other than those of sinks.
func (c *checker) secretPlaces() map[*Node]bool {
	places := map[*Node]bool{}
	for _, call := range c.pb.actions() {
		spec, known := c.tools.Spec(c.toolOf(call.action))
		if !known || call.spot&(atField|atWorkbook) == 0 {
			continue
		}
		for _, name := range spec.Secrets {
			if field := call.action.Field(name); field != nil {
				places[field] = true
			}
			if name == argsWord && call.action.Args != nil {
				places[call.action.Args] = true
			}
		}
	}
	for _, step := range c.pb.Steps { // the args of a call by the workbook are those of its entry
		if step.Action == nil || step.Action.Args == nil {
			continue
		}
		entry := c.pb.workbookEntry(step.Action)
		if entry == nil {
			continue
		}
		if spec, known := c.tools.Spec(c.toolOf(entry)); known && slices.Contains(spec.Secrets, argsWord) {
			places[step.Action.Args] = true
		}
	}
	return places
}

const argsWord = "args"

// spotName says in words where a value is.
func (c *checker) spotName(at site) string {
	switch at.spot {
	case atToolName:
		return "in tool"
	case atConcurrency:
		return "in concurrency"
	case atOutput:
		return "in output"
	case atCollection:
		return "in the collection of a loop"
	case atWhen:
		return "in the conditions of retry"
	case atThen:
		return "in then"
	case atThenSink, atLoopSink, atStepSink:
		return "in a sink"
	case atStepNotice, atRunNotice:
		return "in a notice"
	case atVars:
		return "in vars"
	case atNext:
		return "in next"
	}
	if at.field != "" {
		return fmt.Sprintf("in %s of tool %s", at.field, c.toolOf(at.action))
	}
	return "in args, auth or rate_limit of this call"
}

// secretHint says what may use a secret.
func (c *checker) secretHint(at site) string {
	if at.spot&(atField|atWorkbook) != 0 {
		if spec, known := c.tools.Spec(c.toolOf(at.action)); known && len(spec.Secrets) > 0 {
			return fmt.Sprintf("%s takes secrets in %s", spec.Name, strings.Join(spec.Secrets, ", "))
		}
		return "this tool takes no secrets"
	}
	return "it is for the fields of later calls, such as headers: {Authorization: \"Bearer {{ NAME.access_token }}\"}"
}

// checkSecretForms refuses forms of fields that could not be changed key by key
// while the secret is not known.
func (c *checker) checkSecretForms() {
	for _, call := range c.pb.actions() {
		if call.spot&(atField|atWorkbook) == 0 {
			continue
		}
		values := map[string]*Node{argsWord: call.action.Args}
		for _, name := range []string{"headers", "params"} { // next_call changes them
			values[name] = call.action.Field(name)
		}
		for _, name := range []string{argsWord, "headers", "params"} {
			if node := values[name]; node != nil && node.Template != nil && len(c.pb.SecretsNamed(node.Refs())) > 0 {
				c.errorf(node.Pos, codeSecretUse, "%s that use a secret result must be written as a map, with a value per key", name)
			}
		}
		for _, url := range call.action.urls() {
			c.checkSecretURL(call, url)
		}
	}
}

// checkSecretURL refuses a secret host, and pages that follow a secret URL.
func (c *checker) checkSecretURL(call actionAt, node *Node) {
	if node.Template == nil {
		return
	}
	before := ""
	for _, segment := range node.Template.Segments() {
		if segment.Program == nil {
			before += segment.Text
			continue
		}
		if names := c.pb.SecretsNamed(segment.Program.Refs()); len(names) > 0 {
			if at := placeInURL(before); at == urlHead || at == urlHost {
				c.errorf(node.Position(segment.Start), codeSecretUse,
					"the result of step %q is secret and cannot be the host of a url; it may follow the host", names[0])
			}
			c.checkSecretPages(call, node)
			return
		}
		if before == "" {
			before = "http://host"
			continue
		}
		before += "x"
	}
}

func (c *checker) checkSecretPages(call actionAt, node *Node) {
	if call.step == nil {
		return
	}
	for next := range call.step.nextCalls() {
		if next.URL != nil {
			c.errorf(next.URL.Pos, codeSecretUse,
				"next_call.url cannot follow a url that uses a secret result (line %d); put the secret into headers or params", node.Pos.Line)
		}
	}
}

// checkShadowed refuses elements and into that have the name of a secret step: one
// name must not mean a secret here and something else there.
func (c *checker) checkShadowed() {
	refuse := func(name string, pos source.Position) {
		if slices.Contains(c.pb.secrets, name) {
			c.errorf(pos, codeSecretUse, "%q is the name of a step whose result is secret; choose another", name)
		}
	}
	for _, step := range c.pb.Steps {
		if step.Loop != nil {
			refuse(step.Loop.Element, elementPos(step.Loop))
		}
		for collect := range step.Collects() {
			refuse(collect.Into, collect.Pos)
		}
	}
}
