package host_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
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

// asAllocating has the test's own program allocate, after it has reserved heap or not.
const asAllocating = "REPRISE_TEST_ALLOCATES"

// TestReserveHeap: garbage is collected less often, and what is reserved is neither memory that the process has nor memory
// in use, which would have workflows dropped.
func TestReserveHeap(t *testing.T) {
	t.Parallel()
	if how := os.Getenv(asAllocating); how != "" {
		allocating(t, how == "reserved")
		return
	}
	nextCollection := func(how string) int {
		env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
			return strings.HasPrefix(entry, "GOGC=") || strings.HasPrefix(entry, "GOMEMLIMIT=")
		})
		var (
			output []byte
			err    error
		)
		// A process whose heap was large while it started, as on a busy machine, reserves memory that was in use before: another try.
		for tries := 0; tries < 5 && (tries == 0 || err != nil); tries++ {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReserveHeap$")
			cmd.Env = slices.Concat(env, []string{asAllocating + "=" + how})
			output, err = cmd.CombinedOutput()
		}
		require.NoError(t, err, "%s", output)
		count, _, _ := strings.Cut(string(output), "\n")
		n, err := strconv.Atoi(count)
		require.NoError(t, err, "%s", output)
		return n
	}
	require.Greater(t, nextCollection("reserved"), 2*nextCollection("as Go does"))
}

// allocating prints at which size of the heap garbage is collected next: how often it is collected depends on what else the machine
// does.
func allocating(t *testing.T, reserves bool) {
	t.Helper()
	debug.SetGCPercent(100)
	if reserves { // at first, as a worker does: memory that was in use before would be cleared, and so be taken
		inUse, taken := host.MemoryInUse(), resident(t)
		host.ReserveHeap()
		require.InDelta(t, inUse, host.MemoryInUse(), 4<<20)
		require.InDelta(t, taken, resident(t), 8<<20)
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	fmt.Println(memory.NextGC)
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
