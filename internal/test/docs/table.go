package docs

import "strings"

func code(text string) string { return "`" + text + "`" }

// table writes a Markdown table; the first row is its head. Text in it is as
// written, but for the bars that would end a cell.
func table(rows [][]string) string {
	var out strings.Builder
	for i, row := range rows {
		for _, cell := range row {
			out.WriteString("| " + strings.ReplaceAll(cell, "|", `\|`) + " ")
		}
		out.WriteString("|\n")
		if i == 0 {
			out.WriteString(strings.Repeat("|---", len(row)) + "|\n")
		}
	}
	return out.String()
}
