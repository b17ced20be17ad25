// Package testenv gives tests the real things: a Temporal server, a PostgreSQL
// server and the demo API. Servers start once per test process, when a test
// first asks, and end with it.
//
// Every package that uses it needs
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
//
// A missing binary fails the test, with the command that provides it. Nothing is
// skipped: a test that did not run has proved nothing.
//
// Environment variables:
//
//	TEST_TEMPORAL_ADDRESS    use this Temporal server and start none
//	TEST_TEMPORAL_NAMESPACE  its namespace, "default" if unset
//	TEST_TEMPORAL_UI_URL     its web UI
//	TEST_DEVSERVER           the dev server binary, bin/devserver or else temporal on PATH if unset
//	TEST_POSTGRES_URL        use this PostgreSQL server; the user must be allowed to create databases
//	TEST_PATIENCE            how much longer than on an idle machine things may take; measured if unset, see Within
//	TEST_LOG_LEVEL           debug, info, warn or error (default) for the Temporal client and its workers
package testenv

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/demoapi"
)

// Main runs the tests of a package, then stops the servers they started, and
// exits with the tests' status. Call it from TestMain.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for those who have more to do before the process ends: it
// returns the tests' status.
func Run(m interface{ Run() int }) int {
	defer runCleanups()
	return m.Run()
}

// Wide lets n tests run at once where there are fewer processors, unless
// -parallel says how many. It is for packages whose tests mostly wait.
func Wide(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(max(n, runtime.GOMAXPROCS(0))))
	}
}

var cleanups struct {
	mu  sync.Mutex
	all []func()
}

// atExit registers a function for the end of the process. The last one
// registered runs first.
func atExit(cleanup func()) {
	cleanups.mu.Lock()
	defer cleanups.mu.Unlock()
	cleanups.all = append(cleanups.all, cleanup)
}

func runCleanups() {
	cleanups.mu.Lock()
	all := cleanups.all
	cleanups.all = nil
	cleanups.mu.Unlock()
	for i := len(all) - 1; i >= 0; i-- {
		all[i]()
	}
}

// DemoAPI starts a demo API of the test's own on a free port of 127.0.0.1 and
// closes it when the test ends.
func DemoAPI(t testing.TB) *demoapi.Server {
	t.Helper()
	api := demoapi.New(demoapi.Options{})
	// The test's context ends before its cleanups, which may still send requests.
	if _, err := api.Start(context.WithoutCancel(t.Context()), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Close(); err != nil {
			t.Errorf("close demo API: %v", err)
		}
	})
	return api
}

// Golden compares a text with the file of that name in testdata, which has the ending
// .txt. With update it writes the file first.
func Golden(t testing.TB, update bool, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// Processes returns the IDs of the running processes whose environment has the
// entry "NAME=value". A test that starts a program with a value of its own finds
// everything that the program started in turn and left behind, whatever its name
// or parent. It reads /proc, so it needs Linux; elsewhere the test fails.
func Processes(t testing.TB, entry string) []int {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Fatalf("look for processes: %v", err)
	}
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatalf("look for processes: %v", err)
	}
	var found []int
	for _, file := range files {
		// Processes end while we look, and other users' cannot be read.
		environ, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+entry+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}

// mostPatience bounds how much longer limits get than they are written down.
const mostPatience = 10

// Within returns the limit of what takes at most d on a machine with nothing else to do.
// It is d, times how much slower this machine is now: TEST_PATIENCE if that is set,
// otherwise the programs that want a processor for each processor there is. Every limit
// on real work in a test is one of these; what a test compares with a limit of the code
// under test is not.
func Within(d time.Duration) time.Duration {
	return time.Duration(float64(d) * slowness(os.Getenv("TEST_PATIENCE"), "/proc/loadavg", runtime.NumCPU()))
}

// slowness returns the factor of Within: what is given, or else what the kernel says of the
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
