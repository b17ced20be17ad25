// Package check finds problems in a playbook that could be decoded.
// Each file has the rules of one subject, as functions of the checker, and the tables in rules.go list all rules
// and the codes that they report. The package reads the model, the catalogue of tools and the limits, and returns
// diagnostics. It does not change the model or read YAML.
package check

import (
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// Options is what a check knows in addition to the playbook.
type Options struct {
	// Workload is the additional workload, from --set and --workload; expressions may use its keys like those of
	// the playbook's own.
	Workload map[string]any
	// Open says that runs may add any further workload. Then names that it could provide are not problems, and
	// values that depend on it are checked by the run.
	Open bool
	// Limits are the limits of the workers that will run the playbook.
	Limits playbook.Limits
	// Zone returns an error for names that are not time zones. Nil accepts all names, since the known zones depend
	// on the machine.
	Zone func(name string) error
	// Now is the present time, on which partitions depend; zero skips these checks.
	Now time.Time
	// Files are the playbooks that this one names; nil does not check them.
	Files *Files
	// caller is set for a playbook that another one calls.
	caller *caller
}

// Validate decodes and checks a file, and returns all problems, sorted. Unlike decoding, it also checks names,
// routes, tools and their fields, bounds and SQL. The playbook is nil if nothing usable could be decoded. Problems
// that merely follow from a decoding error elsewhere are omitted.
func Validate(file *source.File, tools playbook.Tools, options Options) (*playbook.Playbook, source.Diagnostics) {
	pb, found := playbook.Decode(file)
	if pb == nil {
		found.Sort()
		return nil, found
	}
	c := newChecker(pb, tools, options)
	found = c.dropUnknownContents(found)
	c.partial = found.HasErrors()
	c.checkAll()
	found = append(found, c.Found...)
	found.Sort()
	pb.NameUses(found)
	return pb, found
}

// checkAll applies all rules to the playbook, and to those inside it.
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

// checker has the data that the rules share, for one check.
type checker struct {
	playbook.Problems

	pb      *playbook.Playbook
	tools   playbook.Tools
	options Options
	// partial says that a part of the file could not be decoded. Rules that report missing things then report
	// nothing, since these may be in that part.
	partial bool
	// workload has the keys of the playbook's workload and of Options.Workload.
	workload map[string]any
	// unclear says that a step has an unknown tool or field. A step or key that seems unused may be named there, so
	// rules about unused things report nothing about such names.
	unclear bool
	meant   map[string]bool
	vars    map[string]bool // set by steps
	placing placing
	// sql are the parsed statements; nil before they are parsed.
	sql []readStatement
	// resolved caches the name of each action's tool; "" if unknown.
	resolved map[*playbook.Action]string
	// specs caches results of Tools; nil for unknown tools.
	specs map[string]*playbook.ToolSpec
	// inner are the checkers of playbooks inside this one.
	inner []*checker
}

func newChecker(pb *playbook.Playbook, tools playbook.Tools, options Options) *checker {
	c := &checker{Problems: playbook.Problems{File: pb.File}, pb: pb, tools: tools, options: options, vars: setVariables(pb), resolved: map[*playbook.Action]string{}, specs: map[string]*playbook.ToolSpec{}}
	c.workload, _ = expression.MergeMaps(pb.Workload, options.Workload).(map[string]any)
	if c.workload == nil {
		c.workload = map[string]any{}
	}
	c.readUnknown()
	c.inner = c.innerCheckers()
	return c
}
