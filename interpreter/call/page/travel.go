package page

import (
	"reprise/interpreter/expression"
)

// CountElements returns the number of collected elements, including those left with another host.
func (p *Pages) CountElements() int {
	list, _ := p.Collected.Data.([]any)
	return p.Detached + len(list)
}

// Detach removes the collected data, which stays with the sending host, if pages only append to it. Data that a
// later page may replace is kept.
func (p *Pages) Detach(by Collecting) {
	if list, isList := p.Collected.Data.([]any); isList && by.onlyAppends() {
		p.Collected, p.Detached = expression.Of([]any{}), len(list)
	}
}

// Attach adds data that was collected by another host to the data that stayed here.
func (p *Pages) Attach(here *Pages) {
	detached := p.Detached
	p.MarkAttached()
	if collected, isList := here.Collected.Data.([]any); isList && detached > 0 {
		added, _ := p.Collected.Data.([]any)
		p.Collected = expression.Of(append(collected, added...))
	}
}

// DropFirst drops the first count collected elements, if pages only add to them, and reports whether it
// did.
func (p *Pages) DropFirst(by Collecting, count int) bool {
	list, isList := p.Collected.Data.([]any)
	cuts := isList && by.onlyAppends()
	if cuts {
		p.Collected = expression.Of(list[count-p.Detached:])
	}
	p.MarkAttached()
	return cuts
}

// MarkAttached records that all collected data is here.
func (p *Pages) MarkAttached() { p.Detached = 0 }

// PrependFirst is the reverse of DropFirst: it prepends the first count elements that were collected here before. It returns
// false if here has fewer.
func (p *Pages) PrependFirst(here *Pages, count int) bool {
	before, _ := here.Collected.Data.([]any)
	present := count - here.Detached
	if present < 0 || present > len(before) {
		return false
	}
	added, _ := p.Collected.Data.([]any)
	all := make([]any, 0, present+len(added)) // not nil: an empty list counts as collected
	p.Collected = expression.Of(append(append(all, before[:present]...), added...))
	p.Detached = here.Detached
	return true
}
