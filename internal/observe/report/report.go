// Package report writes what happened in a run as one self-contained HTML file: no script, font or picture is loaded
// from elsewhere.
package report

import (
	"cmp"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"reprise/internal/observe/render"
	"reprise/internal/observe/runs"
	"reprise/internal/observe/stats"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

const (
	// shownBoxes bounds the steps that are shown.
	shownBoxes = 300
	// shownText bounds a text from data, in characters.
	shownText = 400
)

// Document is the content of a report.
type Document struct {
	Status    *runs.Status
	Playbook  *playbook.Playbook // nil where it is not known
	Stats     stats.Stats        // of this run, with its child runs
	Timeline  *Timeline
	ChildRuns ChildRunTable
	// Graph is an SVG of the steps and their routes; "" for none.
	Graph string
	// Input and Result of the run as JSON, with secrets masked; "" for none.
	Input, Result string
	// Cause is why the run, or the first of its failed iterations, failed; nil if neither did.
	Cause *render.Cause
	// Link is the address of the run in Temporal's UI; "" if unknown.
	Link string
	// Commands are commands with which to continue.
	Commands []string
	Notes    []string
	// At is when the report was made.
	At time.Time
}

// shownGraph bounds the size of Graph, in bytes.
const shownGraph = 200 << 10

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"seconds":  func(n float64) string { return tookText(time.Duration(n * float64(time.Second))) },
	"percent":  percentText,
	"count":    render.CountText,
	"statuses": interpreter.Statuses,
	"css":      func(text string) template.CSS { return template.CSS(text) }, //nolint:gosec // of our own table
	"utc":      func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") },
	"cut":      func(text string) string { return cutText(text, shownText) },
	"indexes":  func(of []int) string { return strings.Trim(fmt.Sprint(of), "[]") },
	"slow":     func(title string, rows []stats.Slow) slow { return slow{title, rows} },
}).Parse(page))

// Write writes a report as HTML. It escapes all data; a caller that writes it to a file must also make control
// characters visible.
func Write(w io.Writer, doc Document) error {
	if err := pageTemplate.Execute(w, doc.newView()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// view is the document in the form that the template uses.
type view struct {
	Document
	Title     string
	Open      bool
	Took      string
	Tiles     []tile
	Boxes     []box
	BoxesLeft int
	Drawing   drawing
	Bars      []bar
	Picture   template.URL // of the graph
	// Tables shows what the run did to data by table, and RowsBySteps by step. RowsInChildRuns shows the part that
	// child runs did, which the steps that started them include.
	Tables, RowsBySteps, RowsInChildRuns rowTable
	Marks                                []string // of steps that keep a state
}

// WarningLines are the warnings of the run; those of iterations that differ in nothing else are one line.
func (v view) WarningLines() []string { return render.GroupWarnings(v.Status.Warnings) }

// rowTable is a titled table of row counts.
type rowTable struct {
	Title, By string
	Lines     []render.RowLine
}

// slow is a titled table of what took longest.
type slow struct {
	Title string
	Rows  []stats.Slow
}

type tile struct {
	Name, Value string
	State       interpreter.Status
}

// box is a step.
type box struct {
	Name, Tool string
	State      interpreter.Status // in whose colour it is drawn
	Word       string             // for the status, or for what holds it
	Facts      []string
	Error      string
	Routes     []route
}

type route struct{ When, To string }

type bar struct {
	Name  string
	Items int
	Share *float64
	Width float64
}

func (doc Document) newView() view {
	v := view{Document: doc, Title: doc.Status.WorkflowID, Open: !doc.Status.Ended(), Drawing: doc.Timeline.drawTimeline()}
	end := doc.Status.EndedAt
	if v.Open {
		end = doc.At
	}
	v.Took = tookText(end.Sub(doc.Status.StartedAt))
	v.addTiles()
	v.addBoxes()
	v.addBars()
	v.addRows()
	if doc.Graph != "" && len(doc.Graph) <= shownGraph {
		v.Picture = template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(doc.Graph))) //nolint:gosec // a picture runs nothing
	}
	return v
}

func (v *view) addTiles() {
	add := func(name, value string) *tile {
		v.Tiles = append(v.Tiles, tile{Name: name, Value: value})
		return &v.Tiles[len(v.Tiles)-1]
	}
	add("status", render.StateWord(v.Status.Status, v.Status.HeldBy)).State = render.StateColour(v.Status.Status, v.Status.HeldBy)
	add("time", v.Took)
	v.itemTiles(false)
	if children := v.Stats.ChildRuns; children.Runs > 0 {
		add("child runs", fmt.Sprint(children.Runs))
		v.itemTiles(true)
	}
	add("attempts", fmt.Sprint(v.Stats.AttemptsMade))
	if totals := v.Stats.Rows.Totals(); totals != (interpreter.RowTotals{}) {
		add("rows read", cmp.Or(render.CountText(totals.Read), "0"))
		add("rows written", cmp.Or(render.CountText(totals.Written), "0"))
		if totals.Deleted > 0 {
			add("rows deleted", render.CountText(totals.Deleted))
		}
		if totals.Rejected > 0 {
			add("rows rejected", render.CountText(totals.Rejected)).State = interpreter.Partial
		}
	}
	add("in attempts", tookText(time.Duration(v.Stats.AttemptSeconds*float64(time.Second))))
	add("in waits", tookText(time.Duration(v.Stats.WaitSeconds*float64(time.Second))))
	add("of both for rate limits", percentText(&v.Stats.LimitShare))
	if of := v.Stats.Cost; of.Workflows > 0 {
		add("actions of Temporal Cloud, about", render.CountText(int64(of.Actions)))
		add("history", humanize.Bytes(uint64(max(of.HistoryBytes, 0))))
	}
}

// itemTiles adds the tiles for the items of the run, or of its child runs.
func (v *view) itemTiles(inChildRuns bool) {
	items, failures, retries, where := 0, 0, 0, ""
	for _, of := range v.Stats.Steps {
		if of.InChildRuns == inChildRuns {
			items, failures, retries = items+of.Items, failures+of.Failed, retries+of.Retries
		}
	}
	if inChildRuns {
		where = " in child runs"
	}
	failed := tile{Name: "failed" + where, Value: fmt.Sprint(failures)}
	if failures > 0 {
		failed.State = interpreter.Failed
	}
	v.Tiles = append(v.Tiles, tile{Name: "iterations and calls" + where, Value: fmt.Sprint(items)}, failed,
		tile{Name: "retries" + where, Value: fmt.Sprint(retries)})
}

// addRows adds row counts and watermarks.
func (v *view) addRows() {
	v.Tables = rowTable{Title: "Tables", By: "table", Lines: render.RowLines("", v.Stats.Rows)}
	v.RowsBySteps, v.RowsInChildRuns = rowTable{Title: "Rows by step", By: "step"}, rowTable{Title: "Rows by step of child runs", By: "step"}
	for _, of := range v.Stats.Steps {
		into, name := &v.RowsBySteps, of.Step
		if of.InChildRuns {
			into, name = &v.RowsInChildRuns, of.Playbook+"/"+of.Step
		}
		into.Lines = append(into.Lines, render.RowLines(name, of.Rows)...)
	}
	for _, mark := range v.Stats.Watermarks {
		name := mark.Step
		if mark.InChildRuns {
			name = mark.Playbook + "/" + name
		}
		v.Marks = append(v.Marks, name+": "+render.MarkText(mark))
	}
}

// addBoxes adds the steps, in the order of the playbook if it is known, else in the order in which they ran.
func (v *view) addBoxes() {
	if v.Playbook == nil {
		for _, name := range v.Status.Names() {
			v.Boxes = append(v.Boxes, v.stepBox(name))
		}
	} else {
		for _, step := range v.Playbook.Steps {
			drawn := v.stepBox(step.Name)
			if step.Action != nil {
				drawn.Tool, _ = step.Action.ToolName()
			}
			drawn.Routes = routesOf(step)
			v.Boxes = append(v.Boxes, drawn)
		}
	}
	if v.BoxesLeft = max(0, len(v.Boxes)-shownBoxes); v.BoxesLeft > 0 {
		v.Boxes = v.Boxes[:shownBoxes]
	}
}

func (v *view) stepBox(name string) box {
	drawn := box{Name: name, State: interpreter.Pending, Word: interpreter.Pending.DisplayWord()}
	visits := v.Status.Visits(name)
	if len(visits) == 0 {
		if len(v.Status.Steps) > 0 && !v.Open {
			drawn.State, drawn.Word = interpreter.Skipped, interpreter.Skipped.DisplayWord()
		}
		return drawn
	}
	last := visits[len(visits)-1]
	drawn.State, drawn.Word = render.StateColour(last.Status, last.HeldBy), render.StateWord(last.Status, last.HeldBy)
	drawn.Facts = v.stepFacts(last, len(visits))
	if last.Error != nil {
		drawn.Error = last.Error.Message
	}
	return drawn
}

// stepFacts lists what is known of a step from its last visit.
func (v *view) stepFacts(last *runs.Step, visits int) (facts []string) {
	fact := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	if visits > 1 {
		fact("%d visits", visits)
	}
	if !last.StartedAt.IsZero() && !last.EndedAt.IsZero() {
		fact("%s", tookText(last.EndedAt.Sub(last.StartedAt)))
	}
	switch loop := last.Loop; {
	case loop != nil:
		fact("%d of %d iterations", loop.Success, loop.Total)
		if loop.Failed > 0 {
			fact("%d failed", loop.Failed)
		}
		if loop.Waiting > 0 {
			fact("%d waiting", loop.Waiting)
		}
	case last.Attempt > 1:
		fact("%d attempts", last.Attempt)
	}
	if last.Handled {
		fact("a route took the failure")
	}
	if last.Waiting != "" {
		fact("%s", cutText(last.Waiting, shownText))
	}
	if !last.NextRetryAt.IsZero() && v.Open {
		fact("next attempt at %s", last.NextRetryAt.UTC().Format("15:04:05 UTC"))
	}
	return facts
}

// routesOf returns the routes of a step.
func routesOf(step *playbook.Step) []route {
	var all []route
	for _, of := range step.Next {
		drawn := route{}
		if of.When != nil {
			drawn.When = "when " + of.When.Raw
		} else if of.Else {
			drawn.When = "else"
		}
		names := lists.Map(of.Targets, func(target *playbook.Target) string { return target.Step })
		drawn.To = strings.Join(names, ", ")
		all = append(all, drawn)
	}
	return all
}

func (v *view) addBars() {
	most, all := 0, 0
	for _, of := range v.Stats.Attempts {
		most, all = max(most, of.Items), all+of.Items
	}
	for _, of := range v.Stats.Attempts {
		share := float64(of.Items) / float64(all)
		v.Bars = append(v.Bars, bar{
			Name: of.Name(), Items: of.Items, Share: &share, Width: max(1, 300*float64(of.Items)/float64(most)),
		})
	}
}

func percentText(share *float64) string {
	if share == nil {
		return ""
	}
	return stats.PercentText(*share)
}
