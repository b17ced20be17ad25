package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/observe/graph"
	"reprise/internal/observe/runs"
	"reprise/interpreter/playbook"
)

// graphFormats are the values of --format.
var graphFormats = map[string]func(*graph.Diagram) string{
	"text": (*graph.Diagram).Text, "mermaid": (*graph.Diagram).Mermaid, "dot": (*graph.Diagram).DOT, "svg": (*graph.Diagram).SVG,
}

func newGraphCommand(a *app) *cobra.Command {
	var run runFlags
	format := "text"
	command := &cobra.Command{
		Use: "graph [FILE|RUN]", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := choice("--format", format, []string{"text", "mermaid", "dot", "svg"}); err != nil {
				return err
			}
			draw := func(book *playbook.Playbook, status *runs.Status, below *graph.Children) error {
				_, err := io.WriteString(a.Out, graphFormats[format](graph.New(book, status, below)))
				return err
			}
			if name := strings.Join(args, ""); isPlaybookFile(name) {
				of, err := a.bookOf(name)
				if err != nil {
					return err
				}
				return draw(of.book, nil, &graph.Children{Files: of.files})
			}
			return a.withRun(&run, args, func(ctx context.Context, s *session, found runs.Found) error {
				book, files, err := s.runs().Source(ctx, found)
				if err != nil {
					return err
				}
				status, err := s.status(ctx, found, "")
				if err != nil {
					return err
				}
				for _, note := range status.Notes {
					a.notef("note: %s", note)
				}
				return draw(book, status, &graph.Children{Files: files, Run: func(id string) (*playbook.Playbook, *runs.Status) {
					return s.childRun(ctx, id)
				}})
			})
		},
	}
	command.Flags().StringVarP(&format, "format", "f", format, "text, mermaid, dot or svg")
	run.add(command)
	return command
}

// isPlaybookFile distinguishes a file from the ID of a run.
func isPlaybookFile(name string) bool {
	if ext := filepath.Ext(name); name == "-" || strings.HasPrefix(name, exampleScheme) || ext == ".yaml" || ext == ".yml" {
		return true
	}
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// bookOf reads a playbook that can be drawn; one with problems cannot.
func (a *app) bookOf(name string) (checked, error) {
	limits, err := assumedLimits()
	if err != nil {
		return checked{}, err
	}
	read, err := a.check(name, nil, limits)
	if err != nil {
		return checked{}, err
	}
	if read.found.HasErrors() || read.book == nil {
		_, _ = io.WriteString(a.Err, read.file.FormatFirst(read.found, playbook.MaxShown))
		return checked{}, withStatus(exitFailed, errSaid)
	}
	return read, nil
}

// childRun finds a run that another one has started, nil where it cannot be read.
func (s *session) childRun(ctx context.Context, id string) (*playbook.Playbook, *runs.Status) {
	found, err := s.runs().Find(ctx, id, "")
	if err != nil {
		return nil, nil
	}
	book, err := s.runs().Playbook(ctx, found)
	if err != nil {
		return nil, nil
	}
	status, err := s.status(ctx, found, "")
	if err != nil {
		return nil, nil
	}
	return book, status
}
