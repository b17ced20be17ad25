package main

import (
	"fmt"
	"html"
	"strings"
)

// Sizes in the drawing, in SVG units.
const (
	charWidth  = 8.4
	lineHeight = 18
	border     = 16
	titleBar   = 28
	width      = int(columns*charWidth) + 2*border
	height     = titleBar + rows*lineHeight + border
)

const style = `
.w{fill:#fbfbfa;stroke:#d9dbe0}.t{fill:#b9bec8}text{font:14px/1 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1d2330;white-space:pre}
.h{font:600 13px/1 system-ui,sans-serif;text-anchor:middle}.b{font-weight:700}.d{fill:#5c6472}.r{fill:#b3261e}.g{fill:#1a7f37}.y{fill:#8a5a00}.l{fill:#1f6fd0}.c{fill:#0b7285}
@media(prefers-color-scheme:dark){.w{fill:#14171c;stroke:#343b46}.t{fill:#4a5260}text{fill:#e6e9ee}.d{fill:#9aa4b2}.r{fill:#ff8a80}.g{fill:#6fdd8b}.y{fill:#f2c14e}.l{fill:#63a7ff}.c{fill:#66d9e8}}
`

// drawFrames returns an SVG animation. The frames are side by side in one strip that moves behind a window, so the file
// contains each line only once.
func drawFrames(frames []frame) string {
	var b strings.Builder
	last := len(frames) - 1
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img"><title>A terminal: a run loads 25 patients, its worker is killed, and another worker completes it</title><style>%s`, width, height, width, height, style)
	fmt.Fprintf(&b, ".s{transform:translateX(%dpx);animation:s %gs step-end infinite}@keyframes s{", -last*width, playing+holding)
	for i, one := range frames {
		fmt.Fprintf(&b, "%.2f%%{transform:translateX(%dpx)}", one.at/(playing+holding)*100, -i*width)
	}
	fmt.Fprintf(&b, "}@media(prefers-reduced-motion:reduce){.s{animation:none}}</style><defs><clipPath id=\"v\"><rect width=\"%d\" height=\"%d\"/></clipPath>", width, height)
	known := map[string]int{}
	for _, one := range frames {
		for _, line := range one.lines {
			if _, found := known[line]; line == "" || found {
				continue
			}
			known[line] = len(known)
			fmt.Fprintf(&b, "<text id=\"l%d\" xml:space=\"preserve\">%s</text>\n", known[line], line)
		}
	}
	fmt.Fprintf(&b, `</defs><rect class="w" x=".5" y=".5" width="%d" height="%d" rx="10"/>`, width-1, height-1)
	for i := range 3 {
		fmt.Fprintf(&b, `<circle class="t" cx="%d" cy="16" r="5"/>`, border+6+18*i)
	}
	b.WriteString(`<g clip-path="url(#v)"><g class="s">` + "\n")
	for i, one := range frames {
		if one.title != "" {
			fmt.Fprintf(&b, `<text class="h" x="%d" y="21">%s</text>`, i*width+width/2, html.EscapeString(one.title))
		}
		for row, line := range one.lines {
			if line != "" {
				fmt.Fprintf(&b, `<use href="#l%d" x="%d" y="%d"/>`, known[line], i*width+border, titleBar+(row+1)*lineHeight-4)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("</g></g></svg>\n<!-- Generated: make picture -->\n")
	return b.String()
}
