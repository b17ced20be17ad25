package file

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"reprise/activities/format"
	"reprise/activities/tool"
	"reprise/internal/base/private"
	"reprise/internal/base/sleep"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// BeginsItself marks a tool that waits before it acts.
func (*Tool) BeginsItself() {}

// Write writes rows; see Spec.
func (t *Tool) Write(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	path, options, err := t.writeTarget(in)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	mode, err := tool.ChoiceField(in, playbook.FieldMode, modeAppend, modeAppend, playbook.ModeOverwrite)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	columns, typed, err := readColumns(in, options.Format)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	record := tool.LedgerRecord{Operation: in.OperationKey, Fingerprint: in.Fingerprint, Note: in.Note}
	if writesObjects(in, options) {
		w := &objectWrite{
			WriteOptions: options, overwrite: mode == playbook.ModeOverwrite, named: columns, typed: typed, rows: in.SinkRows(), given: in.SinkRows(), run: in.RunID, page: in.Page,
			LedgerRecord: record, staging: in.Staging, paths: in.RowPaths,
		}
		if err := w.readPublishing(in); err != nil {
			return interpreter.ToolResult{}, err
		}
		if w.remote, err = t.openRemote(ctx, in, path); err != nil {
			return interpreter.ToolResult{}, err
		}
		w.stage = w.remote
		if err := t.readRejected(ctx, in, w); err != nil {
			return interpreter.ToolResult{}, err
		}
		return t.writeRemote(ctx, in, w)
	}
	if err := refuseForFiles(in); err != nil {
		return interpreter.ToolResult{}, err
	}
	if in.RowPaths != nil {
		return interpreter.ToolResult{}, tool.ConfigErrorf("step %q: %s", in.Step, playbook.RowPathProblem)
	}
	to, err := t.openPlace(in, path, "write", true)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	defer func() { _ = to.Close() }()
	w := &fileWrite{
		place: to, path: path, WriteOptions: options, overwrite: mode == playbook.ModeOverwrite, columns: columns, rows: in.SinkRows(),
		LedgerRecord: record,
	}
	return t.writeOnce(ctx, in, w)
}

// refuseForFiles refuses fields that only apply to folders of files.
func refuseForFiles(in interpreter.ToolInput) error {
	for _, name := range []string{fieldTargetSize, playbook.FieldAllowEmpty, playbook.FieldRejected} {
		if in.Fields[name].Data != nil {
			return tool.ConfigErrorf("step %q: %s applies to files below a connection and to Parquet; add auth, or remove it", in.Step, name)
		}
	}
	return nil
}

// fileWrite is one write to one file.
type fileWrite struct {
	*place
	format.WriteOptions

	path      string // as the author has it
	overwrite bool
	columns   []string
	rows      []any
	tool.LedgerRecord
}

// writeResult returns the result of a write of rows.
func (w *fileWrite) writeResult(rows int) interpreter.ToolResult {
	return interpreter.ToolResult{Data: expression.Of(map[string]any{"path": w.path, "rows_written": rows})}
}

// writeOnce makes the write unless its key is in the journal. A lock on the journal
// keeps other writers of the file out, in this process and in others.
func (t *Tool) writeOnce(ctx context.Context, in interpreter.ToolInput, w *fileWrite) (interpreter.ToolResult, error) {
	file, err := w.lockJournal(ctx)
	if err != nil {
		return interpreter.ToolResult{}, w.writeError(w.path+journalSuffix, err)
	}
	defer file.Close() // gives the lock back, too
	if err := tool.BeginAttempt(ctx); err != nil {
		return interpreter.ToolResult{}, err
	}
	journal, err := t.openJournal(w, file)
	if err != nil {
		return interpreter.ToolResult{}, w.writeError(w.path+journalSuffix, err)
	}
	result, done, err := w.lookUp(journal)
	if !done && err == nil {
		result, err = w.writeResult(len(w.rows)), w.writeFile(ctx, journal)
	}
	if err != nil {
		return interpreter.ToolResult{}, w.writeError(w.path, err)
	}
	if err := journal.tidyUp(w); err != nil {
		tool.Logger(ctx, t.res.Logger, in).Warn("cannot remove old entries of a journal", "file", w.path, "error", err)
	}
	return result, nil
}

// lookUp looks the write up in the journal. done is true if it was made before.
func (w *fileWrite) lookUp(journal *journal) (result interpreter.ToolResult, done bool, err error) {
	if w.Note != nil {
		noted, err := journal.notedContinuation(w.Note.Call, w.Note.Written)
		if noted != nil || err != nil {
			return interpreter.ToolResult{Noted: noted}, true, err
		}
	}
	before, known := journal.writtenBefore(w.Operation)
	if !known || w.Operation == "" {
		return interpreter.ToolResult{}, false, nil
	}
	if err := w.Check(before, "file "+w.path, len(w.rows)); err != nil {
		return interpreter.ToolResult{}, true, err
	}
	if w.Note != nil {
		err = journal.recordEnd(w.LedgerRecord, int(before.Rows))
	}
	return w.writeResult(0), true, err
}

// writeError returns the error of a write, or that of the attempt.
func (w *fileWrite) writeError(path string, err error) error {
	if _, own := errors.AsType[*tool.Error](err); own || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fileError("write", path, err)
}

// Files are readable for others too, if the umask allows; journals only for the worker.
const (
	fileMode    = 0o644
	journalMode = 0o600
)

// lockJournal opens the journal and waits for its lock. If the journal was removed while it
// waited, it tries again, because the lock of a removed file excludes nobody.
func (w *fileWrite) lockJournal(ctx context.Context) (*os.File, error) {
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		file, err := w.folder.OpenFile(w.name+journalSuffix, os.O_RDWR|os.O_CREATE, journalMode)
		if err != nil {
			return nil, err
		}
		if err := lockFile(ctx, file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if w.isAt(w.name+journalSuffix, file) {
			return file, nil
		}
		_ = file.Close()
	}
}

// isAt reports whether the open file is the one that has the name now.
func (w *fileWrite) isAt(name string, file *os.File) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := w.folder.Stat(name)
	return err == nil && os.SameFile(mine, there)
}

// lockFile waits for the lock, as long as ctx allows. A blocking flock could
// not be ended from outside.
func lockFile(ctx context.Context, file *os.File) error {
	const pause = 10 * time.Millisecond
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return fileError("lock", filepath.Base(file.Name()), err)
		}
		if sleep.For(ctx, pause) != nil {
			return ctx.Err()
		}
	}
}

func (w *fileWrite) writeFile(ctx context.Context, journal *journal) error {
	if w.overwrite {
		return w.writeAnew(journal)
	}
	file, info, err := w.openExisting(os.O_RDWR)
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
	}
	before, err := w.readBefore(ctx, journal, file, info)
	if err != nil {
		return err
	}
	content, err := w.packedContent(before)
	if err != nil {
		return tool.Errorf("write %s as %s: %w", w.path, w.Format, err)
	}
	if err := journal.recordBegin(w.Operation, before.size, content); err != nil {
		return err
	}
	if file == nil {
		if file, err = w.folder.OpenFile(w.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode); err != nil {
			return err
		}
		defer file.Close()
	}
	return w.appendContent(journal, file, before.size, content)
}

// writeAnew replaces the file by one with these rows only.
func (w *fileWrite) writeAnew(journal *journal) error {
	content, err := w.packedContent(fileBefore{})
	if err != nil {
		return tool.Errorf("write %s as %s: %w", w.path, w.Format, err)
	}
	if err := journal.recordReplace(w.Operation, content); err != nil {
		return err
	}
	if err := w.replaceContent(content); err != nil {
		return err
	}
	return journal.recordEnd(w.LedgerRecord, len(w.rows))
}

// openExisting opens the file, and returns nil if there is none.
func (w *fileWrite) openExisting(access int) (*os.File, os.FileInfo, error) {
	file, info, err := w.openFile(access)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.Join(tool.Errorf("write %s: it is not a file", w.path), file.Close())
	}
	return file, info, nil
}

// newContent is what this write adds to the file.
func (w *fileWrite) newContent(before fileBefore) (content []byte, err error) {
	columns, cell := w.columns, asItIs
	if w.EscapeFormulas {
		cell, before.columns = escapeFormula, unescapedNames(before.columns)
	}
	switch {
	case w.Format == format.JSONL:
		content, err = formatLines(w.rows)
	case before.columns != nil:
		content, err = formatRows(w.rows, before.columns, false, cell)
	case columns == nil:
		columns = columnsOf(w.rows)
		fallthrough
	default:
		content, err = formatRows(w.rows, columns, true, cell)
	}
	if before.isOpen && len(content) > 0 {
		content = append([]byte{'\n'}, content...)
	}
	return content, err
}

// packedContent is what this write adds to the file, compressed as one member. A write without rows adds none, except to a new file, which readers of compressed files need.
func (w *fileWrite) packedContent(before fileBefore) ([]byte, error) {
	content, err := w.newContent(before)
	if err != nil || len(content) == 0 && before.size > 0 {
		return nil, err
	}
	return packBytes(content, w.Compression)
}

// appendContent writes at the end of the file as the journal recorded it. A failed write
// removes what it wrote, because there may be no later write to clean up.
func (w *fileWrite) appendContent(journal *journal, file *os.File, size int64, content []byte) error {
	_, err := file.WriteAt(content, size)
	if err == nil {
		err = file.Sync()
	}
	if err == nil && !w.isAt(w.name, file) {
		err = &tool.Error{
			Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Type: typeMoved,
			Message: "write " + w.path + ": the file was removed or replaced meanwhile",
		}
	}
	if err == nil {
		err = journal.recordEnd(w.LedgerRecord, len(w.rows))
	}
	if err != nil {
		return errors.Join(err, undoAppend(file, size, int64(len(content))))
	}
	return nil
}

// replaceContent replaces the content of the file.
func (w *fileWrite) replaceContent(content []byte) error {
	return w.swapFile(w.name, fileMode, func(to io.Writer) error {
		_, err := to.Write(content)
		return err
	})
}

// swapFile writes beside a file and renames, so that a reader sees the old content
// or the new.
func (w *fileWrite) swapFile(name string, mode os.FileMode, write func(io.Writer) error) error {
	beside := name + journalSuffix + private.BesideSuffix
	file, err := w.folder.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(file)
	if err := errors.Join(write(buffered), buffered.Flush(), errors.Join(file.Sync(), file.Close())); err != nil {
		return errors.Join(err, w.folder.Remove(beside))
	}
	if err := w.folder.Rename(beside, name); err != nil {
		return errors.Join(err, w.folder.Remove(beside))
	}
	return nil
}
