package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// members lists the members of names whose shape is fixed. Any other member is always nil, which is never intended.
var members = map[string][]string{
	"error": {
		"kind", "class", "status", "message", "type", "retry_after", "headers", "url", "params", "body", "attempt", "page", "policy",
		"exhausted", "collected",
	},
	"this":                   {"status", "data", "error", "meta"},
	"_retry":                 {"page", "index", "attempt", "count", "policy"},
	"_loop":                  {"index", "count", "size"},
	"event":                  {"name", "at", "step", "visit", "index", "status", "attempts", "error", "reason", "by"},
	playbook.IncrementalWord: {"value", "watermark", "from", "to"},
	playbook.PartitionWord:   {"key", "index", "start", "end"},
	"run":                    {"id", "started_at", "playbook", "scheduled_at"},
}

var metaMembers = []string{
	"attempts", "pages", "truncated", "started_at", "ended_at", "status", "headers", "links", "url", playbook.IncrementalWord,
	"discarded_values", "discarded_rows", "rejected_rows", "rounded_values", "rounded_keys", "older_rows", "unwritten_rows", "undeleted_rows",
}

// metaStateMembers are the members of `incremental` in meta.
var metaStateMembers = []string{"state", "from", "watermark", "rows", "states"}

// checkMembers checks the constant members that an expression reads from a name.
func checkMembers(c *checker, at playbook.StepSpot, pos place, ref expression.Ref) {
	if ref.Root == "result" || ref.Root == "response" && at.Spot&(playbook.AtVars|playbook.AtNext|playbook.AtStepSink|playbook.AtStepNotice) != 0 {
		checkShape(c, pos, ref.Root, c.resultShape(at), ref.Path)
		return
	}
	key, ok := playbook.MemberAt(ref.Path, 0)
	if !ok {
		return
	}
	switch ref.Root {
	case "response":
		checkAnswer(c, at, pos, key)
	case "steps":
		if c.pb.Step(key) == nil {
			c.Errorf(pos.sourcePosition(), codeUnknownName, "steps has no step %q%s", key, c.otherStep(key))
			offerMember(c, "steps", key, expression.SuggestCertain(key, c.stepNames()))
			return
		}
		checkEnvelope(c, pos, "steps."+key, ref.Path[1:], c.stepShape(c.pb.Step(key)))
	case "this":
		checkEnvelope(c, pos, "this", ref.Path, c.resultShape(at))
	case "vars":
		checkVar(c, pos, key)
	case "workload":
		c.checkWorkloadPath(pos, ref.Root, c.workload, ref.Path)
	default:
		checkMember(c, pos, ref.Root, key, members[ref.Root])
	}
}

// checkAnswer warns about a member of response that other systems use for the response around the body.
func checkAnswer(c *checker, at playbook.StepSpot, pos place, key string) {
	if spec, ok := c.specOf(stepAction(at)); !ok || !playbook.TraitsOf(spec.Name).Requests {
		return
	}
	if plain := playbook.PlainWord(key); plain == "statuscode" || plain == "httpstatus" {
		c.Warnf(pos.sourcePosition(), codeUnknownMember, "response is the body of the response; its status is this.meta.status, or error.status after a failure")
	}
}

// stepAction returns the call of the step at a site, nil for none.
func stepAction(at playbook.StepSpot) *playbook.Action {
	if at.Step == nil {
		return nil
	}
	return at.Step.Action
}

// checkEnvelope checks a path into an envelope: docs/concepts/expressions.md#names.
func checkEnvelope(c *checker, pos place, owner string, path []any, data *shape) {
	key, ok := playbook.MemberAt(path, 0)
	if !ok {
		return
	}
	if key == "data" {
		checkShape(c, pos, owner+".data", data, path[1:])
		return
	}
	checkMember(c, pos, owner, key, members["this"])
	inner, ok := playbook.MemberAt(path, 1)
	switch {
	case !ok:
	case key == "error":
		checkMember(c, pos, owner+".error", inner, members["error"])
	case key == "meta":
		checkMember(c, pos, owner+".meta", inner, metaMembers)
		if member, ok := playbook.MemberAt(path, 2); ok && inner == playbook.IncrementalWord && !slices.Contains(metaStateMembers, member) {
			c.Warnf(pos.sourcePosition(), codeUnknownMember, "%s.meta.incremental has no member %q, so this is always nil; its members are %s",
				owner, member, playbook.JoinNames(metaStateMembers))
		}
	}
}

// setVariables returns the variables that steps set.
func setVariables(pb *playbook.Playbook) map[string]bool {
	names := map[string]bool{}
	for _, step := range pb.Steps {
		for _, entry := range step.Vars {
			names[entry.Key] = true
		}
	}
	return names
}

func checkVar(c *checker, pos place, key string) {
	if c.vars[key] || c.meant[key] {
		return
	}
	near := ""
	if len(c.vars) <= mostSuggested {
		near = expression.Suggest(key, slices.Collect(maps.Keys(c.vars)))
	}
	if near != "" {
		c.Warnf(pos.sourcePosition(), codeUnknownMember, "no step sets vars.%s; did you mean vars.%s?", key, near)
		offerMember(c, "vars", key, expression.SuggestCertain(key, slices.Collect(maps.Keys(c.vars))))
		return
	}
	c.Warnf(pos.sourcePosition(), codeUnknownMember, "no step sets vars.%s, so it is always nil; set it in a step with vars: {%s: …}", key, key)
}

// checkWorkloadPath warns about a path into the workload whose key a map lacks, where it has another that is certainly meant. A run may
// have more keys, so other unknown ones are right, as is one whose absence the expression provides for.
func (c *checker) checkWorkloadPath(pos place, owner string, value any, path []any) {
	for at := range path {
		key, isName := playbook.MemberAt(path, at)
		object, isMap := value.(map[string]any)
		if !isName || !isMap {
			return
		}
		inner, has := object[key]
		if !has {
			meant := expression.SuggestCertain(key, playbook.SortedKeys(object))
			if meant != "" && !pos.mayBeAbsent() {
				c.Warnf(pos.sourcePosition(), codeUnknownMember, "%s has no key %q, so this is nil unless a run sets it; did you mean %s.%s?", owner, key, owner, meant)
				offerMember(c, owner, key, meant)
			}
			return
		}
		owner, value = owner+"."+key, inner
	}
}

// mayBeAbsent reports whether the expression at the place provides for the absence of what it names there.
func (p place) mayBeAbsent() bool {
	if p.node.Template == nil {
		return false
	}
	required := func(ref expression.Ref) bool { return ref.Offset == p.offset }
	return !slices.ContainsFunc(p.node.Template.RequiredRefs(), required)
}

func checkMember(c *checker, pos place, owner, key string, known []string) {
	if len(known) == 0 || slices.Contains(known, key) {
		return
	}
	hint := "its members are " + playbook.JoinNames(known)
	if meant := playbook.ForeignIn(foreignMembers[ownerWord(owner)], key, 0, nil).Write; meant != "" {
		hint = "write " + meant
	} else if near := expression.Suggest(key, known); near != "" {
		hint = fmt.Sprintf("did you mean %s.%s?", owner, near)
	}
	c.Warnf(pos.sourcePosition(), codeUnknownMember, "%s has no member %q, so this is always nil; %s", owner, key, hint)
	offerMember(c, owner, key, expression.SuggestCertain(key, known))
}

// offerMember adds a suggested member to the last problem.
func offerMember(c *checker, owner, key, instead string) {
	if instead != "" {
		c.AddFix(owner+"."+key, owner+"."+instead)
	}
}

// ownerWord returns the last word of an owner: error for steps.fetch.error.
func ownerWord(owner string) string { return owner[strings.LastIndexByte(owner, '.')+1:] }

// checkFailedMeta warns about a condition for failures that uses a member of this.meta which only successful
// responses have.
func checkFailedMeta(c *checker, conditions ...*playbook.Node) {
	for _, condition := range conditions {
		program, ok := condition.ConditionProgram()
		if !ok || !playbook.FailuresOnly(program) {
			continue
		}
		for _, ref := range condition.Template.Refs() {
			meta, _ := playbook.MemberAt(ref.Path, 0)
			member, _ := playbook.MemberAt(ref.Path, 1)
			if ref.Root != "this" || meta != "meta" || member != "headers" && member != "status" {
				continue
			}
			c.Warnf(c.placing.positionAt(condition, ref.Offset), codeUnknownMember,
				"this.meta.%s is set only after a success, so in this condition, which matches failures, it is always nil; use error.%s",
				member, member)
		}
	}
}

// MembersOf returns the members at a path of names, if the language, the workload or the steps define them: those
// of error, this.meta, steps.NAME.error or workload.
func MembersOf(pb *playbook.Playbook, path []string) []string {
	if len(path) == 0 {
		return nil
	}
	switch root := path[0]; root {
	case "this":
		return envelopeMembers(path[1:])
	case "steps":
		if len(path) > 1 {
			return envelopeMembers(path[2:])
		}
		return lists.Map(pb.Steps, func(step *playbook.Step) string { return step.Name })
	case "vars":
		return playbook.SortedKeys(setVariables(pb))
	case "workload":
		return mapKeysAt(pb.Workload, path[1:])
	default:
		if _, isKey := pb.Workload[root]; isKey {
			return mapKeysAt(pb.Workload, path)
		}
		if len(path) == 1 {
			return members[root]
		}
	}
	return nil
}

func envelopeMembers(path []string) []string {
	switch strings.Join(path, ".") {
	case "":
		return members["this"]
	case "error":
		return members["error"]
	case "meta":
		return metaMembers
	case "meta." + playbook.IncrementalWord:
		return metaStateMembers
	}
	return nil
}

// mapKeysAt returns the keys of the map at a path.
func mapKeysAt(value any, path []string) []string {
	for _, key := range path {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	object, _ := value.(map[string]any)
	return playbook.SortedKeys(object)
}
