package partition_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
	"reprise/interpreter/partition"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	found, err := expression.LoadZone(name)
	require.NoError(t, err)
	return found
}

// set makes partitions that begin where the clocks of a zone show a date.
func set(t *testing.T, unit, start, in string) *partition.Set {
	t.Helper()
	of := zone(t, in)
	shown, err := time.Parse(time.DateOnly, start)
	require.NoError(t, err)
	made, problem := partition.New(partition.Rule{Unit: unit, Start: expression.WallTime(shown, of), Zone: of})
	require.Nil(t, problem)
	return made
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	found, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return found
}

// TestKeysAndLengths: what partitions are called and how long they are, where the clocks change in
// both hemispheres.
func TestKeysAndLengths(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		unit, start, zone, at string
		key, from, length     string
	}{
		{"day", "2024-01-01", "Europe/Berlin", "2024-03-31T10:00:00Z", "2024-03-31", "2024-03-31T00:00:00+01:00", "23h0m0s"},
		{"day", "2024-01-01", "Europe/Berlin", "2024-10-27T10:00:00Z", "2024-10-27", "2024-10-27T00:00:00+02:00", "25h0m0s"},
		{"day", "2024-01-01", "Australia/Sydney", "2024-04-07T03:00:00Z", "2024-04-07", "2024-04-07T00:00:00+11:00", "25h0m0s"},
		{"day", "2024-01-01", "Australia/Sydney", "2024-10-06T03:00:00Z", "2024-10-06", "2024-10-06T00:00:00+10:00", "23h0m0s"},
		{"day", "2018-01-01", "America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04", "2018-11-04T01:00:00-02:00", "23h0m0s"},
		{"day", "2023-01-01", "America/Havana", "2023-11-05T12:00:00Z", "2023-11-05", "2023-11-05T00:00:00-04:00", "25h0m0s"},
		{"day", "2011-01-01", "Pacific/Apia", "2011-12-30T09:59:59Z", "2011-12-29", "2011-12-29T00:00:00-10:00", "24h0m0s"},
		{"day", "2011-01-01", "Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31", "2011-12-31T00:00:00+14:00", "24h0m0s"},
		{"day", "1919-01-01", "America/Toronto", "1919-03-31T04:40:00Z", "1919-03-30", "1919-03-30T00:00:00-05:00", "24h0m0s"},
		{"day", "2009-01-01", "America/St_Johns", "2009-11-01T02:40:00Z", "2009-11-01", "2009-11-01T00:00:00-02:30", "25h0m0s"},
		{"hour", "2024-01-01", "Europe/Berlin", "2024-03-31T01:30:00Z", "2024-03-31T03", "2024-03-31T03:00:00+02:00", "1h0m0s"},
		{"hour", "2024-01-01", "Europe/Berlin", "2024-10-27T00:30:00Z", "2024-10-27T02+02:00", "2024-10-27T02:00:00+02:00", "1h0m0s"},
		{"hour", "2024-01-01", "Europe/Berlin", "2024-10-27T01:30:00Z", "2024-10-27T02+01:00", "2024-10-27T02:00:00+01:00", "1h0m0s"},
		{"hour", "2024-01-01", "Europe/Berlin", "2024-10-27T02:30:00Z", "2024-10-27T03", "2024-10-27T03:00:00+01:00", "1h0m0s"},
		{"hour", "2024-01-01", "Asia/Kolkata", "2024-06-01T00:00:00Z", "2024-06-01T05", "2024-06-01T05:00:00+05:30", "1h0m0s"},
		{"hour", "2024-01-01", "Australia/Lord_Howe", "2024-06-01T00:00:00Z", "2024-06-01T10:30", "2024-06-01T10:30:00+10:30", "1h0m0s"},
		{"week", "2024-01-01", "", "2024-12-31T00:00:00Z", "2025-W01", "2024-12-30T00:00:00Z", "168h0m0s"},
		{"week", "2024-01-01", "Europe/Berlin", "2024-02-01T00:00:00Z", "2024-W05", "2024-01-29T00:00:00+01:00", "168h0m0s"},
		{"month", "2023-11-01", "Europe/Berlin", "2024-02-29T23:30:00Z", "2024-03", "2024-03-01T00:00:00+01:00", "743h0m0s"},
		{"year", "2020-01-01", "", "2024-06-01T00:00:00Z", "2024", "2024-01-01T00:00:00Z", "8784h0m0s"},
	} {
		parts := set(t, row.unit, row.start, row.zone)
		p, err := parts.PartitionHolding(at(t, row.at))
		require.NoError(t, err)
		require.Equal(t, row.key, p.Key, "%+v", row)
		require.Equal(t, row.from, p.Start.Format(time.RFC3339), "%+v", row)
		require.Equal(t, row.length, p.End.Sub(p.Start).String(), "%+v", row)
		found, err := parts.FindPartition(p.Key)
		require.NoError(t, err)
		require.Equal(t, p, found)
		require.Equal(t, map[string]any{
			"key": p.Key, "index": p.Index, "start": row.from, "end": p.End.Format(time.RFC3339),
		}, p.ExprValue())
	}
}

// TestPartitionsTouch: each ends where the next begins, none is empty, every moment is in exactly
// one, and each is found by its key, in all kinds of zones.
func TestPartitionsTouch(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(24, 7))
	for _, in := range []string{
		"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "Asia/Kathmandu",
		"Africa/Casablanca", "Antarctica/Troll", "America/Havana", "Asia/Gaza",
	} {
		for _, unit := range append(partition.Units, "7h") {
			start := time.Date(2009, time.June, 1, 0, 0, 0, 0, time.UTC) // a Monday
			rule := partition.Rule{Unit: unit, Zone: zone(t, in)}
			switch unit {
			case "7h":
				rule.Unit, rule.Length = "", 7*time.Hour
			case partition.Year:
				start = time.Date(2009, time.January, 1, 0, 0, 0, 0, time.UTC)
			}
			rule.Start = expression.WallTime(start, rule.Zone)
			parts, problem := partition.New(rule)
			require.Nil(t, problem)
			until := rule.Start.AddDate(4, 7, 3)
			all, err := parts.CompletePartitions(until)
			require.NoError(t, err)
			requireTouch(t, fmt.Sprintf("%s in %q", unit, in), rule.Start, until, all)
			for range 50 {
				p := all[random.IntN(len(all))]
				moment := p.Start.Add(time.Duration(random.Int64N(int64(p.End.Sub(p.Start)))))
				holding, err := parts.PartitionHolding(moment)
				require.NoError(t, err)
				require.Equal(t, p, holding, "%s in %q at %s", unit, in, moment)
				found, err := parts.FindPartition(p.Key)
				require.NoError(t, err)
				require.Equal(t, p, found)
				newest, err := parts.ForRun("", p.End)
				require.NoError(t, err)
				require.Equal(t, p, newest)
			}
		}
	}
}

func requireTouch(t *testing.T, what string, start, until time.Time, all []partition.Partition) {
	t.Helper()
	keys := map[string]bool{}
	end := start
	for _, p := range all {
		require.True(t, p.Start.Equal(end), "%s: %s begins at %s and not at %s", what, p.Key, p.Start, end)
		require.True(t, p.End.After(p.Start), "%s: %s is empty", what, p.Key)
		require.False(t, keys[p.Key], "%s: two are called %s", what, p.Key)
		keys[p.Key], end = true, p.End
	}
	require.False(t, end.After(until), what)
	require.Greater(t, end.Add(367*24*time.Hour), until, "%s: the last is missing", what)
}

// TestWhichOneARunHas: that of its key, which has to be over, or the newest that is.
func TestWhichOneARunHas(t *testing.T) {
	t.Parallel()
	days := set(t, "day", "2024-01-01", "Europe/Berlin")
	hours := set(t, "hour", "2024-01-01", "Europe/Berlin")
	lists, problem := partition.New(partition.Rule{Keys: []string{"eu", "us"}})
	require.Nil(t, problem)
	bounded, problem := partition.New(partition.Rule{
		Unit: "month", Zone: time.UTC, Start: at(t, "2024-01-01T00:00:00Z"), Until: at(t, "2024-03-15T00:00:00Z"),
	})
	require.Nil(t, problem)
	for _, row := range []struct {
		parts     *partition.Set
		key, at   string
		want, err string
	}{
		{days, "", "2024-02-01T00:30:00+01:00", "2024-01-31", ""},
		{days, "", "2024-01-31T23:59:59+01:00", "2024-01-30", ""},
		{days, "", "2024-01-01T23:00:00Z", "2024-01-01", ""},
		{days, "", "2024-01-01T22:59:59Z", "", "no partition is complete yet: the first one, 2024-01-01, ends at 2024-01-02T00:00:00+01:00"},
		{days, "", "2020-01-01T00:00:00Z", "", "no partition is complete yet: the first one, 2024-01-01, ends at 2024-01-02T00:00:00+01:00"},
		{days, "2024-01-05", "2024-02-01T00:00:00Z", "2024-01-05", ""},
		{days, "2024-02-01", "2024-02-01T10:00:00Z", "", "the partition 2024-02-01 does not end before 2024-02-02T00:00:00+01:00"},
		{days, "2023-12-31", "2024-02-01T10:00:00Z", "", "2023-12-31 is before the first partition, 2024-01-01"},
		{days, "2024-01", "2024-02-01T10:00:00Z", "", `"2024-01" is not the key of a partition; keys are such as 2024-01-01, the first one`},
		{days, "2024-02-30", "2024-04-01T10:00:00Z", "", `"2024-02-30" is not the key of a partition; keys are such as 2024-01-01, the first one`},
		{hours, "2024-10-27T02", "2024-11-01T10:00:00Z", "", `"2024-10-27T02" is not the key of a partition; this hour occurs twice because the clocks change, so its key needs the offset, such as 2024-10-27T02+02:00`},
		{hours, "2024-03-31T02", "2024-11-01T10:00:00Z", "", `"2024-03-31T02" is not the key of a partition; keys are such as 2024-01-01T00, the first one`},
		{lists, "us", "2024-02-01T10:00:00Z", "us", ""},
		{lists, "", "2024-02-01T10:00:00Z", "", "the partitions are a list, so a run has to name one of them: eu, us"},
		{lists, "uss", "2024-02-01T10:00:00Z", "", `there is no partition "uss"; did you mean us?: they are eu, us`},
		{bounded, "", "2030-01-01T00:00:00Z", "2024-02", ""},
		{bounded, "2024-03", "2030-01-01T00:00:00Z", "", "2024-03-01 is after the last partition, 2024-02"},
		{set(t, "week", "2024-01-01", ""), "2024-W53", "2030-01-01T00:00:00Z", "", `"2024-W53" is not the key of a partition; keys are such as 2024-W01, the first one`},
	} {
		p, err := row.parts.ForRun(row.key, at(t, row.at))
		if row.err != "" {
			require.EqualError(t, err, row.err, "%+v", row)
			continue
		}
		require.NoError(t, err, "%+v", row)
		require.Equal(t, row.want, p.Key, "%+v", row)
	}
	require.Equal(t, map[string]any{"key": "us", "index": 1, "start": nil, "end": nil}, partition.Partition{Key: "us", Index: 1}.ExprValue())
}

// TestEndInsideAPartition: time before the end that no run reads.
func TestEndInsideAPartition(t *testing.T) {
	t.Parallel()
	berlin := zone(t, "Europe/Berlin")
	for _, row := range []struct {
		rule partition.Rule
		cut  string
	}{
		{partition.Rule{Zone: berlin, Unit: "month", Start: at(t, "2024-01-01T00:00:00+01:00"), Until: at(t, "2024-03-31T00:00:00+01:00")}, "2024-03"},
		{partition.Rule{Zone: berlin, Unit: "month", Start: at(t, "2024-01-01T00:00:00+01:00"), Until: at(t, "2024-04-01T00:00:00+02:00")}, ""},
		{partition.Rule{Zone: berlin, Unit: "day", Start: at(t, "2024-01-01T00:00:00+01:00")}, ""},
		{
			partition.Rule{Zone: berlin, Length: 6 * time.Hour, Start: at(t, "2024-03-30T00:00:00+01:00"), Until: at(t, "2024-04-01T00:00:00+02:00")},
			"2024-03-31T19:00:00+02:00--2024-04-01T01:00:00+02:00",
		},
		{partition.Rule{Keys: []string{"eu", "us"}}, ""},
	} {
		set, problem := partition.New(row.rule)
		require.Nil(t, problem)
		cut, is := set.CutByEnd()
		require.Equal(t, row.cut != "", is, "%+v", row)
		if is {
			require.Equal(t, row.cut, cut.Key)
		}
	}
}

// TestBadRules: what no partitions can be made of names its word.
func TestBadRules(t *testing.T) {
	t.Parallel()
	berlin := zone(t, "Europe/Berlin")
	for _, row := range []struct {
		rule partition.Rule
		want partition.Problem
	}{
		{partition.Rule{Zone: time.UTC, Length: 500 * time.Millisecond, Start: at(t, "2024-01-01T00:00:00Z")}, partition.Problem{Word: "every", Message: "must be whole seconds, not 500ms"}},
		{partition.Rule{Zone: time.UTC, Unit: "week", Start: at(t, "2024-01-04T00:00:00Z")}, partition.Problem{Word: "start", Message: "must be the start of a week, such as 2024-01-01, not 2024-01-04"}},
		{partition.Rule{Zone: time.UTC, Unit: "year", Start: at(t, "2024-02-01T00:00:00Z")}, partition.Problem{Word: "start", Message: "must be the start of a year, such as 2024-01-01, not 2024-02-01"}},
		{partition.Rule{Zone: berlin, Unit: "month", Start: at(t, "2024-01-01T00:00:00Z")}, partition.Problem{Word: "start", Message: "must be the start of a month, such as 2024-01-01, not 2024-01-01T01:00:00+01:00"}},
		{partition.Rule{Zone: berlin, Unit: "hour", Start: at(t, "2024-01-01T00:20:00Z")}, partition.Problem{Word: "start", Message: "must be the start of an hour, such as 2024-01-01T01:00:00+01:00, not 2024-01-01T01:20:00+01:00"}},
		{partition.Rule{Zone: time.UTC, Unit: "day", Start: at(t, "2024-01-01T00:00:00Z"), Until: at(t, "2024-01-01T20:00:00Z")}, partition.Problem{Word: "end", Message: "must not be before 2024-01-02, where the first partition ends, not 2024-01-01T20:00:00Z"}},
		{partition.Rule{Zone: time.UTC, Unit: "hour", Start: at(t, "2000-01-01T00:00:00Z"), Until: at(t, "2024-01-01T20:00:00Z")}, partition.Problem{Word: "end", Message: "makes more than 100000 partitions; use longer partitions, or a later start"}},
	} {
		_, problem := partition.New(row.rule)
		require.Equal(t, &row.want, problem)
	}
	seconds, problem := partition.New(partition.Rule{Zone: time.UTC, Length: time.Second, Start: at(t, "2024-01-01T00:00:00Z")})
	require.Nil(t, problem)
	_, err := seconds.CompletePartitions(at(t, "2024-01-03T00:00:00Z"))
	require.EqualError(t, err, "there are 172800 partitions, more than 100000; use longer partitions, or a later start")
	_, err = seconds.ForRun("", at(t, "2024-01-03T00:00:00Z"))
	require.EqualError(t, err, "there are 172800 partitions, more than 100000; use longer partitions, or a later start")
}
