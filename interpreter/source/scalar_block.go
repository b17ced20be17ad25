package source

// widestIndent bounds the search for the indentation of a block scalar that states it as a number, relative to a
// parent that is not known here.
const widestIndent = 256

// replayBlock decodes a literal or folded scalar from its header.
func (r *replay) replayBlock(folded bool) {
	r.nextRune() // | or >
	stated := 0
	for c := r.peekRune(); c == '+' || c == '-' || '1' <= c && c <= '9'; c = r.peekRune() {
		if c >= '1' {
			stated = int(c - '0')
		}
		r.nextRune()
	}
	r.skipLine()
	r.nextRune()
	content := r.cursor
	if stated == 0 {
		indent := r.detectIndent()
		r.cursor = content
		r.blockLines(indent, folded)
		return
	}
	for indent := stated; indent < stated+widestIndent; indent++ {
		r.cursor, r.places, r.failed = content, nil, false
		r.blockLines(indent, folded)
		if !r.failed && len(r.places) == len(r.value) {
			return
		}
	}
}

// detectIndent returns the indentation of the first lines.
func (r *replay) detectIndent() int {
	widest := 1
	for {
		for r.peekRune() == ' ' {
			r.nextRune()
		}
		widest = max(widest, r.pos.Column-1)
		if !isBreak(r.peekRune()) {
			return widest
		}
		r.nextRune()
	}
}

// blockLines replays the lines of a block scalar as the YAML parser reads them. In a folded scalar the break
// between two lines of text becomes a space.
func (r *replay) blockLines(indent int, folded bool) {
	var pending *place // the break that ended the line before
	wasBlank := false
	empty := r.emptyLines(indent)
	for !r.atEnd() && r.pos.Column == indent+1 {
		blank := isBlank(r.peekRune())
		switch {
		case pending == nil:
		case folded && pending.r == '\n' && !wasBlank && !blank:
			if len(empty) == 0 {
				r.compareRune(place{' ', pending.pos})
			}
		default:
			r.compareRune(*pending)
		}
		r.emitAll(empty)
		wasBlank, pending = blank, nil
		for !r.atEnd() && !isBreak(r.peekRune()) {
			r.copyRune()
		}
		if r.isDone() {
			return
		}
		if isBreak(r.peekRune()) {
			pos := r.pos
			pending = &place{r.nextRune(), pos}
		}
		empty = r.emptyLines(indent)
	}
	// The header decides how many of the last breaks belong to the value. compareRune ignores the others, because
	// the value is then complete.
	if pending != nil {
		r.compareRune(*pending)
	}
	r.emitAll(empty)
}

// emptyLines skips indentation and empty lines, and returns the breaks of the lines.
func (r *replay) emptyLines(indent int) []place {
	var breaks []place
	for {
		for r.pos.Column <= indent && r.peekRune() == ' ' {
			r.nextRune()
		}
		if !isBreak(r.peekRune()) {
			return breaks
		}
		pos := r.pos
		breaks = append(breaks, place{r.nextRune(), pos})
	}
}

func (r *replay) emitAll(places []place) {
	for _, p := range places {
		r.compareRune(p)
	}
}
