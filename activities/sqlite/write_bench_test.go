package sqlite_test

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities/sqlite"
	"reprise/activities/tool"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// BenchmarkWritesOfPages writes 400 pages of 100 rows as a sink does whose call is at its next page afterwards, and
// reports the processor time of a page.
func BenchmarkWritesOfPages(b *testing.B) {
	const pages, rows = 400, 100
	lite := sqlite.New(tool.Resources{Directory: b.TempDir(), MaxResponseBytes: 64 << 20})
	b.Cleanup(func() { require.NoError(b, lite.Close()) })
	written := 0
	write := func(fields map[string]any, args any, note *interpreter.LedgerEntry) {
		fields["path"] = "pages.db"
		in := interpreter.ToolInput{Step: "write", Fields: tooltest.Fields(fields), Args: tooltest.Value(args), Note: note}
		in.OperationKey, in.Fingerprint = strconv.Itoa(written), "f"
		_, err := lite.Write(b.Context(), in)
		require.NoError(b, err)
		written++
	}
	write(map[string]any{"statement": "CREATE TABLE pages (id INTEGER, patient TEXT, score REAL)"}, nil, nil)
	page := make([]any, rows)
	for i := range page {
		page[i] = map[string]any{"id": i, "patient": fmt.Sprint("patient ", i), "score": 0.5 * float64(i)}
	}
	begun := processorTime(b)
	for b.Loop() {
		for at := range pages {
			write(map[string]any{"table": "pages"}, page, &interpreter.LedgerEntry{Call: "call", Written: at + 1 + written, Forget: at + written, Continuation: []byte("on")})
		}
	}
	b.ReportMetric(float64((processorTime(b)-begun).Microseconds())/float64(b.N*pages), "cpu-µs/page")
}

// processorTime is what this process has taken of processors.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
