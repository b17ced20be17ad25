package call_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
)

const keysBook = `workflow:
  - step: send
    tool: http
    url: http://x
    headers: {A: "{{ attempt_key }}", O: "{{ operation_key }}"}
    sink: {tool: file, path: a}
    retry:
      - when: "{{ error.status == 410 }}"
        then: {restart: true}
      - when: "{{ error is defined }}"
        then: {max_attempts: 5, initial_delay: 0}
      - when: "{{ response.more }}"
        then: {max_attempts: 5, next_call: {params: {page: 2}}, allow_repeat: true, collect: {}}
`

// keyedCall is a call of keysBook, in a visit and a round.
func keyedCall(t *testing.T, visit, round int) *call.Call {
	t.Helper()

	book := tables.DecodeBody(t, keysBook)
	of := tables.Run
	of.Round = round
	task := call.Task{Run: of, Visit: visit}
	return task.BuildCall(book, book.Steps[0], call.Snapshot{}, func() float64 { return 0 })
}

// attempts makes attempts that end in a way each, and gives the keys of those and of
// the next: the operation's and the attempt's.
func attempts(t *testing.T, machine *call.Call, how ...string) (operations, keys []string) {
	t.Helper()

	now := tables.Started

	for i := 0; ; {
		command := machine.Next(now)

		switch command.Kind {
		case call.DoAttempt:
			in := command.Input
			headers, _ := in.Fields["headers"].Data.(map[string]any)
			require.Equal(t, map[string]any{"A": in.AttemptKey, "O": in.OperationKey}, headers, "attempt %d sends the keys it has", i+1)

			operations, keys = append(operations, in.OperationKey), append(keys, in.AttemptKey[len(in.OperationKey):])
			if i == len(how) {
				return operations, keys
			}

			outcome, passed := parseAttempt(t, how[i])
			i++
			now = now.Add(passed)
			machine.ApplyOutcome(outcome, now)
		case call.DoWait:
			now = now.Add(command.Wait.Delay)
			machine.EndWait()
		default:
			require.Fail(t, "the call does something else")
		}
	}
}

// TestKeysStayForEver: the other side, sinks and ledgers know what was done by these
// keys, also what another build has done. So they are written here as they are.
func TestKeysStayForEver(t *testing.T) {
	t.Parallel()

	const (
		first, second      = "a4496d49bd039b3f58583b1e374989b7", "fde0fe2d192345b5eb8a8a8805fa781a"
		restarted, visited = "be03a791e3e8baec09ec06bac7232f8c", "b6834115ae89d0cd87875ed3d84df05b"
	)

	for name, test := range map[string]struct {
		visit, round     int
		how              []string
		operations, keys []string
	}{
		"one":         {1, 0, nil, []string{first}, []string{":1"}},
		"a failure":   {1, 0, []string{"503", "503"}, []string{first, first, first}, []string{":1", ":2", ":3"}},
		"a page":      {1, 0, []string{`ok {"more": true}`}, []string{first, second}, []string{":1", ":2"}},
		"a restart":   {1, 0, []string{"410", "503"}, []string{first, restarted, restarted}, []string{":1", ":2", ":3"}},
		"a visit":     {2, 0, nil, []string{visited}, []string{":1"}},
		"a reprocess": {1, 3, []string{"503"}, []string{first, first}, []string{":3.1", ":3.2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			operations, keys := attempts(t, keyedCall(t, test.visit, test.round), test.how...)
			require.Equal(t, test.operations, operations)
			require.Equal(t, test.keys, keys)
		})
	}
}

// A sink of a whole step writes once in a run, however often it is reprocessed;
// what is of each round has another key in each.
func TestKeysOfSinks(t *testing.T) {
	t.Parallel()

	key := func(round int, everyRound bool) string {
		machine := keyedCall(t, 1, round)
		outcome, passed := parseAttempt(t, `ok {}`)
		machine.ApplyOutcome(outcome, tables.Started.Add(passed))

		command := machine.Next(tables.Started)
		require.Equal(t, call.DoSink, command.Kind)

		if everyRound {
			command.Sink = call.NewLoopSink(*machine.Config(), machine.Config().AllSinks()[0], nil)
		}
		return command.Sink.Next(tables.Started).Input.OperationKey
	}
	require.Equal(t, "29052ef1d6bd207a8ad8eafbf295c4b5", key(0, false))
	require.Equal(t, "29052ef1d6bd207a8ad8eafbf295c4b5", key(0, true))
	require.Equal(t, "29052ef1d6bd207a8ad8eafbf295c4b5", key(2, false))
	require.Equal(t, "a4a703968061560b21e95d4460acee00", key(2, true))
}

// Iterations have keys of their own.
func TestKeysOfIterations(t *testing.T) {
	t.Parallel()

	book := tables.DecodeBody(t, "workflow:\n  - {step: send, tool: http, url: http://x, loop: {collection: [1, 2]}}\n")

	var keys []string
	for index := range 2 {
		task := call.Task{Run: tables.Run, Visit: 1}
		call := task.BuildCall(book, book.Steps[0], call.Snapshot{Index: &index, Size: 2, Element: expression.Of(1)}, func() float64 { return 0 })
		keys = append(keys, call.Next(tables.Started.Add(time.Hour)).Input.OperationKey)
	}

	require.Equal(t, []string{"1e94386484632076577c27383e206283", "1c65c4b36423644573be022e0a66e30b"}, keys)
}
