package author

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reprise/internal/base/exitcode"
	"reprise/internal/observe/graph"
	"reprise/internal/observe/runs"
	"reprise/interpreter/playbook"
	"reprise/starter/cli"
	"reprise/starter/load"
	"reprise/starter/look"
	"reprise/starter/session"
)

// graphFormats maps the values of --format to their renderers.
var graphFormats = map[string]func(*graph.Diagram) string{
	"text": (*graph.Diagram).Text, "mermaid": (*graph.Diagram).Mermaid, "dot": (*graph.Diagram).DOT, "svg": (*graph.Diagram).SVG,
}

// NewGraphCommand returns the command graph.
func NewGraphCommand(a *cli.App) *cobra.Command {
	var run session.RunFlags
	format := "text"
	command := &cobra.Command{
		Use: "graph [FILE|RUN]", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := cli.CheckChoice("--format", format, []string{"text", "mermaid", "dot", "svg"}); err != nil {
				return err
			}
			draw := func(book *playbook.Playbook, status *runs.Status, below *graph.Children) error {
				_, err := io.WriteString(a.Out, graphFormats[format](graph.New(book, status, below)))
				return err
			}
			if name := strings.Join(args, ""); isPlaybookFile(name) {
				of, err := bookOf(a, name)
				if err != nil {
					return err
				}
				return draw(of.Book, nil, &graph.Children{Files: of.Files})
			}
			return session.WithRun(a, &run, args, func(ctx context.Context, s *session.Session, found runs.Found) error {
				book, files, err := s.Runs().ReadSource(ctx, found)
				if err != nil {
					return err
				}
				status, err := look.ReadStatus(ctx, s, found, "")
				if err != nil {
					return err
				}
				for _, note := range status.Notes {
					a.Notef("note: %s", note)
				}
				return draw(book, status, &graph.Children{Files: files, Run: func(id string) (*playbook.Playbook, *runs.Status) {
					return childRun(ctx, s, id)
				}})
			})
		},
	}
	command.Flags().StringVarP(&format, "format", "f", format, "text, mermaid, dot or svg")
	run.Add(command)
	return command
}

// isPlaybookFile reports whether an argument is a file rather than the ID of a run.
func isPlaybookFile(name string) bool {
	if ext := filepath.Ext(name); name == "-" || strings.HasPrefix(name, load.ExampleScheme) || ext == ".yaml" || ext == ".yml" {
		return true
	}
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// bookOf reads a playbook to draw. One with problems is an error.
func bookOf(a *cli.App, name string) (load.CheckedPlaybook, error) {
	limits, err := load.AssumedLimits()
	if err != nil {
		return load.CheckedPlaybook{}, err
	}
	read, err := load.CheckPlaybook(a, name, nil, limits)
	if err != nil {
		return load.CheckedPlaybook{}, err
	}
	if read.Found.HasErrors() || read.Book == nil {
		_, _ = io.WriteString(a.Err, read.File.FormatFirst(read.Found, playbook.MaxShown))
		return load.CheckedPlaybook{}, cli.WithStatus(exitcode.Failed, cli.ErrSaid)
	}
	return read, nil
}

// childRun returns the playbook and the status of a run that another one started; nil if it cannot be read.
func childRun(ctx context.Context, s *session.Session, id string) (*playbook.Playbook, *runs.Status) {
	found, err := s.Runs().Find(ctx, id, "")
	if err != nil {
		return nil, nil
	}
	book, err := s.Runs().Playbook(ctx, found)
	if err != nil {
		return nil, nil
	}
	status, err := look.ReadStatus(ctx, s, found, "")
	if err != nil {
		return nil, nil
	}
	return book, status
}
