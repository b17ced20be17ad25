package playbook

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// members are the members of the words whose shape the language fixes. A
// member that is none of them is always nil, which is never what was meant.
var members = map[string][]string{
	"error": {
		"kind", "class", "status", "message", "type", "retry_after", "headers", "url", "params", "body", "attempt", "page", "policy",
		"exhausted", "collected",
	},
	"this":          {"status", "data", "error", "meta"},
	"_retry":        {"page", "index", "attempt", "count", "policy"},
	"_loop":         {"index", "count", "size"},
	"event":         {"name", "at", "step", "visit", "index", "status", "attempts", "error", "reason", "by"},
	IncrementalWord: {"value", "watermark"},
	PartitionWord:   {"key", "index", "start", "end"},
	"run":           {"id", "started_at", "playbook", "scheduled_at"},
}

var metaMembers = []string{
	"attempts", "pages", "truncated", "started_at", "ended_at", "status", "headers", "links", "url", IncrementalWord,
	"discarded_values", "discarded_rows", "rejected_rows",
}

// metaStateMembers are those of incremental in meta.
var metaStateMembers = []string{"state", "from", "watermark", "rows", "states"}

// checkMembers checks the members that a name is asked for, as far as they are
// constant.
func (c *checker) checkMembers(at site, pos place, ref expression.Ref) {
	if ref.Root == "result" || ref.Root == "response" && at.spot&(atVars|atNext|atStepSink|atStepNotice) != 0 {
		c.checkShape(pos, ref.Root, c.resultShape(at), ref.Path)
		return
	}
	key, ok := pathKey(ref.Path, 0)
	if !ok {
		return
	}
	switch ref.Root {
	case "response":
		c.checkAnswer(at, pos, key)
	case "steps":
		if c.pb.Step(key) == nil {
			c.errorf(pos.at(), codeUnknownName, "steps has no step %q%s", key, c.otherStep(key))
			c.offerMember("steps", key, expression.Certain(key, c.stepNames()))
			return
		}
		c.checkEnvelope(pos, "steps."+key, ref.Path[1:], c.stepShape(c.pb.Step(key)))
	case "this":
		c.checkEnvelope(pos, "this", ref.Path, c.resultShape(at))
	case "vars":
		c.checkVar(pos, key)
	default:
		c.checkMember(pos, ref.Root, key, members[ref.Root])
	}
}

// checkAnswer warns of a member of response that other systems have for the answer
// around the body.
func (c *checker) checkAnswer(at site, pos place, key string) {
	if spec, ok := c.specOf(stepAction(at)); !ok || !TraitsOf(spec.Name).Requests {
		return
	}
	if plain := plainWord(key); plain == "statuscode" || plain == "httpstatus" {
		c.warnf(pos.at(), codeUnknownMember, "response is the body of the answer; its status is this.meta.status, and after a failure error.status")
	}
}

// stepAction is the call of the step that a site belongs to, nil for none.
func stepAction(at site) *Action {
	if at.step == nil {
		return nil
	}
	return at.step.Action
}

// checkEnvelope checks a path into an envelope: docs/concepts/expressions.md#names.
func (c *checker) checkEnvelope(pos place, owner string, path []any, data *shape) {
	key, ok := pathKey(path, 0)
	if !ok {
		return
	}
	if key == "data" {
		c.checkShape(pos, owner+".data", data, path[1:])
		return
	}
	c.checkMember(pos, owner, key, members["this"])
	inner, ok := pathKey(path, 1)
	switch {
	case !ok:
	case key == "error":
		c.checkMember(pos, owner+".error", inner, members["error"])
	case key == "meta":
		c.checkMember(pos, owner+".meta", inner, metaMembers)
		if member, ok := pathKey(path, 2); ok && inner == IncrementalWord && !slices.Contains(metaStateMembers, member) {
			c.warnf(pos.at(), codeUnknownMember, "%s.meta.incremental has no member %q, so this is always nil; its members are %s",
				owner, member, listed(metaStateMembers))
		}
	}
}

// varsOf are the variables that steps set.
func varsOf(pb *Playbook) map[string]bool {
	names := map[string]bool{}
	for _, step := range pb.Steps {
		for _, entry := range step.Vars {
			names[entry.Key] = true
		}
	}
	return names
}

func (c *checker) checkVar(pos place, key string) {
	if c.vars[key] || c.meant[key] {
		return
	}
	near := ""
	if len(c.vars) <= mostSuggested {
		near = expression.Suggest(key, slices.Collect(maps.Keys(c.vars)))
	}
	if near != "" {
		c.warnf(pos.at(), codeUnknownMember, "no step sets vars.%s; did you mean vars.%s?", key, near)
		c.offerMember("vars", key, expression.Certain(key, slices.Collect(maps.Keys(c.vars))))
		return
	}
	c.warnf(pos.at(), codeUnknownMember, "no step sets vars.%s, so it is always nil; a step sets it with vars: {%s: …}", key, key)
}

func (c *checker) checkMember(pos place, owner, key string, known []string) {
	if len(known) == 0 || slices.Contains(known, key) {
		return
	}
	hint := "its members are " + listed(known)
	if meant := foreignIn(foreignMembers[ownerWord(owner)], key, 0, nil).write; meant != "" {
		hint = "write " + meant
	} else if near := expression.Suggest(key, known); near != "" {
		hint = fmt.Sprintf("did you mean %s.%s?", owner, near)
	}
	c.warnf(pos.at(), codeUnknownMember, "%s has no member %q, so this is always nil; %s", owner, key, hint)
	c.offerMember(owner, key, expression.Certain(key, known))
}

// offerMember gives the last problem, which is about a member of an owner, another member.
func (c *checker) offerMember(owner, key, instead string) {
	if instead != "" {
		c.offer(owner+"."+key, owner+"."+instead)
	}
}

// ownerWord is the word of the language that an owner ends with: error of
// steps.fetch.error.
func ownerWord(owner string) string { return owner[strings.LastIndexByte(owner, '.')+1:] }

// checkFailedMeta warns of a condition that is asked after a failure and names
// what only an answer that succeeded has in this.meta.
func (c *checker) checkFailedMeta(conditions ...*Node) {
	for _, condition := range conditions {
		program, ok := condition.program()
		if !ok || !failuresOnly(program) {
			continue
		}
		for _, ref := range condition.Template.Refs() {
			meta, _ := pathKey(ref.Path, 0)
			member, _ := pathKey(ref.Path, 1)
			if ref.Root != "this" || meta != "meta" || member != "headers" && member != "status" {
				continue
			}
			c.warnf(c.placing.at(condition, ref.Offset), codeUnknownMember,
				"this.meta.%s is that of an answer that succeeded, so after a failure, which this condition asks for, it is always nil; that of a failed answer is error.%s",
				member, member)
		}
	}
}

func pathKey(path []any, i int) (string, bool) {
	if i >= len(path) {
		return "", false
	}
	key, ok := path[i].(string)
	return key, ok
}

// MembersOf are the members of what a path of names leads to, as far as the language, the workload and
// the steps say which there are: of error, this.meta, steps.NAME.error or workload.
func (pb *Playbook) MembersOf(path []string) []string {
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
		return lists.Map(pb.Steps, func(step *Step) string { return step.Name })
	case "vars":
		return SortedKeys(varsOf(pb))
	case "workload":
		return keysAt(pb.Workload, path[1:])
	default:
		if _, isKey := pb.Workload[root]; isKey {
			return keysAt(pb.Workload, path)
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
	case "meta." + IncrementalWord:
		return metaStateMembers
	}
	return nil
}

// keysAt are the keys of the map that a path leads to.
func keysAt(value any, path []string) []string {
	for _, key := range path {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	object, _ := value.(map[string]any)
	return SortedKeys(object)
}
