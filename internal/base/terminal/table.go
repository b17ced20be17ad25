package terminal

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/interpreter/lists"
)

// NewTable is a table in the one style that this program has.
func NewTable(columns ...any) table.Writer {
	writer := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	style.Options.SeparateRows = false
	writer.SetStyle(style)
	writer.AppendHeader(table.Row(columns))
	return writer
}

// Row is the cells of some columns.
func Row[C any](columns []string, cells map[string]C) table.Row {
	return lists.Map(columns, func(name string) any { return cells[name] })
}

// Head is a row of the names of some columns.
func Head(columns []string) table.Row {
	return lists.Map(columns, func(name string) any { return name })
}

// FitColumns renders a table with the first set of columns that fits a width. The identifiers of its
// rows are what other commands want, so they are cut last, in their middle, with the last set.
func FitColumns(width int, ids []string, sets [][]string, render func(columns, ids []string) string) string {
	rendered := ""
	for _, columns := range sets {
		if rendered = render(columns, ids); text.LongestLineLen(rendered) <= width {
			return rendered
		}
	}
	longest := 0
	for _, id := range ids {
		longest = max(longest, text.StringWidth(id))
	}
	return render(sets[len(sets)-1], MiddleAll(ids, max(longest-text.LongestLineLen(rendered)+width, 1)))
}

// Elastic is a column that may be narrower than its cells, which are cut or wrapped to
// at least so many characters; with 0 it may be left out.
type Elastic struct {
	Name  string
	Least int
	Cut   table.WidthEnforcer
}

// Snip cuts a cell with an ellipsis.
func Snip(cell string, most int) string { return text.Snip(cell, most, "…") }

// EachLine cuts the lines of a cell, each by itself.
func EachLine(cut table.WidthEnforcer) table.WidthEnforcer {
	return func(cell string, most int) string {
		return strings.Join(lists.Map(strings.Split(cell, "\n"), func(line string) string { return cut(line, most) }), "\n")
	}
}

// Middle cuts an identifier to a width. Its beginning says whose it is and its end which one, so what
// is left out is in the middle.
func Middle(id string, width int) string {
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

// MiddleAll cuts identifiers to a width like Middle. Where different ones would look the same then,
// what they differ in stays as well.
func MiddleAll(ids []string, width int) []string {
	cut := make([]string, len(ids))
	same := map[string][]int{}
	for i, id := range ids {
		cut[i] = Middle(id, width)
		same[cut[i]] = append(same[cut[i]], i)
	}
	for i := range ids {
		alike := same[cut[i]]
		if len(alike) == 0 || alike[0] != i {
			continue // those that look like it were handled with it
		}
		at := commonBeginning(ids, alike)
		if at < 0 {
			continue
		}
		for _, other := range alike {
			cut[other] = around(ids[other], at, width)
		}
	}
	return cut
}

// commonBeginning is how many letters the beginnings of some identifiers have in common, -1 where
// all are the same.
func commonBeginning(ids []string, some []int) int {
	first, common := []rune(ids[some[0]]), -1
	for _, i := range some[1:] {
		other, n := []rune(ids[i]), 0
		for n < len(first) && n < len(other) && first[n] == other[n] {
			n++
		}
		if ids[i] != ids[some[0]] && (common < 0 || n < common) {
			common = n
		}
	}
	return common
}

// around cuts an identifier to a width so that its beginning stays, and what follows on a letter.
func around(id string, at, width int) string {
	runes := []rune(id)
	head := max(width/3, 1)
	rest := width - head - 1
	if rest < 2 || text.StringWidth(id) != len(runes) {
		return Middle(id, width)
	}
	if len(runes)-at <= rest {
		return string(runes[:head]) + "…" + string(runes[len(runes)-rest:])
	}
	return string(runes[:head]) + "…" + string(runes[at:at+rest-1]) + "…"
}

// Fit renders a table with its elastic columns narrower, one after the other, until it
// fits a width or all have their least.
func Fit(rows table.Writer, width int, columns ...Elastic) string {
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
