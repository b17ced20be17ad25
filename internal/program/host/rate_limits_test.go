package host_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities/attempt"
	"reprise/internal/program/host"
)

func TestRateLimitsAreReadInTheWordsOfTheLanguage(t *testing.T) {
	t.Parallel()
	limits, err := host.RateLimits(write(t, `
api.example.com: {requests: 20}
github: {requests: 5000, per: 1h, max_pause: 90}
"10.0.0.1:8080": {max_pause: 30s}
`))
	require.NoError(t, err)
	require.Equal(t, attempt.RateLimits{
		"api.example.com": {Requests: 20, Per: time.Second},
		"github":          {Requests: 5000, Per: time.Hour, MaxPause: 90 * time.Second},
		"10.0.0.1:8080":   {Per: time.Second, MaxPause: 30 * time.Second},
	}, limits)

	none, err := host.RateLimits("")
	require.NoError(t, err)
	require.Empty(t, none)
	_, err = host.RateLimits(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestRateLimitsThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	for text, wanted := range map[string]string{
		"- github":                                     "must be a map of keys to limits",
		"github: 20":                                   "github",
		"github: {per: 1s}":                            `needs "requests", "max_pause" or both`,
		"github: {requests: 0}":                        "at least 1",
		"github: {requests: 1, per: 0}":                "more than 0",
		"github: {requests: 1, each: 1s}":              "each",
		"github: {requests: 1}\ngithub: {requests: 2}": "github",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			_, err := host.RateLimits(write(t, text))
			require.ErrorContains(t, err, "read the rate limits")
			require.ErrorContains(t, err, wanted)
		})
	}
}
