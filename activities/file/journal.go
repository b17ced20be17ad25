package file

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"reprise/activities/tool"
	"reprise/internal/base/private"
	"reprise/interpreter"
)

// journalSuffix makes the journal's name from the file's.
const journalSuffix = private.Folder

// typeMoved is the type of the error of a file that was removed or replaced during a write.
const typeMoved = "moved"

// journal records which writes a file contains. Its lines are words with a space between; words
// after these are ignored:
//
//	begin <size before> <bytes> <key> <sum>
//	replace <bytes> <key> <sum>
//	done <key> <fingerprint> <rows> [<call> <written> <forget> <at> <continuation>]
//	forget
//
// The words after done are a note (interpreter.Note): at is its time in seconds since 1970, the
// continuation is in base64, or "-" once it was dropped. An empty word is "-". A begin without
// its done is a write that was cut short; what it left behind is cut off before the next write.
// A replace without its done has happened as a whole or not at all. The sum is that of the last
// bytes that the write puts into the file: where they are not there any more, the file is not
// the one that the journal speaks of, and all lines before forget mean nothing. The journal is
// used under its lock only.
type journal struct {
	file  *os.File
	cache *journalCache
}

// journalCache remembers what was read, so that a write reads only what other
// processes have added since.
type journalCache struct {
	mu    sync.Mutex // held by no other than the owner of the file's lock
	inode uint64
	read  int64 // bytes read, whole lines
	keys  map[string]tool.WrittenBefore
	notes map[string][]notePosition // by call, in the order of Written
	idle  int64                     // bytes of notes that nobody needs any more
	open  *openWrite                // a begin or replace without its done
	last  *openWrite                // the last one with its done that put something into the file
}

// notePosition is where the journal has the continuation of a note.
type notePosition struct {
	written int
	at      int64 // of its base64
	length  int
}

// openWrite is a write as its first line describes it.
type openWrite struct {
	size     int64 // of the file before; 0 where it is replaced
	bytes    int64
	sum      string // "" in journals of old
	replaces bool
}

// summedBytes is how many bytes at the end of a write its checksum covers.
const summedBytes = 4 << 10

func sumOf(end []byte) string {
	digest := sha256.Sum256(end)
	return hex.EncodeToString(digest[:8])
}

// summedEnd returns the end of a write, which the journal has a checksum of.
func summedEnd(content []byte) []byte { return content[max(0, len(content)-summedBytes):] }

// isIn reports whether the file contains this write.
func (o *openWrite) isIn(w *fileWrite) (bool, error) {
	file, info, err := w.openExisting(os.O_RDONLY)
	if err != nil || file == nil {
		return false, err
	}
	defer file.Close()
	if info.Size() < o.size+o.bytes {
		return false, nil
	}
	if o.sum == "" {
		return true, nil
	}
	end := make([]byte, min(o.bytes, summedBytes))
	if _, err := file.ReadAt(end, o.size+o.bytes-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return sumOf(end) == o.sum, nil
}

// endsAt reports whether the file still ends with the recorded write, so that nobody else has written since.
func (j *journal) endsAt(size int64) bool {
	j.cache.mu.Lock()
	defer j.cache.mu.Unlock()
	last := j.cache.last
	return last != nil && last.size+last.bytes == size
}

// openJournal reads new lines, discards the journal if it belongs to another file, and undoes
// an unfinished write.
func (t *Tool) openJournal(w *fileWrite, file *os.File) (*journal, error) {
	t.mu.Lock()
	cache := t.journals[w.path]
	if cache == nil {
		cache = &journalCache{}
		t.journals[w.path] = cache
	}
	t.mu.Unlock()
	cache.mu.Lock()
	defer cache.mu.Unlock()
	j := &journal{file: file, cache: cache}
	if err := j.catchUp(); err != nil {
		return nil, err
	}
	if err := j.verifyFile(w); err != nil {
		return nil, err
	}
	return j, j.undoUnfinished(w)
}

func (j *journal) catchUp() error {
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	var inode uint64
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	c := j.cache
	if c.keys == nil || inode != c.inode || info.Size() < c.read {
		c.inode, c.read = inode, 0
		c.forgetAll()
	}
	lines := bufio.NewReader(io.NewSectionReader(j.file, c.read, info.Size()-c.read))
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil // the rest of a line was cut short by a crash; the next one is written over it
		}
		if err != nil {
			return err
		}
		c.applyLine(strings.TrimSuffix(line, "\n"))
		c.read += int64(len(line))
	}
}

func (c *journalCache) forgetAll() {
	c.keys, c.notes, c.open, c.last = map[string]tool.WrittenBefore{}, map[string][]notePosition{}, nil, nil
}

// applyLine reads a line, which begins at c.read.
func (c *journalCache) applyLine(line string) {
	words := strings.Split(line, " ")
	words = append(words, make([]string, doneWords)...) // those that are missing are ""
	switch words[0] {
	case "begin":
		size, err := strconv.ParseInt(words[1], 10, 64)
		if count, errBytes := strconv.ParseInt(words[2], 10, 64); err == nil && errBytes == nil {
			c.open = &openWrite{size: size, bytes: count, sum: words[4]}
		}
	case "replace":
		if count, err := strconv.ParseInt(words[1], 10, 64); err == nil {
			c.open = &openWrite{bytes: count, sum: words[3], replaces: true}
		}
	case "done":
		rows, _ := strconv.ParseInt(words[3], 10, 64)
		c.keys[words[1]] = tool.WrittenBefore{Fingerprint: strings.Trim(words[2], "-"), Rows: rows}
		c.addNote(line, words)
		if c.open != nil && (c.open.bytes > 0 || c.open.replaces) {
			c.last = c.open
		}
		c.open = nil
	case "forget":
		c.forgetAll()
	}
}

// doneWords is how many words a done with a note has, noteWord the number of
// the first word of the note.
const (
	doneWords = 9
	noteWord  = 4
)

// addNote reads the note of a done.
func (c *journalCache) addNote(line string, words []string) {
	call, continuation := words[noteWord], words[doneWords-1]
	written, err := strconv.Atoi(words[noteWord+1])
	forget, errForget := strconv.Atoi(words[noteWord+2])
	if call == "" || err != nil || errForget != nil {
		return
	}
	remaining := c.notes[call][:0]
	for _, place := range c.notes[call] {
		if place.written > forget {
			remaining = append(remaining, place)
		} else {
			c.idle += int64(place.length)
		}
	}
	c.notes[call] = append(remaining, notePosition{
		written: written, at: c.read + int64(len(line)-len(continuation)), length: len(continuation),
	})
}

// verifyFile forgets writes to a file that was removed, renamed, replaced or cut. Repeated
// writes are then made again.
func (j *journal) verifyFile(w *fileWrite) error {
	c := j.cache
	if c.last == nil {
		return nil
	}
	stands, err := c.last.isIn(w)
	if err == nil && !stands && c.open != nil && c.open.replaces {
		stands, err = c.open.isIn(w) // replaced, and then the worker died
	}
	if err != nil || stands {
		return err
	}
	return j.appendLine("forget")
}

// undoUnfinished cuts off what an unfinished write left.
func (j *journal) undoUnfinished(w *fileWrite) error {
	open := j.cache.open
	if open == nil || open.replaces || w.overwrite {
		return nil
	}
	file, _, err := w.openExisting(os.O_RDWR)
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
		if err := undoAppend(file, open.size, open.bytes); err != nil {
			return err
		}
	}
	j.cache.open = nil
	return nil
}

// undoAppend removes what an interrupted write of so many bytes has appended after size. A file
// that is longer than this write could have made it was changed by somebody else and is left
// unchanged.
func undoAppend(file *os.File, size, bytes int64) error {
	info, err := file.Stat()
	if err != nil || info.Size() <= size || info.Size() > size+bytes {
		return err
	}
	return errors.Join(file.Truncate(size), file.Sync())
}

func (j *journal) writtenBefore(key string) (before tool.WrittenBefore, known bool) {
	j.cache.mu.Lock()
	defer j.cache.mu.Unlock()
	before, known = j.cache.keys[journalKey(key)]
	return before, known
}

// notedContinuation returns the continuation of a note, nil if there is none.
func (j *journal) notedContinuation(call string, written int) ([]byte, error) {
	notes, err := j.recallNotes(call, written-1)
	if err != nil || len(notes) == 0 || notes[0].Written != written {
		return nil, err
	}
	return notes[0].Continuation, nil
}

// recallNotes returns the notes that a call made after one of its writes.
func (j *journal) recallNotes(call string, behind int) ([]interpreter.LedgerEntry, error) {
	j.cache.mu.Lock()
	defer j.cache.mu.Unlock()
	var notes []interpreter.LedgerEntry
	for _, place := range j.cache.notes[call] {
		if place.written <= behind {
			continue
		}
		encoded := make([]byte, place.length)
		if _, err := j.file.ReadAt(encoded, place.at); err != nil {
			return nil, err
		}
		if encoded = bytes.TrimLeft(encoded, "-"); len(encoded) == 0 {
			notes = append(notes, interpreter.LedgerEntry{Call: call, Written: place.written, Continuation: []byte{}})
			continue
		}
		continuation, err := base64.StdEncoding.AppendDecode(nil, encoded)
		if err != nil {
			return nil, fmt.Errorf("decode a note: %w", err)
		}
		notes = append(notes, interpreter.LedgerEntry{Call: call, Written: place.written, Continuation: continuation})
	}
	return notes, nil
}

// blankNotes overwrites the continuations in a call's notes, up to one of its writes. Lines
// keep their lengths, because other readers remember where later lines begin.
func (j *journal) blankNotes(call string, upTo int) error {
	j.cache.mu.Lock()
	defer j.cache.mu.Unlock()
	for _, place := range j.cache.notes[call] {
		if place.written > upTo {
			continue
		}
		if _, err := j.file.WriteAt(bytes.Repeat([]byte{'-'}, place.length), place.at); err != nil {
			return err
		}
	}
	return nil
}

func (j *journal) recordBegin(key string, size int64, content []byte) error {
	return j.recordLine(fmt.Sprintf("begin %d %d %s %s", size, len(content), journalKey(key), sumOf(summedEnd(content))))
}

func (j *journal) recordReplace(key string, content []byte) error {
	return j.recordLine(fmt.Sprintf("replace %d %s %s", len(content), journalKey(key), sumOf(summedEnd(content))))
}

// recordEnd records that the write of an entry is done, and how its call continues.
func (j *journal) recordEnd(entry tool.LedgerRecord, rows int) error {
	line := fmt.Sprintf("done %s %s %d", journalKey(entry.Operation), cmp.Or(entry.Fingerprint, "-"), rows)
	if note := entry.Note; note != nil {
		if err := j.blankNotes(note.Call, note.Forget); err != nil {
			return err
		}
		line += fmt.Sprintf(" %s %d %d %d %s", note.Call, note.Written, note.Forget, time.Now().Unix(),
			base64.StdEncoding.EncodeToString(note.Continuation))
	}
	return j.recordLine(line)
}

// recordLine appends a line.
func (j *journal) recordLine(line string) error {
	j.cache.mu.Lock()
	defer j.cache.mu.Unlock()
	return j.appendLine(line)
}

// appendLine writes a line and makes sure that it is on disk before the write that it
// announces.
func (j *journal) appendLine(line string) error {
	// Without the rest of a line that a crash has cut short.
	if err := j.file.Truncate(j.cache.read); err != nil {
		return err
	}
	if _, err := j.file.WriteAt([]byte(line+"\n"), j.cache.read); err != nil {
		return errors.Join(err, j.file.Truncate(j.cache.read))
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	j.cache.applyLine(line)
	j.cache.read += int64(len(line)) + 1
	return nil
}

// journalKey keeps a key one word of a line.
func journalKey(key string) string {
	return strings.NewReplacer(" ", "_", "\n", "_", "\r", "_").Replace(key)
}
