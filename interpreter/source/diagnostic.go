package source

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reprise/interpreter/lists"
)

// Severity reports whether a playbook with the diagnostic may run.
type Severity int

// The severities: an error keeps a playbook from running, a warning does not.
const (
	Error Severity = iota
	Warning
)

// Diagnostic is one problem of a source text.
type Diagnostic struct {
	File     string
	Pos      Position
	Code     string // kebab-case, a heading of docs/reference/diagnostics.md
	Message  string // what was found and what would be accepted
	Severity Severity
	// Note is more to show below the place, such as YAML to write instead; "" for
	// nothing.
	Note string
	// Fix is a certain correction; the zero value is none.
	Fix Fix
}

// String gives "file:line:col: message [code]"; warnings say "warning: " before
// the message.
func (d Diagnostic) String() string {
	var b strings.Builder
	b.WriteString(d.File)
	if !d.Pos.IsZero() {
		b.WriteString(":" + d.Pos.String())
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if d.Severity == Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(d.Message)
	if d.Code != "" {
		b.WriteString(" [" + d.Code + "]")
	}
	return b.String()
}

// Diagnostics is every problem found in one go.
type Diagnostics []Diagnostic

// Sort orders by place, then code, then message, and drops repetitions.
func (ds *Diagnostics) Sort() {
	slices.SortStableFunc(*ds, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			a.Pos.Compare(b.Pos),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Message, b.Message),
			cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Note, b.Note),
		)
	})
	*ds = slices.Compact(*ds)
}

// Limit keeps the first n diagnostics and, where there were more, adds an error
// with the code given that says how many. Half a million problems fit into a
// file of 1 MiB, but into no message.
func (ds *Diagnostics) Limit(n int, code string) {
	if len(*ds) <= n {
		return
	}
	last := (*ds)[n-1]
	last.Severity, last.Code = Error, code
	last.Message = fmt.Sprintf("%d more problems are not shown", len(*ds)-n)
	*ds = append((*ds)[:n:n], last)
}

// FirstOf gives at most n of the diagnostics in their order, errors before warnings
// where there are more, and how many are left out.
func (ds Diagnostics) FirstOf(n int) (some Diagnostics, more int) {
	if len(ds) <= n {
		return ds, 0
	}
	errs := min(len(ds.Errors()), n)
	warnings := n - errs
	some = make(Diagnostics, 0, n)
	for _, d := range ds {
		left := &errs
		if d.Severity == Warning {
			left = &warnings
		}
		if *left > 0 {
			*left--
			some = append(some, d)
		}
	}
	return some, len(ds) - len(some)
}

// HasErrors reports whether any diagnostic is more than a warning.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
}

// Errors returns the diagnostics that keep the playbook from running.
func (ds Diagnostics) Errors() Diagnostics { return ds.onlySeverity(Error) }

// Warnings returns the diagnostics that do not keep the playbook from running.
func (ds Diagnostics) Warnings() Diagnostics { return ds.onlySeverity(Warning) }

func (ds Diagnostics) onlySeverity(severity Severity) Diagnostics {
	return lists.Filter(ds, func(d Diagnostic) bool { return d.Severity == severity })
}

// Error gives one line per diagnostic, so that Diagnostics can be returned as
// an error.
func (ds Diagnostics) Error() string {
	lines := lists.Map(ds, func(d Diagnostic) string { return d.String() })
	return strings.Join(lines, "\n")
}
