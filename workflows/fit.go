package workflows

import (
	"fmt"
	"slices"

	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// bulks is what a run's result that is too large goes without, in this order.
// Each reports whether there was any of it.
var bulks = []struct {
	what  string
	leave func(*Result) bool
}{
	{"what failed iterations had collected", leaveErrors(ofIterations, leaveCollected)},
	{"what the steps that failed had collected", leaveErrors(ofSteps, leaveCollected)},
	{"the bodies of the answers that failed iterations", leaveErrors(ofIterations, leaveBody)},
	{"the bodies of the answers that failed steps", leaveErrors(ofSteps, leaveBody)},
}

// lasts is what it goes without when that was not enough: what people look for
// first.
var lasts = []struct {
	what  string
	leave func(*Result) bool
}{
	{"the result; write it away with a sink or choose less with `output`", leaveResult},
	{"what the failure had collected", leaveErrors(ofRun, leaveCollected)},
	{"the body of the answer", leaveErrors(ofRun, leaveBody)},
}

// fit keeps a run's result within a number of bytes. What is left out is the bulk,
// each with a warning; records, statuses and messages stay, and the failure that
// ended the run loses what it has last of all.
func fit(result *Result, most int) {
	if encodedSize(result) <= most {
		return
	}
	result.own()
	for _, bulk := range bulks {
		if encodedSize(result) > most && bulk.leave(result) {
			result.tooLarge(bulk.what)
		}
	}
	fitIterations(result, most)
	for _, last := range lasts {
		if encodedSize(result) > most && last.leave(result) {
			result.tooLarge(last.what)
		}
	}
	fitVisits(result, most)
}

// own copies what fit changes: the run goes on to use its records.
func (result *Result) own() {
	own := func(failure **interpreter.ErrorObject) {
		if *failure != nil {
			copied := **failure
			*failure = &copied
		}
	}
	own(&result.Error)
	result.Steps, result.Warnings = slices.Clone(result.Steps), slices.Clone(result.Warnings)
	for i := range result.Steps {
		record := &result.Steps[i]
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

func (result *Result) tooLarge(what string) {
	result.Warnings = append(result.Warnings, "too large for the run's result, and left out of it: "+what)
}

func ofRun(result *Result) []*interpreter.ErrorObject {
	return []*interpreter.ErrorObject{result.Error}
}

func ofSteps(result *Result) []*interpreter.ErrorObject {
	failures := make([]*interpreter.ErrorObject, 0, len(result.Steps))
	for _, record := range result.Steps {
		failures = append(failures, record.Error)
	}
	return failures
}

func ofIterations(result *Result) []*interpreter.ErrorObject {
	var failures []*interpreter.ErrorObject
	for _, record := range result.Steps {
		if record.Loop == nil {
			continue
		}
		for _, failure := range record.Loop.Errors {
			failures = append(failures, failure.Error)
		}
	}
	return failures
}

func leaveErrors(of func(*Result) []*interpreter.ErrorObject, leave func(*interpreter.ErrorObject) bool) func(*Result) bool {
	return func(result *Result) bool {
		left := false
		for _, failure := range of(result) {
			left = failure != nil && leave(failure) || left
		}
		return left
	}
}

func leaveCollected(failure *interpreter.ErrorObject) bool {
	left := failure.Collected.Data != nil
	failure.Collected = expression.Value{}
	return left
}

func leaveBody(failure *interpreter.ErrorObject) bool {
	if encodedSize(failure.Body) <= bulky {
		return false
	}
	failure.Body = expression.Value{}
	return true
}

func leaveResult(result *Result) bool {
	left := result.Result.Data != nil
	result.Result = expression.Value{}
	return left
}

// fitIterations keeps as many errors of iterations as fit, the same share of
// every loop; the stats still count all of them.
func fitIterations(result *Result, most int) {
	if encodedSize(result) <= most {
		return
	}
	loops, lists := 0, 0
	for _, record := range result.Steps {
		if record.Loop != nil && len(record.Loop.Errors) > 0 {
			loops, lists = loops+1, lists+encodedSize(record.Loop.Errors)
		}
	}
	const warning = 200 // bytes
	room := most - (encodedSize(result) - lists) - loops*warning
	for i := range result.Steps {
		loop := result.Steps[i].Loop
		if loop == nil || len(loop.Errors) == 0 || encodedSize(loop.Errors) <= room/loops {
			continue
		}
		size, all := 0, len(loop.Errors)
		for j, failure := range loop.Errors {
			if size += encodedSize(failure) + 1; size > room/loops {
				loop.Errors = loop.Errors[:j]
				break
			}
		}
		result.Warnings = append(result.Warnings, fmt.Sprintf("step %s: of %d errors of iterations only the first %d are kept; "+
			"see the child workflows for the others", result.Steps[i].Step, all, len(loop.Errors)))
	}
}

// mostWarnings is how many warnings a result keeps that does not fit otherwise.
const mostWarnings = 50

// fitVisits keeps as many records as fit, where a run has made thousands of
// visits: the oldest go first, and of them those that went well.
func fitVisits(result *Result, most int) {
	if encodedSize(result) <= most {
		return
	}
	if n := len(result.Warnings); n > mostWarnings {
		result.Warnings = append(result.Warnings[:mostWarnings:mostWarnings], fmt.Sprintf("and %d more warnings", n-mostWarnings))
	}
	const warning = 200 // bytes
	excess := encodedSize(result) + warning - most
	all := len(result.Steps)
	for _, goes := range []func(StepRecord) bool{wentWell, func(StepRecord) bool { return true }} {
		result.Steps = slices.DeleteFunc(result.Steps, func(record StepRecord) bool {
			if excess <= 0 || !goes(record) {
				return false
			}
			excess -= encodedSize(record) + 1
			return true
		})
	}
	result.Warnings = append(result.Warnings, fmt.Sprintf("%d of %d records of visits are too large for the run's result, "+
		"and left out of it", all-len(result.Steps), all))
}

func wentWell(record StepRecord) bool {
	return record.Status == interpreter.Completed || record.Status == interpreter.Skipped
}
