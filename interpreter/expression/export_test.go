package expression

// FindSpans returns the {{ }} of a text.
func FindSpans(source string) []Span {
	found := findSpans([]rune(source))
	spans := make([]Span, len(found))

	for i, s := range found {
		spans[i] = s.Span
	}
	return spans
}
