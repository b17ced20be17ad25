// Package format reads the data that tools receive: JSON, JSON Lines, CSV, XML and text,
// compressed or not, in any charset. Rows are read by an iterator over a reader, so that a tool
// may pass rows on before it has all of them.
package format

import (
	"mime"
	"path"
	"slices"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// The formats.
const (
	JSON  = "json"
	JSONL = playbook.FormatJSONL
	CSV   = playbook.FormatCSV
	XML   = "xml"
	Text  = "text"
	// Parquet is a format of columns, which a file has to be read from its end for.
	Parquet = playbook.FormatParquet
	// Unpacked is the format of decompressed bytes whose name and content type say nothing
	// about it: JSON, JSON Lines or text.
	Unpacked = ""
)

// The fields of a tool that reads.
const (
	fieldFormat      = playbook.FieldFormat
	fieldCompression = playbook.FieldCompression
	fieldEncoding    = "encoding"
	fieldCSV         = "csv"
	fieldXML         = "xml"
	fieldMember      = "member"
)

// All are the formats that can be read.
var All = []string{JSON, JSONL, CSV, XML, Parquet, Text}

// FieldTexts describe fields of a tool that reads: the default and the meaning of format, and those of compression.
type FieldTexts struct{ FormatDefault, Format, CompressionDefault, Compression string }

// ReadingFields returns the fields of a tool that reads; more are keys of csv.
func ReadingFields(texts FieldTexts, more ...playbook.Field) []playbook.Field {
	return []playbook.Field{
		{Name: fieldFormat, Kind: playbook.KindText, Enum: All, Default: texts.FormatDefault, Doc: texts.Format},
		{
			Name: fieldCompression, Kind: playbook.KindText, Enum: []string{packedGzip, packedZstd, packedZip, packedNot},
			Default: texts.CompressionDefault, Doc: texts.Compression,
		},
		{
			Name: fieldMember, Kind: playbook.KindText, Default: "the only file of the archive",
			Doc: "The file of a zip archive that is read: its name, or a pattern such as *.csv that matches one.",
		},
		{
			Name: fieldEncoding, Kind: playbook.KindText, Default: "that of the content type",
			Doc: "The charset of text that is not UTF-8 and has no byte order mark, such as windows-1252 or utf-16le.",
		},
		{Name: fieldCSV, Kind: playbook.KindMap, Keys: append(slices.Clone(csvKeys), more...), Doc: "The dialect of CSV."},
		{Name: fieldXML, Kind: playbook.KindMap, Keys: xmlKeys, Doc: "How XML becomes maps."},
	}
}

// Options are the author's settings for reading a file or body.
type Options struct {
	Format      string // "" where the author does not say
	Compression string // "" for what the first bytes say
	Member      string // of an archive, "" for its only one
	Encoding    string // the charset, "" where the author does not say
	CSV         CSVDialect
	Rows        []string   // the members of maps at which JSON or XML that is read row by row has its list; nil where it is one
	Lists       []string   // the elements of XML that are lists however many there are
	Spare       *SpareRows // rows of CSV that may be used again; nil if there are none
}

// OptionsOf reads the options of a call.
func OptionsOf(in interpreter.ToolInput) (o Options, err error) {
	if o.Format, err = tool.ChoiceField(in, fieldFormat, "", All...); err != nil {
		return o, err
	}
	if err := o.readPacking(in); err != nil {
		return o, err
	}
	csv, err := tool.MapField(in, fieldCSV)
	if err != nil {
		return o, err
	}
	xml, err := tool.MapField(in, fieldXML)
	if err != nil {
		return o, err
	}
	if o.Encoding, err = encodingOf(in, csv); err != nil {
		return o, err
	}
	if o.CSV, err = readDialect(in.Step, csv); err != nil {
		return o, err
	}
	if o.Lists, err = listsOf(in.Step, xml); err != nil {
		return o, err
	}
	if o.Format == Parquet && o.Encoding != "" {
		return o, tool.ConfigErrorf("step %q: encoding does not apply to format %s; remove one of them", in.Step, o.Format)
	}
	for _, said := range []struct {
		as   string
		here bool
	}{{CSV, csv != nil}, {XML, xml != nil}} {
		switch {
		case said.here && o.Format != "" && o.Format != said.as:
			return o, tool.ConfigErrorf("step %q: %s does not apply to format %s; remove one of them", in.Step, said.as, o.Format)
		case said.here:
			o.Format = said.as
		}
	}
	return o, nil
}

// readPacking reads how the bytes are packed.
func (o *Options) readPacking(in interpreter.ToolInput) (err error) {
	if o.Compression, err = tool.ChoiceField(in, fieldCompression, "", append(slices.Clone(packings), packedNot)...); err != nil {
		return err
	}
	if o.Member, err = tool.TextField(in, fieldMember); err != nil {
		return err
	}
	if o.Member != "" && o.Compression != "" && o.Compression != packedZip {
		return tool.ConfigErrorf("step %q: member applies only to archives, and compression is %s; remove one of them", in.Step, o.Compression)
	}
	if _, wrong := path.Match(o.Member, ""); wrong != nil {
		return tool.ConfigErrorf("step %q: member is %s; it must be a name or a pattern such as *.csv", in.Step, shownValue(o.Member))
	}
	return nil
}

// encodingOf returns the charset that the author says, by the field or as a key of csv.
func encodingOf(in interpreter.ToolInput, csv map[string]any) (string, error) {
	encoding, err := tool.TextField(in, fieldEncoding)
	if err != nil {
		return "", err
	}
	name, value := fieldEncoding, any(encoding)
	if written := csv[keyEncoding]; written != nil {
		if encoding != "" && written != encoding {
			return "", tool.ConfigErrorf("step %q: encoding and csv.encoding differ; remove one of them", in.Step)
		}
		name, value = fieldCSV+"."+keyEncoding, written
	}
	encoding, isText := value.(string)
	if _, _, unknown := charsetOf(CharsetName(encoding)); !isText || encoding != "" && unknown != nil {
		return "", tool.ConfigErrorf("step %q: %s is %s; it must be the name of a charset, such as utf-8, windows-1252 or utf-16le", in.Step, name, shownValue(value))
	}
	return encoding, nil
}

// FormatOfName returns the format by the extension of a file name, "" if it is unknown, and whether
// the name says that the file is compressed.
func FormatOfName(name string) (format string, packed bool) {
	name, how := playbook.CutPacking(strings.ToLower(name))
	packed = how != ""
	switch path.Ext(name) {
	case ".json", ".geojson":
		return JSON, packed
	case ".jsonl", ".ndjson":
		return JSONL, packed
	case ".csv":
		return CSV, packed
	case ".xml":
		return XML, packed
	case ".parquet":
		return Parquet, packed
	case ".txt", ".text", ".md":
		return Text, packed
	}
	return "", packed
}

// MediaType reads a content type as servers write it: its media type in lower case, and the first charset that it names.
func MediaType(contentType string) (mediaType, charset string) {
	mediaType, parameters, _ := strings.Cut(contentType, ";")
	for parameter := range strings.FieldsFuncSeq(parameters, func(c rune) bool { return c == ';' || c == ',' }) {
		name, value, _ := strings.Cut(parameter, "=")
		if charset == "" && strings.EqualFold(strings.TrimSpace(name), "charset") {
			charset = CharsetName(value)
		}
	}
	mediaType, _, _ = strings.Cut(mediaType, ",")
	return strings.ToLower(strings.TrimSpace(mediaType)), charset
}

// FormatOfType returns the format by a content type, "" if it is unknown, and whether the type says
// that the content is compressed.
func FormatOfType(mediaType string) (format string, packed bool) {
	switch mediaType {
	case "", "application/octet-stream", "binary/octet-stream", "application/x-download", "application/force-download":
		return "", false
	case "application/gzip", "application/x-gzip", "application/zstd", "application/x-zstd",
		"application/zip", "application/x-zip", "application/x-zip-compressed":
		return "", true
	case "application/json", "text/json":
		return JSON, false
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonl",
		"application/jsonlines", "application/x-jsonlines", "application/json-lines", "application/x-json-stream":
		return JSONL, false
	case "application/vnd.apache.parquet", "application/x-parquet", "application/parquet":
		return Parquet, false
	case "text/csv", "application/csv", "text/x-csv", "application/x-csv":
		return CSV, false
	case "application/xml", "text/xml":
		return XML, false
	case "application/xhtml+xml", "image/svg+xml": // people look at them
		return Text, false
	}
	switch {
	case strings.HasSuffix(mediaType, "+json"):
		return JSON, false
	case strings.HasSuffix(mediaType, "+xml"):
		return XML, false
	}
	return Text, false
}

// FileNameOf returns the file's name that an answer says, "" for none.
func FileNameOf(contentDisposition string) string {
	_, parameters, err := mime.ParseMediaType(contentDisposition)
	if err != nil {
		return ""
	}
	return parameters["filename"]
}
