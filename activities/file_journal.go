package activities

import (
	"bytes"
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

// journal says which writes a file holds. Its lines are
//
//	begin <size before> <bytes> <key>
//	done <key>
//
// A begin without its done is a write that was cut short; what it left behind
// is cut off before the next write. The journal is used under its lock only.
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
	open  *openWrite // a begin without its done
}

type openWrite struct {
	size  int64
	bytes int64
}

// journal reads what is new and undoes a write that was cut short.
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
		c.inode, c.read, c.keys, c.open = inode, 0, map[string]bool{}, nil
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

func (c *journalCache) note(line string) {
	word, rest, _ := strings.Cut(line, " ")

	switch word {
	case "done":
		c.keys[rest] = true
		c.open = nil
	case "begin":
		size, rest, _ := strings.Cut(rest, " ")
		length, _, _ := strings.Cut(rest, " ")
		before, errSize := strconv.ParseInt(size, 10, 64)
		count, errBytes := strconv.ParseInt(length, 10, 64)

		if errSize == nil && errBytes == nil {
			c.open = &openWrite{size: before, bytes: count}
		}
	}
}

// undo cuts off what an unfinished write left. A file that is shorter than
// before it, or longer than it could have made it, was changed by somebody
// else since and stays as it is.
func (j *journal) undo(w *fileWrite) error {
	open := j.cache.open
	if open == nil || w.overwrite {
		return nil
	}

	info, err := w.root.Stat(w.path)
	if err == nil && info.Size() > open.size && info.Size() <= open.size+open.bytes {
		file, err := w.root.OpenFile(w.path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}

		if err := file.Truncate(open.size); err != nil {
			return err
		}

		if err := syncClose(file); err != nil {
			return err
		}
	}

	j.cache.open = nil

	return nil
}

func (j *journal) done(key string) bool {
	j.cache.mu.Lock()
	defer j.cache.mu.Unlock()

	return j.cache.keys[journalKey(key)]
}

func (j *journal) begin(key string, size int64, length int) error {
	return j.add(fmt.Sprintf("begin %d %d %s", size, length, journalKey(key)))
}

func (j *journal) end(key string) error {
	return j.add("done " + journalKey(key))
}

// add writes a line and makes sure that it is on the disk before what it
// speaks of.
func (j *journal) add(line string) error {
	j.cache.mu.Lock()
	defer j.cache.mu.Unlock()

	// Without the rest of a line that a crash has cut short.
	if err := j.file.Truncate(j.cache.read); err != nil {
		return err
	}

	if _, err := j.file.WriteAt([]byte(line+"\n"), j.cache.read); err != nil {
		return err
	}

	if err := j.file.Sync(); err != nil {
		return err
	}

	j.cache.read += int64(len(line)) + 1
	j.cache.note(line)

	return nil
}

// journalKey keeps a key on one line.
func journalKey(key string) string {
	return strings.NewReplacer("\n", "_", "\r", "_").Replace(key)
}
