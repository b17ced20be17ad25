package author

import (
	"fmt"
	"strconv"
	"strings"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/cost"
	"reprise/internal/observe/render"
	"reprise/interpreter/playbook"
	"reprise/starter/cli"
)

// mostAssumed bounds each number of --cost: the product of three stays exact.
const mostAssumed = 1_000_000

// forecast is an estimate in the output of `validate --output json`.
type forecast struct {
	File     string `json:"file"`
	Elements int    `json:"elements"`
	Pages    int    `json:"pages"`
	Attempts int    `json:"attempts"`
	cost.Forecast
}

// parseCost reads the value of --cost: a number of elements, or NAME=N,…. It returns nil for "".
func parseCost(text string) (*cost.Assumption, error) {
	if text == "" {
		return nil, nil
	}
	a := &cost.Assumption{Elements: 100, Pages: 1, Attempts: 1}
	numbers := map[string]*int{"elements": &a.Elements, "pages": &a.Pages, "attempts": &a.Attempts}
	for part := range strings.SplitSeq(text, ",") {
		name, value, named := strings.Cut(strings.TrimSpace(part), "=")
		if !named {
			name, value = "elements", name
		}
		number, known := numbers[name]
		if !known {
			return nil, cli.UsageError("--cost %s: %q is unknown; use elements, pages or attempts, such as --cost elements=1000,pages=20", text, name)
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > mostAssumed {
			return nil, cli.UsageError("--cost %s: %s is %q, expected a number from 1 to %d", text, name, value, mostAssumed)
		}
		*number = n
	}
	return a, nil
}

// foretell adds what a run of a valid playbook would cost, and prints it for people.
func (v *validator) foretell(name string, book *playbook.Playbook) {
	a := v.options.assumed
	if a == nil {
		return
	}
	f := cost.Foretell(book, *a)
	v.result.Costs = append(v.result.Costs, forecast{File: name, Elements: a.Elements, Pages: a.Pages, Attempts: a.Attempts, Forecast: f})
	if !v.options.forPeople() {
		return
	}
	_, _ = fmt.Fprintf(v.app.Out, "%s: about %s, for %s of each loop, %s and %s of each call\n", name, render.CostText(f.Cost),
		terminal.Count(a.Elements, "element"), terminal.Count(a.Pages, "page"), terminal.Count(a.Attempts, "attempt"))
	for _, step := range f.Steps {
		_, _ = fmt.Fprintf(v.app.Out, "  %s: %s\n", step.Step, terminal.Count(step.Actions, "action"))
	}
	for _, note := range f.Notes {
		_, _ = fmt.Fprintf(v.app.Out, "  note: %s\n", note)
	}
}
