package playbook

import (
	"bytes"
	"cmp"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// Concurrency bounds how many runs with the same Key run at a time in a namespace: runs of the playbook or, with
// Shared, of all playbooks that share the key.
type Concurrency struct {
	Key        *Node // nil with Shared
	Shared     *Node // nil if the key is private to the playbook
	Limit      int
	OnConflict OnConflict
}

// OnConflict says what happens to a run if no slot is free.
type OnConflict string

// The values of on_conflict.
const (
	ConflictQueue  OnConflict = "queue"
	ConflictSkip   OnConflict = "skip"
	ConflictCancel OnConflict = "cancel_running"
	ConflictFail   OnConflict = "fail" // for the state of a step only
)

// MaxNesting bounds the depth of child runs below the first run. Without it, a playbook that runs itself would
// start runs forever.
const MaxNesting = 16

// MaxConcurrencyRuns bounds concurrency.limit: the workflow of a key stores an entry for each holder.
const MaxConcurrencyRuns = 1000

// Name returns what the runs share: Key or Shared.
func (c *Concurrency) Name() *Node { return cmp.Or(c.Shared, c.Key) }

var concurrencySection = sectionOf(section{name: "concurrency", prefix: "concurrency."}, []keyOf[Concurrency]{
	acceptKey(key{name: "key", doc: "the key that runs of this playbook share, made from the workload"},
		asTextValue(func(c *Concurrency, n *Node) { c.Key = n })),
	acceptKey(key{name: "shared", doc: "instead of `key`: a name shared by the runs of every playbook that uses it"},
		asTextValue(func(c *Concurrency, n *Node) { c.Shared = n })),
	acceptKey(key{name: "limit", doc: "how many runs may be open at a time, up to 1000; default 1"},
		asInteger(func(c *Concurrency, n int) { c.Limit = n }).from(1).to(MaxConcurrencyRuns).or(1)),
	acceptKey(key{name: "on_conflict", doc: "what happens to a run when no slot is free: `queue` (default), `skip` or `cancel_running`"},
		asOneOf(func(c *Concurrency, choice OnConflict) { c.OnConflict = choice }, ConflictQueue, ConflictSkip, ConflictCancel).or(ConflictQueue)),
})

func (*Concurrency) section() *section { return concurrencySection }

func (c *Concurrency) decode(d *decoder, f *fields, where at) bool {
	*c = Concurrency{Limit: 1, OnConflict: ConflictQueue}
	d.readWords(f, c, where)
	switch {
	case f.getValue("key") != nil && f.getValue("shared") != nil:
		d.Errorf(f.words["shared"], CodeConflict,
			"concurrency has both \"key\" and \"shared\": keep \"key\" for a limit of this playbook, or \"shared\" for a limit across playbooks")
	case f.getValue("shared") == nil:
		d.requireKeys(f, "concurrency", "key", `key: "{{ workload.tenant }}"`)
	}
	if name := c.Name(); name != nil && name.Template == nil && name.Raw == "" {
		d.Errorf(name.Pos, codeWrongType, "the name of concurrency must not be empty")
	}
	return true
}

// readStepRateLimit reads rate_limit of a step. It bounds calls of the step's tool, so a router cannot have one.
func readStepRateLimit(d *decoder, n *yaml.Node, step *Step) {
	limit := readSection[RateLimit](d, n, at{})
	if step.Action == nil {
		d.Errorf(positionOf(n), CodeRouter,
			"step %q has \"rate_limit\" but no tool: a step without a tool sends nothing; give it a tool or remove it", step.Name)
		return
	}
	step.Action.RateLimit = limit
}

var rateLimitSection = sectionOf(section{name: "rate_limit", prefix: "rate_limit."}, []keyOf[RateLimit]{
	acceptKey(key{name: "requests", doc: "how many requests are allowed", required: "requests: 50"},
		asInteger(func(l *RateLimit, n int) { l.Requests = n }).from(1)),
	acceptKey(key{name: "per", doc: "the period in which they are counted; default 1s"},
		asLimit(func(l *RateLimit, v time.Duration) { l.Per = v }).or(time.Second)),
	acceptKey(key{name: "key", doc: "what the limit applies to, within the playbook; default: the host of the URL"},
		asValue(func(l *RateLimit, n *Node) { l.Key = n })),
	acceptKey(key{name: "shared", doc: "instead of `key`: the name of a limit shared by every playbook that uses it"},
		asValue(func(l *RateLimit, n *Node) { l.Shared = n })),
})

func (*RateLimit) section() *section { return rateLimitSection }

func (l *RateLimit) decode(d *decoder, f *fields, where at) bool {
	*l = RateLimit{Pos: f.pos, Per: time.Second}
	d.readWords(f, l, where)
	if l.Key != nil && l.Shared != nil {
		d.Errorf(l.Shared.Pos, CodeConflict,
			"rate_limit has both \"key\" and \"shared\": keep \"key\" for a limit of this playbook, or \"shared\" for a limit across playbooks")
	}
	return l.Requests > 0
}

// OwnedLimit is a rate limit set by the operator.
type OwnedLimit struct {
	Requests int // 0 if only MaxPause is set
	Per      time.Duration
	MaxPause time.Duration // 0: the default
}

// OwnedLimits decodes a file of the operator: a map of keys to rate limits, with the words of rate_limit. The
// limits may be used if no diagnostic is an error.
func OwnedLimits(file *source.File) (map[string]OwnedLimit, source.Diagnostics) {
	limits := map[string]OwnedLimit{}
	if len(bytes.TrimSpace(file.Bytes())) == 0 {
		return limits, nil
	}
	d := &decoder{Problems: Problems{File: file}, broken: map[*yaml.Node]bool{}}
	if root := d.parseYAML(); root != nil && d.inspectTree(root) {
		if root.Kind != yaml.MappingNode {
			d.Errorf(positionOf(root), codeWrongType, "rate limits must be a map of keys to limits, such as api.example.com: {requests: 20}, not %s",
				describeYAML(root))
		} else {
			for key, value := range yamltree.Pairs(root) {
				limits[key.Value] = readOwnedLimit(d, value, key.Value)
			}
		}
	}
	d.Found.Sort()
	return limits, d.Found
}

// ownedLimitSection is an entry of the operator's file of rate limits. It is not part of the language.
var ownedLimitSection = sectionOf(section{name: "rate limit"}, []keyOf[OwnedLimit]{
	acceptKey(key{name: "requests", doc: "how many requests are allowed"}, asInteger(func(l *OwnedLimit, n int) { l.Requests = n }).from(1)),
	acceptKey(key{name: "per", doc: "the period in which they are counted; default 1s"},
		asLimit(func(l *OwnedLimit, v time.Duration) { l.Per = v }).or(time.Second)),
	acceptKey(key{name: "max_pause", doc: "how long one rate-limited response may hold back all other requests; default 5m"},
		asLimit(func(l *OwnedLimit, v time.Duration) { l.MaxPause = v })),
})

func readOwnedLimit(d *decoder, n *yaml.Node, key string) OwnedLimit {
	limit := OwnedLimit{Per: time.Second}
	f, ok := d.readFields(n, ownedLimitSection, key)
	if !ok {
		return limit
	}
	d.readWords(f, &limit, at{})
	if f.getValue("requests") == nil && limit.MaxPause == 0 {
		d.Errorf(positionOf(n), CodeMissingKey, "%s needs \"requests\", \"max_pause\" or both", key)
	}
	return limit
}
