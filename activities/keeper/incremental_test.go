package keeper

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/incremental"
	"reprise/interpreter/queue"
)

// TestHoldsState: a key is the name of a state, or begins those of a loop, of which a run holds the ones that it has claimed.
func TestHoldsState(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		key, state, run string
		holds           bool
	}{
		{"shop/orders", "shop/orders", "another", true},
		{"shop/orders", "shop/orders/a", "run", true},
		{"shop/orders", "shop/orders/a", "another", false},
		{"shop/orders", "shop/orders2", "run", false},
		{"orders/eu/{{ shop.id }}", "orders/eu/7", "run", true},
		{"orders/eu/{{ shop.id }}", "orders/us/7", "run", false},
	} {
		require.Equal(t, row.holds, holdsState(row.key, []string{"run"}, incremental.State{Name: row.state, Run: row.run}), "%+v", row)
	}
}

// TestMayHold: only queues of the states that are listed are asked, so that one of others, whose worker is away, keeps nothing
// back. A key that is too long for an ID is not read from it.
func TestMayHold(t *testing.T) {
	t.Parallel()
	states := []incremental.State{{Name: "shop/orders"}, {Name: "eu/orders/7"}}
	for key, may := range map[string]bool{
		"shop/orders": true, "eu/orders": true, "eu/orders/{{ shop.id }}": true, "shop/orders2": false, "shop": true, "us/orders/7": false,
		"a b/%2F": false, strings.Repeat("k", 2000): true,
	} {
		require.Equal(t, may, mayHold(queue.Name{Key: key, State: true}.WorkflowID(), states), key)
	}
	require.False(t, mayHold(queue.Name{Key: "shop/orders", State: true}.WorkflowID(), nil))
}
