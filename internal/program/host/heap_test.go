package host_test

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/host"
)

func TestReservedBytes(t *testing.T) {
	t.Parallel()
	given := func(gogc string) func(string) (string, bool) {
		return func(name string) (string, bool) { return gogc, name == "GOGC" && gogc != "" }
	}
	for _, test := range []struct {
		gogc        string
		limit, want int64
	}{
		{limit: 1 << 62, want: 32 << 20},
		{limit: 512 << 20, want: 32 << 20},
		{limit: 128 << 20, want: 8 << 20},
		{gogc: "100", limit: 1 << 62},
		{gogc: "off", limit: 1 << 62},
	} {
		require.Equal(t, test.want, host.ReservedBytes(given(test.gogc), test.limit), test)
	}
}

// asReserving has the test's own program be one that reserves heap.
const asReserving = "REPRISE_TEST_RESERVES"

// TestReserveHeap: garbage is collected less often, and what is reserved is neither memory that the process has nor memory
// in use, which would have workflows dropped.
func TestReserveHeap(t *testing.T) {
	t.Parallel()
	if os.Getenv(asReserving) != "" {
		reserving(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReserveHeap$")
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "GOGC=") && !strings.HasPrefix(entry, "GOMEMLIMIT=") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, asReserving+"=1")
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", output)
}

var garbage []byte

func reserving(t *testing.T) {
	t.Helper()
	collections := func() uint32 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 1000 {
			garbage = make([]byte, 100<<10)
		}
		runtime.ReadMemStats(&after)
		return after.NumGC - before.NumGC
	}
	debug.SetGCPercent(100)
	runtime.GC()
	often, inUse, taken := collections(), host.MemoryInUse(), resident(t)
	host.ReserveHeap()
	runtime.GC()
	require.InDelta(t, inUse, host.MemoryInUse(), 4<<20)
	require.InDelta(t, taken, resident(t), 8<<20)
	require.Less(t, 3*collections(), often)
}

// resident is the memory of this process, in bytes; always the same where that is not known.
func resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	require.NoError(t, err)
	return pages * os.Getpagesize()
}
