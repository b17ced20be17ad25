package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// paper is what a report is written on.
type paper struct {
	colour bool
	width  int // in columns
}

// paperOf looks at where a report goes. Colours are for people at a terminal who
// did not say that they want none (no-color.org).
func paperOf(w io.Writer) paper {
	return paper{
		colour: isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", width: terminalWidth(w),
	}
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// terminalWidth is that of the terminal, 80 for anything else.
func terminalWidth(w io.Writer) int {
	const fallback, least = 80, 20
	if file, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > least {
			return width
		}
	}
	return fallback
}

// warning is a text that must not be passed over.
func (p paper) warning(text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[1;33m" + text + "\x1b[0m"
}
