package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	metadata "github.com/parquet-go/parquet-go/format"

	"reprise/activities/memory"
	"reprise/interpreter/expression"
)

const (
	parquetMark = "PAR1"
	// largestFooter bounds the footer, which is in memory as a whole. One of 1,000 columns and 100 row groups has 10 MB.
	largestFooter = 16 << 20
	// readBuffer is how much of a column is read at once, in bytes.
	readBuffer = 64 << 10
)

var (
	errNoParquet = errors.New("it does not begin and end as Parquet does")
	errLevels    = errors.New("its rows do not come together")
)

// ParquetRows reads the rows of Parquet one by one, in bounded memory. most bounds a row, in bytes of about what it takes; a larger one, and pages that take
// too much, are memory.ErrTooLarge. An error is the last element.
func ParquetRows(content io.ReaderAt, size, most int64) iter.Seq2[any, error] {
	return parquetRowsBehind(content, size, most, 0)
}

// parquetRowsBehind is ParquetRows without the first rows, as many as skip says. Row groups that have no others are not read.
func parquetRowsBehind(content io.ReaderAt, size, most, skip int64) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		ended := false
		err := errorOfPanic(func() error {
			file, err := openParquet(content, size)
			if err != nil {
				return err
			}
			return file.eachRow(most, skip, func(row any) bool {
				ended = !yield(row, nil)
				return !ended
			})
		})
		if err != nil && !ended {
			yield(nil, err)
		}
	}
}

// errorOfPanic makes an error of a panic, as the library has them for files that are damaged.
func errorOfPanic(read func() error) (err error) {
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case runtime.Error:
			err = errLevels
		case error:
			err = failed
		default:
			err = fmt.Errorf("%v", failed)
		}
	}()
	return read()
}

// parquetFile is a file whose footer was checked.
type parquetFile struct {
	*parquet.File

	content io.ReaderAt
	size    int64
	groups  []metadata.RowGroup      // as the file says them
	columns []metadata.SchemaElement // that have values
	root    *parquetNode
	leaves  []*parquetNode
}

// openParquet reads and checks the footer.
func openParquet(content io.ReaderAt, size int64) (*parquetFile, error) {
	const ends = 8
	tail := make([]byte, ends)
	head := make([]byte, len(parquetMark))
	if size < int64(len(head)+ends) {
		return nil, errNoParquet
	}
	for _, part := range []struct {
		into []byte
		at   int64
	}{{head, 0}, {tail, size - ends}} {
		if _, err := content.ReadAt(part.into, part.at); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	if string(head) != parquetMark || string(tail[4:]) != parquetMark {
		return nil, errNoParquet
	}
	length := int64(binary.LittleEndian.Uint32(tail))
	switch {
	case length > size-int64(len(head)+ends):
		return nil, errNoParquet
	case length > largestFooter:
		return nil, memory.ErrTooLarge
	}
	footer := make([]byte, length)
	if _, err := content.ReadAt(footer, size-ends-length); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if _, _, err := readFields(footer, false); err != nil {
		return nil, err
	}
	var said metadata.FileMetaData
	if err := thrift.Unmarshal(&thrift.CompactProtocol{}, footer, &said); err != nil {
		return nil, err
	}
	if err := checkSchema(said.Schema); err != nil {
		return nil, err
	}
	shown, shownSize, err := withoutLZ4(content, size, said)
	if err != nil {
		return nil, err
	}
	opened, err := parquet.OpenFile(shown, shownSize, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true), parquet.ReadBufferSize(readBuffer))
	if err != nil {
		return nil, err
	}
	f := &parquetFile{File: opened, content: content, size: size, groups: said.RowGroups}
	for _, element := range said.Schema {
		if element.NumChildren.V == 0 {
			f.columns = append(f.columns, element)
		}
	}
	f.root, err = f.addNode(opened.Root())
	return f, err
}

// checkSchema checks that elements are one tree, which is not too deep to read.
func checkSchema(elements []metadata.SchemaElement) error {
	open := []int{1} // the children that are still to come, of each group that is open
	for i, element := range elements {
		if len(open) == 0 || len(open) > maxDepth {
			return errThrift
		}
		open[len(open)-1]--
		children := int(element.NumChildren.V)
		switch {
		case children < 0, children > len(elements)-i-1, i > 0 && children == 0 && !element.Type.Valid:
			return errThrift
		case children > 0:
			open = append(open, children)
		}
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 || len(elements) < 2 {
		return errThrift
	}
	return nil
}

// parquetNode is a column, or a group of columns.
type parquetNode struct {
	name               string
	optional, repeated bool
	isList, isMap      bool
	children           []*parquetNode
	first, end         int // its leaves
	rep, def           int // the levels of what is there
	value              leafValue
}

func (f *parquetFile) addNode(column *parquet.Column) (*parquetNode, error) {
	n := &parquetNode{
		name: column.Name(), optional: column.Optional(), repeated: column.Repeated(), first: len(f.leaves),
		rep: column.MaxRepetitionLevel(), def: column.MaxDefinitionLevel(),
	}
	if column.Leaf() {
		var err error
		n.value, err = valueOfLeaf(column, f.columns[len(f.leaves)])
		f.leaves = append(f.leaves, n)
		n.end = len(f.leaves)
		return n, err
	}
	names := map[string]bool{}
	for _, child := range column.Columns() {
		if names[child.Name()] {
			return nil, fmt.Errorf("it has the column %q twice", child.Name())
		}
		names[child.Name()] = true
		added, err := f.addNode(child)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, added)
	}
	n.end = len(f.leaves)
	if lt := column.Type().LogicalType(); lt != nil && len(n.children) == 1 && n.children[0].repeated {
		inner := n.children[0]
		switch lt.Value.(type) {
		case *metadata.ListType:
			n.isList = true
		case *metadata.MapType:
			n.isMap = inner.value == nil && len(inner.children) > 0 && len(inner.children) <= 2
		}
	}
	return n, nil
}

// parquetCell is a value of a column with its levels; nil where there is none.
type parquetCell struct {
	rep, def int
	value    any
}

// leafCursor reads the cells of a column.
type leafCursor struct {
	node   *parquetNode
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buffer []parquet.Value
	read   []parquet.Value // those of the buffer that are left
	row    []parquetCell   // of the row that is read
}

// peekValue is the next value; ok is false at the end.
func (c *leafCursor) peekValue() (next *parquet.Value, ok bool, err error) {
	for len(c.read) == 0 {
		if c.values == nil {
			c.releasePage()
			page, err := c.pages.ReadPage()
			if errors.Is(err, io.EOF) {
				return nil, false, nil
			}
			if err != nil {
				return nil, false, err
			}
			c.page, c.values = page, page.Values()
		}
		n, err := c.values.ReadValues(c.buffer)
		c.read = c.buffer[:n]
		if errors.Is(err, io.EOF) || n == 0 && err == nil {
			c.values = nil
		} else if err != nil {
			return nil, false, err
		}
	}
	return &c.read[0], true, nil
}

func (c *leafCursor) releasePage() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page = nil
	}
}

// readRow reads the cells of the next row. left is how much a row may still take.
func (c *leafCursor) readRow(left *int64) error {
	c.row = c.row[:0]
	for {
		next, ok, err := c.peekValue()
		switch {
		case err != nil:
			return err
		case !ok && len(c.row) == 0:
			return errLevels
		case !ok || len(c.row) > 0 && next.RepetitionLevel() == 0:
			return nil
		case len(c.row) == 0 && next.RepetitionLevel() != 0:
			return errLevels
		}
		cell := parquetCell{rep: next.RepetitionLevel(), def: next.DefinitionLevel()}
		if *left -= cellBytes; next.Kind() == parquet.ByteArray || next.Kind() == parquet.FixedLenByteArray {
			*left -= int64(len(next.ByteArray()))
		}
		if *left < 0 {
			return memory.ErrTooLarge
		}
		if !next.IsNull() {
			if cell.value, err = c.node.value(*next); err != nil {
				return fmt.Errorf("column %q: %w", c.node.name, err)
			}
		}
		c.row, c.read = append(c.row, cell), c.read[1:]
	}
}

// cellBytes is what a value takes in a row at least: its place, and its mark in JSON.
const cellBytes = 2

// eachRow gives the rows, in order, without the first ones, until yield is false.
func (f *parquetFile) eachRow(most, skip int64, yield func(any) bool) error {
	number := 0
	for i, group := range f.RowGroups() {
		if rows := group.NumRows(); rows <= skip-int64(number) {
			number += int(rows)
			continue
		}
		if err := f.checkGroup(f.groups[i]); err != nil {
			return err
		}
		goesOn, err := f.groupRows(group, most, &number, int(skip), yield)
		if err != nil || !goesOn {
			return err
		}
	}
	return nil
}

// checkGroup checks the pages of a row group, before any is read.
func (f *parquetFile) checkGroup(group metadata.RowGroup) error {
	total := int64(0)
	if len(group.Columns) != len(f.leaves) {
		return errThrift
	}
	for i, chunk := range group.Columns {
		of := chunk.MetaData
		from := startOfChunk(&of)
		if chunk.FilePath != "" || from < int64(len(parquetMark)) || of.TotalCompressedSize < 0 || of.TotalCompressedSize > f.size-from ||
			of.DictionaryPageOffset != 0 && of.DictionaryPageOffset != from {
			return errThrift
		}
		pages := chunkPages{
			content: f.content, from: from, to: from + of.TotalCompressedSize, codec: of.Codec, maxRep: f.leaves[i].rep, maxDef: f.leaves[i].def,
			isBool: of.Type == metadata.Boolean,
		}
		bytes, err := pages.checkPages()
		if err != nil {
			return err
		}
		if total += bytes; total > bytesOfPages {
			return memory.ErrTooLarge
		}
	}
	return nil
}

// groupRows gives the rows of a row group, but for those of the file before skip.
func (f *parquetFile) groupRows(group parquet.RowGroup, most int64, number *int, skip int, yield func(any) bool) (goesOn bool, err error) {
	cursors := make([]*leafCursor, len(f.leaves))
	const valuesAtOnce = 256
	for i, chunk := range group.ColumnChunks() {
		cursors[i] = &leafCursor{node: f.leaves[i], pages: chunk.Pages(), buffer: make([]parquet.Value, valuesAtOnce)}
		defer func() {
			cursors[i].releasePage()
			_ = cursors[i].pages.Close()
		}()
	}
	for range group.NumRows() {
		left := most
		for _, cursor := range cursors {
			if err := cursor.readRow(&left); err != nil {
				return false, placedInRow(*number, err)
			}
		}
		if *number < skip {
			*number++
			continue
		}
		row, err := f.root.readGroup(cursors)
		if err != nil {
			return false, placedInRow(*number, err)
		}
		if *number++; !yield(row) {
			return false, nil
		}
	}
	for _, cursor := range cursors {
		if _, more, err := cursor.peekValue(); more || err != nil {
			return false, errors.Join(errLevels, err)
		}
	}
	return true, nil
}

func placedInRow(number int, err error) error {
	if errors.Is(err, memory.ErrTooLarge) {
		return err
	}
	return fmt.Errorf("row %d: %w", number, err)
}

// nextCell takes a cell of a leaf in the row.
func (c *leafCursor) nextCell() parquetCell {
	cell := c.row[0]
	c.row = c.row[1:]
	return cell
}

// readNode reads what the row has next of a node. What is not there is nil, or an empty list.
func (n *parquetNode) readNode(of []*leafCursor) (any, error) {
	lead := of[n.first]
	if n.optional || n.repeated {
		if lead.row[0].def < n.def {
			for _, leaf := range of[n.first:n.end] {
				leaf.nextCell()
			}
			if n.repeated {
				return []any{}, nil
			}
			return nil, nil
		}
	}
	if !n.repeated {
		return n.readPresent(of)
	}
	elements := []any{}
	for {
		element, err := n.readPresent(of)
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
		if len(lead.row) == 0 || lead.row[0].rep != n.rep {
			return elements, nil
		}
	}
}

// readPresent reads a value that is there.
func (n *parquetNode) readPresent(of []*leafCursor) (any, error) {
	switch {
	case n.value != nil:
		return of[n.first].nextCell().value, nil
	case n.isList:
		return n.readList(of)
	case n.isMap:
		return n.readMap(of)
	}
	return n.readGroup(of)
}

// readGroup reads a group as a map.
func (n *parquetNode) readGroup(of []*leafCursor) (any, error) {
	values := make(map[string]any, len(n.children))
	for _, child := range n.children {
		value, err := child.readNode(of)
		if err != nil {
			return nil, err
		}
		values[child.name] = value
	}
	return values, nil
}

// readList reads a list. Its elements are in a group of their own, but for older writers (LogicalTypes.md#lists of the format).
func (n *parquetNode) readList(of []*leafCursor) (any, error) {
	inner := n.children[0]
	elements, err := inner.readNode(of)
	if err != nil || len(inner.children) != 1 || inner.name == "array" || inner.name == n.name+"_tuple" {
		return elements, err
	}
	list, _ := elements.([]any)
	for i, element := range list {
		list[i] = element.(map[string]any)[inner.children[0].name]
	}
	return list, nil
}

// readMap reads a map, whose keys become text.
func (n *parquetNode) readMap(of []*leafCursor) (any, error) {
	inner := n.children[0]
	entries, err := inner.readNode(of)
	if err != nil {
		return nil, err
	}
	list, _ := entries.([]any)
	values := make(map[string]any, len(list))
	for _, entry := range list {
		pair := entry.(map[string]any)
		key := expression.PlainText(pair[inner.children[0].name])
		if _, twice := values[key]; twice {
			return nil, fmt.Errorf("the map %q has the key %q twice", n.name, key)
		}
		values[key] = nil
		if len(inner.children) > 1 {
			values[key] = pair[inner.children[1].name]
		}
	}
	return values, nil
}
