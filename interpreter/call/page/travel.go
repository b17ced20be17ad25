package page

import (
	"reprise/interpreter/expression"
)

// Count is how much was collected, of a list, what stayed with another host included.
func (p *Pages) Count() int {
	list, _ := p.Collected.Data.([]any)
	return p.Detached + len(list)
}

// Detach leaves what was collected with this host, where pages only add to it. A page that
// replaces the others goes along.
func (p *Pages) Detach(by Collecting) {
	if list, isList := p.Collected.Data.([]any); isList && by.onlyAppends() {
		p.Collected, p.Detached = expression.Of([]any{}), len(list)
	}
}

// Attach adds what was collected elsewhere to what stayed here.
func (p *Pages) Attach(here *Pages) {
	detached := p.Detached
	p.Whole()
	if collected, isList := here.Collected.Data.([]any); isList && detached > 0 {
		added, _ := p.Collected.Data.([]any)
		p.Collected = expression.Of(append(collected, added...))
	}
}

// Cut drops the first count collected elements, if pages only add to them, and reports whether it
// did.
func (p *Pages) Cut(by Collecting, count int) bool {
	list, isList := p.Collected.Data.([]any)
	cuts := isList && by.onlyAppends()
	if cuts {
		p.Collected = expression.Of(list[count-p.Detached:])
	}
	p.Whole()
	return cuts
}

// Whole says that all that was collected is here.
func (p *Pages) Whole() { p.Detached = 0 }

// Complete is the reverse of Cut: it prepends the first count elements of what was collected here
// before. It is false if there are fewer.
func (p *Pages) Complete(here *Pages, count int) bool {
	before, _ := here.Collected.Data.([]any)
	kept := count - here.Detached
	if kept < 0 || kept > len(before) {
		return false
	}
	added, _ := p.Collected.Data.([]any)
	all := make([]any, 0, kept+len(added)) // not nil: an empty list is what was collected
	p.Collected = expression.Of(append(append(all, before[:kept]...), added...))
	p.Detached = here.Detached
	return true
}
