package graph

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
)

// Sizes in a picture, in pixels.
const (
	svgLetter = 7.3 // the width of one, of a font whose letters are alike
	svgLine   = 17.0
	svgInset  = 10.0
	svgArrow  = 8.0
	svgMargin = 24.0
)

// svgBox is a box with its text.
type svgBox struct {
	layoutBox
	lines []string
	class string
	fill  string
	round float64
	inner *picture // of the playbook that it runs
	// top is where the inner drawing begins, below the box's upper edge, and within is its width.
	top, within float64
}

// svgStyle has the colours, dark ones if the reader's system is in dark mode. Boxes with a status have the colour of
// the status and dark letters in both modes.
const svgStyle = `text{font:12px ui-monospace,monospace;fill:#111}
.title,.label,.plain text{fill:#111}.title{font-weight:bold}.label{font-style:italic}
rect{fill:#fff;stroke:#444}.loop{stroke-width:3}.sink{stroke-dasharray:3 2}path{fill:none;stroke:#666}
.write{stroke-dasharray:4 3}marker path{fill:#666}.back{stroke:none}
@media(prefers-color-scheme:dark){.back{fill:#1b1e23}.title,.label,.plain text{fill:#e6e6e6}.plain rect{fill:#2a2e35}
rect{stroke:#999}path{stroke:#aaa}marker path{fill:#aaa}.back{stroke:none}}
`

// SVG returns the graph as a self-contained SVG.
func (g *Diagram) SVG() string {
	p := g.newPicture()
	width, height := p.placeAll()
	width = max(width, svgWidth(g.title)) + 2*svgMargin
	height += 2*svgMargin + 2*svgLine
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img">`+"\n",
		width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<style>%s</style>\n", svgText(g.title), svgStyle)
	b.WriteString(`<defs><marker id="a" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">` +
		`<path d="M0 0 8 4 0 8z"/></marker></defs>` + "\n")
	fmt.Fprintf(&b, `<rect class="back" width="%.0f" height="%.0f"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text class="title" x="%.0f" y="%.0f">%s</text>`+"\n", svgMargin, svgMargin+2, svgText(g.title))
	fmt.Fprintf(&b, `<g transform="translate(%.0f %.0f)">`+"\n", svgMargin, svgMargin+2*svgLine)
	p.writeSVG(&b)
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// picture has the boxes and lines of a graph.
type picture struct {
	boxes []*svgBox
	lines []*svgConnection
}

func (p *picture) writeSVG(b *strings.Builder) {
	for _, line := range p.lines {
		line.writeSVG(b)
	}
	for _, box := range p.boxes {
		box.writeSVG(b)
	}
}

// svgConnection is a line, or the part of a line before or after its label.
type svgConnection struct {
	layoutLine
	isWrite bool // leads to a sink
	begins  bool // leads to the label
}

// newPicture creates the boxes and lines, not placed yet.
func (g *Diagram) newPicture() *picture {
	p := &picture{}
	byName := map[string]*svgBox{}
	for _, step := range g.steps {
		box := newSVGBox(step.boxLines())
		if step.inner != nil {
			box.nestDiagram(step.inner)
		}
		box.fill = fillColour(step.state)
		switch {
		case step.tool == "":
			box.round = min(box.height/2, 16)
		case step.loop != "":
			box.class = "loop"
		}
		byName[step.name] = box
		p.boxes = append(p.boxes, box)
	}
	for _, step := range g.steps {
		for _, route := range step.routes {
			p.connectBoxes(byName[step.name], byName[route.to], route.label, false)
		}
		for _, sink := range step.sinks {
			box := newSVGBox([]string{sink.target})
			box.class, box.round = "sink", 4
			p.boxes = append(p.boxes, box)
			p.connectBoxes(byName[step.name], box, sink.when, true)
		}
	}
	return p
}

// connectBoxes connects two boxes. A label is placed like a box between them, so that nothing covers it.
func (p *picture) connectBoxes(from, to *svgBox, label string, isWrite bool) {
	if label != "" {
		box := newSVGBox([]string{label})
		box.class = svgLabel
		p.boxes = append(p.boxes, box)
		p.lines = append(p.lines, &svgConnection{layoutLine{from: &from.layoutBox, to: &box.layoutBox}, isWrite, true})
		from = box
	}
	p.lines = append(p.lines, &svgConnection{layoutLine{from: &from.layoutBox, to: &to.layoutBox}, isWrite, false})
}

// placeAll lays out the picture and returns its size.
func (p *picture) placeAll() (width, height float64) {
	boxes, lines := make([]*layoutBox, len(p.boxes)), make([]*layoutLine, len(p.lines))
	for i, b := range p.boxes {
		boxes[i] = &b.layoutBox
	}
	for i, l := range p.lines {
		lines[i] = &l.layoutLine
	}
	width, height = layOut(boxes, lines)
	for _, l := range lines {
		if l.from == l.to { // it goes round the right side
			width = max(width, l.from.x+l.from.width/2+2*boxGap)
		}
	}
	return width, height
}

// svgLabel is the class of boxes that are labels of lines.
const svgLabel = "label"

func newSVGBox(lines []string) *svgBox {
	box := &svgBox{lines: lines, round: 6}
	for _, line := range lines {
		box.width = max(box.width, svgWidth(line))
	}
	box.width += 2 * svgInset
	box.height = float64(len(lines))*svgLine + svgInset
	return box
}

// nestDiagram makes room for another graph inside the box, below its text.
func (box *svgBox) nestDiagram(inner *Diagram) {
	box.lines = append(box.lines, "runs "+inner.title)
	box.width = max(box.width, svgWidth(box.lines[len(box.lines)-1])+2*svgInset)
	box.inner, box.top = inner.newPicture(), box.height+svgLine
	width, height := box.inner.placeAll()
	box.width, box.within = max(box.width, width+4*svgInset), width
	box.height = box.top + height + 3*svgInset
}

func svgWidth(line string) float64 {
	return svgLetter * float64(text.StringWidth(terminal.OneLine(line)))
}

func (box *svgBox) writeSVG(b *strings.Builder) {
	group, style := `<g class="plain">`, ""
	if box.fill != "" && box.fill != fillColour(interpreter.Pending) {
		group, style = "<g>", fmt.Sprintf(` style="fill:%s"`, box.fill)
	}
	left, top := box.x-box.width/2, box.y-box.height/2
	if box.class == svgLabel {
		fmt.Fprintf(b, `<text class="label" x="%.1f" y="%.1f">%s</text>`+"\n", left+svgInset, top+svgInset/2+svgLine-4, svgText(box.lines[0]))
		return
	}
	fmt.Fprintf(b, `%s<rect class="%s"%s x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f"/>`,
		group, box.class, style, left, top, box.width, box.height, box.round)
	for i, line := range box.lines {
		weight := ""
		if i == 0 && box.class != "sink" {
			weight = ` style="font-weight:bold"`
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f"%s>%s</text>`, left+svgInset, top+svgInset/2+float64(i+1)*svgLine-4, weight, svgText(line))
	}
	b.WriteString("</g>\n")
	if box.inner == nil {
		return
	}
	begin := top + box.top
	fmt.Fprintf(b, `<rect class="back" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="4"/>`+"\n",
		left+svgInset, begin, box.width-2*svgInset, box.height-box.top-svgInset)
	fmt.Fprintf(b, `<g transform="translate(%.1f %.1f)">`+"\n", box.x-box.within/2, begin+svgInset)
	box.inner.writeSVG(b)
	b.WriteString("</g>\n")
}

// writeSVG draws a line as a curve through its bends.
func (line *svgConnection) writeSVG(b *strings.Builder) {
	class, arrow := "", ` marker-end="url(#a)"`
	if line.isWrite {
		class = ` class="write"`
	}
	if line.begins {
		arrow = ""
	}
	fmt.Fprintf(b, `<path%s%s d="%s"/>`+"\n", class, arrow, svgPath(&line.layoutLine))
}

func svgPath(line *layoutLine) string {
	from, to := line.from, line.to
	if from == to { // round the right side
		x, y, out := from.x+from.width/2, from.y, 2*boxGap
		return fmt.Sprintf("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x, y-6, x+out, y-2*boxGap, x+out, y+2*boxGap, x, y+6)
	}
	down := 1.0
	if line.reversed {
		down = -1
	}
	x, y := from.x, from.y+down*from.tall/2
	path := fmt.Sprintf("M%.1f %.1fV%.1f", x, from.y+down*from.height/2, y)
	for _, next := range append(slices.Clone(line.bends), to) { // straight within layers, where boxes are
		toY := next.y - down*next.tall/2
		if next == to { // an arrow points where its line comes from
			toY -= down * svgArrow
		}
		half := (toY - y) / 2
		path += fmt.Sprintf("C%.1f %.1f %.1f %.1f %.1f %.1f", x, y+half, next.x, toY-half, next.x, toY)
		x, y = next.x, next.y+down*next.tall/2
		if next != to {
			path += fmt.Sprintf("V%.1f", y)
		}
	}
	return path + fmt.Sprintf("V%.1f", to.y-down*to.height/2)
}

// svgText escapes a text for SVG.
func svgText(said string) string { return html.EscapeString(terminal.OneLine(said)) }
