package chaos_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/seal"
	"reprise/internal/observe/ending"
	"reprise/internal/observe/runs"
	"reprise/internal/program/serve"
	"reprise/internal/test/testenv"
	"reprise/workflows/protocol"
)

// TestAnswers: another system answers attempts late, twice, in any order, with
// tokens of others and sometimes not at all, while workers, the server of answers
// and the Temporal server are killed and runs are paused. Each attempt has one
// outcome: the answer that was taken first. Elements of a loop of playbooks that failed for
// good are run again then.
func TestAnswers(t *testing.T) {
	t.Parallel() // with TestMoving
	seed := drawSeed()
	report := newReport(t, "answers", seed)
	rounds := *roundsFlag
	if rounds == shortForm {
		rounds = shortAnswers
	}
	for number := range report.numbers(rounds) {
		form := answerForms[(int(seed%100)+number)%len(answerForms)]
		report.round(t, number, form.name, func(t *testing.T) {
			r := newAnswersRound(t, number, seed, form)
			r.begin(r.playbook(), map[string]any{"other": r.other.url, "items": r.collection(), "size": len(r.plans)})
			r.strike()
			took := r.outcome()
			r.again()
			r.worker.Stop()
			report.add(&r.stage, "answers", form.name, took, r.other.arrivals()-r.attempts)
		})
	}
}

// shortAnswers is how many rounds the short form has.
const shortAnswers = 2

const (
	// answerTimeout is how long an attempt waits for its answer, and answerDelay
	// what follows one that failed.
	answerTimeout = 6 * time.Second
	answerDelay   = time.Second
	// visitAttempts are enough for no visit to fail.
	visitAttempts = 9
)

// answersRound is a run whose attempts another system answers.
type answersRound struct {
	stage

	form     answerForm
	plans    [][]plan
	other    *otherSystem
	serving  *serving
	attempts int // that were made, once the run is over
}

// answerForm is a playbook whose step ask awaits answers.
type answerForm struct {
	name  string
	items [2]int // from and to
	loop  string // of the step, "" for one that is visited again and again
	inner bool   // the step is in a playbook of the loop's step
}

var answerForms = []answerForm{
	{name: "parallel loop", items: [2]int{12, 30}, loop: `{in: "{{ items }}", element: item, mode: parallel, max_concurrency: 8}`},
	{
		name: "playbook of two steps in a parallel loop", items: [2]int{8, 20}, inner: true,
		loop: `{in: "{{ items }}", element: item, mode: parallel, max_concurrency: 6, thresholds: {partial_success: 0}}`,
	},
	{name: "batches", items: [2]int{12, 40}, loop: `{in: "{{ items }}", element: item, mode: parallel, batch: 6, max_concurrency: 20}`},
	{name: "sequential loop", items: [2]int{6, 9}, loop: `{in: "{{ items }}", element: item}`},
	{name: "playbook of two steps in a sequential loop", items: [2]int{4, 7}, inner: true, loop: `{in: "{{ items }}", element: item, thresholds: {partial_success: 0}}`},
	{name: "many visits", items: [2]int{30, 45}},
}

// askText is the step that awaits; AT is what goes before its lines.
const askText = `  - step: ask
    tool: webhook
    timeout: 6s
    on_start: {url: "{{ other }}/start/{{ item }}", body: {token: "{{ callback.token }}", key: "{{ attempt_key }}"}}
    retry:
      - {when: "{{ error.class == 'retryable' }}", then: {max_attempts: 3, delay: 1s, jitter: none}}
`

const answersHead = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: answers}
workload: {other: "", items: [], size: 0}
workflow:
`

const visitsText = answersHead + `  - step: begin
    vars: {n: 0, got: []}
    next: ask
  - step: ask
    tool: webhook
    timeout: 6s
    on_start: {url: "{{ other }}/start/{{ vars.n }}", body: {token: "{{ callback.token }}", key: "{{ attempt_key }}"}}
    retry:
      - {when: "{{ error.class == 'retryable' }}", then: {max_attempts: 9, delay: 1s, jitter: none}}
    vars: {n: "{{ vars.n + 1 }}", got: "{{ vars.got + [{'item': result.item, 'attempt': result.attempt, 'n': result.n}] }}"}
    next:
      - {when: "{{ vars.n < size }}", step: ask}
output: "{{ {'results': vars.got} }}"
`

const elementsText = answersHead + askText + `    loop: LOOP
output: "{{ ask }}"
`

const nestedText = answersHead + `  - step: each
    tool: playbook
    loop: LOOP
    workload: {item: "{{ item }}", other: "{{ other }}"}
    workflow:
INNER
      - step: confirm
        tool: http
        method: POST
        url: "{{ other }}/confirm"
        body: {got: "{{ ask }}"}
output: "{{ each }}"
`

func newAnswersRound(t *testing.T, number int, seed uint64, form answerForm) *answersRound {
	t.Helper()
	r := &answersRound{stage: newStage(t, number, seed), form: form}
	if *roundsFlag > shortForm && r.chance(5) {
		r.server = testenv.TemporalServer(t)
		r.env, r.address = r.server.Env, r.server.Address
	}
	r.queue = r.env.NewTaskQueue()
	key := seal.NewKey()
	keys, err := seal.Parse(key)
	require.NoError(t, err)
	r.variables = []string{seal.Variable + "=" + key}
	for range r.between(form.items[0], form.items[1]) {
		r.plans = append(r.plans, drawPlans(r.random, form.loop == ""))
	}
	r.serving = newServing(t, serve.Options{Client: r.env.Client(), Keys: keys})
	reader := &runs.Reader{Client: r.env.Client(), Namespace: r.env.Namespace}
	most := maxAttempts
	if form.loop == "" {
		most = visitAttempts
	}
	r.other = newOtherSystem(t, r.plans, most, r.serving.url, keys, reader)
	for item := range r.plans {
		if form.inner && r.chance(4) {
			r.other.refuses[item] = true
		}
	}
	r.requests = r.other.moves
	r.made = func() string { return fmt.Sprintf("%d requests came for %d items", r.other.arrivals(), len(r.plans)) }
	return r
}

func (r *answersRound) collection() []any {
	list := make([]any, len(r.plans))
	for i := range list {
		list[i] = i
	}
	return list
}

// serving is the server of answers, which comes and goes at one address.
type serving struct {
	t       *testing.T
	options serve.Options
	address string
	url     string
	stop    func()
}

func newServing(t *testing.T, options serve.Options) *serving {
	t.Helper()
	s := &serving{t: t, options: options, address: "127.0.0.1:0"}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *serving) start() {
	s.t.Helper()
	var listener net.Listener
	require.Eventually(s.t, func() (ok bool) {
		var err error
		listener, err = net.Listen("tcp", s.address)
		return err == nil
	}, patience, beat)
	s.address = listener.Addr().String()
	s.url = "http://" + s.address
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = serve.New(s.options).Run(ctx, listener, nil)
	}()
	s.stop = func() {
		cancel()
		testenv.Receive(s.t, ended, "the end of the server of answers")
	}
}

// strike lets things go wrong while answers come.
func (r *answersRound) strike() {
	r.t.Helper()
	blows := []func(){r.blowKill, r.blowKill, r.blowServe, r.blowPause, r.blowPause}
	if r.server != nil {
		blows = append(blows, r.blowServer, r.blowServer)
	}
	if r.chance(3) {
		r.dieAt(moment{What: []string{"activity", "timer"}[r.random.IntN(2)], When: []string{"before", "after"}[r.random.IntN(2)], Nth: r.between(1, 4)})
	}
	r.startWorker()
	for range r.between(1, 4) {
		at := time.Now().Add(time.Duration(r.between(0, 5000)) * time.Millisecond)
		over := false
		r.await("something goes wrong", func() bool {
			over = r.ended()
			return over || time.Now().After(at)
		})
		if over {
			return
		}
		blows[r.random.IntN(len(blows))]()
	}
}

func (r *answersRound) sleep(least, most int) {
	time.Sleep(time.Duration(r.between(least, most)) * time.Millisecond)
}

func (r *answersRound) blowKill() {
	r.kill()
	r.sleep(0, 4000)
	r.startWorker()
}

func (r *answersRound) blowServe() {
	r.t.Log("the server of answers restarts")
	r.serving.stop()
	r.sleep(0, 3000)
	r.serving.start()
}

func (r *answersRound) blowServer() {
	r.server.Kill()
	r.kills++
	r.sleep(0, 1000)
	r.server.Start(r.t)
}

func (r *answersRound) blowPause() {
	step := ""
	if r.chance(2) {
		step = map[bool]string{true: "each", false: "ask"}[r.form.inner]
	}
	_, err := r.steer(protocol.PauseUpdate, step)
	if err != nil {
		require.True(r.t, r.isOver(), "pause: %v", err)
		return
	}
	h := halt{step: step, from: time.Now()}
	r.sleep(1000, 9000)
	h.to = time.Now()
	if _, err := r.steer(protocol.ResumeUpdate, step); err != nil {
		require.True(r.t, r.isOver(), "resume: %v", err)
		return
	}
	r.t.Logf("paused %q for %s", step, h.to.Sub(h.from))
	r.other.halted(h)
}

// outcome waits for the end of the run and checks what has become of each attempt.
func (r *answersRound) outcome() time.Duration {
	r.t.Helper()
	r.await("the run ends", r.ended)
	result, err := ending.WaitForResult(r.t.Context(), r.run)
	require.NoError(r.t, err)
	r.other.wait(r.t)
	histories := testenv.Histories(r.t, r.env.Client(), r.run.GetID(), r.run.GetRunID())
	r.checkAnswers(result)
	r.checkMarks(histories)
	r.checkHistories(histories)
	r.t.Logf("%d attempts; answers: %v; %d histories, %d of them went on", r.attempts, r.other.tally(), len(histories), wentOn(histories))
	return r.took(histories)
}
