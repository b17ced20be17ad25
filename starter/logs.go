package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
)

// logsOptions is the command line of logs.
type logsOptions struct {
	server serverFlags
	follow bool
	step   string
	index  int
	file   string
	output string

	hasIndex bool
}

func newLogsCommand(a *app) *cobra.Command {
	options := &logsOptions{}
	command := &cobra.Command{
		Use: "logs [RUN [STEP]]", Args: cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			args, err := stepOf(args, &options.step)
			if err != nil {
				return err
			}
			options.hasIndex = command.Flags().Changed("index")
			return a.logs(a.interrupts.graceful, options, strings.Join(args, ""))
		},
	}
	flags := command.Flags()
	flags.BoolVar(&options.follow, "follow", false, "continue until the run has ended")
	flags.StringVar(&options.step, "step", "", "only this step; the same as STEP")
	flags.IntVar(&options.index, "index", 0, "only the iteration with this index, from 0")
	flags.StringVar(&options.file, "file", "", "the worker's log, - is standard input; default the local worker's, "+workerLogPath())
	options.server.add(command)
	flags.StringVarP(&options.output, "output", "o", "table", "table or jsonl: the lines as they were logged")
	return command
}

func (o *logsOptions) check() error {
	if o.output != "table" && o.output != "jsonl" {
		return usageError("--output %q is unknown, expected table or jsonl", o.output)
	}
	if o.hasIndex && o.index < 0 {
		return usageError("--index %d is less than 0, the first iteration", o.index)
	}
	return nil
}

func (a *app) logs(ctx context.Context, options *logsOptions, id string) error {
	if err := options.check(); err != nil {
		return err
	}
	tail, err := a.openLog(options.file)
	if err != nil {
		return err
	}
	defer tail.close()
	s, err := options.server.existing(ctx)
	if err != nil && (statusOf(err) != exitNoServer || id == "") {
		return err
	}
	if s != nil {
		defer s.end(false)
	}
	run, unknown, err := a.logRun(ctx, s, id, options.step)
	if err != nil {
		return err
	}
	view := &logView{run: run.WorkflowID, options: options, show: func(text string) error {
		_, err := io.WriteString(a.Out, text)
		return err
	}}
	ended := func(ctx context.Context) bool {
		if s == nil || unknown != nil {
			return false
		}
		now, err := s.runs().Find(ctx, run.WorkflowID, run.RunID)
		return err == nil && now.Ended()
	}
	err = tail.each(ctx, options.follow, ended, view.writeLine)
	switch {
	case ctx.Err() != nil:
		return withStatus(exitInterrupted, errSaid)
	case err != nil:
		return err
	case view.shown == 0 && unknown != nil:
		return unknown
	}
	a.reportLogs(view, tail)
	return nil
}

// reportLogs says what the lines do not.
func (a *app) reportLogs(view *logView, tail *logTail) {
	if view.shown == 0 {
		a.notef("%s has no such lines about the run %s; those of other workers are in their own logs", tail.name, view.run)
	}
	if view.foreign > 0 {
		a.notef("note: %s not JSON; worker --log-file writes lines that are, so does --log-format json", terminal.Count(view.foreign, "line")+isAre(view.foreign))
	}
	if tail.long > 0 {
		a.notef("note: %s longer than %d KiB%s left out", terminal.Count(tail.long, "line"), maxLogLine>>10, isAre(tail.long))
	}
}

func isAre(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

// logRun finds the run of an ID. Without a server, or where that does not know the
// run, which unknown then says, the ID is a whole one.
func (a *app) logRun(ctx context.Context, s *session, id, step string) (found runs.Found, unknown, err error) {
	whole := runs.Found{WorkflowID: id}
	if s == nil {
		if id == "" {
			return whole, nil, withStatus(exitNoServer, errors.New("without a Temporal server the newest run is not known: name a RUN"))
		}
		a.notef("note: no Temporal server to ask, so %s is taken for a whole ID", id)
		return whole, nil, nil
	}
	found, err = s.runs().Find(ctx, id, "")
	if _, ok := errors.AsType[*runs.UnknownError](err); ok && id != "" {
		return whole, a.findError(s, err), nil
	}
	if err != nil {
		return found, nil, a.findError(s, err)
	}
	if id == "" {
		a.notef("the newest run: %s", found.WorkflowID)
	}
	if step == "" {
		return found, nil, nil
	}
	steps, err := s.runs().StepNames(ctx, found)
	if err == nil {
		err = knownStep(step, steps)
	}
	return found, nil, err
}

// openLog opens the log to read.
func (a *app) openLog(name string) (*logTail, error) {
	if name == "-" {
		return newLogTail("standard input", io.NopCloser(a.In), nil), nil
	}
	path := name
	if path == "" {
		path = workerLogPath()
	}
	file, err := os.Open(path)
	switch {
	case os.IsNotExist(err) && name == "":
		return nil, usageError("there is no log of a local worker here; name that of a worker with --file")
	case err != nil:
		return nil, usageError("--file: %w", err)
	}
	if info, err := file.Stat(); err != nil || info.IsDir() {
		_ = file.Close()
		return nil, usageError("--file: %s is no file", path)
	}
	return newLogTail(path, file, file), nil
}

// logView shows the lines about a run.
type logView struct {
	run     string
	options *logsOptions
	show    func(text string) error
	shown   int
	foreign int // lines that are not JSON
}

// writeLine shows a line if the options select it.
func (v *logView) writeLine(line []byte) error {
	if len(strings.TrimSpace(string(line))) == 0 {
		return nil
	}
	entry, ok := parseLog(line)
	if !ok {
		v.foreign++
		return nil
	}
	if !entry.about(v.run) || v.options.step != "" && entry.text("step") != v.options.step ||
		v.options.hasIndex && entry.text("index") != fmt.Sprint(v.options.index) {
		return nil
	}
	v.shown++
	text := entry.format()
	if v.options.output == "jsonl" {
		text = string(entry.raw) + "\n"
	}
	return v.show(text)
}
