package serve_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/callback"
	"reprise/internal/program/serve"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// callersFlag is how many answer at once; the short form has few.
var callersFlag = flag.Int("serve.callers", 60, "callers that answer at the same time in TestCallersAtOnce")

// crowd are webhooks of a loop, in workflows of their own or in batches.
const crowd = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: crowd}
workload: {other: "", size: 1}
workflow:
  - step: ask
    tool: webhook
    loop: {in: "{{ 0..size-1 }}", iterator: n, mode: parallel, max_concurrency: 500, batch: BATCH}
    on_start: {url: "{{ other }}", body: {token: "{{ callback.token }}", complete: "{{ callback.complete }}"}}
output: "{{ sum(ask.results) }}"
`

// single is a run that waits for one answer.
const single = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: single}
workload: {other: ""}
workflow:
  - step: ask
    tool: webhook
    on_start: {url: "{{ other }}", body: {token: "{{ callback.token }}", complete: "{{ callback.complete }}"}}
output: "{{ ask }}"
`

// TestCallersAtOnce: as many answers as there are waiting attempts come at the same
// time, and then again, to one run and to many. Each is answered as the document says,
// none is lost and none counts twice.
func TestCallersAtOnce(t *testing.T) {
	t.Parallel()
	for name, batch := range map[string]int{"a workflow for each iteration": 1, "batches": 100} {
		t.Run("one run, "+name, func(t *testing.T) {
			a := newAsking(t)
			callers := *callersFlag
			a.told = make(chan map[string]any, callers)
			a.write("crowd", strings.ReplaceAll(crowd, "BATCH", fmt.Sprint(batch)))
			given := a.start("crowd/runs", a.ci, fmt.Sprintf(`{"other": %q, "size": %d}`, a.other, callers))
			require.Equal(t, http.StatusAccepted, given.status, string(given.body))
			run := a.env.Client().GetWorkflow(t.Context(), given.values["workflow_id"].(string), "")
			sum, known := 0, map[string]bool{}
			for left := callers; left > 0; { // no more than 500 are open at a time
				tokens := a.someTokens(left, known)
				left -= len(tokens)
				sum += a.answerAll(tokens)
			}
			require.Equal(t, sum, a.ends(run).Result.Data)
		})
	}
	t.Run("many runs", func(t *testing.T) {
		a := newAsking(t)
		callers := *callersFlag
		a.told = make(chan map[string]any, callers)
		a.write("single", single)
		runs := make([]client.WorkflowRun, callers)
		var group sync.WaitGroup
		began := time.Now()
		for i := range runs {
			group.Go(func() {
				key := fmt.Sprint("run-", i)
				for {
					status, body := a.send("/v1/playbooks/single/runs", fmt.Sprintf(`{"other": %q}`, a.other), "Authorization", "Bearer "+a.ci, "Idempotency-Key", key)
					if status == http.StatusServiceUnavailable {
						continue // busy; the key makes it the same run
					}
					runs[i] = a.env.Client().GetWorkflow(t.Context(), fmt.Sprint(body["workflow_id"]), "")
					return
				}
			})
		}
		testenv.Wait(t, group.Wait, "the starts of all runs")
		t.Logf("%.0f runs a second were started", float64(callers)/time.Since(began).Seconds())
		sum, total := a.answerAll(a.tokens(callers)), 0
		for _, run := range runs {
			n, _ := a.ends(run).Result.Data.(int)
			total += n
		}
		require.Equal(t, sum, total)
	})
}

// tokens are those of the next n attempts.
func (a *asking) tokens(n int) []string {
	a.t.Helper()
	known, tokens := map[string]bool{}, make([]string, 0, n)
	for len(tokens) < n {
		tokens = append(tokens, a.someTokens(n-len(tokens), known)...)
	}
	return tokens
}

// someTokens are those of the next attempts whose keys are not known yet: n, or those
// after which nobody was asked for some time.
func (a *asking) someTokens(n int, known map[string]bool) []string {
	a.t.Helper()
	const quiet = 10 * time.Second
	tokens := []string{}
	for len(tokens) < n {
		token := ""
		if len(tokens) == 0 {
			token = a.token()
		} else if token = a.tokenWithin(quiet); token == "" {
			break
		}
		address, err := callback.OpenToken(a.keys, token)
		require.NoError(a.t, err)
		if !known[address.To.Key] { // the request may have been made again
			tokens = append(tokens, token)
		}
		known[address.To.Key] = true
	}
	return tokens
}

// send posts JSON, and may be used by many at once.
func (a *asking) send(path, body string, header ...string) (int, map[string]any) {
	request, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = response.Body.Close() }()
	var told map[string]any
	_ = json.NewDecoder(response.Body).Decode(&told)
	return response.StatusCode, told
}

// answerAll completes every attempt at the same time with a number of its own, and
// says it again until it is known. It gives the sum.
func (a *asking) answerAll(tokens []string) (sum int) {
	a.t.Helper()
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		count = map[string]int{}
		slow  []time.Duration
	)
	began := time.Now()
	for i, token := range tokens {
		sum += i + 1
		group.Go(func() {
			path, body := callback.Path+token+"/complete", fmt.Sprintf(`{"result": %d}`, i+1)
			for {
				asked := time.Now()
				status, told := a.send(path, body)
				if status == 0 && a.t.Context().Err() == nil {
					continue // the connection broke
				}
				mu.Lock()
				count[strings.TrimSuffix(fmt.Sprint(status, " ", cmp.Or(told["accepted"], told["detail"])), " <nil>")]++
				slow = append(slow, time.Since(asked))
				mu.Unlock()
				if status != http.StatusServiceUnavailable {
					return
				}
			}
		})
	}
	testenv.Wait(a.t, group.Wait, "the answers to all callers")
	took := time.Since(began)
	for said := range count {
		require.Regexp(a.t, "^(200 true|202 true|202 false|503 .*)$", said)
	}
	slices.Sort(slow)
	a.t.Logf("%d answers in %s, %.0f a second, %s for the median, %s for the slowest: %v", len(tokens), took.Round(time.Millisecond),
		float64(len(tokens))/took.Seconds(), slow[len(slow)/2].Round(time.Millisecond), slow[len(slow)-1].Round(time.Millisecond), count)
	return sum
}

// stuckClient is one whose updates of a workflow, or of its children, nobody takes until
// it is let go.
type stuckClient struct {
	client.Client
	workflowID string
	free       chan struct{}

	mu   sync.Mutex
	open int // updates that are stuck
	most int // at a time
}

func (s *stuckClient) UpdateWorkflow(ctx context.Context, options client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	if strings.HasPrefix(options.WorkflowID, s.workflowID) {
		s.count(1)
		defer s.count(-1)
		select {
		case <-s.free:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.Client.UpdateWorkflow(ctx, options)
}

func (s *stuckClient) count(n int) (open, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open += n
	s.most = max(s.most, s.open)
	return s.open, s.most
}

// TestAnswersThatDoNotWait: where many answers to a workflow wait for what becomes of
// them, those that come on top are left with the Temporal server, and count.
func TestAnswersThatDoNotWait(t *testing.T) {
	t.Parallel()
	const callers = 40
	stuck := &stuckClient{free: make(chan struct{})}
	a := newAsking(t, func(o *serve.Options) { stuck.Client, o.Client = o.Client, stuck })
	a.told = make(chan map[string]any, callers)
	stuck.workflowID = a.queue
	run, err := a.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: a.queue, TaskQueue: a.queue}, protocol.PlaybookWorkflowName,
		protocol.Input{
			Name: "crowd.yaml", Source: strings.ReplaceAll(crowd, "BATCH", fmt.Sprint(callers)),
			Workload: expression.Of(map[string]any{"other": a.other, "size": callers}),
		})
	require.NoError(t, err)
	tokens := a.tokens(callers)
	var group sync.WaitGroup
	taken := make(chan any, callers)
	for i, token := range tokens {
		group.Go(func() {
			if status, told := a.send(callback.Path+token+"/complete", fmt.Sprintf(`{"result": %d}`, i+1)); status == http.StatusAccepted {
				taken <- told["accepted"]
			}
		})
	}
	for range callers - serve.AnswersOfOne {
		select {
		case one := <-taken:
			require.Equal(t, false, one)
		case <-time.After(patience):
			require.Fail(t, "an answer waits for what nobody says")
		}
	}
	_, most := stuck.count(0)
	require.LessOrEqual(t, most, serve.AnswersOfOne)
	close(stuck.free)
	testenv.Wait(t, group.Wait, "the answers to all callers")
	require.Len(t, taken, serve.AnswersOfOne)
	require.Equal(t, callers*(callers+1)/2, a.ends(run).Result.Data)
}

// TestAnswersOfTheEndThatDoNotWait: what a workflow that has ended took is known, and
// what it did not take is late, also while others have every turn.
func TestAnswersOfTheEndThatDoNotWait(t *testing.T) {
	t.Parallel()
	stuck := &stuckClient{free: make(chan struct{})}
	a := newAsking(t, func(o *serve.Options) {
		stuck.Client, o.Client = o.Client, stuck
		o.Limits.Answers = 1
	})
	stuck.workflowID = a.queue + "-waits"
	ended, known := a.ask("ended", webhook)
	require.Equal(t, http.StatusAccepted, a.callback(known, "complete", `{"result": 1}`).status)
	require.Equal(t, 1, a.ends(ended).Result.Data)
	run, token := a.ask("waits", webhook)
	answered := make(chan int, 1)
	go func() {
		status, _ := a.send(callback.Path+token+"/complete", `{"result": 2}`)
		answered <- status
	}()
	require.Eventually(t, func() bool {
		open, _ := stuck.count(0)
		return open == 1
	}, patience, tick)
	repeated := a.callback(known, "complete", `{"result": 1}`)
	require.Equal(t, http.StatusOK, repeated.status, string(repeated.body))
	require.Equal(t, http.StatusConflict, a.callback(known, "complete", `{"result": 3}`).status)
	close(stuck.free)
	require.Equal(t, http.StatusAccepted, testenv.Receive(t, answered, "the status of the kept answer"))
	require.Equal(t, 2, a.ends(run).Result.Data)
}

// deafClient is one that does not hear what became of the first update.
type deafClient struct {
	client.Client
	first atomic.Bool
}

func (d *deafClient) UpdateWorkflow(ctx context.Context, options client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	handle, err := d.Client.UpdateWorkflow(ctx, options)
	if err != nil || !d.first.CompareAndSwap(false, true) {
		return handle, err
	}
	err = d.GetWorkflow(ctx, options.WorkflowID, "").Get(ctx, nil)
	if err != nil {
		return handle, err
	}
	return nil, context.DeadlineExceeded
}

// TestAnswerThatEndsItsRunUnheard was taken, though that is heard late.
func TestAnswerThatEndsItsRunUnheard(t *testing.T) {
	t.Parallel()
	deaf := &deafClient{}
	a := newAsking(t, func(o *serve.Options) { deaf.Client, o.Client = o.Client, deaf })
	run, token := a.ask("unheard", webhook)
	given := a.callback(token, "complete", `{"result": 1}`)
	require.Equal(t, http.StatusAccepted, given.status, string(given.body))
	require.Equal(t, map[string]any{"accepted": true}, given.values)
	require.True(t, deaf.first.Load())
	require.Equal(t, 1, a.ends(run).Result.Data)
	require.Equal(t, http.StatusOK, a.callback(token, "complete", `{"result": 1}`).status)
}
