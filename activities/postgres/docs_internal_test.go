package postgres

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocumentedTables: operators make the tables that the worker would make.
func TestDocumentedTables(t *testing.T) {
	t.Parallel()

	page, err := os.ReadFile("../../docs/how-to/prepare-a-database.md")
	require.NoError(t, err)

	inOneLine := func(text string) string {
		return strings.Join(strings.Fields(strings.ReplaceAll(text, "IF NOT EXISTS ", "")), " ")
	}
	for _, table := range slices.Concat(ledgerTables, dialect.StagingTables()) {
		for _, create := range table.Create {
			require.Contains(t, inOneLine(string(page)), inOneLine(create)+";")
		}
	}
	for _, table := range dialect.StateTables() {
		require.Contains(t, string(page), "`"+table.Name+"`")
	}
}
