package call_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/call/await"
	"reprise/interpreter/expression"
)

// TestCallGolden plays scripts against calls and compares what the host was
// asked to do. Each file of testdata/calls is a list of cases:
//
//	=== name of the case
//	random 0.5                   optional lines: see callCase.option
//	workflow: …                  the playbook; its first step is called
//	--- script
//	ok {"more": true}            what the attempts of the step give, in order
//	503 after 3
//	sink fetch.sink: 500         what those of a sink give; else ok null
//	--- transcript
//	…                            written by -update
//
// Every case also runs on a host that carries the call to another process
// after every command, and on one that loses its worker behind every write and
// goes on from what the ledger noted. It must give the same transcript there.
func TestCallGolden(t *testing.T) {
	t.Parallel()
	count := 0
	for _, file := range tables.Files(t, "calls") {
		cases := parseCalls(t, file)
		count += len(cases)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			var rewritten []string
			for _, c := range cases {
				transcript := c.play(t, straight)
				rewritten = append(rewritten, c.text+"--- transcript\n"+transcript)
				require.Equal(t, transcript, c.play(t, carried), "%s: carried in its state the call goes another way", c.name)
				require.Equal(t, transcript, c.play(t, noted), "%s: resumed from notes the call goes another way", c.name)
				if !*tables.Update {
					require.Equal(t, c.transcript, transcript, c.name)
				}
			}
			if *tables.Update {
				require.NoError(t, os.WriteFile(file, []byte(strings.Join(rewritten, "\n")), 0o644))
			}
		})
	}
	require.GreaterOrEqual(t, count, 60, "cases of all files")
}

// callCase is one case of a file.
type callCase struct {
	name, text, body, transcript string
	random                       float64
	visit                        int
	index                        *int
	size                         int
	element, steps, args, found  any
	full, tables, lastOnly       bool
	script                       []string
	sinks                        map[string][]string
}

func parseCalls(t *testing.T, file string) []callCase {
	t.Helper()
	var cases []callCase
	for _, text := range strings.Split("\n"+tables.ReadText(t, file), "\n=== ")[1:] {
		head, rest, found := strings.Cut(text+"\n", "\n--- script\n")
		require.True(t, found, "%s: a case without a script: %s", file, text)
		script, transcript, _ := strings.Cut(rest+"\n", "--- transcript\n")
		c := callCase{
			random: 0.5, visit: 1, sinks: map[string][]string{},
			text: "=== " + head + "\n--- script\n" + script, transcript: strings.TrimSpace(transcript) + "\n",
		}
		c.name, head, _ = strings.Cut(head, "\n")
		for _, line := range strings.SplitAfter(head, "\n") {
			if !c.option(t, strings.TrimSpace(line)) {
				c.body += line
			}
		}
		for _, line := range strings.Split(strings.TrimSpace(script), "\n") {
			if sink, isSink := strings.CutPrefix(line, "sink "); isSink {
				place, outcome, _ := strings.Cut(sink, ": ")
				c.sinks[place] = append(c.sinks[place], outcome)
			} else if line != "" {
				c.script = append(c.script, line)
			}
		}
		cases = append(cases, c)
	}
	return cases
}

// option reads a line such as `visit 2` that stands above the playbook.
func (c *callCase) option(t *testing.T, line string) bool {
	word, text, _ := strings.Cut(line, " ")
	switch word {
	case "random":
		random, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err)
		c.random = random
	case "visit":
		c.visit = tables.Value(t, text).(int)
	case "index": // of the iteration, and the size of the collection
		numbers := tables.Value(t, text).([]any)
		index := numbers[0].(int)
		c.index, c.size = &index, numbers[1].(int)
	case "element":
		c.element = tables.Value(t, text)
	case "steps":
		c.steps = tables.Value(t, text)
	case "args": // of the route
		c.args = tables.Value(t, text)
	case "found": // the watermark of the step's state
		c.found = tables.Value(t, text)
	case "full-refresh":
		c.full = true
	case "retries-tables": // as runs do that record so
		c.tables = true
	case "keeps-last-page": // as runs do that began before rows were collected without a collect
		c.lastOnly = true
	default:
		return false
	}
	return true
}

// call makes the call of the playbook's first step, as every host does.
func (c *callCase) call(t *testing.T) *call.Call {
	book := tables.DecodeBody(t, c.body)
	step := book.Steps[0]
	require.Equal(t, step.Loop != nil, c.index != nil, "%s: a loop needs an index", c.name)
	run := tables.Run
	if c.full {
		run.FullRefresh = []string{step.Name}
	}
	task := call.Task{
		Run: run, Visit: c.visit, Args: expression.Of(c.args), Limits: interpreter.RunLimits{RetriesTables: c.tables, CollectsRows: !c.lastOnly},
		Data: interpreter.Data{Workload: expression.Of(book.Workload), Steps: expression.Of(c.steps)},
	}
	carried := call.Snapshot{Index: c.index, Size: c.size, Element: expression.Of(c.element)}
	return task.BuildCall(book, step, carried, func() float64 { return c.random })
}

// hostKind is how a fake host treats a call.
type hostKind int

const (
	straight hostKind = iota
	carried           // to another process, after every command
	noted             // by the ledger, behind every sink's write
)

// host is a fake host: it plays a script and writes down what it is asked.
type host struct {
	t      *testing.T
	kind   hostKind
	now    time.Time
	script []string
	sinks  map[string][]string
	keys   map[string]string // operation key -> short name
	text   strings.Builder
	rounds int
	sent   []interpreter.ToolInput
	state  fakeState
}

func (c *callCase) play(t *testing.T, kind hostKind) string {
	t.Helper()
	h := &host{
		t: t, kind: kind, now: tables.Started, keys: map[string]string{},
		script: append([]string(nil), c.script...), sinks: map[string][]string{}, state: fakeState{found: c.found},
	}
	for place, outcomes := range c.sinks {
		h.sinks[place] = append([]string(nil), outcomes...)
	}
	result := h.drive(func() *call.Call { return c.call(t) }, "")
	h.text.WriteString(h.result(result))
	if len(h.script) > 0 {
		h.text.WriteString("not asked for: " + strings.Join(h.script, " | ") + "\n")
	}
	for place, outcomes := range h.sinks {
		require.Empty(t, outcomes, "%s: sink %s did not run", c.name, place)
	}
	return h.text.String()
}

// drive takes a call to its end. fresh gives the call as it began.
func (h *host) drive(fresh func() *call.Call, indent string) interpreter.CallResult {
	machine := fresh()
	sure := h.json(*machine.State())
	mark := machine.View().CurrentMark()
	h.answers("before ", machine, false, indent)
	for {
		h.rounds++
		require.Less(h.t, h.rounds, 2000, "the call does not end:\n%s", h.text.String())
		machine = h.carry(machine, fresh)
		command := machine.Next(h.now)
		machine = h.carry(machine, fresh)
		switch command.Kind {
		case call.DoAttempt:
			require.Equal(h.t, h.json(command.Input), h.json(machine.Next(h.now).Input), "asked twice the command differs")
			machine.ApplyOutcome(h.attempt(machine, command.Input, indent), h.now)
		case call.DoAwait:
			h.await(machine, command.Await, indent)
		case call.DoHold:
			h.answers("", machine, false, indent)
			fmt.Fprintf(&h.text, "%sheld %s\n", indent, h.json(command.Hold))
			require.True(h.t, h.people(machine, indent), "nobody decides about the call that is held")
		case call.DoWait:
			h.answers("", machine, false, indent)
			if h.people(machine, indent) {
				continue
			}
			fmt.Fprintf(&h.text, "%swait %s (%s): %s\n", indent, command.Wait.Delay, command.Wait.Reason, command.Wait.Summary)
			h.now = h.now.Add(command.Wait.Delay)
			machine.EndWait()
		case call.DoSink:
			result := h.drive(func() *call.Call {
				return h.carry(machine, fresh).Next(h.now).Sink
			}, indent+"  ")
			if h.kind == noted && !result.Failed() {
				machine = h.resume(machine, fresh, sure, mark, result.Warnings)
			} else {
				machine.SinkDone(result, h.now)
			}
			sure, mark = h.json(*machine.State()), machine.View().CurrentMark()
		case call.DoState:
			h.answerState(machine, command.State, indent)
			sure, mark = h.json(*machine.State()), machine.View().CurrentMark() // it is claimed again by whoever takes the call up
		case call.DoFinish:
			h.answers("", machine, false, indent)
			return command.Result
		}
	}
}

// await plays one thing that happens to an attempt which somebody outside answers: an
// answer, as in answers, or `silence` until its time is over.
func (h *host) await(call *call.Call, awaited await.AnswerWait, indent string) {
	if call.View().HasAnswer() { // while it was sent
		_ = call.ApplyAnswer(h.now)
		return
	}
	require.NotEmpty(h.t, h.script, "the script is over, but the call awaits an answer:\n%s", h.text.String())
	next := h.script[0]
	h.script = h.script[1:]
	if next != "silence" {
		h.answer(next, call, false, indent)
		if call.View().HasAnswer() {
			_ = call.ApplyAnswer(h.now)
		}
		return
	}
	require.False(h.t, awaited.Until.IsZero(), "silence for ever")
	require.Equal(h.t, interpreter.ReasonAnswer, awaited.DescribeWait(call.State().Reported).Reason)
	fmt.Fprintf(&h.text, "%s%s silence of %s\n", indent, h.passed(), awaited.Until.Sub(h.now))
	h.now = awaited.Until
	_ = call.ApplyAnswer(h.now)
}

func (h *host) passed() string { return "+" + h.now.Sub(tables.Started).String() }

// answers plays the answers that the script has next: lines of `answer` and a
// number, of the attempt that is meant, or a dash, and JSON.
func (h *host) answers(prefix string, call *call.Call, sent bool, indent string) {
	for len(h.script) > 0 && strings.HasPrefix(h.script[0], prefix+"answer ") {
		next := strings.TrimPrefix(h.script[0], prefix)
		h.script = h.script[1:]
		h.answer(next, call, sent, indent)
	}
}

var answerLine = regexp.MustCompile(`^(?:\+(\S+) )?answer (\d+|-) (.*)$`)

func (h *host) answer(line string, call *call.Call, sent bool, indent string) {
	parts := answerLine.FindStringSubmatch(line)
	require.NotNil(h.t, parts, "no answer: %s", line)
	if parts[1] != "" {
		passed, err := time.ParseDuration(parts[1])
		require.NoError(h.t, err)
		h.now = h.now.Add(passed)
	}
	var answer interpreter.Answer
	require.NoError(h.t, json.Unmarshal([]byte(parts[3]), &answer))
	if parts[2] != "-" {
		answer.Attempt, _ = strconv.Atoi(parts[2])
	}
	became := "nobody asks"
	if call.View().IsAddressed(answer.AnswerTo, sent) {
		if err := call.View().CheckAnswer(answer); err != nil {
			became = err.Error()
		} else {
			became = fmt.Sprintf("taken for attempt %d", call.AcceptAnswer(answer, h.now).Attempt)
		}
	}
	fmt.Fprintf(&h.text, "%s%s %s %s: %s\n", indent, h.passed(), answer.Verb, parts[2], became)
	if call.State().Reported != nil && answer.Verb == interpreter.AnswerProgress {
		fmt.Fprintf(&h.text, "%s  %s\n", indent, call.State().Reported)
	}
}

// people plays what people decide about a call that waits, where the script says so.
func (h *host) people(call *call.Call, indent string) bool {
	if len(h.script) == 0 || !strings.HasPrefix(h.script[0], "people ") {
		return false
	}
	said := strings.TrimPrefix(h.script[0], "people ")
	h.script = h.script[1:]
	fmt.Fprintf(&h.text, "%s%s\n", indent, said)
	switch verb, reason, _ := strings.Cut(said, " "); verb {
	case "resume":
		call.EndWait()
	case "retry-now":
		call.Settle(interpreter.Settlement{}, h.now)
	case "skip":
		call.Settle(interpreter.Settlement{Skip: true, Reason: reason, By: "ada"}, h.now)
	default:
		require.Fail(h.t, "people say "+said)
	}
	return true
}

// resume gives the call as a worker finds it that takes it up where it was sure
// last, and asks the ledger for what was noted with the write that is due.
func (h *host) resume(machine *call.Call, fresh func() *call.Call, sure string, mark call.Mark, warnings []string) *call.Call {
	before := h.json(*machine.State())
	note, err := machine.LedgerEntry(mark, call.NotedOnce, warnings, nil, h.now)
	require.NoError(h.t, err)
	require.Equal(h.t, before, h.json(*machine.State()), "making a note changes the call")
	require.Equal(h.t, machine.State().Written+1, note.Written)
	other := fresh()
	*other.State() = call.State{}
	require.NoError(h.t, json.Unmarshal([]byte(sure), other.State()))
	require.NoError(h.t, other.ResumeAfterWrite(note.Continuation))
	return other
}

// carry gives the call as another process would find it: only its state.
func (h *host) carry(machine *call.Call, fresh func() *call.Call) *call.Call {
	if h.kind != carried {
		return machine
	}
	other := fresh()
	*other.State() = call.State{}
	require.NoError(h.t, json.Unmarshal([]byte(h.json(*machine.State())), other.State()))
	require.JSONEq(h.t, h.json(*machine.State()), h.json(*other.State()), "the state does not survive JSON")
	return other
}

func (h *host) json(v any) string {
	text, err := json.Marshal(v)
	require.NoError(h.t, err)
	return string(text)
}

// attempt writes down what is sent and gives the next outcome of the script.
func (h *host) attempt(call *call.Call, input interpreter.ToolInput, indent string) interpreter.Outcome {
	if h.kind == carried {
		text := h.json(input)
		input = interpreter.ToolInput{}
		require.NoError(h.t, json.Unmarshal([]byte(text), &input))
	}
	require.Equal(h.t, tables.Run.RunID, input.RunID, "every attempt tells its run")
	h.sent = append(h.sent, input)
	h.text.WriteString(indent + h.line(input) + "\n")
	if request := call.View().Request; call.View().ToolTraits().Awaits && !request.SendsRequest() {
		return interpreter.Outcome{}
	}
	h.answers("", call, true, indent)
	next := "ok"
	switch {
	case input.Place == "":
		require.NotEmpty(h.t, h.script, "the script is over, but the call goes on:\n%s", h.text.String())
		next, h.script = h.script[0], h.script[1:]
	case len(h.sinks[input.Place]) > 0:
		outcomes := h.sinks[input.Place]
		next, h.sinks[input.Place] = outcomes[0], outcomes[1:]
	}
	outcome, passed := parseAttempt(h.t, next)
	h.now = h.now.Add(passed)
	return outcome
}

var playbookHash = regexp.MustCompile(`"playbook_hash":"[0-9a-f]{64}"`)

// line is one attempt on a line.
func (h *host) line(input interpreter.ToolInput) string {
	name, found := h.keys[input.OperationKey]
	if !found {
		name = "k" + strconv.Itoa(len(h.keys)+1)
		h.keys[input.OperationKey] = name
	}
	require.Equal(h.t, fmt.Sprintf("%s:%d", input.OperationKey, input.Attempt), input.AttemptKey)
	words := []string{fmt.Sprintf("%s page %d attempt %d %s", input.Tool, input.Page, input.Attempt, name)}
	if input.Place != "" {
		words[0] = "sink " + input.Place + ": " + words[0]
	}
	if input.Index != nil {
		words = append(words, fmt.Sprintf("index=%d", *input.Index))
	}
	fields := map[string]any{}
	for key, field := range input.Fields {
		fields[key] = field.Data
	}
	words = append(words, tables.Encode(h.t, fields))
	if input.Params != nil {
		words = append(words, "$="+h.json(input.Params))
	}
	if input.Args != nil {
		words = append(words, "args="+tables.Encode(h.t, input.Args.Data))
	}
	if input.Result != nil && input.Result.Data != nil { // JSON makes no difference between them
		words = append(words, "result="+tables.Encode(h.t, input.Result.Data))
	}
	if input.State != nil {
		words = append(words, h.state.write(h.t, *input.State))
	}
	if staging := input.Staging; staging != nil {
		words = append(words, fmt.Sprintf("staging round %d", staging.Round))
		if staging.Do != "" {
			words = append(words, string(staging.Do))
		}
	}
	if input.Auth != "" {
		words = append(words, "auth="+input.Auth)
	}
	if input.Origin != "" {
		words = append(words, "origin="+input.Origin)
	}
	if input.IdempotencyKey != "" {
		words = append(words, "idempotency="+input.IdempotencyKey)
	}
	if input.Timeout() != 30*time.Second {
		words = append(words, "timeout="+input.Timeout().String())
	}
	line := strings.Join(words, " ")
	for key, short := range h.keys {
		line = strings.ReplaceAll(line, key, short)
	}
	line = playbookHash.ReplaceAllString(line, `"playbook_hash":"…"`)
	require.NotRegexp(h.t, regexp.MustCompile(`[0-9a-f]{32}`), line, "a key of another call")
	return line
}

// result is how the call ended.
func (h *host) result(result interpreter.CallResult) string {
	text := fmt.Sprintf("%s attempts=%d pages=%d", result.Status, result.Meta.Attempts, result.Meta.Pages)
	if result.Meta.Truncated {
		text += " truncated"
	}
	if after := result.Meta.EndedAt.Sub(result.Meta.StartedAt); after != 0 {
		text += " after " + after.String()
	}
	text += "\n"
	if result.Data.Data != nil {
		text += "data " + tables.Encode(h.t, result.Data.Data) + "\n"
	}
	if failure := result.Error; failure != nil {
		text += fmt.Sprintf("error %s/%s attempt %d page %d policy %d", failure.Kind, failure.Class,
			failure.Attempt, failure.Page, failure.Policy)
		if failure.Exhausted {
			text += " exhausted"
		}
		text += ": " + failure.Message + "\n"
		if failure.Collected.Data != nil {
			text += "collected " + tables.Encode(h.t, failure.Collected.Data) + "\n"
		}
	}
	if state := result.Meta.Incremental; state != nil {
		text += fmt.Sprintf("state %s from %s to %s, %d rows", state.State, tables.Encode(h.t, state.From.Value.Data), tables.Encode(h.t, state.Watermark.Value.Data), state.Rows)
		if state.Pending != nil {
			text += ", pending " + tables.Encode(h.t, state.Pending[0].Writes[0].Move.To.Value.Data)
		}
		text += "\n"
	}
	for _, failure := range result.SinkErrors {
		text += fmt.Sprintf("sink error %s/%s: %s\n", failure.Kind, failure.Class, failure.Message)
	}
	for _, warning := range result.Warnings {
		text += "warning " + warning + "\n"
	}
	return text
}

// parseAttempt reads a line of a script: that of tables.ParseOutcome, and after it
// `meta {…}` for what http tells beside a page, `body …` for that of a failure, or `final` for an error of bad
// configuration.
func parseAttempt(t *testing.T, text string) (interpreter.Outcome, time.Duration) {
	t.Helper()
	text, meta, hasMeta := strings.Cut(text, " meta ")
	text, final := strings.CutSuffix(text, " final")
	if version, held := strings.CutPrefix(text, "held "); held {
		n, err := strconv.Atoi(version)
		require.NoError(t, err)
		return interpreter.Outcome{PutOff: &interpreter.PutOff{Hold: &interpreter.Hold{Version: n}}}, 0
	}
	status, body, hasBody := strings.Cut(text, " body ")
	outcome, passed := tables.ParseOutcome(t, status)
	if hasBody {
		outcome.Err.Body = expression.Of(tables.Value(t, body))
	}
	switch {
	case hasMeta && outcome.Failed():
		outcome.Err.Answer = &interpreter.ToolMeta{}
		require.NoError(t, json.Unmarshal([]byte(meta), outcome.Err.Answer))
	case hasMeta:
		require.NoError(t, json.Unmarshal([]byte(meta), &outcome.Meta))
	}
	if final {
		outcome.Err.Final, outcome.Err.Class = true, interpreter.ClassFinal
	}
	return outcome, passed
}
