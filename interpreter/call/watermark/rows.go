package watermark

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// Read returns the watermark after a page that contributes data. started is when the call began. A failure ends the
// call, and the page is not written.
func (w *Watermark) Read(section *playbook.Incremental, data any, started time.Time) (*Watermark, *interpreter.ErrorObject) {
	rows := incremental.ContributedRows(data)
	own := *w
	own.Rows += len(rows)
	own.Behind = false
	if section.Token == nil {
		if failure := own.readCursors(section, rows, started); failure != nil {
			return w, failure
		}
	}
	return &own, nil
}

// readCursors reads the cursors of a page's rows.
func (w *Watermark) readCursors(section *playbook.Incremental, rows []any, started time.Time) *interpreter.ErrorObject {
	form := section.CursorForm()
	numbers := form.HasNumbers()
	start, dated := incremental.CursorAt(section.Type, started)
	bound := form.BeforeLag(w.Newest, section.Lag) // nothing is below none
	newest, largest := newMaximum(w.Newest), newMaximum(w.Largest)
	const usual = 16 // bytes of a position
	positions := make([]byte, 0, len(rows)*usual)
	for at, row := range rows {
		value, has := incremental.RowValue(row, section.CursorPath)
		if value == nil {
			if section.OnMissing == playbook.MissingInclude {
				if !has {
					w.Lacking++
				}
				continue
			}
			return missingCursor(section, at)
		}
		cursor, err := form.ParseInto(&positions, value)
		if err != nil {
			return StateError(incremental.TypeCursor, fmt.Sprintf("row %d: %s: %s; set `type`", at+1, section.CursorPath, err))
		}
		if numbers {
			w.Times.Add(value)
		}
		w.Behind = w.Behind || bytes.Compare(cursor.Position, w.Largest.Position) < 0
		if section.Ascending && bytes.Compare(cursor.Position, bound.Position) < 0 {
			return StateError(incremental.TypeOrder, fmt.Sprintf(
				"row %d: %s is %s, less than the %s of an earlier page by more than `lag`: the source does not sort as `row_order: asc` says. "+
					"The watermark has not moved; remove row_order, or sort the source",
				at+1, section.CursorPath, expression.Text(value), expression.Text(w.Newest.Value.Data)))
		}
		if section.Ascending {
			newest.addRow(at, cursor.Position)
		}
		if dated && bytes.Compare(cursor.Position, start.Position) > 0 {
			w.Future++
			continue
		}
		if w.Slice != nil && bytes.Compare(cursor.Position, w.Slice.To.Position) >= 0 {
			if bytes.Compare(cursor.Position, w.Slice.To.Position) > 0 { // a source may include the end
				w.Beyond++
			}
			continue
		}
		if bytes.Compare(cursor.Position, w.Value.Position) < 0 {
			w.Early++
		}
		largest.addRow(at, cursor.Position)
	}
	w.Newest, w.Largest = newest.largestCursor(w.Newest, section, rows), largest.largestCursor(w.Largest, section, rows)
	return nil
}

// CountOlder counts rows of a page whose key an earlier row of it has with a larger cursor. A sink that keeps the last row of a
// key would replace the newer row with the older one.
func (w *Watermark) CountOlder(section *playbook.Incremental, data any, key []string) *Watermark {
	rows := incremental.ContributedRows(data)
	if w == nil || section.Token != nil || len(key) == 0 || len(rows) < 2 {
		return w
	}
	last, older := make(map[string]int, len(rows)), 0
	for at, row := range rows {
		values := make([]any, len(key))
		for i, column := range key {
			values[i], _ = incremental.RowValue(row, column)
		}
		name := expression.Text(values)
		before, repeated := last[name]
		last[name] = at
		if repeated && !slices.Contains(values, nil) && isOlder(section, row, rows[before]) {
			older++
		}
	}
	if older == 0 {
		return w
	}
	own := *w
	own.Older += older
	return &own
}

// isOlder reports whether the cursor of a row is less than that of another one.
func isOlder(section *playbook.Incremental, row, than any) bool {
	var positions []byte
	read := func(row any) (cursor incremental.Cursor, ok bool) {
		value, _ := incremental.RowValue(row, section.CursorPath)
		if value == nil {
			return cursor, false
		}
		cursor, err := section.CursorForm().ParseInto(&positions, value)
		return cursor, err == nil
	}
	one, isRead := read(row)
	other, isOtherRead := read(than)
	return isRead && isOtherRead && bytes.Compare(one.Position, other.Position) < 0
}

// missingCursor returns the failure of a row without a cursor.
func missingCursor(section *playbook.Incremental, at int) *interpreter.ErrorObject {
	remedy := "use `on_missing: include` or `exclude` if rows may lack it"
	if section.OnMissing == playbook.MissingExclude { // rows of lists are left out before
		remedy = "the page is a single value, not a list, so nothing can be left out of it; use `collect` with the path of the rows"
	}
	return StateError(incremental.TypeMissing, fmt.Sprintf("row %d has no %s; %s", at+1, section.CursorPath, remedy))
}

// maximum tracks the row with the largest cursor.
type maximum struct {
	row      int // -1 if no row exceeds the cursor that it began with
	position []byte
	none     bool // there is no cursor yet
}

// newMaximum returns a maximum that begins with a cursor, before any row.
func newMaximum(c incremental.Cursor) maximum {
	return maximum{row: -1, position: c.Position, none: c.IsZero()}
}

// addRow takes the cursor of a row into account.
func (m *maximum) addRow(row int, position []byte) {
	if m.none || bytes.Compare(position, m.position) > 0 {
		m.row, m.position, m.none = row, position, false
	}
}

// largestCursor returns the largest cursor; before is the cursor that the maximum began with.
func (m *maximum) largestCursor(before incremental.Cursor, section *playbook.Incremental, rows []any) incremental.Cursor {
	if m.row < 0 {
		return before
	}
	value, _ := incremental.RowValue(rows[m.row], section.CursorPath)
	return incremental.Cursor{Value: expression.Of(value), Position: bytes.Clone(m.position)}
}

// WithoutMissing returns a page without rows that lack a cursor, if on_missing excludes them; otherwise, and for a
// nil section, the page itself.
func WithoutMissing(section *playbook.Incremental, page any) any {
	rows, isList := page.([]any)
	if section == nil || section.OnMissing != playbook.MissingExclude || section.Token != nil || !isList {
		return page
	}
	return slices.DeleteFunc(slices.Clone(rows), func(row any) bool {
		value, _ := incremental.RowValue(row, section.CursorPath)
		return value == nil
	})
}

// CountMissing returns the watermark after a page of which only kept remained, and counts the rows without a cursor.
func (w *Watermark) CountMissing(page, withCursor any) *Watermark {
	own := *w
	own.Missing += len(incremental.ContributedRows(page)) - len(incremental.ContributedRows(withCursor))
	return &own
}

// StateError returns an error that ends a call because of its state; kind is one of the types of package incremental.
func StateError(kind, message string) *interpreter.ErrorObject {
	return &interpreter.ErrorObject{Kind: interpreter.KindIncremental, Class: interpreter.ClassFinal, Type: kind, Message: message, Final: true}
}
