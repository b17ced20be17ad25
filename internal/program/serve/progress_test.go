package serve_test

import (
	"context"
	"fmt"
	"net/http"
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
	"reprise/interpreter"
	"reprise/workflows/protocol"
)

// countingClient counts the updates that it sends, and keeps what they report.
type countingClient struct {
	client.Client
	mu   sync.Mutex
	sent []interpreter.Answer
}

func (c *countingClient) UpdateWorkflow(ctx context.Context, options client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	if given, is := options.Args[0].(interpreter.Answer); is {
		c.mu.Lock()
		c.sent = append(c.sent, given)
		c.mu.Unlock()
	}
	return c.Client.UpdateWorkflow(ctx, options)
}

// TestProgressInFloods: a thousand reports of one attempt are taken, of which few
// reach its history, the last one among them, before the answer that ends it.
func TestProgressInFloods(t *testing.T) {
	t.Parallel()
	counting := &countingClient{}
	a := newAsking(t, func(o *serve.Options) {
		counting.Client = o.Client
		o.Client = counting
	})
	run, token := a.ask("flood", webhook)
	began := time.Now()
	const many, callers = 1000, 20
	var next atomic.Int64
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for i := next.Add(1); i <= many; i = next.Add(1) {
				given := a.callback(token, "progress", fmt.Sprintf(`{"done": %d}`, i))
				require.Equal(t, http.StatusAccepted, given.status, string(given.body))
			}
		})
	}
	testenv.Wait(t, group.Wait, "the answers to all reports")
	took := time.Since(began)
	t.Logf("%d reports in %s", many, took)
	require.Equal(t, http.StatusAccepted, a.callback(token, "progress", `{"done": 5000}`).status)
	require.Equal(t, http.StatusAccepted, a.callback(token, "complete", `{"result": "done"}`).status)
	require.Equal(t, http.StatusConflict, a.callback(token, "progress", `{"done": 5001}`).status, "it is over, and nothing is held back")
	require.Equal(t, "done", a.ends(run).Result.Data)
	counting.mu.Lock()
	defer counting.mu.Unlock()
	require.LessOrEqual(t, len(counting.sent), int(took/(500*time.Millisecond))+5)
	require.EqualValues(t, 5000, counting.sent[len(counting.sent)-3].Done, "the newest, before complete and the late one")
	require.Equal(t, interpreter.AnswerComplete, counting.sent[len(counting.sent)-2].Verb)
}

// TestTheLastProgressArrives, though nothing comes behind it, also where the server ends.
func TestTheLastProgressArrives(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{false, true} {
		t.Run(fmt.Sprint(ends), func(t *testing.T) {
			t.Parallel()
			a := newAsking(t)
			_, token := a.ask("last", webhook)
			address, err := callback.OpenToken(a.keys, token)
			require.NoError(t, err)
			for i := range 10 {
				require.Equal(t, http.StatusAccepted, a.callback(token, "progress", fmt.Sprintf(`{"done": %d}`, i+1)).status)
			}
			if ends {
				a.world.stop()
			}
			require.Eventually(t, func() bool {
				var asked protocol.AttemptDetails
				value, err := a.env.Client().QueryWorkflow(t.Context(), address.Workflow, "", protocol.AttemptDetailsQuery, address.To)
				return err == nil && value.Get(&asked) == nil && asked.Awaiting != nil && asked.Awaiting.Done == 10
			}, patience, 20*time.Millisecond)
		})
	}
}

// TestAnswersThatGrowOnTheirWay: what JSON escapes counts, before Temporal sees it.
func TestAnswersThatGrowOnTheirWay(t *testing.T) {
	t.Parallel()
	counting := &countingClient{}
	a := newAsking(t, func(o *serve.Options) {
		counting.Client = o.Client
		o.Client = counting
	})
	run, token := a.ask("large", webhook)
	large := a.callback(token, "complete", `{"result": "`+strings.Repeat("<", 400_000)+`"}`)
	require.Equal(t, http.StatusRequestEntityTooLarge, large.status, string(large.body))
	require.Contains(t, large.values["detail"], "1900000")
	require.Empty(t, counting.sent)
	fits := strings.Repeat("x", 1_000_000)
	require.Eventually(t, func() bool { // a server that is busy may take its time
		status, _ := a.send(callback.Path+token+"/complete", `{"result": "`+fits+`"}`)
		return status == http.StatusAccepted || status == http.StatusOK
	}, patience, tick)
	require.Equal(t, fits, a.ends(run).Result.Data)
}
