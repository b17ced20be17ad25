package format

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// The words of compression.
const (
	packedGzip = "gzip"
	packedZstd = "zstd"
	packedZip  = "zip"
	packedNot  = "none"
)

// packings are the packings that have first bytes.
var packings = []string{packedGzip, packedZstd, packedZip}

// magics are the first bytes by which a packed format is recognised. No text in UTF-8 begins
// with them.
var magics = map[string]string{packedGzip: "\x1f\x8b", packedZstd: "\x28\xb5\x2f\xfd", packedZip: "PK\x03\x04"}

// maxWindow bounds the memory that unpacking zstd takes: what every decoder has to
// have (RFC 8878), and all that a body may need (RFC 9659). Only zstd --ultra and --long need more.
const maxWindow = 8 << 20

// ErrNotPacked is the error of bytes that are not packed as compression says.
var ErrNotPacked = errors.New("they do not start like that")

// Unpacking reads what was packed, or bytes that were not.
type Unpacking struct {
	io.ReadCloser
	Packed bool
	Member string // its name in an archive, "" outside of one
}

// asItIs reads bytes that are not packed.
func asItIs(body io.Reader) *Unpacking { return &Unpacking{ReadCloser: io.NopCloser(body)} }

// Unpack returns a reader of the unpacked content, bounded like body. An archive has at most limit bytes, and needs
// that much memory unless body is a file. unpacked says that Content-Encoding was removed already, so that
// compression may name it and has no effect.
func (o Options) Unpack(ctx context.Context, body io.Reader, unpacked bool, limit int64) (*Unpacking, error) {
	if o.Compression == packedNot {
		return asItIs(body), nil
	}
	buffered := bufio.NewReader(body)
	begins := func(as string) bool {
		magic, _ := buffered.Peek(len(magics[as])) // what broke the connection is seen by who reads on
		return string(magic) == magics[as]
	}
	how := o.Compression
	for _, as := range packings {
		if how == "" && begins(as) {
			how = as
		}
	}
	switch {
	case how == "" && o.Member != "":
		return nil, fmt.Errorf("member is %q, and the bytes are not zip: %w", o.Member, ErrNotPacked)
	case how == "":
		return asItIs(buffered), nil
	case !begins(how):
		_, err := buffered.Peek(1)
		if empty := errors.Is(err, io.EOF); empty || unpacked || err != nil {
			return asItIs(buffered), nil
		}
		return nil, fmt.Errorf("the bytes are not %s: %w", how, ErrNotPacked)
	}
	var reader io.ReadCloser
	var err error
	switch how {
	case packedZip:
		return o.unzipMember(ctx, body, buffered, limit)
	case packedGzip:
		reader, err = gzip.NewReader(buffered)
	default:
		reader, err = NewZstdReader(buffered)
	}
	if err != nil {
		return nil, err
	}
	return &Unpacking{ReadCloser: reader, Packed: true}, nil
}

// NewZstdReader returns a reader that unpacks zstd. It takes no more memory than maxWindow allows.
func NewZstdReader(body io.Reader) (io.ReadCloser, error) {
	decoder, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return decoder.IOReadCloser(), nil
}

// ErrWindow is the error of zstd that would take too much memory to unpack.
var ErrWindow = fmt.Errorf("zstd with a window of more than %d MiB, as made by --ultra or --long, cannot be unpacked", maxWindow>>20)

// UnpackError distinguishes bytes that no other attempt unpacks either.
func UnpackError(err error) error {
	switch {
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrWindowSizeTooSmall):
		return ErrWindow
	case errors.Is(err, ErrNotPacked), errors.Is(err, errArchive):
		return err
	}
	return nil
}
