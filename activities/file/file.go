// Package file is the tool that reads and writes files of the worker's directory.
package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// The formats of the file tool.
const (
	formatJSON  = "json"
	formatJSONL = "jsonl"
	formatCSV   = "csv"
	formatText  = "text"
)

// Tool reads and writes files under the worker's directory.
type Tool struct {
	res tool.Resources

	mu       sync.Mutex
	journals map[string]*journalCache // by path of the journal
}

var (
	_ tool.Ledger   = (*Tool)(nil)
	_ tool.Beginner = (*Tool)(nil)
)

// New makes the tool.
func New(res tool.Resources) *Tool {
	return &Tool{res: res, journals: map[string]*journalCache{}}
}

// Spec describes the tool.
func (t *Tool) Spec() playbook.ToolSpec {
	return playbook.ToolSpec{
		Name:    "file",
		Summary: "Reads a file; as a sink, writes rows as JSON Lines or CSV.",
		Doc: `Paths are relative to the worker's directory and cannot leave it.

A step reads: json gives the value, jsonl a list with one value per line, csv a
list of maps by the names of the first line (all values are text), and text the
text.

A sink writes its rows: args, else the result; a list is many rows. append adds
them at the end and overwrite replaces the file in one go. In CSV nested values
are JSON and nil is empty; the columns of a new file are the field columns, else
the names in all rows, sorted. Missing folders are made.

Each write notes its operation key in a journal beside the file, named like the
file with .reprise at its end. A write that was made before changes nothing. One
that fails, such as on a full disk, leaves nothing in the file, and one that was
cut short by the end of its worker is undone before the next. The journal may be
deleted when no run that wrote to the file is open.

The journal holds for the file it was written with. A file that was removed,
renamed, emptied or replaced is begun anew, and a write that comes again is made
again; so it is where somebody changed or cut what the last write has put there.
What others add at the end does no harm. Where the file goes during a write, the
write is an error of type moved and class retryable.`,
		Fields: []playbook.Field{
			{Name: "path", Kind: playbook.KindText, Required: true, Doc: "The file, relative to the worker's directory."},
			{Name: "format", Kind: playbook.KindText, Enum: []string{formatJSON, formatJSONL, formatCSV, formatText}, Default: "by the file's name", Doc: "The format; a sink writes jsonl or csv."},
			{Name: "mode", Kind: playbook.KindText, Enum: []string{"append", "overwrite"}, Default: "append", Doc: "What a sink does with a file that is there."},
			{Name: "columns", Kind: playbook.KindList, Doc: "The columns of a new CSV file, in order."},
		},
		Writes: true,
		Example: `step: report
tool: file
path: "reports/input.jsonl"
format: jsonl
`,
	}
}

// Run reads a file.
func (t *Tool) Run(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	path, format, err := t.target(in, formatJSON, formatJSONL, formatCSV, formatText)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	root, err := t.open(in)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	defer func() { _ = root.Close() }()
	if err := tool.Begin(ctx); err != nil {
		return interpreter.ToolResult{}, err
	}
	content, err := t.content(ctx, root, path)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	if ctx.Err() != nil {
		return interpreter.ToolResult{}, ctx.Err()
	}
	if err := t.admit(ctx, content, path, format); err != nil {
		return interpreter.ToolResult{}, err
	}
	v, err := parseFile(content, format)
	if err != nil {
		return interpreter.ToolResult{}, tool.Errorf("read %s as %s: %w", path, format, err)
	}
	return interpreter.ToolResult{Data: expression.Of(v)}, nil
}

// admit acquires the memory that the value of a file needs.
func (t *Tool) admit(ctx context.Context, content []byte, path, format string) error {
	switch format {
	case formatJSON, formatJSONL:
		return memory.AcquireJSON(ctx, content, t.res.MaxPayload, path)
	case formatCSV:
		rows, values := bytes.Count(content, []byte("\n")), bytes.Count(content, []byte(","))
		return memory.AcquireValue(ctx, int64(len(content)+rows*memory.MapBytes+(rows+values)*(memory.EntryBytes+memory.TextBytes)), path)
	}
	return memory.AcquireValue(ctx, int64(len(content)), path)
}

// target is the path, relative to the worker's directory, and the format.
func (t *Tool) target(in interpreter.ToolInput, accepted ...string) (path, format string, err error) {
	raw, err := tool.RequiredText(in, "path")
	if err != nil {
		return "", "", err
	}
	path = filepath.Clean(raw)
	if !filepath.IsLocal(path) || path == "." {
		return "", "", tool.ConfigErrorf("step %q: path is %q; it must be a file under the worker's directory, such as out/rows.jsonl",
			in.Step, raw)
	}
	format, err = tool.Choice(in, "format", "", accepted...)
	if err != nil || format != "" {
		return path, format, err
	}
	format = formatOf(path)
	for _, word := range accepted {
		if format == word {
			return path, format, nil
		}
	}
	return "", "", tool.ConfigErrorf("step %q: the name of %q does not say its format; set format to %s", in.Step, path, tool.OneOf(accepted))
}

func formatOf(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json":
		return formatJSON
	case ".jsonl", ".ndjson":
		return formatJSONL
	case ".csv":
		return formatCSV
	case ".txt", ".text", ".md":
		return formatText
	}
	return ""
}

// open opens the worker's directory. Nothing is opened outside it, also not
// through symbolic links.
func (t *Tool) open(in interpreter.ToolInput) (*os.Root, error) {
	root, err := os.OpenRoot(t.res.Directory)
	if err != nil {
		return nil, tool.ConfigErrorf("step %q: the worker's directory cannot be opened: %w", in.Step, err)
	}
	return root, nil
}

// content reads a whole file, at most MaxResponseBytes.
func (t *Tool) content(ctx context.Context, root *os.Root, path string) ([]byte, error) {
	// Opening a pipe would wait for its other end, so it is opened without.
	file, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fileError("read", path, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fileError("read", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, tool.Errorf("read %s: it is not a file", path)
	}
	limit := t.res.MaxResponseBytes
	content, err := memory.ReadAll(ctx, file, min(info.Size(), limit), limit)
	var waited *memory.WaitError
	switch {
	case errors.Is(err, memory.ErrTooLarge):
		return nil, tool.TooLargef("read %s: the file is over the limit of %d bytes", path, limit)
	case errors.As(err, &waited):
		return nil, err
	case err != nil:
		return nil, fileError("read", path, err)
	}
	return content, nil
}

// fileError classifies: what is missing or forbidden stays so, a full disk may
// not. The message names the path as the author gave it.
func fileError(verb, path string, err error) error {
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	e := &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable,
		Message: fmt.Sprintf("%s %s: %s", verb, path, err), Err: err,
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Class, e.Type = interpreter.ClassFinal, "not_found"
	case errors.Is(err, fs.ErrPermission), strings.Contains(err.Error(), "escapes from parent"):
		e.Class, e.Type = interpreter.ClassFinal, "permission"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		e.Type = "no_space"
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL):
		e.Class = interpreter.ClassFinal
	}
	return e
}
