package terminal

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"
)

// Paper is what a report is written on.
type Paper struct {
	Colour bool
	Width  int // in columns
	// Wraps is true for a terminal, where long lines are broken between words. Programs get them whole.
	Wraps bool
}

// Lines are those of one line: several where it is too long for a terminal.
func (p Paper) Lines(said string) []string {
	if !p.Wraps {
		return []string{said}
	}
	return Wrap(said, p.Width)
}

// PaperOf describes where a report goes. Colours are for people at a terminal, unless
// they want none (no-color.org).
func PaperOf(w io.Writer) Paper {
	return Paper{
		Colour: IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", Width: Width(w), Wraps: IsTerminal(w),
	}
}

// IsTerminal reports whether a stream goes to a terminal.
func IsTerminal(w io.Writer) bool {
	file := File(w)
	return file != nil && term.IsTerminal(int(file.Fd()))
}

// File is the file that a stream goes to, nil for something else.
func File(w io.Writer) *os.File {
	if s, ok := w.(*Screen); ok {
		w = s.To
	}
	file, _ := w.(*os.File)
	return file
}

// Width is that of the terminal, 80 for anything else.
func Width(w io.Writer) int {
	const fallback, least = 80, 20
	if file := File(w); file != nil {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > least {
			return width
		}
	}
	return fallback
}

// Program is this program as its user calls it: what is printed as a command is
// pasted.
func Program() string { return programName(os.Args[0]) }

func programName(called string) string {
	if filepath.Base(called) == called || strings.Contains(called, "go-build") { // go run leaves nothing behind
		return "starter"
	}
	if strings.ContainsAny(called, " '\"$\\") {
		return "'" + strings.ReplaceAll(called, "'", `'\''`) + "'"
	}
	return called
}
