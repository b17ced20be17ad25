package interpreter

import (
	"slices"
	"sort"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// Arrival is a branch that has reached a step which has not started; kept in workflow history.
type Arrival struct {
	Step string           `json:"step"`
	From int              `json:"from"` // index in the file of the step it came from, -1 at the start
	Args expression.Value `json:"args,omitzero"`
}

// Start is a visit of a step that may begin.
type Start struct {
	Step  *playbook.Step
	Visit int // from 1
	Args  any // args of the routes that led here, merged
}

// Routing is the position of a run in the graph; kept in workflow history.
type Routing struct {
	Visits  map[string]int `json:"visits"`            // how often each step has begun
	Waiting []Arrival      `json:"waiting,omitempty"` // at steps that wait for other branches
	Running []string       `json:"running,omitempty"` // names of steps that have begun and not ended
}

// Graph determines which steps may start. It depends only on the playbook.
type Graph struct {
	book  *playbook.Playbook
	place map[string]int // index of a step in the file
	reach [][]bool       // [from][to], by index: whether to can follow from
}

// NewGraph returns the graph of a playbook's routes.
func NewGraph(book *playbook.Playbook) *Graph {
	graph := &Graph{book: book, place: make(map[string]int, len(book.Steps))}
	for i, step := range book.Steps {
		graph.place[step.Name] = i
	}
	next := lists.Map(book.Steps, graph.targetIndexes)
	for i := range book.Steps {
		graph.reach = append(graph.reach, reachableSteps(next, i))
	}
	return graph
}

// targetIndexes returns the indexes of the steps that the routes of a step lead to.
func (g *Graph) targetIndexes(step *playbook.Step) []int {
	var places []int
	for _, route := range step.Next {
		for _, target := range route.Targets {
			if place, found := g.place[target.Step]; found && !slices.Contains(places, place) {
				places = append(places, place)
			}
		}
	}
	return places
}

func reachableSteps(next [][]int, from int) []bool {
	seen := make([]bool, len(next))
	queue := []int{from}
	for len(queue) > 0 {
		place := queue[0]
		queue = queue[1:]
		for _, target := range next[place] {
			if !seen[target] {
				seen[target] = true
				queue = append(queue, target)
			}
		}
	}
	return seen
}

// canReach reports whether a branch at one step can reach another.
func (g *Graph) canReach(from, to string) bool {
	return g.reach[g.place[from]][g.place[to]]
}

// BeginRouting returns the position before the first step.
func (g *Graph) BeginRouting() Routing {
	return Routing{
		Visits:  map[string]int{},
		Waiting: []Arrival{{Step: g.book.FirstStep().Name, From: -1}},
	}
}

// StartReady removes the steps that may start now from the waiting ones, and marks them as running. A step waits
// while another branch can still reach it; if every branch would wait, the first one in the file starts
// (docs/concepts/runs.md#routes).
func (g *Graph) StartReady(routing *Routing) []Start {
	var starts []Start
	for {
		step := g.nextStartable(routing)
		if step == nil {
			return starts
		}
		starts = append(starts, g.startStep(routing, step))
	}
}

func (g *Graph) nextStartable(routing *Routing) *playbook.Step {
	var first *playbook.Step
	for _, step := range g.book.Steps {
		if !slices.ContainsFunc(routing.Waiting, func(arrival Arrival) bool { return arrival.Step == step.Name }) {
			continue
		}
		if first == nil {
			first = step
		}
		if !g.isHeld(routing, step.Name) {
			return step
		}
	}
	if len(routing.Running) == 0 {
		return first
	}
	return nil
}

// isHeld reports whether another branch can still reach the step, or is at it.
func (g *Graph) isHeld(routing *Routing, step string) bool {
	for _, running := range routing.Running {
		if running == step || g.canReach(running, step) {
			return true
		}
	}
	return slices.ContainsFunc(routing.Waiting, func(arrival Arrival) bool { return arrival.Step != step && g.canReach(arrival.Step, step) })
}

// startStep joins the branches that wait at the step, and merges their args in file order.
func (g *Graph) startStep(routing *Routing, step *playbook.Step) Start {
	var joined, rest []Arrival
	for _, arrival := range routing.Waiting {
		if arrival.Step == step.Name {
			joined = append(joined, arrival)
		} else {
			rest = append(rest, arrival)
		}
	}
	sort.SliceStable(joined, func(i, j int) bool { return joined[i].From < joined[j].From })
	var args any
	for _, arrival := range joined {
		if arrival.Args.Data != nil {
			args = expression.MergeMaps(expression.MapOrEmpty(args), arrival.Args.Data)
		}
	}
	routing.Waiting = rest
	routing.Running = append(routing.Running, step.Name)
	routing.Visits[step.Name]++
	return Start{Step: step, Visit: routing.Visits[step.Name], Args: args}
}

// EndStep removes the step from the running ones and adds where its branch continues.
func (g *Graph) EndStep(routing *Routing, step *playbook.Step, arrivals []Arrival) {
	for i, running := range routing.Running {
		if running == step.Name {
			routing.Running = append(routing.Running[:i:i], routing.Running[i+1:]...)
			break
		}
	}
	routing.Waiting = append(routing.Waiting, arrivals...)
}

// NextSteps returns where a branch continues after a step. After a success: the first entry whose when is true,
// otherwise all unconditional entries, otherwise `else`. After a failure only entries whose when uses `error`
// count; handled says that one was true.
func NextSteps(
	step *playbook.Step, failed bool, scope *Scope, budget *expression.Budget,
) (arrivals []Arrival, handled bool, err error) {
	for _, route := range step.Next {
		if route.When == nil || (failed && !route.When.UsesAny("error")) {
			continue
		}
		taken, err := route.When.EvalCondition(scope, budget)
		if err != nil {
			return nil, false, err
		}
		if taken {
			arrivals, err := arriveAt(step, route.Targets, scope, budget)
			return arrivals, true, err
		}
	}
	if failed {
		return nil, false, nil
	}
	targets := defaultTargets(step)
	arrivals, err = arriveAt(step, targets, scope, budget)
	return arrivals, true, err
}

func defaultTargets(step *playbook.Step) []*playbook.Target {
	var targets, otherwise []*playbook.Target
	for _, route := range step.Next {
		switch {
		case route.Else:
			otherwise = append(otherwise, route.Targets...)
		case route.When == nil:
			targets = append(targets, route.Targets...)
		}
	}
	if targets == nil {
		return otherwise
	}
	return targets
}

func arriveAt(
	step *playbook.Step, targets []*playbook.Target, scope *Scope, budget *expression.Budget,
) ([]Arrival, error) {
	arrivals := make([]Arrival, 0, len(targets))
	for _, target := range targets {
		arrival := Arrival{Step: target.Step, From: step.Index}
		if target.Args != nil {
			args, err := target.Args.Render(scope, budget)
			if err != nil {
				return nil, err
			}
			arrival.Args = expression.Of(args)
		}
		arrivals = append(arrivals, arrival)
	}
	return arrivals, nil
}
