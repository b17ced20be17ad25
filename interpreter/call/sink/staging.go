package sink

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// The rows of a sink with mode replace, or with delete_missing, are staged by each write and published together
// (docs/concepts/written-once.md#rows-that-are-published-together): at the end of the call or, for iterations, at
// the end of their loop. They are published only if everything was read.

// stagingIDLength is 80 bits in hexadecimal: table names contain it and must be short.
const stagingIDLength = 20

// Round is a call that stages rows, in one of its rounds: each restart begins another round, which stages anew.
type Round struct {
	*request.Source
	Limits    interpreter.RunLimits
	LedgerKey func() string
	Restarts  int
}

// stagesRows reports whether a sink of the call stages rows.
func (r Round) stagesRows(sink *playbook.Sink) bool { return r.Limits.StagesRows(r.Book, r.Step, sink) }

// StagingOf returns what a sink does to staged rows; nil if it stages none.
func (r Round) StagingOf(sink *playbook.Sink, do interpreter.StagingStep) *interpreter.Staging {
	if !r.stagesRows(sink) {
		return nil
	}
	staging := interpreter.Staging{Part: r.Index, Round: r.Restarts, Do: do}
	if staging.ID = LoopStaging(r.Run, r.Step, r.Visit, sink); r.Index == nil {
		staging.ID = stagingID(r.LedgerKey(), sink.Place)
	}
	if r.Book.StagesFile(r.Step, sink) {
		staging.Lap = r.Run.WholeLap()
	}
	return &staging
}

// LoopStaging returns the ID of the rows that a loop stages for a sink. All runs of an identity share it, because
// an iteration that one of them has finished is not repeated by the next.
func LoopStaging(run interpreter.RunInfo, step *playbook.Step, visit int, sink *playbook.Sink) string {
	return stagingID(run.KeyPrefix(), step.Name, visit, sink.Place)
}

func stagingID(parts ...any) string { return expression.Digest(parts...)[:stagingIDLength] }

// BeginInputs returns the sinks whose tables must record that the call, or its loop, begins to read. Their places do not
// depend on what is read.
func (r Round) BeginInputs(sinks *Sinks, now time.Time) (begins []interpreter.ToolInput) {
	if r.Sink != nil {
		return nil
	}
	all := lists.Map(sinks.forSuccess(), sinks.SinkOf)
	if r.Index != nil {
		all = slices.Concat(all, r.Step.Sinks)
	}
	for _, sink := range all {
		staging := r.StagingOf(sink, interpreter.StagingBegin)
		if staging == nil || r.Book.StagesFile(r.Step, sink) { // of files nobody has to know that they will be written
			continue
		}
		input, fixed := r.SinkTarget(sink, now)
		if !fixed {
			continue
		}
		input.RunID, input.Staging = r.Run.RunID, staging
		begins = append(begins, input)
	}
	return begins
}

// EndChoices returns the sinks that handle staged rows at the end of a call, and warnings for its result: if the call has
// read everything, they publish the rows; for an iteration, they drop the rows of earlier rounds.
func (r Round) EndChoices(sinks *Sinks, result *interpreter.CallResult) (chosen []Choice, warnings []string) {
	if r.Sink != nil || result.Failed() {
		return nil, nil
	}
	do := interpreter.StagingPublish
	switch {
	case r.Index == nil:
	case r.Restarts == 0:
		return nil, nil
	default:
		do = interpreter.StagingSettle
	}
	whole := !result.Meta.Truncated && !result.Meta.Incomplete && result.Status == interpreter.StatusSuccess
	for _, choice := range sinks.forSuccess() {
		switch sink := sinks.SinkOf(choice); {
		case !r.stagesRows(sink):
		case do == interpreter.StagingPublish && !whole && r.Book.PublishesWhole(r.Step, sink):
			warnings = append(warnings, UnpublishedWarning(r.Book, r.Step, sink, 0))
		default:
			choice.Do = do
			chosen = append(chosen, choice)
		}
	}
	return chosen, warnings
}

// UnpublishedWarning returns the warning about a sink whose rows are not published because not everything was read. again is the number of
// iterations of a loop that can run again.
func UnpublishedWarning(book *playbook.Playbook, step *playbook.Step, sink *playbook.Sink, again int) string {
	if book.StagesFile(step, sink) {
		if book.PublishesWhole(step, sink) {
			return fmt.Sprintf("sink %s: not everything was read, so its path keeps its previous rows", sink.Place)
		}
		if step.Loop != nil && again == 0 { // its source failed
			return fmt.Sprintf("sink %s: the step failed, so nothing was added to its path; no iteration failed, so reprocess cannot add the staged rows: run the playbook again", sink.Place)
		}
		return fmt.Sprintf("sink %s: the step failed, so nothing was added to its path; its staged rows are added once the failed iterations have run again", sink.Place)
	}
	if book.ReplacesRows(sink) {
		return fmt.Sprintf("sink %s: not everything was read, so its table keeps its previous rows", sink.Place)
	}
	return fmt.Sprintf("sink %s: not everything was read, so no row was deleted from its table", sink.Place)
}
