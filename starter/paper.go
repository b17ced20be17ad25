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
	file := fileOf(w)
	return file != nil && term.IsTerminal(int(file.Fd()))
}

// fileOf is the file that a stream goes to, nil for something else.
func fileOf(w io.Writer) *os.File {
	if s, ok := w.(*screen); ok {
		w = s.to
	}
	file, _ := w.(*os.File)
	return file
}

// terminalWidth is that of the terminal, 80 for anything else.
func terminalWidth(w io.Writer) int {
	const fallback, least = 80, 20
	if file := fileOf(w); file != nil {
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
	return string(warningMark) + text + string(plainMark)
}
