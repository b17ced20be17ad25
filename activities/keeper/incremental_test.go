package keeper

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/incremental"
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
