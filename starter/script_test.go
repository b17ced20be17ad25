package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"reprise/activities"
	"reprise/internal/base/callback"
	"reprise/internal/program/host"
	"reprise/internal/program/localserver"
	"reprise/internal/test/testenv"
)

// withServers runs the tests between starting and stopping the servers that
// they share.
type withServers struct{ m *testing.M }

func (w withServers) Run() int {
	testenv.RunInParallel(width)
	return testenv.Run(w.m)
}

func TestMain(m *testing.M) {
	testscript.Main(withServers{m}, map[string]func(){"starter": main})
}

// width is how many tests run at once: most of their time they wait for servers.
const width = 4

// runVariable marks every process of one script, however it was started.
const runVariable = "REPRISE_TEST_SCRIPT"

// scriptRuns counts the scripts run, so that the IDs of a script's runs are new
// when it is run again (go test -count).
var scriptRuns atomic.Int64

// scripts runs the scripts of a folder. Beside the commands of testscript they
// have:
//
//	status N command…      runs the command, which must end with the exit status N
//	start NAME command…    starts the command, its output goes to NAME.out and NAME.err
//	await FILE PATTERN     waits until the file has a match
//	signal NAME SIG        sends INT, TERM or KILL to what start has started
//	ended NAME N           waits for its end, which must have the exit status N
//	terminate ID           terminates a run on the shared server
//	departed QUEUE         has a worker poll the queue and leave
//	suspend                stops the local Temporal server, as if it were stuck
//	resume                 lets it go on
//	break                  kills it
//	proxy                  puts a proxy before the shared server
//	cut, mend              cut what goes through it, and let it pass again
//	alone                  waits until no process of the script is left
//	shell FILE             runs the lines of the file in a shell, whatever their exit status
//	prints FILE            what shell has printed has the lines of the file, in order
func scripts(t *testing.T, folder string, environment ...string) {
	t.Helper()
	scriptsIn(t, filepath.Join("testdata", "script", folder), environment...)
}

// scriptsIn is scripts for any folder.
func scriptsIn(t *testing.T, dir string, environment ...string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, environment...)
			mark := fmt.Sprintf("%s-%d-%d", filepath.Base(env.WorkDir), os.Getpid(), scriptRuns.Add(1))
			env.Vars = append(env.Vars, runVariable+"="+mark)
			env.Values[startedKey{}] = map[string]*started{}
			env.Values[testKey{}] = t
			env.Values[proxyKey{}] = new(*testenv.Proxy)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"status": cmdStatus, "start": cmdStart, "await": cmdAwait, "signal": cmdSignal,
			"ended": cmdEnded, "alone": cmdAlone, "shell": cmdShell, "prints": cmdPrints,
			"terminate": cmdTerminate, "departed": cmdDeparted,
			"proxy": cmdProxy, "cut": cmdPass((*testenv.Proxy).Cut), "mend": cmdPass((*testenv.Proxy).Mend),
			"suspend": cmdServer(syscall.SIGSTOP), "resume": cmdServer(syscall.SIGCONT), "break": cmdServer(syscall.SIGKILL),
		},
	})
}

var patience = testenv.Within(time.Minute)

type (
	startedKey struct{} // of what start has started, by name
	testKey    struct{} // of the test that runs the scripts
	proxyKey   struct{} // of the proxy before the shared server
)

// started is a process that a script has started.
type started struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

func processes(ts *testscript.TestScript) map[string]*started {
	return ts.Value(startedKey{}).(map[string]*started)
}

func use(ts *testscript.TestScript, neg bool, ok bool, usage string) {
	if neg || !ok {
		ts.Fatalf("usage: %s", usage)
	}
}

func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	use(ts, neg, len(args) >= 2, "status N command…")
	wanted, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != wanted {
		ts.Fatalf("the exit status is %d, expected %d", got, wanted)
	}
}

func cmdStart(ts *testscript.TestScript, neg bool, args []string) {
	use(ts, neg, len(args) >= 2, "start NAME command…")
	path, err := exec.LookPath(args[1])
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), scriptEnvironment(ts)
	out, err := os.Create(ts.MkAbs(args[0] + ".out"))
	ts.Check(err)
	defer out.Close()
	errs, err := os.Create(ts.MkAbs(args[0] + ".err"))
	ts.Check(err)
	defer errs.Close()
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ts.Check(cmd.Start())
	process := &started{cmd: cmd, exited: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the state is in cmd.ProcessState
		close(process.exited)
	}()
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		<-process.exited
	})
	processes(ts)[args[0]] = process
}

// scriptEnvironment is what Setup and the script have set and starter reads.
func scriptEnvironment(ts *testscript.TestScript) []string {
	var environment []string
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", runVariable, localserver.BinaryVariable,
		"TEMPORAL_ADDRESS", callback.Variable, "REPRISE_TASK_QUEUE", "REPRISE_UI_URL", "TESTSCRIPT_COVER_DIR",
	} {
		if value := ts.Getenv(name); value != "" {
			environment = append(environment, name+"="+value)
		}
	}
	return environment
}

func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	use(ts, neg, len(args) == 2, "await FILE PATTERN")
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	text := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if data, err := os.ReadFile(ts.MkAbs(args[0])); err == nil {
			if text = string(data); pattern.MatchString(text) {
				return
			}
		}
	}
	ts.Fatalf("%s has no match of %q after %s:\n%s%s", args[0], args[1], patience, text, printedBy(ts))
}

// printedBy is what the processes of a script have printed for people so far.
func printedBy(ts *testscript.TestScript) string {
	var text strings.Builder
	for name, process := range processes(ts) {
		state := "is running"
		select {
		case <-process.exited:
			state = "has ended"
		default:
		}
		printed, _ := os.ReadFile(ts.MkAbs(name + ".err"))
		fmt.Fprintf(&text, "%s %s, and printed:\n%s", name, state, printed)
	}
	return text.String()
}

func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	use(ts, neg, len(args) == 2, "signal NAME INT|TERM|KILL")
	pid := processes(ts)[args[0]].cmd.Process.Pid
	switch args[1] {
	case "INT": // as a terminal sends Ctrl-C, to the whole process group
		ts.Check(syscall.Kill(-pid, syscall.SIGINT))
	case "TERM":
		ts.Check(syscall.Kill(pid, syscall.SIGTERM))
	case "KILL":
		ts.Check(syscall.Kill(pid, syscall.SIGKILL))
	default:
		ts.Fatalf("unknown signal %q", args[1])
	}
}

func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	use(ts, neg, len(args) == 2, "ended NAME N")
	process := processes(ts)[args[0]]
	select {
	case <-process.exited:
	case <-time.After(patience):
		ts.Fatalf("%s has not ended after %s", args[0], patience)
	}
	if got := strconv.Itoa(process.cmd.ProcessState.ExitCode()); got != args[1] {
		errs, _ := os.ReadFile(ts.MkAbs(args[0] + ".err"))
		ts.Fatalf("the exit status of %s is %s, expected %s; it said:\n%s", args[0], got, args[1], errs)
	}
}

// mine lists the processes of a script.
func mine(ts *testscript.TestScript) []int {
	t := ts.Value(testKey{}).(*testing.T)
	return testenv.ProcessesWith(t, runVariable+"="+ts.Getenv(runVariable))
}

// cmdServer sends a signal to the script's local Temporal server.
func cmdServer(signal syscall.Signal) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		use(ts, neg, len(args) == 0, "suspend, resume or break, without arguments")
		found := false
		for _, pid := range mine(ts) {
			line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
			if err == nil && bytes.Contains(line, []byte("start-dev")) {
				ts.Check(syscall.Kill(pid, signal))
				found = true
			}
		}
		if !found {
			ts.Fatalf("the script has no local Temporal server")
		}
	}
}

func cmdTerminate(ts *testscript.TestScript, neg bool, args []string) {
	use(ts, neg, len(args) == 1, "terminate ID")
	t := ts.Value(testKey{}).(*testing.T)
	ts.Check(testenv.Temporal(t).Client().TerminateWorkflow(context.Background(), args[0], "", "a test"))
}

func cmdProxy(ts *testscript.TestScript, neg bool, args []string) {
	use(ts, neg, len(args) == 0, "proxy")
	t := ts.Value(testKey{}).(*testing.T)
	proxy := testenv.NewProxy(t, testenv.Temporal(t).Address)
	*ts.Value(proxyKey{}).(**testenv.Proxy) = proxy
	ts.Setenv("TEMPORAL_ADDRESS", proxy.Address())
}

func cmdPass(change func(*testenv.Proxy)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		use(ts, neg, len(args) == 0, "cut or mend, without arguments")
		proxy := *ts.Value(proxyKey{}).(**testenv.Proxy)
		if proxy == nil {
			ts.Fatalf("the script has no proxy")
		}
		change(proxy)
	}
}

func cmdDeparted(ts *testscript.TestScript, neg bool, args []string) {
	use(ts, neg, len(args) == 1, "departed QUEUE")
	c := testenv.Temporal(ts.Value(testKey{}).(*testing.T)).Client()
	worker := host.NewWorker(c, activities.DefaultCatalogue(), host.Options{TaskQueue: args[0], StopTimeout: time.Second})
	ts.Check(worker.Start())
	defer worker.Stop()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		polled, err := isPolled(context.Background(), c, args[0])
		ts.Check(err)
		if polled {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("the worker does not poll")
		}
	}
}

// isPolled reports whether the server has seen a worker of a task queue.
func isPolled(ctx context.Context, c client.Client, queue string) (bool, error) {
	described, err := c.DescribeTaskQueue(ctx, queue, enums.TASK_QUEUE_TYPE_WORKFLOW)
	return len(described.GetPollers()) > 0, err
}

func cmdAlone(ts *testscript.TestScript, neg bool, args []string) {
	use(ts, neg, len(args) == 0, "alone")
	left := []int{0}
	for deadline := time.Now().Add(patience); len(left) > 0 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		left = mine(ts)
	}
	if len(left) > 0 {
		ts.Fatalf("processes left behind: %v", left)
	}
}

// TestPlain has the scripts that need no server.
func TestPlain(t *testing.T) {
	t.Parallel()
	scripts(t, "plain")
}

// TestServer has the scripts that run on a server which is there already, with
// a worker on the task queue.
func TestServer(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	queue := env.NewTaskQueue()
	clinic := testenv.Postgres(t).URL
	catalogue := activities.NewCatalogue(activities.Resources{
		AllowPython: true, Directory: t.TempDir(), Connections: activities.EnvConnections(func(name string) (string, bool) {
			return clinic, name == "REPRISE_AUTH_CLINIC"
		}),
	})
	worker := host.NewWorker(env.Client(), catalogue, host.Options{TaskQueue: queue, StopTimeout: time.Second})
	require.NoError(t, worker.Start())
	t.Cleanup(func() {
		worker.Stop()
		require.NoError(t, catalogue.Close())
	})
	scripts(t, "server",
		"TEMPORAL_ADDRESS="+env.Address, "REPRISE_TASK_QUEUE="+queue, "REPRISE_UI_URL="+env.UIURL,
		"API="+testenv.DemoAPI(t).URL())
}

// localServer says which Temporal server the starter of a script brings up.
func localServer(t *testing.T) string {
	t.Helper()
	binary, err := filepath.Abs(filepath.Join("..", "bin", "devserver"))
	require.NoError(t, err)
	require.FileExists(t, binary, "run make bin/devserver")
	return localserver.BinaryVariable + "=" + binary
}

// TestLocal has the scripts that bring up a server of their own.
func TestLocal(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() }) // the scripts go on after this function
	_, port, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)
	scripts(t, "local", localServer(t), "PORT="+port,
		"API="+testenv.DemoAPI(t).URL(), "REPRISE_AUTH_CLINIC="+testenv.Postgres(t).URL)
}
