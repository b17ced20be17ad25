package format

import "fmt"

// OddRows returns notes about rows of CSV that are probably no rows of data. what names the CSV, and before is the number of rows before
// these.
func OddRows(rows any, what string, before int64) []string {
	return append(repeatedHeader(rows, what, before), emptyRow(rows, what, before)...)
}

// repeatedHeader returns a note about the first row of CSV whose values are the names of its columns, as where files with headers were
// joined, or csv.header names the columns of a file that has a header: it would be a row of a table.
func repeatedHeader(rows any, what string, before int64) []string {
	list, _ := rows.([]any)
	for i, row := range list {
		if isHeader(row) {
			return []string{fmt.Sprintf("row %d of %s has the names of the columns as its values, and is read as a row; it is probably a second header, so leave it out", before+int64(i)+1, what)}
		}
	}
	return nil
}

// isHeader reports whether each value of a row is the name of its column. In a single column that may be a value.
func isHeader(row any) bool {
	values, _ := row.(map[string]any)
	for name, value := range values {
		if value != name {
			return false
		}
	}
	return len(values) > 1
}

// emptyRow returns a note about the first row without any value, as a line of delimiters alone, which spreadsheets write below the data.
func emptyRow(rows any, what string, before int64) []string {
	list, _ := rows.([]any)
	for i, row := range list {
		if isEmpty(row) {
			return []string{fmt.Sprintf("row %d of %s has no values, and is read as a row; it is probably a line of delimiters from a spreadsheet, so leave it out", before+int64(i)+1, what)}
		}
	}
	return nil
}

// isEmpty reports whether a row has several columns and a value in none of them.
func isEmpty(row any) bool {
	values, _ := row.(map[string]any)
	for _, value := range values {
		if value != nil && value != "" {
			return false
		}
	}
	return len(values) > 1
}
