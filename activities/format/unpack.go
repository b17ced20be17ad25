package format

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// The words of compression.
const (
	packedGzip = "gzip"
	packedZstd = "zstd"
	packedNot  = "none"
)

// magics are what packed bytes begin with, and no text in UTF-8.
var magics = map[string]string{packedGzip: "\x1f\x8b", packedZstd: "\x28\xb5\x2f\xfd"}

// maxWindow bounds the memory that unpacking zstd takes: what every decoder has to
// have (RFC 8878), and all that a body may need (RFC 9659). Only zstd --ultra and --long need more.
const maxWindow = 8 << 20

// ErrNotPacked is that of bytes that are not packed as compression says.
var ErrNotPacked = errors.New("they do not start like that")

// Unpack is a reader of what is packed, and whether it is. What bounds the reader
// bounds what is unpacked. Nothing has to be unpacked again: unpacked says that its
// sender's packing is off already, where compression may name it or not.
func (o Options) Unpack(body io.Reader, unpacked bool) (_ io.ReadCloser, packed bool, err error) {
	if o.Compression == packedNot {
		return io.NopCloser(body), false, nil
	}
	buffered := bufio.NewReader(body)
	begins := func(as string) bool {
		magic, _ := buffered.Peek(len(magics[as])) // what broke the connection is seen by who reads on
		return string(magic) == magics[as]
	}
	how := o.Compression
	switch {
	case how == "" && begins(packedGzip):
		how = packedGzip
	case how == "" && begins(packedZstd):
		how = packedZstd
	case how == "":
		return io.NopCloser(buffered), false, nil
	case !begins(how):
		_, err := buffered.Peek(1)
		if empty := errors.Is(err, io.EOF); empty || unpacked || err != nil {
			return io.NopCloser(buffered), false, nil
		}
		return nil, false, fmt.Errorf("the bytes are not %s: %w", how, ErrNotPacked)
	}
	if how == packedGzip {
		reader, err := gzip.NewReader(buffered)
		return reader, true, err
	}
	reader, err := Zstd(buffered)
	return reader, true, err
}

// Zstd is a reader of what zstd has packed, which takes no more memory than maxWindow allows.
func Zstd(body io.Reader) (io.ReadCloser, error) {
	decoder, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return decoder.IOReadCloser(), nil
}

// ErrWindow is that of zstd that would take too much memory to unpack.
var ErrWindow = fmt.Errorf("zstd with a window of more than %d MiB, as made by --ultra or --long, cannot be unpacked", maxWindow>>20)

// Unpackable distinguishes bytes that no other attempt unpacks either.
func Unpackable(err error) error {
	switch {
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrWindowSizeTooSmall):
		return ErrWindow
	case errors.Is(err, ErrNotPacked):
		return err
	}
	return nil
}
