package format_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/stretchr/testify/require"

	"reprise/activities/format"
	"reprise/activities/memory"
	"reprise/activities/tooltest"
	"reprise/interpreter/expression"
)

// nested is a row of another writer, with what columns may have.
type nested struct {
	Whole   int64            `parquet:"whole"`
	Small   *int32           `parquet:"small,optional"`
	Big     uint64           `parquet:"big"`
	Float   float32          `parquet:"float"`
	Double  float64          `parquet:"double"`
	Yes     bool             `parquet:"yes"`
	Text    string           `parquet:"text"`
	Texts   []string         `parquet:"texts,list"`
	Rows    []inner          `parquet:"rows,list"`
	Old     []int64          `parquet:"old"`
	Map     map[string]int64 `parquet:"map"`
	Bytes   []byte           `parquet:"bytes"`
	At      time.Time        `parquet:"at,timestamp(microsecond)"`
	Day     int32            `parquet:"day,date"`
	Price   int64            `parquet:"price,decimal(2:18)"`
	Wide    [16]byte         `parquet:"wide,decimal(3:38)"`
	ID      [16]byte         `parquet:"id,uuid"`
	Stamp   deprecated.Int96 `parquet:"stamp"`
	Front   string           `parquet:"front,delta"`
	Encoded int64            `parquet:"encoded,delta"`
	Word    string           `parquet:"word,dict"`
}

type inner struct {
	A *string `parquet:"a,optional"`
	B []int64 `parquet:"b,list"`
}

func nestedRows() ([]nested, []string) {
	small, a := int32(-7), "x"
	wide := [16]byte{}
	for i := range wide {
		wide[i] = 0xff
	}
	wide[15] = 0x85 // -123
	first := nested{
		Whole: math.MaxInt64, Small: &small, Big: math.MaxUint64, Float: 0.1, Double: 1.5, Yes: true, Text: "ä", Texts: []string{"", "b"},
		Rows: []inner{{A: &a, B: []int64{1, 2}}, {}, {B: []int64{3}}}, Old: []int64{4, 5}, Map: map[string]int64{"k": 6}, Bytes: []byte{0, 255},
		At: time.Date(2026, 3, 1, 12, 0, 0, 5000, time.UTC), Day: -1, Price: -5, Wide: wide, ID: [16]byte{15: 9},
		Stamp: deprecated.Int96{0, 0, 2_440_588}, Front: "same front a", Encoded: 1, Word: "w",
	}
	return []nested{first, {Double: 20, Price: 1990, Front: "same front b", Encoded: -1, Word: "w"}}, []string{
		`{"whole":9223372036854775807,"small":-7,"big":18446744073709551615,"float":0.1,"double":1.5,"yes":true,"text":"ä","texts":["","b"],` +
			`"rows":[{"a":"x","b":[1,2]},{"a":null,"b":[]},{"a":null,"b":[3]}],"old":[4,5],"map":{"k":6},"bytes":"AP8=","at":"2026-03-01T12:00:00.000005Z",` +
			`"day":"1969-12-31","price":-0.05,"wide":-0.123,"id":"00000000-0000-0000-0000-000000000009","stamp":"1970-01-01T00:00:00Z","front":"same front a","encoded":1,"word":"w"}`,
		`{"whole":0,"small":null,"big":0,"float":0,"double":20,"yes":false,"text":"","texts":[],"rows":[],"old":[],"map":{},"bytes":"","at":"0001-01-01T00:00:00Z",` +
			`"day":"1970-01-01","price":19.90,"wide":0,"id":"00000000-0000-0000-0000-000000000000","stamp":null,"front":"same front b","encoded":-1,"word":"w"}`,
	}
}

// writtenBy is a file of another writer.
func writtenBy[T any](tb testing.TB, rows []T, options ...parquet.WriterOption) []byte {
	tb.Helper()
	var content bytes.Buffer
	w := parquet.NewGenericWriter[T](&content, options...)
	_, err := w.Write(rows)
	require.NoError(tb, err)
	require.NoError(tb, w.Close())
	return content.Bytes()
}

// readAll reads rows as JSON, one by one.
func readAll(content []byte, most int64) (rows []string, err error) {
	for row, err := range format.ParquetRows(bytes.NewReader(content), int64(len(content)), most) {
		if err != nil {
			return rows, err
		}
		encoded, err := expression.Encode(row)
		if err != nil {
			return rows, err
		}
		rows = append(rows, string(encoded))
	}
	return rows, nil
}

// TestParquetOfOthers: what other writers write is read with its types, however it is packed.
func TestParquetOfOthers(t *testing.T) {
	t.Parallel()
	rows, want := nestedRows()
	rows[1].Stamp = deprecated.Int96{0, 0, 2_440_588}
	rows[1].At = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
	want[1] = strings.ReplaceAll(strings.ReplaceAll(want[1], `"stamp":null`, `"stamp":"1970-01-01T00:00:00Z"`), "0001-01-01", "1900-01-01")
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Brotli, &parquet.Lz4Raw} {
		for _, version := range []int{1, 2} {
			content := writtenBy(t, rows, parquet.Compression(codec), parquet.DataPageVersion(version))
			found, err := readAll(content, 1<<20)
			require.NoError(t, err, "%s %d", codec, version)
			require.Len(t, found, 2)
			for i := range want {
				require.JSONEq(t, want[i], found[i], "%s %d", codec, version)
			}
			require.Contains(t, found[1], "19.90", "decimals keep their digits")
			require.Contains(t, found[0], "18446744073709551615")
			value, err := (format.Options{Format: format.Parquet}).Value(t.Context(), content, "a.parquet", 1<<20)
			require.NoError(t, err)
			require.Len(t, value, 2)
		}
	}
}

// TestParquetOfEachSize: pages of any size, packed well or not at all, have their values with each compression. A library that unpacks a page elsewhere than it
// looks for it has others, without an error.
func TestParquetOfEachSize(t *testing.T) {
	t.Parallel()
	type row struct {
		A int64   `parquet:"a,plain"`
		B *string `parquet:"b,optional,dict"`
		C int64   `parquet:"c,plain"`
	}
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"", "x", strings.Repeat("long ", 100)}
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Brotli, &parquet.Lz4Raw} {
		for i, count := range []int{1, 511, 512, 2000, 8192} {
			rows := make([]row, count)
			for k := range rows {
				rows[k] = row{A: random.Int64N(1 << 50), C: 7}
				if k%3 > 0 {
					rows[k].B = &words[random.IntN(len(words))]
				}
			}
			content := writtenBy(t, rows, parquet.Compression(codec), parquet.PageBufferSize(1<<(12+4*(i%2))), parquet.DataPageVersion(1+i%2), parquet.MaxRowsPerRowGroup(5000))
			at := 0
			for found, err := range format.ParquetRows(bytes.NewReader(content), int64(len(content)), 1<<20) {
				require.NoError(t, err, "%s %d", codec, count)
				want := map[string]any{"a": int(rows[at].A), "b": nil, "c": 7}
				if rows[at].B != nil {
					want["b"] = *rows[at].B
				}
				if !maps.Equal(want, found.(map[string]any)) {
					require.Equal(t, want, found, "%s, row %d of %d", codec, at, count)
				}
				at++
			}
			require.Equal(t, count, at, "%s", codec)
		}
	}
}

// TestParquetOfDuckDB: a file that DuckDB has written with LZ4_RAW, and its intervals.
func TestParquetOfDuckDB(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/duckdb_lz4.parquet")
	require.NoError(t, err)
	found, err := readAll(content, 1<<20)
	require.NoError(t, err)
	require.Len(t, found, 300)
	require.JSONEq(t, `{"id": 0, "name": "name 0", "price": 0, "every": "PT0S"}`, found[0])
	require.JSONEq(t, `{"id": 9, "name": "name 9", "price": 13.5, "every": "P9M18DT13.5S"}`, found[9])
	require.JSONEq(t, `{"id": 299, "name": "name 299", "price": 448.5, "every": "P299M598DT448.5S"}`, found[299])
}

// TestParquetIsReadAsItWasWritten: many rows of several groups, with pages of several per column.
func TestParquetIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	columns := []format.ParquetColumn{}
	for _, of := range [][2]string{{"id", "bigint not null"}, {"name", "text"}, {"total", "numeric(30, 2)"}, {"at", "timestamptz"}, {"day", "date"}, {"local", "timestamp"}, {"none", "boolean"}} {
		column, err := format.NewParquetColumn(of[0], of[1])
		require.NoError(t, err)
		columns = append(columns, column)
	}
	rows := []any{}
	for i := range format.RowsOfGroup + 500 {
		row := map[string]any{"id": i, "name": nil, "total": json.Number(fmt.Sprint(i, ".10")), "at": "2026-03-01T12:00:00Z", "day": "2026-03-01", "local": "2026-03-01T12:00:00.5", "none": nil}
		if i%3 > 0 {
			row["name"] = fmt.Sprint("name ", i%1000)
		}
		rows = append(rows, row)
	}
	var content bytes.Buffer
	w, err := format.NewParquetWriter(&content, columns, "")
	require.NoError(t, err)
	require.NoError(t, w.WriteRows(rows))
	require.NoError(t, w.Close())
	i := 0
	for row, err := range format.ParquetRows(bytes.NewReader(content.Bytes()), int64(content.Len()), 1<<20) {
		require.NoError(t, err)
		want := rows[i].(map[string]any)
		for name, value := range row.(map[string]any) {
			if value != want[name] {
				require.Equal(t, want[name], value, "%d %s", i, name)
			}
		}
		i++
	}
	require.Len(t, rows, i)
}

// TestParquetThatIsDamaged: whichever byte is another one, or is where the file ends, reading ends: with rows, or with an error.
func TestParquetThatIsDamaged(t *testing.T) {
	t.Parallel()
	rows, _ := nestedRows()
	for i, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Zstd} {
		content := writtenBy(t, rows, parquet.Compression(codec))
		for at := i; at < len(content); at += 23 { // the fuzz target has the others
			_, err := readAll(content[:at], 1<<20)
			require.Error(t, err)
			damaged := bytes.Clone(content)
			damaged[at] ^= 1 << (at % 8)
			_, _ = readAll(damaged, 1<<20)
		}
	}
	for says, content := range map[string]string{
		"does not begin and end as Parquet": "PAR1",
		"does not begin and end as Parque":  "PAR1\xff\xff\xff\x7fPAR1",
		"does not begin and end as":         "id,name\n1,aaaaaaaaaa\n",
		"its metadata is damaged":           "PAR1" + strings.Repeat("\x1c", 1<<20) + "\x00\x00\x10\x00PAR1", // structs in structs
	} {
		_, err := readAll([]byte(content), 1<<20)
		require.ErrorContains(t, err, says)
	}
}

// TestParquetBombs: files of a few bytes that become many end before they are in memory.
func TestParquetBombs(t *testing.T) {
	t.Parallel()
	type words struct {
		Text string `parquet:"text,dict"`
	}
	type list struct {
		Values []int64 `parquet:"values,list"`
	}
	long := strings.Repeat("x", 1<<20)
	repeated := make([]words, 20)
	for i := range repeated {
		repeated[i].Text = long
	}
	for name, content := range map[string][]byte{
		"a dictionary": writtenBy(t, repeated, parquet.Compression(&parquet.Zstd)),
		"a list":       writtenBy(t, []list{{make([]int64, 2<<20)}}, parquet.Compression(&parquet.Zstd)),
	} {
		require.Less(t, len(content), 8<<20, name)
		before := heapNow()
		count := 0
		for _, err := range format.ParquetRows(bytes.NewReader(content), int64(len(content)), 2<<20) {
			if count++; err != nil {
				require.ErrorIs(t, err, memory.ErrTooLarge, name)
			}
		}
		require.Less(t, heapNow()-before, int64(900<<20), name)
		_, err := (format.Options{Format: format.Parquet}).Value(context.Background(), content, "a.parquet", 1<<20)
		require.ErrorContains(t, err, "is larger than the limit of 1048576 bytes as JSON", name)
	}
}

// heapNow returns the bytes that the heap of this process has from the system. Stacks may take some over, so it can shrink.
func heapNow() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapSys) //nolint:gosec // far below
}

// TestPackedParquetIsBounded passes mostRatio: what is packed and becomes much more is an error before it fills the disk.
func TestPackedParquetIsBounded(t *testing.T) {
	t.Parallel()
	packed := tooltest.Gzip("PAR1" + strings.Repeat("\x00", 10<<20))
	source := format.RowSource{
		Content: textSource{strings.NewReader(packed)}, Size: int64(len(packed)), What: "it", Format: format.Parquet,
		Temporary: func() (*os.File, error) { return os.CreateTemp(t.TempDir(), "") },
	}
	for _, err := range source.ReadRows(t.Context(), format.Options{}, 1000, nil) {
		require.ErrorContains(t, err, "that is 200 times its size")
	}
}

// FuzzParquet: no bytes end the worker.
func FuzzParquet(f *testing.F) {
	rows, _ := nestedRows()
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd, &parquet.Lz4Raw} {
		for _, version := range []int{1, 2} {
			f.Add(writtenBy(f, rows, parquet.Compression(codec), parquet.DataPageVersion(version)))
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		rows := 0
		for _, err := range format.ParquetRows(bytes.NewReader(content), int64(len(content)), 1<<16) {
			if rows++; rows > 1000 || errors.Is(err, memory.ErrTooLarge) {
				return
			}
		}
	})
}
