package call_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
)

// TestNoteThatLeadsNowhere: a call does not begin again because of a note that does not
// say how it continues.
func TestNoteThatLeadsNowhere(t *testing.T) {
	t.Parallel()
	call := pagesOf(t, "", "")
	page(call, tables.Started, 1)
	before := *call.State()
	require.ErrorContains(t, call.Resume([]byte(`{"state":{"written":2}}`)), "write 2 does not say how the call continues")
	require.ErrorContains(t, call.Resume([]byte(`{"state":{"todo":[{"attempt":{}}]},"seen":99}`)), "does not belong to this call")
	require.ErrorContains(t, call.Resume([]byte(`[]`)), "decode how the call continues")
	require.Equal(t, before, *call.State())
}
