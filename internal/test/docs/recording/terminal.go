package main

import (
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Size of the terminal: longer lines wrap, and older lines scroll out.
const (
	rows    = 32
	columns = 100
)

// cell is a character with its style: the CSS classes in the SVG.
type cell struct {
	text  rune
	style string
}

// terminal emulates what starter's output needs: lines, colours, moving the cursor up, and erasing below it.
type terminal struct {
	title string
	rest  string // of the output before, the beginning of what is not complete yet
	lines [][]cell
	row   int
	col   int
	style string
}

// control matches a control sequence, a title, or a character.
var control = regexp.MustCompile(`(?s)\x1b\[([0-9;?]*)([A-Za-z])|\x1b\]0;([^\x07]*)\x07|.`)

// incomplete matches the start of a control sequence at the end of a text.
var incomplete = regexp.MustCompile(`\x1b(?:\[[0-9;?]*|\][^\x07]*)?$`)

// splitIncomplete splits off an incomplete control sequence or character at the end of a text.
func splitIncomplete(text string) (first, rest string) {
	if at := incomplete.FindStringIndex(text); at != nil {
		return text[:at[0]], text[at[0]:]
	}
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if start := len(text) - n; utf8.RuneStart(text[start]) {
			if !utf8.FullRuneInString(text[start:]) {
				return text[:start], text[start:]
			}
			break
		}
	}
	return text, ""
}

func (t *terminal) writeOutput(text string) {
	text, t.rest = splitIncomplete(t.rest + text)
	for _, match := range control.FindAllStringSubmatch(text, -1) {
		switch {
		case match[2] != "":
			t.obeySequence(match[2], match[1])
		case strings.HasPrefix(match[0], "\x1b]"):
			t.title = match[3]
		case match[0] == "\r":
			t.col = 0
		case match[0] == "\n":
			t.row++
		case match[0] == "\b":
			t.col = max(0, t.col-1)
		default:
			t.putCharacter([]rune(match[0])[0])
		}
	}
}

// obeySequence executes a control sequence.
func (t *terminal) obeySequence(command, argument string) {
	n, err := strconv.Atoi(argument)
	if err != nil || n == 0 {
		n = 1
	}
	switch command {
	case "A":
		t.row = max(0, t.row-n)
	case "J": // erases what is below
		t.reachCursor()
		t.lines = t.lines[:t.row+1]
		t.lines[t.row] = t.lines[t.row][:min(t.col, len(t.lines[t.row]))]
	case "K":
		t.reachCursor()
		t.lines[t.row] = t.lines[t.row][:min(t.col, len(t.lines[t.row]))]
	case "m":
		t.style = styleOf(argument)
	}
}

// styles maps the codes of SGR sequences to CSS classes.
var styles = map[string]string{"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "34": "l", "36": "c"}

func styleOf(codes string) string {
	var classes []string
	for _, code := range strings.Split(codes, ";") {
		if class := styles[code]; class != "" {
			classes = append(classes, class)
		}
	}
	return strings.Join(classes, " ")
}

// reachCursor adds lines up to the cursor.
func (t *terminal) reachCursor() {
	for len(t.lines) <= t.row {
		t.lines = append(t.lines, nil)
	}
}

func (t *terminal) putCharacter(char rune) {
	if t.col == columns {
		t.row, t.col = t.row+1, 0
	}
	t.reachCursor()
	line := t.lines[t.row]
	for len(line) <= t.col {
		line = append(line, cell{text: ' '})
	}
	line[t.col] = cell{char, t.style}
	t.lines[t.row] = line
	t.col++
}

// svgLines returns the visible lines as SVG.
func (t *terminal) svgLines() []string {
	seen := t.lines[max(0, len(t.lines)-rows):]
	all := make([]string, len(seen))
	for i, line := range seen {
		all[i] = svgSpans(line)
	}
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// svgSpans returns a line as SVG, with a span for each style.
func svgSpans(line []cell) string {
	var b strings.Builder
	for i := 0; i < len(line); {
		end := i
		var text strings.Builder
		for end < len(line) && line[end].style == line[i].style {
			text.WriteRune(line[end].text)
			end++
		}
		escaped := html.EscapeString(text.String())
		if style := line[i].style; style != "" {
			escaped = `<tspan class="` + style + `">` + escaped + `</tspan>`
		}
		b.WriteString(escaped)
		i = end
	}
	return strings.TrimRight(b.String(), " ")
}
