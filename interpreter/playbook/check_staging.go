package playbook

import (
	"slices"

	"reprise/interpreter/expression"
)

const modeReplaceWord = fieldMode + ": " + modeReplace

// checkStaging checks sinks whose rows are published together: mode replace and delete_missing
// (docs/concepts/written-once.md#rows-that-are-published-together).
func checkStaging(c *checker) {
	for _, call := range c.pb.actions() {
		if action := c.pb.Resolve(call.action); call.spot&atWorkbook == 0 && action.stages() {
			c.checkStagingPlace(call, action)
		}
	}
	for _, step := range c.pb.Steps {
		c.checkStagedOnce(step)
	}
}

// stagingWord is the word for which an action stages rows, and where it is.
func (a *Action) stagingWord() (word string, at *Node) {
	if deletes := a.Field(fieldDeleteMissing); deletes != nil && deletes.Value != false && deletes.Value != "false" {
		return "delete_missing", deletes
	}
	return modeReplaceWord, a.Field(fieldMode)
}

// checkStagingPlace refuses such a sink where no call or loop publishes its rows.
func (c *checker) checkStagingPlace(call actionAt, action *Action) {
	word, at := action.stagingWord()
	step, remedy := call.step, "write mode: insert"
	if word != modeReplaceWord {
		remedy = "leave it out"
	}
	switch {
	case call.sink == nil:
		c.errorf(at.Pos, codeStaging, "%s is for sinks, whose rows are published once the call or loop has completed; read the rows with one step and write this as its sink", word)
	case call.spot&atNotices != 0:
		c.errorf(at.Pos, codeStaging, "a notice cannot have %s: it is one row, which would be the whole table; %s", word, remedy)
	case step.Loop != nil && call.sink == step.Loop.DeadLetter:
		c.errorf(at.Pos, codeStaging, "a sink for dead letters cannot have %s: what fails is never all there is; %s", word, remedy)
	case step.Incremental != nil:
		c.errorf(at.Pos, codeStaging, "step %q has incremental, so that it reads only what is new, and %s would delete all that it has not read; leave one of the two out",
			step.Name, word)
	case !slices.Contains(step.successSinks(), call.sink) && call.sink != step.Sink:
		c.errorf(at.Pos, codeStaging, "the policy follows failures only, after which nothing is published, and cannot have a sink with %s; %s", word, remedy)
	case action.placeNaming(attemptNames(step.Retry)...) != nil:
		c.errorf(action.placeNaming(attemptNames(step.Retry)...).Pos, codeStaging, "a sink with %s cannot depend here on what the step reads: all its rows are published together, in one table; "+
			"use values of the workload, vars or earlier steps", word)
	case step.Loop != nil && call.sink != step.Sink && action.placeNaming(step.Loop.Element, "_loop") != nil:
		c.errorf(action.placeNaming(step.Loop.Element, "_loop").Pos, codeStaging, "a sink with %s cannot depend here on the element: the rows of all iterations are published together, in one table; "+
			"to publish those of each element by themselves let the loop run tool: playbook, whose step has this sink", word)
	}
}

// checkStagedOnce refuses two sinks of a step of which one would publish over the other.
func (c *checker) checkStagedOnce(step *Step) {
	staging := c.pb.StagingSinks(step)
	if step.Loop != nil && c.pb.Stages(step.Sink) {
		staging = append(staging, step.Sink)
	}
	seen := map[string]*Sink{}
	for _, sink := range staging {
		action := c.pb.Resolve(sink.Action)
		where := expression.Hash([]any{nodeText(action.Tool), nodeText(action.Auth), nodeText(action.Field("path")), nodeText(action.Field("table"))})
		if first := seen[where]; first != nil {
			_, at := action.stagingWord()
			remedy := "leave one of them out"
			if step.Loop == nil {
				remedy += ": the sink of the policy that pages gets the last page too"
			}
			c.errorf(at.Pos, codeStaging, "%s publishes to this table too, and the later of the two would delete the rows of the other; %s", first.Place, remedy)
			continue
		}
		seen[where] = sink
	}
}

// nodeText is what a scalar says, as it is written.
func nodeText(n *Node) string {
	if n == nil {
		return ""
	}
	return n.Raw
}
