package file

import (
	"bufio"
	"errors"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"

	"reprise/activities/format"
	"reprise/activities/tool"
)

// fileBefore is a file before rows are added at its end; the zero value is an empty one.
type fileBefore struct {
	size    int64
	columns []string // of CSV, nil where it has none yet
	isOpen  bool     // its last line lacks its line break
}

// readBefore reads what a write needs to know about the existing file; file is nil if there is
// none.
func (w *fileWrite) readBefore(journal *journal, file *os.File, info os.FileInfo) (before fileBefore, err error) {
	if file == nil || info.Size() == 0 {
		return fileBefore{}, nil
	}
	before.size = info.Size()
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, before.size-1); err != nil {
		return before, err
	}
	before.isOpen = last[0] != '\n' && last[0] != '\r'
	if !journal.endsAt(before.size) {
		if err := w.checkOthers(file, before.size); err != nil {
			return before, err
		}
	}
	if w.format != format.CSV {
		return before, nil
	}
	content, bare := withoutMark(file, before.size)
	before.isOpen = before.isOpen && !bare
	if before.columns, err = (format.CSVDialect{}).ReadHeader(content); err != nil {
		return before, tool.Errorf("write %s: its first line is not CSV: %w", w.path, err)
	}
	return before, nil
}

// checkOthers refuses to add rows to content that somebody else has written if they would not be read as
// rows there.
func (w *fileWrite) checkOthers(file *os.File, size int64) error {
	text := transform.NewReader(io.NewSectionReader(file, 0, size), encoding.UTF8Validator)
	open := false
	var err error
	if w.format == format.CSV {
		open, err = (format.CSVDialect{}).EndsInQuotes(text)
	} else {
		_, err = io.Copy(io.Discard, text)
	}
	switch {
	case errors.Is(err, encoding.ErrInvalidUTF8):
		return tool.Errorf("write %s: the existing file is not UTF-8; use another path, or convert the file", w.path)
	case err != nil:
		return err
	case open:
		return tool.Errorf("write %s: the existing file ends within a quoted value, so new rows would become part of it; close the quote, or use another path", w.path)
	}
	return nil
}

// withoutMark returns a reader behind the byte order mark of a file. bare says that the file
// contains nothing else.
func withoutMark(file *os.File, size int64) (content io.Reader, bare bool) {
	const mark = "\uFEFF"
	start := make([]byte, len(mark))
	n, _ := file.ReadAt(start, 0)
	if string(start[:n]) != mark {
		return bufio.NewReader(io.NewSectionReader(file, 0, size)), false
	}
	return bufio.NewReader(io.NewSectionReader(file, int64(len(mark)), size-int64(len(mark)))), size == int64(utf8.RuneLen([]rune(mark)[0]))
}
