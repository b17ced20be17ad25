package interpreter

import (
	"fmt"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// bulk is a part of a run's result that can be removed.
type bulk struct {
	what  string
	leave func(*RunResult) bool // removes it, and reports whether there was any
}

// bulks are the parts that are removed, in this order, from a result that is too large.
var bulks = []bulk{
	{"the warnings of validation, which starter validate shows", dropValidation},
	{"the rows of steps by table", dropTables},
	{"what failed iterations had collected", dropErrors(iterationErrors, dropCollected)},
	{"what the steps that failed had collected", dropErrors(stepErrors, dropCollected)},
	{"the bodies of the answers that failed iterations", dropErrors(iterationErrors, dropBody)},
	{"the bodies of the answers that failed steps", dropErrors(stepErrors, dropBody)},
}

// lasts are removed only if that was not enough: people look for them first.
var lasts = []bulk{
	{"the result; write it with a sink, or select less with `output`", dropResult},
	{"what the failure had collected", dropErrors(runErrors, dropCollected)},
	{"the body of the answer", dropErrors(runErrors, dropBody)},
}

// Shrink reduces a run's result to most bytes. It removes large data, with a warning for each kind; records,
// statuses and messages are kept, and the failure that ended the run is reduced last. Shared parts of the result
// are copied before they are changed.
func (r *RunResult) Shrink(most int) {
	if EncodedSize(r) <= most {
		return
	}
	r.copyOwn()
	r.removeUntilSmall(bulks, most)
	r.shrinkLoops(most)
	r.removeUntilSmall(lasts, most)
	r.shrinkVisits(most)
}

// removeUntilSmall removes one part after the other until the result is small enough.
func (r *RunResult) removeUntilSmall(bulks []bulk, most int) {
	for _, bulk := range bulks {
		if EncodedSize(r) > most && bulk.leave(r) {
			r.Warnings = append(r.Warnings, "too large for the run's result, and therefore not in it: "+bulk.what)
		}
	}
}

func dropValidation(r *RunResult) bool {
	had := len(r.ValidationWarnings) > 0
	r.ValidationWarnings = nil
	return had
}

// dropTables removes the tables of steps but keeps their totals, and the tables of the run as a whole.
func dropTables(r *RunResult) bool {
	left := false
	for i := range r.Steps {
		if rows := r.Steps[i].Rows; rows != nil && len(rows.Tables) > 1 {
			r.Steps[i].Rows, left = &Rows{RowTotals: rows.RowTotals}, true
		}
	}
	return left
}

// copyOwn copies what Shrink changes, because the run still uses its records.
func (r *RunResult) copyOwn() {
	own := func(failure **ErrorObject) {
		if *failure != nil {
			copied := **failure
			*failure = &copied
		}
	}
	own(&r.Error)
	r.Steps, r.Warnings = slices.Clone(r.Steps), slices.Clone(r.Warnings)
	for i := range r.Steps {
		record := &r.Steps[i]
		own(&record.Error)
		if record.Loop == nil {
			continue
		}
		loop := *record.Loop
		loop.Errors = slices.Clone(loop.Errors)
		for j := range loop.Errors {
			own(&loop.Errors[j].Error)
		}
		record.Loop = &loop
	}
}

func runErrors(r *RunResult) []*ErrorObject { return []*ErrorObject{r.Error} }

func stepErrors(r *RunResult) []*ErrorObject {
	return lists.Map(r.Steps, func(record StepRecord) *ErrorObject { return record.Error })
}

func iterationErrors(r *RunResult) []*ErrorObject {
	var failures []*ErrorObject
	for _, record := range r.Steps {
		if record.Loop == nil {
			continue
		}
		for _, failure := range record.Loop.Errors {
			failures = append(failures, failure.Error)
		}
	}
	return failures
}

func dropErrors(of func(*RunResult) []*ErrorObject, leave func(*ErrorObject) bool) func(*RunResult) bool {
	return func(r *RunResult) bool {
		left := false
		for _, failure := range of(r) {
			left = failure != nil && leave(failure) || left
		}
		return left
	}
}

func dropCollected(failure *ErrorObject) bool {
	left := failure.Collected.Data != nil
	failure.Collected = expression.Value{}
	return left
}

func dropBody(failure *ErrorObject) bool {
	if EncodedSize(failure.Body) <= bulky {
		return false
	}
	failure.Body = expression.Value{}
	return true
}

func dropResult(r *RunResult) bool {
	left := r.Result.Data != nil
	r.Result = expression.Value{}
	return left
}

// shrinkLoops removes errors of iterations, in equal shares for every loop, until the rest fits; the stats still
// count all of them.
func (r *RunResult) shrinkLoops(most int) {
	if EncodedSize(r) <= most {
		return
	}
	loops, lists := 0, 0
	for _, record := range r.Steps {
		if record.Loop != nil && len(record.Loop.Errors) > 0 {
			loops, lists = loops+1, lists+EncodedSize(record.Loop.Errors)
		}
	}
	room := most - (EncodedSize(r) - lists) - loops*warningRoom
	for i := range r.Steps {
		loop := r.Steps[i].Loop
		if loop == nil || len(loop.Errors) == 0 || EncodedSize(loop.Errors) <= room/loops {
			continue
		}
		all := len(loop.Errors)
		loop.Errors = loop.Errors[:countErrorsWithin(loop.Errors, len(","), room/loops)]
		r.Warnings = append(r.Warnings, fmt.Sprintf("step %s: of %d errors of iterations, only the first %d are kept; "+
			"see the child workflows for the others", r.Steps[i].Step, all, len(loop.Errors)))
	}
}

// mostWarnings bounds the warnings that a result keeps when it is too large even without them: a result that
// Temporal rejects leaves the run hanging.
const mostWarnings = 50

// shrinkVisits removes records of a run with very many visits until the rest fits: the oldest first, and successful
// ones before others.
func (r *RunResult) shrinkVisits(most int) {
	if EncodedSize(r) <= most {
		return
	}
	if n := len(r.Warnings); n > mostWarnings {
		more := "and 1 more warning"
		if n > mostWarnings+1 {
			more = fmt.Sprintf("and %d more warnings", n-mostWarnings)
		}
		r.Warnings = append(r.Warnings[:mostWarnings:mostWarnings], more)
		for i := range r.Steps {
			if loop := r.Steps[i].Loop; loop != nil && loop.Warning > mostWarnings {
				loop.Warning = 0
			}
		}
	}
	excess := EncodedSize(r) + warningRoom - most
	all := len(r.Steps)
	for _, goes := range []func(StepRecord) bool{isWithoutFailure, func(StepRecord) bool { return true }} {
		r.Steps = slices.DeleteFunc(r.Steps, func(record StepRecord) bool {
			if excess <= 0 || !goes(record) {
				return false
			}
			excess -= EncodedSize(record) + len(",")
			return true
		})
	}
	r.Warnings = append(r.Warnings, fmt.Sprintf("%d of %d records of visits are too large for the run's result, "+
		"and left out of it", all-len(r.Steps), all))
}

func isWithoutFailure(record StepRecord) bool {
	return record.Status == Completed || record.Status == Skipped
}
