package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// checkSecret checks that only fields of later calls use the result of a secret step:
// docs/concepts/security.md#secret-results.
func checkSecret(c *checker) {
	for _, step := range c.pb.Steps {
		if step.Secret {
			checkSecretStep(c, step)
		}
	}
	if !c.pb.HasSecrets() {
		return
	}
	checkShadowed(c)
	allowed := c.secretPlaces()
	check := func(at playbook.StepSpot, top, leaf *playbook.Node, ref expression.Ref) {
		pos := c.placeOf(leaf, ref.Offset)
		switch names := c.pb.SecretsOf(ref); {
		case len(names) > 0 && playbook.IsAllSteps(ref):
			c.Errorf(pos.sourcePosition(), codeSecretUse,
				"steps without the name of a step would contain the secret result of %q; write steps.NAME", names[0])
		case len(names) > 0 && !allowed[top]:
			c.Errorf(pos.sourcePosition(), codeSecretUse, "the result of step %q is secret and cannot be used %s; %s",
				names[0], c.spotName(at), c.secretHint(at))
		}
		checkOwnSecret(c, at, pos, ref)
		checkSecretArgs(c, at, pos, ref)
	}
	for _, at := range c.pb.AllValues() {
		for leaf := range at.Node.Templates() {
			for _, ref := range leaf.Template.Refs() {
				check(at.StepSpot, at.Node, leaf, ref)
			}
		}
	}
	c.statementRefs(func(at playbook.StepSpot, node *playbook.Node, ref expression.Ref) { check(at, node, node, ref) })
	checkSecretForms(c)
}

// checkSecretStep reports keys that would need to read the secret result.
func checkSecretStep(c *checker, step *playbook.Step) {
	refuse := func(pos source.Position, what, instead string) {
		c.Errorf(pos, codeSecretStep, "step %q is secret and cannot have %s; %s", step.Name, what, instead)
	}
	if step.Action == nil {
		c.Errorf(step.SecretPos, codeSecretStep, "step %q is secret but has no tool; a step that only routes has no result", step.Name)
		return
	}
	if step.Loop != nil {
		refuse(step.Loop.Pos, "a loop", "a later step may have a loop and use the result in each iteration")
	}
	for _, sink := range step.Sinks {
		refuse(sink.Pos, "a sink", "its result is for fields of later calls")
	}
	if step.Rows != nil {
		refuse(step.Rows.Pos, "rows", "a later call uses the whole response")
	}
	if step.Where != nil {
		refuse(step.Where.Pos, "where", "a later call uses the whole response")
	}
	if step.Collect != nil {
		refuse(step.Collect.Pos, "collect", "a later call uses the whole response")
	}
	for _, policy := range step.Retry {
		then := policy.Then
		has := map[string]bool{
			"sink": len(then.Sinks) > 0, "per_iteration": len(then.PageSinks) > 0, "next_call": then.NextCall != nil,
			"collect": then.Collect != nil, "result": then.Result != nil, "fail": then.Fail != nil,
		}
		for _, word := range slices.Sorted(maps.Keys(has)) {
			if has[word] {
				refuse(then.Words.Place(word, then.Pos), word, "its policies may only repeat the attempt")
			}
		}
	}
}

// checkOwnSecret reports uses of the result, by its other names, in the step itself.
func checkOwnSecret(c *checker, at playbook.StepSpot, pos place, ref expression.Ref) {
	if at.Step == nil || !at.Step.Secret || at.Spot&playbook.AtAfter == 0 {
		return
	}
	own := slices.Contains([]string{"response", "page", playbook.DefaultInto, "result", playbook.DataWord}, ref.Root)
	if ref.Root == "this" {
		members := playbook.ConstantMembers(ref.Path)
		own = len(members) == 0 || members[0] == "data"
	}
	if own {
		c.Errorf(pos.sourcePosition(), codeSecretUse, "%q contains the result of step %q, which is secret; "+
			"error, this.status and this.meta.status can be used", ref.Root, at.Step.Name)
	}
}

// checkSecretArgs reports uses of args that are secret, because their values are not known before the attempt.
func checkSecretArgs(c *checker, at playbook.StepSpot, pos place, ref expression.Ref) {
	if ref.Root != "args" || at.Step == nil && at.Action == nil {
		return
	}
	actions := []*playbook.Action{at.Action}
	if at.Step != nil && at.Step.Action != nil {
		actions = append(actions, at.Step.Action)
		actions = append(actions, c.pb.WorkbookEntry(at.Step.Action))
	}
	for _, action := range actions {
		if action == nil || action.Args == nil {
			continue
		}
		members := playbook.ConstantMembers(ref.Path)
		args := action.Args
		if len(members) > 0 && args.Get(members[0]) != nil {
			args = args.Get(members[0])
		} else if len(members) > 0 && args.Entries != nil {
			continue
		}
		if names := c.pb.SecretsNamed(args.Refs()); len(names) > 0 {
			c.Errorf(pos.sourcePosition(), codeSecretUse, "these args contain the result of step %q, which is secret; use %s directly here, if that is allowed",
				names[0], names[0])
			return
		}
	}
}

// secretPlaces returns the values that may use secret results: fields of calls, other than sinks, whose tools
// accept secrets there.
func (c *checker) secretPlaces() map[*playbook.Node]bool {
	places := map[*playbook.Node]bool{}
	for _, call := range c.pb.AllCalls() {
		spec, known := c.tools.Spec(c.toolOf(call.Action))
		if !known || call.Spot&(playbook.AtField|playbook.AtWorkbook) == 0 {
			continue
		}
		for _, name := range spec.Secrets {
			if field := call.Action.Field(name); field != nil {
				places[field] = true
				if query := field.Get(playbook.FieldStatement); query.Statement() != nil {
					places[query] = true
				}
			}
			if name == playbook.ArgsWord && call.Action.Args != nil {
				places[call.Action.Args] = true
			}
		}
	}
	for _, step := range c.pb.Steps { // the args of a call of a workbook entry become those of the entry
		if step.Action == nil || step.Action.Args == nil {
			continue
		}
		entry := c.pb.WorkbookEntry(step.Action)
		if entry == nil {
			continue
		}
		if spec, known := c.tools.Spec(c.toolOf(entry)); known && slices.Contains(spec.Secrets, playbook.ArgsWord) {
			places[step.Action.Args] = true
		}
	}
	return places
}

// spotName describes the place of a value.
func (c *checker) spotName(at playbook.StepSpot) string {
	switch at.Spot {
	case playbook.AtToolName:
		return "in tool"
	case playbook.AtConcurrency:
		return "in concurrency"
	case playbook.AtOutput:
		return "in output"
	case playbook.AtCollection:
		return "in the collection of a loop"
	case playbook.AtWhen:
		return "in the conditions of retry"
	case playbook.AtThen:
		return "in then"
	case playbook.AtThenSink, playbook.AtLoopSink, playbook.AtStepSink:
		return "in a sink"
	case playbook.AtStepNotice, playbook.AtRunNotice:
		return "in a notice"
	case playbook.AtVars:
		return "in vars"
	case playbook.AtNext:
		return "in next"
	}
	if at.Field != "" {
		return fmt.Sprintf("in %s of tool %s", at.Field, c.toolOf(at.Action))
	}
	return "in args, auth or rate_limit of this call"
}

// secretHint says where a secret may be used.
func (c *checker) secretHint(at playbook.StepSpot) string {
	if at.Spot&(playbook.AtField|playbook.AtWorkbook) != 0 {
		if spec, known := c.tools.Spec(c.toolOf(at.Action)); known && len(spec.Secrets) > 0 {
			return fmt.Sprintf("%s takes secrets in %s", spec.Name, strings.Join(spec.Secrets, ", "))
		}
		return "this tool takes no secrets"
	}
	return "use it in fields of later calls, such as headers: {Authorization: \"Bearer {{ NAME.access_token }}\"}"
}

// checkSecretForms reports fields that cannot be changed key by key while the secret is not known.
func checkSecretForms(c *checker) {
	for _, call := range c.pb.AllCalls() {
		if call.Spot&(playbook.AtField|playbook.AtWorkbook) == 0 {
			continue
		}
		values := map[string]*playbook.Node{playbook.ArgsWord: call.Action.Args}
		for _, name := range []string{"headers", "params"} { // next_call changes them
			values[name] = call.Action.Field(name)
		}
		for _, name := range []string{playbook.ArgsWord, "headers", "params"} {
			if node := values[name]; node != nil && node.Template != nil && len(c.pb.SecretsNamed(node.Refs())) > 0 {
				c.Errorf(node.Pos, codeSecretUse, "%s with a secret result must be written as a map, with a value per key", name)
			}
		}
		for _, url := range urlNodesOf(call.Action) {
			checkSecretURL(c, call, url)
		}
	}
}

// checkSecretURL reports a secret host, and pages that follow a secret URL.
func checkSecretURL(c *checker, call playbook.CallAt, node *playbook.Node) {
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
			if at := playbook.PlaceInURL(before); at == playbook.URLHead || at == playbook.URLHost {
				c.Errorf(node.Position(segment.Start), codeSecretUse,
					"the result of step %q is secret and cannot be the host of a url; it may follow the host", names[0])
			}
			checkSecretPages(c, call, node)
			return
		}
		if before == "" {
			before = "http://host"
			continue
		}
		before += "x"
	}
}

func checkSecretPages(c *checker, call playbook.CallAt, node *playbook.Node) {
	if call.Step == nil {
		return
	}
	for next := range call.Step.NextCalls() {
		if next.URL != nil {
			c.Errorf(next.URL.Pos, codeSecretUse,
				"next_call.url cannot follow a url that uses a secret result (line %d); put the secret into headers or params", node.Pos.Line)
		}
	}
}

// checkShadowed reports elements and into with the name of a secret step: one name must not mean a secret in one
// place and something else in another.
func checkShadowed(c *checker) {
	refuse := func(name string, pos source.Position) {
		if isSecret(c.pb.Step(name)) {
			c.Errorf(pos, codeSecretUse, "%q is the name of a step whose result is secret; choose another", name)
		}
	}
	for _, step := range c.pb.Steps {
		if step.Loop != nil {
			refuse(step.Loop.Element, elementPos(step.Loop))
		}
		for collect := range step.CollectSections() {
			refuse(collect.Into, collect.Pos)
		}
	}
}

// isSecret reports whether the result of a step is secret; false for nil.
func isSecret(step *playbook.Step) bool { return step != nil && step.Secret }
