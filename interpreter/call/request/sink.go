package request

import (
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
)

// SinkWrite describes what a sink writes, and for which step or page.
type SinkWrite struct {
	Place  string
	Page   int
	Result any
	// EveryRound says that the writes of a reprocess are new ones and do not repeat those of the original run, such
	// as the aggregate of its own iterations, or their failures.
	EveryRound bool
	// State is what the write does to the state between runs, and Claim distinguishes writes under different
	// claims; nil and "" for none.
	State *incremental.StateWrite
	Claim string
	// Staging is what the write does to staged rows; nil if it stages none.
	Staging *interpreter.Staging
	// MapsRows says that args whose mapping exceeds the budget of a decision are mapped by the attempts.
	MapsRows bool
	// Behind says that the rows are those of a page that has older rows than an earlier one.
	Behind bool
	// Says is written instead of Result if the sink does not say what to write; nil for Result.
	Says any
}

// defaultRows returns what the sink writes if it has no args.
func (s *SinkWrite) defaultRows() any {
	if s.Says != nil {
		return s.Says
	}
	return s.Result
}

// isPublishing reports whether the sink writes no rows, but publishes or drops staged ones.
func (s *SinkWrite) isPublishing() bool { return s.Staging != nil && s.Staging.Do != "" }

// stateFor returns what the write does to the state, given the input of the write. Known rows are recognized by the
// sink's key; modes that replace rows need not recognize them. A row for which the args return nothing is not
// written.
func (s *SinkWrite) stateFor(input *interpreter.ToolInput, hasArgs bool) *incremental.StateWrite {
	if s.State == nil || s.State.Rows == nil {
		return s.State
	}
	write, known := *s.State, *s.State.Rows
	switch expression.Text(input.Fields["mode"].Data) {
	case "upsert", "replace":
		write.Rows = nil
		return &write
	}
	if len(known.Key) == 0 && known.Type != incremental.Token {
		known.Key = KeyColumns(input.Fields["key"].Data)
	}
	if write.Rows = &known; input.Result == nil && (!hasArgs || input.Args != nil) {
		input.Result = &expression.Value{Data: s.Result} // which the args replace row by row
	}
	return &write
}

// KeyColumns returns the columns named by a text or a list.
func KeyColumns(value any) []string {
	switch value := value.(type) {
	case nil:
		return nil
	case []any:
		return lists.Map(value, expression.Text)
	}
	return []string{expression.Text(value)}
}
