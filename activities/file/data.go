package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"

	"reprise/activities/format"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

const (
	fieldTargetSize = "target_size"
	// usualTargetSize is the size of files where the author does not say: what warehouses advise.
	usualTargetSize = 128 << 20
)

var sizeText = regexp.MustCompile(`^([0-9]{1,9}) ?(B|KiB|MiB|GiB)?$`)

// sizeUnits are the units of a size, in bytes.
var sizeUnits = map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

// readPublishing reads what applies to rows that are published together.
func (w *objectWrite) readPublishing(in interpreter.ToolInput) (err error) {
	w.targetSize = usualTargetSize
	if size := in.Fields[fieldTargetSize].Data; size != nil {
		parts := sizeText.FindStringSubmatch(strings.TrimSpace(expression.Text(size)))
		if parts != nil {
			w.targetSize, _ = strconv.ParseInt(parts[1], 10, 64)
			w.targetSize *= sizeUnits[parts[2]]
		}
		if parts == nil || w.targetSize < 1 {
			return tool.ConfigErrorf("step %q: target_size is %s; it must be a number of bytes, or a size such as 128MiB", in.Step, expression.Text(size))
		}
	}
	w.allowEmpty, err = tool.BoolField(in, playbook.FieldAllowEmpty, false)
	return err
}

// dataFile is a file of rows that is written, piece by piece, into an object.
type dataFile struct {
	of     *objectWrite
	to     *blob.Writer
	cancel context.CancelFunc
	folder string // of a file, "" in a bucket
	hash   hash.Hash
	bytes  int64
	table  *format.ParquetWriter // nil for other formats
	text   io.WriteCloser        // compresses the text of other formats
	file   manifestFile
}

// createFile begins an object.
func (w *objectWrite) createFile(ctx context.Context, name string) (*dataFile, error) {
	f := &dataFile{of: w, hash: sha256.New(), file: manifestFile{Path: name + "." + w.Extension(), Run: w.run}}
	ctx, f.cancel = context.WithCancel(ctx)
	options := &blob.WriterOptions{ContentType: "application/octet-stream", BufferSize: w.partBytes(), MaxConcurrency: 1, BeforeWrite: func(as func(any) bool) error {
		var file *os.File
		if !as(&file) {
			return nil // an object of a bucket
		}
		f.folder = filepath.Dir(file.Name())
		return file.Chmod(fileMode)
	}}
	var err error
	if f.to, err = w.bucket.NewWriter(ctx, path.Join(w.key, f.file.Path), options); err != nil {
		f.cancel()
		return nil, w.storeError("write", err)
	}
	if w.Format == format.Parquet {
		f.table, err = format.NewParquetWriter(f, w.table, w.Compression)
	} else {
		f.text, err = format.PackWriter(f, w.Compression)
	}
	if err != nil {
		f.abortFile()
		return nil, w.formatError(err)
	}
	return f, nil
}

// partBytes returns how many bytes a part of an upload has. One part is uploaded while the next is filled, so two are in memory.
func (w *objectWrite) partBytes() int {
	const (
		least = 5 << 20 // S3 refuses smaller parts
		most  = 8_000   // S3 refuses more than 10,000 parts, and a file ends a bit beyond its target size
	)
	return int(max(least, w.targetSize/most))
}

// Write implements io.Writer.
func (f *dataFile) Write(p []byte) (int, error) {
	n, err := f.to.Write(p)
	f.hash.Write(p[:n])
	f.bytes += int64(n)
	if err != nil {
		return n, f.of.storeError("write", err)
	}
	return n, nil
}

// sizeSoFar returns the number of bytes written to the file.
func (f *dataFile) sizeSoFar() int64 { return f.bytes }

// addRecord adds the rows of a record.
func (f *dataFile) addRecord(record stagedRecord) error {
	withHeader := f.file.Rows == 0
	f.file.Rows += record.Rows
	if f.of.Format == format.JSONL {
		_, err := f.text.Write(record.content)
		return err
	}
	rows := record.decoded
	if rows == nil {
		var err error
		if rows, err = decodeLines(record.content); err != nil {
			return err
		}
	}
	if f.table != nil {
		return f.table.WriteRows(rows)
	}
	text, err := formatRows(rows, f.of.columns, withHeader, f.of.cellOf())
	if err == nil {
		_, err = f.text.Write(text)
	}
	return err
}

// decodeLines reads JSON Lines that formatLines has written.
func decodeLines(content []byte) (rows []any, err error) {
	for i := 0; len(content) > 0; i++ {
		line, rest, _ := bytes.Cut(content, []byte{'\n'})
		row, err := expression.DecodeExact(line)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		rows, content = append(rows, row), rest
	}
	return rows, nil
}

// endFile ends the object, which is there then.
func (f *dataFile) endFile() (manifestFile, error) {
	defer f.cancel()
	if err := f.closeRows(); err != nil {
		f.abortFile()
		return manifestFile{}, f.of.formatError(err)
	}
	if err := f.to.Close(); err != nil {
		return manifestFile{}, f.of.storeError("write", err)
	}
	if f.folder != "" {
		for _, name := range []string{filepath.Join(f.folder, path.Base(f.file.Path)), f.folder} {
			if err := syncPath(name); err != nil {
				return manifestFile{}, f.of.storeError("write", err)
			}
		}
	}
	f.file.Bytes, f.file.SHA256, f.file.At = f.bytes, hex.EncodeToString(f.hash.Sum(nil)), time.Now().UTC()
	return f.file, nil
}

// closeRows writes what ends the rows.
func (f *dataFile) closeRows() error {
	if f.table != nil {
		return f.table.Close()
	}
	return f.text.Close()
}

// abortFile ends the file without an object.
func (f *dataFile) abortFile() {
	f.cancel()
	_ = f.to.Close()
}

var _ io.Writer = (*dataFile)(nil)
