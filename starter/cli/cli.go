// Package cli has what the commands of starter share: standard streams, exit statuses, signals, flags,
// questions, and files of the user. It knows no server and no playbook.
package cli

import (
	"fmt"
	"io"

	"reprise/internal/base/terminal"
)

// Streams are the standard streams of the command. Out takes what programs
// read, Err what people read meanwhile.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// ErrTerminal reports whether Err is a terminal.
func (s Streams) ErrTerminal() bool { return terminal.IsTerminal(s.Err) }

// Notef prints a line that people read meanwhile.
func (s Streams) Notef(format string, args ...any) { _, _ = fmt.Fprintf(s.Err, format+"\n", args...) }

// Advisef prints what a person may do next, dim at a terminal: nothing is wrong with what came before.
func (s Streams) Advisef(format string, args ...any) {
	s.Notef("%s", terminal.PaperOf(s.Err).Paint(terminal.Quiet, fmt.Sprintf(format, args...)))
}

// App is what the commands share.
type App struct {
	Streams
	Screen     *terminal.Screen // Out, for what has to be written as it is
	Interrupts *Interrupts
	// Warnings are the warnings of the command itself, which a run's report ends with.
	Warnings []string
	// Files has the folder that files are read in; nil reads them anywhere.
	Files *Confinement
}

// StandardStreams are both as one, for programs: what is written is not made fit for a
// terminal.
type StandardStreams struct {
	io.Reader

	Out io.Writer
}

func (s StandardStreams) Write(p []byte) (int, error) {
	if screen, is := s.Out.(*terminal.Screen); is {
		return len(p), screen.Verbatim(p)
	}
	return s.Out.Write(p)
}

// Close ends nothing: the streams are the process's.
func (s StandardStreams) Close() error { return nil }

// ShowDocument writes what a command has found: a document for programs, or a text.
func (s Streams) ShowDocument(output string, document any, text string) error {
	if output == "json" {
		return terminal.PrintJSON(s.Out, document)
	}
	_, err := io.WriteString(s.Out, text)
	return err
}

// PrintLine writes a line to the standard output.
func (s Streams) PrintLine(format string, args ...any) error {
	_, err := fmt.Fprintf(s.Out, format+"\n", args...)
	return err
}
