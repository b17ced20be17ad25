package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"reprise/internal/base/exitcode"
)

// ErrInterrupted is the error of a read that a signal ended.
var ErrInterrupted = errors.New("interrupted")

// input is standard input whose reads end at the first signal. The command handles Ctrl-C, so Ctrl-C alone would not
// end a read from a terminal.
type input struct {
	from  io.Reader
	until context.Context //nolint:containedctx // Read takes none
}

// UntilInterrupted returns an input whose reads fail with ErrInterrupted once graceful ends, which is at the first
// signal.
func UntilInterrupted(graceful context.Context, in io.Reader) io.Reader {
	return &input{from: in, until: graceful}
}

func (i *input) Read(p []byte) (int, error) {
	type read struct {
		data []byte
		err  error
	}
	ended := make(chan read, 1)
	data := make([]byte, len(p)) // p is the caller's again once Read returns
	go func() {
		n, err := i.from.Read(data)
		ended <- read{data[:n], err}
	}()
	select {
	case got := <-ended:
		return copy(p, got.data), got.err
	case <-i.until.Done():
		return 0, ErrInterrupted
	}
}

// CanAsk reports whether the command can ask questions: standard input is a terminal.
func (s Streams) CanAsk() bool {
	in, is := s.In.(*input)
	if !is {
		return false
	}
	file, is := in.from.(*os.File)
	return is && term.IsTerminal(int(file.Fd()))
}

// errDeclined is the error of a command that the user declined to confirm.
var errDeclined = errors.New("nothing was changed")

// Confirm asks for confirmation, unless yes is set. Without a terminal it returns an error that names the flag.
func (s Streams) Confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !s.CanAsk() {
		return UsageError("%s Standard input is not a terminal; confirm with --yes", question)
	}
	_, _ = fmt.Fprintf(s.Err, "%s [y/N] ", question)
	err := readYes(s.In)
	if errors.Is(err, ErrInterrupted) {
		s.Notef("") // ends the line of the question
		return WithStatus(exitcode.Interrupted, errDeclined)
	}
	return err
}

// readYes reads a line and returns an error unless it is a yes.
func readYes(from io.Reader) error {
	var word string
	if _, err := fmt.Fscanln(from, &word); errors.Is(err, ErrInterrupted) { // no word is no
		return err
	}
	switch word {
	case "y", "Y", "yes", "Yes", "YES":
		return nil
	}
	return errDeclined
}
