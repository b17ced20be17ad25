package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
)

// TestMerged: what waits to be told is told together where nothing is lost by it.
func TestMerged(t *testing.T) {
	t.Parallel()
	three := 3
	settlement := func(skip bool, step string, index *int, by string) ItemSettlement {
		return ItemSettlement{Step: step, Index: index, Settlement: interpreter.Settlement{Skip: skip, By: by}}
	}
	retry, retryFetch := settlement(false, "", nil, "ada"), settlement(false, "fetch", nil, "")
	retryThree, skipThree := settlement(false, "fetch", &three, ""), settlement(true, "fetch", &three, "")
	skip, skipLater := settlement(true, "fetch", nil, "ada"), settlement(true, "fetch", nil, "bob")
	control := func(version int, resumes bool) Steering {
		return Steering{Control: interpreter.Control{Version: version}, Resumes: resumes}
	}
	decides := func(version int, decision ItemSettlement, then ...ItemSettlement) Steering {
		return Steering{Control: interpreter.Control{Version: version}, Settle: &decision, Then: then}
	}
	of := func(run string, steering Steering) Steering {
		steering.Run = run
		return steering
	}
	for name, c := range map[string]struct{ told, waits []Steering }{
		"nothing": {},
		"one":     {[]Steering{control(1, true)}, []Steering{control(1, true)}},
		"a later control": {
			[]Steering{control(1, false), control(2, true), control(3, false)}, []Steering{control(3, true)},
		},
		"an earlier control": {[]Steering{control(3, false), control(2, true)}, []Steering{control(3, true)}},
		"controls of other runs": {
			[]Steering{control(5, true), of("a", control(1, true)), of("b", control(7, false)), of("a", control(2, false)), control(6, true)},
			[]Steering{control(6, true), of("a", control(2, true)), of("b", control(7, false))},
		},
		"what others use": {
			[]Steering{{Shared: &Shared{Slots: 4, Open: 9}}, control(1, true), {Shared: &Shared{Slots: 2, Open: 3}}},
			[]Steering{{Control: interpreter.Control{Version: 1}, Resumes: true, Shared: &Shared{Slots: 2, Open: 3}}},
		},
		"the same decision": {[]Steering{decides(1, retry), decides(2, retry), decides(2, retry)}, []Steering{decides(2, retry)}},
		"other decisions": {
			[]Steering{decides(1, skipThree), decides(1, retry), decides(1, skip)}, []Steering{decides(1, skipThree, retry, skip)},
		},
		"again after others": {
			[]Steering{decides(1, skipThree), decides(1, retry), decides(1, skipThree), decides(4, retry)},
			[]Steering{decides(4, skipThree, retry)},
		},
		"what a wider one means": {
			[]Steering{decides(1, retry), decides(1, retryFetch), decides(1, retryThree), decides(1, skipThree)},
			[]Steering{decides(1, retry, skipThree)},
		},
		"a wider one": {
			[]Steering{decides(1, retryThree), decides(1, retryFetch), decides(1, retry)},
			[]Steering{decides(1, retryThree, retryFetch, retry)},
		},
		"who said so first": {[]Steering{decides(1, skip), decides(1, skipLater)}, []Steering{decides(1, skip)}},
		"decisions and controls": {
			[]Steering{decides(1, skipThree), control(2, true), decides(2, retry), control(3, false), decides(3, retry)},
			[]Steering{decides(3, skipThree, retry), control(3, true)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var waits []Steering
			for _, steering := range c.told {
				waits = merged(waits, steering)
			}
			require.Equal(t, c.waits, waits)
		})
	}
}

// TestMergedIsBounded: more decisions than are told together are told one time after
// the other, each once.
func TestMergedIsBounded(t *testing.T) {
	t.Parallel()
	var waits []Steering
	const decisions = 2*maxThen + 50
	for range 2 {
		for index := range decisions {
			waits = merged(waits, Steering{Settle: &ItemSettlement{Step: "fetch", Index: &index}})
		}
	}
	require.Len(t, waits, 3)
	next := 0
	for _, steering := range waits {
		require.LessOrEqual(t, len(steering.Then), maxThen)
		for _, decision := range append([]ItemSettlement{*steering.Settle}, steering.Then...) {
			require.Equal(t, next, *decision.Index)
			next++
		}
	}
	require.Equal(t, decisions, next)
}
