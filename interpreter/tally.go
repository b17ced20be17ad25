package interpreter

import (
	"fmt"
	"strings"
)

// Text says how far a loop is, and how it has ended, in the same words everywhere: "35
// completed, 1 failed, 164 to go of 200". What is zero and no news is left out.
func (s LoopStats) Text() string {
	parts := []string{fmt.Sprintf("%d completed", s.Success)}
	for _, part := range []struct {
		n    int
		what string
	}{
		{s.Failed, "failed"},
		{s.Cancelled, "cancelled"},
		{s.Total - s.Success - s.Failed - s.Cancelled, "to go"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return fmt.Sprintf("%s of %d", strings.Join(parts, ", "), s.Total)
}
