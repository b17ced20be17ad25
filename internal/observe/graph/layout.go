package graph

import (
	"cmp"
	"slices"
)

// layoutBox is a box. With size 0 it is a bend of a line that crosses a layer.
type layoutBox struct {
	width, height float64
	layer         int
	tall          float64 // the height of its layer
	x, y          float64 // of the middle
	up, down      []*layoutBox
}

// layoutLine leads from one box to another through bends. A line that leads up is laid out in reverse.
type layoutLine struct {
	from, to *layoutBox
	bends    []*layoutBox
	reversed bool
}

// The gaps between boxes.
const (
	layerGap = 36.0
	boxGap   = 28.0
)

// layOut places the boxes and returns the size of the whole drawing. Boxes are given in reading order, the first step
// first.
func layOut(boxes []*layoutBox, lines []*layoutLine) (width, height float64) {
	reverseBackLines(boxes, lines)
	layers := assignLayers(boxes, lines)
	for range 8 {
		sortLayers(layers, func(b *layoutBox) []*layoutBox { return b.up })
		sortLayers(layers, func(b *layoutBox) []*layoutBox { return b.down })
	}
	return placeBoxes(layers)
}

// reverseBackLines reverses lines that lead back, so that there are no cycles.
func reverseBackLines(boxes []*layoutBox, lines []*layoutLine) {
	const under, done = 1, 2
	state := map[*layoutBox]int{}
	leads := map[*layoutBox][]*layoutLine{}
	for _, line := range lines {
		leads[line.from] = append(leads[line.from], line)
	}
	var visit func(*layoutBox)
	visit = func(b *layoutBox) {
		state[b] = under
		for _, line := range leads[b] {
			switch state[line.to] {
			case under:
				line.reversed = true
			case done:
			default:
				visit(line.to)
			}
		}
		state[b] = done
	}
	for _, b := range boxes {
		if state[b] == 0 {
			visit(b)
		}
	}
}

// assignLayers puts every box in a layer below all boxes that lead to it, and adds the bends of lines.
func assignLayers(boxes []*layoutBox, lines []*layoutLine) [][]*layoutBox {
	for range boxes { // the longest way has fewer lines than there are boxes
		for _, line := range lines {
			if top, bottom := line.upperAndLower(); top != bottom {
				bottom.layer = max(bottom.layer, top.layer+1)
			}
		}
	}
	var layers [][]*layoutBox
	put := func(b *layoutBox) {
		for len(layers) <= b.layer {
			layers = append(layers, nil)
		}
		layers[b.layer] = append(layers[b.layer], b)
	}
	for _, b := range boxes {
		put(b)
	}
	for _, line := range lines {
		last, bottom := line.upperAndLower()
		if last == bottom {
			continue
		}
		for layer := last.layer + 1; layer < bottom.layer; layer++ {
			bend := &layoutBox{layer: layer}
			put(bend)
			line.bends = append(line.bends, bend)
			last = joinBoxes(last, bend)
		}
		joinBoxes(last, bottom)
		if line.reversed {
			slices.Reverse(line.bends)
		}
	}
	return layers
}

// upperAndLower returns the upper and lower ends of the line.
func (l *layoutLine) upperAndLower() (top, bottom *layoutBox) {
	if l.reversed {
		return l.to, l.from
	}
	return l.from, l.to
}

func joinBoxes(top, bottom *layoutBox) *layoutBox {
	top.down, bottom.up = append(top.down, bottom), append(bottom.up, top)
	return bottom
}

// sortLayers sorts each layer by the average position of the boxes' neighbours.
func sortLayers(layers [][]*layoutBox, neighbours func(*layoutBox) []*layoutBox) {
	at := map[*layoutBox]float64{}
	note := func(layer []*layoutBox) {
		for i, b := range layer {
			at[b] = (float64(i) + 0.5) / float64(len(layer))
		}
	}
	for _, layer := range layers {
		note(layer)
	}
	for i := range layers {
		middle := map[*layoutBox]float64{}
		for _, b := range layers[i] {
			middle[b] = at[b]
			if near := neighbours(b); len(near) > 0 {
				sum := 0.0
				for _, other := range near {
					sum += at[other]
				}
				middle[b] = sum / float64(len(near))
			}
		}
		slices.SortStableFunc(layers[i], func(a, b *layoutBox) int { return cmp.Compare(middle[a], middle[b]) })
		note(layers[i])
	}
}

// placeBoxes sets the coordinates of the boxes; layers are centred.
func placeBoxes(layers [][]*layoutBox) (width, height float64) {
	widths := make([]float64, len(layers))
	for i, layer := range layers {
		widths[i] = -boxGap
		for _, b := range layer {
			widths[i] += b.width + boxGap
		}
		width = max(width, widths[i])
	}
	for i, layer := range layers {
		tall, x := 0.0, (width-widths[i])/2
		for _, b := range layer {
			tall = max(tall, b.height)
			b.x = x + b.width/2
			x += b.width + boxGap
		}
		for _, b := range layer {
			b.y, b.tall = height+tall/2, tall
		}
		height += tall + layerGap
	}
	return width, height - layerGap
}
