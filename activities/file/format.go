package file

import (
	"bytes"
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
	var text []byte
	if withHeader && len(columns) > 0 {
		text = appendRecord(text, lists.Map(columns, func(name string) any { return name }))
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
		text = appendRecord(text, lists.Map(columns, func(name string) any { return values[name] }))
	}
	return text, nil
}

// appendRecord writes a line of CSV (RFC 4180). nil is nothing and an empty text is in quotes; so is the one value of a
// line that would be empty, which many readers leave out, and what would be read as something else at the beginning of a file.
func appendRecord(text []byte, values []any) []byte {
	for i, value := range values {
		if i > 0 {
			text = append(text, ',')
		}
		plain := expression.Text(value)
		switch {
		case plain == "" && (value != nil || len(values) == 1):
		case plain == "" || !needsQuotes(plain):
			text = append(text, plain...)
			continue
		}
		text = append(append(append(text, '"'), strings.ReplaceAll(plain, `"`, `""`)...), '"')
	}
	return append(text, '\n')
}

func needsQuotes(text string) bool {
	return strings.ContainsAny(text, "\",\r\n") || strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\uFEFF") ||
		len(text) >= 4 && strings.EqualFold(text[:4], "sep=")
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
