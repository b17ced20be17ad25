package look

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/sleep"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/starter/cli"
	"reprise/starter/session"
)

// LogsOptions are the flags of starter logs.
type LogsOptions struct {
	server session.ServerFlags
	follow bool
	step   string
	index  int
	file   string
	Output string

	hasIndex bool
}

// NewLogsCommand returns the command logs.
func NewLogsCommand(a *cli.App) *cobra.Command {
	options := &LogsOptions{}
	command := &cobra.Command{
		Use: "logs [RUN [STEP]]", Args: cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			args, err := cli.StepOf(args, &options.step)
			if err != nil {
				return err
			}
			options.hasIndex = command.Flags().Changed("index")
			return printLogs(a.Interrupts.Graceful, a.Streams, options, strings.Join(args, ""))
		},
	}
	flags := command.Flags()
	flags.BoolVar(&options.follow, "follow", false, "follow the run until it ends")
	flags.StringVar(&options.step, "step", "", "only this step; same as STEP")
	flags.IntVar(&options.index, "index", 0, "only the iteration with this index, from 0")
	flags.StringVar(&options.file, "file", "", "the log of the worker, - is standard input; default: that of the local worker, "+session.WorkerLogPath())
	options.server.Add(command)
	cli.OutputFlagOf(command, &options.Output, ": the lines as they were logged", "table", "jsonl")
	return command
}

func (o *LogsOptions) checkOptions() error {
	if o.hasIndex && o.index < 0 {
		return cli.UsageError("--index %d is less than 0, the first iteration", o.index)
	}
	return nil
}

func printLogs(ctx context.Context, streams cli.Streams, options *LogsOptions, id string) error {
	if err := options.checkOptions(); err != nil {
		return err
	}
	tail, err := OpenLog(streams, options.file)
	if err != nil {
		return err
	}
	defer tail.Close()
	s, err := options.server.ConnectExisting(ctx)
	if err != nil && (cli.StatusOf(err) != exitcode.NoServer || id == "") {
		return err
	}
	if s != nil {
		defer s.End(false)
	}
	run, unknown, err := logRun(ctx, streams, s, id, options.step)
	if err != nil {
		return err
	}
	view := &LogView{Run: run.WorkflowID, Options: options, Show: func(text string) error {
		_, err := io.WriteString(streams.Out, text)
		return err
	}}
	ended := func(ctx context.Context) bool {
		if s == nil || unknown != nil {
			return false
		}
		now, err := s.Runs().Find(ctx, run.WorkflowID, run.RunID)
		return err == nil && now.Ended()
	}
	err = tail.EachLine(ctx, options.follow, ended, view.WriteLine)
	switch {
	case ctx.Err() != nil:
		return cli.WithStatus(exitcode.Interrupted, cli.ErrSaid)
	case err != nil:
		return err
	case view.shown == 0 && unknown != nil:
		return unknown
	}
	reportLogs(streams, view, tail)
	return nil
}

// reportLogs prints what the log lines do not show, such as that none matched.
func reportLogs(streams cli.Streams, view *LogView, tail *LogTail) {
	if view.shown == 0 {
		streams.Notef("%s has no matching lines about the run %s; other workers have their own logs", tail.name, view.Run)
	}
	if view.foreign > 0 {
		streams.Notef("note: %s not JSON; use worker --log-file or --log-format json", terminal.Count(view.foreign, "line")+cli.IsAre(view.foreign))
	}
	if tail.long > 0 {
		streams.Notef("note: %s longer than %d KiB%s left out", terminal.Count(tail.long, "line"), maxLogLine>>10, cli.IsAre(tail.long))
	}
}

// logRun returns the run with an ID. Without a server, or if the server does not know the run, id must be complete;
// unknown is then the server's error.
func logRun(ctx context.Context, streams cli.Streams, s *session.Session, id, step string) (found runs.Found, unknown, err error) {
	whole := runs.Found{WorkflowID: id}
	if s == nil {
		if id == "" {
			return whole, nil, cli.WithStatus(exitcode.NoServer, errors.New("without a Temporal server, the newest run is unknown; name a RUN"))
		}
		streams.Notef("note: there is no Temporal server, so %s is used as a complete ID", id)
		return whole, nil, nil
	}
	found, err = session.FindRun(ctx, streams, s, id, "")
	if _, ok := errors.AsType[*runs.UnknownError](err); ok && id != "" {
		return whole, err, nil
	}
	if err != nil || step == "" {
		return found, nil, err
	}
	steps, err := s.Runs().StepNames(ctx, found)
	if err == nil {
		err = cli.KnownStep(step, steps)
	}
	return found, nil, err
}

// OpenLog opens the log for reading.
func OpenLog(streams cli.Streams, name string) (*LogTail, error) {
	if name == "-" {
		return newLogTail("standard input", io.NopCloser(streams.In), nil), nil
	}
	path := cmp.Or(name, session.WorkerLogPath())
	file, err := os.Open(path)
	switch {
	case os.IsNotExist(err) && name == "":
		return nil, cli.UsageError("there is no log of a local worker in this directory; name a log with --file")
	case err != nil:
		return nil, cli.UsageError("--file: %w", err)
	}
	if info, err := file.Stat(); err != nil || info.IsDir() {
		_ = file.Close()
		return nil, cli.UsageError("--file: %s is not a file", path)
	}
	return newLogTail(path, file, file), nil
}

// LogView prints the log lines about a run.
type LogView struct {
	Run     string
	Options *LogsOptions
	Show    func(text string) error
	shown   int
	foreign int // lines that are not JSON
}

// WriteLine prints a line if it matches the options.
func (v *LogView) WriteLine(line []byte) error {
	if len(strings.TrimSpace(string(line))) == 0 {
		return nil
	}
	entry, ok := parseLog(line)
	if !ok {
		v.foreign++
		return nil
	}
	if !entry.isAbout(v.Run) || v.Options.step != "" && entry.fieldText("step") != v.Options.step ||
		v.Options.hasIndex && entry.fieldText("index") != fmt.Sprint(v.Options.index) {
		return nil
	}
	v.shown++
	text := entry.formatLine()
	if v.Options.Output == "jsonl" {
		text = string(entry.raw) + "\n"
	}
	return v.Show(text)
}

// logEntry is a line of a worker's log.
type logEntry struct {
	raw    []byte // one JSON object
	fields map[string]any
}

// parseLog parses a line. Text before the JSON object, which a log collector may have added, is ignored.
func parseLog(line []byte) (logEntry, bool) {
	start := bytes.IndexByte(line, '{')
	if start < 0 {
		return logEntry{}, false
	}
	entry := logEntry{raw: bytes.TrimSpace(line[start:])}
	decoder := json.NewDecoder(bytes.NewReader(entry.raw))
	decoder.UseNumber()
	if decoder.Decode(&entry.fields) != nil || decoder.More() {
		return logEntry{}, false
	}
	return entry, true
}

// fieldText returns a field as text; "" if it is missing.
func (e logEntry) fieldText(name string) string {
	switch value := e.fields[name].(type) {
	case nil:
		return ""
	case string:
		return value
	case json.Number:
		return value.String()
	default:
		encoded, _ := json.Marshal(value)
		return string(encoded)
	}
}

// isAbout reports whether a line is about a run or one of its children. The SDK has its own field names for that.
func (e logEntry) isAbout(run string) bool {
	for _, name := range []string{"run", "workflow", "WorkflowID"} {
		if id := e.fieldText(name); id == run || strings.HasPrefix(id, run+"/") {
			return true
		}
	}
	return false
}

// identity are the fields that identify the attempt of a line, including the SDK's. formatLine abbreviates or omits
// them.
var identity = []string{
	"time", "level", "msg", "run", "workflow", "step", "visit", "index", "page", "attempt", "sink", "operation_key", "call",
	"Namespace", "TaskQueue", "WorkerID", "WorkflowType", "WorkflowID", "RunID", "Attempt", "ActivityID", "ActivityType",
}

// formatLine returns a line for people: time, level, attempt, message and other fields. Multi-line values follow on
// lines of their own.
func (e logEntry) formatLine() string {
	at := e.fieldText("time")
	if parsed, err := time.Parse(time.RFC3339Nano, at); err == nil {
		at = parsed.UTC().Format("2006-01-02 15:04:05.000Z")
	}
	var b, below strings.Builder
	fmt.Fprintf(&b, "%s %-5s ", at, e.fieldText("level"))
	if where := e.attemptText(); where != "" {
		b.WriteString(where + ": ")
	}
	b.WriteString(e.fieldText("msg"))
	for _, name := range slices.Sorted(maps.Keys(e.fields)) {
		if slices.Contains(identity, name) {
			continue
		}
		switch value := strings.TrimRight(e.fieldText(name), "\n"); {
		case strings.Contains(value, "\n") || name == "output":
			for line := range strings.SplitSeq(value, "\n") {
				below.WriteString("  " + terminal.EscapeInvisible(line) + "\n")
			}
		default:
			b.WriteString(", " + name + ": " + value)
		}
	}
	return terminal.OneLine(b.String()) + "\n" + below.String()
}

// attemptText returns the attempt in short form, such as "fetch#2[13] page 2, attempt 3".
func (e logEntry) attemptText() string {
	where := e.fieldText("step")
	if where == "" {
		return ""
	}
	if visit := e.fieldText("visit"); visit != "" && visit != "1" {
		where += "#" + visit
	}
	if index := e.fieldText("index"); index != "" {
		where += "[" + index + "]"
	}
	if sink := e.fieldText("sink"); sink != "" {
		where += " sink " + sink
	}
	if page := e.fieldText("page"); page != "" && page != "1" {
		where += " page " + page + ","
	}
	if attempt := e.fieldText("attempt"); attempt != "" {
		where += " attempt " + attempt
	}
	return where
}

const (
	// maxLogLine bounds a line of a log, in bytes. Workers log shorter lines.
	maxLogLine = 1 << 20
	// logInterval is the interval in which a followed log is read.
	logInterval = 100 * time.Millisecond
	// endInterval is the interval of checks whether the run has ended.
	endInterval = 2 * time.Second
	// movedGrace is how long a log is still read after its path has another file: its writer may not have noticed
	// yet.
	movedGrace = 2 * time.Second
)

// LogTail reads a log line by line, and can follow it as it grows.
type LogTail struct {
	name   string
	long   int // lines that were too long
	stream io.ReadCloser
	file   *os.File // the stream where that may grow, else nil
	reader *bufio.Reader
	line   []byte // what has come of a line
	over   bool   // and was too long
	moved  time.Time
}

func newLogTail(name string, stream io.ReadCloser, file *os.File) *LogTail {
	return &LogTail{name: name, stream: stream, file: file, reader: bufio.NewReaderSize(stream, 64<<10)}
}

// Close closes the log.
func (t *LogTail) Close() { _ = t.stream.Close() }

// EachLine calls show for every line. With follow it waits at the end of the file for more, until ended returns true.
func (t *LogTail) EachLine(ctx context.Context, follow bool, ended func(context.Context) bool, show func([]byte) error) error {
	checked, last := time.Time{}, false
	for {
		if err := t.readRest(ctx, show); err != nil || ctx.Err() != nil {
			return err
		}
		if !follow || t.file == nil {
			return t.flushLine(show)
		}
		again, err := t.reopenLog(show, last)
		switch {
		case err != nil:
			return err
		case again:
			continue
		case last:
			return t.flushLine(show)
		case time.Since(checked) > endInterval:
			checked, last = time.Now(), ended(ctx)
		}
		if !last && sleep.For(ctx, logInterval) != nil {
			return nil
		}
	}
}

// readRest reads up to the present end of the log.
func (t *LogTail) readRest(ctx context.Context, show func([]byte) error) error {
	for ctx.Err() == nil {
		piece, err := t.reader.ReadSlice('\n')
		if !t.over && len(t.line)+len(piece) > maxLogLine {
			t.over, t.line = true, nil
			t.long++
		}
		if !t.over {
			t.line = append(t.line, piece...)
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return fmt.Errorf("read %s: %w", t.name, err)
		default:
			if err := t.flushLine(show); err != nil {
				return err
			}
		}
	}
	return nil
}

// flushLine passes the current line to show.
func (t *LogTail) flushLine(show func([]byte) error) error {
	line, over := t.line, t.over
	t.line, t.over = t.line[:0], false
	if over || len(line) == 0 {
		return nil
	}
	return show(line)
}

// reopenLog restarts at the beginning if the log was truncated, and switches to a new file at its path after
// movedGrace, or immediately with now. It reports whether there is more to read.
func (t *LogTail) reopenLog(show func([]byte) error, now bool) (bool, error) {
	own, err := t.file.Stat()
	if err != nil {
		return false, fmt.Errorf("read %s: %w", t.name, err)
	}
	if at, err := t.file.Seek(0, io.SeekCurrent); err == nil && own.Size() < at {
		if _, err := t.file.Seek(0, io.SeekStart); err != nil {
			return false, fmt.Errorf("begin %s again: %w", t.name, err)
		}
		t.reader.Reset(t.file)
		return true, t.flushLine(show)
	}
	there, err := os.Stat(t.name)
	if err != nil || os.SameFile(own, there) {
		t.moved = time.Time{}
		return false, nil
	}
	if t.moved.IsZero() {
		t.moved = time.Now()
	}
	if !now && time.Since(t.moved) < movedGrace {
		return false, nil
	}
	file, err := os.Open(t.name)
	if err != nil {
		return false, nil // it was moved again; the next poll finds the one after
	}
	_ = t.file.Close()
	t.stream, t.file, t.moved = file, file, time.Time{}
	t.reader.Reset(file)
	return true, t.flushLine(show)
}
