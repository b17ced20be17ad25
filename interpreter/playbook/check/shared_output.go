package check

import (
	"fmt"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// checkSharedOutput warns about a sink that replaces the same file with each page of a call or in each iteration of a loop, so that it
// contains only what was written last.
func checkSharedOutput(c *checker) {
	for _, step := range c.pb.Steps {
		for _, policy := range step.Retry {
			if policy.Then.NextCall != nil {
				checkFileOfPages(c, step, policy.Then.PageSinks)
			}
		}
		if step.Loop == nil {
			continue
		}
		for _, call := range step.SinkCalls() {
			if call.Spot&(playbook.AtThenSink|playbook.AtLoopSink) != 0 && !c.pb.StagesFile(step, call.Sink) {
				checkSharedFile(c, step, call.Action)
			}
		}
	}
}

// checkFileOfPages checks the page sinks of a policy that asks for further pages. Pages that become one file at the end of the call are
// fine. A path that names the row still has rows of several pages, unless it names the page too.
func checkFileOfPages(c *checker, step *playbook.Step, sinks []*playbook.Sink) {
	for _, sink := range sinks {
		if sink.Action == nil || c.pb.StagesFile(step, sink) {
			continue
		}
		action := c.pb.ResolveAction(sink.Action)
		path, mode := action.Field(playbook.FieldPath), action.Field(playbook.FieldMode)
		if !playbook.TraitsOf(c.toolOf(action)).IntoFile || path == nil || mode == nil || mode.Value != modeOverwrite || action.PlaceNaming(step.AttemptNames()...) != nil {
			continue
		}
		c.Warnf(mode.Pos, codeSharedOutput, "each page overwrites this file, so only the rows of the last one stay; use mode: append, %s", onceForPages(step))
	}
}

// onceForPages says what else keeps the rows of all pages. A state moves with each page, so there are no pages that could be written at once.
func onceForPages(step *playbook.Step) string {
	if step.Incremental != nil {
		return "or use the page in path, such as {{ _retry.page }}"
	}
	return "or move the sink from per_iteration to then, where it writes all pages at once"
}

func checkSharedFile(c *checker, step *playbook.Step, action *playbook.Action) {
	path, mode := action.Field("path"), action.Field(playbook.FieldMode)
	if !playbook.TraitsOf(c.toolOf(action)).IntoFile || path == nil || mode == nil || mode.Value != modeOverwrite || c.mayVary(path) {
		return
	}
	c.Warnf(path.Pos, codeSharedOutput, "each iteration overwrites this file, so only the last one stays; use the element in path, "+
		"such as {{ %s }}, use mode: append, or write all results once with the sink of the step", c.nameOfElement(step))
}

const modeOverwrite = "overwrite"

// mayVary reports whether a value may differ between iterations: it uses more than data of the run and of earlier
// steps.
func (c *checker) mayVary(node *playbook.Node) bool {
	for _, ref := range node.Refs() {
		_, isKey := c.workload[ref.Root]
		same := slices.Contains([]string{"workload", "steps", "vars", "run", "execution_id", playbook.PartitionWord}, ref.Root)
		if !same && !isKey && c.pb.Step(ref.Root) == nil {
			return true
		}
	}
	return false
}

// checkReplacedRows warns about a sink that replaces what an earlier step of the run has written, so that only the rows of the last one
// stay.
func checkReplacedRows(c *checker) {
	if c.partial || c.unclear {
		return
	}
	routes := newRoutes(c)
	for _, step := range c.pb.Steps {
		for _, call := range step.SinkCalls() {
			last := c.pb.ResolveAction(call.Action)
			if !replacesAll(last) || slices.ContainsFunc(placeFields(last), c.mayVary) || readsPlace(c.pb, last) {
				continue
			}
			for _, before := range c.pb.Steps {
				if before != step && routes.leadsTo(before, step) && !routes.leadsTo(step, before) && !onlyIfFailed(before) && writesPlace(c.pb, before, last) {
					c.Warnf(modeField(last).Pos, codeReplacedRows, "this sink %s, so those that step %q wrote before are lost; write both with one step or loop%s",
						replacementText(last), before.Name, replacementHint(last))
					break
				}
			}
		}
	}
}

// checkReplacingChild warns about a loop over a playbook whose sink replaces the same table or file in every iteration.
func checkReplacingChild(c *checker, call playbook.CallAt, called *playbook.Playbook) {
	if called == nil || call.Step == nil || call.Step.Loop == nil || call.Sink != nil {
		return
	}
	for _, step := range called.Steps {
		for _, sink := range step.SinkCalls() {
			action := called.ResolveAction(sink.Action)
			varies := slices.ContainsFunc(placeFields(action), func(node *playbook.Node) bool { return node.Template != nil })
			if replacesAll(action) && !varies && !readsPlace(called, action) {
				c.Warnf(startOf(call.Action), codeReplacedRows, "each iteration runs step %q, whose sink %s, so only those of the last iteration stay; let the loop itself run the step%s",
					step.Name, replacementText(action), replacementHint(action))
				return
			}
		}
	}
}

// replacesAll reports whether a sink replaces all that a table or file has.
func replacesAll(action *playbook.Action) bool {
	if action.ToolTraits().IntoFile {
		mode := action.Field(playbook.FieldMode)
		return mode != nil && mode.Value == modeOverwrite
	}
	return action.StagesRows() && action.Field("replace_where") == nil
}

// modeField is the field because of which a sink replaces rows.
func modeField(action *playbook.Action) *playbook.Node {
	if action.ToolTraits().IntoFile {
		return action.Field(playbook.FieldMode)
	}
	_, at := stagingWord(action)
	return at
}

// replacementText says what such a sink does, after its subject.
func replacementText(action *playbook.Action) string {
	if action.ToolTraits().IntoFile {
		return fmt.Sprintf("overwrites the rows of %s", action.Field(playbook.FieldPath).Raw)
	}
	word, _ := stagingWord(action)
	return fmt.Sprintf("keeps no other rows of table %s (%s)", nodeText(action.Field("table")), word)
}

// replacementHint says what else may be meant.
func replacementHint(action *playbook.Action) string {
	if action.ToolTraits().IntoFile {
		return ", use mode: append, or another path"
	}
	return ", use mode: upsert with a key, or limit what is replaced with replace_where"
}

// placeFields are the fields that say where a sink writes.
func placeFields(action *playbook.Action) []*playbook.Node {
	var fields []*playbook.Node
	for _, node := range []*playbook.Node{action.Tool, action.Auth, action.Field(playbook.FieldPath), action.Field("table")} {
		if node != nil {
			fields = append(fields, node)
		}
	}
	return fields
}

// placeText is the same for sinks that write to the same place.
func placeText(action *playbook.Action) string {
	var text strings.Builder
	for _, node := range placeFields(action) {
		text.WriteString(node.Raw + expression.Text(node.Value) + "\x00")
	}
	return text.String()
}

// writesPlace reports whether a step has a sink that writes where another one writes.
func writesPlace(pb *playbook.Playbook, step *playbook.Step, as *playbook.Action) bool {
	return slices.ContainsFunc(step.SinkCalls(), func(call playbook.CallAt) bool { return placeText(pb.ResolveAction(call.Action)) == placeText(as) })
}

// readsPlace reports whether a playbook may use what a sink writes before it is replaced: a statement names the table, or a call reads the
// file.
func readsPlace(pb *playbook.Playbook, sink *playbook.Action) bool {
	table := ""
	if node := sink.Field("table"); node != nil {
		table = strings.ToLower(nodeText(node))
		table = table[strings.LastIndexByte(table, '.')+1:]
	}
	return slices.ContainsFunc(pb.AllCalls(), func(call playbook.CallAt) bool {
		action := pb.ResolveAction(call.Action)
		if statement := action.Field(playbook.FieldStatement); statement != nil && table != "" && strings.Contains(strings.ToLower(statement.Raw), table) {
			return true
		}
		return call.Sink == nil && action != sink && placeText(action) == placeText(sink)
	})
}

// onlyIfFailed reports whether each route of a step needs a failure: what follows is loaded in its place.
func onlyIfFailed(step *playbook.Step) bool {
	return len(step.Next) > 0 && !slices.ContainsFunc(step.Next, func(route *playbook.Route) bool {
		return route.When == nil || !route.When.UsesAny("error")
	})
}
