package render

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"reprise/interpreter/lists"
)

// ofIteration matches the warning of a loop's iteration, or of a backfill's partition: its index, and what it says.
var ofIteration = regexp.MustCompile(`(?s)^iteration (\d+): (.*)$`)

// shownPlaces is how many iterations a line names whose warnings are equal: more do not help to find what is wrong.
const shownPlaces = 5

// alikeWarnings are warnings that differ only in the iteration.
type alikeWarnings struct {
	text   string // of all but the iteration, with childOf for the names of its child runs
	first  string // the whole first warning
	places []int
}

// GroupWarnings returns warnings in the order given, with one line for those that differ only in the iteration. The line has
// their number and the first iterations.
func GroupWarnings(warnings []string) []string {
	var groups []*alikeWarnings
	for _, warning := range warnings {
		next := &alikeWarnings{text: warning, first: warning}
		if parts := ofIteration.FindStringSubmatch(warning); parts != nil {
			index, _ := strconv.Atoi(parts[1])
			next = &alikeWarnings{text: childOf(index).ReplaceAllString(parts[2], "$1/*!"), first: parts[2], places: []int{index}}
		}
		at := slices.IndexFunc(groups, func(group *alikeWarnings) bool {
			return group.text == next.text && len(group.places) > 0 && len(next.places) > 0
		})
		if at < 0 {
			groups = append(groups, next)
			continue
		}
		groups[at].addPlace(next)
	}
	return lists.Map(groups, (*alikeWarnings).groupText)
}

// childOf matches the name of a child run of an iteration, up to its attempt.
func childOf(index int) *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf(`(#\d+)/%d!`, index))
}

// addPlace adds another warning of the group; the text of the lowest iteration is shown.
func (g *alikeWarnings) addPlace(other *alikeWarnings) {
	if other.places[0] < slices.Min(g.places) {
		g.first = other.first
	}
	g.places = lists.AddUnique(g.places, other.places[0])
}

func (g *alikeWarnings) groupText() string {
	if len(g.places) < 2 {
		if len(g.places) == 1 {
			return fmt.Sprintf("iteration %d: %s", g.places[0], g.first)
		}
		return g.first
	}
	slices.Sort(g.places)
	named := g.places[:min(len(g.places), shownPlaces)]
	text := strings.Join(lists.Map(named, strconv.Itoa), ", ")
	if len(named) < len(g.places) {
		text += ", …"
	}
	line := fmt.Sprintf("%d iterations (%s): %s", len(g.places), text, g.first)
	if g.first != g.text { // it names a child run
		line += fmt.Sprintf(" for iteration %d, and so on", g.places[0])
	}
	return line
}
