package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// maxLogLine bounds a line of a log. A worker logs shorter lines.
	maxLogLine = 1 << 20
	// logInterval is how often a log is read for more.
	logInterval = 100 * time.Millisecond
	// endInterval is how often it is checked whether the run has ended.
	endInterval = 2 * time.Second
	// movedGrace is how long a log that was moved away is still read: its writer may
	// not have noticed.
	movedGrace = 2 * time.Second
)

// logTail reads a log line by line, and continues where it grows.
type logTail struct {
	name   string
	long   int // lines that were too long
	stream io.ReadCloser
	file   *os.File // the stream where that may grow, else nil
	reader *bufio.Reader
	line   []byte // what has come of a line
	over   bool   // and was too long
	moved  time.Time
}

func newLogTail(name string, stream io.ReadCloser, file *os.File) *logTail {
	return &logTail{name: name, stream: stream, file: file, reader: bufio.NewReaderSize(stream, 64<<10)}
}

func (t *logTail) close() { _ = t.stream.Close() }

// each gives every line to show. With follow it waits at the end of the file, until
// ended says that nothing more will come.
func (t *logTail) each(ctx context.Context, follow bool, ended func(context.Context) bool, show func([]byte) error) error {
	checked, last := time.Time{}, false
	for {
		if err := t.rest(ctx, show); err != nil || ctx.Err() != nil {
			return err
		}
		if !follow || t.file == nil {
			return t.flush(show)
		}
		again, err := t.reopen(show, last)
		switch {
		case err != nil:
			return err
		case again:
			continue
		case last:
			return t.flush(show)
		case time.Since(checked) > endInterval:
			checked, last = time.Now(), ended(ctx)
		}
		if !last && !pause(ctx, logInterval) {
			return nil
		}
	}
}

// rest reads what there is.
func (t *logTail) rest(ctx context.Context, show func([]byte) error) error {
	for ctx.Err() == nil {
		piece, err := t.reader.ReadSlice('\n')
		if !t.over && len(t.line)+len(piece) > maxLogLine {
			t.over, t.line = true, nil
			t.long++
		}
		if !t.over {
			t.line = append(t.line, piece...)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return fmt.Errorf("read %s: %w", t.name, err)
		default:
			if err := t.flush(show); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush shows the line at hand.
func (t *logTail) flush(show func([]byte) error) error {
	line, over := t.line, t.over
	t.line, t.over = t.line[:0], false
	if over || len(line) == 0 {
		return nil
	}
	return show(line)
}

// reopen begins again where the log was cut off, and turns to a new one that has
// taken its place, now or when nothing more comes to the old one. It reports whether
// there is more to read.
func (t *logTail) reopen(show func([]byte) error, now bool) (bool, error) {
	own, err := t.file.Stat()
	if err != nil {
		return false, fmt.Errorf("read %s: %w", t.name, err)
	}
	if at, err := t.file.Seek(0, io.SeekCurrent); err == nil && own.Size() < at {
		if _, err := t.file.Seek(0, io.SeekStart); err != nil {
			return false, fmt.Errorf("begin %s again: %w", t.name, err)
		}
		t.reader.Reset(t.file)
		return true, t.flush(show)
	}
	there, err := os.Stat(t.name)
	if err != nil || os.SameFile(own, there) {
		t.moved = time.Time{}
		return false, nil
	}
	if t.moved.IsZero() {
		t.moved = time.Now()
	}
	if !now && time.Since(t.moved) < movedGrace {
		return false, nil
	}
	file, err := os.Open(t.name)
	if err != nil {
		return false, nil // it was moved again; the next poll finds the one after
	}
	_ = t.file.Close()
	t.stream, t.file, t.moved = file, file, time.Time{}
	t.reader.Reset(file)
	return true, t.flush(show)
}
