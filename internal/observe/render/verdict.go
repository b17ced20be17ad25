package render

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// EndedRun is an ended run and what is known about it.
type EndedRun struct {
	WorkflowID string
	Result     protocol.Result
	Took       time.Duration      // 0 where that is not known
	Book       *playbook.Playbook // nil where that is not known
	// Partition is the key of the partition that the run was started for; "" for none, and where that is not known.
	Partition string
	// Whole is the command that prints what a terminal shows only in part; "" if the run's server ends with its command.
	Whole string
	// ReadChild reads the end of the child run that a failure comes from, and returns nil if that cannot be read. If ReadChild is nil,
	// the message of the failure has to suffice.
	ReadChild func(*interpreter.ErrorObject) *EndedRun
}

// childOf returns the child run that a failure comes from, and why it failed; nil if no child run did, or it cannot be read.
func (o EndedRun) childOf(failure *interpreter.ErrorObject) (*EndedRun, *Cause) {
	if o.ReadChild == nil || failure == nil || failure.Kind != interpreter.KindPlaybook {
		return nil, nil
	}
	child := o.ReadChild(failure)
	if child == nil {
		return nil, nil
	}
	return child, child.Cause()
}

// verdictText describes a run in a sentence: how it ended, after how long, and for a failed run where and why.
func (o EndedRun) verdictText(paper terminal.Paper) string {
	text := o.WorkflowID + ": " + paper.Paint(styleOf(o.Result.Status), string(o.Result.Status))
	failed := o.Result.Error != nil
	switch {
	case o.Took > 0 && o.Result.Status.Ending() == interpreter.Bad:
		text += " after " + terminal.Duration(o.Took)
	case o.Took > 0:
		text += " in " + terminal.Duration(o.Took)
	}
	if !failed {
		return text
	}
	record := o.failedVisit()
	if record == nil {
		return text + ": " + paper.Shorten(o.Result.Error.Message, shownVerdict)
	}
	text += " in " + StepName(*record) + o.stepPlace(record.Step)
	failure, first := o.Result.Error, firstFailed(record)
	if first != nil && failure.Kind == interpreter.KindLoop {
		text += fmt.Sprintf(", iteration %d with element %s", first.Index, shortElement(first.Element.Data, paper))
		if first.Error != nil {
			failure = first.Error
		}
	}
	message := strings.TrimPrefix(failure.Message, "step "+record.Step+": ")
	return text + ": " + paper.Shorten(message, shownVerdict)
}

// shownVerdict bounds an error's message in a verdict at a terminal, in characters.
const shownVerdict = 500

// failedVisit returns the step visit with which the run failed; nil if there is none.
func (o EndedRun) failedVisit() *protocol.StepRecord {
	for i, record := range slices.Backward(o.Result.Steps) {
		if record.Status == interpreter.Failed && !record.Handled {
			return &o.Result.Steps[i]
		}
	}
	return nil
}

// firstFailed returns the failed iteration of a loop with the lowest index; nil if there is none.
func firstFailed(record *protocol.StepRecord) *interpreter.LoopError {
	var first *interpreter.LoopError
	if record.Loop == nil {
		return nil
	}
	for i := range record.Loop.Errors {
		if failure := &record.Loop.Errors[i]; first == nil || failure.Index < first.Index {
			first = failure
		}
	}
	return first
}

// stepPlace returns the file and line of a step; "" if unknown.
func (o EndedRun) stepPlace(step string) string {
	if o.Book == nil {
		return ""
	}
	found := o.Book.Step(step)
	if found == nil || found.NamePos.IsZero() {
		return ""
	}
	return fmt.Sprintf(" (%s:%d)", o.Book.File.Name, found.NamePos.Line)
}

// framePlace matches the place of a traceback frame in the code of a step or sink.
var framePlace = regexp.MustCompile(`File "<([^">]+)>", line (\d+)`)

// placeTraceback replaces the places of traceback frames by the file and lines of the playbook.
func (o EndedRun) placeTraceback(trace string) string {
	if o.Book == nil {
		return trace
	}
	return framePlace.ReplaceAllStringFunc(trace, func(frame string) string {
		parts := framePlace.FindStringSubmatch(frame)
		line, _ := strconv.Atoi(parts[2])
		action := o.Book.ActionAt(parts[1])
		if action == nil {
			return frame
		}
		code := o.Book.ResolveAction(action).Field("code")
		lines := []string{}
		if code != nil {
			lines = strings.SplitAfter(code.Raw, "\n")
		}
		if line < 1 || line > len(lines) {
			return frame
		}
		before := strings.Join(lines[:line-1], "")
		at := code.Position(utf8.RuneCountInString(before))
		return fmt.Sprintf("File %q, line %d", o.Book.File.Name, at.Line)
	})
}
