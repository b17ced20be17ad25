package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"reprise/internal/base/exitcode"
	"reprise/internal/test/testenv"
	"reprise/starter/cli"
)

// frontend stands before a server: it counts what it is asked, and fails while its
// database is away.
type frontend struct {
	address string

	mu    sync.Mutex
	away  error
	asked map[string]int // by method
}

func newFrontend(t *testing.T, env *testenv.Env) *frontend {
	t.Helper()
	f := &frontend{asked: map[string]int{}}
	service, err := proxy.NewWorkflowServiceProxyServer(proxy.WorkflowServiceProxyOptions{Client: env.Client().WorkflowService()})
	require.NoError(t, err)
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		method := info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]
		f.mu.Lock()
		f.asked[method]++
		away := f.away
		f.mu.Unlock()
		if away != nil && method != "GetSystemInfo" {
			return nil, serviceerror.ToStatus(away).Err()
		}
		response, err := next(ctx, request)
		if err != nil {
			err = serviceerror.ToStatus(err).Err()
		}
		return response, err
	}))
	workflowservice.RegisterWorkflowServiceServer(server, service)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.address = listener.Addr().String()
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return f
}

func (f *frontend) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = err
}

func (f *frontend) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[method]
}

// sleeps is a playbook that takes a time.
func (d *desk) sleeps(length string) (id string) {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "sleeps.yaml")
	require.NoError(d.t, os.WriteFile(file, []byte(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: sleeps}
workflow: [{step: ask, tool: approval, message: "Well?", timeout: `+length+`, on_timeout: approve}]
`), 0o600))
	id = d.queue + "-sleeps"
	d.does("run", file, "--detach", "--task-queue", d.queue, "--workflow-id", id)
	return id
}

// TestFollowOutlastsADatabase: a server that is reachable but not ready is asked again.
func TestFollowOutlastsADatabase(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]error{
		"unavailable": serviceerror.NewUnavailable("no hosts available for database"),
		"internal":    serviceerror.NewInternal("GetWorkflowExecution: failed"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			id, front := d.sleeps("1s"), newFrontend(t, d.env)
			front.fail(away)
			var out bytes.Buffer
			errs, ended := &testenv.Output{}, make(chan int, 1)
			go func() {
				ended <- Main(t.Context(), []string{"follow", id, "--address", front.address, "--namespace", d.env.Namespace}, cli.Streams{In: strings.NewReader(""), Out: &out, Err: errs})
			}()
			require.Eventually(t, func() bool { return strings.Contains(errs.String(), "trying again") || len(ended) > 0 }, testenv.Within(time.Minute), 10*time.Millisecond)
			require.Empty(t, ended, "it has given up: %s", errs)
			front.fail(nil)
			require.Equal(t, exitcode.OK, testenv.Receive(t, ended, "the end of follow"), "%s%s", &out, errs)
			require.Contains(t, errs.String(), "the Temporal server at "+front.address+" is reachable but not ready")
		})
	}
}

// TestFollowingPollsLess: queries are what a server bills. An address that is none of this machine's is polled once in
// 10 s without a terminal, and never with --quiet, which waits for the end all the same.
func TestFollowingPollsLess(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		elsewhere bool
		flags     []string
		said      string
		queries   func(followed time.Duration) int
	}{
		"here":      {false, nil, "awaits an answer", func(followed time.Duration) int { return 3 + int(followed/time.Second) }},
		"elsewhere": {true, nil, "awaits an answer", func(followed time.Duration) int { return 1 + int(followed/(10*time.Second)) }},
		"quiet":     {true, []string{"--quiet"}, "", func(time.Duration) int { return 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			id, front := d.sleeps("6s"), newFrontend(t, d.env)
			address := front.address
			if test.elsewhere {
				address = strings.Replace(address, "127.0.0.1", "0.0.0.0", 1) // leads here, and is no loopback address
			}
			began := time.Now()
			var out, errs bytes.Buffer
			args := append([]string{"follow", id, "--address", address, "--namespace", d.env.Namespace}, test.flags...)
			require.Equal(t, exitcode.OK, Main(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}), "%s%s", &out, &errs)
			require.Contains(t, errs.String(), test.said)
			require.Contains(t, out.String(), "completed")
			queries, allowed := front.count("QueryWorkflow"), test.queries(time.Since(began))
			t.Logf("%d queries, %d reads of history, %d descriptions in %s", queries, front.count("GetWorkflowExecutionHistory"),
				front.count("DescribeWorkflowExecution"), time.Since(began).Round(time.Second))
			require.LessOrEqual(t, queries, allowed)
			require.Equal(t, allowed > 0, queries > 0)
		})
	}
}

// TestFollowSaysWhatIsMissing: a run whose worker is away says so with the command that starts one, and
// that a worker responds once one does: a log would else end with what is no longer so.
func TestFollowSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	id := d.sleeps("10m")
	d.awaits(id, 1, 1)
	d.stop()
	ctx, leave := context.WithCancel(t.Context())
	var said testenv.Output
	var following sync.WaitGroup
	following.Go(func() {
		Main(ctx, []string{"follow", id, "--address", d.env.Address, "--namespace", d.env.Namespace}, cli.Streams{Out: &said, Err: &said})
	})
	shows := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(said.String(), text) }, patience, 20*time.Millisecond, "%q", text)
	}
	shows("no worker of task queue \"" + d.queue + "\" responds\n  to start one: worker --address " + d.env.Address)
	shows("--task-queue " + d.queue + "\n")
	d.work()
	shows("  a worker responds\n  ask awaits an answer")
	leave()
	testenv.Wait(t, following.Wait, "the end of follow")
}
