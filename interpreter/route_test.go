package interpreter_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// TestRouteGolden walks graphs as a run does. Each file of testdata/routes is a
// list of cases:
//
//	=== name of the case
//	workflow: …          the playbook
//	--- ends
//	a {"x": 1}           the step that ends next, with its result; `a !` fails,
//	                     `a ~` is partial_success
//	--- transcript
//	…                    written by -update
//
// Once the list is over, the steps still running end in the order they began.
func TestRouteGolden(t *testing.T) {
	t.Parallel()
	for _, file := range tables.Files(t, "routes") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			var rewritten []string
			for _, text := range strings.Split("\n"+tables.ReadText(t, file), "\n=== ")[1:] {
				head, rest, found := strings.Cut(text+"\n", "\n--- ends\n")
				require.True(t, found, "a case without ends: %s", text)
				ends, want, _ := strings.Cut(rest+"\n", "--- transcript\n")
				name, body, _ := strings.Cut(head, "\n")
				got := newWalk(t, tables.DecodeBody(t, body)).play(strings.Fields(strings.ReplaceAll(ends, " ", "\x00")))
				rewritten = append(rewritten, "=== "+head+"\n--- ends\n"+strings.TrimLeft(ends, "\n")+"--- transcript\n"+got)
				if !*tables.Update {
					require.Equal(t, strings.TrimSpace(want), strings.TrimSpace(got), name)
				}
			}
			if *tables.Update {
				require.NoError(t, os.WriteFile(file, []byte(strings.Join(rewritten, "\n")), 0o644))
			}
		})
	}
}

// walk is a run that only routes.
type walk struct {
	t       *testing.T
	book    *playbook.Playbook
	graph   *interpreter.Graph
	routing interpreter.Routing
	running []interpreter.Start
	data    map[string]any
	text    strings.Builder

	arrived, joined int // branches that came to a step, and that a start took on
	failed          bool
}

func newWalk(t *testing.T, book *playbook.Playbook) *walk {
	graph := interpreter.NewGraph(book)
	return &walk{t: t, book: book, graph: graph, routing: graph.BeginRouting(), data: map[string]any{}, arrived: 1}
}

func (w *walk) play(ends []string) string {
	w.start()
	for len(w.running) > 0 && !w.failed {
		name, data := w.running[0].Step.Name, "null"
		if len(ends) > 0 {
			name, data, _ = strings.Cut(strings.ReplaceAll(ends[0], "\x00", " "), " ")
			ends = ends[1:]
		}
		w.end(name, data)
		w.start()
	}
	require.Empty(w.t, ends, "%s", w.text.String())
	return w.text.String()
}

// carry takes the state through JSON, as continuing as new does.
func (w *walk) carry() {
	text, err := json.Marshal(w.routing)
	require.NoError(w.t, err)
	w.routing = interpreter.Routing{}
	require.NoError(w.t, json.Unmarshal(text, &w.routing))
}

// start begins what may begin and checks that it may.
func (w *walk) start() {
	if w.failed {
		return
	}
	w.carry()
	before := len(w.routing.Waiting)
	waiting := slices.Clone(w.routing.Waiting)
	for _, start := range w.graph.StartReady(&w.routing) {
		w.mayStart(start.Step, waiting)
		waiting = slices.DeleteFunc(waiting, func(a interpreter.Arrival) bool { return a.Step == start.Step.Name })
		w.running = append(w.running, start)
		fmt.Fprintf(&w.text, "  start %s#%d", start.Step.Name, start.Visit)
		if start.Args != nil {
			w.text.WriteString(" " + tables.Encode(w.t, start.Args))
		}
		w.text.WriteString("\n")
	}
	w.joined += before - len(w.routing.Waiting)
}

// mayStart checks the rule of joins by another way of reaching: no other branch
// can come to the step, unless all branches wait and this is the first in the
// file.
func (w *walk) mayStart(step *playbook.Step, waiting []interpreter.Arrival) {
	for _, other := range w.running {
		require.NotEqual(w.t, step.Name, other.Step.Name, "two visits at once\n%s", w.text.String())
		require.False(w.t, reaches(w.book, other.Step.Name, step.Name, nil),
			"%s starts although %s may still lead there\n%s", step.Name, other.Step.Name, w.text.String())
	}
	for _, other := range waiting {
		if other.Step == step.Name || !reaches(w.book, other.Step, step.Name, nil) {
			continue
		}
		require.Empty(w.t, w.running, "%s starts before %s\n%s", step.Name, other.Step, w.text.String())
		require.LessOrEqual(w.t, step.Index, w.book.Step(other.Step).Index, "not the first in the file")
	}
}

// reaches looks for a way over at least one route.
func reaches(book *playbook.Playbook, from, to string, seen []string) bool {
	for _, route := range book.Step(from).Next {
		for _, target := range route.Targets {
			if target.Step == to {
				return true
			}
			if !slices.Contains(seen, target.Step) {
				seen = append(seen, target.Step)
				if reaches(book, target.Step, to, seen) {
					return true
				}
			}
		}
	}
	return false
}

// end takes a step to its end and follows its routes.
func (w *walk) end(name, data string) {
	i := slices.IndexFunc(w.running, func(s interpreter.Start) bool { return s.Step.Name == name })
	require.GreaterOrEqual(w.t, i, 0, "%s does not run\n%s", name, w.text.String())
	start := w.running[i]
	w.running = slices.Delete(w.running, i, i+1)
	result := interpreter.CallResult{Status: interpreter.StatusSuccess}
	switch data {
	case "!":
		result.Status = interpreter.StatusError
		result.Error = &interpreter.ErrorObject{Kind: interpreter.KindHTTP, Status: 500, Message: "500"}
	case "~":
		result.Status = interpreter.Partial
	default:
		result.Data = expression.Of(tables.Value(w.t, data))
	}
	w.data[name] = result.Envelope()
	scope := interpreter.EndScope(interpreter.NewScope(w.book, tables.Run, interpreter.Data{
		Workload: expression.Of(w.book.Workload), Steps: expression.Of(w.data),
	}), start.Args, result)
	arrivals, handled, err := interpreter.NextSteps(start.Step, result.Failed(), scope, tables.NewBudget())
	fmt.Fprintf(&w.text, "end %s#%d", name, start.Visit)
	if data != "null" {
		w.text.WriteString(" " + data)
	}
	if err != nil {
		w.text.WriteString(": " + err.Error())
	}
	w.text.WriteString("\n")
	if result.Failed() && !handled || err != nil {
		w.text.WriteString("  the run fails\n")
		w.failed = true
	}
	w.arrived += len(arrivals)
	w.carry()
	w.graph.EndStep(&w.routing, start.Step, arrivals)
}
