package playbook

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
)

// checkNames checks every name that an expression takes from its scope against
// the place where it is: docs/concepts/expressions.md#names.
func checkNames(c *checker) {
	check := func(at site, node *Node, ref expression.Ref) {
		if at.field != "" && !c.understands(at.action, at.field) {
			return
		}
		pos := c.place(node, ref.Offset) // a name of the language comes before one of the playbook
		if !c.checkLanguageName(at, pos, ref) && !c.checkPlaybookName(at, pos, ref) {
			c.unknownName(at, pos, ref.Root)
		}
	}
	for _, at := range c.pb.values() {
		for leaf := range at.node.Templates() {
			for _, ref := range leaf.Template.Refs() {
				check(at.site, leaf, ref)
			}
		}
	}
	c.statementRefs(check)
}

// place is where a name is. The position is worked out for those that are a
// problem: it takes a walk over the text.
type place struct {
	node   *Node
	offset int
	in     *placing
}

func (c *checker) place(node *Node, offset int) place {
	return place{node: node, offset: offset, in: &c.placing}
}

func (p place) at() source.Position { return p.in.at(p.node, p.offset) }

// placing works out places within a node once for all problems in it.
type placing struct {
	node   *Node
	places []source.Position
}

func (p *placing) at(node *Node, offset int) source.Position {
	if node.file == nil {
		return node.Pos
	}
	if p.node != node {
		p.node, p.places = node, node.positions()
	}
	return p.places[min(max(offset, 0), len(p.places)-1)]
}

// checkLanguageName is false for a name that the language does not give.
func (c *checker) checkLanguageName(at site, pos place, ref expression.Ref) bool {
	name := ref.Root
	if name == CallbackWord && slices.Contains(RequestFields, at.field) && at.action != nil && TraitsOf(c.toolOf(at.action)).Awaits {
		c.checkCallback(pos, ref)
		return true
	}
	if at.named(name) {
		if key, ok := pathKey(ref.Path, 0); ok {
			c.checkMember(pos, name, key, members[name])
		}
		return true
	}
	w, ok := findWord(name)
	if ok {
		c.checkWord(at, pos, ref, w)
	}
	return ok
}

// checkPlaybookName is false for a name that the playbook does not give: no element
// of a loop, no step and no key of the workload.
func (c *checker) checkPlaybookName(at site, pos place, ref expression.Ref) bool {
	name := ref.Root
	step := c.pb.Step(name)
	_, isKey := c.workload[name]
	switch {
	case slices.Contains(c.elements(at), name), slices.Contains(intos(at), name):
	case at.spot == atStepSink && at.step.Loop != nil && at.step.Loop.Element == name:
		c.elementInStepSink(at, pos, name)
	case step != nil && at.spot&(atBegin|atState) == 0:
		c.checkShape(pos, name, c.stepShape(step), ref.Path)
	case isKey:
	case step != nil && at.spot == atState:
		c.errorf(pos.at(), codeUnavailableName, "%q is a step, but the name of a state may only use the workload%s: every run has to find the same one", name, orElement(at))
	case step != nil:
		c.errorf(pos.at(), codeUnavailableName, "%q is a step, but %s may only use the workload: it is worked out before the run starts", name, beginWord(at))
	default:
		return false
	}
	return true
}

// named reports whether a name is one that only notices of the run have.
func (at site) named(name string) bool {
	return at.spot == atRunNotice && slices.Contains(noticeNames, name)
}

// orElement names what the name of a state may use besides the workload.
func orElement(at site) string {
	if at.step.Loop == nil {
		return ""
	}
	return " and the element " + quote(at.step.Loop.Element)
}

// beginWord is the word of the language that a value is worked out for before any
// step has run.
func beginWord(at site) string {
	if at.spot == atConcurrency {
		return "concurrency"
	}
	return "tool"
}

// checkWord checks a word of the language: where it is, and its members.
func (c *checker) checkWord(at site, pos place, ref expression.Ref, w word) {
	switch {
	case w.loop && at.spot == atStepSink && at.step.Loop != nil:
		c.elementInStepSink(at, pos, w.name)
	case !c.hasWord(at, w):
		c.errorf(pos.at(), codeUnavailableName, "%q has no value here; it is known %s%s%s", w.name, w.known, insteadHere(at, w.name), c.insteadOf(w.name))
	default:
		c.checkMembers(at, pos, ref)
	}
}

// hasWord reports whether a word of the language has a value at a site.
func (c *checker) hasWord(at site, w word) bool {
	return at.spot&w.where != 0 && (!w.loop || c.insideLoop(at)) && (w.name != IncrementalWord || c.insideState(at)) &&
		(w.name != PartitionWord || c.pb.Partitions != nil || c.partial)
}

// insideState reports whether the site belongs to a call that has a state.
func (c *checker) insideState(at site) bool {
	if at.spot == atWorkbook {
		return slices.ContainsFunc(c.callers(at.action), func(step *Step) bool { return step.Incremental != nil })
	}
	has := at.step != nil && (at.step.Incremental != nil || c.partial) // or it may be what could not be decoded
	return has && (at.spot != atStepSink || at.step.Loop == nil)
}

// checkCallback checks the members of CallbackWord.
func (c *checker) checkCallback(pos place, ref expression.Ref) {
	member := ""
	if len(ref.Path) > 0 {
		member, _ = ref.Path[0].(string)
	}
	if len(ref.Path) != 1 || !slices.Contains(CallbackMembers, member) {
		c.errorf(pos.at(), codeUnknownName, "%s has the members %s, and one of them must be named", CallbackWord, listed(CallbackMembers))
	}
}

// insteadHere is what a word that is not known at a site is called there.
func insteadHere(at site, name string) string {
	switch {
	case name == dataWord && at.spot&(atSinks|atVars|atNext) != 0:
		return `; write "result"`
	case (name == dataWord || name == "result") && at.spot&(atWhen|atThen) != 0:
		return `; write "response"`
	case (name == "response" || name == "result" || name == "this" || name == dataWord) && at.spot&(atField|atCollection|atOutput) != 0:
		return "; the result of a step is known by the step's name"
	}
	return ""
}

// insteadOf helps where a workload key has the name of a word.
func (c *checker) insteadOf(name string) string {
	if _, ok := c.workload[name]; ok {
		return "; the workload key is workload." + name
	}
	if name == PartitionWord && c.options.caller != nil {
		return fmt.Sprintf(`; pass what is needed of it with workload: {part: "{{ partition.key }}"} in %s`, c.options.caller.call.who())
	}
	return ""
}

func (c *checker) elementInStepSink(at site, pos place, name string) {
	c.errorf(pos.at(), CodeElementInStepSink,
		"%q is known inside the loop of step %q only, but the sink on the step runs once, after the loop; to write once per iteration, move it: loop: {…, sink: {tool: %s, …}}",
		name, at.step.Name, c.toolOf(at.action))
}

// insideLoop reports whether the site is evaluated once per iteration.
func (c *checker) insideLoop(at site) bool {
	if at.spot == atWorkbook {
		return len(c.elements(at)) > 0
	}
	return at.step != nil && at.step.Loop != nil && at.spot&inLoop != 0
}

// elements are the elements of loops that a site may name. A workbook entry
// may name those of the loops that call it.
func (c *checker) elements(at site) []string {
	var names []string
	switch {
	case at.spot == atWorkbook:
		for _, step := range c.callers(at.action) {
			if step.Loop != nil {
				names = append(names, step.Loop.Element)
			}
		}
	case at.step != nil && at.step.Loop != nil && at.spot&(inLoop|atState) != 0:
		names = append(names, at.step.Loop.Element)
	}
	return names
}

// intos are the names that the step of a site collects into, where they are
// known.
func intos(at site) []string {
	if at.step == nil || at.spot&(atWhen|atThen|atThenSink) == 0 {
		return nil
	}
	var names []string
	for collect := range at.step.Collects() {
		names = append(names, collect.Into)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *checker) unknownName(at site, pos place, name string) {
	inLoop := func(step *Step) bool { return step.Loop != nil && step.Loop.Element == name }
	if step := lists.First(c.pb.Steps, inLoop); step != nil {
		c.errorf(pos.at(), codeUnavailableName, "%q is the element of the loop in step %q and known only inside it", name, step.Name)
		return
	}
	if step := c.stepInto(name); step != nil {
		c.errorf(pos.at(), codeUnavailableName, "%q is what step %q collects into, known in the when and then of its retry; after the step write %s for its result", name, step.Name, step.Name)
		return
	}
	if hint := cmp.Or(says(c.workloadHint(name)), c.unknownHint(at, name)); hint.text != "" {
		c.errorf(pos.at(), codeUnknownName, "unknown name %q%s", name, hint.text)
		c.offer(name, hint.certain(name, c.namesAt(at)))
	}
}

// unknownHint says what is meant, or missing, where nobody knows a name; it is empty
// where what is not seen here may give it.
func (c *checker) unknownHint(at site, name string) hint {
	if c.options.Open || c.options.caller != nil && c.options.caller.open {
		return hint{}
	}
	near, foreign := "", c.foreignName(at, name)
	if len(c.workload) <= mostSuggested {
		near = expression.Suggest(name, c.namesAt(at))
	}
	switch {
	case name == CallbackWord:
		return says(fmt.Sprintf(": it is known in %s of the tools that await an answer", oneOf(RequestFields)))
	case at.spot&(atBegin|atState) == 0 && c.argsHave(at, name):
		return meantMember("args", name)
	case at.spot&(atBegin|atState) == 0 && c.vars[name]:
		return meantMember("vars", name)
	case foreign != "":
		return says(foreign)
	case near != "":
		return meant(near)
	case expression.IsFunction(name):
		return says(fmt.Sprintf("; the function is called with brackets: %s(…)", name))
	case slices.Contains(noticeNames, name) && len(c.pb.Notify) > 0:
		return says(": it is known in notify, and in on_success and on_failure of the playbook")
	case c.unnamed(), c.partial && len(c.workload) == 0, c.meant[name]:
		return hint{} // it may be what could not be decoded
	case c.options.caller != nil:
		return says(": it is no step, no workload key and no word of the language; if it is to be passed, add it to the workload of the step that runs this playbook")
	}
	return says(fmt.Sprintf(": it is no step, no workload key and no word of the language; if only a run supplies it, validate with --set %s=…", name))
}

// meantMember is the hint to a member of args or vars.
func meantMember(owner, name string) hint {
	word := owner + "." + name
	return hint{text: fmt.Sprintf("; did you mean %s?", word), word: word}
}

// mostSuggested is how many names are looked through for one that was meant.
const mostSuggested = 1000

// argsHave reports whether the args of the step at a site may have a member:
// its own, those of its pages, and those of routes that lead to it.
func (c *checker) argsHave(at site, name string) bool {
	var s supply
	switch {
	case at.step != nil && at.step.Action != nil:
		s = c.supplied(at.step, at.step.Action.Args)
	case at.step == nil && at.action != nil: // an entry of the workbook
		s.add(at.action.Args, &s.always)
	}
	return s.has(name)
}

func (c *checker) stepInto(name string) *Step {
	for _, step := range c.pb.Steps {
		for collect := range step.Collects() {
			if collect.Into == name {
				return step
			}
		}
	}
	return nil
}

// namesAt are all names that an expression may use at a site.
func (c *checker) namesAt(at site) []string {
	names := slices.Collect(maps.Keys(c.workload))
	names = append(names, c.elements(at)...)
	names = append(names, intos(at)...)
	for _, w := range words {
		if c.hasWord(at, w) {
			names = append(names, w.name)
		}
	}
	if at.spot == atRunNotice {
		names = append(names, noticeNames...)
	}
	if at.spot&(atBegin|atState) == 0 {
		names = append(names, c.stepNames()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
