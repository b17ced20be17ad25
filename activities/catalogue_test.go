package activities_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

func TestRegister(t *testing.T) {
	t.Parallel()

	c := activities.DefaultCatalogue()
	var names, want []string
	for _, a := range c.Attempts.Activities() {
		names = append(names, a.Name)
	}

	for _, name := range c.Names() {
		if name != playbook.PlaybookTool {
			want = append(want, name)
		}
		if spec, _ := c.Spec(name); spec.Writes {
			want = append(want, interpreter.WriteActivity(name))
		}
	}

	require.Equal(t, want, names)
	require.Contains(t, names, "http.write")

	for name, says := range map[string]string{
		"http": "the name is taken", "check": "the name is reserved", "workbook": "the name is reserved",
		"Mail": "lower-case letters", "": "lower-case letters", "a.b": "lower-case letters",
	} {
		require.ErrorContains(t, c.RegisterTool(named(name)), says)
	}

	require.ErrorContains(t, c.RegisterTool(liar{}), "its spec says writes: true, but a method Write is there: false")
}

type named string

func (n named) Spec() playbook.ToolSpec { return playbook.ToolSpec{Name: string(n)} }

func (named) Run(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error) {
	return interpreter.ToolResult{}, nil
}

type liar struct{ named }

func (liar) Spec() playbook.ToolSpec { return playbook.ToolSpec{Name: "liar", Writes: true} }

// closing counts its Close.
type closing struct {
	named
	count *atomic.Int32
}

func (c closing) Close() error {
	c.count.Add(1)
	return errors.New("a pool is stuck")
}

func TestCloseTellsWhichToolFailed(t *testing.T) {
	t.Parallel()

	c := activities.DefaultCatalogue()
	count := &atomic.Int32{}

	require.NoError(t, c.RegisterTool(closing{named: "slow_pool", count: count}))
	require.ErrorContains(t, c.Close(), `close tool "slow_pool": a pool is stuck`)
	require.EqualValues(t, 1, count.Load())
}

// TestTraits holds what runs know of the tools by name against what the tools
// say.
func TestTraits(t *testing.T) {
	t.Parallel()

	c := activities.DefaultCatalogue()
	keyed := map[string]string{"http": "operation", "webhook": "attempt", "approval": "attempt"}
	for _, name := range c.Names() {
		spec, ok := c.Spec(name)
		require.True(t, ok)
		traits := playbook.TraitsOf(name)
		require.Equal(t, spec.Dialect, traits.Dialect, name)
		require.Equal(t, keyed[name], traits.Keyed, name)
		asks := slices.Contains(spec.FieldNames(), "on_start")
		require.Equal(t, asks, traits.Awaits, name)
		require.Equal(t, asks || traits.Plays, traits.InWorkflow, name)
		require.Equal(t, slices.Contains(spec.FieldNames(), "options"), traits.AsksPeople, name)
		require.Equal(t, slices.Contains(spec.FieldNames(), "workload"), traits.Plays, name)
		require.Equal(t, slices.Contains(spec.FieldNames(), "url"), traits.Requests, name)
		require.Equal(t, spec.Writes && spec.Dialect == "" && slices.Contains(spec.FieldNames(), "path"), traits.IntoFile, name)
	}
}
