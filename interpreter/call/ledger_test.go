package call_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter/call"
)

// TestNoteThatLeadsNowhere: a call does not begin again because of a note that does not
// say how it continues.
func TestNoteThatLeadsNowhere(t *testing.T) {
	t.Parallel()
	paged := pagesOf(t, "", "")
	page(paged, tables.Started, 1)
	before := *paged.State()
	for text, says := range map[string]string{
		`{"state":{"written":2}}`:                       "write 2 does not record how the call continues",
		`{"state":{"todo":[{"attempt":{}}]},"seen":99}`: "does not belong to this call",
	} {
		noted, err := call.Packed(text)
		require.NoError(t, err)
		require.ErrorContains(t, paged.ResumeAfterWrite(noted), says)
	}
	require.ErrorContains(t, paged.ResumeAfterWrite([]byte(`[]`)), "decode how the call continues")
	require.ErrorContains(t, paged.ResumeAfterWrite(nil), "decode how the call continues")
	require.Equal(t, before, *paged.State())
}
