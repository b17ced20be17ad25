package runs

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// TestWaitsAreGrouped: iterations that wait for the same are one group, whatever page or
// element they ask for, and there are few groups.
func TestWaitsAreGrouped(t *testing.T) {
	t.Parallel()
	fails := func(i int, message, address string) protocol.IterationRecord {
		return iterationWith(i, interpreter.CallStatus{
			Status: interpreter.RetryPending, Reason: interpreter.ReasonFailure, NextRetryAt: noon.Add(time.Duration(10-i) * time.Second),
			Error: &interpreter.ErrorObject{Message: message, URL: address},
		})
	}
	answer := protocol.Iterations{Iterations: []protocol.IterationRecord{
		iterationWith(0, interpreter.CallStatus{Status: interpreter.Completed}),
		iterationWith(1, interpreter.CallStatus{Status: interpreter.Running, Reason: interpreter.ReasonTurn, NextRetryAt: noon.Add(time.Minute)}),
		iterationWith(2, interpreter.CallStatus{Status: interpreter.RetryPending, Reason: interpreter.ReasonPerson}),
		iterationWith(3, interpreter.CallStatus{Status: interpreter.Running}),
		fails(4, "GET http://127.0.0.1:8088/x?n=4: dial tcp 127.0.0.1:8088: connection refused", "http://127.0.0.1:8088/x?n=4"),
	}}
	for i := 8; i < 10; i++ { // each has a state of its own
		answer.Iterations = append(answer.Iterations, iterationWith(i, interpreter.CallStatus{
			Status: interpreter.RetryPending, Reason: interpreter.ReasonKeeper, Waiting: fmt.Sprintf("the state s/%d is out of reach: it is locked", i), Cause: "it is locked",
		}))
	}
	for i := 5; i < 8; i++ {
		address := fmt.Sprintf("https://api.example.com/orders/%d?page=2", i)
		answer.Iterations = append(answer.Iterations, fails(i, "HTTP 503 from GET "+address, address))
	}
	step := &Step{Loop: &Counts{Total: 10}}
	step.recountLoop([]protocol.Iterations{answer})
	require.Equal(t, 10, step.WaitsOf)
	require.Equal(t, []WaitsFor{
		{3, interpreter.ReasonFailure, "HTTP 503 from GET api.example.com", noon.Add(3 * time.Second)},
		{2, interpreter.ReasonKeeper, "it is locked", time.Time{}},
		{1, interpreter.ReasonTurn, "", noon.Add(time.Minute)},
		{1, interpreter.ReasonPerson, "", time.Time{}},
		{1, interpreter.ReasonFailure, "GET 127.0.0.1:8088: dial tcp 127.0.0.1:8088: connection refused", noon.Add(6 * time.Second)},
	}, step.Waits)

	for i := range 100 {
		answer.Iterations = append(answer.Iterations, fails(i, fmt.Sprint("message ", i), ""))
	}
	step.recountLoop([]protocol.Iterations{answer})
	require.Len(t, step.Waits, shownWaits)
	sum := 0
	for _, group := range step.Waits {
		sum += group.Items
	}
	require.Equal(t, 108, sum)
}

func TestGist(t *testing.T) {
	t.Parallel()
	const address = "https://api.example.com/orders?page=2&fields=id,name"
	for _, row := range []struct {
		failure interpreter.ErrorObject
		want    string
	}{
		{interpreter.ErrorObject{Message: "HTTP 503 from GET " + address, URL: address}, "HTTP 503 from GET api.example.com"},
		{interpreter.ErrorObject{Message: "HTTP 503 from GET " + address + ": busy", URL: address}, "HTTP 503 from GET api.example.com: busy"},
		{
			interpreter.ErrorObject{Message: "HTTP 503 from GET https://api.example.com/orders?page=2 … (cut): busy", URL: address},
			"HTTP 503 from GET api.example.com: busy",
		},
		{interpreter.ErrorObject{Message: "see https://elsewhere.example/x", URL: address}, "see https://elsewhere.example/x"},
		{interpreter.ErrorObject{Message: "no address"}, "no address"},
		{
			interpreter.ErrorObject{
				Kind: interpreter.KindPlaybook, Message: "the run a-7 failed, in a-7-b: HTTP 503 from GET " + address, URL: address,
				Body: expression.Of(map[string]any{"cause": "HTTP 503 from GET " + address}),
			},
			"a child run failed: HTTP 503 from GET api.example.com",
		},
		{interpreter.ErrorObject{Kind: interpreter.KindPlaybook, Message: "the run a-7 was cancelled"}, "the run a-7 was cancelled"},
	} {
		require.Equal(t, row.want, errorGist(&row.failure))
	}
}
