package run

import (
	"slices"

	"reprise/interpreter/call"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// visits has the visits of steps that have begun, in order.
type visits struct {
	records []*protocol.StepRecord
	live    map[*protocol.StepRecord]*call.Call // calls of steps that are made in this workflow
	stopped map[*protocol.StepRecord]*call.Call // calls that were cancelled
}

// loadRecords restores the visits from the previous history.
func (v *visits) loadRecords(records []protocol.StepRecord) {
	v.live, v.stopped = map[*protocol.StepRecord]*call.Call{}, map[*protocol.StepRecord]*call.Call{}
	for i := range records {
		v.records = append(v.records, &records[i])
	}
}

func (v *visits) snapshotRecords() []protocol.StepRecord {
	return lists.Map(v.records, func(record *protocol.StepRecord) protocol.StepRecord { return *record })
}

// runningSteps returns the names of steps with an open visit.
func (v *visits) runningSteps() []string {
	var names []string
	for _, record := range v.records {
		if record.EndedAt.IsZero() && !slices.Contains(names, record.Step) {
			names = append(names, record.Step)
		}
	}
	return names
}

// isInChild reports whether the call of a step continues in a child workflow.
func (v *visits) isInChild(step *playbook.Step) bool {
	return slices.ContainsFunc(v.records, func(record *protocol.StepRecord) bool {
		return record.Step == step.Name && record.Call != "" && record.EndedAt.IsZero()
	})
}

// callOf returns the call of a visit that is made in this workflow, or was stopped in it; nil for none.
func (v *visits) callOf(record *protocol.StepRecord) *call.Call {
	if call := v.live[record]; call != nil {
		return call
	}
	return v.stopped[record]
}

// childRunning returns the ID of the child workflow that runs a visit, "" for none.
func (v *visits) childRunning(record *protocol.StepRecord) string {
	switch {
	case record.Loop != nil:
		return record.Loop.WorkflowID
	case record.Call != "":
		return record.Call
	}
	return record.Child
}
