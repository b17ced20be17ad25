package graph

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/interpreter"
)

// longBook is a playbook with so many steps in a row; the last leads back to the one before it, and a branch leads from the third
// to a step of its own.
func longBook(steps int) string {
	var b strings.Builder
	b.WriteString("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: long}\nworkflow:\n")
	for i := 1; i <= steps; i++ {
		next := fmt.Sprintf("next: s%d", i+1)
		switch i {
		case 3:
			next = `next: [{when: "{{ true }}", step: s4}, {else: aside}]`
		case steps:
			next = fmt.Sprintf(`next: [{when: "{{ false }}", step: s%d}]`, steps-1)
		}
		fmt.Fprintf(&b, "  - {step: s%d, tool: python, code: \"def main(): return 1\", %s}\n", i, next)
	}
	b.WriteString("  - {step: aside, tool: python, code: \"def main(): return 1\"}\n")
	return b.String()
}

// TestLongGraphsFold: of more than 15 steps, rows of steps in the same status are one box, and what needs somebody or is happening
// is a box of its own.
func TestLongGraphsFold(t *testing.T) {
	t.Parallel()
	status := &runs.Status{Found: runs.Found{WorkflowID: "long-1", Status: interpreter.RetryPending, HeldBy: runs.HeldByPerson}, At: localBegan}
	for i := 1; i <= 24; i++ {
		item := runs.Item{Status: interpreter.Completed}
		switch {
		case i == 8:
			item = runs.Item{Status: interpreter.Failed}
		case i == 12:
			item = runs.Item{Status: interpreter.RetryPending, HeldBy: runs.HeldByPerson, Attempt: 2, MaxAttempts: 2}
		case i > 12:
			item = runs.Item{Status: interpreter.Pending}
		}
		status.Steps = append(status.Steps, runs.Step{Step: fmt.Sprintf("s%d", i), Visit: 1, Item: item})
	}
	folded := New(bookFrom(t, longBook(24)), status, nil).Fold()
	var names []string
	for _, step := range folded.steps {
		names = append(names, step.name)
	}
	require.Equal(t, []string{"s1 … s3", "s4 … s7", "s8", "s9 … s11", "s12", "s13 … s22", "s23", "s24", "aside"}, names)
	text := folded.Text()
	for _, want := range []string{
		"s1 … s3  3 steps  [completed]\n├─ true ─▶ s4 … s7\n└─ else ─▶ aside\n", "s8  python  [failed]\n└─▶ s9 … s11\n",
		"s12  python  [needs a person, attempt 2 of 2]\n└─▶ s13 … s22\n", "s13 … s22  10 steps  [pending]\n└─▶ s23\n", "└─ false ─▶ s23\n",
	} {
		require.Contains(t, text, want)
	}
	require.Contains(t, folded.SVG(), "needs a person</text>")
	few := New(bookFrom(t, longBook(14)), nil, nil)
	require.Same(t, few, few.Fold(), "15 steps are not folded")
	require.Len(t, New(bookFrom(t, longBook(24)), nil, nil).Fold().steps, 5, "a playbook without a run is folded too")
}
