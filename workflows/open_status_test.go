package workflows_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"reprise/interpreter"
	"reprise/workflows/control"
	"reprise/workflows/protocol"
)

// publishes records what the runs of a stage publish: when, the status, and when a retry is due.
func (s *stage) publishes() *[]string {
	published := &[]string{}
	s.attributes = true
	s.env.OnUpsertTypedSearchAttributes(mock.MatchedBy(func(temporal.SearchAttributes) bool { return true })).Run(func(args mock.Arguments) {
		attributes := args.Get(0).(temporal.SearchAttributes)
		status, has := attributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword(protocol.StatusAttribute))
		if !has {
			return
		}
		line := fmt.Sprint(s.env.Now().Sub(began), " ", status)
		if due, has := attributes.GetTime(temporal.NewSearchAttributeKeyTime(protocol.NextRetryAttribute)); has {
			line += fmt.Sprint(" until ", due.Sub(began))
		}
		*published = append(*published, line)
	}).Return(nil)
	return published
}

// at sends a command at a time to the workflow with an ID, "" for the run.
func (s *stage) at(when time.Duration, id, update string, command protocol.CommandInput) {
	s.env.RegisterDelayedCallback(func() {
		answer := &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { require.NoError(s.t, err) },
			OnComplete: func(_ any, err error) { require.NoError(s.t, err) },
		}
		if id == "" {
			s.env.UpdateWorkflow(update, update, answer, command)
			return
		}
		require.NoError(s.t, s.env.UpdateWorkflowByID(id, update, update, answer, command))
	}, when)
}

// TestPublishedStatus: a run whose loops, batches or child runs all wait is listed as waiting, where
// that lasts.
func TestPublishedStatus(t *testing.T) {
	t.Parallel()
	loop := func(mode, delay string, firstDelay ...string) string {
		firstRetry := ""
		if len(firstDelay) > 0 {
			firstRetry = "      - {when: \"{{ error is defined and n == 1 }}\", then: {max_attempts: 2, jitter: none, delay: " + firstDelay[0] + "}}\n"
		}
		return `
  - step: fetch
    tool: http
    url: http://localhost
    loop: {in: "{{ [1, 2, 3] }}", iterator: n, mode: ` + mode + `}
    retry:
` + firstRetry + `      - {when: "{{ error is defined }}", then: {max_attempts: 2, delay: ` + delay + `, jitter: none}}
`
	}
	nested := func(then string) string {
		return `
  - step: outer
    tool: playbook
    workflow:
      - step: fetch
        tool: http
        url: http://localhost
        retry: [{when: "{{ error is defined }}", then: {` + then + `, jitter: none}}]
`
	}
	const inner = "default-test-workflow-id/outer#1!1"
	// first lets the first attempt of these iterations fail, "" of all.
	first := func(indexes string) play {
		return func(_ int, in interpreter.ToolInput) (any, error) {
			if in.Attempt == 1 && (indexes == "" || in.Index != nil && strings.Contains(indexes, fmt.Sprint(*in.Index))) {
				return nil, unavailable()
			}
			return "fine", nil
		}
	}
	for _, test := range []struct {
		name, steps string
		answer      play
		people      func(*stage)
		want        []string
	}{
		{"no wait", loop("parallel", "10m"), first("none"), nil, nil},
		{"short waits", loop("sequential", "29s"), first(""), nil, nil},
		{
			"a sequential loop", loop("sequential", "10m"), first("1"), nil,
			[]string{"0s retry_pending until 10m0s", "10m0s running"},
		},
		{
			"a parallel loop", loop("parallel", "10m"), first(""), nil,
			[]string{"0s retry_pending until 10m0s", "10m0s running"},
		},
		{
			"a batch", loop("parallel, batch: 3", "10m"), first("02"), nil,
			[]string{"0s retry_pending until 10m0s", "10m0s running"},
		},
		{
			"a sequential batch", loop("sequential, batch: 3", "10m"), first("02"), nil,
			[]string{"0s retry_pending until 10m0s", "10m0s running", "10m0s retry_pending until 20m0s", "20m0s running"},
		},
		{
			"others run", loop("parallel", "10m", "20s"), first(""), nil,
			[]string{"20s retry_pending until 10m0s", "10m0s running"},
		},
		{
			"people try again earlier", loop("sequential", "10m"), first("0"),
			func(s *stage) { s.at(time.Minute, "", protocol.RetryNowUpdate, protocol.CommandInput{}) },
			[]string{"0s retry_pending until 10m0s", "1m0s running"},
		},
		{
			"people pause it", loop("parallel", "10m"), first(""),
			func(s *stage) {
				s.at(time.Minute, "", protocol.PauseUpdate, protocol.CommandInput{})
				s.at(2*time.Minute, "", protocol.ResumeUpdate, protocol.CommandInput{})
			},
			[]string{"0s retry_pending until 10m0s", "1m0s paused until 10m0s", "2m0s retry_pending until 10m0s", "10m0s running"},
		},
		{
			"a person decides", strings.Replace(loop("parallel", "1s"), "max_attempts: 2", "max_attempts: 1, on_exhausted: pause", 1), first("1"),
			func(s *stage) { s.at(5*time.Minute, "", protocol.RetryNowUpdate, protocol.CommandInput{}) },
			[]string{"30s retry_pending", "5m0s running"},
		},
		{
			"a person decides at once", strings.Replace(loop("parallel", "1s"), "max_attempts: 2", "max_attempts: 1, on_exhausted: pause", 1), first("1"),
			func(s *stage) { s.at(25*time.Second, "", protocol.RetryNowUpdate, protocol.CommandInput{}) },
			nil,
		},
		{
			"a child run waits", nested("max_attempts: 2, delay: 10m"), first(""), nil,
			[]string{"0s retry_pending until 10m0s", "0s retry_pending until 10m0s", "10m0s running", "10m0s running", "10m0s completed"},
		},
		{
			"a child run is paused", nested("max_attempts: 2, delay: 29s"), first(""),
			func(s *stage) {
				s.at(20*time.Second, inner, protocol.PauseUpdate, protocol.CommandInput{})
				s.at(5*time.Minute, inner, protocol.ResumeUpdate, protocol.CommandInput{})
			},
			[]string{"20s paused until 29s", "50s paused", "5m0s running", "5m0s running", "5m0s completed"},
		},
		{
			"a child run awaits a person", strings.Replace(nested("max_attempts: 1"), "max_attempts: 1", "max_attempts: 1, on_exhausted: pause", 1), first(""),
			func(s *stage) { s.at(5*time.Minute, inner, protocol.RetryNowUpdate, protocol.CommandInput{}) },
			[]string{"0s retry_pending", "30s retry_pending", "5m0s running", "5m0s running", "5m0s completed"},
		},
		{
			"waits are short beside the time that the run has taken",
			loop("sequential", "5m", "10h"), first(""), nil,
			[]string{"0s retry_pending until 10h0m0s", "10h0m0s running"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, test.answer)
			published := s.publishes()
			if test.people != nil {
				test.people(s)
			}
			result, _ := s.run(test.steps)
			require.Equal(t, interpreter.Completed, result.Status, "%+v", result.Error)
			last := len(*published) - 1
			require.GreaterOrEqual(t, last, 0)
			require.Equal(t, fmt.Sprint(s.env.Now().Sub(began), " completed"), (*published)[last])
			require.Equal(t, append(test.want, (*published)[last]), *published)
		})
	}
}

// TestEachStatusOfAnOpenRunIsPublished: a run in which all that is open has a status of open runs has
// that status itself.
func TestEachStatusOfAnOpenRunIsPublished(t *testing.T) {
	t.Parallel()
	for _, status := range interpreter.StatusesOf(interpreter.OfRun) {
		if !status.Ended() {
			var waits control.OpenWaits
			waits.AddWork(status, began.Add(time.Hour))
			require.Equal(t, status, waits.Status(), "no run is listed as %q: OpenWaits.Status in package control says when one is", status)
		}
	}
}
