package testenv

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// mostPatience bounds how much longer limits get than they are written down.
const mostPatience = 10

// Within is the limit of what takes at most d on a machine with nothing else to do.
// It is d, times how much slower this machine is now: TEST_PATIENCE if that is set,
// otherwise the programs that want a processor for each processor there is. Every limit
// on real work in a test is one of these; what a test compares with a limit of the code
// under test is not.
func Within(d time.Duration) time.Duration {
	return time.Duration(float64(d) * slowness(os.Getenv("TEST_PATIENCE"), "/proc/loadavg", runtime.NumCPU()))
}

// slowness is the factor of Within: what is given, or else what the kernel says of the
// last minute and of now, whichever is more. It is 1 where neither is known.
func slowness(given, loadFile string, processors int) float64 {
	if factor, err := strconv.ParseFloat(given, 64); err == nil {
		return min(max(factor, 1), mostPatience)
	}
	text, err := os.ReadFile(loadFile) // "0.20 0.97 2.82 3/250 4711": over 1, 5 and 15 minutes, running/all
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 4 {
		return 1
	}
	lately, _ := strconv.ParseFloat(fields[0], 64)
	now, _, _ := strings.Cut(fields[3], "/")
	running, _ := strconv.ParseFloat(now, 64)
	return min(max(1, max(lately, running)/float64(processors)), mostPatience)
}
