package interpreter_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
)

// graph writes a playbook of n steps. Forward routes may be taken or not, which
// a number per route decides; backward ones only while a step has had few
// visits, so that every cycle has an end.
func graph(rng *rand.Rand, n int, cycles bool) string {
	var text strings.Builder
	text.WriteString("workflow:\n")
	for i := range n {
		fmt.Fprintf(&text, "  - step: s%d\n    tool: http\n    url: http://x\n", i)
		var routes []string
		for range rng.IntN(4) {
			target := i + 1 + rng.IntN(n)
			condition := fmt.Sprintf("{{ result.n %% %d == 0 }}", 1+rng.IntN(3))
			if target >= n {
				if !cycles {
					continue
				}
				target, condition = rng.IntN(i+1), fmt.Sprintf("{{ result.visit <= %d }}", 1+rng.IntN(2))
			}
			step := fmt.Sprintf("step: s%d, args: {s%d: 1, last: s%d}", target, i, i)
			if rng.IntN(2) == 0 || target <= i {
				step = fmt.Sprintf("when: %q, then: [{%s}, {step: s%d}]", condition, step, min(i+1, n-1))
				if target <= i || i+1 >= n {
					step = fmt.Sprintf("when: %q, then: [{step: s%d}]", condition, target)
				}
			}
			routes = append(routes, "      - {"+step+"}\n")
		}
		if len(routes) > 0 {
			text.WriteString("    next:\n" + strings.Join(routes, ""))
		}
	}
	return text.String()
}

// finish takes a walk to its end; steps end in an order that rng chooses and
// give a result that only depends on step and visit.
func (w *walk) finish(rng *rand.Rand) {
	w.start()
	for rounds := 0; len(w.running) > 0; rounds++ {
		require.Less(w.t, rounds, 1000, "the run does not end:\n%s", w.text.String())
		next := w.running[rng.IntN(len(w.running))]
		w.end(next.Step.Name, fmt.Sprintf(`{"n": %d, "visit": %d}`, next.Step.Index*7+next.Visit, next.Visit))
		require.False(w.t, w.failed, "%s", w.text.String())
		w.start()
	}
}

// starts are the lines of a transcript that say what started, sorted by step.
func (w *walk) starts() map[string][]string {
	starts := map[string][]string{}
	for _, line := range strings.Split(w.text.String(), "\n") {
		if start, found := strings.CutPrefix(line, "  start "); found {
			name, _, _ := strings.Cut(start, "#")
			starts[name] = append(starts[name], start)
		}
	}
	return starts
}

// TestEveryGraphEnds walks random graphs with cycles: every run ends, no branch
// is lost, the rule of joins holds at every start (see mayStart), and the same
// order of ends gives the same run.
func TestEveryGraphEnds(t *testing.T) {
	t.Parallel()
	revisited, joined := 0, 0
	for seed := range uint64(400) {
		text := graph(rand.New(rand.NewPCG(seed, 1)), 2+int(seed%8), true)
		book := tables.DecodeBody(t, text)
		first := newWalk(t, book)
		first.finish(rand.New(rand.NewPCG(seed, 2)))
		require.Empty(t, first.routing.Waiting, "a branch was left behind\n%s", text)
		require.Empty(t, first.routing.Running, "%s", text)
		require.Equal(t, first.arrived, first.joined, "a branch was lost\n%s%s", text, first.text.String())
		for name, visits := range first.routing.Visits {
			if visits > 1 {
				revisited++
				require.True(t, reaches(book, name, name, nil) || mayRevisit(first, name),
					"%s was visited %d times without a cycle\n%s%s", name, visits, text, first.text.String())
			}
		}
		if first.joined > len(first.starts()) {
			joined++
		}
		again := newWalk(t, book)
		again.finish(rand.New(rand.NewPCG(seed, 2)))
		require.Equal(t, first.text.String(), again.text.String(), "the same ends, another run\n%s", text)
	}
	require.Greater(t, revisited, 50, "hardly any graph had a cycle that was taken")
	require.Greater(t, joined, 50, "hardly any graph had a join")
}

// mayRevisit reports whether a step behind a cycle may run once per round.
func mayRevisit(w *walk, name string) bool {
	for _, step := range w.book.Steps {
		if reaches(w.book, step.Name, step.Name, nil) && reaches(w.book, step.Name, name, nil) {
			return true
		}
	}
	return false
}

// TestOrderOfEndsDoesNotMatter walks graphs without cycles: whatever order the
// steps end in, each step that runs does so once, with the same args.
func TestOrderOfEndsDoesNotMatter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		text := graph(rand.New(rand.NewPCG(seed, 3)), 3+int(seed%7), false)
		book := tables.DecodeBody(t, text)
		var want map[string][]string
		for order := range uint64(6) {
			w := newWalk(t, book)
			w.finish(rand.New(rand.NewPCG(seed, 4+order)))
			starts := w.starts()
			for name, visits := range starts {
				require.Len(t, visits, 1, "%s ran more than once\n%s%s", name, text, w.text.String())
			}
			if want == nil {
				want = starts
			}
			require.Equal(t, want, starts, "another order, another run\n%s", text)
		}
	}
}
