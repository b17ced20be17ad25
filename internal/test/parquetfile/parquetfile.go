// Package parquetfile reads Parquet without the library that writes it, for tests: the footer and the headers of pages (Thrift's compact protocol), plain
// and dictionary encoding, flat columns, pages that are plain or packed with Snappy, gzip or zstd. The type of a column says what its values mean.
package parquetfile

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Column is a column of a file.
type Column struct {
	Name, Type string // such as bigint, numeric(12, 2) or timestamptz
	Required   bool

	physical, length int
	scale            int
}

// File is what a file has.
type File struct {
	Columns []Column
	Rows    []map[string]any // values that are null are nil
	Groups  []int            // the rows of each row group
}

// What the format numbers: types, and parts of its structs (github.com/apache/parquet-format, parquet.thrift).
const (
	ofBoolean, ofInt32, ofInt64, ofDouble, ofBytes, ofFixed = 0, 1, 2, 5, 6, 7

	pageOfData, pageOfDictionary = 0, 2
	plain, rleDictionary         = 0, 8

	unpacked, ofSnappy, ofGzip, ofZstd = 0, 1, 2, 6
)

// Read reads a file.
func Read(content []byte) (file File, err error) {
	defer func() {
		if failed := recover(); failed != nil {
			err = fmt.Errorf("it is no Parquet: %v", failed)
		}
	}()
	const mark = "PAR1"
	end := len(content) - 8
	if !bytes.HasPrefix(content, []byte(mark)) || string(content[end+4:]) != mark {
		return file, errors.New("it does not begin and end with PAR1")
	}
	size := int(binary.LittleEndian.Uint32(content[end:]))
	footer := (&compact{in: content[end-size : end]}).structure()
	for _, element := range list(footer[2])[1:] {
		file.Columns = append(file.Columns, columnOf(element.(fields)))
	}
	for _, group := range list(footer[4]) {
		rows := number(group.(fields)[3])
		first := len(file.Rows)
		for range rows {
			file.Rows = append(file.Rows, map[string]any{})
		}
		file.Groups = append(file.Groups, rows)
		for i, chunk := range list(group.(fields)[1]) {
			values := file.Columns[i].readChunk(content, chunk.(fields)[3].(fields))
			if len(values) != rows {
				return file, fmt.Errorf("column %s has %d values in a group of %d rows", file.Columns[i].Name, len(values), rows)
			}
			for at, value := range values {
				file.Rows[first+at][file.Columns[i].Name] = value
			}
		}
	}
	if total := number(footer[3]); total != len(file.Rows) {
		return file, fmt.Errorf("the footer says %d rows, and the groups have %d", total, len(file.Rows))
	}
	return file, nil
}

// columnOf is a column by its element of the schema.
func columnOf(e fields) Column {
	c := Column{Name: string(e[4].([]byte)), Required: number(e[3]) == 0, physical: number(e[1]), length: number(e[2])}
	logical, _ := e[10].(fields)
	c.Type = map[int]string{ofBoolean: "boolean", ofInt32: "int32", ofInt64: "int64", ofDouble: "double precision", ofBytes: "bytea"}[c.physical]
	for kind, of := range logical {
		switch kind {
		case 1:
			c.Type = "text"
		case 5:
			c.scale = number(of.(fields)[1])
			c.Type = fmt.Sprintf("numeric(%d, %d)", number(of.(fields)[2]), c.scale)
		case 6:
			c.Type = "date"
		case 8:
			unit := of.(fields)[2].(fields)
			if _, micros := unit[2]; !micros {
				panic("a timestamp is not of microseconds")
			}
			c.Type = map[bool]string{true: "timestamptz", false: "timestamp"}[of.(fields)[1] == true]
		case 10:
			c.Type = map[int]string{16: "smallint", 32: "integer", 64: "bigint"}[number(of.(fields)[1])]
		default:
			panic(fmt.Sprintf("logical type %d", kind))
		}
	}
	return c
}

// readChunk reads the values of a column in a row group.
func (c Column) readChunk(content []byte, chunk fields) (values []any) {
	at := number(chunk[9])
	if dictionary := number(chunk[11]); dictionary > 0 {
		at = dictionary
	}
	var dictionary []any
	for len(values) < number(chunk[5]) {
		header := &compact{in: content[at:]}
		page := header.structure()
		at += header.at
		packed := content[at : at+number(page[3])]
		at += len(packed)
		data, err := unpackPage(number(chunk[4]), packed)
		if err != nil || len(data) != number(page[2]) {
			panic(fmt.Sprintf("a page has %d bytes and says %d: %v", len(data), number(page[2]), err))
		}
		switch number(page[1]) {
		case pageOfDictionary:
			dictionary = c.plainValues(data, number(page[7].(fields)[1]))
		case pageOfData:
			values = append(values, c.dataPage(data, page[5].(fields), dictionary)...)
		default:
			panic("another kind of page")
		}
	}
	return values
}

// unpackPage unpacks a page of one of the codecs that the format numbers.
func unpackPage(codec int, packed []byte) ([]byte, error) {
	switch codec {
	case unpacked:
		return packed, nil
	case ofSnappy:
		return snappy.Decode(nil, packed)
	case ofGzip:
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(reader)
	case ofZstd:
		reader, err := zstd.NewReader(nil)
		if err != nil {
			return nil, err
		}
		defer reader.Close()
		return reader.DecodeAll(packed, nil)
	}
	return nil, fmt.Errorf("codec %d", codec)
}

// dataPage reads the values of a page.
func (c Column) dataPage(data []byte, header fields, dictionary []any) []any {
	count := number(header[1])
	present := slices.Repeat([]int{1}, count)
	if !c.Required {
		size := int(binary.LittleEndian.Uint32(data))
		present = hybrid(data[4:4+size], 1, count)
		data = data[4+size:]
	}
	there := 0
	for _, is := range present {
		there += is
	}
	var found []any
	switch number(header[2]) {
	case plain:
		found = c.plainValues(data, there)
	case rleDictionary:
		for _, index := range hybrid(data[1:], int(data[0]), there) {
			found = append(found, dictionary[index])
		}
	default:
		panic(fmt.Sprintf("encoding %d", number(header[2])))
	}
	values := make([]any, count)
	for i, is := range present {
		if is == 1 {
			values[i], found = found[0], found[1:]
		}
	}
	return values
}

// plainValues reads values one behind the other.
func (c Column) plainValues(data []byte, count int) (values []any) {
	take := func(bytes int) []byte {
		taken := data[:bytes]
		data = data[bytes:]
		return taken
	}
	for i := range count {
		switch c.physical {
		case ofBoolean:
			values = append(values, data[i/8]>>(i%8)&1 == 1)
		case ofInt32:
			values = append(values, c.value(int64(int32(binary.LittleEndian.Uint32(take(4))))))
		case ofInt64:
			values = append(values, c.value(int64(binary.LittleEndian.Uint64(take(8)))))
		case ofDouble:
			values = append(values, math.Float64frombits(binary.LittleEndian.Uint64(take(8))))
		case ofBytes:
			values = append(values, string(take(int(binary.LittleEndian.Uint32(take(4))))))
		case ofFixed:
			whole := new(big.Int).SetBytes(take(c.length))
			if whole.Bit(c.length*8-1) == 1 {
				whole.Sub(whole, new(big.Int).Lsh(bigOne, uint(c.length)*8))
			}
			values = append(values, decimal(whole, c.scale))
		}
	}
	return values
}

var bigOne = big.NewInt(1)

// value is a whole number as its type reads it: times and dates in ISO 8601, decimals as digits.
func (c Column) value(n int64) any {
	switch c.Type {
	case "date":
		return time.Unix(n*24*60*60, 0).UTC().Format(time.DateOnly)
	case "timestamptz":
		return time.UnixMicro(n).UTC().Format(time.RFC3339Nano)
	case "timestamp":
		return time.UnixMicro(n).UTC().Format("2006-01-02T15:04:05.999999")
	case "bigint", "integer", "smallint":
		return int(n)
	}
	return decimal(big.NewInt(n), c.scale)
}

func decimal(unscaled *big.Int, scale int) string {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)
	return new(big.Rat).SetFrac(unscaled, power).FloatString(scale)
}

// hybrid reads numbers of so many bits: runs of one value, and groups of eight that are packed.
func hybrid(data []byte, bits, count int) (numbers []int) {
	for len(numbers) < count {
		head, n := binary.Uvarint(data)
		data = data[n:]
		if head&1 == 0 {
			width := (bits + 7) / 8
			value := 0
			for i := range width {
				value |= int(data[i]) << (8 * i)
			}
			data = data[width:]
			numbers = append(numbers, slices.Repeat([]int{value}, int(head>>1))...)
			continue
		}
		for i := range int(head>>1) * 8 {
			value := 0
			for bit := range bits {
				at := i*bits + bit
				if at/8 < len(data) {
					value |= int(data[at/8]>>(at%8)&1) << bit
				}
			}
			numbers = append(numbers, value)
		}
		data = data[min(len(data), int(head>>1)*bits):]
	}
	return numbers[:count]
}

// fields are those of a struct by their numbers.
type fields map[int]any

// compact reads Thrift's compact protocol.
type compact struct {
	in []byte
	at int
}

func (c *compact) byte() byte {
	c.at++
	return c.in[c.at-1]
}

func (c *compact) varint() int {
	value, n := binary.Uvarint(c.in[c.at:])
	c.at += n
	return int(value)
}

func (c *compact) zigzag() int {
	value := c.varint()
	return int(uint(value)>>1) ^ -(value & 1)
}

func (c *compact) structure() fields {
	found, last := fields{}, 0
	for {
		head := c.byte()
		if head == 0 {
			return found
		}
		if delta := int(head >> 4); delta > 0 {
			last += delta
		} else {
			last = c.zigzag()
		}
		found[last] = c.read(head & 15)
	}
}

// read reads a value of one of the protocol's types.
func (c *compact) read(kind byte) any {
	switch kind {
	case 1, 2:
		return kind == 1
	case 3:
		return int(int8(c.byte()))
	case 4, 5, 6:
		return c.zigzag()
	case 7:
		c.at += 8
		return math.Float64frombits(binary.LittleEndian.Uint64(c.in[c.at-8:]))
	case 8:
		size := c.varint()
		c.at += size
		return c.in[c.at-size : c.at]
	case 9, 10:
		head := c.byte()
		size := int(head >> 4)
		if size == 15 {
			size = c.varint()
		}
		elements := make([]any, size)
		for i := range elements {
			if elements[i] = any(nil); head&15 == 1 || head&15 == 2 {
				elements[i] = c.byte() == 1
				continue
			}
			elements[i] = c.read(head & 15)
		}
		return elements
	case 12:
		return c.structure()
	}
	panic(fmt.Sprintf("type %d of Thrift", kind))
}

func list(value any) []any {
	elements, _ := value.([]any)
	return elements
}

func number(value any) int {
	n, _ := value.(int)
	return n
}
