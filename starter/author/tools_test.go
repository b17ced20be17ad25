package author

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/starter/cli"
)

// TestToolsFit explains every tool within 80 columns, but for its example, with its
// words whole.
func TestToolsFit(t *testing.T) {
	t.Parallel()

	catalogue := activities.NewCatalogue(activities.Resources{Directory: t.TempDir()})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })

	for _, name := range catalogue.Names() {
		var b strings.Builder
		spec, _ := catalogue.Spec(name)
		explainTool(&b, spec)
		said, _, _ := strings.Cut(b.String(), "\nExample:")
		require.LessOrEqual(t, text.LongestLineLen(said), 80, "%s", said)
		require.NotContains(t, said, "may take 0s")
	}

	var out strings.Builder
	require.NoError(t, listTools(cli.Streams{Out: &out}, catalogue, "table"))
	require.LessOrEqual(t, text.LongestLineLen(out.String()), 80, "%s", out.String())
	require.Contains(t, strings.Join(strings.Fields(out.String()), " "), fmt.Sprintf("│ %s │", "approval"))
}
