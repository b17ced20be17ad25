// Package graph draws playbooks, and runs of them, as text, Mermaid, Graphviz and SVG.
package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// Diagram is the drawing of a playbook, or of a run of it.
type Diagram struct {
	title string
	steps []*node
}

// node is a step with its sinks and routes.
type node struct {
	name    string
	tool    string // "" for a router
	loop    string // "" without
	from    []string
	joins   bool // several branches can come together here
	routes  []edge
	sinks   []sinkNode
	state   interpreter.Status // in whose colour the last visit is drawn, "" without a run
	word    string             // for the status of the last visit, or for what holds it
	details []string           // of the state: attempt, next retry, counts
	inner   *Diagram           // of the playbook that it runs, nil where that is not shown
}

type edge struct {
	to    string
	label string // the condition; "" for none
}

type sinkNode struct {
	target string // tool and where it writes
	when   string
}

// Texts of a graph are cut to these numbers of characters.
const (
	shownCondition = 48
	shownTarget    = 48
)

// New draws a playbook, with the status of a run if status is not nil. below draws the playbooks that it runs.
func New(book *playbook.Playbook, status *runs.Status, below *Children) *Diagram {
	g := &Diagram{title: book.Name}
	known, names := map[string]*node{}, namesOf(book, below)
	for _, step := range book.Steps {
		drawn := &node{name: step.Name, loop: loopText(step.Loop), sinks: sinksOf(step, names)}
		if step.Action != nil {
			drawn.tool = names.toolText(step.Action)
		}
		for _, route := range step.Next {
			for _, target := range route.Targets {
				if book.Step(target.Step) == nil {
					continue // validation reports it; the rest of the playbook can be drawn
				}
				drawn.routes = append(drawn.routes, edge{to: target.Step, label: routeText(route)})
			}
		}
		drawn.inner = below.drawChild(book, step, status)
		known[step.Name] = drawn
		g.steps = append(g.steps, drawn)
	}
	for _, step := range g.steps {
		for _, route := range step.routes {
			if target := known[route.to]; target != nil && (len(target.from) == 0 || target.from[len(target.from)-1] != step.name) {
				target.from = append(target.from, step.name)
			}
		}
	}
	g.joinSteps(known)
	if status != nil {
		g.title = fmt.Sprintf("%s (%s): %s", status.WorkflowID, book.Name, render.StateWord(status.Status, status.HeldBy))
		for _, step := range status.Steps {
			if drawn := known[step.Step]; drawn != nil {
				drawn.state, drawn.word = render.StateColour(step.Status, step.HeldBy), render.StateWord(step.Status, step.HeldBy)
				drawn.details = stateText(step, status.At)
			}
		}
	}
	return g
}

// joinSteps records the steps to which several routes lead. Routes that lead back in a cycle do not count.
func (g *Diagram) joinSteps(known map[string]*node) {
	for _, step := range g.steps {
		ahead := 0
		for _, from := range step.from {
			if !leadsTo(known, step.name, from, map[string]bool{}) {
				ahead++
			}
		}
		step.joins = ahead > 1
	}
}

// leadsTo reports whether routes lead from one step to another.
func leadsTo(known map[string]*node, from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] || known[from] == nil {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(known[from].routes, func(route edge) bool { return leadsTo(known, route.to, to, seen) })
}

func (n names) toolText(action *playbook.Action) string {
	name, isLiteral := action.ToolName()
	switch {
	case isLiteral && name == playbook.WorkbookTool && action.Field("name") != nil:
		return terminal.Shorten("workbook "+n.fillText(action.Field("name").Raw), shownTarget)
	case isLiteral:
		return name
	case action.Tool != nil:
		return terminal.Shorten(n.fillText(action.Tool.Raw), shownTarget)
	}
	return ""
}

func loopText(loop *playbook.Loop) string {
	if loop == nil {
		return ""
	}
	mode := "sequential"
	if loop.Mode == playbook.Parallel {
		mode = fmt.Sprintf("parallel, %d at once", loop.MaxConcurrency)
	}
	if !loop.AutoBatch {
		mode += fmt.Sprintf(", batch %d", loop.BatchSize(0))
	}
	over := ""
	if loop.Collection != nil && loop.Collection.Raw != "" {
		over = " over " + bareText(loop.Collection.Raw)
	}
	if loop.Source != nil {
		tool, _ := loop.Source.Action.ToolName()
		over = " over pages of " + cmp.Or(tool, "a source")
	}
	return terminal.Shorten("loop"+over, shownTarget) + ": " + mode
}

func routeText(route *playbook.Route) string {
	switch {
	case route.Else:
		return "else"
	case route.When != nil:
		return terminal.Shorten(bareText(cmp.Or(route.When.Raw, fmt.Sprint(route.When.Value))), shownCondition)
	}
	return ""
}

// bareText returns a condition without the braces of its template.
func bareText(text string) string {
	text = strings.TrimSpace(text)
	inner, opens := strings.CutPrefix(text, "{{")
	inner, closes := strings.CutSuffix(inner, "}}")
	if opens && closes && !strings.Contains(inner, "{{") {
		return strings.TrimSpace(inner)
	}
	return text
}

// sinksOf returns the sinks of a step, in the order in which they write.
func sinksOf(step *playbook.Step, names names) []sinkNode {
	var all []sinkNode
	add := func(when string, sinks ...*playbook.Sink) {
		for _, sink := range sinks {
			if sink != nil && sink.Action != nil {
				all = append(all, sinkNode{target: names.sinkText(sink.Action), when: when})
			}
		}
	}
	for _, policy := range step.Retry {
		add("every page", policy.Then.PageSinks...)
		add("all pages", policy.Then.Sinks...)
	}
	if step.Loop != nil {
		add("every iteration", step.Loop.Sinks...)
		add("dead letter", step.Loop.DeadLetter)
	}
	add("result", step.Sinks...)
	add("on success", step.Notices(false)...)
	add("on failure", step.Notices(true)...)
	return all
}

// sinkText returns a tool and the target it writes to, if a field names one.
func (n names) sinkText(action *playbook.Action) string {
	text := n.toolText(action)
	for _, name := range []string{"table", "path", "url"} {
		if node := action.Field(name); node != nil && node.Raw != "" {
			return terminal.Shorten(text+" "+n.fillText(node.Raw), shownTarget)
		}
	}
	return text
}

// stateText describes a visit in addition to its status.
func stateText(step runs.Step, now time.Time) []string {
	var lines []string
	if step.Visit > 1 {
		lines = append(lines, fmt.Sprintf("visit %d", step.Visit))
	}
	switch attempt := render.StepAttempt(step); {
	case step.Status == interpreter.Completed && step.Pages > 1:
		lines = append(lines, terminal.Count(step.Pages, "page"))
	case attempt != "":
		lines = append(lines, "attempt "+attempt)
	}
	if !step.NextRetryAt.IsZero() {
		lines = append(lines, "next retry at "+terminal.ClockText(step.NextRetryAt, now))
	}
	if c := step.Loop; c != nil {
		counts, still := *c, step
		counts.PerSecond, counts.Left = 0, 0
		still.Loop = &counts
		lines = append(lines, render.CountsText(still))
	}
	return lines
}

// boxLines returns the text in the box of a step.
func (s *node) boxLines() []string {
	lines := []string{s.name}
	if s.tool != "" {
		lines = append(lines, s.tool)
	}
	if s.loop != "" {
		lines = append(lines, s.loop)
	}
	if s.state != "" {
		lines = append(append(lines, s.word), s.details...)
	}
	return lines
}
