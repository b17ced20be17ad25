package connect

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
)

// TestOutcomesAreNoErrorsOfTheWorker: the SDK's line about an attempt that failed
// is for debugging; other errors, and other lines, stay.
func TestOutcomesAreNoErrorsOfTheWorker(t *testing.T) {
	t.Parallel()
	outcome := temporal.NewApplicationErrorWithOptions("HTTP 503", "http",
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{1}})
	for name, test := range map[string]struct {
		message string
		err     error
		quiet   bool
	}{
		"an outcome":          {"Activity error.", outcome, true},
		"a cancel":            {"Activity error.", temporal.NewCanceledError(), true},
		"handed back":         {"Activity error.", temporal.NewApplicationError("lost touch", "worker_lost"), false},
		"no tool":             {"Activity error.", errors.New("unable to find activityType=x"), false},
		"without details":     {"Activity error.", temporal.NewNonRetryableApplicationError("x", "y", nil), false},
		"of something else":   {"Workflow panic", outcome, false},
		"panic of the worker": {"Activity panic.", errors.New("nil pointer"), false},
	} {
		for _, level := range []slog.Level{slog.LevelDebug, slog.LevelWarn} {
			var written bytes.Buffer
			handler := slog.NewTextHandler(&written, &slog.HandlerOptions{Level: level})
			logger := log.With(log.NewStructuredLogger(slog.New(quietHandler{handler})), "Namespace", "default")
			logger.Error(test.message, "Attempt", 1, "Error", test.err)
			switch {
			case !test.quiet:
				require.Contains(t, written.String(), "level=ERROR", name)
			case level == slog.LevelDebug:
				require.Contains(t, written.String(), "level=DEBUG", name)
			default:
				require.Empty(t, written.String(), name)
			}
		}
	}
}
