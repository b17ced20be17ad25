package format

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"golang.org/x/text/transform"

	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/interpreter"
)

// RowSource is a source of rows read one by one: a file, or a response body stored in one. It can be read several
// times from its beginning.
type RowSource struct {
	Content interface {
		io.ReaderAt
		io.Closer
	}
	Size int64 // in bytes
	// What names it in messages.
	What string
	// Format is the format by content type or name, "" if neither says it. Of an archive it is then that of its
	// member, set when the first row is read. Charset is the charset of the content type.
	Format, Charset string
	// Unwrap removes a content encoding, nil if there is none.
	Unwrap func(io.Reader) (io.Reader, error)
	// Changed reports whether it has changed since it was opened, nil for what cannot.
	Changed func() bool
	// Temporary returns a new file without a name on the worker's disk, for content that has to be unpacked before it can be read from any place.
	Temporary func() (*os.File, error)
	// Discard removes what is stored of the source for other workers, once nobody needs it; nil if nothing is.
	Discard func(ctx context.Context)
	// Identity is what all reads of the same bytes have in common, "" where that is not known before it was read.
	Identity string
	// Kind and Class are used for errors about its content.
	Kind  interpreter.Kind
	Class interpreter.Class
}

// PlaceBehind returns the place behind a row, of which rows are before that place.
func (s *RowSource) PlaceBehind(row PlacedRow, rows int64) *interpreter.SourcePlace {
	place := &interpreter.SourcePlace{Source: s.Identity, Rows: rows}
	if row.end > 0 {
		place.Offset, place.Line = row.end, row.next
		if row.header != nil {
			place.Columns, place.Delimiter = row.header.names, row.header.delimiter
		}
	}
	return place
}

// ReadRows reads the rows of the source with the options o, each of at most so many bytes. after is where to continue, nil for the beginning. An error is the
// last element: a tool.Error, or that of ctx.
func (s *RowSource) ReadRows(ctx context.Context, o Options, most int64, after *interpreter.SourcePlace) iter.Seq2[PlacedRow, error] {
	o.Format = cmp.Or(o.Format, s.Format)
	if after == nil {
		after = &interpreter.SourcePlace{}
	}
	return func(yield func(PlacedRow, error) bool) {
		if o.Format == "" {
			var err error
			if s.Format, err = s.memberFormat(ctx, o, most); err != nil {
				yield(PlacedRow{}, s.readError(o, err))
				return
			}
			o.Format = s.Format
		}
		if !slices.Contains(Streamed, o.Format) {
			yield(PlacedRow{}, tool.ConfigErrorf("%s is not read row by row, as its format is %s; set format to %s", s.What, cmp.Or(o.Format, "not known"), tool.ChoiceText(Streamed)))
			return
		}
		if len(o.Rows) > 0 && o.Format != JSON && o.Format != XML {
			yield(PlacedRow{}, tool.ConfigErrorf("rows says where the rows of JSON and XML are, and the format of %s is %s; remove rows", s.What, o.Format))
			return
		}
		if len(o.Rows) < 2 && o.Format == XML {
			yield(PlacedRow{}, tool.ConfigErrorf("%s is XML, so rows must name its first element and the elements that are rows, such as orders.order", s.What))
			return
		}
		if o.Format == Parquet {
			s.parquetRows(ctx, o, most, after.Rows, yield)
			return
		}
		text, err := s.openText(ctx, o, most, after)
		if err != nil {
			yield(PlacedRow{}, s.readError(o, err))
			return
		}
		defer func() { _ = text.Close() }()
		skip := after.Rows - text.rows
		for row, err := range o.streamRows(text.textPart, most) {
			switch {
			case ctx.Err() != nil:
				err = ctx.Err()
			case errors.Is(err, memory.ErrTooLarge):
				err = tool.TooLargeErrorf("a row of %s is larger than the limit of %d bytes", s.What, most)
			case err != nil:
				err = s.readError(o, err)
			}
			if skip--; err == nil && skip >= 0 {
				continue
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// memberFormat returns the format that the name of a member says, "" if the source is no archive or the name says none.
func (s *RowSource) memberFormat(ctx context.Context, o Options, most int64) (string, error) {
	unpacked, err := s.openSource(ctx, o, most)
	if err != nil {
		return "", err
	}
	as, _ := FormatOfName(unpacked.Member)
	return as, unpacked.Close()
}

// sourceText is the text of a source, which has to be closed.
type sourceText struct {
	textPart
	io.Closer
}

// openText opens the source at a place if its bytes are its text, else at its beginning.
func (s *RowSource) openText(ctx context.Context, o Options, most int64, after *interpreter.SourcePlace) (sourceText, error) {
	if after.Offset > 0 {
		rest := io.NewSectionReader(s.Content, after.Offset, s.Size-after.Offset)
		valid := transform.NewReader(rest, &utf8Validator{offset: int(after.Offset), line: after.Line})
		part := textPart{Reader: valid, base: after.Offset, line: after.Line, rows: after.Rows, seeks: true}
		if after.Columns != nil {
			part.header = &csvHeader{names: after.Columns, delimiter: after.Delimiter}
		}
		return sourceText{textPart: part, Closer: io.NopCloser(rest)}, nil
	}
	unpacked, err := s.openSource(ctx, o, most)
	if err != nil {
		return sourceText{}, err
	}
	part, err := s.decodeText(ctx, unpacked, o, most)
	if err != nil {
		return sourceText{}, errors.Join(err, unpacked.Close())
	}
	part.line, part.seeks = 1, part.seeks && !unpacked.Packed && s.Unwrap == nil
	return sourceText{textPart: part, Closer: unpacked}, nil
}

// parquetRows gives the rows of Parquet behind the first ones. It is read from any place, so Parquet that is packed is unpacked to the worker's disk.
func (s *RowSource) parquetRows(ctx context.Context, o Options, most, skip int64, yield func(PlacedRow, error) bool) {
	content, size, closeContent, err := s.openParquet(ctx, o, most)
	if err != nil {
		yield(PlacedRow{}, s.readError(o, err))
		return
	}
	defer closeContent()
	for row, err := range parquetRowsBehind(content, size, most, skip) {
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case errors.Is(err, memory.ErrTooLarge):
			err = tool.TooLargeErrorf("%s has a row that is larger than the limit of %d bytes, or pages that take more than %d", s.What, most, bytesOfPages)
		case err != nil:
			err = s.readError(o, err)
		}
		if !yield(PlacedRow{Value: row}, err) || err != nil {
			return
		}
	}
}

// openParquet opens Parquet, packed or not, to be read from any place.
func (s *RowSource) openParquet(ctx context.Context, o Options, most int64) (content io.ReaderAt, size int64, closeContent func(), err error) {
	head := make([]byte, len(parquetMark))
	if n, _ := s.Content.ReadAt(head, 0); s.Unwrap == nil && string(head[:n]) == parquetMark {
		return s.Content, s.Size, func() {}, nil
	}
	packed, err := s.openSource(ctx, o, most)
	if err != nil {
		return nil, 0, nil, err
	}
	defer func() { _ = packed.Close() }()
	if _, err := io.ReadFull(packed, head); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, 0, nil, err
	}
	if string(head) != parquetMark {
		return nil, 0, nil, errNoParquet
	}
	file, size, err := s.unpackToDisk(ctx, io.MultiReader(bytes.NewReader(head), packed), most)
	if err != nil {
		return nil, 0, nil, err
	}
	return file, size, func() { _ = file.Close() }, nil
}

// openSource opens the source at its beginning, unpacked. most bounds an archive that has to be read into memory.
func (s *RowSource) openSource(ctx context.Context, o Options, most int64) (*Unpacking, error) {
	var content io.Reader = io.NewSectionReader(s.Content, 0, s.Size)
	if s.Unwrap != nil {
		unwrapped, err := s.Unwrap(content)
		if err != nil {
			return nil, err
		}
		return s.openUnwrapped(ctx, unwrapped, o, most)
	}
	return o.Unpack(ctx, content, false, most)
}

// openUnwrapped unpacks content whose encoding was removed. An archive is read from any place, so it goes to the worker's disk first.
func (s *RowSource) openUnwrapped(ctx context.Context, content io.Reader, o Options, most int64) (*Unpacking, error) {
	buffered := bufio.NewReader(content)
	magic, _ := buffered.Peek(len(magics[packedZip])) // an error is seen by who reads on
	if string(magic) != magics[packedZip] || o.Compression != "" && o.Compression != packedZip {
		return o.Unpack(ctx, buffered, true, most)
	}
	file, size, err := s.unpackToDisk(ctx, buffered, most)
	if err != nil {
		return nil, err
	}
	unpacked, err := o.Unpack(ctx, io.NewSectionReader(file, 0, size), true, most)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	unpacked.ReadCloser = &closedWith{ReadCloser: unpacked.ReadCloser, file: file}
	return unpacked, nil
}

// decodeText makes UTF-8 of content, as DecodeText does. The part that it returns seeks where content is UTF-8.
func (s *RowSource) decodeText(ctx context.Context, content io.Reader, o Options, most int64) (textPart, error) {
	buffered := bufio.NewReaderSize(content, streamBuffer)
	for _, mark := range marks {
		if head, _ := buffered.Peek(len(mark.bytes)); string(head) == mark.bytes {
			_, _ = buffered.Discard(len(mark.bytes))
			return textPart{Reader: streamDecoded(buffered, mark.from, mark.name)}, nil
		}
	}
	part := textPart{Reader: buffered, seeks: true}
	if head, _ := buffered.Peek(len(markUTF8)); string(head) == markUTF8 {
		_, _ = buffered.Discard(len(markUTF8))
		part.base = int64(len(markUTF8))
	}
	head, _ := buffered.Peek(declarationBytes)
	charset := CharsetName(o.CharsetOf(head, s.Charset))
	from, name, err := charsetOf(charset)
	if err != nil || name == nameUTF8 || isASCII(charset) {
		part.Reader = transform.NewReader(buffered, &utf8Validator{unknown: unknownCharset(charset, err), line: 1})
		return part, nil
	}
	if valid, err := s.isUTF8(ctx, o, name, most); valid || err != nil {
		return part, err
	}
	return textPart{Reader: streamDecoded(buffered, from, name)}, nil
}

// streamBuffer is how much of a source is read at once, in bytes.
const streamBuffer = 64 << 10

// isUTF8 reads the source for whether it is UTF-8 though another charset is said of it.
func (s *RowSource) isUTF8(ctx context.Context, o Options, charset string, most int64) (bool, error) {
	unpacked, err := s.openSource(ctx, o, most)
	if err != nil {
		return false, err
	}
	defer func() { _ = unpacked.Close() }()
	_, err = io.Copy(io.Discard, transform.NewReader(unpacked, &utf8Validator{beyond: beyondUTF8[charset]}))
	if _, wrong := errors.AsType[*ByteError](err); wrong {
		return false, nil
	}
	return err == nil, err
}

// readError returns the error of a source that cannot be read to its end.
func (s *RowSource) readError(o Options, err error) error {
	if own, ok := errors.AsType[*tool.Error](err); ok {
		return own
	}
	if tool.IsContextError(err) {
		return err
	}
	failure := &tool.Error{
		Kind: s.Kind, Class: s.Class, Type: "invalid_" + o.Format, Err: err, Message: fmt.Sprintf("%s cannot be read as %s: %s", s.What, o.Format, err),
	}
	if o.Format == "" { // it was only opened
		failure.Type, failure.Message = "compression", fmt.Sprintf("%s cannot be unpacked: %s", s.What, err)
	}
	line, isLine := errors.AsType[*LineError](err)
	wrong, isByte := errors.AsType[*ByteError](err)
	switch {
	case UnpackError(err) != nil:
		failure.Class, failure.Type = interpreter.ClassFinal, "compression"
		failure.Message = fmt.Sprintf("%s cannot be unpacked: %s", s.What, UnpackError(err))
	case isByte:
		failure.Class, failure.Type, failure.Message = interpreter.ClassFinal, "charset", fmt.Sprintf("%s cannot be read: %s", s.What, wrong)
	case isLine:
		failure.Message = fmt.Sprintf("%s cannot be read as %s: %s", s.What, o.Format, line)
	case errors.Is(err, io.ErrUnexpectedEOF):
		failure.Message = fmt.Sprintf("%s ends too soon: it is cut short, or was written only in part", s.What)
	}
	return failure
}
