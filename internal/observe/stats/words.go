package stats

import "fmt"

// Name says which numbers of attempts a bar counts.
func (b Bar) Name() string {
	switch b.To {
	case b.From:
		return fmt.Sprint(b.From)
	case 0:
		return fmt.Sprintf("%d or more", b.From)
	}
	return fmt.Sprintf("%d–%d", b.From, b.To)
}

// Name is the item as events name it.
func (s Slow) Name() string {
	name := s.Step
	if s.Visit > 1 {
		name += fmt.Sprintf("#%d", s.Visit)
	}
	if s.Index != nil {
		name += fmt.Sprintf("[%d]", *s.Index)
	}
	return name
}

// Percent is a share in words that never say all, or none, where that is not so.
func Percent(share float64) string {
	switch text := fmt.Sprintf("%.1f%%", 100*share); {
	case text == "100.0%" && share < 1:
		return "99.9%"
	case text == "0.0%" && share > 0:
		return "<0.1%"
	default:
		return text
	}
}
