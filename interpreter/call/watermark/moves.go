package watermark

import (
	"bytes"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// movesByPage reports whether the watermark moves after each page.
func (s *StatefulStep) movesByPage() bool { return s.Section.Ascending && s.writesPagesOnly() }

// writesPagesOnly reports whether a call writes nothing but its pages, all of them to the sinks of one policy.
func (s *StatefulStep) writesPagesOnly() bool {
	if s.After {
		return false
	}
	pages := 0
	for _, policy := range s.Policies {
		if len(policy.Then.Sinks) > 0 {
			return false
		}
		if len(policy.Then.PageSinks) > 0 {
			pages++
		}
	}
	return pages == 1
}

// writesRows reports whether a successful call writes anything.
func (s *StatefulStep) writesRows() bool {
	return s.After || slices.ContainsFunc(s.Policies, func(policy *playbook.Policy) bool {
		return len(policy.Then.PageSinks)+len(policy.Then.Sinks) > 0
	})
}

// PageMove returns the move after the sink of a page, nil for none.
func (s *StatefulStep) PageMove(w *Watermark) *incremental.Move {
	if !s.movesByPage() {
		return nil
	}
	return w.moveTo(w.Largest, s.home != nil)
}

// SliceMove returns the move after the sink of the last page of a slice, nil for none. If the call has no other
// sinks, everything before the end of the slice is then written.
func (s *StatefulStep) SliceMove(w *Watermark) *incremental.Move {
	if !w.ReadsSlices() || s.movesByPage() || !s.writesPagesOnly() {
		return nil
	}
	return w.moveTo(w.Largest, s.home != nil)
}

// NextSlice returns the slice after the current one, nil for none. A source that answers only rows behind the start is asked from before
// the boundary, as after a watermark. pages is the number of pages that the call has
// read.
func (s *StatefulStep) NextSlice(w *Watermark, pages int) *incremental.Slice {
	if s == nil || !w.ReadsSlices() {
		return nil
	}
	form := s.Section.CursorForm()
	next := form.NextSlice(w.Slice, s.Section.Step, pages)
	if next != nil && s.Section.OpenStart { // neither the slice before nor this one has the rows at the boundary itself
		next.From = form.BeforeLag(next.From, s.Section.Lag)
	}
	return next
}

// End describes how a call ends that keeps a state.
type End struct {
	Failure *interpreter.ErrorObject // nil for a success
	// Incomplete says that the call has not read everything.
	Incomplete bool
	At         time.Time
	// Scope returns the scope of the policies, in which a token is rendered.
	Scope func() *interpreter.Scope
}

// EndMove returns the move of the watermark at the end of a call, after its sinks; nil for none. A success moves it
// forward; a failure because rows were out of order moves it back to where the call found it. An error means that
// the token could not be rendered.
func (s *StatefulStep) EndMove(w *Watermark, end End) (*incremental.Move, error) {
	if failure := end.Failure; failure != nil {
		if failure.Kind == interpreter.KindIncremental && failure.Type == incremental.TypeOrder && w.At != nil {
			return &incremental.Move{To: w.Found, Back: true}, nil
		}
		return nil, nil
	}
	if end.Incomplete || w.Rows == 0 || s.movesByPage() {
		return nil, nil
	}
	if s.Section.Token == nil {
		return w.moveTo(w.Largest, s.writesRows()), nil
	}
	token, err := s.Section.Token.Render(end.Scope(), expression.DecisionBudget(end.At))
	if err != nil || token == nil || token == "" {
		return nil, err
	}
	return &incremental.Move{To: incremental.Cursor{Value: expression.Of(token)}, Rows: w.Rows}, nil
}

// DefersMove reports whether the loop or step makes the move at the end of a call, because the call writes nothing that
// the move could follow.
func (s *StatefulStep) DefersMove(end End) bool { return end.Failure == nil && !s.writesRows() }

// moveTo returns a move to a cursor. If the watermark is already there, it returns a move that only adds to the
// count of rows if counts is set, otherwise nil.
func (w *Watermark) moveTo(to incremental.Cursor, counts bool) *incremental.Move {
	switch {
	case to.IsZero():
		return nil
	case to.Position == nil || bytes.Compare(to.Position, w.reachedCursor().Position) > 0:
		return &incremental.Move{To: to, Rows: w.Rows}
	case counts:
		return &incremental.Move{To: w.reachedCursor(), Rows: w.Rows}
	}
	return nil
}

// nextWrite returns the next numbered write under the claim.
func (w *Watermark) nextWrite(move *incremental.Move) *incremental.StateWrite {
	return &incremental.StateWrite{Name: w.Name, Holder: w.Holder, Run: w.Run, Number: w.Writes + 1, Move: move}
}

// AsMoves returns a move as a write of its own, without rows.
func (w *Watermark) AsMoves(move *incremental.Move) []incremental.Moves {
	return []incremental.Moves{{Group: w.Group, Writes: []incremental.StateWrite{*w.nextWrite(move)}}}
}

// Write returns what a due sink does to the state, nil if the sink does not write to the database that keeps it.
// move follows the sink, nil for none; ends says that the call ends then; started is when it began.
func (s *StatefulStep) Write(w *Watermark, sink *playbook.Sink, move *incremental.Move, ends bool, started time.Time) *incremental.StateWrite {
	if w == nil || !s.isHome(sink, started) {
		return nil
	}
	write := w.nextWrite(move)
	write.Rows = s.rowsThatComeAgain(w, move, ends)
	if w.KnownAs != "" && s.isTableOfState(sink, started) {
		write.Rows.KnownAs = w.KnownAs
	}
	return write
}

// rowsThatComeAgain identifies the rows that the next call will read again. Rows below the floor do not come again.
// Until this call has ended successfully, all of its rows may: it may restart, or go back to read them in order.
// The same holds if the source returned an unchanged token, since the next call gets the same rows with it.
func (s *StatefulStep) rowsThatComeAgain(w *Watermark, move *incremental.Move, ends bool) *incremental.RowIdentity {
	section := s.Section
	known := &incremental.RowIdentity{CursorPath: section.CursorPath, Type: section.Type, Format: section.Format, Key: section.Key, Ordered: section.Ascending, KnownTo: w.KnownTo, Round: w.Round}
	if known.Ordered {
		known.Reached = w.reachedCursor().Position
	}
	known.Sweep = move != nil && ends && (section.Token == nil || !move.To.Equal(w.reachedCursor()))
	floor := w.Found
	if known.Sweep {
		floor = move.To
	}
	known.Floor = section.CursorForm().BeforeLag(floor, section.Lag).Position
	if section.Token != nil && known.Sweep {
		known.Floor = incremental.AboveToken
	}
	return known
}

// StuckWarning says why the next call will not advance, for a call that ended before it had read everything; "" if the
// next one will. cutBy is the limit of the host that ended the call, "" if the playbook's did.
func (s *StatefulStep) StuckWarning(w *Watermark, cutBy string) string {
	if w == nil || w.Rows == 0 || w.ReadsSlices() && w.At != nil || s.movesByPage() && bytes.Compare(w.Largest.Position, w.Found.Position) > 0 {
		return ""
	}
	if cutBy != "" {
		return "the watermark has not moved, because " + cutBy + " ended the call before it had read all rows; increase " + cutBy
	}
	text := "the watermark has not moved, so the next run reads the same rows again; increase max_attempts"
	if !s.Section.Ascending && s.Section.CursorPath != "" {
		text += ", or write row_order: asc and per_iteration if the source sorts by " + s.Section.CursorPath
	}
	return text
}
