package format

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

const (
	// RowsOfGroup is how many rows a row group has at most, and how many rows decide the types of columns. Readers need a row group at a time, and so does the
	// writer.
	RowsOfGroup = 50_000
	// bytesOfGroup bounds what the rows of a row group take in memory. 50,000 rows of 1 MB would need 50 GB.
	bytesOfGroup = 32 << 20
	// bytesOfDictionary bounds the texts of a column that are written once for several rows.
	bytesOfDictionary = 1 << 20
)

// ParquetWriter writes rows as Parquet. The same rows in the same parts give the same bytes.
type ParquetWriter struct {
	columns []ParquetColumn
	places  map[string]int // of columns, by name
	out     *parquet.GenericWriter[any]
	rows    int   // of the row group that is begun
	bytes   int64 // that these take, or more
}

// parquetCodecs are what pages are compressed with, by the word of the author.
var parquetCodecs = map[string]compress.Codec{"": &parquet.Snappy, packedNot: &parquet.Uncompressed, packedGzip: &parquet.Gzip, packedZstd: &parquet.Zstd}

// NewParquetWriter begins a file with columns, of which there has to be one. compression is gzip, zstd, none, or "" for Snappy.
func NewParquetWriter(to io.Writer, columns []ParquetColumn, compression string) (*ParquetWriter, error) {
	if len(columns) == 0 {
		return nil, errNoColumns
	}
	w := &ParquetWriter{columns: columns, places: make(map[string]int, len(columns))}
	fields := make([]parquet.Field, len(columns))
	for i, column := range columns {
		if _, twice := w.places[column.Name]; twice || column.Name == "" {
			return nil, fmt.Errorf("%q cannot be the name of a column; set another one in args or fields", column.Name)
		}
		w.places[column.Name], fields[i] = i, parquetField{Node: column.parquetNode(), name: column.Name}
	}
	options := []parquet.WriterOption{
		parquet.NewSchema("rows", columnList{Group: parquet.Group{}, fields: fields}), parquet.CreatedBy("reprise", "1", "1"),
		parquet.Compression(parquetCodecs[compression]), parquet.DataPageVersion(1), parquet.DictionaryMaxBytes(bytesOfDictionary), // what every reader knows
		parquet.DataPageStatistics(false),
	}
	for _, column := range columns {
		if column.isLong() { // its least and largest value would be in the footer, of any length
			options = append(options, parquet.SkipPageBounds(column.Name))
		}
	}
	w.out = parquet.NewGenericWriter[any](to, options...)
	return w, nil
}

// errNoColumns is the error of rows without a value in any column.
var errNoColumns = errors.New("no column has a value or a type; give types by columns, such as columns: {id: bigint}")

// columnList is the root of a schema whose columns are in the order that is given. That of parquet-go sorts them.
type columnList struct {
	parquet.Group

	fields []parquet.Field
}

// Fields implements parquet.Node.
func (l columnList) Fields() []parquet.Field { return l.fields }

// parquetField is a column of the root.
type parquetField struct {
	parquet.Node

	name string
}

// Name implements parquet.Field.
func (f parquetField) Name() string { return f.name }

// Value implements parquet.Field; rows are written by their values.
func (f parquetField) Value(reflect.Value) reflect.Value { return reflect.Value{} }

// MisfitError is the error for a row with a value that its column cannot hold.
type MisfitError struct {
	Row    int // of those that are written at once, from 0
	Column string
	Reason string
}

func (e *MisfitError) Error() string {
	return fmt.Sprintf("row %d, column %q: %s", e.Row, e.Column, e.Reason)
}

// readCells has the values of a row as columns have them. The error is a MisfitError, or says that the row is no map.
func readCells(number int, row any, columns []ParquetColumn) (parquet.Row, error) {
	values, isMap := row.(map[string]any)
	if !isMap {
		return nil, fmt.Errorf("row %d is a %s; a row of Parquet must be a map", number, expression.TypeName(row))
	}
	read := make(parquet.Row, len(columns))
	for i, column := range columns {
		value := values[column.Name]
		if value == nil {
			if column.required {
				return nil, &MisfitError{number, column.Name, "it is nil, and the column is " + column.Type()}
			}
			read[i] = parquet.NullValue().Level(0, 0, i)
			continue
		}
		cell, problem := column.readValue(value)
		if problem != "" {
			return nil, misfitValue(number, column, value, problem)
		}
		if column.required {
			read[i] = cell.Level(0, 0, i)
		} else {
			read[i] = cell.Level(0, 1, i)
		}
	}
	return read, nil
}

// checkNames finds values of a row that no column has. places are those of the columns, by name.
func checkNames(number int, row any, columns []ParquetColumn, places map[string]int) error {
	values, _ := row.(map[string]any)
	unknown := func(name string) bool {
		_, is := places[name]
		return !is && values[name] != nil
	}
	for name := range values {
		if !unknown(name) {
			continue
		}
		name = lists.Filter(slices.Sorted(maps.Keys(values)), unknown)[0]
		names := lists.Map(columns, func(c ParquetColumn) string { return c.Name })
		return &MisfitError{number, name, fmt.Sprintf("it is not one of the columns, which are %s; give its type by columns, such as columns: {%s: text}", strings.Join(names, ", "), name)}
	}
	return nil
}

// misfitValue returns the error of a value that its column does not hold.
func misfitValue(number int, column ParquetColumn, value any, problem string) error {
	const shown = 100
	return &MisfitError{number, column.Name, fmt.Sprintf("%q %s, and its column is of type %s; change the value in args or fields, or set another type for the column before it is first written, such as columns: {%s: text}",
		tool.CutText(expression.Text(value), shown), problem, column.Type(), column.Name)}
}

// CheckRows finds rows that are no maps, or have a value which some of their columns do not hold.
func CheckRows(rows []any, columns []ParquetColumn) error {
	for i, row := range rows {
		if _, err := readCells(i, row, columns); err != nil {
			return err
		}
	}
	return nil
}

// MisfitFinder returns a function that says why the columns cannot hold a row, nil if they can. An error of a row that is no map has no column.
func MisfitFinder(columns []ParquetColumn) func(row any) *MisfitError {
	places := make(map[string]int, len(columns))
	for i, column := range columns {
		places[column.Name] = i
	}
	return func(row any) *MisfitError {
		if _, isMap := row.(map[string]any); !isMap {
			return &MisfitError{Reason: fmt.Sprintf("it is a %s; a row of Parquet must be a map", expression.TypeName(row))}
		}
		_, err := readCells(0, row, columns)
		if err == nil {
			err = checkNames(0, row, columns, places)
		}
		misfit, _ := errors.AsType[*MisfitError](err)
		return misfit
	}
}

// WriteRows writes rows. Where it returns an error, the file is of no use.
func (w *ParquetWriter) WriteRows(rows []any) error {
	for i, row := range rows {
		read, err := readCells(i, row, w.columns)
		if err == nil {
			err = checkNames(i, row, w.columns, w.places)
		}
		if err != nil {
			return err
		}
		if _, err := w.out.WriteRows([]parquet.Row{read}); err != nil {
			return err
		}
		w.rows++
		w.bytes += memory.ValueBytes(row)
		if w.rows < RowsOfGroup && w.bytes < bytesOfGroup {
			continue
		}
		if err := w.out.Flush(); err != nil {
			return err
		}
		w.rows, w.bytes = 0, 0
	}
	return nil
}

// Close writes the end of the file, without which it cannot be read.
func (w *ParquetWriter) Close() error { return w.out.Close() }
