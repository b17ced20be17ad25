package tooltest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
)

// pageRows is how many rows a page of a measurement has.
const pageRows = 100

// writeKind is a way to write pages that is measured.
type writeKind struct {
	name   string
	upsert bool
	state  bool
	sweep  bool // what is below the page's last row does not come again
	test   *StateTest
	times  []time.Duration
}

// BenchmarkPages writes pages with a state and without one in turns, and reports the median time of a
// page with a state as a multiple of the same without.
func (s States) BenchmarkPages(b *testing.B) {
	b.Helper()
	kinds := []*writeKind{
		{name: "insert"},
		{name: "insert-asc", state: true},
		{name: "insert-swept", state: true, sweep: true},
		{name: "upsert", upsert: true},
		{name: "upsert-asc", upsert: true, state: true},
	}
	for i, kind := range kinds {
		kind.test = s.Test(b)
		kind.test.Table += fmt.Sprint("_", i)
		s.query(b, "ALTER TABLE "+kind.test.Table[:len(kind.test.Table)-2]+" RENAME TO "+kind.test.Table)
		kind.test.State += kind.name
		kind.test.ClaimState("a")
	}
	page := 0
	for b.Loop() {
		page++
		for i := range kinds {
			kind := kinds[(i+page)%len(kinds)]
			begun := time.Now()
			kind.write(page)
			kind.times = append(kind.times, time.Since(begun))
		}
	}
	plain := map[bool]time.Duration{false: median(kinds[0].times), true: median(kinds[3].times)}
	for _, kind := range kinds {
		if kind.state {
			b.ReportMetric(float64(median(kind.times))/float64(plain[kind.upsert]), kind.name+"/without")
			continue
		}
		b.ReportMetric(float64(median(kind.times).Microseconds()), kind.name+"-µs")
	}
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func (k *writeKind) write(page int) {
	rows := make([]any, pageRows)
	for i := range rows {
		id := page*pageRows + i
		rows[i] = map[string]any{"id": id, "at": id, "page": page}
	}
	last := page*pageRows + pageRows - 1
	in := k.test.WriteInput(rows...)
	in.Note = &interpreter.LedgerEntry{Call: k.test.State, Written: page, Forget: page - 1, Continuation: []byte("on")}
	if k.upsert {
		in.OperationKey = ""
		in.Fields = Fields(map[string]any{"table": k.test.Table, "mode": "upsert", "key": []any{"id", "at"}})
	}
	var state *incremental.StateWrite
	if k.state {
		state = k.test.StateWrite("a", page, MoveTo(last), At(last).Position)
		state.Rows.Ordered = true
		if !k.sweep { // as pages are within a call, or a lag
			state.Rows.Floor, state.Rows.Sweep = At(0).Position, false
		}
		if k.upsert {
			state.Rows = nil
		}
	}
	n, err := k.test.Write(in, state)
	require.NoError(k.test, err)
	require.Equal(k.test, pageRows, n)
}
