package playbook

import "cmp"

// Concurrency says how many runs of what Key names run at a time, on all workers
// of a namespace: those of the playbook, or with Shared those of all playbooks that
// share it.
type Concurrency struct {
	Key        *Node // nil with Shared
	Shared     *Node // nil: the playbook's own
	Limit      int
	OnConflict OnConflict
}

// OnConflict says what becomes of a run that finds no slot free.
type OnConflict string

// The choices of on_conflict.
const (
	ConflictQueue  OnConflict = "queue"
	ConflictSkip   OnConflict = "skip"
	ConflictCancel OnConflict = "cancel_running"
	ConflictFail   OnConflict = "fail" // of a step's state only
)

// MaxNesting is how many runs may be children of one another, under the first one.
const MaxNesting = 16

// MaxConcurrencyRuns bounds concurrency.limit.
const MaxConcurrencyRuns = 1000

// Name is what the runs share: Key or Shared.
func (c *Concurrency) Name() *Node { return cmp.Or(c.Shared, c.Key) }

var concurrencySection = sectionOf(section{name: "concurrency", prefix: "concurrency."}, []keyOf[Concurrency]{
	accept(key{name: "key", doc: "what runs share, within the playbook; from the workload"},
		asTextValue(func(c *Concurrency, n *Node) { c.Key = n })),
	accept(key{name: "shared", doc: "in place of `key`: a name that the runs of all playbooks share which name it"},
		asTextValue(func(c *Concurrency, n *Node) { c.Shared = n })),
	accept(key{name: "limit", doc: "how many runs are open at a time, at most 1000; default 1"},
		asInteger(func(c *Concurrency, n int) { c.Limit = n }).from(1).to(MaxConcurrencyRuns).or(1)),
	accept(key{name: "on_conflict", doc: "what happens to a run that finds no slot free: `queue` (default), `skip` or `cancel_running`"},
		asOneOf(func(c *Concurrency, choice OnConflict) { c.OnConflict = choice }, ConflictQueue, ConflictSkip, ConflictCancel).or(ConflictQueue)),
})

func (*Concurrency) section() *section { return concurrencySection }

func (c *Concurrency) decode(d *decoder, f *fields, where at) bool {
	*c = Concurrency{Limit: 1, OnConflict: ConflictQueue}
	d.words(f, c, where)
	switch {
	case f.get("key") != nil && f.get("shared") != nil:
		d.errorf(f.words["shared"], codeConflict,
			"concurrency has \"key\" and \"shared\": a key belongs to this playbook, a shared one to all that name it; write one of them")
	case f.get("shared") == nil:
		d.require(f, "concurrency", "key", `key: "{{ workload.tenant }}"`)
	}
	if name := c.Name(); name != nil && name.Template == nil && name.Raw == "" {
		d.errorf(name.Pos, codeWrongType, "the name of concurrency must not be empty")
	}
	return true
}
