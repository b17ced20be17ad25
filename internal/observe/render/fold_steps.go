package render

import (
	"fmt"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/lists"
)

const (
	// unfoldedSteps is how many rows a table of steps may have at a terminal before rows are folded, as a graph is: of more, the one
	// that needs somebody scrolls away.
	unfoldedSteps = 15
	// leastFolded is how many steps a row replaces at least.
	leastFolded = 3
)

// stepRow is a row of the table of steps: a step, or several with the same status.
type stepRow struct {
	label string
	step  runs.Step // the whole row begins and ends as this step
	of    int       // how many steps the row has
}

// foldSteps returns the rows of a run's steps. At a terminal, successive steps of a long run that have the same status share a row;
// steps that have something to say stay: those that failed, wait or run, loops, and steps that read or run something else.
func foldSteps(status *runs.Status, paper terminal.Paper) []stepRow {
	single := func(step runs.Step) stepRow { return stepRow{stepLabel(step), step, 1} }
	if !paper.IsBounded() || len(status.Steps) <= unfoldedSteps {
		return lists.Map(status.Steps, single)
	}
	var rows []stepRow
	for first, next := 0, 0; first < len(status.Steps); first = next {
		for next = first + 1; next < len(status.Steps) && isQuiet(status, first, paper) && isQuiet(status, next, paper); next++ {
			if status.Steps[next].Status != status.Steps[first].Status {
				break
			}
		}
		alike := status.Steps[first:next]
		if len(alike) < leastFolded {
			rows = append(rows, lists.Map(alike, single)...)
			continue
		}
		last := alike[len(alike)-1]
		row := stepRow{fmt.Sprintf("%s … %s (%d steps)", stepLabel(alike[0]), stepLabel(last), len(alike)), alike[0], len(alike)}
		row.step.EndedAt, row.step.Attempt = last.EndedAt, 0
		rows = append(rows, row)
	}
	return rows
}

// isQuiet reports whether the table says all about a step, besides its rows, which the run's total has too.
func isQuiet(status *runs.Status, i int, paper terminal.Paper) bool {
	step := status.Steps[i]
	switch step.Status {
	case interpreter.Completed, interpreter.Skipped, interpreter.Pending, interpreter.Cancelled:
		return step.HeldBy == "" && step.Error == nil && len(step.Iterations) == 0 &&
			len(stepDetails(step, endOf(status), status.At, paper)) == len(rowsOfStep(step))
	}
	return false
}
