package secrets

// matcher finds patterns in a text. It reads only some bytes: the last two of a window as long as the shortest
// pattern determine how far the next window can be (Wu and Manber, A Fast Algorithm For Multi-Pattern Searching).
type matcher struct {
	least int // bytes of the shortest pattern
	mask  int
	shift []uint8
	byEnd map[[2]byte][]pattern // by the end of their first least bytes
	// byHead and byTail index the patterns whose pieces are searched for by their first and last minSecret bytes.
	byHead, byTail map[string][]pattern
	// begins marks the slots of the first two bytes of the patterns in byHead.
	begins  []bool
	longest int
}

func newMatcher(patterns []pattern) *matcher {
	m := &matcher{mask: 1<<12 - 1, byEnd: map[[2]byte][]pattern{}, byHead: map[string][]pattern{}, byTail: map[string][]pattern{}}
	if len(patterns) == 0 {
		return m
	}
	if len(patterns) > 1<<8 {
		m.mask = 1<<16 - 1
	}
	m.least = len(patterns[0].text)
	for _, p := range patterns {
		m.least, m.longest = min(m.least, len(p.text), 64), max(m.longest, len(p.text))
	}
	m.shift, m.begins = make([]uint8, m.mask+1), make([]bool, m.mask+1)
	for i := range m.shift {
		m.shift[i] = uint8(m.least - 1)
	}
	for _, p := range patterns {
		for i := 1; i < m.least; i++ {
			at := m.slotIndex(p.text[i-1], p.text[i])
			m.shift[at] = min(m.shift[at], uint8(m.least-1-i))
		}
		end := [2]byte{p.text[m.least-2], p.text[m.least-1]}
		m.byEnd[end] = append(m.byEnd[end], p)
		if p.pieces && len(p.text) > minSecret {
			first, last := p.text[:minSecret], p.text[len(p.text)-minSecret:]
			m.begins[m.slotIndex(first[0], first[1])] = true
			m.byHead[first], m.byTail[last] = append(m.byHead[first], p), append(m.byTail[last], p)
		}
	}
	return m
}

func (m *matcher) slotIndex(a, b byte) int { return (int(a)<<8 ^ int(a)<<3 ^ int(b)) & m.mask }

// eachMatch calls found with the position of every match in the text, until found returns false.
func eachMatch[T string | []byte](m *matcher, text T, found func(start, end int) bool) {
	if m.least == 0 {
		return
	}
	for i := m.least - 1; i < len(text); {
		if skip := m.shift[m.slotIndex(text[i-1], text[i])]; skip > 0 {
			i += int(skip)
			continue
		}
		start := i - m.least + 1
		for _, p := range m.byEnd[[2]byte{text[i-1], text[i]}] {
			if len(text)-start < len(p.text) || string(text[start:start+len(p.text)]) != p.text {
				continue
			}
			if from, to, ok := matchExtent(p, text, start); ok && !found(from, to) {
				return
			}
		}
		i++
	}
}

// matchExtent returns the part of the text that a match covers; false if the pattern does not match there.
func matchExtent[T string | []byte](p pattern, text T, start int) (from, to int, ok bool) {
	from, to = start, start+len(p.text)
	switch p.kind {
	case encoded:
		from, to = base64Extent(text, from, to)
	case word:
		return from, to, standsAlone(text, from, to)
	}
	return from, to, true
}

// base64Extent extends a match to the adjacent characters that hold its bits, and the padding.
func base64Extent[T string | []byte](text T, from, to int) (int, int) {
	if from > 0 && isBase64(text[from-1]) {
		from--
	}
	if to < len(text) && isBase64(text[to]) {
		to++
	}
	for to < len(text) && text[to] == '=' {
		to++
	}
	return from, to
}

// standsAlone reports whether a match is not part of a longer name.
func standsAlone[T string | []byte](text T, from, to int) bool {
	before := from > 0 && isBeside(text[from-1])
	after := to < len(text) && text[to] != '.' && isBeside(text[to])
	dotted := to+1 < len(text) && text[to] == '.' && isWord(text[to+1])
	return !before && !after && !dotted
}

func isBase64(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '+' || c == '/' || c == '-' || c == '_'
}

// isBeside reports whether a byte next to a word makes it part of a longer name. A dot does only if more follows.
func isBeside(c byte) bool { return isWord(c) || c == '-' || c == '.' }
