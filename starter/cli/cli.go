// Package cli has what starter's commands share: standard streams, exit statuses, signals, flags, prompts, and the
// user's files. It does not depend on a server or a playbook.
package cli

import (
	"fmt"
	"io"

	"reprise/internal/base/terminal"
)

// Streams are the standard streams of a command. Out is for results, Err for messages to people.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// ErrTerminal reports whether Err is a terminal.
func (s Streams) ErrTerminal() bool { return terminal.IsTerminal(s.Err) }

// Notef prints a message to standard error.
func (s Streams) Notef(format string, args ...any) { _, _ = fmt.Fprintf(s.Err, format+"\n", args...) }

// Advisef prints what the user may do next, dim at a terminal because it is not a warning.
func (s Streams) Advisef(format string, args ...any) {
	s.Notef("%s", terminal.PaperOf(s.Err).Paint(terminal.Quiet, fmt.Sprintf(format, args...)))
}

// App is the state that the commands of starter share.
type App struct {
	Streams
	Screen     *terminal.Screen // Out, for what has to be written as it is
	Interrupts *Interrupts
	// Warnings are warnings of the command itself, which are added to those of the run's report.
	Warnings []string
	// Files confines the files that are read to a folder; nil means anywhere.
	Files *Confinement
}

// StandardStreams combine standard input and output for other programs. Output is not escaped for a terminal.
type StandardStreams struct {
	io.Reader

	Out io.Writer
}

func (s StandardStreams) Write(p []byte) (int, error) {
	if screen, is := s.Out.(*terminal.Screen); is {
		return len(p), screen.WriteVerbatim(p)
	}
	return s.Out.Write(p)
}

// Close does nothing, because the streams belong to the process.
func (s StandardStreams) Close() error { return nil }

// ShowDocument prints the result of a command: document for the output json, else text.
func (s Streams) ShowDocument(output string, document any, text string) error {
	if output == "json" {
		return terminal.PrintJSON(s.Out, document)
	}
	_, err := io.WriteString(s.Out, text)
	return err
}

// PrintLine prints a line to standard output.
func (s Streams) PrintLine(format string, args ...any) error {
	_, err := fmt.Fprintf(s.Out, format+"\n", args...)
	return err
}
