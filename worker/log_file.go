package main

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// checkInterval is the interval of checks that the log file is still at its path.
const checkInterval = time.Second

// logFile is a log file in append mode. If its path has another file, or none, because logs were rotated, it opens a
// new one there.
type logFile struct {
	path string

	mu      sync.Mutex
	file    *os.File
	checked time.Time
}

func openLogFile(path string) (*logFile, error) {
	l := &logFile{path: path, checked: time.Now()}
	return l, l.openFile()
}

func (l *logFile) openFile() error {
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	if l.file != nil {
		_ = l.file.Close()
	}
	l.file = file
	return nil
}

// Write writes a record. If the path cannot be opened again, records go to the previous file.
func (l *logFile) Write(record []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.checked) > checkInterval {
		l.checked = time.Now()
		if l.hasMoved() {
			_ = l.openFile()
		}
	}
	if _, err := l.file.Write(escapeRecord(record)); err != nil {
		return 0, err
	}
	return len(record), nil
}

// escapeRecord escapes, in a JSON record, the characters that control a terminal or the direction of text. The
// escapes of JSON are equivalent.
func escapeRecord(record []byte) []byte {
	if !bytes.ContainsFunc(record, isObeyed) {
		return record
	}
	out := make([]byte, 0, len(record)+16)
	for _, r := range string(record) {
		if isObeyed(r) {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// isObeyed reports whether a terminal may interpret a character, because it is not printable. JSON escapes the
// characters below 0x20, except for the newline that ends the record.
func isObeyed(r rune) bool {
	return r >= 0x7f && r <= 0xffff && r != utf8.RuneError && !unicode.IsPrint(r)
}

// hasMoved reports whether the file is no longer at its path.
func (l *logFile) hasMoved() bool {
	there, err := os.Stat(l.path)
	if err != nil {
		return os.IsNotExist(err)
	}
	own, err := l.file.Stat()
	return err != nil || !os.SameFile(there, own)
}

func (l *logFile) closeFile() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.file.Close()
}
