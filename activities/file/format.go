package file

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// formatLines writes JSON Lines.
func formatLines(rows []any) ([]byte, error) {
	var lines bytes.Buffer
	for i, row := range rows {
		encoded, err := expression.Encode(row)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		lines.Write(encoded)
		lines.WriteByte('\n')
	}
	return lines.Bytes(), nil
}

// formatRows writes CSV rows by their columns, with the header if asked for.
// A name that is no column is an error: its values would be lost.
func formatRows(rows []any, columns []string, withHeader bool) ([]byte, error) {
	var text bytes.Buffer
	writer := csv.NewWriter(&text)
	if withHeader && len(columns) > 0 {
		_ = writer.Write(columns) // writing to memory cannot fail
	}
	for i, row := range rows {
		values, ok := row.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("row %d is a %s; a row of CSV must be a map", i, expression.TypeName(row))
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if !slices.Contains(columns, name) {
				return nil, fmt.Errorf("row %d has %q, which is no column; the columns are %s", i, name, strings.Join(columns, ", "))
			}
		}
		record := lists.Map(columns, func(name string) string { return expression.Text(values[name]) })
		_ = writer.Write(record)
	}
	writer.Flush()
	return text.Bytes(), writer.Error()
}

// columnsOf are the names in all rows, sorted.
func columnsOf(rows []any) []string {
	names := map[string]bool{}
	for _, row := range rows {
		if values, ok := row.(map[string]any); ok {
			for name := range values {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
