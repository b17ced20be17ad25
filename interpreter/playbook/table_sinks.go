package playbook

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/source"
)

// Words of table sinks whose rows are published together
// (docs/concepts/written-once.md#rows-that-are-published-together).
const (
	FieldMode          = "mode"
	FieldDeleteMissing = "delete_missing"
	FieldAllowEmpty    = "allow_empty"
	FieldRejected      = "rejected"
	FieldBatch         = "batch" // of a file that is read, and of transfer
	ModeReplace        = "replace"
	ModeOverwrite      = "overwrite" // of a file
)

// IsRepeatable reports whether rows that are written again in a mode replace the existing ones.
func IsRepeatable(mode string) bool {
	mode = strings.TrimSpace(mode)
	return strings.EqualFold(mode, "upsert") || strings.EqualFold(mode, ModeReplace)
}

// StagesRows reports whether the rows of a sink of the step are published together at the end of the call or loop: in
// mode replace, with delete_missing, and for files below a connection (see StagesFile).
func (pb *Playbook) StagesRows(step *Step, sink *Sink) bool {
	return sink != nil && sink.Action != nil && (pb.ResolveAction(sink.Action).StagesRows() || pb.StagesFile(step, sink))
}

// StagesFile reports whether the objects that a sink writes below a connection become files of the next manifest at the end of the
// call or loop (docs/how-to/data-lake.md). A sink that writes once, whose path differs between its writes, or whose step keeps a
// state, which moves with each page, makes a manifest with each write.
func (pb *Playbook) StagesFile(step *Step, sink *Sink) bool {
	if step == nil || sink == nil || sink.Action == nil || step.Incremental != nil {
		return false
	}
	action := pb.ResolveAction(sink.Action)
	mode, known := action.WriteMode()
	if !known || !action.IntoObjects() || !slices.Contains(step.SuccessSinks(), sink) || action.PlaceNaming(step.AttemptNames()...) != nil {
		return false
	}
	if loop := step.Loop; loop != nil {
		return action.PlaceNaming(loop.Element, loopWord) == nil
	}
	return mode == ModeOverwrite || !slices.Contains(step.Sinks, sink)
}

const loopWord = "_loop"

// IntoObjects reports whether rows become objects of a folder: below a connection, and as Parquet everywhere, as no row can be appended to that.
func (a *Action) IntoObjects() bool {
	if !a.ToolTraits().IntoFile {
		return false
	}
	return a.Auth != nil || a.WritesParquet()
}

// WritesParquet reports whether the rows of a file are written as Parquet.
func (a *Action) WritesParquet() bool { return a.WrittenFormat() == FormatParquet }

// WrittenFormat returns the format in which the rows of a file are written: by format, else by the name; "" if it is not known.
func (a *Action) WrittenFormat() string {
	as, name, format := a.Field(FieldFormat), a.Field(FieldPath), ""
	switch {
	case as != nil && as.Template == nil:
		format = strings.ToLower(expression.Text(as.Value))
	case as == nil && name != nil:
		rest, _ := CutPacking(strings.ToLower(strings.TrimSpace(name.Raw)))
		format = strings.TrimPrefix(path.Ext(rest), ".")
	}
	if !slices.Contains(WrittenFormats, format) {
		return ""
	}
	return format
}

// Words of files.
const (
	FormatJSONL      = "jsonl"
	FormatCSV        = "csv"
	FormatParquet    = "parquet"
	FieldFormat      = "format"
	FieldCompression = "compression"
)

// WrittenFormats are the formats in which rows are written to files.
var WrittenFormats = []string{FormatJSONL, FormatCSV, FormatParquet}

// packedNames are the endings of the names of compressed files, with the words of compression.
var packedNames = map[string]string{".gz": "gzip", ".gzip": "gzip", ".zst": "zstd", ".zstd": "zstd", ".zip": "zip"}

// CutPacking returns the name of a file without the ending that says its compression, and that compression, "" if the name says none.
func CutPacking(name string) (rest, compression string) {
	ending := path.Ext(name)
	if compression = packedNames[strings.ToLower(ending)]; compression == "" {
		return name, ""
	}
	return strings.TrimSuffix(name, ending), compression
}

// PackingProblem returns why a file cannot be written with a compression to a path, "" if it can. compression is "" where the author says none;
// inFolder says that path becomes a folder of files, whose names say how they are compressed.
func PackingProblem(name, compression string, isParquet, inFolder bool) string {
	rest, byName := CutPacking(name)
	switch {
	case byName == "zip" || compression == "zip":
		return "files are written with compression gzip or zstd, and zip is only read; change " + QuoteWord(name)
	case isParquet && byName != "":
		return fmt.Sprintf("path is %q, and Parquet is compressed inside; name it %q, and set compression if it should not be Snappy", name, rest)
	case isParquet:
		return ""
	case byName != "" && compression != "" && byName != compression:
		return fmt.Sprintf("the name of %q says %s, and compression is %s; change one of them", name, byName, compression)
	case byName == "" && !inFolder && compression != "" && compression != "none":
		return fmt.Sprintf("path is %q, and compression is %s; name it %q, so that readers know", name, compression, name+map[string]string{"gzip": ".gz", "zstd": ".zst"}[compression])
	}
	return ""
}

// RejectedProblem returns why a sink of files cannot have rejected, "" if it can.
func RejectedProblem(format string) string {
	if format == FormatJSONL {
		return "every row fits JSON Lines, so none is rejected; remove rejected, or set format to csv or parquet"
	}
	return ""
}

// PublishesWhole reports whether the rows of a sink are published only where all was read, as they take the place of those that are there.
func (pb *Playbook) PublishesWhole(step *Step, sink *Sink) bool {
	if !pb.StagesFile(step, sink) {
		return pb.StagesRows(step, sink)
	}
	mode, _ := pb.ResolveAction(sink.Action).WriteMode()
	return mode == ModeOverwrite
}

// StagesRows reports whether rows of the action are published together in a table: see Playbook.StagesRows.
func (a *Action) StagesRows() bool {
	mode, _ := a.WriteMode()
	deletes := a.Field(FieldDeleteMissing)
	return a.writesTable() && (mode == ModeReplace || deletes != nil && (deletes.Value == true || deletes.Value == "true"))
}

// writesTable reports whether rows are written to a table of a database.
func (a *Action) writesTable() bool { return a.ToolTraits().KeepsStates && a.Field("table") != nil }

// WritesRows reports whether the action writes the rows of a result, or of args, to a table, without a statement.
func (a *Action) WritesRows() bool { return a.writesTable() && a.Field("statement") == nil }

// NamesColumn reports whether columns gives the type of a column.
func (a *Action) NamesColumn(name string) bool {
	columns := a.Field("columns")
	return columns != nil && columns.Get(name) != nil
}

// WriteMode returns how rows are combined with existing ones; known is false if it is a template.
func (a *Action) WriteMode() (mode string, known bool) {
	switch field := a.Field(FieldMode); {
	case field == nil:
		return "insert", true
	case field.Template != nil:
		return "", false
	default:
		return expression.Text(field.Value), true
	}
}

// ReplacesRows reports whether the mode of a sink is replace.
func (pb *Playbook) ReplacesRows(sink *Sink) bool {
	action := pb.ResolveAction(sink.Action)
	mode, _ := action.WriteMode()
	return action.StagesRows() && mode == ModeReplace
}

// StagingSinks returns the sinks of a call of the step whose rows are published at its end, or at the end of its
// loop.
func (pb *Playbook) StagingSinks(step *Step) []*Sink {
	return slices.DeleteFunc(step.SuccessSinks(), func(sink *Sink) bool { return !pb.StagesRows(step, sink) })
}

// NeedsWholeLoop reports whether a sink of the step publishes the rows of all its iterations together, so that some of them cannot run
// again alone.
func (pb *Playbook) NeedsWholeLoop(step *Step) bool {
	return slices.ContainsFunc(slices.Concat(step.SuccessSinks(), step.Sinks), func(sink *Sink) bool { return pb.PublishesWhole(step, sink) })
}

// The retry of table sinks without a retry of their own (docs/reference/sinks.md), so that a database that is
// unavailable for some seconds makes no load fail. The waits are 2, 6, 18 and 54 seconds, each up to a quarter
// longer or shorter.
const (
	TableAttempts = 5
	TableElapsed  = 2 * time.Minute

	tableRetryText = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: table_sinks}
workflow:
  - step: load
    tool: http
    url: http://localhost
    retry:
      - when: "{{ error.class == 'retryable' }}"
        then: {max_attempts: %d, max_elapsed: %s, initial_delay: 2s, backoff_multiplier: 3}
`
)

// TableRetry returns the policies of table sinks without a retry of their own.
var TableRetry = sync.OnceValue(func() []*Policy {
	text := fmt.Sprintf(tableRetryText, TableAttempts, TableElapsed)
	book, problems := Decode(source.NewFile(ofTables, []byte(text)))
	if book == nil || problems.HasErrors() {
		panic(problems) // the text is constant
	}
	policies := book.Steps[0].Retry
	policies[0].Lent = &Lent{From: ofTables}
	return policies
})

const ofTables = "the retry of table sinks"

// IsTableRetry reports whether the policy is one of TableRetry.
func (p *Policy) IsTableRetry() bool { return p.Lent != nil && p.Lent.From == ofTables }

// RetriesTable reports whether TableRetry applies to a sink without a retry of its own: it writes rows to a table,
// so that a repeated write is recognized by its key. tool is its tool, which a template may give.
func (pb *Playbook) RetriesTable(sink *Sink, tool string) bool {
	if !TraitsOf(tool).KeepsStates {
		return false
	}
	action := pb.ResolveAction(sink.Action)
	return action.Field("table") != nil && action.Field(FieldStatement) == nil
}
