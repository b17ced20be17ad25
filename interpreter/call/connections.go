package call

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// A sink with a missing connection fails its call. That is found before anything is sent: the worker that makes the
// first attempt checks the connections, or else the workflow before the step begins. For steps that every
// successful run reaches, the check is made when the run begins.

// sinkConnections returns the connections named by the sinks of the call, if they are known before its first
// attempt.
func (c *Config) sinkConnections(now time.Time) []interpreter.SinkConnection {
	return c.connectionsOf(c.AllSinks(), now)
}

// connectionsOf returns the connections that sinks name. Connections that cannot be rendered are omitted; the write
// will report them.
func (c *Config) connectionsOf(sinks []*playbook.Sink, now time.Time) (all []interpreter.SinkConnection) {
	budget := expression.DecisionBudget(now)
	for _, sink := range sinks {
		action := c.Book.ResolveAction(sink.Action)
		if !c.Step.FixedAuth(action) {
			continue
		}
		auth, err := action.Auth.Render(c.Scope, budget)
		name, isText := auth.(string)
		if err != nil || !isText || name == "" {
			continue
		}
		all = append(all, interpreter.SinkConnection{
			Auth: name, Place: sink.Place, At: fmt.Sprintf("%s:%s", c.Book.File.Name, action.Auth.Position(0)),
		})
	}
	return all
}

// LateConnections returns the connections that no attempt checks: those of sinks on a step with a loop, or with a
// tool that the workflow itself carries out, such as approval. It is nil for other steps, and if a route handles
// the failure of the step, because then its sinks may have nothing to write.
func (c *Config) LateConnections(now time.Time) []interpreter.SinkConnection {
	if c.Step.Loop == nil && !c.inWorkflow() || handlesFailure(c.Step) {
		return nil
	}
	return c.connectionsOf(c.After, now)
}

func (c *Config) inWorkflow() bool { return c.Book.ResolveAction(c.Action).ToolTraits().InWorkflow }

// StartConnections returns the connections of sinks that every successful run of a playbook needs, if they are
// known when it begins. files are the playbooks that travel with the run.
func StartConnections(book *playbook.Playbook, workload map[string]any, files map[string]string, now time.Time) []interpreter.SinkConnection {
	search := connectionSearch{files: files, now: now, seen: map[childRun]bool{}}
	return search.searchRun(book, workload, 0)
}

// mostSearched bounds the child playbooks that a search for connections follows; playbooks may be nested and many.
const mostSearched = 500

// connectionSearch collects the StartConnections of a run and of the runs that it starts.
type connectionSearch struct {
	files map[string]string
	now   time.Time
	// seen are the child runs already followed, since playbooks may run each other.
	seen map[childRun]bool
}

// childRun identifies a run by its playbook and its workload as JSON.
type childRun struct {
	book     *playbook.Playbook
	workload string
}

// searchRun returns the connections of one run; depth is the number of its parents.
func (s *connectionSearch) searchRun(book *playbook.Playbook, workload map[string]any, depth int) (all []interpreter.SinkConnection) {
	data := interpreter.Data{
		Workload: expression.Of(expression.MergeMaps(book.Workload, workload)),
		Vars:     expression.Of(map[string]any{}), Steps: expression.Of(map[string]any{}),
	}
	for _, step := range certainSteps(book) {
		if step.Action == nil {
			continue
		}
		config := Task{Data: data}.BuildCall(book, step, Snapshot{}, nil).config
		sinks := config.AllSinks()
		if step.Loop != nil || config.inWorkflow() || config.Book.ResolveAction(step.Action).Tool.Template != nil {
			sinks = config.After // sinks of policies and iterations may have nothing to write
		}
		known := lists.Filter(sinks, func(sink *playbook.Sink) bool {
			auth := book.ResolveAction(sink.Action).Auth
			return auth != nil && config.runOnly(auth) == ""
		})
		all = append(all, config.connectionsOf(known, s.now)...)
		if depth < playbook.MaxNesting {
			all = append(all, s.searchChild(config, depth)...)
		}
	}
	return all
}

// searchChild returns the connections of the run that a call starts, if the failure of that run fails the step.
func (s *connectionSearch) searchChild(c Config, depth int) []interpreter.SinkConnection {
	action := c.Book.ResolveAction(c.Action)
	if !action.ToolTraits().Plays || c.Step.Loop != nil || len(c.Policies) > 0 || action.Field(playbook.FieldWait) != nil {
		return nil
	}
	given := map[string]any{}
	if node := action.Field(playbook.FieldWorkload); node != nil {
		if c.runOnly(node) != "" {
			return nil
		}
		value, err := node.Render(c.Scope, expression.DecisionBudget(s.now))
		if given, _ = value.(map[string]any); err != nil || given == nil {
			return nil
		}
	}
	inner := c.childPlaybook(action, s.files)
	if inner == nil || inner.Concurrency != nil { // a run with a concurrency key may be skipped
		return nil
	}
	text, err := expression.Encode(given)
	run := childRun{inner, string(text)}
	if err != nil || s.seen[run] || len(s.seen) >= mostSearched {
		return nil
	}
	s.seen[run] = true
	return s.searchRun(inner, given, depth+1)
}

// childPlaybook returns the playbook that an action runs; nil if only a run knows it.
func (c *Config) childPlaybook(action *playbook.Action, files map[string]string) *playbook.Playbook {
	if action.Inline != nil {
		return action.Inline
	}
	name := ""
	if node := action.Field(playbook.FieldName); node != nil && node.Template == nil {
		name = expression.Text(node.Value)
	}
	file, err := c.Book.CalledFile(action, name)
	if err != nil || files[file] == "" {
		return nil
	}
	book, err := interpreter.LoadPlaybook(file, files[file])
	if err != nil {
		return nil
	}
	return book
}

// certainSteps returns the steps that every successful run reaches, whatever their outcomes, and whose own failure
// fails the run.
func certainSteps(book *playbook.Playbook) (certain []*playbook.Step) {
	ahead := []*playbook.Step{book.FirstStep()}
	for len(ahead) > 0 {
		step := ahead[0]
		ahead = ahead[1:]
		if step == nil || handlesFailure(step) || slices.Contains(certain, step) {
			continue
		}
		certain = append(certain, step)
		if routesByCondition(step) {
			continue
		}
		for _, route := range step.Next {
			for _, target := range route.Targets {
				ahead = append(ahead, book.Step(target.Step))
			}
		}
	}
	return certain
}

// routesByCondition reports whether a condition decides where the routes of a step lead.
func routesByCondition(step *playbook.Step) bool {
	return slices.ContainsFunc(step.Next, func(route *playbook.Route) bool { return route.When != nil || route.Else })
}

// handlesFailure reports whether a route of a step may continue after its failure.
func handlesFailure(step *playbook.Step) bool {
	return slices.ContainsFunc(step.Next, func(route *playbook.Route) bool { return route.When != nil && route.When.UsesAny("error") })
}
