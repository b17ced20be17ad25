package request

import (
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
)

// SinkWrite is what a sink writes, and of which step or page.
type SinkWrite struct {
	Place  string
	Page   int
	Result any
	// EveryRound says that what a reprocess writes is not what its run has written, but
	// comes beside it: the aggregate of its own iterations, or their failures.
	EveryRound bool
	// State is what the write does to the state that the step keeps between runs, and Claim
	// distinguishes what is written under another claim of it; nil and "" for nothing.
	State *incremental.StateWrite
	Claim string
	// Staging is what the write does to staged rows, nil where none are staged.
	Staging *interpreter.Staging
	// MapsRows says that args that map more than a decision may are mapped by the attempts.
	MapsRows bool
	// Says is what is written in place of Result where the author does not say what;
	// nil is Result.
	Says any
}

// defaultRows is what the sink writes where the author does not say what.
func (s *SinkWrite) defaultRows() any {
	if s.Says != nil {
		return s.Says
	}
	return s.Result
}

// isPublishing reports whether the sink writes no rows, but publishes or drops staged ones.
func (s *SinkWrite) isPublishing() bool { return s.Staging != nil && s.Staging.Do != "" }

// stateFor is what the write does to the state, derived from its fields: rows are recognised by the
// sink's key, and modes that take them need not know them. What args map to nothing writes nothing,
// and stands for no rows of the page.
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
		input.Result = &expression.Value{Data: s.Result} // which its args stand for, row by row
	}
	return &write
}

// KeyColumns are the columns of a text or of a list.
func KeyColumns(value any) []string {
	switch value := value.(type) {
	case nil:
		return nil
	case []any:
		return lists.Map(value, expression.Text)
	}
	return []string{expression.Text(value)}
}
