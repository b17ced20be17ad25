package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
)

// VerifyReport is what a log consists of.
type VerifyReport struct {
	Lines int64
	// Last is the hash of the last line; "" for an empty log. Only a copy of it, elsewhere, shows that lines at the end
	// were removed.
	Last string
	// Torn are the numbers of lines that were cut short, as the lines behind them say.
	Torn []int64
}

// ChainGap is the first place at which a log does not fit together.
type ChainGap struct {
	Line    int64 // 1 is the first
	Message string
}

func (g *ChainGap) Error() string { return fmt.Sprintf("line %d: %s", g.Line, g.Message) }

// Verify reads a whole log. contains is the hash of a line that it must have, such as the Last of an earlier report;
// "" for none. The error is a *ChainGap, or that of reading.
func Verify(log io.Reader, contains string) (VerifyReport, error) {
	v := &verifier{contains: contains}
	lines := bufio.NewReaderSize(log, mostLine+1)
	for {
		text, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return v.VerifyReport, v.gapAt(v.Lines+1, "it is longer than any line of an audit log")
		case err != nil && !errors.Is(err, io.EOF):
			return v.VerifyReport, err
		case len(text) == 0:
			return v.VerifyReport, cmp.Or(v.unreadGap(), v.shortGap())
		}
		complete := bytes.HasSuffix(text, []byte("\n"))
		if gap := v.addLine(bytes.TrimSuffix(text, []byte("\n")), complete); gap != nil {
			return v.VerifyReport, gap
		}
	}
}

// verifier follows the chain of a log.
type verifier struct {
	VerifyReport

	contains string // hash of a line that was not found yet; "" for none
	unread   string // why the last line cannot be read; "" if it can
}

func (v *verifier) gapAt(line int64, format string, args ...any) error {
	return &ChainGap{Line: line, Message: fmt.Sprintf(format, args...)}
}

// addLine checks the next line. One that cannot be read is a gap, unless the next line says that it was cut short.
func (v *verifier) addLine(text []byte, complete bool) error {
	line, err := decodeLine(text)
	number := v.Lines + 1
	switch {
	case !complete:
		return v.gapAt(number, "it has no end: the program was stopped while it wrote the line, or the file was cut short")
	case err != nil && v.unread != "":
		return v.unreadGap()
	case err != nil:
		v.Lines, v.Last, v.unread = number, hashOf(text), err.Error()
		return nil
	case v.unread != "" && (line.Action != Recovered || line.Previous != v.Last):
		return v.unreadGap()
	case line.Number != number:
		return v.gapAt(number, "it has the number %d, so lines were removed or inserted before it", line.Number)
	case line.Previous != v.Last && number == 1:
		return v.gapAt(number, "it refers to a line before it, which is missing")
	case line.Previous != v.Last:
		return v.gapAt(number, "previous is %s, but line %d has the hash %s: line %d was changed, or replaced", shortHash(line.Previous), number-1, shortHash(v.Last), number-1)
	case line.Action == Recovered && v.unread == "":
		return v.gapAt(number, "it says that the line before was cut short, but that line is whole")
	}
	if v.unread != "" {
		v.Torn = append(v.Torn, number-1)
	}
	v.Lines, v.Last, v.unread = number, hashOf(text), ""
	if v.Last == v.contains {
		v.contains = ""
	}
	return nil
}

// shortGap returns the gap of a log without the line that it must have; nil if it has the line.
func (v *verifier) shortGap() error {
	if v.contains == "" {
		return nil
	}
	return v.gapAt(v.Lines+1, "no line has the hash %s: lines at the end were removed, or this is another log", shortHash(v.contains))
}

// unreadGap returns the gap of a last line that cannot be read; nil if it can.
func (v *verifier) unreadGap() error {
	if v.unread == "" {
		return nil
	}
	return v.gapAt(v.Lines, "it cannot be read as a line of an audit log: %s", v.unread)
}

// shortHash is a hash as messages show it.
func shortHash(hash string) string {
	const shown = 12
	if hash == "" {
		return "empty"
	}
	return hash[:min(shown, len(hash))] + "…"
}
