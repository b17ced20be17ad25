package format

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// WriteOptions are the author's options for rows that are written.
type WriteOptions struct {
	// Format is the format that the author says, else that of the name in path; "" where neither says one.
	Format string
	// Compression is gzip, zstd or "". For Parquet it is that of the pages: also none, and "" for Snappy.
	Compression    string
	EscapeFormulas bool // of CSV
}

// SinkOptions reads the options of a sink. Fields that say how something is read are an error.
func SinkOptions(in interpreter.ToolInput) (o WriteOptions, err error) {
	for _, name := range []string{fieldMember, fieldEncoding, fieldXML} {
		if in.Fields[name].Data != nil {
			return o, tool.ConfigErrorf("step %q: %s applies only when reading, and this is a sink; remove it", in.Step, name)
		}
	}
	if o.Format, err = tool.ChoiceField(in, fieldFormat, "", playbook.WrittenFormats...); err != nil {
		return o, err
	}
	path, err := tool.TextField(in, playbook.FieldPath)
	if err != nil {
		return o, err
	}
	if byName, _ := FormatOfName(path); o.Format == "" && slices.Contains(playbook.WrittenFormats, byName) {
		o.Format = byName
	}
	if err := o.readCompression(in, path); err != nil {
		return o, err
	}
	return o, o.readFormulas(in)
}

// readCompression reads how the rows are compressed: as the author says, else as the name in path says.
func (o *WriteOptions) readCompression(in interpreter.ToolInput, path string) (err error) {
	if o.Compression, err = tool.ChoiceField(in, fieldCompression, "", packedGzip, packedZstd, packedNot); err != nil {
		return err
	}
	if problem := playbook.PackingProblem(path, o.Compression, o.Format == Parquet, in.Auth != ""); problem != "" {
		return tool.ConfigErrorf("step %q: %s", in.Step, problem)
	}
	if o.Format == Parquet {
		return nil
	}
	if _, byName := playbook.CutPacking(path); o.Compression == "" {
		o.Compression = byName
	} else if o.Compression == packedNot {
		o.Compression = ""
	}
	return nil
}

// readFormulas reads what becomes of formulas in CSV.
func (o *WriteOptions) readFormulas(in interpreter.ToolInput) error {
	written, err := tool.MapField(in, fieldCSV)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if name != keyFormulas {
			return tool.ConfigErrorf("step %q: csv.%s applies only when reading; a sink has only csv.formulas; remove it", in.Step, name)
		}
	}
	switch written[keyFormulas] {
	case nil, formulasUnchanged:
	case formulasEscaped:
		o.EscapeFormulas = true
	default:
		return tool.ConfigErrorf("step %q: csv.formulas is %s; it must be keep or escape", in.Step, shownValue(written[keyFormulas]))
	}
	if o.EscapeFormulas && o.Format != CSV && o.Format != "" {
		return tool.ConfigErrorf("step %q: csv does not apply to format %s; remove one of them", in.Step, o.Format)
	}
	return nil
}

// Extension is the ending of the names of files that are written.
func (o WriteOptions) Extension() string {
	if ending, is := packedEndings[o.Compression]; is && o.Format != Parquet {
		return o.Format + ending
	}
	return o.Format
}

// packedEndings are the usual endings of names by compression.
var packedEndings = map[string]string{packedGzip: ".gz", packedZstd: ".zst"}

// PackWriter returns a writer that compresses what is written to it as one member of gzip or one frame of zstd, which Close ends; "" leaves it as it is. The
// same bytes are always the same member: its head has neither time nor name. Members behind each other are read as one file.
func PackWriter(to io.Writer, compression string) (io.WriteCloser, error) {
	switch compression {
	case packedGzip:
		return gzip.NewWriter(to), nil
	case packedZstd:
		const window = 4 << 20 // what every decoder unpacks, with half the memory of the usual one
		return zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true), zstd.WithZeroFrames(true))
	case "":
		return plainWriter{to}, nil
	}
	return nil, fmt.Errorf("nothing is compressed as %s", compression)
}

// plainWriter leaves bytes as they are.
type plainWriter struct{ io.Writer }

// Close implements io.Closer.
func (plainWriter) Close() error { return nil }

// PackingOf returns the compression of bytes by the first of them, "" for none.
func PackingOf(head []byte) string {
	for _, as := range packings {
		if len(head) >= len(magics[as]) && string(head[:len(magics[as])]) == magics[as] {
			return as
		}
	}
	return ""
}
