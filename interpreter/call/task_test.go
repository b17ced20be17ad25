package call_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
)

// apart is a host that has pages fetched elsewhere, by a call that has nothing
// but the detached state. What is neither a page nor its sink happens here.
type apart struct {
	*host
	fresh func() *call.Call
	back  func() bool // says that a page is handed back as it came
	pages int         // fetched elsewhere
}

// drive takes the call to its end, as a workflow does.
func (a *apart) drive() interpreter.CallResult {
	machine, alone := a.fresh(), false
	detachable := machine.View().CanDetachPages()
	for {
		a.rounds++
		require.Less(a.t, a.rounds, 2000, "the call does not end:\n%s", a.text.String())
		machine = a.carry(machine, a.fresh)
		if detachable && !alone && machine.View().FetchesPage() {
			alone = !a.fetchPages(machine)
			continue
		}
		command := machine.Next(a.now)
		alone = false
		switch command.Kind {
		case call.DoAttempt:
			machine.ApplyOutcome(a.attempt(machine, command.Input, ""), a.now)
		case call.DoHold:
			fmt.Fprintf(&a.text, "held %s\n", a.json(command.Hold))
			require.True(a.t, a.people(machine, ""))
		case call.DoWait:
			if a.people(machine, "") {
				continue
			}
			fmt.Fprintf(&a.text, "wait %s (%s): %s\n", command.Wait.Delay, command.Wait.Reason, command.Wait.Summary)
			a.now = a.now.Add(command.Wait.Delay)
			machine.EndWait()
		case call.DoSink:
			sink := func() *call.Call { return a.carry(machine, a.fresh).Next(a.now).Sink }
			machine.SinkDone(a.host.drive(sink, "  "), a.now)
		case call.DoState:
			a.answerState(machine, command.State, "")
		case call.DoFinish:
			return command.Result
		}
	}
}

// fetchPages reports whether the call came further.
func (a *apart) fetchPages(machine *call.Call) bool {
	before, detached := *machine.View().SnapshotFor(true), a.fresh()
	require.NoError(a.t, json.Unmarshal([]byte(a.json(before)), detached.State()))
	var driven call.Driven
	require.NoError(a.t, json.Unmarshal([]byte(a.json(a.fetch(detached))), &driven))
	further := machine.Apply(driven, a.now)
	require.True(a.t, further, "nothing was done:\n%s", a.text.String())
	return further
}

// fetch fetches pages, as an activity does.
func (a *apart) fetch(machine *call.Call) call.Driven {
	chunk := machine.View().NewChunk(a.now)
	for machine.View().FetchesPage() && !chunk.IsFull(machine.View(), a.now) {
		command := machine.Next(a.now)
		if command.Kind == call.DoSink {
			if !a.write(command.Sink) {
				machine.StoreSink(command.Sink)
				break
			}
			machine.SinkDone(*command.Sink.Result(), a.now)
			continue
		}
		if command.Kind == call.DoState {
			a.answerState(machine, command.State, "")
			continue
		}
		before := machine.View().Snapshot()
		outcome := a.attempt(machine, command.Input, "")
		machine.ApplyOutcome(outcome, a.now)
		if a.back() || !machine.View().FetchesPage() {
			return call.Driven{State: &before, Outcome: &outcome}
		}
		a.pages++
		chunk.AddPageSize(len(a.json(outcome)))
	}
	state := machine.View().Snapshot()
	return call.Driven{State: &state}
}

// write takes a page's sink as far as it goes without a wait and reports
// whether it has written.
func (a *apart) write(sink *call.Call) bool {
	for {
		switch command := sink.Next(a.now); command.Kind {
		case call.DoAttempt:
			sink.ApplyOutcome(a.attempt(sink, command.Input, "  "), a.now)
		case call.DoFinish:
			return !command.Result.Failed()
		case call.DoWait, call.DoHold, call.DoSink, call.DoState:
			return false
		}
	}
}

// playApart is play on such a host. It gives how many pages were fetched apart.
func (c *callCase) playApart(t *testing.T, back func() bool) (string, *apart, interpreter.CallResult) {
	t.Helper()
	h := &host{
		t: t, kind: carried, now: tables.Started, keys: map[string]string{},
		script: append([]string(nil), c.script...), sinks: map[string][]string{}, state: fakeState{found: c.found},
	}
	for place, outcomes := range c.sinks {
		h.sinks[place] = append([]string(nil), outcomes...)
	}
	a := &apart{host: h, fresh: func() *call.Call { return c.call(t) }, back: back}
	result := a.drive()
	h.text.WriteString(h.result(result))
	return h.text.String(), a, result
}

// backs are the ways of handing pages back.
var backs = map[string]func() bool{
	"together":     func() bool { return false },
	"one by one":   func() bool { return true },
	"now and then": func() func() bool { n := 0; return func() bool { n++; return n%3 == 0 } }(),
}

// TestCallGoldenApart: pages fetched elsewhere change nothing in what is asked
// of the tools and what comes of it.
func TestCallGoldenApart(t *testing.T) {
	t.Parallel()
	pages := 0
	for _, file := range tables.Files(t, "calls") {
		for _, c := range parseCalls(t, file) {
			if c.call(t).View().ToolTraits().InWorkflow {
				continue // no activity hosts it
			}
			want := c.play(t, straight)
			if len(c.script) > 0 && want != c.transcript {
				require.True(t, *tables.Update, "%s: see TestCallGolden", c.name)
			}
			for how, back := range backs {
				got, a, _ := c.playApart(t, back)
				require.Equal(t, want, unasked(a, got), "%s: %s", c.name, how)
				pages += a.pages
			}
		}
	}
	require.Greater(t, pages, 20, "pages fetched apart")
}

// unasked adds what play adds for a script that was not played to its end.
func unasked(a *apart, text string) string {
	rest := ""
	for i, line := range a.script {
		if i > 0 {
			rest += " | "
		}
		rest += line
	}
	if rest != "" {
		text += "not asked for: " + rest + "\n"
	}
	return text
}

// randomPages is a random call with more pages, most of which may be fetched
// apart.
func randomPages(rng *rand.Rand) *callCase {
	c := randomCall(rng)
	c.body += `      - when: "{{ error is defined }}"
        then: {max_attempts: 4, delay: 1s}
      - when: "{{ response.more }}"
        then:
          next_call: {params: {n: "{{ response.n }}"}}
          collect: {path: rows}
          per_page: {sink: {tool: file, path: b, retry: [{when: "{{ error is defined }}", then: {max_attempts: 2, delay: 1s}}]}}
`
	for i, line := range c.script {
		if rng.IntN(3) > 0 && !strings.Contains(line, "more") {
			c.script[i] = fmt.Sprintf(`ok {"more": true, "n": %d, "rows": [%d], "next": "?p=%d"}`, i, i, i)
		}
	}
	return c
}

// TestEveryCallApart is TestEveryCallEnds with pages fetched elsewhere.
func TestEveryCallApart(t *testing.T) {
	t.Parallel()
	pages := 0
	for seed := range uint64(60) {
		c := randomPages(rand.New(rand.NewPCG(seed, 2)))
		live, want := c.watch(t, straight)
		for how, back := range backs {
			_, a, result := c.playApart(t, back)
			text := a.text.String()
			require.Equal(t, live.text.String()+live.result(want), text, "seed %d, %s\n%s", seed, how, c.body)
			require.JSONEq(t, live.json(want), a.json(result), "seed %d, %s\n%s", seed, how, c.body)
			pages += a.pages
		}
	}
	require.Greater(t, pages, 20, "pages fetched apart")
}

// pagesOf is a call of a step whose pages a policy with these words turns.
func pagesOf(t *testing.T, then, rest string) *call.Call {
	t.Helper()
	c := &callCase{visit: 1, body: `workflow:
  - step: fetch
    tool: http
    url: http://x/
    params: {page: 1}
    retry:
      - when: "{{ response.more }}"
        then: {next_call: {params: {page: "{{ _retry.index + 1 }}"}}` + then + `}
` + rest}
	return c.call(t)
}

// page makes the attempt that is due with a page of these rows.
func page(call *call.Call, now time.Time, rows ...any) {
	call.Next(now)
	call.ApplyOutcome(interpreter.Outcome{Data: map[string]any{"more": true, "rows": rows, "n": call.State().Successes}}, now)
}

func TestDetachable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then, rest string
		want       bool
	}{
		"plain":              {"", "", true},
		"append":             {", collect: {path: rows}", "", true},
		"replace":            {", collect: {path: rows, strategy: replace}", "", true},
		"merge":              {", collect: {strategy: merge}", "", false},
		"pages in a when":    {", collect: {path: rows}", "      - {when: \"{{ len(pages) > 3 }}\", then: {}}\n", false},
		"pages in a result":  {", collect: {path: rows}, result: \"{{ len(pages) }}\"", "", false},
		"into in a when":     {", collect: {path: rows, into: got}", "      - {when: \"{{ len(got) > 3 }}\", then: {}}\n", false},
		"into of others":     {", collect: {path: rows, into: got}", "    next: [{when: \"{{ len(fetch) > 3 }}\", then: [{step: b}]}]\n  - step: b\n", true},
		"pages in per_page":  {", per_page: {sink: {tool: file, path: a, args: {all: \"{{ pages }}\"}}}", "", false},
		"result in per_page": {", per_page: {sink: {tool: file, path: a, args: {all: \"{{ result }}\"}}}", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, pagesOf(t, test.then, test.rest).View().CanDetachPages())
		})
	}
}

func TestTaskFetchesPages(t *testing.T) {
	t.Parallel()
	call := pagesOf(t, ", per_page: {sink: {tool: file, path: a}}", "")
	require.False(t, call.View().FetchesPage(), "the first page is no continuation")
	page(call, tables.Started, 1)
	require.True(t, call.View().FetchesPage(), "the page's sink first")
	due := *call.State()
	call.StoreSink(call.Next(tables.Started).Sink)
	require.False(t, call.View().FetchesPage(), "the sink is on its way already")
	require.False(t, call.View().SinkDue())
	require.True(t, call.Beyond(due))
	*call.State() = due
	call.SinkDone(interpreter.CallResult{Status: interpreter.StatusSuccess}, tables.Started)
	require.True(t, call.View().FetchesPage())
	call.Next(tables.Started)
	call.ApplyOutcome(interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable}}, tables.Started)
	require.False(t, call.View().FetchesPage(), "the call failed")

	alone := pagesOf(t, ", pages_per_activity: 1", "")
	page(alone, tables.Started, 1)
	require.False(t, alone.View().FetchesPage(), "each page in an activity of its own")

	waiting := pagesOf(t, ", delay: 1s", "")
	page(waiting, tables.Started, 1)
	require.False(t, waiting.View().FetchesPage(), "a wait comes first")
	waiting.EndWait()
	require.True(t, waiting.View().FetchesPage())
}

// TestTaskFetchesPagesWithState: a watermark that moves with each page keeps pages together, in the
// transaction of the page or behind it.
func TestTaskFetchesPagesWithState(t *testing.T) {
	t.Parallel()
	for sink, behind := range map[string]bool{
		"tool: sqlite, path: a.db, table: rows, mode: upsert, key: at": false,
		"tool: file, path: a": true,
	} {
		call := pagesOf(t, ", collect: {path: rows}, per_page: {sink: {"+sink+"}}",
			"    incremental: {cursor_path: at, initial_value: 0, row_order: asc}\n")
		require.NotNil(t, call.Next(tables.Started).State.Claim)
		call.StateAnswered(interpreter.StateOutput{}, tables.Started)
		for at := 1; at < 3; at++ {
			page(call, tables.Started, map[string]any{"at": at})
			require.True(t, call.View().SinkDue())
			require.True(t, call.View().FetchesPage(), "%s, page %d", sink, at)
			call.SinkDone(interpreter.CallResult{Status: interpreter.StatusSuccess}, tables.Started)
			if behind {
				require.True(t, call.View().FetchesPage())
				require.NotEmpty(t, call.Next(tables.Started).State.Moves)
				call.StateAnswered(interpreter.StateOutput{}, tables.Started)
			}
			require.True(t, call.View().FetchesPage(), "%s, behind page %d", sink, at)
		}
	}
}

// TestPagesAreHandedOverAlone: neither what was collected nor the last page
// travels.
func TestPagesAreHandedOverAlone(t *testing.T) {
	t.Parallel()
	machine := pagesOf(t, ", collect: {path: rows}", "")
	page(machine, tables.Started, 1, 2)
	page(machine, tables.Started, 3)
	detached := *machine.View().SnapshotFor(true)
	require.Equal(t, []any{}, detached.Collected.Data)
	require.Nil(t, detached.Last.Data.Data)
	require.Nil(t, detached.Last.Contribution.Data)
	require.Equal(t, []any{1, 2, 3}, machine.State().Collected.Data, "the call keeps it")

	further := pagesOf(t, ", collect: {path: rows}", "")
	*further.State() = detached
	page(further, tables.Started, 4)
	state := further.View().Snapshot()
	page(further, tables.Started, 5)
	require.Equal(t, []any{4}, state.Collected.Data, "a snapshot stays as it is")
	require.Equal(t, 3, state.Successes)
	machine.Apply(call.Driven{State: &state}, tables.Started)
	require.Equal(t, []any{1, 2, 3, 4}, machine.State().Collected.Data)
	last := interpreter.Outcome{Data: map[string]any{"more": false, "rows": []any{5}}}
	begun := machine.View().SnapshotFor(true)
	machine.Apply(call.Driven{State: begun, Outcome: &last}, tables.Started)
	require.True(t, machine.Finished())
	require.Equal(t, []any{1, 2, 3, 4, 5}, machine.Result().Data.Data)
	require.Equal(t, 4, machine.Result().Meta.Pages)
}

// TestPageThatReplacesTravels: it is all that was collected.
func TestPageThatReplacesTravels(t *testing.T) {
	t.Parallel()
	const replace = ", collect: {path: rows, strategy: replace, optional: true}"
	machine := pagesOf(t, replace, "")
	page(machine, tables.Started, 1, 2)
	travels := machine.View().SnapshotFor(true)
	require.Equal(t, []any{1, 2}, travels.Collected.Data)
	further := pagesOf(t, replace, "")
	*further.State() = *travels
	page(further, tables.Started, 3)
	state := further.View().Snapshot()
	machine.Apply(call.Driven{State: &state}, tables.Started)
	require.Equal(t, []any{3}, machine.State().Collected.Data)
	last := interpreter.Outcome{Data: map[string]any{"more": false}}
	machine.Apply(call.Driven{State: machine.View().SnapshotFor(true), Outcome: &last}, tables.Started)
	require.Equal(t, []any{3}, machine.Result().Data.Data)
	require.Equal(t, 3, machine.Result().Meta.Pages)
}

// TestChunk passes maxBytesPerActivity and maxTimePerActivity.
func TestChunk(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		then  string
		bytes int // a page
		time  time.Duration
		want  int // pages
	}{
		"50 pages":             {"", 10, 100 * time.Millisecond, 50},
		"in 2 s":               {"", 10, 10 * time.Millisecond, 200},
		"500 pages":            {"", 10, time.Millisecond, 500},
		"as the policy says":   {", pages_per_activity: 7", 10, 0, 7},
		"1 MiB":                {"", 200 << 10, 0, 6},
		"20 s":                 {"", 10, 3 * time.Second, 7},
		"at least one page":    {"", 5 << 20, time.Minute, 1},
		"exactly 20 s is over": {"", 10, 10 * time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call, now := pagesOf(t, test.then, ""), tables.Started
			page(call, now)
			chunk, pages := call.View().NewChunk(now), 0
			for ; !chunk.IsFull(call.View(), now); pages++ {
				require.LessOrEqual(t, pages, 500)
				page(call, now)
				now = now.Add(test.time)
				chunk.AddPageSize(test.bytes)
			}
			require.Equal(t, test.want, pages)
		})
	}
}

// TestChunkAfterARestart: the pages of the round before are not taken off.
func TestChunkAfterARestart(t *testing.T) {
	t.Parallel()
	call := pagesOf(t, ", pages_per_activity: 3", "      - {when: \"{{ error is defined }}\", then: {restart: true, delay: 0}}\n")
	for range 5 {
		page(call, tables.Started)
	}
	chunk := call.View().NewChunk(tables.Started)
	call.Next(tables.Started)
	call.ApplyOutcome(interpreter.Outcome{Err: &interpreter.ErrorObject{Kind: interpreter.KindHTTP, Status: 410}}, tables.Started)
	require.False(t, call.View().FetchesPage(), "a page of a call that begins again is no continuation")
	for range 3 {
		require.False(t, chunk.IsFull(call.View(), tables.Started))
		page(call, tables.Started)
	}
	require.True(t, chunk.IsFull(call.View(), tables.Started))
}

// TestTaskCallsTheSameCall: a call made of a task and a carried state is the
// call that the state was taken from.
func TestTaskCallsTheSameCall(t *testing.T) {
	t.Parallel()
	source := `apiVersion: reprise/v1
kind: Playbook
metadata: {name: table}
workload: {base: http://x}
workflow:
  - step: fetch
    tool: http
    url: "{{ base }}/{{ item }}/{{ _loop.count }}-{{ _loop.size }}/{{ args.key }}"
    loop: {collection: [a, b, c], sink: {tool: file, path: "{{ item }}"}}
`
	task := call.Task{
		Name: "table.yaml", Source: source, Run: tables.Run, Step: "fetch", Visit: 2,
		Data: interpreter.Data{Workload: expression.Of(map[string]any{"base": "http://y"})},
		Args: expression.Of(map[string]any{"key": "k"}),
	}
	book, step, err := task.LoadStep()
	require.NoError(t, err)
	index := 1
	carried := call.Snapshot{Index: &index, Size: 3, Element: expression.Of("b")}
	machine := task.BuildCall(book, step, carried, func() float64 { return 0 })
	require.False(t, machine.Finished())
	input := machine.Next(tables.Started).Input
	require.Equal(t, "http://y/b/2-3/k", input.Fields["url"].Data)
	machine.ApplyOutcome(interpreter.Outcome{Data: 1}, tables.Started)

	state := *machine.State()
	carried.State = &state
	again := task.BuildCall(book, step, carried, func() float64 { return 0 })
	sink := again.Next(tables.Started)
	require.Equal(t, call.DoSink, sink.Kind, "the sink of the loop")
	write := sink.Sink.Next(tables.Started).Input
	require.Equal(t, "b", write.Fields["path"].Data)
	require.NotEqual(t, input.OperationKey, write.OperationKey)
	again.Finish(interpreter.CallResult{Status: interpreter.StatusSuccess})
	require.True(t, again.Finished())
	require.Equal(t, call.DoFinish, again.Next(tables.Started).Kind)

	task.Step = "nowhere"
	_, _, err = task.LoadStep()
	require.ErrorContains(t, err, `has no step "nowhere"`)
}
