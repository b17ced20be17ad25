package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

// So many answers of so many bytes make a history that continues as new.
const (
	largeAnswer  = 900_000
	largeAnswers = 4
)

const (
	// longElement is the one whose answers are large.
	longElement = 2
	// delayedElement is one that the server has wait at first, for so long that it
	// releases its slot.
	delayedElement = 4
	serverWait     = 9 * time.Second
)

// slowJobs is an API whose jobs are done at once, but for one, which is pending
// for some large answers, and another where delays says so.
type slowJobs struct {
	url    string
	delays bool
	mu     sync.Mutex
	log    []jobCall
}

// jobCall is one request for a job.
type jobCall struct {
	job               int
	arrived, answered time.Time
}

func newSlowJobs(t *testing.T, delays bool) *slowJobs {
	t.Helper()
	jobs := &slowJobs{delays: delays}
	server := httptest.NewServer(jobs)
	t.Cleanup(server.Close)
	jobs.url = server.URL
	return jobs
}

// ServeHTTP answers /N.
func (jobs *slowJobs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	made := jobCall{arrived: time.Now()}
	made.job, _ = strconv.Atoi(r.URL.Path[1:])
	answer := map[string]any{"state": "done", "job": made.job}
	jobs.mu.Lock()
	defer jobs.mu.Unlock()
	if made.job == longElement && len(jobs.of(longElement)) < largeAnswers {
		answer = map[string]any{"state": "pending", "ballast": strings.Repeat("x", largeAnswer)}
	}
	w.Header().Set("Content-Type", "application/json")
	if jobs.waits(made.job) == serverWait && len(jobs.of(delayedElement)) == 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(serverWait.Seconds())))
		w.WriteHeader(http.StatusTooManyRequests)
	}
	_ = json.NewEncoder(w).Encode(answer)
	made.answered = time.Now()
	jobs.log = append(jobs.log, made)
}

// waits is how long the requests for a job have to be apart, 0 where it is asked
// for once.
func (jobs *slowJobs) waits(job int) time.Duration {
	switch {
	case job == longElement:
		return pollWait
	case job == delayedElement && jobs.delays:
		return serverWait
	}
	return 0
}

// of are the requests for a job. With jobs.mu, or when all have been made.
func (jobs *slowJobs) of(job int) []jobCall {
	var calls []jobCall
	for _, made := range jobs.log {
		if made.job == job {
			calls = append(calls, made)
		}
	}
	return calls
}

// pollWait is how long the playbook waits between two polls. Timers are never
// early.
const pollWait = 2 * time.Second

// pollJobs asks until a job is done and writes what it was.
const pollJobs = `
  - step: fetch
    tool: http
    url: "{{ jobs }}/{{ item }}"
    SINK
    LOOP
    retry:
      - when: "{{ response.state == 'pending' }}"
        then: {max_attempts: 100, delay: 2s, jitter: none}
      - when: "{{ error.class == 'rate_limited' }}"
        then: {jitter: none}
output: "{{ OUTPUT }}"
`

// TestContinueAsNew: a call of large answers leaves its history
// while it waits. In the next one it waits for what is left, the elements of its
// batch that had ended keep their results, those after it have their turn, and one
// that has given its place back waits on.
func TestContinueAsNew(t *testing.T) {
	t.Parallel()
	const sink = `sink: {tool: http, url: "{{ api }}/api/v1/writes", args: {job: "{{ this.data.job }}"}}`
	for _, c := range []struct {
		name, loop  string
		first, last int    // jobs of the run
		workflow    string // in which the call goes on
		delays      bool
	}{
		{"sequential batch", "mode: sequential, batch: 6", 0, 5, "CallsWorkflow", false},
		{"parallel batch", "mode: parallel, batch: 6", 0, 5, "CallsWorkflow", false},
		{"parallel batch, waiting", "mode: parallel, batch: 6", 0, 5, "CallsWorkflow", true},
		{"sequential", "mode: sequential", 0, 5, "CallsWorkflow", false},
		{"step", "", longElement, longElement, "CallsWorkflow", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorking(t)
			jobs := newSlowJobs(t, c.delays)
			fill := []string{"SINK", sink, "LOOP", "", "OUTPUT", "[fetch]"}
			if c.loop != "" {
				loop := fmt.Sprintf(`loop: {collection: "{{ %d..%d }}", %s, %s}`, c.first, c.last, c.loop, sink)
				fill = []string{"SINK", "", "LOOP", loop, "OUTPUT", "fetch.results"}
			}
			run := w.start(book(strings.NewReplacer(fill...).Replace(pollJobs)), map[string]any{"jobs": jobs.url, "item": longElement})
			result, err := w.outcome(run)
			require.NoError(t, err)
			require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
			require.True(t, slices.ContainsFunc(w.histories, func(h testenv.RunHistory) bool {
				return h.Type == c.workflow && (h.Ending() == "ContinuedAsNew" || c.workflow == "CallsWorkflow")
			}), "no %s goes on", c.workflow)

			var results, writes []any
			for job := c.first; job <= c.last; job++ {
				results = append(results, map[string]any{"state": "done", "job": job})
				writes = append(writes, map[string]any{"job": job})
				calls := jobs.of(job)
				due := map[time.Duration]int{0: 1, pollWait: 1 + largeAnswers, serverWait: 2}[jobs.waits(job)]
				require.Len(t, calls, due, "requests for job %d", job)
				for i := 1; i < len(calls); i++ {
					require.GreaterOrEqual(t, calls[i].arrived.Sub(calls[i-1].answered), jobs.waits(job), "wait after request %d for job %d", i, job)
				}
			}
			require.Equal(t, results, result.Result.Data)
			require.ElementsMatch(t, writes, w.bodies())
			if strings.HasPrefix(c.name, "sequential") {
				require.Equal(t, writes, w.bodies(), "in order")
			}
		})
	}
}
