package graph

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
	"reprise/playbooks"
)

var update = flag.Bool("update", false, "rewrite the expected files")

var formats = map[string]func(*Diagram) string{"text": (*Diagram).Text, "mermaid": (*Diagram).Mermaid, "dot": (*Diagram).DOT, "svg": (*Diagram).SVG}

// localBegan is when runs begin here: pictures have times of day.
var localBegan = time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)

// TestGoldenGraphs draws every example in every format.
func TestGoldenGraphs(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(playbooks.FS, "*.yaml")
	require.NoError(t, err)
	for _, name := range names {
		text, err := fs.ReadFile(playbooks.FS, name)
		require.NoError(t, err)
		files := check.NewFiles(func(name string) ([]byte, error) { return fs.ReadFile(playbooks.FS, name) })
		book, found := check.Validate(source.NewFile(name, text), activities.DefaultCatalogue(), check.Options{Files: files})
		require.False(t, found.HasErrors(), "%v", found)
		for format, draw := range formats {
			testenv.Golden(t, *update, name+"."+format, draw(New(book, nil, &Children{Files: files.Texts()})))
		}
	}
}

// runBook has all that a graph can show.
const runBook = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: patients}
workload: {ids: [1, 2]}
workflow:
  - step: start
    next: [token, list]
  - step: token
    tool: http
    url: http://x/token
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 5}}]
    next: fetch
  - step: list
    tool: http
    url: http://x/list
    next: [{when: "{{ result.again }}", step: list}, {when: "{{ error is defined }}", step: tell}, {else: fetch}]
  - step: fetch
    tool: http
    url: http://x/{{ id }}
    loop: {collection: "{{ ids }}", element: id, mode: parallel, max_concurrency: 20, dead_letter: {sink: {tool: file, path: dead.jsonl}}}
    retry:
      - when: "{{ response.more }}"
        then: {max_attempts: 9, next_call: {params: {p: 2}}, collect: {strategy: append, path: data}, sink: {tool: postgres, table: rows, key: id, auth: pg}}
    sink: {tool: file, path: "{{ execution_id }}.jsonl"}
  - step: tell
    tool: http
    url: http://x/tell
    next: start
`

func bookFrom(t *testing.T, text string) *playbook.Playbook {
	t.Helper()
	book, found := check.Validate(source.NewFile("x.yaml", []byte(text)), activities.DefaultCatalogue(), check.Options{})
	require.False(t, found.HasErrors(), "%v", found)
	return book
}

// runGraph is a run with a step in each of many states.
func runGraph(t *testing.T) *Diagram {
	t.Helper()
	now := localBegan.Add(time.Minute)
	item := func(state interpreter.Status) runs.Item { return runs.Item{Status: state} }
	return New(bookFrom(t, runBook), &runs.Status{
		Found: runs.Found{WorkflowID: "patients-7x2k", Playbook: "patients", Status: interpreter.Running, StartedAt: localBegan}, At: now,
		Steps: []runs.Step{
			{Step: "start", Visit: 1, Item: item(interpreter.Failed)},
			{Step: "start", Visit: 2, Item: item(interpreter.Completed)},
			{Step: "token", Visit: 2, Item: runs.Item{
				Status: interpreter.RetryPending, Attempt: 2, MaxAttempts: 5, NextRetryAt: now.Add(4 * time.Second),
			}},
			{Step: "list", Visit: 1, Item: runs.Item{
				Status: interpreter.RetryPending, Attempt: 1, MaxAttempts: 2, NextRetryAt: now.Add(48 * time.Hour),
			}},
			{Step: "fetch", Visit: 1, Item: item(interpreter.Running), Loop: &runs.Counts{
				Total: 1000, Success: 470, Failed: 2, Waiting: 8, Running: 20, Pending: 500, PerSecond: 3, Left: 100,
			}},
			{Step: "tell", Item: item(interpreter.Pending)},
		},
	}, nil)
}

func TestGoldenGraphOfARun(t *testing.T) {
	t.Parallel()
	for format, draw := range formats {
		testenv.Golden(t, *update, "run."+format, draw(runGraph(t)))
	}
}

// TestGraphOfWhatIsHeld: what does not continue by itself has the word that lists and tables have for it.
func TestGraphOfWhatIsHeld(t *testing.T) {
	t.Parallel()
	status := &runs.Status{
		Found: runs.Found{WorkflowID: "patients-7x2k", Status: interpreter.RetryPending, HeldBy: runs.HeldByPerson, StartedAt: localBegan}, At: localBegan,
		Steps: []runs.Step{
			{Step: "start", Visit: 1, Item: runs.Item{Status: interpreter.RetryPending, HeldBy: runs.HeldByPerson, Attempt: 2, MaxAttempts: 2}},
			{Step: "token", Visit: 1, Item: runs.Item{Status: interpreter.Awaiting, HeldBy: runs.HeldByAnswer, Attempt: 1}},
			{Step: "list", Visit: 1, Item: runs.Item{Status: interpreter.RetryPending, HeldBy: runs.HeldByWait, Attempt: 1}},
		},
	}
	drawn := New(bookFrom(t, runBook), status, nil)
	text := drawn.Text()
	for _, want := range []string{"patients-7x2k (patients): needs a person\n", "[needs a person, attempt 2 of 2]", "[awaiting an answer, attempt 1]", "[waiting to retry, attempt 1]"} {
		require.Contains(t, text, want)
	}
	require.Contains(t, drawn.SVG(), "needs a person</text>")
	require.Contains(t, drawn.Mermaid(), "class n1,n2 awaiting", "in one colour, as both need somebody")
	status.HeldBy, status.Steps = runs.HeldByNoWorker, nil
	require.Contains(t, New(bookFrom(t, runBook), status, nil).Text(), "patients-7x2k (patients): no worker\n")
}

// nestedBook runs playbooks within playbooks.
const nestedBook = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: outer}
workflow:
  - step: each
    tool: playbook
    loop: {in: [1, 2], iterator: n}
    workload: {n: "{{ n }}"}
    workflow:
      - {step: alpha, tool: python, code: "def main(): return 1", next: beta}
      - step: beta
        tool: playbook
        workflow:
          - {step: deep, tool: python, code: "def main(): return 1"}
    next: [{when: "{{ error is defined }}", step: file}, {else: again}]
  - {step: file, tool: playbook, path: parts/more.yaml, next: again}
  - {step: again, tool: playbook, path: parts/more.yaml, sink: {tool: file, path: rows.jsonl}}
`

// nestedFile runs itself.
const nestedFile = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: more}
workflow:
  - {step: begin, next: [{when: "{{ 1 > 2 }}", step: itself}, {else: stop}]}
  - {step: itself, tool: playbook, path: more.yaml}
  - {step: stop, tool: python, code: "def main(): return 1"}
`

// nestedGraph is a run that goes on: one of its steps waits for a run of its own.
func nestedGraph(t *testing.T) *Diagram {
	t.Helper()
	book, inner := bookFrom(t, nestedBook), bookFrom(t, nestedFile)
	of := func(id string, steps ...runs.Step) *runs.Status {
		return &runs.Status{Found: runs.Found{WorkflowID: id, Status: interpreter.Running, StartedAt: localBegan}, At: localBegan, Steps: steps}
	}
	return New(book, of("outer-7x2k",
		runs.Step{Step: "each", Visit: 1, Item: runs.Item{Status: interpreter.Completed}, Loop: &runs.Counts{Total: 2, Success: 2}},
		runs.Step{Step: "again", Visit: 1, Item: runs.Item{Status: interpreter.Running, Attempt: 1}, Child: "outer-7x2k/again#1!1"},
	), &Children{Files: map[string]string{"parts/more.yaml": nestedFile}, Run: func(id string) (*playbook.Playbook, *runs.Status) {
		return inner, of(id, runs.Step{Step: "begin", Visit: 1, Item: runs.Item{Status: interpreter.Completed}},
			runs.Step{Step: "stop", Visit: 1, Item: runs.Item{Status: interpreter.RetryPending, Attempt: 2, MaxAttempts: 5}})
	}})
}

// TestPagesAreNoAttempts: a step that has fetched pages has their number, and none of attempts.
func TestPagesAreNoAttempts(t *testing.T) {
	t.Parallel()
	step := runs.Step{Step: "list", Visit: 1, Item: runs.Item{Status: interpreter.Completed, Attempt: 12, Pages: 12}}
	require.Equal(t, []string{"12 pages"}, stateText(step, localBegan))
	step.Pages = 1
	require.NotContains(t, strings.Join(stateText(step, localBegan), " "), "page")
}

// TestGoldenNestedGraphs draws playbooks into the steps that run them.
func TestGoldenNestedGraphs(t *testing.T) {
	t.Parallel()
	for format, draw := range formats {
		testenv.Golden(t, *update, "nested."+format, draw(nestedGraph(t)))
	}
}

// TestGraphsDoNotNestWithoutEnd: so many playbooks are drawn and no more.
func TestGraphsDoNotNestWithoutEnd(t *testing.T) {
	t.Parallel()
	steps := ""
	for i := range 2 * mostInner {
		steps += fmt.Sprintf("  - {step: s%d, next: s%d, tool: playbook, workflow: [{step: inner, tool: python, code: \"def main(): return 1\"}]}\n", i, i+1)
	}
	book := bookFrom(t, "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: many}\nworkflow:\n"+
		steps+fmt.Sprintf("  - {step: s%d, tool: python, code: \"def main(): return 1\"}\n", 2*mostInner))
	asked := 0
	text := New(book, nil, &Children{Run: func(string) (*playbook.Playbook, *runs.Status) { asked++; return nil, nil }}).Text()
	require.Equal(t, mostInner, strings.Count(text, "runs many.s"))
	require.Zero(t, asked)
}

// hostile means something in every format.
const hostile = "a\"b'c<script>alert(1)</script>&amp;&lt;]]>\\n\\\"--> |x| `y` **z** #quot; %% {{ ; end\n\x1b[31m\u202e"

// hostileGraph has that text wherever a playbook can put one.
func hostileGraph() *Diagram {
	return &Diagram{title: hostile, steps: []*node{
		{
			name: "one", tool: hostile, loop: hostile, state: interpreter.Failed, word: "failed", details: []string{hostile},
			routes: []edge{{to: "two", label: hostile}, {to: "one", label: hostile}, {to: "one"}},
			sinks:  []sinkNode{{target: hostile, when: "result"}},
			inner:  &Diagram{title: hostile, steps: []*node{{name: "one", tool: hostile, state: interpreter.Running, word: "running", details: []string{hostile}}}},
		},
		{name: "two", from: []string{"one"}, routes: []edge{{to: "one"}}},
	}}
}

// TestHostileTextsStayTexts: whatever a playbook or an answer says is shown, and
// nothing of it is obeyed.
func TestHostileTextsStayTexts(t *testing.T) {
	t.Parallel()
	g := hostileGraph()
	for format, draw := range formats {
		text := draw(g)
		require.NotContains(t, text, "\x1b", format)
		require.NotContains(t, text, "\u202e", format)
		if format != "text" && format != "dot" {
			require.NotContains(t, text, "<script", format)
		}
	}
	var texts []string
	decoder := xml.NewDecoder(strings.NewReader(g.SVG()))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if start, isStart := token.(xml.StartElement); isStart {
			require.Contains(t, []string{"svg", "title", "style", "defs", "marker", "path", "rect", "g", "text"}, start.Name.Local)
		}
		if text, isText := token.(xml.CharData); isText {
			texts = append(texts, string(text))
		}
	}
	require.Contains(t, texts, terminal.OneLine(hostile))

	quoted := regexp.MustCompile(`"[^"<>]*(<br/>[^"<>]*)*"`)
	for line := range strings.Lines(g.Mermaid()) {
		if strings.HasPrefix(line, "title:") {
			continue
		}
		require.NotContains(t, quoted.ReplaceAllString(line, ""), "alert", line)
	}
	inQuotes := regexp.MustCompile(`"(\\.|[^"\\])*"`)
	require.NotContains(t, inQuotes.ReplaceAllString(g.DOT(), ""), "alert")
}

// TestLayoutLeavesRoom: boxes do not lie over each other, and lines lead from box
// to box.
func TestLayoutLeavesRoom(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]*Diagram{"run": runGraph(t), "hostile": hostileGraph(), "none": {}} {
		p := g.newPicture()
		width, height := p.placeAll()
		for i, a := range p.boxes {
			require.GreaterOrEqual(t, a.x-a.width/2, -0.1, name)
			require.LessOrEqual(t, a.x+a.width/2, width+0.1, name)
			require.LessOrEqual(t, a.y+a.height/2, height+0.1, name)
			for _, b := range p.boxes[i+1:] {
				apart := a.x+a.width/2 <= b.x-b.width/2 || b.x+b.width/2 <= a.x-a.width/2 ||
					a.y+a.height/2 <= b.y-b.height/2 || b.y+b.height/2 <= a.y-a.height/2
				require.True(t, apart, "%s: %v over %v", name, a.lines, b.lines)
			}
		}
	}
}

// TestARouteToNowhere: a playbook that validation refuses is drawn without the route.
func TestARouteToNowhere(t *testing.T) {
	t.Parallel()
	book, _ := playbook.Decode(source.NewFile("book.yaml", []byte(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: broken}
workflow: [{step: begin, vars: {a: 1}, next: [nowhere, end]}, {step: end, vars: {a: 1}}]
`)))
	drawn := New(book, nil, &Children{})
	require.Equal(t, []edge{{to: "end"}}, drawn.steps[0].routes)
	for _, picture := range []string{drawn.SVG(), drawn.Text(), drawn.DOT(), drawn.Mermaid()} {
		require.NotContains(t, picture, "nowhere")
		require.Contains(t, picture, "end")
	}
}

// TestLargeGraphs: as many steps as a playbook may well have, all leading on to many.
func TestLargeGraphs(t *testing.T) {
	t.Parallel()
	const n = 300
	g := &Diagram{title: "large"}
	for i := range n {
		step := &node{name: fmt.Sprintf("s%d", i), tool: "http"}
		for k := 1; k <= 3; k++ {
			step.routes = append(step.routes, edge{to: fmt.Sprintf("s%d", (i*k+1)%n)})
		}
		g.steps = append(g.steps, step)
	}
	require.Equal(t, n, strings.Count(g.SVG(), "<g class=\"plain\">"))
}
