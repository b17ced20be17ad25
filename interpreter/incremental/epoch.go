package incremental

import (
	"fmt"
	"strings"
)

// NumericTimes counts cursors that look like times since 1970, by their unit: numbers that are times between 2001 and 2096 in
// it. In another unit, they would be before 1971 or thousands of years away. Part of the state of a call; kept in workflow history.
type NumericTimes struct {
	Seconds      int `json:"seconds,omitempty"`
	Milliseconds int `json:"milliseconds,omitempty"`
	Microseconds int `json:"microseconds,omitempty"`
}

// HasNumbers reports whether cursors of this form are numbers whose unit may differ between rows.
func (f Form) HasNumbers() bool {
	_, isEpoch := epochUnits[f.Format]
	return f.Type == Integer || isEpoch
}

// Add counts a cursor.
func (n *NumericTimes) Add(value any) {
	const first, behind = 1_000_000_000, 4_000_000_000
	number, ok := wholeNumber(value)
	for _, count := range []*int{&n.Seconds, &n.Milliseconds, &n.Microseconds} {
		if ok && number >= first && number < behind {
			*count++
			return
		}
		number /= 1000
	}
}

// Mixed describes the counts of the units, if there are several; otherwise it is "".
func (n *NumericTimes) Mixed() string {
	var units []string
	for _, unit := range []struct {
		n    int
		name string
	}{{n.Seconds, "seconds"}, {n.Milliseconds, "milliseconds"}, {n.Microseconds, "microseconds"}} {
		if unit.n > 0 {
			units = append(units, fmt.Sprintf("%d in %s", unit.n, unit.name))
		}
	}
	if len(units) < 2 {
		return ""
	}
	return strings.Join(units, ", ")
}
