package author

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/cost"
)

func TestParseCost(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]*cost.Assumption{
		"":                                nil,
		"1000":                            {Elements: 1000, Pages: 1, Attempts: 1},
		"pages=20":                        {Elements: 100, Pages: 20, Attempts: 1},
		"elements=7, pages=2, attempts=3": {Elements: 7, Pages: 2, Attempts: 3},
		fmt.Sprint(mostAssumed):           {Elements: mostAssumed, Pages: 1, Attempts: 1},
	} {
		got, err := parseCost(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"many": `elements is "many"`, "0": `elements is "0", expected a number from 1 to 1000000`, "pages=": `pages is ""`,
		"rows=3": `"rows" is unknown`, fmt.Sprint(mostAssumed + 1): "expected a number from 1 to 1000000",
	} {
		_, err := parseCost(text)
		require.ErrorContains(t, err, want, text)
	}
}
