package attempt

import (
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities/tool"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/ratelimit"
)

// TestWorkersThatStop passes maxCuts.
func TestWorkersThatStop(t *testing.T) {
	t.Parallel()
	require.False(t, DeliveryState{Cut: maxCuts}.IsExhausted(0))
	spent := DeliveryState{Cut: maxCuts + 1}
	require.True(t, spent.IsExhausted(0))
	require.Equal(t, "the attempt was interrupted 21 times by a stopping worker", spent.ExhaustedFailure(0).Message)
}

// TestLongFailures passes tool.MaxMessage and mostMasked: of a body that is longer than what is searched for secrets the end is
// lost, of a shorter one it is kept.
func TestLongFailures(t *testing.T) {
	t.Parallel()
	failure := func(body string) *interpreter.ErrorObject {
		return errorObject(&tool.Error{Message: strings.Repeat("m", 2*tool.MaxMessage), Body: body}, interpreter.ToolInput{}, &tool.Secrets{})
	}
	require.LessOrEqual(t, len(failure("").Message), tool.MaxMessage)
	for length, whole := range map[int]bool{mostMasked - 10: true, mostMasked: false} {
		body, _ := failure(strings.Repeat("b", length) + "END").Body.Data.(string)
		require.Equal(t, whole, strings.HasSuffix(body, "END"), length)
	}
}

// TestLargeSecretResults passes maxSecretBytes and maxSecretTexts.
func TestLargeSecretResults(t *testing.T) {
	t.Parallel()
	var many []any
	for i := range maxSecretTexts + 1 {
		many = append(many, fmt.Sprint("text number ", i))
	}
	for says, data := range map[string]any{
		"its secret result has 65537 bytes of JSON, the limit is 65536": strings.Repeat("x", maxSecretBytes-1),
		"its secret result has 65 texts and numbers, the limit is 64":   many,
	} {
		_, err := Resources{}.sealResult(t.Context(), interpreter.ToolInput{Step: "login", Secret: &interpreter.SecretWork{Seals: true}},
			interpreter.ToolResult{Data: expression.Of(data)})
		require.ErrorContains(t, err, says)
	}
}

// TestShapersLeaveProcessors passes maxShapers: with more processors, no more goroutines work on one list.
func TestShapersLeaveProcessors(t *testing.T) {
	before := runtime.GOMAXPROCS(2 * maxShapers)
	defer runtime.GOMAXPROCS(before)
	var working, most atomic.Int64
	full := make(chan struct{})
	_, err := shapeInParts(t.Context(), 20*maxShapers*rowsOfPart, func(int, int) ([]string, error) {
		n := working.Add(1)
		defer working.Add(-1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		if n == maxShapers && most.Load() == maxShapers {
			select {
			case <-full:
			default:
				close(full)
			}
		}
		return nil, testenv.WaitResult(t, func() error { <-full; return nil }, "as many goroutines as there may be")
	})
	require.NoError(t, err)
	require.EqualValues(t, maxShapers, most.Load())
}

// TestBoundsOfQueues passes maxTurns, mostSends, mostTries and maxLimitSummary.
func TestBoundsOfQueues(t *testing.T) {
	t.Parallel()
	limit := ratelimit.Limit{Key: strings.Repeat("k", 2*maxLimitSummary), Requests: mostSends + 1, PerSeconds: 1}
	queue := &turnQueue{}
	for range maxTurns + 1 {
		queue.waiters = append(queue.waiters, newWaiter(t.Context(), limit, interpreter.ToolInput{}))
	}
	asked, request, _ := queue.leaseRequest(time.Now())
	require.Len(t, asked, maxTurns)
	require.Equal(t, maxTurns, request.Count)

	_, ok := queue.useTurn(time.Now(), limit, &beginning{})
	require.True(t, ok)
	require.Empty(t, queue.sends, "of a limit of that many requests nothing is remembered")

	often := queue.waiters[0]
	often.tries, often.due = mostTries, true
	queue.sendAway(often, time.Time{})
	left := queue.leaving[0].away
	require.Equal(t, mostTries, left.until.Turn.Tries)
	require.Less(t, len(left.text), maxLimitSummary+200)
}

// TestWarningsOfLimits passes mostWarned: what is warned of is remembered for so many steps.
func TestWarningsOfLimits(t *testing.T) {
	t.Parallel()
	p := &pacer{
		limits: RateLimits{"api": playbook.OwnedLimit{Requests: 1, Per: time.Second}}, warned: map[string]bool{},
		logger: slog.New(slog.DiscardHandler),
	}
	for i := range mostWarned + 1 {
		limit := p.limitOf(interpreter.ToolInput{Step: fmt.Sprint(i), RateLimit: &ratelimit.Limit{Key: "api", Requests: 2, PerSeconds: 1}})
		require.Equal(t, 1, limit.Requests)
	}
	require.Len(t, p.warned, mostWarned)
}
