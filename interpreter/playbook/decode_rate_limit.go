package playbook

import (
	"time"

	"gopkg.in/yaml.v3"
)

// stepRateLimit reads rate_limit of a step. It bounds how often the step's
// tool is called, so a router cannot have one.
func (d *decoder) stepRateLimit(n *yaml.Node, step *Step) {
	limit := d.rateLimit(n)
	if step.Action == nil {
		d.errorf(position(n), CodeRouter,
			"step %q has \"rate_limit\" but no tool: a step without a tool sends nothing; give it a tool or remove it", step.Name)
		return
	}
	step.Action.RateLimit = limit
}

func (d *decoder) rateLimit(n *yaml.Node) *RateLimit {
	f, ok := d.fields(n, rateLimitSection, "rate_limit")
	if !ok || !d.require(f, "rate_limit", "requests", "requests: 50") {
		return nil
	}
	requests, ok := d.integer(f.get("requests"), "rate_limit.requests")
	if !ok {
		return nil
	}
	if requests < 1 {
		d.errorf(position(f.get("requests")), CodeBounds, "rate_limit.requests must be at least 1, not %d", requests)
		return nil
	}
	limit := &RateLimit{Pos: f.pos, Requests: requests, Per: time.Second}
	if n := f.get("per"); n != nil {
		limit.Per = d.timeLimit(n, "rate_limit.per")
	}
	if n := f.get("key"); n != nil {
		limit.Key = d.value(n)
	}
	if n := f.get("shared"); n != nil {
		limit.Shared = d.value(n)
		if limit.Key != nil {
			d.errorf(position(n), CodeConflict,
				"rate_limit has \"key\" and \"shared\": a key belongs to this playbook, a shared one to all that name it; write one of them")
		}
	}
	return limit
}
