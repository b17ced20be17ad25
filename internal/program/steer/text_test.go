package steer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/workflows/protocol"
)

func TestParseTuning(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]interpreter.Rate{
		"20/s": {Requests: 20, PerSeconds: 1}, "100/m": {Requests: 100, PerSeconds: 60}, "5/h": {Requests: 5, PerSeconds: 3600},
		"10/30s": {Requests: 10, PerSeconds: 30}, "1/24h": {Requests: 1, PerSeconds: 86400}, "3/500ms": {Requests: 3, PerSeconds: 0.5},
	} {
		tuning, err := ParseTuning([]string{"rate_limit=" + text, "max_concurrency=7"})
		require.NoError(t, err, text)
		require.Equal(t, interpreter.Tuning{MaxConcurrency: 7, Rate: &want}, tuning)
		require.NoError(t, tuning.Check())
	}
	for _, text := range []string{"", "20", "/s", "0/s", "-1/s", "1.5/s", "20/", "20/x", "20/0s", "20/-1s", "20/25h", "20/s/s"} {
		_, err := ParseTuning([]string{"rate_limit=" + text})
		require.ErrorContains(t, err, "expected attempts per time of at most a day", text)
	}
	require.Equal(t, "max_concurrency=7 rate_limit=10/30s",
		TuningText(interpreter.Tuning{MaxConcurrency: 7, Rate: &interpreter.Rate{Requests: 10, PerSeconds: 30}}))
}

// TestDescribe: the answer to each command in words.
func TestDescribe(t *testing.T) {
	t.Parallel()
	said := interpreter.Said{By: "ada@host", Reason: "it is\ndown"}
	paused := interpreter.Control{Version: 1, Paused: true, Held: map[string]interpreter.Said{"": said}}
	alone := interpreter.Control{Version: 2, Steps: []string{"fetch"}, Held: map[string]interpreter.Said{"fetch": said}}
	for _, c := range []struct {
		name, step string
		standing   protocol.CommandResult
		says       string
	}{
		{Pause, "", protocol.CommandResult{Changed: true, Control: paused}, "paused; no new attempts start"},
		{Pause, "", protocol.CommandResult{Control: paused}, "already paused by ada@host: it is down"},
		{Pause, "fetch", protocol.CommandResult{Control: alone}, "step fetch already paused by ada@host: it is down"},
		{Resume, "load", protocol.CommandResult{Changed: true, Control: alone}, "step load resumed; still step fetch paused by ada@host: it is down"},
		{Resume, "", protocol.CommandResult{}, "was not paused"},
	} {
		command := Command{Name: c.name, CommandInput: protocol.CommandInput{Step: c.step}}
		require.Equal(t, c.says, command.describeResult(Result{Reply: &c.standing}))
	}
	for _, c := range []struct {
		name  string
		waits int
		more  bool
		told  bool // loops
		says  string
	}{
		{RetryNow, 2, false, false, "step fetch retried now: 2 waits ended"},
		{Skip, 1, false, true, "step fetch skipped: 1 wait ended"},
		{RetryNow, 120, true, true, "step fetch retried now: at least 120 waits ended"},
		{RetryNow, 0, true, true, "step fetch retried now: anything that waits there"},
		{Skip, 0, false, true, "nothing waits in step fetch, so nothing was changed"},
		{Skip, 0, false, false, "nothing waits in step fetch, so nothing was changed"},
	} {
		command := Command{Name: c.name, CommandInput: protocol.CommandInput{Step: "fetch"}}
		require.Equal(t, c.says, command.describeResult(Result{Reply: &protocol.CommandResult{Signalled: c.told}, Waits: &c.waits, WaitsMore: c.more}))
	}
}
