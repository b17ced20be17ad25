package render

import (
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"

	"reprise/internal/base/terminal"
	"reprise/interpreter/lists"
)

// itemColumn is a column of an itemTable.
type itemColumn[T any] struct {
	name string
	// dropped says when a narrow terminal leaves the column out: columns with 1 first, then 2 and so on; 0 is never
	// left out.
	dropped int
	cell    func(item T) string
}

// itemTable is a table with a row for each run or step. Columns without a value in any row are left out.
type itemTable[T any] struct {
	title   string // heading of the first column, the names of the items
	columns []itemColumn[T]
}

// fitTable renders the table with as many columns as fit the terminal, and returns the titles of these columns.
func (t itemTable[T]) fitTable(items []T, names []string, paper terminal.Paper) (rendered string, shown []string) {
	rendered = terminal.FitColumns(paper.Width, names, t.columnSets(), func(columns, names []string) string {
		var rows []table.Row
		for i, item := range items {
			cells := map[string]string{t.title: names[i]}
			for _, column := range t.columns {
				cells[column.name] = column.cell(item)
			}
			rows = append(rows, terminal.TableRow(columns, cells))
		}
		shown = columns
		return filledTable(terminal.HeadRow(columns), rows).Render()
	})
	return rendered, shown
}

// columnSets returns the sets of columns to try, the widest first.
func (t itemTable[T]) columnSets() [][]string {
	last := 0
	for _, column := range t.columns {
		last = max(last, column.dropped)
	}
	var sets [][]string
	for dropped := range last + 1 {
		stay := slices.DeleteFunc(slices.Clone(t.columns), func(c itemColumn[T]) bool { return c.dropped > 0 && c.dropped <= dropped })
		sets = append(sets, append([]string{t.title}, lists.Map(stay, func(c itemColumn[T]) string { return c.name })...))
	}
	return sets
}
