package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
)

// eventsOptions is the command line of events.
type eventsOptions struct {
	run    runFlags
	follow bool
	step   string
	index  *int // nil for all iterations
	failed bool
	kinds  []string
	output string
}

func newEventsCommand(a *app) *cobra.Command {
	options := &eventsOptions{}
	var index int
	command := &cobra.Command{
		Use: "events [RUN [STEP]]", Args: cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			if command.Flags().Changed("index") {
				options.index = &index
			}
			return a.showEvents(args, options)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&options.follow, "follow", false, "follow the run until it ends")
	flags.StringVar(&options.step, "step", "", "only this step, with the attempts of its iterations; same as STEP")
	flags.IntVar(&index, "index", 0, "only the iteration with this index, from 0, with its attempts")
	flags.BoolVar(&options.failed, "failed", false, "only iterations and steps that failed, with their attempts")
	flags.StringSliceVar(&options.kinds, "kind", nil, "only events of these kinds, such as action_error,step_retry")
	options.run.add(command)
	outputFlagOf(command, &options.output, ": a document for each line", "table", "json", "jsonl")
	return command
}

// showEvents shows the events of the run that arguments name.
func (a *app) showEvents(args []string, options *eventsOptions) error {
	args, err := stepOf(args, &options.step)
	if err != nil {
		return err
	}
	ask, err := options.filter()
	if err != nil {
		return err
	}
	return a.withRun(&options.run, args, func(ctx context.Context, s *session, found runs.Found) error {
		return a.events(ctx, s, found, ask, options.output)
	})
}

// filter checks the flags.
func (o *eventsOptions) filter() (runs.EventFilter, error) {
	filter := runs.EventFilter{Step: o.step, Failed: o.failed, Kinds: o.kinds, Follow: o.follow, Index: o.index}
	for _, kind := range o.kinds {
		if err := choice("--kind", kind, runs.KindNames()); err != nil {
			return filter, err
		}
	}
	if o.index != nil && *o.index < 0 {
		return filter, usageError("--index %d is less than 0, the first iteration", *o.index)
	}
	return filter, nil
}

func (a *app) events(ctx context.Context, s *session, found runs.Found, ask runs.EventFilter, output string) error {
	if ask.Step != "" {
		steps, err := s.runs().StepNames(ctx, found)
		if err != nil {
			return err
		}
		if err := knownStep(ask.Step, steps); err != nil {
			return err
		}
	}
	writer := newEventWriter(a, found, output)
	summary, err := s.runs().Events(ctx, found, ask, writer.write)
	if ctx.Err() != nil {
		err = withStatus(exitInterrupted, errSaid)
	}
	if end := writer.end(summary); err == nil {
		err = end
	}
	for _, note := range summary.Notes {
		a.notef("note: %s", note)
	}
	if err == nil && writer.n == 0 {
		a.notef("no events match")
	}
	if summary.Unasked > 0 && output == "table" {
		a.advisef("The attempts of iterations are not listed; add --step, --index or --failed.")
	}
	return err
}

// eventWriter writes events as they come.
type eventWriter struct {
	out    io.Writer
	found  runs.Found
	output string
	width  int // of a terminal, 0 for anything else
	day    string
	n      int
}

func newEventWriter(a *app, found runs.Found, output string) *eventWriter {
	w := &eventWriter{out: a.Out, found: found, output: output}
	if terminal.IsTerminal(a.Out) {
		w.width = terminal.Width(a.Out)
	}
	return w
}

func (w *eventWriter) write(event runs.Event) error {
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
			before = w.head()
		}
		text = before + strings.TrimRight(text, "\n")
	}
	_, err := io.WriteString(w.out, text)
	return err
}

// head begins the JSON document.
func (w *eventWriter) head() string {
	id, _ := json.Marshal(w.found.WorkflowID)
	runID, _ := json.Marshal(w.found.RunID)
	return fmt.Sprintf("{\n  \"workflow_id\": %s,\n  \"run_id\": %s,\n  \"events\": [\n    ", id, runID)
}

// end closes the JSON document.
func (w *eventWriter) end(summary runs.EventsInfo) error {
	if w.output != "json" {
		return nil
	}
	text := ""
	if w.n == 0 {
		text = strings.TrimRight(w.head(), "\n ")
	} else {
		text = "\n  "
	}
	notes, err := json.Marshal(orEmpty(summary.Notes))
	if err == nil {
		_, err = fmt.Fprintf(w.out, "%s],\n  \"notes\": %s\n}\n", text, notes)
	}
	return err
}

// writeLine writes an event for eyes. Lines that do not fit a terminal are cut;
// --output jsonl has all of them.
func (w *eventWriter) writeLine(event runs.Event) error {
	at := event.At.UTC()
	if day := at.Format(time.DateOnly); day != w.day {
		w.day = day
		if _, err := fmt.Fprintln(w.out, day+" UTC"); err != nil {
			return err
		}
	}
	line := fmt.Sprintf("%s %-20s %s", at.Format("15:04:05.000"), event.Event, render.Event(event))
	line = terminal.OneLine(line)
	if w.width > 0 {
		line = text.Snip(line, w.width, "…")
	}
	_, err := fmt.Fprintln(w.out, strings.TrimRight(line, " "))
	return err
}
