package format

import (
	"fmt"
	"slices"
)

// OddRows returns notes about rows of CSV that are probably no rows of data. what names the CSV, and before is the number of rows before
// these.
func OddRows(rows any, what string, before int64) (notes []string) {
	list, _ := rows.([]any)
	for _, odd := range []struct {
		is   func(row any) bool
		says string
	}{
		{isHeader, "row %d of %s has the names of the columns as its values, and is read as a row; it is probably a second header, so leave it out"},
		{isEmpty, "row %d of %s has no values, and is read as a row; it is probably a line of delimiters from a spreadsheet, so leave it out"},
	} {
		if at := slices.IndexFunc(list, odd.is); at >= 0 {
			notes = append(notes, fmt.Sprintf(odd.says, before+int64(at)+1, what))
		}
	}
	return notes
}

// isHeader reports whether each value of a row is the name of its column, as where files with headers were joined, or csv.header names
// the columns of a file that has a header. In a single column that may be a value.
func isHeader(row any) bool {
	values, _ := row.(map[string]any)
	for name, value := range values {
		if value != name {
			return false
		}
	}
	return len(values) > 1
}

// isEmpty reports whether a row has several columns and a value in none of them, as a line of delimiters alone, which spreadsheets
// write below the data.
func isEmpty(row any) bool {
	values, _ := row.(map[string]any)
	for _, value := range values {
		if value != nil && value != "" {
			return false
		}
	}
	return len(values) > 1
}
