package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// paper is what a report is written on.
type paper struct {
	colour bool
}

// paperOf looks at where a report goes. Colours are for people at a terminal who
// did not say that they want none (no-color.org).
func paperOf(w io.Writer) paper {
	return paper{colour: isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// warning is a text that must not be passed over.
func (p paper) warning(text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[1;33m" + text + "\x1b[0m"
}
