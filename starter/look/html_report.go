package look

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/ending"
	"reprise/internal/observe/graph"
	"reprise/internal/observe/render"
	"reprise/internal/observe/report"
	"reprise/internal/observe/runs"
	"reprise/internal/observe/stats"
	"reprise/starter/cli"
	"reprise/starter/session"
)

// reportOptions are the flags of report.
type reportOptions struct {
	run  session.RunFlags
	file string
}

// NewReportCommand returns the command report.
func NewReportCommand(a *cli.App) *cobra.Command {
	options := &reportOptions{}
	command := &cobra.Command{
		Use: "report [RUN] -o FILE", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := checkWritable(options.file); err != nil {
				return err
			}
			return session.WithRun(a, &options.run, args, func(ctx context.Context, s *session.Session, found runs.Found) error {
				return htmlReport(ctx, a, s, found, options.file)
			})
		},
	}
	command.Flags().StringVarP(&options.file, "output", "o", "", "the file to write, - for standard output")
	options.run.Add(command)
	return command
}

// checkWritable rejects a path that cannot be written, before anything is read.
func checkWritable(file string) error {
	switch file {
	case "":
		return cli.UsageError("-o is missing: name the file to write, or - for standard output")
	case "-":
		return nil
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return cli.UsageError("the directory of %s does not exist", file)
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return cli.UsageError("%s exists and is not a regular file, so it is not replaced", file)
	}
	return nil
}

func htmlReport(ctx context.Context, a *cli.App, s *session.Session, found runs.Found, file string) error {
	doc, err := documentOf(ctx, a.Streams, s, found)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := writeHTML(&page, doc); err != nil {
		return err
	}
	if file == "-" {
		return a.Screen.WriteVerbatim(page.Bytes())
	}
	if err := cli.ReplaceFile(file, page.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	a.Notef("wrote %s (%d kB)", file, (page.Len()+1023)/1024)
	return nil
}

// documentOf reads the data of a report.
func documentOf(ctx context.Context, streams cli.Streams, s *session.Session, found runs.Found) (report.Document, error) {
	doc := report.Document{At: time.Now()}
	var err error
	if doc.Status, err = s.Runs().Status(ctx, found, doc.At); err != nil {
		return doc, err
	}
	doc.Notes = doc.Status.Notes
	if doc.Playbook, err = s.Runs().Playbook(ctx, found); err != nil {
		doc.Notes = append(doc.Notes, fmt.Sprintf("only steps that ran are shown, because the playbook cannot be read: %v", err))
	}
	doc.Timeline = report.NewTimeline(found.StartedAt, cmp.Or(found.EndedAt, doc.At))
	c := newCollection(streams, s, stats.NewCollector(doc.Timeline.AddSpan))
	defer c.closeProgress()
	read, err := c.readRun(ctx, found, "for its report", doc.ChildRuns.AddEvent)
	if err == nil {
		err = c.childRuns(ctx)
	}
	if err != nil {
		return doc, err
	}
	for _, row := range doc.ChildRuns.Rows {
		row.Link = s.RunLink(row.WorkflowID, "")
	}
	doc.Stats, doc.Notes = c.into.Stats(), append(doc.Notes, read.Notes...)
	addValues(ctx, s, found, &doc)
	return doc, nil
}

// shownReported bounds the input and the result in a report, in bytes each.
const shownReported = 64 << 10

// addValues adds the input and the result of a run to a report, and how to continue.
func addValues(ctx context.Context, s *session.Session, found runs.Found, doc *report.Document) {
	shown := func(value any) string {
		text, cut := render.MaskedJSON(value, shownReported)
		if cut {
			text += "\n…"
		}
		return text
	}
	if input, err := s.Runs().Input(ctx, found.WorkflowID, found.LastRunID()); err == nil && input.Workload.Data != nil {
		doc.Input = shown(input.Workload.Data)
	}
	if found.Ended() {
		result, err := ending.WaitForResult(ctx, s.Client.GetWorkflow(ctx, found.WorkflowID, found.LastRunID()))
		if err == nil && result.Result.Data != nil {
			doc.Result = shown(result.Result.Data)
		}
		if err == nil {
			doc.Cause = render.EndedRun{
				WorkflowID: found.WorkflowID, Result: result, Book: doc.Playbook, ReadChild: ending.ChildReader(ctx, s.Runs()),
			}.Cause()
		}
	}
	if doc.Playbook != nil {
		doc.Graph = graph.New(doc.Playbook, doc.Status, &graph.Children{}).SVG()
	}
	doc.Link, doc.Commands = s.RunLink(found.WorkflowID, found.LastRunID()), render.HelpCommands(doc.Status)
}

// writeHTML writes a report with control characters escaped: a page would interpret the same ones as a terminal.
func writeHTML(w io.Writer, doc report.Document) error {
	var page bytes.Buffer
	if err := report.Write(&page, doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, terminal.EscapeInvisible(page.String()))
	return err
}
