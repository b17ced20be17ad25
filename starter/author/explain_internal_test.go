package author

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/reference"
)

// TestLinksStayWhole: a link can be copied from a narrow terminal.
func TestLinksStayWhole(t *testing.T) {
	t.Parallel()
	const link = "docs/reference/incremental.md#incrementallag"
	var b strings.Builder
	writeFact(&b, reference.Property{Name: "link", Text: link}, 40)
	require.Equal(t, "link:\n  "+link+"\n", b.String())
	b.Reset()
	writeFact(&b, reference.Property{Name: "link", Text: link}, 80)
	require.Equal(t, "link: "+link+"\n", b.String())
}
