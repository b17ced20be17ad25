package runs

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/workflows"
)

// WaitsFor is iterations of a loop that wait for the same, for the same reason.
type WaitsFor struct {
	Items  int                `json:"items"`
	Reason interpreter.Reason `json:"reason"`
	// Why is what the attempts before ended with, without the paths of URLs.
	Why         string    `json:"why,omitempty"`
	NextRetryAt time.Time `json:"next_retry_at,omitzero"` // of the first of them; zero where nobody knows
}

const (
	// mostWaits bounds the groups that are distinguished; the last one is of all others.
	mostWaits = 5
	// mostSampled is how many children are queried of a loop that has too many for all
	// of them to be.
	mostSampled = 2
)

// groupWaits sets what the iterations of the answers wait for.
func (s *Step) groupWaits(answers []workflows.Iterations) {
	s.Waits, s.WaitsOf = nil, 0
	for _, answer := range answers {
		for _, iteration := range answer.Iterations {
			s.WaitsOf++
			if iteration.Reason != interpreter.ReasonTurn && iteration.Status.Tally() != interpreter.TallyWaiting {
				continue
			}
			group := WaitsFor{Items: 1, Reason: iteration.Reason, NextRetryAt: iteration.NextRetryAt}
			if iteration.Error != nil && iteration.Reason != interpreter.ReasonTurn {
				group.Why = gist(iteration.Error)
			}
			s.addWait(group)
		}
	}
	slices.SortStableFunc(s.Waits, func(x, y WaitsFor) int { return cmp.Compare(y.Items, x.Items) })
}

func (s *Step) addWait(one WaitsFor) {
	i := slices.IndexFunc(s.Waits, func(of WaitsFor) bool { return of.Reason == one.Reason && of.Why == one.Why })
	if i < 0 && len(s.Waits) == mostWaits {
		i, s.Waits[mostWaits-1].Why = mostWaits-1, "for several reasons"
	}
	if i < 0 {
		s.Waits = append(s.Waits, one)
		return
	}
	of := &s.Waits[i]
	of.Items++
	of.NextRetryAt = sooner(of.NextRetryAt, one.NextRetryAt)
}

var addresses = regexp.MustCompile(`https?://([^/\s?#]+)[^\s]*`)

// maxGist bounds the text of a group.
const maxGist = 120

// gist is an error as the others like it have it: of addresses the host alone.
func gist(failure *interpreter.ErrorObject) string {
	text := addresses.ReplaceAllStringFunc(failure.Message, func(address string) string {
		host := strings.TrimSuffix(addresses.FindStringSubmatch(address)[1], ":")
		if strings.HasSuffix(address, ":") {
			return host + ":"
		}
		return host
	})
	return terminal.Shorten(text, maxGist)
}
