package terminal

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/interpreter/lists"
)

// NewTable returns a table in the style of this program.
func NewTable(columns ...any) table.Writer {
	writer := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options.SeparateRows = false
	writer.SetStyle(style)
	writer.AppendHeader(table.Row(columns))
	return writer
}

// TableRow returns the cells of some columns. It panics if a column has no cell: a table would silently omit it.
func TableRow[C any](columns []string, cells map[string]C) table.Row {
	return lists.Map(columns, func(name string) any {
		cell, found := cells[name]
		if !found {
			panic(fmt.Sprintf("column %q has no cell", name))
		}
		return cell
	})
}

// HeadRow returns the heading row of some columns.
func HeadRow(columns []string) table.Row {
	return lists.Map(columns, func(name string) any { return name })
}

// leastName is the least width of a column of names before other columns are left out.
const leastName = 16

// FitColumns renders a table with the first set of columns that fits the width. Other commands accept the names in
// its rows, so they are never cut: long names wrap. A column is left out if names would otherwise have less than two
// fifths of the width.
func FitColumns(width int, names []string, sets [][]string, render func(columns, names []string) string) string {
	longest := widestLine(names)
	const share, of = 2, 5
	least := min(longest, max(leastName, width*share/of))
	for i, columns := range sets {
		wrapped := WrapNames(names, least)
		rendered := render(columns, wrapped)
		room := width - text.LongestLineLen(rendered)
		switch {
		case room < 0 && i < len(sets)-1:
		case least == longest:
			return rendered
		default:
			return render(columns, WrapNames(names, min(longest, max(widestLine(wrapped)+room, 1))))
		}
	}
	return ""
}

// widestLine returns the width of the longest line of some names.
func widestLine(names []string) int {
	width := 0
	for _, name := range names {
		width = max(width, text.LongestLineLen(name))
	}
	return width
}

// WrapNames wraps names as WrapName does.
func WrapNames(names []string, width int) []string {
	return lists.Map(names, func(name string) string { return WrapName(name, width) })
}

// WrapName breaks a name into lines of a width: after a separator between words if there is one in the second half of
// the line, else anywhere.
func WrapName(name string, width int) string {
	var lines []string
	for text.StringWidth(name) > width {
		end, columns := 0, 0
		mark := 0
		for at, r := range name {
			if columns += text.RuneWidth(r); columns > width && at > 0 {
				break
			}
			end = at + utf8.RuneLen(r)
			if strings.ContainsRune("-_/.#: ", r) && columns*2 > width {
				mark = end
			}
		}
		if mark > 0 {
			end = mark
		}
		lines, name = append(lines, name[:end]), name[end:]
	}
	return strings.Join(append(lines, name), "\n")
}

// Elastic is a column that may be narrower than its cells, which are cut or wrapped to no less than Least characters.
// If Least is 0, the column may be left out.
type Elastic struct {
	Name  string
	Least int
	Cut   table.WidthEnforcer
}

// SnipCell cuts a cell and adds an ellipsis.
func SnipCell(cell string, most int) string { return text.Snip(cell, most, "…") }

// EachLine returns an enforcer that cuts each line of a cell.
func EachLine(cut table.WidthEnforcer) table.WidthEnforcer {
	return func(cell string, most int) string {
		return strings.Join(lists.Map(strings.Split(cell, "\n"), func(line string) string { return cut(line, most) }), "\n")
	}
}

// ShortenMiddle shortens an identifier to a width by omitting its middle: the beginning says whose it is, the end which one.
func ShortenMiddle(id string, width int) string {
	if text.StringWidth(id) <= width {
		return id
	}
	runes := []rune(id)
	fitting := func(columns int, at func(int) rune) (n int) {
		for ; n < len(runes); n++ {
			if columns -= text.RuneWidth(at(n)); columns < 0 {
				break
			}
		}
		return n
	}
	end := (width - 1) / 2
	first := fitting(width-1-end, func(i int) rune { return runes[i] })
	last := fitting(end, func(i int) rune { return runes[len(runes)-1-i] })
	return string(runes[:first]) + "…" + string(runes[len(runes)-last:])
}

// FitTable renders a table at a width: it narrows elastic columns one after the other until the table fits or all
// have their least width.
func FitTable(rows table.Writer, width int, columns ...Elastic) string {
	rendered := rows.Render()
	var configs []table.ColumnConfig
	for _, column := range columns {
		for most := min(width, column.Least*width); ; most = max(most-text.LongestLineLen(rendered)+width, column.Least) {
			if text.LongestLineLen(rendered) <= width {
				return rendered
			}
			config := table.ColumnConfig{Name: column.Name, WidthMax: most, WidthMaxEnforcer: column.Cut, Hidden: most == 0}
			rows.SetColumnConfigs(append(configs, config))
			if rendered = rows.Render(); most == column.Least {
				configs = append(configs, config)
				break
			}
		}
	}
	return rendered
}
