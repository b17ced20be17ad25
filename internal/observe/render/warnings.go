package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"reprise/interpreter/lists"
)

// ofIteration matches the warning of a loop's iteration, or of a backfill's partition: its index, and what it says.
var ofIteration = regexp.MustCompile(`(?s)^iteration (\d+): (.*)$`)

// ofPartition matches what a step says about the partition for which it ran a playbook: the step, the key, and the rest.
var ofPartition = regexp.MustCompile(`(?s)^(step \S+), partition (\S+): (.*)$`)

// shownPlaces is how many iterations a line names whose warnings are equal: more do not help to find what is wrong.
const shownPlaces = 5

// alikeWarnings are warnings that differ only in the iteration.
type alikeWarnings struct {
	text   string // of all but the iteration, with childOf for the names of its child runs
	first  string // the whole first warning
	places []int
	keys   map[int]string // of the partitions of places; nil where they are iterations
}

// GroupWarnings returns warnings in the order given, with one line for those that differ only in the iteration. The line has
// their number and the first iterations.
func GroupWarnings(warnings []string) []string {
	var groups []*alikeWarnings
	for _, warning := range warnings {
		next := &alikeWarnings{text: warning, first: warning}
		if parts := ofIteration.FindStringSubmatch(warning); parts != nil {
			index, _ := strconv.Atoi(parts[1])
			next = newAlike(index, parts[2])
		}
		at := slices.IndexFunc(groups, func(group *alikeWarnings) bool {
			return group.text == next.text && len(group.places) > 0 && len(next.places) > 0 && (group.keys == nil) == (next.keys == nil)
		})
		if at < 0 {
			groups = append(groups, next)
			continue
		}
		groups[at].addPlace(next)
	}
	return lists.Map(groups, (*alikeWarnings).groupText)
}

// newAlike returns the warning of one iteration.
func newAlike(index int, said string) *alikeWarnings {
	one := &alikeWarnings{places: []int{index}}
	if parts := ofPartition.FindStringSubmatch(said); parts != nil {
		said, one.keys = parts[1]+": "+parts[3], map[int]string{index: parts[2]}
	}
	one.text, one.first = childOf(index).ReplaceAllString(said, "$1/*!"), said
	return one
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
	maps.Copy(g.keys, other.keys)
}

// placeName returns the key of a partition, or the index of an iteration.
func (g *alikeWarnings) placeName(index int) string {
	if g.keys != nil {
		return g.keys[index]
	}
	return strconv.Itoa(index)
}

func (g *alikeWarnings) groupText() string {
	if len(g.places) == 0 {
		return g.first
	}
	what := "iteration"
	if g.keys != nil {
		what = "partition"
	}
	if len(g.places) == 1 {
		return fmt.Sprintf("%s %s: %s", what, g.placeName(g.places[0]), g.first)
	}
	slices.Sort(g.places)
	named := g.places[:min(len(g.places), shownPlaces)]
	text := strings.Join(lists.Map(named, g.placeName), ", ")
	if len(named) < len(g.places) {
		text += ", …"
	}
	line := fmt.Sprintf("%d %ss (%s): %s", len(g.places), what, text, g.first)
	if g.first != g.text { // it names a child run
		line += fmt.Sprintf(" for %s %s, and so on", what, g.placeName(g.places[0]))
	}
	return line
}
