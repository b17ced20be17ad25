package incremental

import (
	"bytes"
	"fmt"
	"time"

	"reprise/interpreter/expression"
)

// Slice is a range of cursors that a call reads separately, with its own pages. Kept in workflow history.
type Slice struct {
	From Cursor `json:"from"`
	To   Cursor `json:"to"`             // exclusive
	End  Cursor `json:"until"`          // end of the last slice
	Page int    `json:"page,omitempty"` // number of pages that the call had before it
}

// MostSlices bounds the slices of a call. Steps of a second over years would make millions of requests, and the
// workflow computes the list of slices.
const MostSlices = 10_000

// FirstSlice returns the slice that begins at from; until is the end of the last slice, and step the length of a
// slice, in amounts of add_time. The error says why until is not a time, or that there would be more than
// MostSlices.
func (f Form) FirstSlice(from Cursor, step string, until any) (*Slice, error) {
	end, err := f.parseEnd(until)
	if err != nil {
		return nil, fmt.Errorf("incremental.until: %w", err)
	}
	first := f.SliceTo(end, from, step, 0)
	length := first.sliceLength(f.Type)
	if last, ok := TimeOf(f.Type, end); ok && length > 0 {
		if began, _ := TimeOf(f.Type, from); last.Sub(began)/length > MostSlices {
			return nil, fmt.Errorf("incremental.step: %s makes more than %d slices from %s to %s; write a longer one", step, MostSlices, from.Text(), end.Text())
		}
	}
	return first, nil
}

// sliceLength returns the length of a slice.
func (s *Slice) sliceLength(as CursorType) time.Duration {
	from, _ := TimeOf(as, s.From)
	to, _ := TimeOf(as, s.To)
	return to.Sub(from)
}

// SliceTo returns the slice that begins at from, of slices up to end; page is the number of pages that the call had
// before it.
func (f Form) SliceTo(end, from Cursor, step string, page int) *Slice {
	at, _ := TimeOf(f.Type, from)
	to := end
	if next, err := expression.AddAmount(at, step); err == nil { // validation has refused another one
		if c := f.cursorOf(from, next); bytes.Compare(c.Position, end.Position) < 0 {
			to = c
		}
	}
	return &Slice{From: from, To: to, End: end, Page: page}
}

// NextSlice returns the slice after s, nil after the last; page is the number of pages that the call has read.
func (f Form) NextSlice(s *Slice, step string, page int) *Slice {
	if bytes.Compare(s.To.Position, s.End.Position) >= 0 || bytes.Compare(s.To.Position, s.From.Position) <= 0 {
		return nil
	}
	return f.SliceTo(s.End, s.To, step, page)
}

// Empty reports whether the slice contains no cursors.
func (s *Slice) Empty() bool { return bytes.Compare(s.To.Position, s.From.Position) <= 0 }

// parseEnd parses the end of the last slice: a cursor in this form, or a time within the range of a cursor, such as
// now() within a day. Then it returns the next cursor, so that rows with that time's cursor are read.
func (f Form) parseEnd(value any) (Cursor, error) {
	if end, err := f.Parse(value); err == nil {
		return end, nil
	}
	read, err := Parse(Time, value)
	if err != nil {
		return Cursor{}, err
	}
	at := timeAt(read.Position)
	end := f.cursorOf(Cursor{Value: expression.Of(0)}, at)
	if reached, _ := TimeOf(f.Type, end); reached.Before(at) {
		end = f.cursorOf(end, at.Add(f.smallestStep()))
	}
	return end, nil
}

// cursorOf returns the cursor of a time, rounded down to the precision of the form. like is a cursor of
// the same source.
func (f Form) cursorOf(like Cursor, at time.Time) Cursor {
	if f.Type == Date {
		return f.atPosition(like, integerPosition(at.UTC().Truncate(secondsPerDay*time.Second).Unix()/secondsPerDay))
	}
	return f.atPosition(like, timePosition(at))
}

// smallestStep returns the smallest distance of two different cursors.
func (f Form) smallestStep() time.Duration {
	if unit, isEpoch := epochUnits[f.Format]; isEpoch {
		return unit
	}
	if f.Type == Date {
		return formatUnits[0]
	}
	for _, unit := range formatUnits {
		if f.Format != "" && preservesTime(f.Format, unit) {
			return unit
		}
	}
	return time.Nanosecond
}

// CheckStep returns an error for a text that is not the length of a slice.
func (f Form) CheckStep(step string) error {
	began := time.Date(2023, time.February, 1, 0, 0, 0, 0, time.UTC)
	next, err := expression.AddAmount(began, step)
	switch {
	case err != nil:
		return err
	case !next.After(began):
		return fmt.Errorf("%q is not a length of time; write for example 30d", step)
	case next.Sub(began) < f.smallestStep():
		return fmt.Errorf("%s is less than cursors of the step differ by; write at least %s", step, map[bool]string{true: "1d", false: f.smallestStep().String()}[f.smallestStep() == formatUnits[0]])
	}
	return nil
}
