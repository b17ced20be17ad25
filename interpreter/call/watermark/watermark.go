package watermark

import (
	"bytes"
	"fmt"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// Watermark is what a call knows of the state that its step keeps; nil if it has claimed none. It is replaced,
// never changed in place. Part of the state of a call; kept in workflow history.
type Watermark struct {
	Name  string `json:"name"`
	Group string `json:"group,omitempty"`
	// Holder is the key under which the call has claimed the state, and Writes counts its writes under that claim.
	Holder string `json:"holder"`
	Writes int    `json:"writes,omitempty"`
	// Run is the workflow ID of the run.
	Run string `json:"run,omitempty"`
	// Found is the watermark that the claim returned, and Value the cursor from which the call reads. At is the
	// current watermark, nil while it equals Found.
	Found incremental.Cursor  `json:"found,omitzero"`
	Value incremental.Cursor  `json:"value,omitzero"`
	At    *incremental.Cursor `json:"at,omitempty"`
	// Initial is the cursor from which the call would read without a state; nil if it is a constant in the
	// playbook.
	Initial *incremental.Cursor `json:"initial,omitempty"`
	// Slice is the slice that the call reads; nil if it reads everything at once.
	Slice *incremental.Slice `json:"slice,omitempty"`
	// LessLag says that Value is later than the lag requires, because rows before it would be inserted twice.
	LessLag bool `json:"less_lag,omitempty"`
	// KnownAs and KnownTo are as in the claim, and Round counts the restarts of the call.
	KnownAs string `json:"known_as,omitempty"`
	KnownTo []byte `json:"known_to,omitempty"`
	Round   int    `json:"round,omitempty"`
	// The remaining fields describe the pages since the call began or restarted. Largest is the largest cursor that
	// is not later than the start of the call; Newest is the largest cursor of all earlier pages, which only
	// row_order asc uses.
	Largest incremental.Cursor `json:"largest,omitzero"`
	Newest  incremental.Cursor `json:"newest,omitzero"`
	Rows    int                `json:"rows,omitempty"`
	// Future counts rows dated later than the start of the call, Early rows below Value, Missing rows without a
	// cursor that were left out, and Beyond rows later than the end of their slice.
	Future  int `json:"future,omitempty"`
	Beyond  int `json:"beyond,omitempty"`
	Early   int `json:"early,omitempty"`
	Older   int `json:"older,omitempty"` // rows after a newer one with their key in the same page
	Missing int `json:"missing,omitempty"`
	// Lacking counts the rows that were kept although they do not even have the member of the cursor.
	Lacking int `json:"lacking,omitempty"`
	// Times counts the rows whose cursor is a number of seconds, milliseconds or microseconds since 1970.
	Times incremental.NumericTimes `json:"times,omitzero"`
	// Behind says that the last page has rows whose cursors are less than one of an earlier page.
	Behind bool `json:"behind,omitempty"`
}

// Pending is a state to be claimed, or moved without rows; or the tables of sinks that must record that a call
// begins to read. Kept with the state of a call.
type Pending struct {
	// Name and Group identify the state to be claimed.
	Name  string `json:"name,omitempty"`
	Group string `json:"group,omitempty"`
	// Move is nil if the state is to be claimed.
	Move *incremental.Move `json:"move,omitempty"`
	// Begins is set if the tables of sinks must record that the call begins to read.
	Begins bool `json:"begins,omitempty"`
}

// ClaimKey returns a key that distinguishes what the call reads from what was read under another claim or before a
// restart; restarts is the number of restarts.
func (w *Watermark) ClaimKey(restarts int) string {
	if w == nil {
		return ""
	}
	if w.ReadsSlices() { // whose first request may follow an ignored failure, without a page between them
		return expression.ShortDigest(w.Holder, w.Value.Value.Data, restarts, w.Slice.From.Value.Data)
	}
	return expression.ShortDigest(w.Holder, w.Value.Value.Data, restarts)
}

// AfterRestart returns the Watermark of a call that restarts. Written rows stay written; full makes it read from the
// initial value.
func (w *Watermark) AfterRestart(section *playbook.Incremental, full bool) *Watermark {
	if w == nil {
		return nil
	}
	own := Watermark{
		Name: w.Name, Group: w.Group, Holder: w.Holder, Writes: w.Writes, Found: w.Found, Value: w.Value, At: w.At, LessLag: w.LessLag && !full, KnownAs: w.KnownAs,
		KnownTo: w.KnownTo, Initial: w.Initial,
	}
	if own.KnownTo != nil {
		own.Round = w.Round + 1
	}
	switch {
	case full && own.Initial != nil:
		own.Value = *own.Initial
	case full:
		own.Value = section.InitialCursor()
	}
	if w.Slice != nil {
		own.Slice = section.CursorForm().SliceTo(w.Slice.End, own.Value, section.Step, 0)
	}
	return &own
}

// WithSlice returns the watermark of a call that reads a slice.
func (w *Watermark) WithSlice(slice *incremental.Slice) *Watermark {
	own := *w
	own.Slice = slice
	return &own
}

// ReadsSlices reports whether the call reads slice by slice.
func (w *Watermark) ReadsSlices() bool { return w != nil && w.Slice != nil }

// PagesBefore returns the number of pages that the call read before the current slice.
func (w *Watermark) PagesBefore() int {
	if !w.ReadsSlices() {
		return 0
	}
	return w.Slice.Page
}

// AfterMove returns the watermark after a write, which moves it if move is not nil.
func (w *Watermark) AfterMove(move *incremental.Move) *Watermark {
	own := *w
	own.Writes++
	if at := own.reachedCursor(); move != nil && (move.Back || !bytes.Equal(move.To.Position, at.Position) || move.To.Text() != at.Text()) {
		own.At = &move.To
	}
	return &own
}

// reachedCursor returns the current position of the watermark.
func (w *Watermark) reachedCursor() incremental.Cursor {
	if w.At != nil {
		return *w.At
	}
	return w.Found
}

// DescribeState describes the state for the result of the call.
func (w *Watermark) DescribeState(section *playbook.Incremental) *interpreter.CallIncremental {
	return &interpreter.CallIncremental{
		State: w.Name, Type: section.Type, Format: section.Format, From: w.Value, Before: w.Found, Watermark: w.reachedCursor(), Rows: w.Rows, Moved: w.At != nil,
	}
}

// Warnings describes what may surprise the author about the rows that were read; where names the call. again says
// that a sink gets rows again that it has already written; countedBy is the parameter that counts the pages or rows of a call with several
// pages, "" for none.
func (w *Watermark) Warnings(section *playbook.Incremental, where string, again bool, countedBy string) (warnings []string) {
	if w == nil {
		return nil
	}
	if w.LessLag {
		warnings = append(warnings, fmt.Sprintf(
			"%s: `lag` was smaller in earlier runs, so this run reads from %s and not from %s: "+
				"earlier rows are no longer recognized as written, and would be inserted twice. To read them anyway, use `starter state set`",
			where, w.Value.Text(), section.CursorForm().BeforeLag(w.Found, section.Lag).Text()))
	}
	if w.Future > 0 {
		warnings = append(warnings, fmt.Sprintf(
			"%s: %s dated after the start of the call. The sink writes such rows, but the watermark stays before them, so they are read again%s", where, rowsText(w.Future), w.skippedHint(section, countedBy)))
	}
	if w.Beyond > 0 {
		warnings = append(warnings, fmt.Sprintf(
			"%s: %s later than incremental.to of their slice. The sink writes such rows, but the watermark stays before them, so they are read again. "+
				"Check that the request ends at {{ incremental.to }}", where, rowsText(w.Beyond)))
	}
	if w.Missing > 0 {
		warnings = append(warnings, fmt.Sprintf("%s: left out %s without %s (on_missing: exclude)", where, rowsText(w.Missing), section.CursorPath))
	}
	if w.Lacking > 0 && w.Lacking == w.Rows {
		warnings = append(warnings, fmt.Sprintf("%s: no row has %s, so the watermark has not moved; check cursor_path", where, section.CursorPath))
	}
	if mixed := w.mixedUnits(); mixed != "" {
		warnings = append(warnings, fmt.Sprintf(
			"%s: the rows and the watermark before them have %s in several units (%s), and the watermark is the largest number: later rows in a smaller unit are behind it and will not be read. "+
				"Use a field with one unit, or a step with a state for each", where, section.CursorPath, mixed))
	}
	if w.Older > 0 {
		verb := "comes"
		if w.Older > 1 {
			verb = "come"
		}
		warnings = append(warnings, fmt.Sprintf("%s: %s %s after a newer row with the same key, and the sink keeps the last one: set `sequence_by: %s` in it",
			where, rowsText(w.Older), verb, section.CursorPath))
	}
	if w.Early > 0 && again {
		warnings = append(warnings, fmt.Sprintf(
			"%s: the source returned %s older than incremental.value (%s). A sink with mode: insert gets them again in each run. "+
				"Check that the request filters by {{ incremental.value }}, or increase `lag`",
			where, rowsText(w.Early), expression.Text(w.Value.Value.Data)))
	}
	return warnings
}

// mixedUnits describes the units of cursors that are times as numbers, with that of the watermark before the call; "" if there are not several.
func (w *Watermark) mixedUnits() string {
	times := w.Times
	if times != (incremental.NumericTimes{}) {
		times.Add(w.Found.Value.Data)
	}
	return times.Mixed()
}

// skippedHint says what rows dated after the start mean for pages in the order of their cursors that are counted by a parameter: a row that
// changes moves to the end, and those behind its old place move up, past the page that would have had one of them.
func (w *Watermark) skippedHint(section *playbook.Incremental, countedBy string) string {
	if !section.Ascending || countedBy == "" {
		return ""
	}
	return fmt.Sprintf(". If one of them was on an earlier page before it changed, the rows after it moved up while pages were counted by %s, and one of those may "+
		"have been skipped: request each page by the last %s instead, or the newest first without row_order", countedBy, section.CursorPath)
}

// rowsText returns a number of rows for a message.
func rowsText(n int) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}
