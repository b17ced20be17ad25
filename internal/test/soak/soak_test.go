package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

func TestPlaybooksAreValid(t *testing.T) {
	for name, text := range files() {
		if strings.HasSuffix(name, ".yaml") && strings.Contains(text, "kind: Playbook") {
			file := source.NewFile(name, []byte(text))
			_, found := check.Validate(file, activities.DefaultCatalogue(), check.Options{})
			require.Empty(t, found, file.FormatAll(found))
		}
	}
}

func TestRowsAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		found         []int
		lost, doubled int
	}{
		"all":               {found: []int{3, 1, 2}},
		"none":              {lost: 3},
		"one is lost":       {found: []int{1, 3}, lost: 1},
		"one is doubled":    {found: []int{1, 2, 3, 2, 2}, doubled: 2},
		"one is not of it":  {found: []int{1, 2, 3, 4}, doubled: 1},
		"lost, and doubled": {found: []int{1, 1, 2}, lost: 1, doubled: 1},
	} {
		t.Run(name, func(t *testing.T) {
			counted, findings := compareRows(upTo(3), c.found)
			require.Equal(t, tally{rows: len(c.found), lost: c.lost, doubled: c.doubled}, counted)
			require.Equal(t, c.lost+c.doubled > 0, counted.wrong())
			require.Equal(t, counted.wrong(), len(findings) > 0)
		})
	}
}

func TestRequestsAreCounted(t *testing.T) {
	at := func(seconds ...int) []time.Time {
		return lists.Map(seconds, func(s int) time.Time { return time.Unix(int64(s), 0) })
	}
	for name, c := range map[string]struct {
		want  int
		asked []time.Time
		kills []time.Time
		is    tally
	}{
		"once":                                   {want: 1, asked: at(10), is: tally{requests: 1}},
		"never":                                  {want: 1, is: tally{unasked: 1}},
		"three times, as a policy says":          {want: 3, asked: at(10, 11, 12), is: tally{requests: 3}},
		"twice, and nobody was killed":           {want: 1, asked: at(10, 20), is: tally{requests: 2, surplus: 1}},
		"twice, and a worker was killed":         {want: 1, asked: at(10, 20), kills: at(11), is: tally{requests: 2, repeated: 1}},
		"twice, and it was killed before":        {want: 1, asked: at(10, 20), kills: at(9), is: tally{requests: 2, surplus: 1}},
		"twice, and it was killed afterwards":    {want: 1, asked: at(10, 20), kills: at(21), is: tally{requests: 2, surplus: 1}},
		"twice, and it was killed much later":    {want: 1, asked: at(10, 100), kills: at(90), is: tally{requests: 2, surplus: 1}},
		"four times, and one of them after that": {want: 3, asked: at(10, 11, 12, 13), kills: at(5, 12), is: tally{requests: 4, repeated: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			counted, findings := compareRequests(map[string]int{"a": c.want}, map[string][]time.Time{"a": c.asked}, c.kills)
			require.Equal(t, c.is, counted)
			require.Equal(t, counted.wrong(), len(findings) > 0)
		})
	}
	counted, _ := compareRequests(nil, map[string][]time.Time{"b": at(10)}, nil)
	require.Equal(t, tally{requests: 1, surplus: 1}, counted, "an element that nobody asks for")
}

func TestGrowthIsThatOfMedians(t *testing.T) {
	began := time.Unix(0, 0)
	var points []point
	for minute, value := range []float64{100, 300, 100, 500, 120, 115, 120} {
		p := point{at: began.Add(time.Duration(minute) * time.Minute)}
		p.values[openFiles] = value
		points = append(points, p)
	}
	g := growthOf(points, openFiles, began, began.Add(7*time.Minute), 3*time.Minute)
	require.Equal(t, growth{100, 120}, g)
	require.InDelta(t, 1.2, g.factor(), 0.001)
	require.InDelta(t, 1, growthOf(nil, memory, began, began.Add(time.Hour), time.Minute).factor(), 0.001, "never measured")
}

func TestGoroutinesAreRead(t *testing.T) {
	for line, want := range map[string]float64{
		"go_goroutines 61": 61,
		`num_goroutines{otel_scope_name="temporal",otel_scope_version="",service_name="history"} 2400`: 2400,
		"go_goroutines_more 5":       -1,
		"# TYPE go_goroutines gauge": -1,
		"":                           -1,
	} {
		n, found := goroutinesIn(line)
		require.Equal(t, want >= 0, found, line)
		require.InDelta(t, max(want, 0), n, 0.001, line)
	}
}

// TestEachThingHappens: however short, a soak restarts workers in both ways and rotates builds.
func TestEachThingHappens(t *testing.T) {
	for _, hours := range []float64{0.02, 0.3, 1, 4} {
		at := timetableOf(hours)
		require.GreaterOrEqual(t, at.total, 3*at.restart, hours)
		require.Greater(t, at.total, at.rotate, hours)
		require.GreaterOrEqual(t, at.compared, 10*at.sample, hours)
	}
	four := timetableOf(4)
	require.Equal(t, []time.Duration{10 * time.Minute, time.Hour, time.Minute, time.Hour}, []time.Duration{four.restart, four.rotate, four.sample, four.compared})
}

func TestReportFitsATerminal(t *testing.T) {
	s := &soak{timetable: timetableOf(48), began: time.Unix(0, 0), oracle: newOracle(nil), points: measured{}}
	s.oracle.counts = tally{runs: 99_999, rows: 9_999_999, requests: 9_999_999}
	for _, role := range roles {
		s.points[role] = []point{{at: s.began, values: [measures]float64{9e9, 99_999, 99_999}}}
	}
	for line := range strings.Lines(s.report(progress{now: s.began.Add(47 * time.Hour), build: 47, restarts: 288, kills: 144, started: 99_999, open: 99})) {
		require.LessOrEqual(t, len(strings.TrimRight(line, "\n")), 80, line)
	}
}
