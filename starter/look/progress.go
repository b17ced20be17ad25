package look

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/internal/base/terminal"
	"reprise/starter/cli"
)

// progress shows the progress of a run.
type progress interface {
	showLines(lines []line)
	// close erases the lines that are shown only while the run is followed.
	close()
}

func newProgress(streams cli.Streams) progress {
	if streams.ErrTerminal() {
		return &liveProgress{w: terminal.FileOf(streams.Err), width: terminal.OutputWidth(streams.Err)}
	}
	return newPlainProgress(streams.Err, time.Now)
}

// liveProgress redraws a block of lines on a terminal. It moves the cursor, so it bypasses the screen.
type liveProgress struct {
	w     io.Writer
	width int
	drawn int // lines of the block on the screen
}

// shownLive bounds the lines of the block; a terminal cannot redraw what has scrolled away.
const shownLive = 20

func (p *liveProgress) showLines(lines []line) {
	lines = lines[max(0, len(lines)-shownLive):]
	var b strings.Builder
	p.eraseLines(&b)
	for _, line := range lines {
		b.WriteString(text.Snip(terminal.EscapeInvisible(cmp.Or(line.live, line.text)), p.width-1, "…") + "\n")
	}
	p.drawn = len(lines)
	_, _ = io.WriteString(p.w, b.String())
}

func (p *liveProgress) close() {
	var b strings.Builder
	p.eraseLines(&b)
	p.drawn = 0
	_, _ = io.WriteString(p.w, b.String())
}

func (p *liveProgress) eraseLines(b *strings.Builder) {
	if p.drawn > 0 {
		fmt.Fprintf(b, "\r\x1b[%dA\x1b[J", p.drawn)
	}
}

// plainInterval is the shortest time between two lines about the same step in a log.
const plainInterval = time.Second

// plainProgress writes a line whenever something changes.
type plainProgress struct {
	w     io.Writer
	now   func() time.Time
	shown map[string]shownLine
}

type shownLine struct {
	text string
	at   time.Time
}

func newPlainProgress(w io.Writer, now func() time.Time) *plainProgress {
	return &plainProgress{w: w, now: now, shown: map[string]shownLine{}}
}

func (p *plainProgress) showLines(lines []line) {
	now := p.now()
	for _, line := range lines {
		last, found := p.shown[line.key]
		if found && (last.text == line.text || now.Sub(last.at) < plainInterval) {
			continue
		}
		p.shown[line.key] = shownLine{text: line.text, at: now}
		_, _ = fmt.Fprintf(p.w, "  %s\n", line.text)
	}
}

func (p *plainProgress) close() {}
