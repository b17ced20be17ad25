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
