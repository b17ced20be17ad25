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

// ErrInterrupted is returned by a read that a signal ended.
var ErrInterrupted = errors.New("interrupted")

// input is a standard input whose reads end at the first signal: Ctrl-C alone does not end a read from
// a terminal, because the command handles the signal.
type input struct {
	from  io.Reader
	until context.Context //nolint:containedctx // Read takes none
}

// UntilInterrupted returns a standard input whose reads end with a context, the first signal.
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

// CanAsk reports whether somebody at a terminal may answer.
func (s Streams) CanAsk() bool {
	in, is := s.In.(*input)
	if !is {
		return false
	}
	file, is := in.from.(*os.File)
	return is && term.IsTerminal(int(file.Fd()))
}

// errDeclined says that the user declined.
var errDeclined = errors.New("nothing was changed")

// Confirm asks whether to continue, unless yes says so already. Without a terminal it
// is an error that names the flag.
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

// readYes reads a line that says yes or something else.
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
