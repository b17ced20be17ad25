package serve

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// TestBoundsOfSenders passes mostCallers, mostHeaders and mostReporting.
func TestBoundsOfSenders(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "callers.yaml")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("#"), mostCallers+1), 0o600))
	_, err := OpenCallers(path)
	require.ErrorContains(t, err, "has more than 1048576 bytes")

	header := http.Header{"X-Long": {strings.Repeat("x", mostHeaders+1)}, "X-Short": {strings.Repeat("x", mostHeaders)}}
	require.Equal(t, map[string]any{"x-short": header.Get("X-Short")}, deliveryHeaders(&playbook.Trigger{Headers: []string{"X-Long", "X-Short"}}, header))

	p := &reporting{open: map[string]*reports{}}
	for i := range mostReporting {
		p.open[fmt.Sprint(i)] = &reports{}
	}
	_, err = p.acceptReport(t.Context(), "run", interpreter.Answer{AnswerTo: interpreter.AnswerTo{Key: "another"}})
	require.Equal(t, errReporting, err)
	_, err = p.acceptReport(t.Context(), "run", interpreter.Answer{AnswerTo: interpreter.AnswerTo{Key: "7"}})
	require.NoError(t, err, "one that reports already")
}
