package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/workflows"
)

// What Temporal's UI shows of a run from its start to its end. Temporal refuses
// summaries of more than 400 bytes and details of more than 20,000.
const (
	shownKeys  = 30 // of the workload
	shownKey   = 40 // runes of one of them
	shownProse = 3000
)

// staticSummary is the title of a run.
func staticSummary(book *playbook.Playbook) string { return book.Name }

// staticDetails say what a run runs, in Markdown: the playbook, the names of its
// workload's keys, never their values, and what the author says of it.
func staticDetails(book *playbook.Playbook, workload any, said string) string {
	details := workflows.Describe(book) + "\n"
	given, _ := workload.(map[string]any)
	keys := slices.Sorted(maps.Keys(expression.Merge(book.Workload, given).(map[string]any))) // Merge of maps gives a map
	if len(keys) > 0 {
		shown := make([]string, 0, shownKeys)
		for _, key := range keys[:min(len(keys), shownKeys)] {
			shown = append(shown, source.Code(key, shownKey))
		}
		details += "\nWorkload: " + strings.Join(shown, ", ")
		if more := len(keys) - shownKeys; more > 0 {
			details += fmt.Sprintf(" and %d more", more)
		}
		details += "\n"
	}
	if said != "" {
		details += "\n" + source.Prose(source.Cut(said, shownProse)) + "\n"
	}
	return details
}
