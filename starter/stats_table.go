package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/internal/stats"
)

// mostNamed bounds the runs that stats names one by one.
const mostNamed = 20

// writeStats writes figures for eyes.
func writeStats(w io.Writer, s stats.Stats) {
	for i, run := range s.Runs {
		if i == mostNamed {
			_, _ = fmt.Fprintf(w, "and %d more runs\n", len(s.Runs)-i)
			break
		}
		_, _ = fmt.Fprintf(w, "%s%s: %s, %s\n", visible(run.WorkflowID), inBrackets(visible(run.Playbook)), run.Status, roughly(run.At.Sub(run.StartedAt)))
	}
	for _, note := range s.Notes {
		_, _ = fmt.Fprintf(w, "note: %s\n", note)
	}
	_, _ = fmt.Fprintf(w, "%s in attempts, %s in waits, %s of both (%s) for rate limits\n",
		seconds(s.AttemptSeconds), seconds(s.WaitSeconds), seconds(s.LimitSeconds), stats.Percent(s.LimitShare))
	width := paperOf(w).width
	figureTable(w, s, width)
	attemptTable(w, s.Attempts, width)
	errorTables(w, s, width)
	waitTable(w, s.Waits, width)
	slowTable(w, "Slowest steps", s.SlowestSteps, len(s.Runs) > 1, width)
	slowTable(w, "Slowest iterations", s.SlowestIterations, len(s.Runs) > 1, width)
}

func inBrackets(name string) string {
	if name == "" {
		return ""
	}
	return " (" + name + ")"
}

// section writes a table with its title, as wide as a terminal at most if its elastic
// columns give that; nothing where it has no rows.
func section(w io.Writer, title string, rows table.Writer, width int, columns ...elastic) {
	if rows.Length() > 0 {
		_, _ = fmt.Fprintf(w, "\n%s\n%s\n", title, fitted(rows, width, columns...))
	}
}

func figureTable(w io.Writer, s stats.Stats, width int) {
	several := false
	for _, of := range s.Steps {
		several = several || of.Playbook != s.Steps[0].Playbook
	}
	rows := newTable("step", "items", "reliability", "success", "retried", "failed", "open", "waited")
	for _, of := range s.Steps {
		if of.Items == 0 {
			continue
		}
		name := of.Step
		if several {
			name = of.Playbook + "/" + of.Step
		}
		rows.AppendRow(table.Row{
			cell(name, 30), of.Items, rate(of.Reliability), rate(of.SuccessRate), rate(of.RetryRate),
			number(of.Failed), number(of.Open), seconds(of.WaitSeconds),
		})
	}
	section(w, "Steps", rows, width, elastic{"step", 20, snip}, elastic{"waited", 0, nil}, elastic{"step", 8, snip})
}

func attemptTable(w io.Writer, bars []stats.Bar, width int) {
	rows, all, most := newTable("attempts", "items", "share", ""), 0, 0
	for _, bar := range bars {
		all, most = all+bar.Items, max(most, bar.Items)
	}
	for _, bar := range bars {
		const longest = 40
		drawn := strings.Repeat("█", int(math.Ceil(longest*float64(bar.Items)/float64(most))))
		rows.AppendRow(table.Row{bar.Name(), bar.Items, stats.Percent(float64(bar.Items) / float64(all)), drawn})
	}
	section(w, "Attempts until success", rows, width)
}

func errorTables(w io.Writer, s stats.Stats, width int) {
	rows := newTable("class", "kind", "status", "attempts", "failed items")
	for _, of := range s.Errors {
		rows.AppendRow(table.Row{cell(string(of.Class), 20), cell(string(of.Kind), 20), number(of.Status), of.Attempts, number(of.Items)})
	}
	section(w, "Errors", rows, width, elastic{"kind", 8, snip})
	if len(s.Failures) == 0 {
		return
	}
	rows = newTable("step", "failed", "first of them", "error")
	for _, of := range s.Failures {
		rows.AppendRow(table.Row{cell(of.Step, 20), of.Items, indexList(of), oneLine(of.Message, 60)})
	}
	section(w, "Failures", rows, width, elastic{"error", 20, snip}, elastic{"first of them", 12, snip}, elastic{"step", 8, snip})
	if s.FailuresLeft > 0 {
		_, _ = fmt.Fprintf(w, "and %d more\n", s.FailuresLeft)
	}
}

func indexList(of stats.Failure) string {
	return strings.Trim(fmt.Sprint(of.Indexes), "[]")
}

func waitTable(w io.Writer, waits []stats.Waits, width int) {
	rows := newTable("reason", "waits", "time", "mean")
	for _, of := range waits {
		rows.AppendRow(table.Row{cell(of.Reason, 20), of.Waits, seconds(of.Seconds), seconds(of.Seconds / float64(of.Waits))})
	}
	section(w, "Waits", rows, width)
}

func slowTable(w io.Writer, title string, slow []stats.Slow, several bool, width int) {
	rows := newTable("what", "time", "attempts", "state")
	if several {
		rows = newTable("what", "time", "attempts", "state", "run")
	}
	for _, of := range slow {
		row := table.Row{cell(of.Name(), 40), seconds(of.Seconds), number(of.Attempts), of.Status}
		if several {
			row = append(row, cell(of.WorkflowID, 30))
		}
		rows.AppendRow(row)
	}
	section(w, title, rows, width, elastic{"run", 12, snip}, elastic{"what", 12, snip})
}

// cell is a text from data, cut to a width.
func cell(content string, width int) string { return text.Snip(oneLineOf(content), width, "…") }

func rate(share *float64) string {
	if share == nil {
		return ""
	}
	return stats.Percent(*share)
}
