package migrate

import (
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/yamltree"
)

// migrateSinks moves sinks that use the element of a loop from the step, where they run once, to the loop, where
// they run once per iteration. Positions refer to the original, from which book was decoded; path names the step
// with book as an inline playbook, "" for the file.
func (m *migrator) migrateSinks(book *playbook.Playbook, path string) {
	for _, entry := range book.Workbook {
		if entry.Inline != nil {
			m.migrateSinks(entry.Inline, workbookPath+"/"+entry.Name)
		}
	}
	for i := len(book.Steps) - 1; i >= 0; i-- {
		step := book.Steps[i]
		if step.Action != nil && step.Action.Inline != nil {
			m.migrateSinks(step.Action.Inline, path+"/"+step.Name)
		}
		if step.Loop == nil || len(step.Sinks) == 0 || !namesIteration(step) {
			continue
		}
		switch {
		case len(step.Loop.Sinks) > 0:
			m.addProblem(step.Sinks[0].Pos, playbook.CodeElementInStepSink,
				"the sink on step "+strconv.Quote(step.Name)+" names the element and belongs in loop.sink, but the loop already has a sink; merge the two by hand")
		case m.moveSink(path + "/" + step.Name):
			m.addChange(step.Sinks[0].Pos, "the sink of step "+step.Name+" moves to loop.sink, because it names the element")
		default:
			m.addProblem(step.Sinks[0].Pos, playbook.CodeNotMigrated,
				"the sink on step "+strconv.Quote(step.Name)+" names the element and belongs in loop.sink, but cannot be moved automatically; move it by hand")
		}
	}
}

// namesIteration reports whether the step's sink uses values that only an iteration has.
func namesIteration(step *playbook.Step) bool {
	return slices.ContainsFunc(step.StepSinkNodes(), func(n *playbook.Node) bool {
		return slices.ContainsFunc(n.Refs(), func(ref expression.Ref) bool {
			return ref.Root == step.Loop.Element || ref.Root == "_loop"
		})
	})
}

// moveSink moves the sink of the step with a path.
func (m *migrator) moveSink(path string) bool {
	return m.rewriteText(func(e extent, root *yaml.Node) ([]edit, bool) {
		for _, site := range stepsOf(root) {
			if site.path != path || site.flow {
				continue
			}
			step := site.node
			edits, ok := e.sinkEdits(step)
			if !ok {
				continue
			}
			at := indexOfSink(step)
			pair := slices.Clone(step.Content[at : at+2])
			step.Content = slices.Delete(step.Content, at, at+2)
			loop := yamltree.KeyValues(step)["loop"]
			loop.Content = append(loop.Content, pair...)
			return edits, true
		}
		return nil, false
	})
}

// sinkEdits returns the edits that move a step's sink to the end of its loop. Both must be in lines of their own.
func (e extent) sinkEdits(step *yaml.Node) ([]edit, bool) {
	sinkAt, loopAt := indexOfSink(step), yamltree.IndexOf(step, "loop")
	if sinkAt < 0 || loopAt < 0 {
		return nil, false
	}
	key, sink := step.Content[sinkAt], step.Content[sinkAt+1]
	loopKey, loop := step.Content[loopAt], step.Content[loopAt+1]
	loopEnd := e.endOffset(loop)
	if loopEnd < 0 || loop.Kind != yaml.MappingNode || len(loop.Content) == 0 {
		return nil, false
	}
	firstLine, lastLine, ok := e.wholeLines(key, sink)
	if !ok {
		return nil, false
	}
	breaks := lineBreak([]byte(e.text))
	var lines []string
	for n := firstLine; n <= lastLine; n++ {
		lines = append(lines, e.file.Line(n))
	}
	margin := loopKey.Column + 1
	if !inBrackets(loop) {
		margin = loop.Content[0].Column - 1
	}
	sinkText := breaks + shiftLines(lines, margin-(key.Column-1), breaks)
	insert := edit{e.lineEnd(e.lineAt(loopEnd)), e.lineEnd(e.lineAt(loopEnd)), sinkText}
	if inBrackets(loop) {
		insert = e.loopInLines(loopKey, loop, sinkText, breaks)
	}
	return []edit{insert, e.removeLines(firstLine, lastLine)}, true
}

// loopInLines rewrites a loop in brackets in several lines, so that the sink can be added.
func (e extent) loopInLines(key, loop *yaml.Node, sinkText, breaks string) edit {
	end := e.endOffset(loop)
	lineEnd := e.lineEnd(e.lineAt(end))
	inLines := yamltree.WithoutAliases(loop, false)
	inLines.Style = 0
	text := strings.TrimRight(e.text[end:lineEnd], " \t") + breaks +
		indentBlock(yamltree.EncodeNode(inLines), key.Column+1, breaks) + sinkText
	return edit{e.valueOffset(key), lineEnd, text}
}

// shiftLines indents lines, or unindents them as far as possible.
func shiftLines(lines []string, by int, breaks string) string {
	for i, line := range lines {
		switch {
		case strings.TrimSpace(line) == "":
		case by >= 0:
			lines[i] = strings.Repeat(" ", by) + line
		default:
			lines[i] = line[min(-by, len(line)-len(strings.TrimLeft(line, " "))):]
		}
	}
	return strings.Join(lines, breaks)
}
