package terminal_test

import (
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"reprise/internal/base/terminal"
)

// TestMiddle: an identifier keeps its beginning and its end, whatever its letters are wide.
func TestMiddle(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		0: "…", 1: "…", 2: "n…", 3: "n…c", 9: "nigh…wr4c", 17: "nightly-…-us-wr4c", 18: "nightly-e…-us-wr4c", 20: "nightly-east-us-wr4c", 80: "nightly-east-us-wr4c",
	} {
		require.Equal(t, want, terminal.ShortenMiddle("nightly-east-us-wr4c", width), width)
	}
	for width := 1; width < 20; width++ {
		cut := terminal.ShortenMiddle("夜間の取り込み-東京-7x2k", width)
		require.LessOrEqual(t, text.StringWidth(cut), width, cut)
	}
	require.Equal(t, "夜間…7x2k", terminal.ShortenMiddle("夜間の取り込み-東京-7x2k", 9))
}

// TestWrapName: every letter of a name stays, and lines end between its words where they can.
func TestWrapName(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		40: "nightly-import-of-all-patients-7x2k", 35: "nightly-import-of-all-patients-7x2k", 20: "nightly-import-of-\nall-patients-7x2k", 10: "nightly-\nimport-of-\nall-patien\nts-7x2k",
		5: "night\nly-\nimpor\nt-of-\nall-\npatie\nnts-\n7x2k",
	} {
		require.Equal(t, want, terminal.WrapName("nightly-import-of-all-patients-7x2k", width), width)
	}
	for width := 1; width < 20; width++ {
		wrapped := terminal.WrapName("夜間の取り込み-東京-7x2k", width)
		require.Equal(t, "夜間の取り込み-東京-7x2k", strings.ReplaceAll(wrapped, "\n", ""))
		if width > 1 {
			require.LessOrEqual(t, text.LongestLineLen(wrapped), width, wrapped)
		}
	}
}

// TestFitColumns: a table leaves out its last columns and then wraps names; where nothing bounds it, it is whole.
func TestFitColumns(t *testing.T) {
	t.Parallel()
	names := []string{"nightly-import-of-all-patients-of-the-east-7x2k", "short"}
	render := func(columns, names []string) string {
		rows := terminal.NewTable(terminal.HeadRow(columns)...)
		for i, name := range names {
			rows.AppendRow(terminal.TableRow(columns, map[string]any{"run": name, "status": "partial_success", "started": "4m ago", "time": i}))
		}
		return rows.Render()
	}
	sets := [][]string{{"run", "status", "started", "time"}, {"run", "status", "started"}, {"run", "status"}}
	for width, columns := range map[int]int{terminal.Unbounded: 4, 80: 4, 73: 4, 55: 3, 50: 2, 40: 2, 30: 2} {
		table := terminal.FitColumns(width, names, sets, render)
		require.Len(t, strings.Split(strings.Split(table, "\n")[1], "│"), columns+2, "%d\n%s", width, table)
		if width > 35 {
			require.LessOrEqual(t, text.LongestLineLen(table), width, table)
		}
		joined := ""
		for _, line := range strings.Split(table, "\n")[3:] {
			if cells := strings.Split(line, "│"); len(cells) > 1 {
				joined += strings.TrimSpace(cells[1])
			}
		}
		require.Equal(t, strings.Join(names, ""), joined, width)
	}
}

// TestRow: a column without a cell is the mistake of a developer, and not an empty column that is left out.
func TestRow(t *testing.T) {
	t.Parallel()
	require.Equal(t, table.Row{"a", ""}, terminal.TableRow([]string{"run", "by"}, map[string]string{"run": "a", "by": ""}))
	require.PanicsWithValue(t, `column "by" has no cell`, func() { terminal.TableRow([]string{"run", "by"}, map[string]string{"run": "a"}) })
}
