package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/exitcode"
	"reprise/internal/program/steer"
	"reprise/interpreter"
)

// nothingWaits is a run in which attempts await answers from outside, which no command
// ends, everywhere.
const nothingWaits = `
  - {step: begin, next: [alone, each, batch, below]}
  - {step: alone, tool: webhook}
  - {step: each, tool: webhook, loop: {collection: [1, 2], element: n, mode: parallel, batch: 1}}
  - {step: batch, tool: webhook, loop: {collection: [1, 2], element: n, mode: parallel, batch: 2}}
  - {step: below, tool: playbook, workflow: [{step: ask, tool: webhook}]}
`

// TestCommandsWhereNothingWaits: skip and retry-now change nothing where nothing waits, and say
// so, to people and as JSON.
func TestCommandsWhereNothingWaits(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.start(nothingWaits)
	child := id + "/below#1!1"
	d.awaits(child, 1, 1)
	d.awaits(id, 5, 1)
	places := [][]string{
		{id, "alone"},
		{id, "each"},
		{id, "each", "--index", "1"},
		{id, "batch"},
		{id, "batch", "--index", "0"},
		{id, "below"},
		{child, "ask"},
		{id},
		{child},
	}
	for _, place := range places {
		for _, verb := range [][]string{{"retry-now"}, {"skip", "--reason", "a test"}} {
			if len(place) == 1 && verb[0] == "skip" {
				continue // it names a step
			}
			args := slices.Concat(verb, place)
			got := d.say(args...)
			require.Contains(t, got.out+got.err, "nothing waits", "%v", args)
			var answered struct {
				Runs []struct {
					Outcome steer.CommandOutcome
					Message string
					Reply   struct{ Changed bool } `json:"reply"`
				}
			}
			require.NoError(t, json.Unmarshal([]byte(d.say(slices.Concat(args, []string{"--output", "json"})...).out), &answered))
			require.Len(t, answered.Runs, 1)
			require.Contains(t, []steer.CommandOutcome{steer.Unchanged, steer.Refused}, answered.Runs[0].Outcome, "%v", args)
			require.Contains(t, answered.Runs[0].Message, "nothing waits", "%v", args)
			require.False(t, answered.Runs[0].Reply.Changed, "%v", args)
		}
	}
	d.awaits(child, 1, 1)
	d.awaits(id, 5, 1)
	d.does("cancel", id)
	require.Equal(t, interpreter.Cancelled, d.ends(id).Status)
	for _, verb := range [][]string{{"retry-now", id}, {"skip", id, "alone", "--reason", "a test"}} {
		require.Contains(t, d.refuses(exitcode.Failed, verb...), "the run has ended (cancelled), so there is nothing to "+verb[0])
	}
}
