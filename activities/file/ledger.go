package file

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"time"

	"reprise/activities/tool"
	"reprise/interpreter"
)

// maxIdleNotes bounds the bytes of unneeded notes in a journal, after which it is rewritten.
// Without it, a journal outgrows its file.
const maxIdleNotes = 8 << 20

// RecordsWrite reports whether a write is noted: each is in a file that is appended to. A manifest has room for the place of a transfer, which is
// small, and not for all that a call has collected.
func (t *Tool) RecordsWrite(in interpreter.ToolInput) bool {
	_, as, err := t.writeTarget(in)
	return err == nil && !writesObjects(in, as)
}

// RecallNotes gives the notes of a call.
func (t *Tool) RecallNotes(ctx context.Context, in interpreter.ToolInput) ([]interpreter.LedgerEntry, error) {
	path, as, err := t.writeTarget(in)
	if err != nil {
		return nil, err
	}
	if writesObjects(in, as) {
		return t.recallRemote(ctx, in, path)
	}
	to, err := t.openPlace(in, path, "write", false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = to.Close() }()
	w := &fileWrite{place: to, path: path, WriteOptions: as}
	if _, err := to.folder.Stat(to.name + journalSuffix); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	file, err := w.lockJournal(ctx)
	if err != nil {
		return nil, w.writeError(path+journalSuffix, err)
	}
	defer file.Close()
	journal, err := t.openJournal(w, file)
	if err != nil {
		return nil, w.writeError(path+journalSuffix, err)
	}
	notes, err := journal.recallNotes(in.Note.Call, in.Note.Written)
	if err != nil {
		return nil, w.writeError(path+journalSuffix, err)
	}
	return notes, nil
}

// ForgetNotes overwrites the contents of calls' notes. It is still known that the writes were made.
func (t *Tool) ForgetNotes(ctx context.Context, in interpreter.ToolInput, calls []string, _ bool) error {
	path, as, err := t.writeTarget(in)
	if err != nil || !t.RecordsWrite(in) {
		return err
	}
	to, err := t.openPlace(in, path, "write", false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	w := &fileWrite{place: to, path: path, WriteOptions: as}
	if _, err := to.folder.Stat(to.name + journalSuffix); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	file, err := w.lockJournal(ctx)
	if err != nil {
		return w.writeError(path+journalSuffix, err)
	}
	defer file.Close()
	journal, err := t.openJournal(w, file)
	if err != nil {
		return w.writeError(path+journalSuffix, err)
	}
	for _, call := range calls {
		if err := journal.blankNotes(call, math.MaxInt); err != nil {
			return w.writeError(path+journalSuffix, err)
		}
	}
	return nil
}

// tidyUp rewrites the journal without unneeded notes if these take much room.
func (j *journal) tidyUp(w *fileWrite) error {
	j.cache.mu.Lock()
	defer j.cache.mu.Unlock()
	c := j.cache
	if c.idle < maxIdleNotes {
		return nil
	}
	c.idle = 0 // also where this fails: the next time it is due again
	name := w.name + journalSuffix
	lines := bufio.NewReader(io.NewSectionReader(j.file, 0, c.read))
	return w.swapFile(name, journalMode, func(to io.Writer) error {
		for {
			line, err := lines.ReadString('\n')
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				_, err = io.WriteString(to, c.withoutNote(line))
			}
			if err != nil {
				return err
			}
		}
	})
}

// withoutNote returns a line without a note that was to be forgotten or is too old.
func (c *journalCache) withoutNote(line string) string {
	words := strings.Split(strings.TrimSuffix(line, "\n"), " ")
	if words[0] != "done" || len(words) != doneWords {
		return line
	}
	written, _ := strconv.Atoi(words[noteWord+1])
	at, _ := strconv.ParseInt(words[noteWord+3], 10, 64)
	for _, place := range c.notes[words[noteWord]] {
		if place.written == written && time.Since(time.Unix(at, 0)) < tool.NoteRetention {
			return line
		}
	}
	return strings.Join(words[:noteWord], " ") + "\n"
}
