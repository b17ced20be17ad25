package playbook

import (
	"time"

	"gopkg.in/yaml.v3"
)

// stepRateLimit reads rate_limit of a step. It bounds how often the step's
// tool is called, so a router cannot have one.
func (d *decoder) stepRateLimit(n *yaml.Node, step *Step) {
	limit := readSection[RateLimit](d, n, at{})
	if step.Action == nil {
		d.errorf(position(n), codeRouter,
			"step %q has \"rate_limit\" but no tool: a step without a tool sends nothing; give it a tool or remove it", step.Name)
		return
	}
	step.Action.RateLimit = limit
}

var rateLimitSection = sectionOf(section{name: "rate_limit", prefix: "rate_limit."}, []keyOf[RateLimit]{
	accept(key{name: "requests", doc: "how many requests", required: "requests: 50"},
		asInteger(func(l *RateLimit, n int) { l.Requests = n }).from(1)),
	accept(key{name: "per", doc: "in which time; default 1s"},
		asLimit(func(l *RateLimit, v time.Duration) { l.Per = v }).or(time.Second)),
	accept(key{name: "key", doc: "what the limit belongs to, within the playbook; default the host of the URL"},
		asValue(func(l *RateLimit, n *Node) { l.Key = n })),
	accept(key{name: "shared", doc: "in place of `key`: the name of a limit that all playbooks share which name it"},
		asValue(func(l *RateLimit, n *Node) { l.Shared = n })),
})

func (*RateLimit) section() *section { return rateLimitSection }

func (l *RateLimit) decode(d *decoder, f *fields, where at) bool {
	*l = RateLimit{Pos: f.pos, Per: time.Second}
	d.words(f, l, where)
	if l.Key != nil && l.Shared != nil {
		d.errorf(l.Shared.Pos, codeConflict,
			"rate_limit has \"key\" and \"shared\": a key belongs to this playbook, a shared one to all that name it; write one of them")
	}
	return l.Requests > 0
}
