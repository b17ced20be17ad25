package format

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/parquet-go/parquet-go/encoding/delta"
	codecs "github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"reprise/activities/memory"
)

const (
	// bytesOfPages bounds what the pages of a row group take in memory that are there at the same time: one of each column, and its dictionary. Without it, a
	// page that says it unpacks to 2 GB would take these.
	bytesOfPages = 256 << 20
	// bytesOfHeader bounds the header of a page, whose statistics may have values of any length.
	bytesOfHeader = 16 << 20
	// bytesOfValue is what a value of a page takes at least, once it is decoded: its levels, its index or its offset.
	bytesOfValue = 8
	// paddedValues is how many values a run may have more than the page: writers fill up groups of eight.
	paddedValues = 512
)

// The numbers of what pages have (parquet.thrift of the format).
const (
	pageData, pageDictionary, pageDataV2 = 0, 2, 3

	encodingPlain, encodingPlainDictionary, encodingRLE, encodingBitPacked = 0, 2, 3, 4

	encodingDelta, encodingDeltaLength, encodingDeltaBytes, encodingDictionary, encodingSplit = 5, 6, 7, 8, 9
)

var errPage = errors.New("a page is damaged")

// chunkPages checks the pages of one column of a row group before the library reads them, which trusts the sizes and numbers that they name.
type chunkPages struct {
	content  io.ReaderAt
	from, to int64 // where they are
	codec    codecs.CompressionCodec
	maxRep   int
	maxDef   int
	isBool   bool
}

// checkPages reads all pages. bytes is what they take at most at the same time.
func (c *chunkPages) checkPages() (bytes int64, err error) {
	var dictionary, largest int64
	for at := c.from; at < c.to; {
		header, size, err := c.readHeader(at)
		if err != nil {
			return 0, err
		}
		at += size
		packed := int64(header.fieldNumber(3))
		if packed < 0 || packed > c.to-at {
			return 0, errPage
		}
		took, err := c.checkPage(header, at, packed)
		if err != nil {
			return 0, err
		}
		if at += packed; header.fieldNumber(1) == pageDictionary {
			dictionary = max(dictionary, took)
		} else {
			largest = max(largest, took)
		}
	}
	return dictionary + largest, nil
}

// readHeader reads the header of the page at a place, and its size.
func (c *chunkPages) readHeader(at int64) (header thriftFields, size int64, err error) {
	const usual = 512 // most are shorter
	for most := int64(usual); ; most *= 16 {
		head := make([]byte, min(most, c.to-at))
		if _, err := c.content.ReadAt(head, at); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		header, rest, err := readFields(head, true)
		if err == nil || most >= bytesOfHeader || most >= c.to-at {
			return header, int64(len(head) - len(rest)), err
		}
	}
}

// checkPage checks one page, whose body is at a place, and returns what it takes in memory.
func (c *chunkPages) checkPage(header thriftFields, at, packed int64) (int64, error) {
	unpacked := int64(header.fieldNumber(2))
	of := header.fieldStruct(map[int]int{pageData: 5, pageDictionary: 7, pageDataV2: 8}[header.fieldNumber(1)])
	values := int64(of.fieldNumber(1))
	took := packed + 2*unpacked + bytesOfValue*values
	switch {
	case of == nil, values < 0, unpacked < 0:
		return 0, errPage
	case packed > bytesOfPages, unpacked > bytesOfPages, values > bytesOfPages, took > bytesOfPages:
		return 0, memory.ErrTooLarge
	}
	body := make([]byte, packed)
	if _, err := c.content.ReadAt(body, at); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	page := pageCheck{chunkPages: c, values: int(values), unpacked: int(unpacked)}
	var err error
	switch header.fieldNumber(1) {
	case pageData:
		err = page.checkData(of, body)
	case pageDataV2:
		err = page.checkDataV2(of, body)
	default:
		_, err = unpackPage(c.codec, body, page.unpacked)
	}
	return took + page.more, err
}

// pageCheck checks a page of data.
type pageCheck struct {
	*chunkPages

	values, unpacked int
	more             int64 // what its values take beyond the page
}

func (p *pageCheck) checkData(of thriftFields, body []byte) error {
	data, err := unpackPage(p.codec, body, p.unpacked)
	if err != nil {
		return err
	}
	for i, most := range []int{p.maxRep, p.maxDef} {
		if most == 0 {
			continue
		}
		if of.fieldNumber(4-i) != encodingRLE {
			return errors.New("its levels are packed in a way that was given up")
		}
		if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
			return errPage
		}
		size := 4 + int(binary.LittleEndian.Uint32(data))
		if err := p.checkRuns(data[4:size], bitsOf(most)); err != nil {
			return err
		}
		data = data[size:]
	}
	return p.checkValues(of.fieldNumber(2), data)
}

func (p *pageCheck) checkDataV2(of thriftFields, body []byte) error {
	def, rep := of.fieldNumber(5), of.fieldNumber(6)
	if def < 0 || rep < 0 || def > len(body) || rep > len(body)-def || of.fieldNumber(2) < 0 || of.fieldNumber(2) > p.values || of.fieldNumber(3) < 0 {
		return errPage
	}
	for _, levels := range []struct {
		in   []byte
		most int
	}{{body[:rep], p.maxRep}, {body[rep : rep+def], p.maxDef}} {
		if levels.most > 0 {
			if err := p.checkRuns(levels.in, bitsOf(levels.most)); err != nil {
				return err
			}
		}
	}
	data := body[rep+def:]
	if compressed, said := of[7].(bool); compressed || !said {
		if p.unpacked < rep+def {
			return errPage
		}
		var err error
		if data, err = unpackPage(p.codec, data, p.unpacked-rep-def); err != nil {
			return err
		}
	}
	return p.checkValues(of.fieldNumber(4), data)
}

func bitsOf(most int) int {
	bits := 0
	for ; most > 0; most >>= 1 {
		bits++
	}
	return bits
}

// checkRuns checks that runs of numbers have no more of them than the page.
func (p *pageCheck) checkRuns(data []byte, bits int) error {
	if bits > 32 {
		return errPage
	}
	for count := uint64(0); len(data) > 0; {
		head, n := binary.Uvarint(data)
		if n <= 0 {
			return errPage
		}
		data = data[n:]
		size := (bits + 7) / 8
		if head&1 == 1 {
			if head>>1 > bytesOfPages {
				return errPage
			}
			count, size = count+head>>1*8, int(head>>1)*bits
		} else {
			count += head >> 1
		}
		if count > uint64(p.values)+paddedValues {
			return errPage
		}
		data = data[min(size, len(data)):]
	}
	return nil
}

// checkValues checks values by how they are encoded: those of which a few bytes become many.
func (p *pageCheck) checkValues(encoding int, data []byte) error {
	switch encoding {
	case encodingPlain, encodingSplit:
		return nil
	case encodingDictionary, encodingPlainDictionary:
		if len(data) == 0 {
			return nil
		}
		return p.checkRuns(data[1:], int(data[0]))
	case encodingRLE:
		if !p.isBool || len(data) < 4 {
			return errPage
		}
		return p.checkRuns(data[4:], 1)
	case encodingDelta, encodingDeltaLength:
		return p.checkDelta(data)
	case encodingDeltaBytes:
		return p.checkPrefixes(data)
	}
	return fmt.Errorf("its encoding %d is not known", encoding)
}

// checkDelta checks that a block of differences has no more numbers than the page.
func (p *pageCheck) checkDelta(data []byte) error {
	for i := range 3 { // the size of blocks, of how many parts each is, and the numbers
		value, n := binary.Uvarint(data)
		if n <= 0 || value > bytesOfPages || i == 2 && value > uint64(p.values) {
			return errPage
		}
		data = data[n:]
	}
	return nil
}

// checkPrefixes checks texts which each begin as the one before does: those of a short page may have terabytes.
func (p *pageCheck) checkPrefixes(data []byte) error {
	if err := p.checkDelta(data); err != nil {
		return err
	}
	prefixes, err := new(delta.BinaryPackedEncoding).DecodeInt32(nil, data)
	if err != nil {
		return err
	}
	for _, prefix := range prefixes {
		if p.more += int64(prefix); prefix < 0 || p.more > bytesOfPages {
			return memory.ErrTooLarge
		}
	}
	return nil
}

// unpackPage unpacks a page that is to have so many bytes then.
func unpackPage(codec codecs.CompressionCodec, body []byte, size int) (data []byte, err error) {
	if size == 0 && len(body) == 0 {
		return nil, nil
	}
	var reader io.Reader
	switch codec {
	case codecs.Uncompressed:
		data = body
	case codecs.Snappy:
		if said, wrong := snappy.DecodedLen(body); wrong != nil || said != size {
			return nil, errPage
		}
		data, err = snappy.Decode(nil, body)
	case codecs.Lz4Raw:
		data = make([]byte, size)
		var n int
		n, err = lz4.UncompressBlock(body, data)
		data = data[:max(n, 0)]
	case codecs.Gzip:
		reader, err = gzip.NewReader(bytes.NewReader(body))
	case codecs.Brotli:
		reader = brotli.NewReader(bytes.NewReader(body))
	case codecs.Zstd:
		reader, err = NewZstdReader(bytes.NewReader(body))
	default:
		return nil, fmt.Errorf("its pages are compressed with %s, which cannot be read; write it with SNAPPY, ZSTD, GZIP, BROTLI or LZ4_RAW", codec)
	}
	if err == nil && reader != nil {
		data, err = io.ReadAll(io.LimitReader(reader, int64(size)+1))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("a page cannot be unpacked: %w", err)
	case len(data) != size:
		return nil, errPage
	}
	return data, nil
}
