package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/report"
	"reprise/internal/observe/runs"
	"reprise/internal/observe/stats"
)

// reportOptions is the command line of report.
type reportOptions struct {
	run  runFlags
	file string
}

const reportLong = `Write what happened in a run as one HTML file: its steps with their states, a time line
of steps, iterations and waits, failures, figures, and what was slowest. The file needs
nothing else, no network and no script, and stays small: the iterations of a large loop
are drawn in bands.

` + idHelp + `

All histories of the run are read, those of iterations and of child runs too; a large run
takes a while, and standard error says how far that is. A run that goes on is shown as far as it has
come. A file that is there is replaced; the new one can be read by its owner alone, since
errors may quote data.

Exit status: 0, 1 where the file cannot be written, 2 where there is no such run, 3 no
server, 130 by Ctrl-C.`

func newReportCommand(a *app) *cobra.Command {
	options := &reportOptions{}
	command := &cobra.Command{
		Use: "report [ID] -o FILE", Short: "Write what happened in a run as an HTML file", Long: reportLong,
		Example: `  starter report -o run.html
  starter report patients-7x2k -o run.html
  starter report patients-7x2k -o - | gzip > run.html.gz`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := writable(options.file); err != nil {
				return err
			}
			return a.withRun(&options.run, args, func(ctx context.Context, s *session, found runs.Found) error {
				return a.htmlReport(ctx, s, found, options.file)
			})
		},
	}
	command.Flags().StringVarP(&options.file, "output", "o", "", "the file to write, - for standard output")
	options.run.add(command)
	return command
}

// writable refuses early what cannot be a file.
func writable(file string) error {
	switch file {
	case "":
		return usageError("say with -o where to write the report; - is standard output")
	case "-":
		return nil
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return usageError("%s is in no directory that there is", file)
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return usageError("%s is there and no file that can be replaced", file)
	}
	return nil
}

func (a *app) htmlReport(ctx context.Context, s *session, found runs.Found, file string) error {
	doc, err := a.document(ctx, s, found)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := writeHTML(&page, doc); err != nil {
		return err
	}
	if file == "-" {
		return a.out.Verbatim(page.Bytes())
	}
	if err := replaceFile(file, page.Bytes()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	a.notef("wrote %s (%d kB)", file, (page.Len()+1023)/1024)
	return nil
}

// document reads the content of a report.
func (a *app) document(ctx context.Context, s *session, found runs.Found) (report.Document, error) {
	doc := report.Document{At: time.Now()}
	var err error
	if doc.Status, err = s.runs().Status(ctx, found, doc.At); err != nil {
		return doc, err
	}
	doc.Notes = doc.Status.Notes
	if doc.Playbook, err = s.runs().Playbook(ctx, found); err != nil {
		doc.Notes = append(doc.Notes, fmt.Sprintf("the steps are those that ran, since the playbook cannot be read: %v", err))
	}
	end := found.EndedAt
	if end.IsZero() {
		end = doc.At
	}
	doc.Timeline = report.NewTimeline(found.StartedAt, end)
	c := a.newCollection(s, stats.NewCollector(doc.Timeline.See))
	defer c.close()
	read, err := c.run(ctx, found, "for its report", doc.Below.Add)
	if err == nil {
		err = c.childRuns(ctx)
	}
	if err != nil {
		return doc, err
	}
	for _, row := range doc.Below.Rows {
		row.Link = s.link(row.WorkflowID, "")
	}
	doc.Stats, doc.Notes = c.into.Stats(), append(doc.Notes, read.Notes...)
	return doc, nil
}

// writeHTML writes a report in which the eyes see every character: a page obeys
// those that a terminal obeys.
func writeHTML(w io.Writer, doc report.Document) error {
	var page bytes.Buffer
	if err := report.Write(&page, doc); err != nil {
		return err
	}
	_, err := io.WriteString(w, terminal.Visible(page.String()))
	return err
}

// replaceFile writes a file as a whole, or leaves what was there.
func replaceFile(path string, content []byte) error {
	next, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return err
	}
	_, err = next.Write(content)
	if err = errors.Join(err, next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		_ = os.Remove(next.Name())
	}
	return err
}
