package format

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	metadata "github.com/parquet-go/parquet-go/format"
)

// spaceOfChunk is how many addresses of a lz4File each chunk has. None is as large, and a footer of largestFooter names fewer chunks than an int64 has room for.
const spaceOfChunk = 1 << 40

// lz4File shows Parquet whose columns are packed with LZ4_RAW as if these were not packed: behind the file are its columns as they are read, and a footer that says so. The
// library (v0.32.0) forgets what it has unpacked of LZ4_RAW where its first guess of the size was wrong, and gives other values without an error.
type lz4File struct {
	content io.ReaderAt
	size    int64
	chunks  []*lz4Chunk
	footer  []byte // with the length and the mark that end the file
}

// withoutLZ4 returns the file with its size as the library is to see it. It is the same file if no column is packed with LZ4_RAW.
func withoutLZ4(content io.ReaderAt, size int64, said metadata.FileMetaData) (io.ReaderAt, int64, error) {
	f := &lz4File{content: content, size: size}
	shown := said
	shown.RowGroups = append(shown.RowGroups[:0:0], said.RowGroups...)
	for i := range shown.RowGroups {
		group := &shown.RowGroups[i]
		group.Columns = append(group.Columns[:0:0], group.Columns...)
		for k := range group.Columns {
			if of := &group.Columns[k].MetaData; of.Codec == metadata.Lz4Raw {
				f.showChunk(of)
			}
		}
	}
	if len(f.chunks) == 0 {
		return content, size, nil
	}
	footer, err := thrift.Marshal(&thrift.CompactProtocol{}, shown)
	if err != nil {
		return nil, 0, err
	}
	footer = binary.LittleEndian.AppendUint32(footer, uint32(len(footer))) //nolint:gosec // about as long as the one that was read
	f.footer = []byte(string(footer) + parquetMark)
	return f, f.startOfFooter() + int64(len(f.footer)), nil
}

// showChunk adds a column, and lets its description say where it is and that it is not packed.
func (f *lz4File) showChunk(of *metadata.ColumnMetaData) {
	from := startOfChunk(of)
	start := f.size + int64(len(f.chunks))*spaceOfChunk
	f.chunks = append(f.chunks, &lz4Chunk{chunkPages: chunkPages{content: f.content, from: from, to: from + of.TotalCompressedSize, codec: of.Codec}, next: from})
	of.Codec, of.DataPageOffset, of.TotalCompressedSize = metadata.Uncompressed, start, spaceOfChunk
	if of.DictionaryPageOffset > 0 {
		of.DictionaryPageOffset = start
	}
}

// startOfChunk returns where the first page of a column is.
func startOfChunk(of *metadata.ColumnMetaData) int64 {
	if of.DictionaryPageOffset > 0 {
		return min(of.DataPageOffset, of.DictionaryPageOffset)
	}
	return of.DataPageOffset
}

func (f *lz4File) startOfFooter() int64 { return f.size + int64(len(f.chunks))*spaceOfChunk }

// ReadAt implements io.ReaderAt. A column is read in order by one reader at a time.
func (f *lz4File) ReadAt(p []byte, at int64) (int, error) {
	switch footer := f.startOfFooter(); {
	case at < f.size:
		return f.content.ReadAt(p[:min(int64(len(p)), f.size-at)], at)
	case at < footer:
		at -= f.size
		return f.chunks[at/spaceOfChunk].readAt(p, at%spaceOfChunk)
	default:
		if at -= footer; at >= int64(len(f.footer)) {
			return 0, io.EOF
		}
		n := copy(p, f.footer[at:])
		if n < len(p) {
			return n, io.EOF
		}
		return n, nil
	}
}

// lz4Chunk unpacks the pages of a column one after the other.
type lz4Chunk struct {
	chunkPages

	next int64  // where the next page is in the file
	page []byte // the last one, with its header
	at   int64  // where it begins among the unpacked ones
}

func (c *lz4Chunk) readAt(p []byte, at int64) (n int, err error) {
	if at < c.at { // from the beginning again
		c.next, c.page, c.at = c.from, nil, 0
	}
	for n < len(p) {
		if behind := at + int64(n) - c.at; behind < int64(len(c.page)) {
			n += copy(p[n:], c.page[behind:])
			continue
		}
		if c.next >= c.to {
			return n, io.EOF
		}
		if err := c.unpackNext(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// unpackNext reads the next page, which was checked before.
func (c *lz4Chunk) unpackNext() error {
	fields, size, err := c.readHeader(c.next)
	if err != nil {
		return err
	}
	packed := int64(fields.fieldNumber(3))
	if packed < 0 || packed > c.to-c.next-size {
		return errPage
	}
	encoded := make([]byte, size+packed)
	if _, err := c.content.ReadAt(encoded, c.next); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var header metadata.PageHeader
	if err := thrift.Unmarshal(&thrift.CompactProtocol{}, encoded[:size], &header); err != nil {
		return err
	}
	body, err := unpackBody(&header, encoded[size:], c.codec)
	if err != nil {
		return err
	}
	header.CRC, header.CompressedPageSize, header.UncompressedPageSize = 0, int32(len(body)), int32(len(body)) //nolint:gosec // at most bytesOfPages
	page, err := thrift.Marshal(&thrift.CompactProtocol{}, header)
	if err != nil {
		return err
	}
	c.next += size + packed
	c.at += int64(len(c.page))
	c.page = bytes.Join([][]byte{page, body}, nil)
	return nil
}

// unpackBody unpacks the body of a page, and lets its header say so.
func unpackBody(header *metadata.PageHeader, body []byte, codec metadata.CompressionCodec) ([]byte, error) {
	if header.CRC != 0 && uint32(header.CRC) != crc32.ChecksumIEEE(body) { //nolint:gosec // the same bits
		return nil, errPage
	}
	unpacked := int(header.UncompressedPageSize)
	if !header.DataPageHeaderV2.Valid {
		return unpackPage(codec, body, unpacked)
	}
	of := &header.DataPageHeaderV2.V
	isPacked := !of.IsCompressed.Valid || of.IsCompressed.V
	of.IsCompressed = thrift.Null[bool]{V: false, Valid: true}
	levels := int(of.DefinitionLevelsByteLength) + int(of.RepetitionLevelsByteLength)
	if !isPacked {
		return body, nil
	}
	if levels < 0 || levels > len(body) || levels > unpacked {
		return nil, errPage
	}
	values, err := unpackPage(codec, body[levels:], unpacked-levels)
	return append(body[:levels:levels], values...), err
}
