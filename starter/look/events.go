package look

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/starter/cli"
	"reprise/starter/session"
)

// EventsOptions are the flags of events.
type EventsOptions struct {
	Run    session.RunFlags
	follow bool
	Step   string
	Index  *int // nil for all iterations
	Failed bool
	Kinds  []string
	Output string
}

// NewEventsCommand returns the command events.
func NewEventsCommand(a *cli.App) *cobra.Command {
	options := &EventsOptions{}
	var index int
	command := &cobra.Command{
		Use: "events [RUN [STEP]]", Args: cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			if command.Flags().Changed("index") {
				options.Index = &index
			}
			return ShowEvents(a, args, options)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&options.follow, "follow", false, "follow the run until it ends")
	flags.StringVar(&options.Step, "step", "", "only this step, with the attempts of its iterations; same as STEP")
	flags.IntVar(&index, "index", 0, "only the iteration with this index, from 0, with its attempts")
	flags.BoolVar(&options.Failed, "failed", false, "only iterations and steps that failed, with their attempts")
	flags.StringSliceVar(&options.Kinds, "kind", nil, "only events of these kinds, such as action_error,step_retry")
	options.Run.Add(command)
	cli.OutputFlagOf(command, &options.Output, ": a document for each line", "table", "json", "jsonl")
	return command
}

// ShowEvents prints the events of the run that the arguments select.
func ShowEvents(a *cli.App, args []string, options *EventsOptions) error {
	args, err := cli.StepOf(args, &options.Step)
	if err != nil {
		return err
	}
	ask, err := options.eventFilter()
	if err != nil {
		return err
	}
	return session.WithRun(a, &options.Run, args, func(ctx context.Context, s *session.Session, found runs.Found) error {
		return printEvents(ctx, a.Streams, s, found, ask, options.Output)
	})
}

// eventFilter validates the flags and returns them as a filter.
func (o *EventsOptions) eventFilter() (runs.EventFilter, error) {
	filter := runs.EventFilter{Step: o.Step, Failed: o.Failed, Kinds: o.Kinds, Follow: o.follow, Index: o.Index}
	for _, kind := range o.Kinds {
		if err := cli.CheckChoice("--kind", kind, runs.KindNames()); err != nil {
			return filter, err
		}
	}
	if o.Index != nil && *o.Index < 0 {
		return filter, cli.UsageError("--index %d is less than 0, the first iteration", *o.Index)
	}
	return filter, nil
}

func printEvents(ctx context.Context, streams cli.Streams, s *session.Session, found runs.Found, ask runs.EventFilter, output string) error {
	if ask.Step != "" {
		steps, err := s.Runs().StepNames(ctx, found)
		if err != nil {
			return err
		}
		if err := cli.KnownStep(ask.Step, steps); err != nil {
			return err
		}
	}
	writer := newEventWriter(streams, found, output)
	summary, err := s.Runs().Events(ctx, found, ask, writer.writeEvent)
	if ctx.Err() != nil {
		err = cli.WithStatus(exitcode.Interrupted, cli.ErrSaid)
	}
	if end := writer.endDocument(summary); err == nil {
		err = end
	}
	for _, note := range summary.Notes {
		streams.Notef("note: %s", note)
	}
	if err == nil && writer.n == 0 {
		streams.Notef("no events match")
	}
	if summary.Unasked > 0 && output == "table" {
		streams.Advisef("The attempts of iterations are not listed; add --step, --index or --failed.")
	}
	return err
}

// eventWriter prints events as they arrive.
type eventWriter struct {
	out    io.Writer
	found  runs.Found
	output string
	width  int // of a terminal, 0 for anything else
	day    string
	n      int
}

func newEventWriter(streams cli.Streams, found runs.Found, output string) *eventWriter {
	w := &eventWriter{out: streams.Out, found: found, output: output}
	if terminal.IsTerminal(streams.Out) {
		w.width = terminal.OutputWidth(streams.Out)
	}
	return w
}

func (w *eventWriter) writeEvent(event runs.Event) error {
	w.n++
	if w.output == "table" {
		return w.writeLine(event)
	}
	var encoded strings.Builder
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(event); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	text := encoded.String()
	if w.output == "json" {
		before := ",\n    "
		if w.n == 1 {
			before = w.beginDocument()
		}
		text = before + strings.TrimRight(text, "\n")
	}
	_, err := io.WriteString(w.out, text)
	return err
}

// beginDocument returns the start of the JSON document.
func (w *eventWriter) beginDocument() string {
	id, _ := json.Marshal(w.found.WorkflowID)
	runID, _ := json.Marshal(w.found.RunID)
	return fmt.Sprintf("{\n  \"workflow_id\": %s,\n  \"run_id\": %s,\n  \"events\": [\n    ", id, runID)
}

// endDocument writes the end of the JSON document.
func (w *eventWriter) endDocument(summary runs.EventsInfo) error {
	if w.output != "json" {
		return nil
	}
	text := ""
	if w.n == 0 {
		text = strings.TrimRight(w.beginDocument(), "\n ")
	} else {
		text = "\n  "
	}
	notes, err := json.Marshal(cli.OrEmpty(summary.Notes))
	if err == nil {
		_, err = fmt.Fprintf(w.out, "%s],\n  \"notes\": %s\n}\n", text, notes)
	}
	return err
}

// writeLine writes an event for people. Lines are cut to the terminal's width; --output jsonl has all text.
func (w *eventWriter) writeLine(event runs.Event) error {
	at := event.At.UTC()
	if day := at.Format(time.DateOnly); day != w.day {
		w.day = day
		if _, err := fmt.Fprintln(w.out, day+" UTC"); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("%s %-20s %s", at.Format("15:04:05.000"), event.Event, render.DescribeEvent(event))
	line = terminal.OneLine(line)
	if w.width > 0 {
		line = text.Snip(line, w.width, "…")
	}
	_, err := fmt.Fprintln(w.out, strings.TrimRight(line, " "))
	return err
}
