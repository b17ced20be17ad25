package call

import (
	"fmt"
	"slices"

	"reprise/interpreter/call/page"
	"reprise/interpreter/call/request"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/retry"
)

// unreadWarning describes a sign of further pages in the last response that no condition reads; "" if there is
// none. If a policy that reads the response ended the call, the author has decided, and there is no warning.
func (r results) unreadWarning(d ruling) string {
	c, last := r.config, &r.state.Last
	if c.Sink != nil || c.Step.Secret || last.Error != nil || d.Ruling != retry.RulingStands || !r.mayHavePages() || c.Step.Loop != nil && request.UsesAny(c.Step.Loop.Element, "_loop")(c.Book.ResolveAction(c.Action).Field(playbook.FieldParams)) {
		return ""
	}
	if d.Policy != 0 && len(c.Policies[d.Policy-1].When.Refs()) > 0 && readsResponse(c.Policies[d.Policy-1].When) {
		return ""
	}
	conditions, links := c.conditionPaths()
	says := page.Unread{
		Policies: c.Policies, Conditions: conditions, LinksRead: links, Answer: last.Data.Data, NextLink: last.Meta.Links["next"], Rows: r.rowsRead(),
		Status: last.Meta.Status, Headers: last.Meta.Headers, Pages: r.state.Successes, Shorter: r.state.Shorter,
	}.Warning()
	if says == "" {
		return ""
	}
	return fmt.Sprintf("%s: %s (step on line %d)", c.CallPlace(), says, c.Step.NamePos.Line)
}

// mayHavePages reports whether the call may have several pages: it makes HTTP requests, or one of its policies
// pages.
func (r results) mayHavePages() bool {
	if r.state.Last.Meta.Status != 0 {
		return true
	}
	return slices.ContainsFunc(r.config.Policies, func(policy *playbook.Policy) bool { return policy.Then.NextCall != nil })
}

// rowsRead returns the number of rows that the call has read so far, -1 if unknown. Pages that nobody collects, because
// they are written one by one or become elements of a loop, are counted as they are read.
func (r results) rowsRead() int {
	s, collect := r.state, r.state.CollectedBy(r.config.collectingOf())
	isRows := r.config.Step.Rows != nil || isList(s.Last.Data.Data)
	switch {
	case r.config.Step.IsSource(), collect == nil && isRows && s.Successes > 1:
		if s.Rows == nil {
			return -1
		}
		return int(s.Rows.Read) + s.Excluded
	case collect != nil && collect.Strategy == playbook.Append && (collect.Path != "" || isRows):
		return s.CountElements() + s.Excluded
	case s.Successes > 1:
		return -1
	}
	return page.LongestList(s.Last.Data.Data, 0)
}

func isList(value any) bool {
	_, is := value.([]any)
	return is
}

// readsResponse reports whether a condition reads any part of a response.
func readsResponse(node *playbook.Node) bool {
	return node.UsesAny("response", "page", "this", "data", playbook.DefaultInto)
}

// conditionPaths returns the paths into the response that are read by conditions of the call's policies, by routes,
// and by the token of the state; links reports whether one reads its headers.
func (c *Config) conditionPaths() (paths []expression.Ref, links bool) {
	var nodes []*playbook.Node
	for _, policy := range c.Policies {
		nodes = append(nodes, policy.When, policy.StopWhen)
	}
	if section := c.Step.Incremental; section != nil {
		nodes = append(nodes, section.Token)
	}
	for _, step := range c.Book.Steps {
		for _, route := range step.Next {
			nodes = append(nodes, route.When)
		}
	}
	for _, node := range nodes {
		for _, ref := range node.Refs() {
			switch {
			case ref.Root == "this" && (len(ref.Path) == 0 || ref.Path[0] == "meta"):
				links = true
			case ref.Root == "this" && ref.Path[0] == "data", ref.Root == "steps" && len(ref.Path) > 1:
				paths = append(paths, expression.Ref{Path: ref.Path[1:]})
			case ref.Root == "response", ref.Root == "page", ref.Root == "data", ref.Root == "result", ref.Root == c.Step.Name:
				paths = append(paths, ref)
			}
		}
	}
	return paths, links
}
