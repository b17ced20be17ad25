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

// The severities. A playbook with an error cannot run, one with only warnings can.
const (
	Error Severity = iota
	Warning
)

// Diagnostic is one problem in a source text.
type Diagnostic struct {
	File     string
	Pos      Position
	Code     string // kebab-case, a heading of docs/reference/diagnostics.md
	Message  string // what was found, and what would be accepted
	Severity Severity
	// Note is additional text below the snippet, such as YAML to write instead; "" for none.
	Note string
	// Fix is the only possible correction; the zero value is none.
	Fix Fix
}

// String returns "file:line:col: message [code]"; warnings have "warning: " before the message.
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

// Diagnostics has all problems of a source text.
type Diagnostics []Diagnostic

// Sort sorts by position, then code, then message, and removes duplicates.
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

// Limit keeps the first n diagnostics; if there are more, it adds an error with the given code and their number. A
// file of 1 MiB can have half a million problems, which no message can hold.
func (ds *Diagnostics) Limit(n int, code string) {
	if len(*ds) <= n {
		return
	}
	last := (*ds)[n-1]
	last.Severity, last.Code = Error, code
	last.Message = fmt.Sprintf("%d more problems are not shown", len(*ds)-n)
	*ds = append((*ds)[:n:n], last)
}

// FirstOf returns at most n of the diagnostics in order, preferring errors to warnings, and how many are left out.
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

// HasErrors reports whether any diagnostic is an error.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == Error })
}

// Errors returns the diagnostics that are errors.
func (ds Diagnostics) Errors() Diagnostics { return ds.onlySeverity(Error) }

// Warnings returns the diagnostics that are warnings.
func (ds Diagnostics) Warnings() Diagnostics { return ds.onlySeverity(Warning) }

func (ds Diagnostics) onlySeverity(severity Severity) Diagnostics {
	return lists.Filter(ds, func(d Diagnostic) bool { return d.Severity == severity })
}

// Error returns one line per diagnostic, so that Diagnostics can be returned as an error.
func (ds Diagnostics) Error() string {
	lines := lists.Map(ds, func(d Diagnostic) string { return d.String() })
	return strings.Join(lines, "\n")
}
