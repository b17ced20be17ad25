package activities

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// journalSuffix makes the journal's name from the file's.
const journalSuffix = ".reprise"

// journal says which writes a file holds. Its lines are words with a space
// between; further words than these are left alone:
//
//	begin <size before> <bytes> <key> <sum>
//	replace <bytes> <key> <sum>
//	done <key>
//	forget
//
// A begin without its done is a write that was cut short; what it left behind
// is cut off before the next write. A replace without its done has happened as
// a whole or not at all. The sum is that of the last bytes that the write puts
// into the file: where they do not stand there any more, the file is not the
// one that the journal speaks of, and all lines before forget mean nothing. The
// journal is used under its lock only.
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
	keys  map[string]bool
	open  *openWrite // a begin or replace without its done
	last  *openWrite // the last one with its done that put something into the file
}

// openWrite is a write as its first line tells it.
type openWrite struct {
	size     int64 // of the file before; 0 where it is replaced
	bytes    int64
	sum      string // "" in journals of old
	replaces bool
}

// maxSummed is how much of the end of a write its sum is made of, in bytes.
const maxSummed = 4 << 10

func sumOf(end []byte) string {
	digest := sha256.Sum256(end)

	return hex.EncodeToString(digest[:8])
}

// summed is the end of a write, of which sumOf is noted.
func summed(content []byte) []byte { return content[max(0, len(content)-maxSummed):] }

// stands tells whether the file holds what the write has put there.
func (o *openWrite) stands(w *fileWrite) (bool, error) {
	file, info, err := w.existing(os.O_RDONLY)
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

	end := make([]byte, min(o.bytes, maxSummed))
	if _, err := file.ReadAt(end, o.size+o.bytes-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}

	return sumOf(end) == o.sum, nil
}

// journal reads what is new, forgets it where it speaks of another file, and
// undoes a write that was cut short.
func (t *fileTool) journal(w *fileWrite, file *os.File) (*journal, error) {
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

	if err := j.verify(w); err != nil {
		return nil, err
	}

	return j, j.undo(w)
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
		c.forget()
	}

	added, err := io.ReadAll(io.NewSectionReader(j.file, c.read, info.Size()-c.read))
	if err != nil {
		return err
	}

	for line := range bytes.Lines(added) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // cut short by a crash; the next line is written over it
		}

		c.note(strings.TrimSuffix(string(line), "\n"))
		c.read += int64(len(line))
	}

	return nil
}

func (c *journalCache) forget() { c.keys, c.open, c.last = map[string]bool{}, nil, nil }

func (c *journalCache) note(line string) {
	words := strings.Split(line, " ")
	words = append(words, make([]string, 5)...) // those that are missing are ""

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
		c.keys[words[1]] = true

		if c.open != nil && (c.open.bytes > 0 || c.open.replaces) {
			c.last = c.open
		}

		c.open = nil
	case "forget":
		c.forget()
	}
}

// verify forgets what was written to a file that is there no more: removed,
// renamed, replaced by another or cut. A write that comes again is then made
// again.
func (j *journal) verify(w *fileWrite) error {
	c := j.cache
	if c.last == nil {
		return nil
	}

	stands, err := c.last.stands(w)
	if err == nil && !stands && c.open != nil && c.open.replaces {
		stands, err = c.open.stands(w) // replaced, and then the worker died
	}

	if err != nil || stands {
		return err
	}

	return j.add("forget")
}

// undo cuts off what an unfinished write left.
func (j *journal) undo(w *fileWrite) error {
	open := j.cache.open
	if open == nil || open.replaces || w.overwrite {
		return nil
	}

	file, _, err := w.existing(os.O_RDWR)
	if err != nil {
		return err
	}

	if file != nil {
		defer file.Close()

		if err := takeBack(file, open.size, open.bytes); err != nil {
			return err
		}
	}

	j.cache.open = nil

	return nil
}

// takeBack cuts off what a write of so many bytes has put behind size. A file
// that is longer than the write could have made it was changed by somebody else
// and stays as it is.
func takeBack(file *os.File, size, bytes int64) error {
	info, err := file.Stat()
	if err != nil || info.Size() <= size || info.Size() > size+bytes {
		return err
	}

	return errors.Join(file.Truncate(size), file.Sync())
}

func (j *journal) done(key string) bool {
	j.cache.mu.Lock()
	defer j.cache.mu.Unlock()

	return j.cache.keys[journalKey(key)]
}

func (j *journal) begin(key string, size int64, content []byte) error {
	return j.tell(fmt.Sprintf("begin %d %d %s %s", size, len(content), journalKey(key), sumOf(summed(content))))
}

func (j *journal) replace(key string, content []byte) error {
	return j.tell(fmt.Sprintf("replace %d %s %s", len(content), journalKey(key), sumOf(summed(content))))
}

func (j *journal) end(key string) error {
	return j.tell("done " + journalKey(key))
}

// tell adds a line.
func (j *journal) tell(line string) error {
	j.cache.mu.Lock()
	defer j.cache.mu.Unlock()

	return j.add(line)
}

// add writes a line and makes sure that it is on the disk before what it
// speaks of.
func (j *journal) add(line string) error {
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

	j.cache.read += int64(len(line)) + 1
	j.cache.note(line)

	return nil
}

// journalKey keeps a key one word of a line.
func journalKey(key string) string {
	return strings.NewReplacer(" ", "_", "\n", "_", "\r", "_").Replace(key)
}
