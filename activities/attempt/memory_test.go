package attempt_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// TestAttemptsWaitForMemory: one that has much to read waits for the one before,
// one with little does not, and nobody keeps anything.
func TestAttemptsWaitForMemory(t *testing.T) {
	t.Parallel()

	held, release := make(chan struct{}, 1), make(chan struct{})
	answer := sync.OnceFunc(func() { close(release) })
	url := tooltest.AnsweringServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/small" {
			_, _ = io.WriteString(w, "small")
			return
		}

		_, _ = io.WriteString(w, strings.Repeat("a", 300_000))

		if r.URL.Path == "/held" {
			_ = http.NewResponseController(w).Flush()
			held <- struct{}{}

			<-release
		}
	})
	t.Cleanup(answer)

	c := activities.NewCatalogue(activities.Resources{Payloads: attempt.Payloads{AnswersBytes: 4 << 20}})
	t.Cleanup(func() { require.NoError(t, c.Close()) })

	get := func(path string, seconds float64) (interpreter.ToolResult, error) {
		in := tooltest.Input(map[string]any{"url": url + path})(t)
		in.TimeoutSeconds = seconds
		return tooltest.CallHTTP(t, c, in)
	}

	first := make(chan error, 1)

	go func() {
		_, err := get("/held", 100)
		first <- err
	}()

	testenv.Receive(t, held, "the request that is held")

	var object interpreter.ErrorObject

	require.Eventually(t, func() bool { // once the first has read so far
		_, err := get("/large", 1)
		if err == nil {
			return false
		}

		object = tooltest.ErrorObject(t, err)
		return true
	}, testenv.Within(time.Minute), time.Millisecond)
	require.Equal(t, [2]string{"timeout", "retryable"}, [2]string{string(object.Kind), string(object.Class)})
	require.Contains(t, object.Message, "it waited for memory that other attempts of its worker used (REPRISE_MAX_ANSWERS_BYTES)")

	result, err := get("/small", 100)
	require.NoError(t, err)
	require.Equal(t, "small", result.Data.Data)

	answer()
	require.NoError(t, testenv.Receive(t, first, "the attempt that was held"))

	for range 20 {
		_, err := get("/large", 100)
		require.NoError(t, err)
	}
}

// TestValuesLargerThanTheMemoryAreRefused before they are made.
func TestValuesLargerThanTheMemoryAreRefused(t *testing.T) {
	t.Parallel()

	url := tooltest.AnsweringServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "["+strings.Repeat(`{"a":1},`, 100_000)+"1]")
	})
	c := activities.NewCatalogue(activities.Resources{Payloads: attempt.Payloads{AnswersBytes: 8 << 20}})
	t.Cleanup(func() { require.NoError(t, c.Close()) })

	_, err := tooltest.CallHTTP(t, c, tooltest.Input(map[string]any{"url": url})(t))
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, interpreter.KindPayloadTooLarge, object.Kind)
	require.Contains(t, object.Message, "and this worker has 8388608 (REPRISE_MAX_ANSWERS_BYTES)")
}
