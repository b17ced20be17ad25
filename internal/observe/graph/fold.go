package graph

import (
	"fmt"
	"slices"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
)

const (
	// unfoldedSteps is how many steps a graph may have before Fold folds it: more boxes do not fit a screen, and the one that
	// needs somebody is not found.
	unfoldedSteps = 15
	// leastFolded is how many steps a box replaces at least.
	leastFolded = 3
)

// Fold replaces rows of steps by one box each if the graph has more than 15 steps. The steps of a row have the same status, and
// nothing that needs somebody or is happening: steps that failed, wait or run stay, as do loops, sinks and branches.
func (g *Diagram) Fold() *Diagram {
	if len(g.steps) <= unfoldedSteps {
		return g
	}
	known := map[string]*node{}
	for _, step := range g.steps {
		known[step.name] = step
	}
	folded, places := &Diagram{title: g.title}, map[string]string{}
	for _, step := range g.steps {
		if places[step.name] != "" {
			continue
		}
		row := []*node{step}
		for next := step; ; row = append(row, next) {
			if next = next.followingQuiet(known); next == nil || slices.Contains(row, next) || places[next.name] != "" {
				break
			}
		}
		if !step.isQuiet() || len(row) < leastFolded {
			copied := *step
			copied.routes = slices.Clone(step.routes)
			places[step.name] = step.name
			folded.steps = append(folded.steps, &copied)
			continue
		}
		box := foldRow(row)
		folded.steps = append(folded.steps, box)
		for _, of := range row {
			places[of.name] = box.name
		}
	}
	for _, step := range folded.steps {
		step.from = namesIn(step.from, places)
		for i := range step.routes {
			step.routes[i].to = places[step.routes[i].to]
		}
	}
	return folded
}

// foldRow returns the box of a row of steps.
func foldRow(row []*node) *node {
	first, last := row[0], row[len(row)-1]
	return &node{
		name: first.name + " … " + last.name, tool: terminal.Count(len(row), "step"), from: first.from, joins: first.joins, routes: slices.Clone(last.routes),
		state: first.state, word: first.word,
	}
}

// namesIn returns the boxes in which steps are drawn, each once.
func namesIn(steps []string, places map[string]string) (boxes []string) {
	for _, name := range steps {
		if box := places[name]; !slices.Contains(boxes, box) {
			boxes = append(boxes, box)
		}
	}
	return boxes
}

// isQuiet reports whether a step can be folded.
func (s *node) isQuiet() bool {
	switch s.state {
	case "", interpreter.Completed, interpreter.Skipped, interpreter.Pending, interpreter.Cancelled:
		return s.tool != "" && s.loop == "" && len(s.sinks) == 0 && s.inner == nil && !slices.ContainsFunc(s.details, isVisit)
	}
	return false
}

// isVisit reports whether a detail says that a cycle leads to the step.
func isVisit(detail string) bool {
	var visit int
	_, err := fmt.Sscanf(detail, "visit %d", &visit)
	return err == nil
}

// followingQuiet returns the only step that follows a step unconditionally, if both have the same status, nothing else leads
// there and it can be folded; else nil.
func (s *node) followingQuiet(known map[string]*node) *node {
	if len(s.routes) != 1 || s.routes[0].label != "" {
		return nil
	}
	next := known[s.routes[0].to]
	if next == nil || len(next.from) != 1 || next.state != s.state || !next.isQuiet() {
		return nil
	}
	return next
}
