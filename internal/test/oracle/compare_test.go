package oracle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// disagreements are the differences between what was predicted and what came.
type disagreements []string

func (d *disagreements) say(format string, args ...any) {
	*d = append(*d, fmt.Sprintf(format, args...))
}

// refused says that the playbook was not run at all: the generator made one that is not valid.
func (d *disagreements) refused() bool {
	return slices.ContainsFunc(*d, func(each string) bool {
		return strings.Contains(each, "is not valid") || strings.Contains(each, "refused the playbook") || strings.Contains(each, "invalid_playbook")
	})
}

// equal compares two values as JSON.
func (d *disagreements) equal(what string, predicted, came any) {
	if f, c := canonical(predicted), canonical(came); f != c {
		d.say("%s:\n  predicted %s\n  came     %s", what, f, c)
	}
}

// compare gives the differences.
func (r *round) compare(t *testing.T, f ran, o *oracle, c came) disagreements {
	t.Helper()
	var d disagreements
	o.crowded = o.crowded || r.real
	o.torn = o.torn || r.real && f.failure != nil && r.book.branches()
	if c.result.Error != nil && c.result.Error.Kind == "" {
		d.say("the playbook is not valid: %s", c.result.Error.Message)
		return d
	}
	if c.err != nil {
		d.say("the run gave no result: %v", c.err)
		return d
	}
	d.equal("status", f.status, string(c.result.Status))
	if f.failure != nil && !o.torn {
		if c.result.Error == nil {
			d.say("no error came, predicted was %s", canonical(f.failure.object()))
		} else {
			d.equal("error", normal(f.failure.object()), value(t, c.result.Error))
		}
	} else if f.failure == nil {
		d.equal("result", normal(f.result), value(t, c.result.Result))
	}
	d.requests(o, c)
	d.keys(o, c)
	d.sinks(r, o, c)
	d.records(f, o, c)
	d.warnings(o, c)
	d.events(o, c)
	if *verboseFlag && len(d) > 0 {
		d.details(o, c)
	}
	return d
}

// details adds what was predicted and what came of requests, events and the result.
func (d *disagreements) details(o *oracle, c came) {
	_, predicted := byPath(o.log)
	_, real := byPath(c.log)
	for _, path := range slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(slices.Collect(mapKeys(predicted)), mapKeys(real))))) {
		d.say("%s:\n%s", path, side(predicted[path], real[path]))
	}
	d.say("events: %v\nresult: %s", c.events, canonical(c.result))
}

// byPath are requests by what they are of: a step and an element, or a sink and an element.
func byPath(all []made) (paths []string, of map[string][]made) {
	of = map[string][]made{}
	for _, m := range all {
		if of[m.path] == nil {
			paths = append(paths, m.path)
		}
		of[m.path] = append(of[m.path], m)
	}
	slices.Sort(paths)
	return paths, of
}

func (m made) line() string {
	return fmt.Sprintf("%s %s?%s %s %s", m.method, m.path, m.query, m.body, m.headers)
}

// requests compares which were made, in which order, and when.
func (d *disagreements) requests(o *oracle, c came) {
	slices.SortStableFunc(o.log, func(a, b made) int { return int(a.at - b.at) })
	paths, predicted := byPath(o.log)
	others, real := byPath(c.log)
	paths = slices.Compact(slices.Sorted(slices.Values(append(paths, others...))))
	for _, path := range paths {
		f, came := predicted[path], real[path]
		for len(f) > len(came) && f[len(f)-1].open {
			f = f[:len(f)-1]
		}
		if o.torn { // which branch came how far is up to the machine, on a server; else at the very time of the failure
			d.begun(path, f, came, o.round.real, o.crowded)
			continue
		}
		if len(f) != len(came) {
			d.say("%s: %d requests were predicted, %d came:\n%s", path, len(f), len(came), side(f, came))
			continue
		}
		for i := range f {
			if f[i].line() != came[i].line() || !o.crowded && f[i].at != came[i].at {
				d.say("%s: request %d is another one:\n%s", path, i+1, side(f, came))
				break
			}
			if o.crowded && i > 0 && f[i].call == f[i-1].call && came[i].at-came[i-1].at < f[i].at-f[i-1].at {
				d.say("%s: request %d came too early:\n%s", path, i+1, side(f, came))
				break
			}
		}
	}
}

// begun compares what was made before a failure cut it off.
func (d *disagreements) begun(path string, f, came []made, real, crowded bool) {
	for i := range min(len(f), len(came)) {
		if f[i].open || real {
			return
		}
		if f[i].line() != came[i].line() || !crowded && f[i].at != came[i].at {
			d.say("%s: request %d is another one:\n%s", path, i+1, side(f, came))
			return
		}
	}
}

func short(text string) string {
	if len(text) > 60 && !*verboseFlag {
		return text[:60] + "…"
	}
	return text
}

func side(predicted, came []made) string {
	var b strings.Builder
	for i := range max(len(predicted), len(came)) {
		for _, each := range []struct {
			word string
			all  []made
		}{{"predicted", predicted}, {"came    ", came}} {
			if i < len(each.all) {
				fmt.Fprintf(&b, "  %d %s %8s %s -> %s\n", i+1, each.word, each.all[i].at, each.all[i].line(), short(each.all[i].said))
			}
		}
	}
	return b.String()
}

// keys compares which requests have the same key, and which have others.
func (d *disagreements) keys(o *oracle, c came) {
	_, predicted := byPath(o.log)
	_, real := byPath(c.log)
	of, stands := map[string]string{}, map[string]string{}
	for path, f := range predicted {
		for i := range min(len(f), len(real[path])) {
			key, id := real[path][i].key, f[i].key
			if strings.Count(id, " step ") > 1 && !c.apart {
				continue // in the test environment runs below share an ID, or do not
			}
			if (key == "") != (id == "") {
				d.say("%s: request %d has the key %q, predicted was %q", path, i+1, key, id)
				continue
			}
			if was, known := of[id]; known && was != key {
				d.say("%s: request %d has another key than one before, of %q", path, i+1, id)
			}
			if was, known := stands[key]; known && was != id {
				d.say("%s: request %d has the key of another request: %q and %q", path, i+1, was, id)
			}
			of[id], stands[key] = key, id
		}
	}
}

// sinks compares what files hold.
func (d *disagreements) sinks(r *round, o *oracle, c came) {
	names := map[string]bool{}
	for n := range o.files {
		names[n] = true
	}
	for n := range c.files {
		names[n] = true
	}
	for _, n := range slices.Sorted(mapKeys(names)) {
		f, came := slices.Clone(o.files[n]), slices.Clone(c.files[n])
		if r.sideBySide() {
			slices.Sort(f)
			slices.Sort(came)
		}
		if o.torn {
			continue
		}
		d.equal("rows of "+n, f, came)
	}
}

// sideBySide says that some of what the playbook does goes on at once.
func (r *round) sideBySide() bool {
	return r.book.sideBySide()
}

func (g *graph) sideBySide() bool {
	for _, s := range g.steps {
		if s.loop != nil && s.loop.parallel || len(s.next) > 1 || s.below != nil && s.below.sideBySide() {
			return true
		}
	}
	return false
}

// branches says that steps go side by side.
func (g *graph) branches() bool {
	for _, s := range g.steps {
		n := 0
		for _, e := range s.next {
			n += len(e.targets)
		}
		if n > 1 {
			return true
		}
	}
	return false
}

// records compares the statuses of steps, and the figures of loops.
func (d *disagreements) records(f ran, o *oracle, c came) {
	if o.torn {
		return
	}
	var predicted, real []string
	for _, r := range f.records {
		if r.status == "skipped" {
			continue
		}
		predicted = append(predicted, fmt.Sprintf("%s#%d %s attempts %d %s", r.step, r.visit, r.status, r.attempts, canonical(r.loop)))
	}
	for _, r := range c.result.Steps {
		if r.Status == "skipped" {
			continue
		}
		var loop any
		attempts := r.Attempts
		if r.Loop != nil {
			s := r.Loop.Stats
			loop = map[string]any{
				"total": s.Total, "success": s.Success, "failed": s.Failed, "truncated": s.Truncated, "cancelled": s.Cancelled,
			}
			attempts = 0
		}
		real = append(real, fmt.Sprintf("%s#%d %s attempts %d %s", r.Step, r.Visit, r.Status, attempts, canonical(loop)))
	}
	slices.Sort(predicted)
	slices.Sort(real)
	d.equal("steps", predicted, real)
}

// warnings looks for the figures that warnings have to have.
func (d *disagreements) warnings(o *oracle, c came) {
	for _, figures := range o.figures {
		if o.torn {
			break
		}
		if !slices.ContainsFunc(c.result.Warnings, func(warning string) bool {
			return !slices.ContainsFunc(figures, func(word string) bool { return !strings.Contains(warning, word) })
		}) {
			d.say("no warning says %q:\n  %s", figures, strings.Join(c.result.Warnings, "\n  "))
		}
	}
}
