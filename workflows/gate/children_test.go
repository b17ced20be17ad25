package gate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// TestMerged: what waits to be told is told together where nothing is lost by it.
func TestMerged(t *testing.T) {
	t.Parallel()
	three := 3
	settlement := func(skip bool, step string, index *int, by string) protocol.ItemSettlement {
		return protocol.ItemSettlement{Step: step, Index: index, Settlement: interpreter.Settlement{Skip: skip, By: by}}
	}
	retry, retryFetch := settlement(false, "", nil, "ada"), settlement(false, "fetch", nil, "")
	retryThree, skipThree := settlement(false, "fetch", &three, ""), settlement(true, "fetch", &three, "")
	skip, skipLater := settlement(true, "fetch", nil, "ada"), settlement(true, "fetch", nil, "bob")
	control := func(version int, resumes bool) protocol.Steering {
		return protocol.Steering{Control: interpreter.Control{Version: version}, Resumes: resumes}
	}
	decides := func(version int, decision protocol.ItemSettlement, then ...protocol.ItemSettlement) protocol.Steering {
		return protocol.Steering{Control: interpreter.Control{Version: version}, Settle: &decision, Then: then}
	}
	of := func(run string, steering protocol.Steering) protocol.Steering {
		steering.Run = run
		return steering
	}
	for name, c := range map[string]struct{ told, waits []protocol.Steering }{
		"nothing": {},
		"one":     {[]protocol.Steering{control(1, true)}, []protocol.Steering{control(1, true)}},
		"a later control": {
			[]protocol.Steering{control(1, false), control(2, true), control(3, false)}, []protocol.Steering{control(3, true)},
		},
		"an earlier control": {[]protocol.Steering{control(3, false), control(2, true)}, []protocol.Steering{control(3, true)}},
		"controls of other runs": {
			[]protocol.Steering{control(5, true), of("a", control(1, true)), of("b", control(7, false)), of("a", control(2, false)), control(6, true)},
			[]protocol.Steering{control(6, true), of("a", control(2, true)), of("b", control(7, false))},
		},
		"what others use": {
			[]protocol.Steering{{Shared: &protocol.SharedWindow{Slots: 4, Open: 9}}, control(1, true), {Shared: &protocol.SharedWindow{Slots: 2, Open: 3}}},
			[]protocol.Steering{{Control: interpreter.Control{Version: 1}, Resumes: true, Shared: &protocol.SharedWindow{Slots: 2, Open: 3}}},
		},
		"the same decision": {[]protocol.Steering{decides(1, retry), decides(2, retry), decides(2, retry)}, []protocol.Steering{decides(2, retry)}},
		"other decisions": {
			[]protocol.Steering{decides(1, skipThree), decides(1, retry), decides(1, skip)}, []protocol.Steering{decides(1, skipThree, retry, skip)},
		},
		"again after others": {
			[]protocol.Steering{decides(1, skipThree), decides(1, retry), decides(1, skipThree), decides(4, retry)},
			[]protocol.Steering{decides(4, skipThree, retry)},
		},
		"what a wider one means": {
			[]protocol.Steering{decides(1, retry), decides(1, retryFetch), decides(1, retryThree), decides(1, skipThree)},
			[]protocol.Steering{decides(1, retry, skipThree)},
		},
		"a wider one": {
			[]protocol.Steering{decides(1, retryThree), decides(1, retryFetch), decides(1, retry)},
			[]protocol.Steering{decides(1, retryThree, retryFetch, retry)},
		},
		"who said so first": {[]protocol.Steering{decides(1, skip), decides(1, skipLater)}, []protocol.Steering{decides(1, skip)}},
		"decisions and controls": {
			[]protocol.Steering{decides(1, skipThree), control(2, true), decides(2, retry), control(3, false), decides(3, retry)},
			[]protocol.Steering{decides(3, skipThree, retry), control(3, true)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var waits []protocol.Steering
			for _, steering := range c.told {
				waits = mergeSteering(waits, steering)
			}
			require.Equal(t, c.waits, waits)
		})
	}
}

// TestMergedIsBounded: more decisions than are told together are told one time after
// the other, each once.
func TestMergedIsBounded(t *testing.T) {
	t.Parallel()
	var waits []protocol.Steering
	const decisions = 2*maxThen + 50
	for range 2 {
		for index := range decisions {
			waits = mergeSteering(waits, protocol.Steering{Settle: &protocol.ItemSettlement{Step: "fetch", Index: &index}})
		}
	}
	require.Len(t, waits, 3)
	next := 0
	for _, steering := range waits {
		require.LessOrEqual(t, len(steering.Then), maxThen)
		for _, decision := range append([]protocol.ItemSettlement{*steering.Settle}, steering.Then...) {
			require.Equal(t, next, *decision.Index)
			next++
		}
	}
	require.Equal(t, decisions, next)
}
