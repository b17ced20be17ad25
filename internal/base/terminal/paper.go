package terminal

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"
)

// Paper describes the output of a text: a terminal, or a pipe or file.
type Paper struct {
	Colour bool
	Width  int // in columns; Unbounded for a pipe or a file
}

// Unbounded is the width of pipes and files: nothing is cut or wrapped, and tables have all their columns.
const Unbounded = 1 << 20

// IsBounded reports whether the output is a terminal, which may show long texts in part; pipes and files get all of them.
func (p Paper) IsBounded() bool { return p.Width < Unbounded }

// WrapLines wraps a text between words at the paper's width.
func (p Paper) WrapLines(said string) []string { return WrapText(said, p.Width) }

// Shorten cuts a text for a terminal. For pipes and files, it only joins its lines.
func (p Paper) Shorten(text string, most int) string {
	if !p.IsBounded() {
		most = math.MaxInt
	}
	return Shorten(text, most)
}

// LayoutWidth returns the width for laying out texts of several lines: HelpColumns if the width is unbounded.
func LayoutWidth(width int) int {
	if width >= Unbounded {
		return HelpColumns
	}
	return width
}

// PaperOf describes what a stream writes to. Only terminals have colours, unless NO_COLOR is set (no-color.org).
func PaperOf(w io.Writer) Paper {
	if !IsTerminal(w) {
		return Paper{Width: Unbounded}
	}
	return Paper{Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", Width: OutputWidth(w)}
}

// IsTerminal reports whether a stream goes to a terminal.
func IsTerminal(w io.Writer) bool {
	file := FileOf(w)
	return file != nil && term.IsTerminal(int(file.Fd()))
}

// FileOf returns the file that a stream writes to; nil if it is not a file.
func FileOf(w io.Writer) *os.File {
	if s, ok := w.(*Screen); ok {
		w = s.To
	}
	file, _ := w.(*os.File)
	return file
}

// OutputWidth returns the width of the terminal; 80 for other outputs, where help and other prose are wrapped too.
func OutputWidth(w io.Writer) int {
	const fallback, least = 80, 20
	if file := FileOf(w); file != nil {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > least {
			return width
		}
	}
	return fallback
}

// ProgramName returns this program as its user calls it, so that printed commands can be pasted.
func ProgramName() string { return programName(os.Args[0]) }

func programName(called string) string {
	if filepath.Base(called) == called || strings.Contains(called, "go-build") { // go run leaves nothing behind
		return "starter"
	}
	if strings.ContainsAny(called, " '\"$\\") {
		return "'" + strings.ReplaceAll(called, "'", `'\''`) + "'"
	}
	return called
}
