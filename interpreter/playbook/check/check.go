// Package check says what is wrong with a playbook that could be decoded.
//
// Each file has the rules of one subject, as functions of the checker, and the tables in rules.go list
// all rules and the codes that they report. The package reads the model, the catalogue of tools and the
// limits, and returns diagnostics. It does not change the model or read YAML.
package check

import (
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// Options is what a check knows in addition to the playbook.
type Options struct {
	// Workload is the workload as --set and --workload overlay it; its keys are
	// names that expressions may use in addition to the playbook's own.
	Workload map[string]any
	// Open says that runs may have any workload besides: a name that it may give is no
	// problem, and what is worked out from it is checked when there is a run.
	Open bool
	// Limits are the limits of the workers that are to run the playbook.
	Limits playbook.Limits
	// Zone refuses names that are no time zones. Nil takes all: what zones there are
	// is up to a machine.
	Zone func(name string) error
	// Now is the present time, on which partitions depend; zero stands for any time.
	Now time.Time
	// Files are the playbooks that this one names; nil does not look for them.
	Files *Files
	// caller is set for a playbook that another one calls.
	caller *caller
}

// Validate decodes and checks a file and returns every problem of both, sorted:
// also those that decoding cannot see, of names, routes, tools and their
// fields, bounds and SQL.
// The playbook is nil if nothing usable could be decoded. Checks that would
// only repeat what a decoding error causes elsewhere are left out.
func Validate(file *source.File, tools playbook.Tools, options Options) (*playbook.Playbook, source.Diagnostics) {
	pb, found := playbook.Decode(file)
	if pb == nil {
		found.Sort()
		return nil, found
	}
	c := newChecker(pb, tools, options)
	found = c.onlyUnderstood(found)
	c.partial = found.HasErrors()
	c.checkAll()
	found = append(found, c.Found...)
	found.Sort()
	pb.NameUses(found)
	return pb, found
}

// checkAll asks all rules about the playbook, and about those that are within it.
func (c *checker) checkAll() {
	for _, rule := range allRules() {
		rule(c)
	}
	for _, inner := range c.inner {
		inner.partial = c.partial
		inner.checkAll()
		c.Found = append(c.Found, inner.Found...)
	}
}

// checker carries what the rules share. It lives for one check.
type checker struct {
	playbook.Problems

	pb      *playbook.Playbook
	tools   playbook.Tools
	options Options
	// partial says that a part of the file could not be decoded. Rules that report something as missing stay silent then:
	// it may be in that part.
	partial bool
	// workload holds the keys of the defaults and of the overlay.
	workload map[string]any
	// unclear says that a step has an unknown tool or field. A step or key that nothing seems to use may be named there,
	// so rules about unused things stay silent about the texts of such places, which are meant.
	unclear bool
	meant   map[string]bool
	vars    map[string]bool // that steps set
	placing placing
	// sql are the statements, nil before they are read.
	sql []readStatement
	// resolved remembers the tool of each action; "" where it is not known.
	resolved map[*playbook.Action]string
	// specs remembers what Tools has said; nil for tools that it does not have.
	specs map[string]*playbook.ToolSpec
	// inner check the playbooks that are within this one.
	inner []*checker
}

func newChecker(pb *playbook.Playbook, tools playbook.Tools, options Options) *checker {
	c := &checker{Problems: playbook.Problems{File: pb.File}, pb: pb, tools: tools, options: options, vars: varsOf(pb), resolved: map[*playbook.Action]string{}, specs: map[string]*playbook.ToolSpec{}}
	c.workload, _ = expression.Merge(pb.Workload, options.Workload).(map[string]any)
	if c.workload == nil {
		c.workload = map[string]any{}
	}
	c.readUnknown()
	c.inner = c.innerCheckers()
	return c
}
