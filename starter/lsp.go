package main

import (
	"io"

	"github.com/spf13/cobra"

	"reprise/activities"
	"reprise/internal/base/terminal"
	"reprise/internal/program/lsp"
	"reprise/interpreter/playbook/check"
)

func newLSPCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "lsp", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return a.lsp() },
	}
}

// lsp answers an editor on the standard streams until that ends it.
func (a *app) lsp() error {
	limits, err := assumedLimits()
	if err != nil {
		return err
	}
	server := lsp.New(activities.Default(), check.Options{Limits: limits})
	err = server.Serve(a.interrupts.graceful, standardStreams{Reader: a.In, out: a.Out})
	if a.interrupts.graceful.Err() != nil {
		return nil
	}
	return err
}

// standardStreams are both as one, for programs: what is written is not made fit for a
// terminal.
type standardStreams struct {
	io.Reader

	out io.Writer
}

func (s standardStreams) Write(p []byte) (int, error) {
	if screen, is := s.out.(*terminal.Screen); is {
		return len(p), screen.Verbatim(p)
	}
	return s.out.Write(p)
}

// Close ends nothing: the streams are the process's.
func (s standardStreams) Close() error { return nil }
