package render

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/cost"
	"reprise/internal/observe/stats"
)

// shownRuns bounds the runs that stats lists by name.
const shownRuns = 20

// PrintStats prints figures as tables that fit the terminal.
func PrintStats(w io.Writer, s stats.Stats, paper terminal.Paper) {
	width := paper.Width
	line := func(format string, args ...any) {
		var b strings.Builder
		terminal.WriteWrapped(&b, fmt.Sprintf(format, args...), width)
		_, _ = io.WriteString(w, b.String())
	}
	for i, run := range s.Runs {
		if i == shownRuns {
			line("and %d more runs", len(s.Runs)-i)
			break
		}
		line("%s: %s, %s", runName(run.WorkflowID, run.Playbook), run.Status, terminal.Duration(run.At.Sub(run.StartedAt)))
	}
	for _, note := range s.Notes {
		line("note: %s", terminal.EscapeInvisible(note))
	}
	childRuns(w, s.ChildRuns)
	line("%s", workText(s))
	if s.Cost.Workflows > 0 {
		line("about %s; queries, rate limits, states and queues are not counted", CostText(s.Cost))
	}
	statsRows(w, s, width)
	figureTable(w, s, false, width)
	figureTable(w, s, true, width)
	attemptTable(w, s.Attempts, width)
	errorTables(w, s, paper)
	waitTable(w, s.Waits, width)
	slowTable(w, "Slowest steps", s.SlowestSteps, len(s.Runs)+s.ChildRuns.Runs > 1, width)
	slowTable(w, "Slowest iterations", s.SlowestIterations, len(s.Runs)+s.ChildRuns.Runs > 1, width)
}

// workText describes the total time of attempts and waits, and how much of it is due to rate limits.
func workText(s stats.Stats) string {
	said := fmt.Sprintf("%s of work in %s, %s waiting", terminal.SecondsText(s.AttemptSeconds), terminal.Count(s.AttemptsMade, "attempt"), terminal.SecondsText(s.WaitSeconds))
	if s.LimitSeconds > 0 {
		said += fmt.Sprintf("; %s (%s) because of rate limits", terminal.SecondsText(s.LimitSeconds), stats.PercentText(s.LimitShare))
	}
	return said
}

// CostText describes a cost in words.
func CostText(of cost.Cost) string {
	said := CountText(int64(of.Actions)) + " actions of Temporal Cloud"
	if of.Heartbeats > 0 {
		said += fmt.Sprintf(" (%s heartbeats)", CountText(int64(of.Heartbeats)))
	}
	return fmt.Sprintf("%s and %s of history in %s", said, humanize.Bytes(uint64(max(of.HistoryBytes, 0))), terminal.Count(of.Workflows, "workflow"))
}

// writeSection writes a table with its title; elastic columns are narrowed to fit the width. It writes nothing if the
// table is empty.
func writeSection(w io.Writer, title string, rows table.Writer, width int, columns ...terminal.Elastic) {
	if rows.Length() > 0 {
		_, _ = fmt.Fprintf(w, "\n%s\n%s\n", title, terminal.FitTable(rows, width, columns...))
	}
}

func childRuns(w io.Writer, of stats.ChildRunCounts) {
	if of.Runs > 0 {
		said := "with " + terminal.Count(of.Runs, "child run")
		if of.Running > 0 {
			said += fmt.Sprintf(", %d of them running", of.Running)
		}
		_, _ = fmt.Fprintln(w, said)
	}
	if of.Unread > 0 {
		_, _ = fmt.Fprintf(w, "note: the server has deleted %s; their figures are missing\n", terminal.Count(of.Unread, "child run"))
	}
}

// stepOf returns the name of a step, preceded by its playbook if named is set.
func stepOf(playbook, step string, named bool) string {
	if named {
		return playbook + "/" + step
	}
	return step
}

// severalPlaybooks reports whether the steps belong to more than one playbook.
func severalPlaybooks(s stats.Stats) bool {
	return slices.ContainsFunc(s.Steps, func(of stats.Figures) bool { return of.Playbook != s.Steps[0].Playbook })
}

// figureTable writes a table of steps: those of the runs, or those of their child runs.
func figureTable(w io.Writer, s stats.Stats, inChildRuns bool, width int) {
	title, several := "Steps", severalPlaybooks(s)
	if inChildRuns {
		title = "Steps of child runs"
	}
	var rows []table.Row
	for _, of := range s.Steps {
		if of.Items == 0 || of.InChildRuns != inChildRuns {
			continue
		}
		rows = append(rows, table.Row{
			terminal.OneLine(stepOf(of.Playbook, of.Step, several)), of.Items, rateText(of.Reliability), rateText(of.SuccessRate), rateText(of.RetryRate),
			terminal.NumberText(of.Failed), terminal.NumberText(of.Open), terminal.SecondsText(of.WaitSeconds),
		})
	}
	head := table.Row{"step", "items", "reliability", "success", "retried", "failed", "open", "waited"}
	writeSection(w, title, filledTable(head, rows), width, terminal.Elastic{Name: "step", Least: 20, Cut: terminal.WrapName}, terminal.Elastic{Name: "waited"},
		terminal.Elastic{Name: "retried"}, terminal.Elastic{Name: "success"}, terminal.Elastic{Name: "items"}, terminal.Elastic{Name: "open"},
		terminal.Elastic{Name: "step", Least: 8, Cut: terminal.WrapName})
}

func attemptTable(w io.Writer, bars []stats.Bar, width int) {
	rows, all, most := terminal.NewTable("attempts", "items", "share", ""), 0, 0
	for _, bar := range bars {
		all, most = all+bar.Items, max(most, bar.Items)
	}
	for _, bar := range bars {
		const widest, beside = 40, 34
		longest := float64(max(min(widest, width-beside), 1))
		drawn := strings.Repeat("█", int(math.Ceil(longest*float64(bar.Items)/float64(most))))
		rows.AppendRow(table.Row{bar.Name(), bar.Items, stats.PercentText(float64(bar.Items) / float64(all)), drawn})
	}
	writeSection(w, "Attempts until success", rows, width)
}

func errorTables(w io.Writer, s stats.Stats, paper terminal.Paper) {
	width := paper.Width
	rows := terminal.NewTable("class", "kind", "status", "attempts", "failed items")
	for _, of := range s.Errors {
		rows.AppendRow(table.Row{terminal.CellText(string(of.Class), 20), terminal.CellText(string(of.Kind), 20), terminal.NumberText(of.Status), of.Attempts, terminal.NumberText(of.Items)})
	}
	writeSection(w, "Errors", rows, width, terminal.Elastic{Name: "class"}, terminal.Elastic{Name: "attempts"}, terminal.Elastic{Name: "kind", Least: 8, Cut: terminal.SnipCell})
	if len(s.Failures) == 0 {
		return
	}
	rows = terminal.NewTable("step", "failed", "first of them", "error")
	for _, of := range s.Failures {
		rows.AppendRow(table.Row{terminal.OneLine(stepOf(of.Playbook, of.Step, of.InChildRuns)), of.Items, strings.Trim(fmt.Sprint(of.Indexes), "[]"), paper.Shorten(of.Message, 200)})
	}
	writeSection(w, "Failures", rows, width, terminal.Elastic{Name: "error", Least: 20, Cut: text.WrapSoft},
		terminal.Elastic{Name: "step", Least: 16, Cut: terminal.WrapName}, terminal.Elastic{Name: "first of them"},
		terminal.Elastic{Name: "step", Least: 8, Cut: terminal.WrapName}, terminal.Elastic{Name: "error", Least: 8, Cut: text.WrapSoft})
	if s.FailuresLeft > 0 {
		_, _ = fmt.Fprintf(w, "and %d more\n", s.FailuresLeft)
	}
}

func waitTable(w io.Writer, waits []stats.Waits, width int) {
	rows := terminal.NewTable("reason", "waits", "time", "mean")
	for _, of := range waits {
		rows.AppendRow(table.Row{terminal.CellText(of.Reason, 20), of.Waits, terminal.SecondsText(of.Seconds), terminal.SecondsText(of.Seconds / float64(of.Waits))})
	}
	writeSection(w, "Waits", rows, width, terminal.Elastic{Name: "mean"}, terminal.Elastic{Name: "reason", Least: 8, Cut: terminal.SnipCell})
}

func slowTable(w io.Writer, title string, slow []stats.Slow, several bool, width int) {
	rows := terminal.NewTable("what", "time", "attempts", "status")
	if several {
		rows = terminal.NewTable("what", "time", "attempts", "status", "run")
	}
	for _, of := range slow {
		row := table.Row{terminal.OneLine(of.Name()), terminal.SecondsText(of.Seconds), terminal.NumberText(of.Attempts), of.Status}
		if several {
			row = append(row, terminal.OneLine(of.WorkflowID))
		}
		rows.AppendRow(row)
	}
	writeSection(w, title, rows, width, terminal.Elastic{Name: "run", Least: 20, Cut: terminal.WrapName}, terminal.Elastic{Name: "what", Least: 20, Cut: terminal.WrapName},
		terminal.Elastic{Name: "attempts"}, terminal.Elastic{Name: "status"}, terminal.Elastic{Name: "run", Least: 8, Cut: terminal.WrapName},
		terminal.Elastic{Name: "what", Least: 8, Cut: terminal.WrapName})
}

func rateText(share *float64) string {
	if share == nil {
		return ""
	}
	return stats.PercentText(*share)
}
