package format

import (
	"fmt"
	"slices"
)

// Oddity is why a row of CSV is probably no row of data.
type Oddity int

// The oddities of rows.
const (
	NotOdd Oddity = iota
	// AgainHeader is a row with the names of its columns as its values, as where files with headers were joined, or csv.header names the columns of
	// a file that has a header. In a single column that may be a value.
	AgainHeader
	// WithoutValues is a row of several columns and a value in none of them, as a line of delimiters alone, which spreadsheets write below the data.
	WithoutValues

	oddities
)

// oddNotes are notes about rows, with the number of the row and a text for the CSV.
var oddNotes = [oddities]string{
	AgainHeader:   "row %d of %s has the names of the columns as its values, and is read as a row; it is probably a second header, so leave it out",
	WithoutValues: "row %d of %s has no values, and is read as a row; it is probably a line of delimiters from a spreadsheet, so leave it out",
}

// Note returns the note about the row with this number of what names the CSV.
func (o Oddity) Note(row int64, what string) string { return fmt.Sprintf(oddNotes[o], row, what) }

// OddRows returns notes about the first rows of CSV of each oddity. what names the CSV, and before is the number of rows before these.
func OddRows(rows any, what string, before int64) (notes []string) {
	list, _ := rows.([]any)
	for odd := NotOdd + 1; odd < oddities; odd++ {
		if at := slices.IndexFunc(list, func(row any) bool { return oddityOf(row) == odd }); at >= 0 {
			notes = append(notes, odd.Note(before+int64(at)+1, what))
		}
	}
	return notes
}

// oddityOf returns the oddity of a row.
func oddityOf(row any) Oddity {
	values, _ := row.(map[string]any)
	isHeader, isEmpty := len(values) > 1, len(values) > 1
	for name, value := range values {
		isHeader = isHeader && value == name
		isEmpty = isEmpty && (value == nil || value == "")
		if !isHeader && !isEmpty {
			return NotOdd
		}
	}
	return chooseOddity(isHeader, isEmpty)
}

// oddity returns the oddity of a record.
func (d CSVDialect) oddity(names, record []string) Oddity {
	isHeader, isEmpty := len(names) > 1, len(names) > 1
	for i, value := range record {
		isNull := slices.Contains(d.null, value)
		isHeader = isHeader && !isNull && value == names[i]
		isEmpty = isEmpty && (isNull || value == "")
		if !isHeader && !isEmpty {
			return NotOdd
		}
	}
	return chooseOddity(isHeader, isEmpty)
}

func chooseOddity(isHeader, isEmpty bool) Oddity {
	switch {
	case isHeader:
		return AgainHeader
	case isEmpty:
		return WithoutValues
	}
	return NotOdd
}
