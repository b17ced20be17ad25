package call

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// PlanInput is the argument of interpreter.PlanWorkflow and its activity; kept in workflow history.
type PlanInput struct {
	Task   Task   `json:"task"` // without a step and without its script
	Script Script `json:"script"`
	// Sample says that the plan makes the first request of steps, if it is a GET.
	Sample bool `json:"sample,omitempty"`
}

// SinkTarget is where a sink writes, as far as that is known without a run.
type SinkTarget struct {
	Sink *playbook.Sink
	// Action is the action of the sink; Input is its request without the data to write.
	Action *playbook.Action
	Input  interpreter.ToolInput
	// Unknown says why Input is not known, "" if it is.
	Unknown string
	// ByElement says that the target depends on the element of the loop.
	ByElement bool
}

// SinkTargets returns the targets of all sinks that the call may write to. For a loop as a whole this includes the
// sinks of its iterations.
func (c *Config) SinkTargets(now time.Time) []SinkTarget {
	sinks := c.AllSinks()
	if loop := c.Step.Loop; loop != nil && c.Index == nil {
		sinks = append(sinks, loop.Sinks...)
	}
	return lists.Map(sinks, func(sink *playbook.Sink) SinkTarget { return c.sinkTarget(sink, now) })
}

func (c *Config) sinkTarget(sink *playbook.Sink, now time.Time) SinkTarget {
	action := c.Book.ResolveAction(sink.Action)
	target := SinkTarget{Sink: sink, Action: action, Input: interpreter.ToolInput{Place: sink.Place}}
	target.Input.Tool, _ = action.ToolName()
	nodes := placeNodes(action)
	if loop := c.Step.Loop; loop != nil {
		target.ByElement = slices.ContainsFunc(nodes, request.UsesAny(loop.Element, "_loop"))
	}
	if target.Unknown = c.runOnly(nodes...); target.Unknown != "" {
		return target
	}
	input, fixed := c.Source.SinkTarget(sink, now)
	if !fixed {
		target.Unknown = "depends on what the step reads"
		return target
	}
	target.Input = input
	return target
}

// placeNodes returns the nodes that determine where an action goes, and how.
func placeNodes(action *playbook.Action) []*playbook.Node {
	nodes := lists.Map(action.Fields, func(field *playbook.Entry) *playbook.Node { return field.Value })
	nodes = append(nodes, action.Tool, action.Auth)
	return slices.DeleteFunc(nodes, func(node *playbook.Node) bool { return node == nil })
}

// RequestUnknown says why `starter plan` cannot show the first request of the call, such as "depends on the result of step x"; "" if it
// can.
func (c *Config) RequestUnknown() string {
	action := c.Book.ResolveAction(c.Action)
	nodes := placeNodes(action)
	if action.Args != nil {
		nodes = append(nodes, action.Args)
	}
	return c.runOnly(nodes...)
}

// CollectionUnknown says why the elements of the step's loop are not known without a run; "" if they are.
func (c *Config) CollectionUnknown() string {
	if c.Step.Loop.Source != nil {
		return "depends on the source of the loop"
	}
	return c.runOnly(c.Step.Loop.Collection)
}

// runOnly names something used in the nodes that only a run can know, "" for nothing.
func (c *Config) runOnly(nodes ...*playbook.Node) string {
	for _, node := range nodes {
		for _, ref := range node.Refs() {
			loop := c.Step.Loop
			switch name := ref.Root; {
			case loop != nil && (name == loop.Element || name == "_loop"):
				if c.Index == nil {
					return "depends on the element of the loop"
				}
			case name == "steps", c.Book.Step(name) != nil:
				return fmt.Sprintf("depends on the result of step %s", stepOf(ref))
			case name == "vars":
				return "depends on vars that steps set"
			case name == "args" && c.Args == nil && c.Book.ResolveAction(c.Action).Args == nil:
				return "depends on the route to the step"
			case name == "partition" && c.Run.Partition == nil:
				return "depends on the partition of the run"
			case name == "run", name == "execution_id":
				return "depends on the run"
			}
		}
	}
	return ""
}

// stepOf returns the name of the step that a reference reads.
func stepOf(ref expression.Ref) string {
	if ref.Root == "steps" && len(ref.Path) > 0 {
		return expression.Text(ref.Path[0])
	}
	return ref.Root
}
