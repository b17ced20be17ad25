package oracle_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// endlessSeeds are playbooks that once asked for pages without end, because the API always named a next one.
var endlessSeeds = []uint64{20261221, 1585558901}

// TestEachPlaybookEnds: a prediction ends after a number of requests that a run can send too.
func TestEachPlaybookEnds(t *testing.T) {
	t.Parallel()
	for _, seed := range endlessSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			_, o := newRound(seed).predict()
			require.LessOrEqual(t, o.asked, mostAsked)
		})
	}
}
