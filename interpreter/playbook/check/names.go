package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// checkNames checks for every name in an expression whether it is available there:
// docs/concepts/expressions.md#names.
func checkNames(c *checker) {
	check := func(at playbook.StepSpot, node *playbook.Node, ref expression.Ref) {
		if at.Field != "" && !c.isUnderstood(at.Action, at.Field) {
			return
		}
		pos := c.placeOf(node, ref.Offset) // a name of the language has precedence over one of the playbook
		if !checkLanguageName(c, at, pos, ref) && !checkPlaybookName(c, at, pos, ref) {
			unknownName(c, at, pos, ref.Root)
		}
	}
	for _, at := range c.pb.AllValues() {
		for leaf := range at.Node.Templates() {
			for _, ref := range leaf.Template.Refs() {
				check(at.StepSpot, leaf, ref)
			}
		}
	}
	c.statementRefs(check)
}

// place is the place of a name. Its position is computed only for problems, because that requires scanning the
// text.
type place struct {
	node   *playbook.Node
	offset int
	in     *placing
}

func (c *checker) placeOf(node *playbook.Node, offset int) place {
	return place{node: node, offset: offset, in: &c.placing}
}

func (p place) sourcePosition() source.Position { return p.in.positionAt(p.node, p.offset) }

// placing caches the positions within a node for all problems in it.
type placing struct {
	node   *playbook.Node
	places []source.Position
}

func (p *placing) positionAt(node *playbook.Node, offset int) source.Position {
	if node.File() == nil {
		return node.Pos
	}
	if p.node != node {
		p.node, p.places = node, node.Positions()
	}
	return p.places[min(max(offset, 0), len(p.places)-1)]
}

// checkLanguageName checks a name of the language; it returns false for other names.
func checkLanguageName(c *checker, at playbook.StepSpot, pos place, ref expression.Ref) bool {
	name := ref.Root
	if name == playbook.CallbackWord && slices.Contains(playbook.RequestFields, at.Field) && at.Action != nil && playbook.TraitsOf(c.toolOf(at.Action)).Awaits {
		checkCallback(c, pos, ref)
		return true
	}
	if at.IsNoticeName(name) {
		if key, ok := playbook.MemberAt(ref.Path, 0); ok {
			checkMember(c, pos, name, key, members[name])
		}
		return true
	}
	w, ok := findWord(name)
	if ok = ok && (!w.row || at.Row); ok {
		checkWord(c, at, pos, ref, w)
	}
	return ok
}

// checkPlaybookName checks a name of the playbook: the element of a loop, a step, or a key of the workload. It
// returns false for other names.
func checkPlaybookName(c *checker, at playbook.StepSpot, pos place, ref expression.Ref) bool {
	name := ref.Root
	step := c.pb.Step(name)
	_, isKey := c.workload[name]
	switch {
	case slices.Contains(c.elementNames(at), name), slices.Contains(collectedNames(at), name):
	case at.Spot == playbook.AtStepSink && at.Step.Loop != nil && at.Step.Loop.Element == name:
		c.elementInStepSink(at, pos, name)
	case step != nil && at.Spot&(playbook.AtBegin|playbook.AtState) == 0:
		checkShape(c, pos, name, c.stepShape(step), ref.Path)
	case isKey:
		c.checkWorkloadPath(pos, name, c.workload[name], ref.Path)
	case step != nil && at.Spot == playbook.AtState:
		c.Errorf(pos.sourcePosition(), codeUnavailableName, "%q is a step, but the name and the initial value of a state may only use the workload%s, so that every run finds the same state", name, elementAlternative(at))
	case step != nil:
		c.Errorf(pos.sourcePosition(), codeUnavailableName, "%q is a step, but %s may only use the workload, because it is evaluated before the run starts", name, beginWord(at))
	default:
		return false
	}
	return true
}

// elementAlternative names what the name of a state may use besides the workload.
func elementAlternative(at playbook.StepSpot) string {
	if at.Step.Loop == nil {
		return ""
	}
	return " and the element " + playbook.QuoteWord(at.Step.Loop.Element)
}

// beginWord returns the word whose value is evaluated before any step has run.
func beginWord(at playbook.StepSpot) string {
	if at.Spot == playbook.AtConcurrency {
		return "concurrency"
	}
	return "tool"
}

// checkWord checks a word of the language: whether it is available, and its members.
func checkWord(c *checker, at playbook.StepSpot, pos place, ref expression.Ref, w word) {
	switch {
	case w.loop && at.Spot == playbook.AtStepSink && at.Step.Loop != nil:
		c.elementInStepSink(at, pos, w.name)
	case !c.hasWord(at, w):
		c.Errorf(pos.sourcePosition(), codeUnavailableName, "%q has no value here; it is available %s%s%s", w.name, w.known, suggestName(at, w.name), c.suggestWorkloadKey(w.name))
	default:
		checkMembers(c, at, pos, ref)
	}
}

// hasWord reports whether a word of the language is available at a site.
func (c *checker) hasWord(at playbook.StepSpot, w word) bool {
	return at.Spot&w.where != 0 && (!w.loop || c.insideLoop(at)) && (!w.row || at.Row) && (w.name != playbook.IncrementalWord || c.insideState(at)) &&
		(w.name != playbook.PartitionWord || c.pb.Partitions != nil || c.partial)
}

// insideState reports whether the site belongs to a call that keeps a state.
func (c *checker) insideState(at playbook.StepSpot) bool {
	if at.Spot == playbook.AtWorkbook {
		return slices.ContainsFunc(c.callingSteps(at.Action), func(step *playbook.Step) bool { return step.Incremental != nil })
	}
	has := at.Step != nil && (at.Step.Incremental != nil || c.partial) // or it could be what was not decoded
	return has && (at.Spot != playbook.AtStepSink || at.Step.Loop == nil)
}

// checkCallback checks the members of CallbackWord.
func checkCallback(c *checker, pos place, ref expression.Ref) {
	member := ""
	if len(ref.Path) > 0 {
		member, _ = ref.Path[0].(string)
	}
	if len(ref.Path) != 1 || !slices.Contains(playbook.CallbackMembers, member) {
		c.Errorf(pos.sourcePosition(), codeUnknownName, "%s is a map; use one of its members: %s", playbook.CallbackWord, playbook.JoinNames(playbook.CallbackMembers))
	}
}

// suggestName suggests the name to use at this site instead of an unknown one.
func suggestName(at playbook.StepSpot, name string) string {
	switch {
	case name == playbook.DataWord && at.Spot&(playbook.AtSinks|playbook.AtVars|playbook.AtNext) != 0:
		return `; write "result"`
	case (name == playbook.DataWord || name == "result") && at.Spot&(playbook.AtWhen|playbook.AtThen) != 0:
		return `; write "response"`
	case (name == "response" || name == "result" || name == "this" || name == playbook.DataWord) && at.Spot&(playbook.AtField|playbook.AtCollection|playbook.AtOutput) != 0:
		return "; use the step's name for its result"
	}
	return ""
}

// suggestWorkloadKey suggests workload.NAME if a workload key has the name of a word.
func (c *checker) suggestWorkloadKey(name string) string {
	if _, ok := c.workload[name]; ok {
		return "; the workload key is workload." + name
	}
	if name == playbook.PartitionWord && c.options.caller != nil {
		return fmt.Sprintf(`; pass the part that is needed with workload: {part: "{{ partition.key }}"} in %s`, callName(c.options.caller.call))
	}
	return ""
}

func (c *checker) elementInStepSink(at playbook.StepSpot, pos place, name string) {
	c.Errorf(pos.sourcePosition(), playbook.CodeElementInStepSink,
		"%q is available only inside the loop of step %q, but the sink of the step runs once, after the loop; to write once per iteration, move it: loop: {…, sink: {tool: %s, …}}",
		name, at.Step.Name, c.toolOf(at.Action))
}

// insideLoop reports whether the site is evaluated once per iteration.
func (c *checker) insideLoop(at playbook.StepSpot) bool {
	if at.Spot == playbook.AtWorkbook {
		return len(c.elementNames(at)) > 0
	}
	return at.Step != nil && at.Step.Loop != nil && at.Spot&inLoop != 0
}

// elementNames returns the loop elements that a site may use. A workbook entry may use those of the loops that call
// it.
func (c *checker) elementNames(at playbook.StepSpot) []string {
	var names []string
	switch {
	case at.Spot == playbook.AtWorkbook:
		for _, step := range c.callingSteps(at.Action) {
			if step.Loop != nil {
				names = append(names, step.Loop.Element)
			}
		}
	case at.Step != nil && at.Step.Loop != nil && at.Spot&(inLoop|playbook.AtState) != 0:
		names = append(names, at.Step.Loop.Element)
	}
	return names
}

// collectedNames returns the names that the site's step collects into and that are available there.
func collectedNames(at playbook.StepSpot) []string {
	if at.Step == nil || at.Spot&(playbook.AtWhen|playbook.AtThen|playbook.AtThenSink) == 0 {
		return nil
	}
	var names []string
	for collect := range at.Step.CollectSections() {
		names = append(names, collect.Into)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func unknownName(c *checker, at playbook.StepSpot, pos place, name string) {
	inLoop := func(step *playbook.Step) bool { return step.Loop != nil && step.Loop.Element == name }
	if step := lists.First(c.pb.Steps, inLoop); step != nil {
		c.Errorf(pos.sourcePosition(), codeUnavailableName, "%q is the element of the loop in step %q and available only inside it", name, step.Name)
		return
	}
	if step := c.stepInto(name); step != nil {
		c.Errorf(pos.sourcePosition(), codeUnavailableName, "step %[2]q collects into %[1]q, which is available in the when and then of its retry; after the step, use %[3]s for its result", name, step.Name, step.Name)
		return
	}
	if hint := cmp.Or(playbook.PlainHint(c.workloadHint(name)), c.unknownHint(at, name)); hint.Text != "" {
		c.Errorf(pos.sourcePosition(), codeUnknownName, "unknown name %q%s", name, hint.Text)
		c.AddFix(name, hint.CertainReplacement(name, c.namesAt(at)))
	}
}

// unknownHint suggests what an unknown name may mean, or what is missing. The hint is empty if the name may be
// given elsewhere.
func (c *checker) unknownHint(at playbook.StepSpot, name string) playbook.Hint {
	if c.options.Open || c.options.caller != nil && c.options.caller.open {
		return playbook.Hint{}
	}
	near, foreign := "", c.foreignName(at, name)
	if len(c.workload) <= mostSuggested {
		near = expression.Suggest(name, c.namesAt(at))
	}
	switch {
	case name == playbook.RowWord && near == "":
		return playbook.PlainHint(": it is available in where of a step, in fields and path of a sink, and in args, fields and path of to in transfer")
	case name == playbook.CallbackWord:
		return playbook.PlainHint(fmt.Sprintf(": it is available in %s of the tools that await an answer", joinChoices(playbook.RequestFields)))
	case at.Spot&(playbook.AtBegin|playbook.AtState) == 0 && c.mayHaveArg(at, name):
		return meantMember("args", name)
	case at.Spot&(playbook.AtBegin|playbook.AtState) == 0 && c.vars[name]:
		return meantMember("vars", name)
	case foreign != "":
		return playbook.PlainHint(foreign)
	case near != "":
		return playbook.DidYouMean(near)
	case expression.IsFunction(name):
		return playbook.PlainHint(fmt.Sprintf("; to call the function, write %s(…)", name))
	case slices.Contains(playbook.NoticeNames, name) && len(c.pb.Notify) > 0:
		return playbook.PlainHint(": it is available in notify, and in on_success and on_failure of the playbook")
	case c.isUnnamed(), c.partial && len(c.workload) == 0, c.meant[name]:
		return playbook.Hint{} // it could be what was not decoded
	case c.options.caller != nil:
		return playbook.PlainHint(": it is not a step, a workload key or a name of the language; if it should be passed in, add it to the workload of the step that runs this playbook")
	}
	return playbook.PlainHint(fmt.Sprintf(": it is not a step, a workload key or a name of the language; if the run supplies it, validate with --set %s=…", name))
}

// meantMember returns a hint to a member of args or vars.
func meantMember(owner, name string) playbook.Hint {
	word := owner + "." + name
	return playbook.Hint{Text: fmt.Sprintf("; did you mean %s?", word), Word: word}
}

// mostSuggested bounds the names that are compared with a misspelt one. Each misspelt name is compared with each
// known one, and a workload may have any number.
const mostSuggested = 1000

// mayHaveArg reports whether the args at a site may have a member: those of the step, of its pages, and of routes
// that lead to it.
func (c *checker) mayHaveArg(at playbook.StepSpot, name string) bool {
	var s supply
	switch {
	case at.Step != nil && at.Step.Action != nil:
		s = c.suppliedArgs(at.Step, at.Step.Action.Args)
	case at.Step == nil && at.Action != nil: // an entry of the workbook
		s.addNode(at.Action.Args, &s.always)
	}
	return s.hasArg(name)
}

func (c *checker) stepInto(name string) *playbook.Step {
	for _, step := range c.pb.Steps {
		for collect := range step.CollectSections() {
			if collect.Into == name {
				return step
			}
		}
	}
	return nil
}

// namesAt returns all names that an expression may use at a site.
func (c *checker) namesAt(at playbook.StepSpot) []string {
	names := slices.Collect(maps.Keys(c.workload))
	names = append(names, c.elementNames(at)...)
	names = append(names, collectedNames(at)...)
	for _, w := range words {
		if c.hasWord(at, w) {
			names = append(names, w.name)
		}
	}
	if at.Spot == playbook.AtRunNotice {
		names = append(names, playbook.NoticeNames...)
	}
	if at.Spot&(playbook.AtBegin|playbook.AtState) == 0 {
		names = append(names, c.stepNames()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
