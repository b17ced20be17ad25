package file

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"

	"reprise/activities/format"
	"reprise/activities/tool"
)

// fileBefore is a file before rows are added at its end; the zero value is an empty one.
type fileBefore struct {
	size    int64    // on disk
	columns []string // of CSV, nil where it has none yet
	isOpen  bool     // its last line lacks its line break
}

// readBefore reads what a write needs to know about the existing file; file is nil if there is
// none.
func (w *fileWrite) readBefore(ctx context.Context, journal *journal, file *os.File, info os.FileInfo) (before fileBefore, err error) {
	if file == nil || info.Size() == 0 {
		return fileBefore{}, nil
	}
	before.size = info.Size()
	if err := w.checkPacking(file); err != nil {
		return before, err
	}
	if own := journal.endsAt(before.size); !own || w.Compression == "" {
		if before.isOpen, err = w.readEnd(ctx, file, before.size, own); err != nil {
			return before, err
		}
	}
	if w.Format != format.CSV {
		return before, nil
	}
	text, err := w.unpackedText(ctx, file, before.size)
	if err != nil {
		return before, err
	}
	defer func() { _ = text.Close() }()
	content, bare := withoutMark(text)
	before.isOpen = before.isOpen && !bare
	columns, delimiter, err := (format.CSVDialect{}).ReadHeader(content)
	switch {
	case err != nil:
		return before, tool.Errorf("write %s: its first line is not CSV: %w", w.path, err)
	case !format.WritesDelimiter(delimiter):
		return before, tool.Errorf("write %s: its first line says that %q separates values, and rows are written with commas; use another path", w.path, delimiter)
	}
	before.columns = columns
	return before, nil
}

// checkPacking refuses to add rows to a file that is compressed in another way: no reader would find both.
func (w *fileWrite) checkPacking(file *os.File) error {
	const longest = 4
	head := make([]byte, longest)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch is := format.PackingOf(head[:n]); {
	case is == w.Compression:
		return nil
	case is == "":
		return tool.Errorf("write %s with compression %s: the existing file is not compressed; use another path", w.path, w.Compression)
	case w.Compression == "":
		return tool.Errorf("write %s: the existing file is compressed with %s; use another path, or set compression: %s", w.path, is, is)
	default:
		return tool.Errorf("write %s with compression %s: the existing file is compressed with %s; use another path", w.path, w.Compression, is)
	}
}

// unpackedText reads a file without its compression.
func (w *fileWrite) unpackedText(ctx context.Context, file *os.File, size int64) (*format.Unpacking, error) {
	options := format.Options{Compression: "none"}
	if w.Compression != "" {
		options.Compression = w.Compression
	}
	text, err := options.Unpack(ctx, io.NewSectionReader(file, 0, size), false, size)
	if err != nil {
		return nil, w.packedError(err)
	}
	return text, nil
}

// packedError returns the error of a compressed file that is not whole.
func (w *fileWrite) packedError(err error) error {
	return tool.Errorf("write %s: the existing file cannot be unpacked to its end, so new rows would not be read: %w; restore it, or use another path", w.path, err)
}

// readEnd reports whether the last line of a file lacks its line break. Content that is not the worker's own is read from its beginning: rows are not added
// where they would not be read as rows.
func (w *fileWrite) readEnd(ctx context.Context, file *os.File, size int64, own bool) (isOpen bool, err error) {
	if own {
		last := make([]byte, 1)
		_, err := file.ReadAt(last, size-1)
		return !endsLine(last[0]), err
	}
	unpacked, err := w.unpackedText(ctx, file, size)
	if err != nil {
		return false, err
	}
	defer func() { _ = unpacked.Close() }()
	end := &lastLine{of: unpacked}
	text := transform.NewReader(end, encoding.UTF8Validator)
	inQuotes := false
	if w.Format == format.CSV {
		inQuotes, err = (format.CSVDialect{}).EndsInQuotes(text)
	}
	if err == nil { // also behind a line that is not CSV
		_, err = io.Copy(io.Discard, text)
	}
	switch {
	case errors.Is(err, encoding.ErrInvalidUTF8):
		return false, tool.Errorf("write %s: the existing file is not UTF-8; use another path, or convert the file", w.path)
	case err != nil && w.Compression != "":
		return false, w.packedError(err)
	case err != nil:
		return false, err
	case inQuotes:
		return false, tool.Errorf("write %s: the existing file ends within a quoted value, so new rows would become part of it; close the quote, or use another path", w.path)
	}
	if w.Format == format.JSONL && end.isCut() {
		return false, tool.Errorf("write %s: the existing file ends with an incomplete line of JSON, as an interrupted write leaves it; repair the line, or use another path", w.path)
	}
	return end.isOpen(), nil
}

// endsLine reports whether a byte ends a line.
func endsLine(last byte) bool { return last == '\n' || last == '\r' }

// mostOfLine bounds what is remembered of a line. Without it, a file without line breaks would fill the memory; a longer line counts as
// whole.
const mostOfLine = 1 << 20

// lastLine remembers the last line that was read, of at most mostOfLine bytes.
type lastLine struct {
	of   io.Reader
	line []byte // without its line break, and cut off behind mostOfLine bytes
	last byte
	seen bool
}

// Read implements io.Reader.
func (l *lastLine) Read(p []byte) (int, error) {
	n, err := l.of.Read(p)
	if n == 0 {
		return n, err
	}
	if endsLine(l.last) {
		l.line = l.line[:0]
	}
	l.last, l.seen = p[n-1], true
	if at := bytes.LastIndexAny(p[:n-1], "\r\n"); at >= 0 {
		l.line = append(l.line[:0], p[at+1:n]...)
	} else if len(l.line) <= mostOfLine {
		l.line = append(l.line, p[:n]...)
	}
	return n, err
}

// isOpen reports whether the last line lacks its line break.
func (l *lastLine) isOpen() bool { return l.seen && !endsLine(l.last) }

// isCut reports whether the last line lacks its line break and is not JSON.
func (l *lastLine) isCut() bool {
	line := bytes.TrimPrefix(l.line, []byte("\uFEFF"))
	return l.isOpen() && len(line) <= mostOfLine && len(bytes.TrimSpace(line)) > 0 && !json.Valid(line)
}

// withoutMark returns a reader behind the byte order mark of a text. bare says that the text
// is nothing else.
func withoutMark(text io.Reader) (content io.Reader, bare bool) {
	const mark = "\uFEFF"
	buffered := bufio.NewReader(text)
	if start, _ := buffered.Peek(len(mark)); string(start) != mark {
		return buffered, false
	}
	_, _ = buffered.Discard(len(mark))
	_, err := buffered.Peek(1)
	return buffered, err != nil
}
