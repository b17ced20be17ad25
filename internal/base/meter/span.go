package meter

import (
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// Kinds of spans. Each is a part of a run that has ended.
const (
	SpanRun       = "run"
	SpanStep      = "step"
	SpanIteration = "iteration"
	SpanSink      = "sink"
)

// Span describes an ended run, or an ended step, iteration or sink of it. The only data it holds is the message of an
// error.
type Span struct {
	Kind     string // SpanRun and so on
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

// SinkSpan describes an ended call of a sink.
func SinkSpan(facts call.Facts, result interpreter.CallResult) Span {
	return Span{
		Kind: SpanSink, Playbook: facts.Playbook, Step: facts.Step, Visit: facts.Visit, Index: facts.Index,
		Place: facts.Place, Tool: facts.Tool, Page: facts.Page, Status: result.Status, Attempts: result.Meta.Attempts,
		Error: result.Error, Started: result.Meta.StartedAt, Ended: result.Meta.EndedAt,
	}
}

// IterationSpan describes an ended iteration.
func IterationSpan(playbook, step string, visit int, iteration interpreter.IterationResult) Span {
	index, result := iteration.Index, iteration.Result
	return Span{
		Kind: SpanIteration, Playbook: playbook, Step: step, Visit: visit, Index: &index, Status: result.Status,
		Attempts: result.Meta.Attempts, Pages: result.Meta.Pages, Error: result.Error,
		Started: result.Meta.StartedAt, Ended: result.Meta.EndedAt,
	}
}
