package meter

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// Parts of a run that are recorded once they have ended.
const (
	PartRun       = "run"
	PartStep      = "step"
	PartIteration = "iteration"
	PartSink      = "sink"
)

// Part is a part of a run that has ended. It holds no value of the run's data but
// the message of an error.
type Part struct {
	Kind     string // PartRun and so on
	Playbook string
	Step     string // "" of a run
	Visit    int
	Index    *int   // iteration, nil without a loop
	Place    string // of a sink
	Tool     string // of a sink
	Page     int    // of a sink
	Status   interpreter.Status
	Attempts int
	Pages    int
	Error    *interpreter.ErrorObject
	Started  time.Time
	Ended    time.Time
}

// SinkPart describes the call of a sink that has ended.
func SinkPart(facts call.Facts, result interpreter.CallResult) Part {
	return Part{
		Kind: PartSink, Playbook: facts.Playbook, Step: facts.Step, Visit: facts.Visit, Index: facts.Index,
		Place: facts.Place, Tool: facts.Tool, Page: facts.Page, Status: result.Status, Attempts: result.Meta.Attempts,
		Error: result.Error, Started: result.Meta.StartedAt, Ended: result.Meta.EndedAt,
	}
}

// IterationPart describes an iteration that has ended.
func IterationPart(playbook, step string, visit int, iteration interpreter.IterationResult) Part {
	index, result := iteration.Index, iteration.Result
	return Part{
		Kind: PartIteration, Playbook: playbook, Step: step, Visit: visit, Index: &index, Status: result.Status,
		Attempts: result.Meta.Attempts, Pages: result.Meta.Pages, Error: result.Error,
		Started: result.Meta.StartedAt, Ended: result.Meta.EndedAt,
	}
}
