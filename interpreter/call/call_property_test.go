package call_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"

	"reprise/interpreter"
	"reprise/interpreter/call"
)

// callSink is the sink of a random call's step.
const callSink = "    sink: {tool: file, path: c, retry: [{when: \"{{ error is defined }}\", then: {max_attempts: 2}}]}\n"

// randomCall makes a step with random policies and a script of random outcomes.
func randomCall(rng *rand.Rand) *callCase {
	conditions := []string{
		"error is defined", "error.status == 503", "error.class == 'rate_limited'", "response.more", "response.state == 'running'",
		"error is not defined", "response.more and pages | length < 7", "_retry.attempt < 3", "response.n % 3 == 0", "true",
	}
	words := []string{
		"max_attempts: 2", "max_attempts: 5", "delay: 1s", "initial_delay: 2s", "jitter: none", "jitter: full", "max_elapsed: 20s",
		"max_wait: 1s", "on_exhausted: succeed", "on_exhausted: continue", "on_exhausted: fail", "allow_repeat: true",
		"restart: true", "end_on_repeat: true", "ignore: true", "result: {n: \"{{ response.n }}\", rows: \"{{ len(pages) }}\"}",
		"next_call: {params: {page: \"{{ _retry.index }}\"}}", "next_call: {args: {page: \"{{ response.n }}\"}}",
		"next_call: {url: \"{{ response.next }}\"}", "collect: {path: rows}", "collect: {}", "collect: {strategy: replace, into: got}",
		"sink: {tool: file, path: a}", "per_page: {sink: {tool: file, path: b, args: {rows: \"{{ result }}\", key: \"{{ operation_key }}\"}}}",
	}
	var retry strings.Builder
	for range 1 + rng.IntN(4) {
		fmt.Fprintf(&retry, "      - when: %q\n        then:\n", "{{ "+conditions[rng.IntN(len(conditions))]+" }}")
		taken := map[string]bool{}
		for range 1 + rng.IntN(7) {
			word := words[rng.IntN(len(words))]
			if key, _, _ := strings.Cut(word, ":"); !taken[key] {
				taken[key] = true
				retry.WriteString("          " + word + "\n")
			}
		}
	}
	c := &callCase{random: rng.Float64(), visit: 1, sinks: map[string][]string{}}
	c.body = `workflow:
  - step: fetch
    tool: http
    url: http://x/
    args: {page: 1, key: "{{ operation_key }}"}
    body: {page: "{{ args.page }}", key: "{{ args.key }}"}
` + callSink + `    retry:
` + retry.String()
	for i := range 600 {
		c.script = append(c.script, []string{
			fmt.Sprintf(`ok {"more": true, "n": %d, "rows": [%d], "next": "?p=%d"}`, i, i, rng.IntN(50)),
			fmt.Sprintf(`ok {"more": true, "n": %d, "rows": [%d], "next": "?p=%d"}`, i, i, i),
			`ok {"state": "running"}`, fmt.Sprintf(`ok {"n": %d, "rows": []}`, i), "ok null", "503", "404", "429 after 2", "+3s timeout", "429",
		}[rng.IntN(10)])
	}
	for i := range 9 {
		for _, place := range []string{"fetch.retry[%d].then.sink", "fetch.retry[%d].then.per_iteration.sink"} {
			for range 200 {
				c.sinks[fmt.Sprintf(place, i)] = append(c.sinks[fmt.Sprintf(place, i)], []string{"ok", "ok 1", "503"}[min(rng.IntN(40), 2)*rng.IntN(2)])
			}
		}
	}
	c.sinks["fetch.sink"] = []string{"503", "ok"}[rng.IntN(2):]
	return c
}

// TestEveryCallEnds plays random scripts against random policies. A call ends,
// does the same when it is carried in its state or resumed from notes, counts what it did, and gives
// keys that hold: one for all attempts of a page or of a sink's write, another
// for each other one.
func TestEveryCallEnds(t *testing.T) {
	t.Parallel()
	ends, restarted := map[string]int{}, 0
	for seed := range uint64(250) {
		c := randomCall(rand.New(rand.NewPCG(seed, 1)))
		book, found := tables.TryDecode(c.body)
		require.False(t, found.HasErrors(), "%v", found)
		require.NotNil(t, book)
		live, result := c.watch(t, straight)
		away, other := c.watch(t, carried)
		require.Equal(t, live.text.String(), away.text.String(), "seed %d\n%s", seed, c.body)
		require.Equal(t, live.json(result), away.json(other), "seed %d\n%s", seed, c.body)
		again, resumed := c.watch(t, noted)
		require.Equal(t, live.text.String(), again.text.String(), "seed %d\n%s", seed, c.body)
		require.Equal(t, live.json(result), again.json(resumed), "seed %d\n%s", seed, c.body)

		for i, input := range away.sent {
			require.Equal(t, away.json(input.Fields), live.json(live.sent[i].Fields), "a later attempt changed this one")
		}

		attempts, keys, writes := 0, map[string]string{}, map[string]string{}
		for _, input := range live.sent {
			if input.Place == "" {
				attempts++
			}
			what := fmt.Sprintf("%s page %d", input.Place, input.Page)
			key, known := keys[what]
			if known && input.Place == "" && key != input.OperationKey {
				require.Contains(t, c.body, "restart: true", "seed %d: two keys of %s\n%s", seed, what, live.text.String())
				restarted, known = restarted+1, false
			}
			owner, taken := writes[input.OperationKey]
			require.Equal(t, known, taken, "seed %d: %s and %s\n%s", seed, what, owner, live.text.String())
			if known {
				require.Equal(t, key, input.OperationKey, "seed %d: two keys of %s\n%s", seed, what, live.text.String())
			}
			keys[what], writes[input.OperationKey] = input.OperationKey, what
		}
		require.Equal(t, attempts, result.Meta.Attempts, "seed %d\n%s", seed, live.text.String())
		require.Equal(t, result.Failed(), result.Error != nil)
		if result.Meta.Truncated {
			require.NotEmpty(t, result.Warnings, "truncated in silence")
			ends["truncated"]++
		}
		if result.Failed() {
			ends[string(result.Error.Kind)]++
		} else {
			ends["success"]++
		}
	}
	require.Positive(t, restarted, "pages that were asked for again after a restart")
	for _, end := range []string{"success", "truncated", "http", "exhausted", "sink", "repeat", "expression"} {
		require.Positive(t, ends[end], "no call ended so: %s; %v", end, ends)
	}
}

// watch plays a case whose script need not be used up.
func (c *callCase) watch(t *testing.T, kind hostKind) (*host, interpreter.CallResult) {
	h := &host{t: t, kind: kind, now: tables.Started, keys: map[string]string{}, script: c.script, sinks: map[string][]string{}}
	for place, outcomes := range c.sinks {
		h.sinks[place] = outcomes
	}
	result := h.drive(func() *call.Call { return c.call(t) }, "")
	text, err := json.Marshal(result)
	require.NoError(t, err)
	var back interpreter.CallResult
	require.NoError(t, json.Unmarshal(text, &back))
	return h, back
}
