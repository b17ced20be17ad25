package look

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
	"reprise/starter/cli"
)

// TestLogLines: which lines are about a run, and how they are shown.
func TestLogLines(t *testing.T) {
	t.Parallel()
	lines := strings.Join([]string{
		`{"time":"2026-09-01T12:00:00Z","level":"WARN","msg":"an attempt failed","call":"step fetch","step":"fetch","visit":2,"page":3,"attempt":4,"index":13,"operation_key":"abc","kind":"http","error":"HTTP 503\nagain","run":"patients","Attempt":1,"WorkflowID":"patients/fetch#2/13"}`,
		"worker-1  | " + `{"time":"2026-09-01T12:00:01Z","level":"INFO","msg":"python printed","step":"a","visit":1,"page":1,"attempt":1,"sink":"a.sink","run":"patients","output":"\u001b[31mred\nsecond\n"}`,
		`{"time":"x","level":"ERROR","msg":"the \u001b[2Jrun failed","WorkflowID":"patients"}`,
		`{"msg":"of a reprocess","run":"patients/reprocess-1"}`,
		`{"msg":"of another","run":"patients2"}`, `{"msg":"of none"}`,
		`text`, `{"msg": broken`, ``, `["patients"]`,
		`{"run":"patients","msg":"` + strings.Repeat("x", maxLogLine) + `"}`,
		`{"run":"patients","msg":"last"}`,
	}, "\n")
	var out strings.Builder
	tail := newLogTail("log", io.NopCloser(strings.NewReader(lines)), nil)
	view := &LogView{Run: "patients", Options: &LogsOptions{}, Show: func(text string) error {
		out.WriteString(text)
		return nil
	}}
	require.NoError(t, tail.EachLine(t.Context(), false, nil, view.WriteLine))
	at := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	require.Equal(t, at.Format(time.DateTime)+".000Z WARN  fetch#2[13] page 3, attempt 4: an attempt failed, kind: http\n"+
		"  HTTP 503\n  again\n"+
		at.Add(time.Second).Format(time.DateTime)+".000Z INFO  a sink a.sink attempt 1: python printed\n"+
		"  \\u001b[31mred\n  second\n"+
		"x ERROR the \\u001b[2Jrun failed\n"+"       of a reprocess\n"+"       last\n", out.String())
	require.Equal(t, 5, view.shown)
	require.Equal(t, 3, view.foreign)
	require.Equal(t, 1, tail.long)
}

// TestLogsAreFollowed over files that are cut off and moved away, to the end of the
// run.
func TestLogsAreFollowed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	line := func(n int) string { return fmt.Sprintf(`{"run":"r","msg":"line %d"}`+"\n", n) }
	appendTo := func(path, text string) {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(t, err)
		_, err = file.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
	appendTo(path, line(1)+line(2)[:10])
	tail, err := OpenLog((&cli.App{}).Streams, path)
	require.NoError(t, err)
	out := &testenv.Output{}
	view := &LogView{Run: "r", Options: &LogsOptions{}, Show: func(text string) error {
		_, err := io.WriteString(out, text)
		return err
	}}
	var over atomic.Bool
	done := make(chan error, 1)
	go func() {
		defer tail.Close()
		done <- tail.EachLine(t.Context(), true, func(context.Context) bool { return over.Load() }, view.WriteLine)
	}()
	shows := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Count(out.String(), "\n") == n }, patience, 10*time.Millisecond)
		require.Contains(t, out.String(), fmt.Sprintf("line %d\n", n))
	}
	shows(1)
	appendTo(path, line(2)[10:])
	shows(2)
	require.NoError(t, os.Truncate(path, 0))
	appendTo(path, line(3))
	shows(3)
	require.NoError(t, os.Rename(path, path+".1"))
	appendTo(path+".1", line(4)) // of a writer that has not noticed
	shows(4)
	appendTo(path, line(5))
	shows(5)
	require.NoError(t, os.Rename(path, path+".2"))
	appendTo(path, line(6))
	over.Store(true)
	require.NoError(t, testenv.Receive(t, done, "the end of the log"))
	shows(6)
}
