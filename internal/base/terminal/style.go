package terminal

import "strings"

// Style is the look of a text at a terminal with colours.
type Style int

// The styles. Package render maps statuses to them.
const (
	Plain   Style = iota
	Warning       // what is wrong: bold yellow
	Good          // green
	Bad           // red
	Active        // what runs: blue
	Held          // what people or a queue hold: cyan
	Asks          // what needs a person: magenta
	Quiet         // advice, and what needs no attention: dim
)

// codes are the parameters of the styles in SGR sequences (ECMA-48, 8.3.117).
var codes = [...]string{Plain: "0", Warning: "1;33", Good: "32", Bad: "31", Active: "34", Held: "36", Asks: "35", Quiet: "2"}

// A style begins with a mark: its number in three noncharacters, which text does not contain and which have no width.
// If data contained a mark, it would only colour a line.
const (
	bits    = 3
	zeroBit = '\ufffe'
	oneBit  = '\uffff'
)

func (s Style) escapeCode() string {
	var b strings.Builder
	for bit := range bits {
		if s>>bit&1 == 0 {
			b.WriteRune(zeroBit)
		} else {
			b.WriteRune(oneBit)
		}
	}
	return b.String()
}

// styles replaces marks by the terminal's escape sequences.
var styles = func() *strings.Replacer {
	var pairs []string
	for style, code := range codes {
		pairs = append(pairs, Style(style).escapeCode(), "\x1b["+code+"m")
	}
	return strings.NewReplacer(pairs...)
}()

// Paint marks a text with a style, for a Screen. The marks have no width.
func (p Paper) Paint(style Style, text string) string {
	if !p.Colour || style == Plain || text == "" {
		return text
	}
	return style.escapeCode() + text + Plain.escapeCode()
}

// PaintWarning paints a text that must not be overlooked.
func (p Paper) PaintWarning(text string) string { return p.Paint(Warning, text) }
