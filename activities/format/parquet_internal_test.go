package format

import (
	"bytes"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	codecs "github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"reprise/activities/memory"
)

// TestPagesAreBounded: a page that says it has more than bytesOfPages, and texts whose fronts have more, are refused before they are there.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	pages := &chunkPages{content: bytes.NewReader(make([]byte, 100)), to: 100, codec: codecs.Snappy, maxDef: 1}
	of := func(unpacked, values int) thriftFields {
		return thriftFields{1: pageData, 2: unpacked, 3: 10, 5: thriftFields{1: values, 2: encodingPlain, 3: encodingRLE, 4: encodingRLE}}
	}
	for _, header := range []thriftFields{of(bytesOfPages+1, 1), of(10, bytesOfPages), of(1<<40, 1)} {
		_, err := pages.checkPage(header, 0, 10)
		require.ErrorIs(t, err, memory.ErrTooLarge)
	}
	for _, header := range []thriftFields{of(-1, 1), of(10, -1), {1: 9, 2: 1}, of(10, 1)} {
		_, err := pages.checkPage(header, 0, 10)
		require.ErrorIs(t, err, errPage)
	}
	lengths := []int32{}
	for range 300 {
		lengths = append(lengths, 1<<20)
	}
	fronts, err := new(delta.BinaryPackedEncoding).EncodeInt32(nil, lengths)
	require.NoError(t, err)
	page := &pageCheck{chunkPages: pages, values: len(lengths)}
	require.ErrorIs(t, page.checkValues(encodingDeltaBytes, fronts), memory.ErrTooLarge)
	page = &pageCheck{chunkPages: pages, values: 100}
	require.ErrorIs(t, page.checkValues(encodingDelta, fronts), errPage)
	require.ErrorIs(t, page.checkRuns([]byte{0xfe, 0xff, 0xff, 0x7f, 1}, 1), errPage) // a run of 134 million, and paddedValues more are fine
	require.NoError(t, page.checkRuns([]byte{200, 1, 1}, 1))
	deep := bytes.Repeat([]byte{0x1c}, deepestThrift+1)
	_, _, err = readFields(append(deep, make([]byte, len(deep)+1)...), true)
	require.ErrorIs(t, err, errThrift)
	_, _, err = readFields([]byte{0x18, 0xff, 0xff, 0xff, 0x7f, 0}, true)
	require.ErrorIs(t, err, errThrift)
	_, err = decimalValue(parquet.Int32Value(1), mostScale-1)
	require.NoError(t, err)
	_, err = valueOfDecimal(bytes.Repeat([]byte{1}, longestDecimal+1))
	require.ErrorIs(t, err, errDecimal)
}
