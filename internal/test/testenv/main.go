// Package testenv provides real services to tests: a Temporal server, a PostgreSQL
// server and the demo API. A server starts when a test of the process first needs
// it, and ends with the process.
//
// Every package that uses it needs
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
//
// A missing binary fails the test, with the command that provides it. Nothing is
// skipped, because a skipped test proves nothing.
//
// Environment variables:
//
//	TEST_TEMPORAL_ADDRESS    use this Temporal server and start none
//	TEST_TEMPORAL_NAMESPACE  its namespace, "default" if unset
//	TEST_TEMPORAL_UI_URL     its web UI
//	TEST_DEVSERVER           the dev server binary, bin/devserver or else temporal on PATH if unset
//	TEST_TEMPORAL_STORE      postgres has Temporal servers keep their state in a PostgreSQL, as make postgres does
//	TEST_POSTGRES_URL        use this PostgreSQL server; the user must be allowed to create databases
//	TEST_PATIENCE            how much longer than on an idle machine things may take; measured if unset, see Within
//	TEST_LOG_LEVEL           debug, info, warn or error (default) for the Temporal client and its workers
package testenv

import (
	"bytes"
	"context"
	"flag"
	"fmt"
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

// Main runs the tests of a package, stops the servers that they started, and exits with the tests' status. Call it
// from TestMain.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for a TestMain that has more to do before the process ends: it returns the tests' status.
func Run(m interface{ Run() int }) int {
	defer runCleanups()
	return m.Run()
}

// RunInParallel lets n tests run in parallel even with fewer processors, unless -parallel is given. It is for packages whose
// tests mostly wait.
func RunInParallel(n int) {
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

// atExit registers a function to run at the end of the process. The last registered runs first.
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

// DemoAPI starts a demo API on a free port of 127.0.0.1 for a test, and closes it when the test ends.
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

// Golden compares a text with the file NAME.txt in testdata. With update it writes the file first.
func Golden(t testing.TB, update bool, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	folder, err := os.Getwd()
	require.NoError(t, err)
	hint := fmt.Sprintf("%s, which (cd %s && go test . -run '^%s$' -update) writes, if the difference is right", path, folder, test)
	want, err := os.ReadFile(path)
	require.NoError(t, err, hint)
	require.Equal(t, string(want), got, hint)
}

// ProcessesWith returns the IDs of the running processes whose environment has the entry "NAME=value". A test that starts
// a program with a unique value finds all processes that the program left behind, whatever their names or parents. It
// reads /proc, so it needs Linux; elsewhere the test fails.
func ProcessesWith(t testing.TB, entry string) []int {
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
		// Processes may end during the loop, and other users' environments cannot be read.
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

// mostPatience bounds the factor of Within.
const mostPatience = 10

// Within returns the limit for something that takes at most d on an idle machine: d times how much slower this
// machine is now. That factor is TEST_PATIENCE if set, otherwise the number of runnable processes per processor.
// Every limit on real work in a test must use it, except for what is compared with a limit of the code under test.
func Within(d time.Duration) time.Duration {
	return time.Duration(float64(d) * slownessFactor(os.Getenv("TEST_PATIENCE"), "/proc/loadavg", runtime.NumCPU()))
}

// slownessFactor returns the factor of Within: the given one, or else the machine's load, as the larger of the last
// minute's and the current one. It is 1 if neither is known.
func slownessFactor(given, loadFile string, processors int) float64 {
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
