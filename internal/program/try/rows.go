package try

import (
	"slices"
	"strings"

	"reprise/interpreter/expression"
)

// rowsOf returns the rows of a value: the items of a list, a map as one row, none for anything else.
func rowsOf(value any) []any {
	switch value := value.(type) {
	case []any:
		return value
	case map[string]any:
		return []any{value}
	}
	return nil
}

// columnsOf returns the columns of rows that are maps, sorted by name, with the types of their values; nil for other
// rows.
func columnsOf(rows []any) []Column {
	types := map[string][]string{}
	for _, row := range rows {
		members, isMap := row.(map[string]any)
		if !isMap {
			return nil
		}
		for name, value := range members {
			if kind := expression.TypeName(value); !slices.Contains(types[name], kind) {
				types[name] = append(types[name], kind)
			}
		}
	}
	columns := make([]Column, 0, len(types))
	for name, kinds := range types {
		for _, row := range rows { // one that lacks it is nil there
			if _, has := row.(map[string]any)[name]; !has && !slices.Contains(kinds, "nil") {
				kinds = append(kinds, "nil")
			}
		}
		slices.SortFunc(kinds, func(a, b string) int { return strings.Compare(kindOrder(a), kindOrder(b)) })
		columns = append(columns, Column{Name: name, Type: strings.Join(kinds, ", ")})
	}
	slices.SortFunc(columns, func(a, b Column) int { return strings.Compare(a.Name, b.Name) })
	return columns
}

// kindOrder sorts nil after other types.
func kindOrder(kind string) string {
	if kind == "nil" {
		return "~"
	}
	return kind
}
