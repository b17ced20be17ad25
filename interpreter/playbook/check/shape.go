package check

import (
	"fmt"
	"slices"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// shape is what is known in advance about a result. A nil shape may contain anything.
type shape struct {
	names  []string          // members of a map; empty for anything else
	inner  map[string]*shape // shapes of the members
	list   bool
	item   *shape // shape of a list's items
	ofRows bool   // an SQL result: a list of rows, or a map with their number
}

var (
	rowsShape   = &shape{names: []string{"rows_affected"}, list: true, ofRows: true}
	pagesShape  = &shape{list: true}
	statsShape  = &shape{names: []string{"total", "success", "failed", "truncated", "cancelled"}}
	failedShape = &shape{
		names: []string{"index", "element", "error", "attempts"},
		inner: map[string]*shape{"error": {names: members["error"]}},
	}
)

// stepShape returns the shape of a step's result.
func (c *checker) stepShape(step *playbook.Step) *shape {
	if step == nil || step.Loop == nil {
		return c.callShape(step)
	}
	return &shape{
		names: []string{"results", "errors", "stats"},
		inner: map[string]*shape{
			"results": {list: true, item: c.callShape(step)},
			"errors":  {list: true, item: failedShape},
			"stats":   statsShape,
		},
	}
}

// callShape returns the shape of the result of one call of a step.
func (c *checker) callShape(step *playbook.Step) *shape {
	if step == nil || step.Action == nil {
		return nil
	}
	collects, appends := step.Collect != nil, step.Collect == nil || step.Collect.Strategy == playbook.Append
	for _, policy := range step.Retry {
		then := &policy.Then
		if then.Words.Has("result") || then.Words.Has("ignore") || then.OnExhausted == playbook.ExhaustedSucceed {
			return nil
		}
		if then.Collect != nil {
			collects, appends = true, appends && then.Collect.Strategy == playbook.Append && then.NextCall != nil
		}
	}
	spec := c.toolSpec(c.toolOf(c.pb.ResolveAction(step.Action)))
	switch {
	case collects && appends, step.Rows != nil:
		return pagesShape
	case !collects && step.Where == nil && spec != nil && spec.Dialect != "":
		return rowsShape
	}
	return nil
}

// resultShape returns the shape of result, response and this.data at a site.
func (c *checker) resultShape(at playbook.StepSpot) *shape {
	if at.Step == nil {
		return nil
	}
	switch at.Spot {
	case playbook.AtVars, playbook.AtNext, playbook.AtStepSink, playbook.AtStepNotice:
		return c.stepShape(at.Step)
	case playbook.AtLoopSink:
		if dead := at.Step.Loop.DeadLetter; dead == nil || dead.Action != at.Action {
			return c.callShape(at.Step)
		}
	case playbook.AtThenSink:
		for _, policy := range at.Step.Retry {
			if slices.ContainsFunc(policy.Then.Sinks, func(sink *playbook.Sink) bool { return sink.Action == at.Action }) {
				return c.callShape(at.Step)
			}
		}
	}
	return nil
}

// checkShape warns if an expression reads a path that a result of this shape cannot have; owner is the result's
// name as written.
func checkShape(c *checker, pos place, owner string, s *shape, path []any) {
	for _, key := range path {
		if s == nil {
			return
		}
		switch key := key.(type) {
		case int:
			owner = fmt.Sprintf("%s[%d]", owner, key)
			s = s.item
		case string:
			if !slices.Contains(s.names, key) {
				warnNoMember(c, pos, owner, key, s)
				return
			}
			owner += "." + key
			s = s.inner[key]
		}
	}
}

func warnNoMember(c *checker, pos place, owner, key string, s *shape) {
	hint := "its members are " + playbook.JoinNames(s.names)
	switch near := expression.Suggest(key, s.names); {
	case near != "":
		hint = fmt.Sprintf("did you mean %s.%s?", owner, near)
	case s.list && key == "data":
		hint = fmt.Sprintf("%s is itself the list", owner)
	case s.ofRows:
		hint = fmt.Sprintf("SQL returns a list of rows, or {rows_affected}: write %s[0].%s, or map(%s, .%s) for all", owner, key, owner, key)
	case s.list:
		hint = fmt.Sprintf("it is a list: write %s[0].%s, or map(%s, .%s) for all", owner, key, owner, key)
	}
	c.Warnf(pos.sourcePosition(), codeUnknownMember, "%s has no member %q, so this is always nil; %s", owner, key, hint)
	offerMember(c, owner, key, expression.SuggestCertain(key, s.names))
}
