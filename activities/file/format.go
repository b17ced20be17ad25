package file

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"reprise/activities/format"

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
func formatRows(rows []any, columns []string, withHeader bool, cell func(any) any) ([]byte, error) {
	var text []byte
	if withHeader && len(columns) > 0 {
		text = appendRecord(text, lists.Map(columns, func(name string) any { return cell(name) }))
	}
	for i, row := range rows {
		values, ok := row.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("row %d is a %s; a row of CSV must be a map", i, expression.TypeName(row))
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if !slices.Contains(columns, name) {
				return nil, fmt.Errorf("row %d has %q, which is not a column; the columns are %s", i, name, strings.Join(columns, ", "))
			}
		}
		text = appendRecord(text, lists.Map(columns, func(name string) any { return cell(values[name]) }))
	}
	return text, nil
}

// packBytes compresses content as one member.
func packBytes(content []byte, compression string) ([]byte, error) {
	if compression == "" {
		return content, nil
	}
	var packed bytes.Buffer
	to, err := format.PackWriter(&packed, compression)
	if err == nil {
		_, err = to.Write(content)
	}
	if err == nil {
		err = to.Close()
	}
	return packed.Bytes(), err
}

// formula is the beginning of a text that spreadsheets run, also in the widths of East Asia.
var (
	formula = regexp.MustCompile(`^[=+\-@\t\r\n＝＋－＠]`)
	number  = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?$`)
)

// escapeFormula returns a value of CSV that no spreadsheet runs.
func escapeFormula(value any) any {
	if text, isText := value.(string); isText && formula.MatchString(text) && !number.MatchString(text) {
		return "'" + text
	}
	return value
}

// asItIs leaves a value of CSV unchanged.
func asItIs(value any) any { return value }

// unescapedNames removes escapes from the column names in the first line of a file; nil stays nil.
func unescapedNames(columns []string) []string {
	if columns == nil {
		return nil
	}
	return lists.Map(columns, func(name string) string {
		if rest, escaped := strings.CutPrefix(name, "'"); escaped && formula.MatchString(rest) {
			return rest
		}
		return name
	})
}

// appendRecord writes a line of CSV (RFC 4180). nil is an empty value. Values in quotes are: an empty text, the only
// value of an otherwise empty line, which many readers skip, and at the start of a file what would be read as
// something else.
func appendRecord(text []byte, values []any) []byte {
	for i, value := range values {
		if i > 0 {
			text = append(text, ',')
		}
		plain := expression.PlainText(value)
		switch {
		case plain == "" && (value != nil || len(values) == 1):
		case len(values) == 1 && strings.ContainsAny(plain, format.OtherDelimiters):
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

// columnsOf returns the names in all rows, sorted.
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
