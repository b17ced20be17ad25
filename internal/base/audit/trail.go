// Package audit keeps a log of who did what, as JSON lines of which each has the hash of the one before. Nobody can
// change, remove or insert a line without a trace, except at the end of the file.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"reprise/internal/base/secrets"
)

// ErrUnwritable means that the log cannot be written now, so that what should be in it must not be done.
var ErrUnwritable = errors.New("the audit log cannot be written")

// ErrLocked means that another process writes to the log.
var ErrLocked = errors.New("another process writes to this audit log; each needs a file of its own")

// Trail is an audit log that a process writes. It is safe for concurrent use. Nil is the log of a program that keeps
// none: writing to it succeeds and has no effect.
type Trail struct {
	path    string
	program string
	masked  *secrets.Masker

	mu     sync.Mutex
	file   *os.File
	size   int64  // bytes of the file that this process knows
	number int64  // of the last line
	hash   string // of the last line
	broken error  // why nothing can be written until the log is opened again

	syncing sync.Mutex
	synced  int64 // number of the last line that is on the disk
}

// Open opens a log to continue it, or creates it. program is serve or worker; masked hides the secrets that it knows,
// nil for none. A last line that was cut short, because the process was killed or the disk was full, stays, and the
// next line says so. Without a path, it returns nil, which logs nothing; errors name the flag --audit-log.
func Open(path, program string, masked *secrets.Masker) (*Trail, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--audit-log: %w", err)
	}
	t := &Trail{path: path, program: program, masked: masked, file: file}
	if err := t.continueFile(); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("--audit-log: %s: %w", path, err)
	}
	return t, nil
}

// continueFile locks the file, and continues after its last line.
func (t *Trail) continueFile() error {
	info, err := t.file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	}
	if err := syscall.Flock(int(t.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return ErrLocked
		}
		return fmt.Errorf("lock it: %w", err)
	}
	if info, err = t.file.Stat(); err != nil { // the last owner may have written until it gave up the lock
		return err
	}
	end, err := readEnd(t.file, info.Size())
	if err != nil {
		return err
	}
	t.size, t.number, t.hash = info.Size(), end.number, end.hash
	if end.unended {
		if err := t.appendBytes([]byte("\n")); err != nil {
			return err
		}
	}
	if end.torn {
		return t.Write(LoggedAction{Proof: ProofNone, Action: Recovered, Outcome: Done})
	}
	return nil
}

// Close ends the log of this process. It unlocks the file itself, because closing it does not while a process that this one
// is starting has the file too.
func (t *Trail) Close() error {
	if t == nil {
		return nil
	}
	return errors.Join(syscall.Flock(int(t.file.Fd()), syscall.LOCK_UN), t.file.Close())
}

// Path returns the path of the log; "" if there is none.
func (t *Trail) Path() string {
	if t == nil {
		return ""
	}
	return t.path
}

// Write appends a line, and returns once it is on the disk. The error is ErrUnwritable.
func (t *Trail) Write(of LoggedAction) error {
	_, err := t.writeLine(of)
	return err
}

// WriteChange appends a line about a changed file of the operator; failed is why it could not be read.
func (t *Trail) WriteChange(what string, failed error) error {
	of := LoggedAction{Proof: ProofNone, Action: FileChanged, Target: ActionTarget{File: what}, Outcome: Done}
	if failed != nil {
		of.Outcome = Refused
	}
	return t.Write(of)
}

// Begin appends the line of an action that begins. end appends the line that says how it ended, which refers to the
// first one. The error is ErrUnwritable; the action must not be performed then.
func (t *Trail) Begin(of LoggedAction) (end func(ActionTarget, ActionOutcome) error, err error) {
	of.Outcome = Begun
	number, err := t.writeLine(of)
	if err != nil {
		return nil, err
	}
	return func(target ActionTarget, outcome ActionOutcome) error {
		of.Begun, of.Target, of.Outcome = number, target, outcome
		return t.Write(of)
	}, nil
}

func (t *Trail) writeLine(of LoggedAction) (int64, error) {
	if t == nil {
		return 0, nil
	}
	of.mask(t.masked)
	number, err := t.appendLine(of)
	if err == nil {
		err = t.syncTo(number)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %s: %w", ErrUnwritable, t.path, err)
	}
	return number, nil
}

// appendLine appends a line, and returns its number.
func (t *Trail) appendLine(of LoggedAction) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkFile(); err != nil {
		return 0, err
	}
	line := chainedLine{Number: t.number + 1, Time: time.Now().UTC(), Program: t.program, LoggedAction: of, Previous: t.hash}
	text, err := line.encode()
	if err != nil {
		return 0, err
	}
	if err := t.appendBytes(append(text, '\n')); err != nil {
		return 0, err
	}
	t.number, t.hash = line.Number, hashOf(text)
	return t.number, nil
}

// checkFile reports whether the path still leads to the file, and nobody else has written to it or cut it short: what
// is written to a file that was removed is lost.
func (t *Trail) checkFile() error {
	if t.broken != nil {
		return t.broken
	}
	own, err := t.file.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(t.path)
	switch {
	case err != nil:
		return err
	case !os.SameFile(own, named):
		return errors.New("another file has taken its place; to begin another file, restart the program")
	case own.Size() != t.size:
		return errors.New("something else has written to it, or cut it short; restart the program to continue it")
	}
	return nil
}

// appendBytes writes to the end of the file. If only a part can be written, that is removed again.
func (t *Trail) appendBytes(text []byte) error {
	n, err := t.file.Write(text)
	if err == nil {
		t.size += int64(n)
		return nil
	}
	if n > 0 {
		if undo := t.file.Truncate(t.size); undo != nil {
			t.broken = fmt.Errorf("a line was written in part: %w", err)
		}
	}
	return err
}

// syncTo returns once a line is on the disk. Lines that were written meanwhile share one sync. After an error it is
// unknown which of them are there, so nothing is written any more.
func (t *Trail) syncTo(number int64) error {
	t.syncing.Lock()
	defer t.syncing.Unlock()
	if t.synced >= number {
		return nil
	}
	t.mu.Lock()
	last, broken := t.number, t.broken
	t.mu.Unlock()
	if broken != nil {
		return broken
	}
	if err := t.file.Sync(); err != nil {
		t.mu.Lock()
		t.broken = fmt.Errorf("it cannot be written to the disk: %w", err)
		t.mu.Unlock()
		return err
	}
	t.synced = last
	return nil
}

// fileEnd is the end of a log: the number and hash of its last line.
type fileEnd struct {
	number  int64
	hash    string
	torn    bool // a part of the line is missing
	unended bool // its line break is missing
}

// errNoLog means that a file is no audit log, so nothing is appended to it.
var errNoLog = errors.New("its last line is not one of an audit log, so nothing is appended; name another file, or move this one away")

// readEnd reads the end of a file of a size.
func readEnd(file io.ReaderAt, size int64) (fileEnd, error) {
	if size == 0 {
		return fileEnd{}, nil
	}
	tail := make([]byte, min(size, 2*mostLine))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil {
		return fileEnd{}, err
	}
	before, last := cutLast(bytes.TrimSuffix(tail, []byte("\n")))
	end := fileEnd{hash: hashOf(last), unended: tail[len(tail)-1] != '\n'}
	if line, err := decodeLine(last); err == nil {
		end.number = line.Number
		return end, nil
	}
	end.number, end.torn = 1, true
	if len(before) == 0 { // a log begins with the line, if any
		begins := int64(len(tail)) == size && (bytes.HasPrefix(last, []byte(firstBytes)) || bytes.HasPrefix([]byte(firstBytes), last))
		if !begins {
			return fileEnd{}, errNoLog
		}
		return end, nil
	}
	_, before = cutLast(before[:len(before)-1])
	line, err := decodeLine(before)
	if err != nil {
		return fileEnd{}, errNoLog
	}
	end.number = line.Number + 1
	return end, nil
}

// cutLast returns the last line of a text, and what is before it.
func cutLast(text []byte) (before, last []byte) {
	at := bytes.LastIndexByte(text, '\n')
	return text[:at+1], text[at+1:]
}

// hashOf returns the SHA-256 of a line without its line break, in hex.
func hashOf(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// decodeLine decodes a line, without its line break.
func decodeLine(text []byte) (chainedLine, error) {
	var line chainedLine
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&line); err != nil {
		return line, err
	}
	if again, err := line.encode(); err != nil || !bytes.Equal(again, text) {
		return line, errors.New("it is not written as an audit log writes it")
	}
	return line, nil
}
