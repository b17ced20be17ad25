package runs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/base/payload"
)

// TestSilence: what has failed is classified by the types of the failure and its causes, and not by its text. It passes
// mostFailure.
func TestSilence(t *testing.T) {
	t.Parallel()
	convert := temporal.GetDefaultFailureConverter().ErrorToFailure
	away := &payload.StoreError{Text: "read k from the payload store s3://b: refused"}
	for _, test := range []struct {
		err  error
		want Silence
		text string
	}{
		{nil, Silence{HeldBy: HeldByNoWorker}, `no worker of the task queue "q" responds, for 3s`},
		{fmt.Errorf("retrieve: %w", away), Silence{HeldBy: HeldByStore, Failure: away.Text}, `workers poll the task queue "q", but the payload store fails: ` + away.Text},
		{fmt.Errorf("lookup failed"), Silence{HeldBy: HeldByTask, Failure: "lookup failed"}, `workers poll the task queue "q", but cannot continue the run: lookup failed`},
	} {
		found := silenceOf(convert(test.err))
		require.Equal(t, test.want, found)
		require.Equal(t, test.text, found.Text(Found{TaskQueue: "q"}, ", for 3s"))
	}
	long := Silence{HeldBy: HeldByTask, Failure: strings.Repeat("x", 2*mostFailure)}
	require.Less(t, len(long.Text(Found{TaskQueue: "q"}, "")), mostFailure+100)
}
