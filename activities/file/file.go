// Package file is the tool that reads and writes files of the worker's directory.
package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"gocloud.dev/blob"

	"reprise/activities/format"
	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Tool reads and writes files under the worker's directory.
type Tool struct {
	res tool.Resources

	mu       sync.Mutex
	journals map[string]*journalCache // by path of the journal

	// Below connections.
	buckets map[string]*blob.Bucket // open ones, by their addresses
	probed  map[string]bool         // those that refuse to overwrite
	swept   map[string]time.Time    // when leftovers were looked for, by path
	staged  map[string]stagedEnd    // by what is staged
	remotes [remoteLocks]chan struct{}

	streams rowStreams
}

var (
	_ tool.Ledger   = (*Tool)(nil)
	_ tool.Beginner = (*Tool)(nil)
)

// New makes the tool.
func New(res tool.Resources) *Tool {
	t := &Tool{
		res: res, journals: map[string]*journalCache{},
		buckets: map[string]*blob.Bucket{}, probed: map[string]bool{}, swept: map[string]time.Time{},
		staged: map[string]stagedEnd{},
	}
	for i := range t.remotes {
		t.remotes[i] = make(chan struct{}, 1)
	}
	return t
}

// Spec describes the tool.
func (t *Tool) Spec() playbook.ToolSpec {
	return playbook.ToolSpec{
		Name:    "file",
		Summary: "Reads a file; as a sink, writes rows as JSON Lines, CSV or Parquet.",
		Doc:     docOfTool,
		Fields:  append(ownFields(), format.ReadingFields(fieldTexts, format.Formulas)...),
		Writes:  true,
		Example: `step: report
tool: file
path: "reports/input.jsonl"
format: jsonl
`,
	}
}

// fieldTexts describe the fields that say how a file is read and written.
var fieldTexts = format.FieldTexts{
	FormatDefault: "by the file's name", Format: "The format; a sink writes jsonl, csv or parquet.",
	CompressionDefault: "by the first bytes; in a sink by the name", Compression: "The compression of what is read; none uses the bytes as they are. A sink writes with gzip or zstd.",
}

// docOfTool is what the reference says of the tool.
const docOfTool = `Paths are relative to the worker's directory and cannot leave it; .. is refused. A
template in path is a single name, as in a url: in out/{{ name }}.csv, a slash in the
name becomes %2F and a percent sign %25. A value that is empty, nil, . or .. is a final
error. If the whole path is one template, it is used unchanged. The worker's own files,
.reprise and the files of connections and callers, cannot be read or written.

A step reads a file: json returns the value, jsonl a list with one value per line, csv a
list of maps from column names to texts, parquet a list of maps, and text the text.
Parquet has types: decimals keep their digits, times are RFC 3339 in UTC, or without a
zone, bytes are base64, intervals are ISO 8601, and NaN is a text. Without format, the
name of the file decides, such as orders.csv.gz; a compressed file with another name is
recognized as JSON, JSON Lines or text. Files compressed with gzip or zstd are
decompressed; size limits apply to the decompressed bytes. A file that is not in its
format is a final error, with the line.

As the source of a loop, a file of any size is read in pages of at most batch rows. JSON
and XML are read at once if batch is not set and they are small enough. The file is
identified by its size, modification time and ETag: if another file has taken its place
when the next page is read, the final error has type source_changed.

A sink writes rows: those in args, or the result if args is not set; a list is many
rows. append adds them at the end, after a line break if the last line lacks one.
overwrite replaces the file atomically. In CSV, nested values are JSON, nil is empty and
an empty text is "". The columns of a new file are those in the field columns, or else
all names in the rows, sorted. Missing folders are created. Rows are written in UTF-8.
It is a final error to append to a file in another charset, to CSV that ends within a
quoted value or whose first line names another delimiter, such as sep=;, or to JSON
Lines whose last line is cut.

compression: gzip or zstd, or a name such as orders.csv.gz, compresses what a sink
writes. Each write is a separate member (gzip) or frame (zstd); readers see one file. It
is a final error to append to a file that is not compressed in the same way, or whose
last member was cut. In Parquet, the pages inside the file are compressed.

Each write records its operation key in a journal beside the file, with the file's name
followed by .reprise. Repeating a write changes nothing. A write that fails, for example
on a full disk, leaves nothing in the file. If a worker dies during a write, that write
is undone before the next one. The journal can be deleted when no run that wrote to the
file is open.

The journal belongs to the file that it was started for. If the file was removed,
renamed, emptied or replaced, a new journal is started, and a repeated write happens
again; the same applies if somebody has changed or cut the rows of the last write. Text
that others add at the end does no harm. If the file is moved during a write, the write
fails with type moved and class retryable.

With auth, path is below a connection and cannot leave it: a folder such as
file:///var/lib/lake, or an object store such as s3://bucket/prefix?region=eu-central-1,
gs://bucket or azblob://container. Reading is the same as above. Objects cannot be
appended to, so path is a folder in a sink. Pages of a call and iterations of a loop are
staged, each as an object below _staging. At the end of the call or loop they become
files of about target_size. Then the next manifest, such as _manifest/00000012.json,
lists all files with the rows, and their hashes. append keeps the files of the previous
manifest, overwrite does not. A reader that follows the last manifest sees either the
old rows or the new ones. A call or loop that fails or is cancelled publishes nothing;
neither does overwrite if not everything was read. A single write is a file and a
manifest at once, as is each write of a step with incremental, or to a path that differs
between pages or elements. Files that no manifest lists are not part of the data, and
are removed after 7 days. Two writers take turns, and neither loses rows. A store that
does not support conditional writes (If-None-Match: *) is a final error.

path can contain row, the row as it is written, below a folder. In orders/day={{
row.created_at[:10] }}/, each day is a folder with its own files and manifests, and
overwrite replaces only days that it has rows for. The column stays in the file. In
values, all characters except ASCII letters, digits and -_.~ become %XX. A value that is
nil or empty, and a name . or .., is a final error with the row. A write, call or loop
may have 1,000 such folders. format is required, because path has no name that shows it.

Parquet is always written in this way: without auth, path is a folder in the worker's
directory. Files have row groups of at most 50,000 rows, compressed with Snappy. The
columns and their types are those of the files that stay, and those in columns. If there
are neither, they are inferred from the first 50,000 rows: bigint, double precision
(only if no digit is lost), boolean, json for lists and maps, otherwise text. A column
that is nil in all rows is omitted, unless columns has its type. columns as a map
contains types: bigint, integer, smallint, double precision, numeric(p, s), boolean,
text, varchar(n), json (as text), timestamptz, timestamp, date and bytea, each
optionally not null. columns can add columns to existing files, but cannot change their
types. A value that its column does not hold exactly is a final error that names row and
column: nothing is rounded or cut, a time with a zone is not a timestamp, and one
without is not a timestamptz. Texts that are plain numbers, as in CSV, are read as
numbers.

With rejected, rows of CSV and Parquet that the columns cannot hold become JSON Lines in
a separate folder, published with the others: operation_key, run, step, visit, index,
page, row, column, reason and value, which is the row. If more than max rows of a write,
call or loop (100) are rejected, it fails with type rejected and publishes nothing.`

// ownFields returns the fields that say which file it is, and how a sink writes it.
func ownFields() []playbook.Field {
	return []playbook.Field{
		{Name: "path", Kind: playbook.KindText, Required: true, Doc: "The file, relative to the worker's directory. In a sink with auth or Parquet, a folder; use row to divide the rows over folders, such as orders/day={{ row.created_at[:10] }}."},
		{Name: "mode", Kind: playbook.KindText, Enum: []string{"append", "overwrite"}, Default: "append", Doc: "What a sink does if the file exists."},
		{Name: fieldColumns, Kind: playbook.KindColumns, Enum: format.ColumnTypes, Doc: "The columns of a new CSV file or of Parquet, in order; for Parquet also a map from names to types, such as {id: bigint, total: \"numeric(12, 2)\"}."},
		{Name: playbook.FieldBatch, Kind: playbook.KindNumber, Default: "10000", Doc: "In the source of a loop, the most rows of a page; a page of more than 256 KiB has fewer."},
		{Name: fieldTargetSize, Kind: playbook.KindText, Default: "128MiB", Doc: "With auth, the size of the files into which pages and iterations are merged: in bytes, or for example 64MiB."},
		{Name: playbook.FieldRejected, Kind: playbook.KindMap, Keys: rejectedKeys(), Doc: "With auth or Parquet, where to put rows that the columns of CSV or Parquet cannot hold; the other rows are written. Without it, one such row fails the write."},
		{Name: playbook.FieldAllowEmpty, Kind: playbook.KindBoolean, Default: "false", Doc: "With auth and mode overwrite, whether a call or loop without rows empties the path."},
	}
}

// Run reads a file.
func (t *Tool) Run(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	options, err := format.OptionsOf(in)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	path, err := localPath(in)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	byName, packedName := format.FormatOfName(path)
	options.Format = cmp.Or(options.Format, byName)
	if options.Format == "" && options.Compression == "" && !packedName {
		return interpreter.ToolResult{}, noFormat(in, path, format.All)
	}
	batches, whereLarge := readsBatches(in, options)
	if batches {
		return t.readBatch(ctx, in, options)
	}
	result, err := t.readWhole(ctx, in, path, options)
	if tooLarge, is := errors.AsType[*tool.Error](err); is && tooLarge.Kind == interpreter.KindPayloadTooLarge {
		if whereLarge {
			return t.readBatch(ctx, in, options)
		}
		tooLarge.Message += wholeHint(in)
	}
	return result, err
}

// wholeHint says what to do about a file that is too large to be read at once.
func wholeHint(in interpreter.ToolInput) string {
	switch {
	case in.Batch != nil:
		return "; to read it in batches, set format to " + tool.ChoiceText(format.Streamed)
	case strings.HasSuffix(in.Step, playbook.SourceSuffix):
		return "; set batch, with which the rows of a source are read in batches"
	}
	return "; move its rows with tool: transfer, or loop over them with loop.source"
}

// readWhole reads a file at once.
func (t *Tool) readWhole(ctx context.Context, in interpreter.ToolInput, path string, options format.Options) (interpreter.ToolResult, error) {
	from, err := t.openContent(ctx, in, path)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	defer func() { _ = from.Close() }()
	content, err := t.readContent(ctx, from, path, &options)
	if err != nil {
		return interpreter.ToolResult{}, err
	}
	if ctx.Err() != nil {
		return interpreter.ToolResult{}, ctx.Err()
	}
	v, err := options.Value(ctx, content, path, t.res.MaxPayload)
	var own *tool.Error
	var waited *memory.WaitError
	switch {
	case err == nil && in.Batch != nil && interpreter.EncodedSize(v) > t.res.MaxPayload:
		return interpreter.ToolResult{}, tool.TooLargeErrorf("read %s: it is larger than the limit of %d bytes as JSON", path, t.res.MaxPayload)
	case err == nil && options.Format == format.XML:
		return interpreter.ToolResult{Data: expression.Of(v), Meta: interpreter.ToolMeta{Notes: format.LoneElements(v, path)}}, nil
	case err == nil && options.Format == format.CSV:
		return interpreter.ToolResult{Data: expression.Of(v), Meta: interpreter.ToolMeta{Notes: format.OddRows(v, path, 0)}}, nil
	case err == nil:
		return interpreter.ToolResult{Data: expression.Of(v)}, nil
	case errors.As(err, &own), errors.As(err, &waited), tool.IsContextError(err):
		return interpreter.ToolResult{}, err
	}
	return interpreter.ToolResult{}, tool.Errorf("read %s as %s: %w", path, options.Format, err)
}

// fileContent is a file or an object that is read.
type fileContent struct {
	io.ReaderAt
	io.Closer

	reader   io.Reader // from its beginning
	size     int64     // in bytes, when it was opened
	identity string    // of what it had then
	changed  func() bool
}

// openContent opens a file to read, in the worker's directory or below a connection.
func (t *Tool) openContent(ctx context.Context, in interpreter.ToolInput, path string) (*fileContent, error) {
	if in.Auth != "" {
		return t.openRemoteContent(ctx, in, path)
	}
	from, err := t.openPlace(in, path, "read", false)
	if err != nil {
		return nil, err
	}
	defer func() { _ = from.Close() }()
	if err := tool.BeginAttempt(ctx); err != nil {
		return nil, err
	}
	file, info, err := openToRead(from, path)
	if err != nil {
		return nil, err
	}
	identity := fileIdentity(info)
	return &fileContent{ReaderAt: file, Closer: file, reader: file, size: info.Size(), identity: identity, changed: func() bool {
		now, err := file.Stat()
		return err != nil || fileIdentity(now) != identity
	}}, nil
}

// openRemoteContent opens an object to read.
func (t *Tool) openRemoteContent(ctx context.Context, in interpreter.ToolInput, path string) (*fileContent, error) {
	from, err := t.openRemote(ctx, in, path)
	if err != nil {
		return nil, err
	}
	if err := tool.BeginAttempt(ctx); err != nil {
		return nil, err
	}
	object, seen, err := from.openObject(ctx)
	if err != nil {
		return nil, err
	}
	identity := objectIdentity(seen)
	return &fileContent{ReaderAt: object, Closer: object, reader: io.NewSectionReader(object, 0, seen.Size), size: seen.Size, identity: identity, changed: func() bool {
		now, err := from.bucket.Attributes(ctx, from.key)
		return err != nil || objectIdentity(now) != identity
	}}, nil
}

// fileIdentity returns the same for a file as long as nobody has changed it.
func fileIdentity(info fs.FileInfo) string {
	return fmt.Sprintf("%d bytes, %d", info.Size(), info.ModTime().UnixNano())
}

// objectIdentity returns the same for an object as long as nobody has replaced it.
func objectIdentity(seen *blob.Attributes) string {
	return fmt.Sprintf("%d bytes, %d, %s", seen.Size, seen.ModTime.UnixNano(), seen.ETag)
}

// OpenRows opens a file as a source of rows.
func (t *Tool) OpenRows(ctx context.Context, in interpreter.ToolInput) (*format.RowSource, error) {
	path, err := localPath(in)
	if err != nil {
		return nil, err
	}
	from, err := t.openContent(ctx, in, path)
	if err != nil {
		return nil, err
	}
	byName, _ := format.FormatOfName(path)
	return &format.RowSource{
		Content: from, Size: from.size, What: path, Format: byName, Identity: from.identity, Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Changed: from.changed,
		Temporary: t.res.TemporaryFile,
	}, nil
}

// openToRead opens a regular file and refuses anything else at the path.
func openToRead(from *place, path string) (*os.File, os.FileInfo, error) {
	file, info, err := from.openFile(os.O_RDONLY)
	if err != nil {
		return nil, nil, fileError("read", path, err)
	}
	if !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, nil, tool.Errorf("read %s: it is not a file", path)
	}
	return file, info, nil
}

// localPath returns the path, relative to the worker's directory.
func localPath(in interpreter.ToolInput) (string, error) {
	raw, err := tool.RequiredText(in, "path")
	if err != nil {
		return "", err
	}
	path := filepath.Clean(raw)
	if !filepath.IsLocal(path) || path == "." {
		return "", tool.ConfigErrorf("step %q: path is %q; it must be a file under the worker's directory, such as out/rows.jsonl",
			in.Step, raw)
	}
	if slices.Contains(strings.Split(filepath.ToSlash(raw), "/"), "..") {
		return "", tool.ConfigErrorf("step %q: path is %q; .. is not allowed, because it leads out of the folder", in.Step, raw)
	}
	return path, nil
}

// writeTarget returns the path of a write, and how its rows are written.
func (t *Tool) writeTarget(in interpreter.ToolInput) (path string, as format.WriteOptions, err error) {
	if path, err = localPath(in); err != nil {
		return "", as, err
	}
	if as, err = format.SinkOptions(in); err == nil && as.Format == "" {
		err = noFormat(in, path, playbook.WrittenFormats)
	}
	return path, as, err
}

// noFormat returns the error of a name that does not say its format.
func noFormat(in interpreter.ToolInput, path string, accepted []string) error {
	return tool.ConfigErrorf("step %q: the name of %q does not say its format; set format to %s", in.Step, path, tool.ChoiceText(accepted))
}

// readContent reads a whole file as UTF-8, at most MaxResponseBytes after decompression, or a member of an archive,
// whose name may determine the format.
func (t *Tool) readContent(ctx context.Context, from *fileContent, path string, options *format.Options) ([]byte, error) {
	limit := t.res.MaxResponseBytes
	unpacked, err := options.Unpack(ctx, from.reader, false, limit)
	if err != nil {
		return nil, t.unpackError(path, err)
	}
	defer unpacked.Close()
	most := limit
	if !unpacked.Packed {
		most = min(from.size, limit)
	}
	content, err := memory.ReadAll(ctx, unpacked, most, limit)
	if err == nil {
		if options.Format == "" {
			options.Format, _ = format.FormatOfName(unpacked.Member)
		}
		if options.Format != format.Parquet {
			content, err = format.DecodeText(ctx, content, options.CharsetOf(content, ""))
		}
	}
	if err != nil {
		return nil, t.unpackError(path, err)
	}
	return content, nil
}

// unpackError returns the error of a file that cannot be read to its end.
func (t *Tool) unpackError(path string, err error) error {
	var waited *memory.WaitError
	var cause *fs.PathError
	var wrong *format.ByteError
	var own *tool.Error
	switch {
	case errors.Is(err, memory.ErrTooLarge):
		return tool.TooLargeErrorf("read %s: the file is larger than the limit of %d bytes", path, t.res.MaxResponseBytes)
	case errors.As(err, &waited), errors.As(err, &own), tool.IsContextError(err):
		return err
	case errors.As(err, &cause):
		return fileError("read", path, err)
	case errors.As(err, &wrong):
		return &tool.Error{Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Type: "charset", Message: fmt.Sprintf("read %s: %s", path, wrong), Err: err}
	}
	return tool.Errorf("read %s: it cannot be unpacked: %w", path, cmp.Or(format.UnpackError(err), err))
}

// fileError classifies: what is missing or forbidden stays so, a full disk may
// not. The message names the path as the author gave it.
func fileError(verb, path string, err error) error {
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		err = cause.Err
	}
	e := &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable,
		Message: fmt.Sprintf("%s %s: %s", verb, path, err), Err: err,
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Class, e.Type = interpreter.ClassFinal, "not_found"
	case errors.Is(err, fs.ErrPermission), strings.Contains(err.Error(), "escapes from parent"), errors.Is(err, syscall.ELOOP):
		e.Class, e.Type = interpreter.ClassFinal, "permission"
	case errors.Is(err, errMoved):
		e.Type = typeMoved
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		e.Type = "no_space"
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL):
		e.Class = interpreter.ClassFinal
	}
	return e
}
