package main

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// newTable is a table in the one style that this program has.
func newTable(columns ...any) table.Writer {
	writer := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options.SeparateRows = false
	writer.SetStyle(style)
	writer.AppendHeader(table.Row(columns))
	return writer
}

// elastic is a column that may be narrower than its cells, which are cut or wrapped to
// at least so many characters; with 0 it may be left out.
type elastic struct {
	name  string
	least int
	to    table.WidthEnforcer
}

// snip cuts a cell with an ellipsis.
func snip(cell string, most int) string { return text.Snip(cell, most, "…") }

// fitted renders a table with its elastic columns narrower, one after the other, until it
// fits a width or all have their least.
func fitted(rows table.Writer, width int, columns ...elastic) string {
	rendered := rows.Render()
	var configs []table.ColumnConfig
	for _, column := range columns {
		for most := min(width, column.least*width); ; most = max(most-text.LongestLineLen(rendered)+width, column.least) {
			if text.LongestLineLen(rendered) <= width {
				return rendered
			}
			config := table.ColumnConfig{Name: column.name, WidthMax: most, WidthMaxEnforcer: column.to, Hidden: most == 0}
			rows.SetColumnConfigs(append(configs, config))
			if rendered = rows.Render(); most == column.least {
				configs = append(configs, config)
				break
			}
		}
	}
	return rendered
}
