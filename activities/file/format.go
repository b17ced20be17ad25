package file

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"reprise/interpreter/expression"
)

// byteOrderMark is at the beginning of files from some editors and
// spreadsheets; it belongs to no value.
const byteOrderMark = "\uFEFF"

func parseFile(content []byte, format string) (any, error) {
	content = bytes.TrimPrefix(content, []byte(byteOrderMark))
	switch format {
	case formatJSON:
		return expression.Decode(content)
	case formatJSONL:
		return parseLines(content)
	case formatCSV:
		return parseCSV(content)
	}
	return strings.ToValidUTF8(string(content), "\uFFFD"), nil
}

// parseLines reads JSON Lines; empty lines are left out.
func parseLines(content []byte) (any, error) {
	rows := []any{}
	number := 0
	for line := range bytes.Lines(content) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		row, err := expression.Decode(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// parseCSV reads rows as maps by the names in the first line (RFC 4180).
func parseCSV(content []byte) (any, error) {
	reader := csv.NewReader(bytes.NewReader(content))
	rows := []any{}
	header, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return rows, nil
	}
	if err != nil {
		return nil, err
	}
	if name, twice := duplicate(header); twice {
		return nil, fmt.Errorf("line 1: the column %q stands there twice", name)
	}
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		row := make(map[string]any, len(header))
		for i, name := range header {
			row[name] = strings.ToValidUTF8(record[i], "\uFFFD")
		}
		rows = append(rows, row)
	}
}

func duplicate(names []string) (string, bool) {
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return name, true
		}
		seen[name] = true
	}
	return "", false
}

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
		record := make([]string, len(columns))
		for c, name := range columns {
			record[c] = expression.Text(values[name])
		}
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
