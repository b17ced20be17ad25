package state

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/call"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/starter/cli"
)

// TestSelectStates: a state is removed if its element is gone and no run has claimed it since; a state that is unused since a
// time that is not known stays.
func TestSelectStates(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	states := []incremental.State{
		{Name: "s/idle", Run: "r", ClaimedAt: now, MovedAt: now.AddDate(0, -9, 0)},
		{Name: "s/old", Run: "r", ClaimedAt: now.AddDate(0, -5, 0), MovedAt: now.AddDate(0, -9, 0)},
		{Name: "s/set", MovedAt: now.AddDate(0, -5, 0)},
		{Name: "s/unknown", Run: "r", MovedAt: now.AddDate(0, -9, 0)},
	}
	for _, row := range []struct {
		since             time.Time
		exist             []string
		selected, unknown string
	}{
		{now.AddDate(0, -3, 0), nil, "s/old s/set", "s/unknown"},
		{now.AddDate(0, -6, 0), nil, "", "s/unknown"},
		{now.AddDate(0, -3, 0), []string{"s/set", "s/unknown"}, "s/old", ""},
		{time.Time{}, []string{"s/idle"}, "s/old s/set s/unknown", ""},
	} {
		p := pruning{unusedSince: row.since}
		if row.exist != nil {
			p.exist = map[string]bool{}
			for _, name := range row.exist {
				p.exist[name] = true
			}
		}
		selected, unknown := p.selectStates(states)
		require.Equal(t, row.selected, strings.Join(lists.Map(selected, nameOf), " "), row)
		require.Equal(t, row.unknown, strings.Join(lists.Map(unknown, nameOf), " "), row)
	}
}

// TestNamePattern: states of other steps whose names begin alike are not those of the step.
func TestNamePattern(t *testing.T) {
	t.Parallel()
	named := &playbook.Incremental{State: &playbook.Node{}}
	for _, row := range []struct {
		at       call.StateAt
		section  *playbook.Incremental
		fits     string
		fitsNone []string
	}{
		{call.StateAt{Each: true, Key: "shops/fetch"}, &playbook.Incremental{}, "shops/fetch/a/b\nc", []string{"shops/fetch", "shops/fetch/", "shops/fetch2/a"}},
		{call.StateAt{Each: true, Key: "x.y/{{ shop.id }}/orders"}, named, "x.y/7/orders", []string{"x.y/7/refunds", "xzy/7/orders", "x.y//orders", "x.y/7/orders/2"}},
		{call.StateAt{Name: "one"}, named, "one", []string{"one/2", "anyone"}},
	} {
		pattern := keptStep{at: row.at, step: &playbook.Step{Incremental: row.section}}.namePattern()
		require.True(t, pattern.MatchString(row.fits), row.fits)
		for _, name := range row.fitsNone {
			require.False(t, pattern.MatchString(name), name)
		}
	}
}

// TestParseElements: a list in YAML or JSON, or one element per line as databases print them.
func TestParseElements(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]any{
		"1\n2\n\nnorth\r\n":       {1, 2, "north"},
		"[1, a]":                  {1, "a"},
		"- 1\n- {id: 7}\n":        {1, map[string]any{"id": 7}},
		"7":                       {7},
		"{\"id\": 7}\n{id: 8}\n":  {map[string]any{"id": 7}, map[string]any{"id": 8}},
		"north: east\nsouth: x\n": {"north: east", "south: x"},
		"\n":                      nil,
	} {
		elements, err := parseElements([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, want, elements, text)
	}
	_, err := parseElements([]byte("1\n[2\n"))
	require.ErrorContains(t, err, "line 2: ")
	_, err = parseElements(make([]byte, maxElements+1))
	require.ErrorContains(t, err, "the file has more than 16777216 bytes")
}

// TestManyStates passes mostShown: the text says how many more there are.
func TestManyStates(t *testing.T) {
	t.Parallel()
	for more, want := range map[int]bool{0: false, 1: true} {
		var out strings.Builder
		a := &cli.App{Streams: cli.Streams{Out: &out}}
		outcome := pruneOutcome{States: make([]stateDocument, mostShown+more)}
		require.NoError(t, (&pruneOptions{}).showSelected(a, pruning{}, outcome, nil))
		require.Equal(t, want, strings.Contains(out.String(), "and 1 more; --dry-run --output json lists all\n"))
	}
}
