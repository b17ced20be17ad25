package look

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/base/connect"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/sleep"
	"reprise/internal/program/start"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/starter/cli"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// hasty is a run whose client gives up asking for the end after a moment, where
// a real one does after a minute.
type hasty struct {
	client.WorkflowRun
	unanswered *atomic.Int32 // questions
}

func (h hasty) Get(ctx context.Context, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	err := h.WorkflowRun.Get(ctx, into)
	if connect.IsUnreachable(err) {
		h.unanswered.Add(1)
	}
	return err
}

// far is a run on a server behind a proxy, and the command that follows it.
type far struct {
	proxy      *testenv.Proxy
	direct     client.Client
	run        hasty
	session    *session.Session
	app        *cli.App
	out, err   bytes.Buffer
	unanswered atomic.Int32
	quiet      bool // the command has --quiet
}

// newFar starts a run that ends as completed when it gets the signal "end".
func newFar(t *testing.T) *far {
	t.Helper()
	env := testenv.Temporal(t)
	queue := env.NewTaskQueue()
	w := worker.New(env.Client(), queue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) (*protocol.Result, error) {
		workflow.GetSignalChannel(ctx, "end").Receive(ctx, nil)
		return &protocol.Result{Status: "completed", Result: expression.Of("done")}, nil
	}, workflow.RegisterOptions{Name: "Waits"})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	f := &far{proxy: testenv.NewProxy(t, env.Address), direct: env.Client()}
	c := env.Dial(t, client.Options{HostPort: f.proxy.Address()})
	started, err := f.direct.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, "Waits")
	require.NoError(t, err)
	f.run = hasty{c.GetWorkflow(t.Context(), started.GetID(), started.GetRunID()), &f.unanswered}
	f.session = &session.Session{Client: c, Address: f.proxy.Address(), Namespace: env.Namespace, TaskQueue: queue}
	f.session.Flags = " --address " + f.session.Address + " --namespace " + f.session.Namespace
	f.app = &cli.App{Streams: cli.Streams{Out: &f.out, Err: &f.err}, Interrupts: &cli.Interrupts{Graceful: t.Context(), Now: t.Context()}}
	return f
}

// follow follows the run and gives the exit status and the document.
func (f *far) follow(t *testing.T, run client.WorkflowRun, patience time.Duration) (int, document) {
	t.Helper()
	status := exitcode.OK
	if err := followWith(f.app, f.session, run, FollowOptions{Output: "json", Quiet: f.quiet}, newContact(patience)); err != nil {
		require.ErrorIs(t, err, cli.ErrSaid)
		status = cli.StatusOf(err)
	}
	var doc document
	require.NoError(t, json.Unmarshal(f.out.Bytes(), &doc))
	require.Equal(t, run.GetID(), doc.WorkflowID)
	return status, doc
}

// TestFollowOutlastsItsClient: questions that the client has given up are asked
// again, and what comes of the run is known in the end.
func TestFollowOutlastsItsClient(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	f.proxy.Cut()
	ended := make(chan error, 1)
	go func() {
		for f.unanswered.Load() < 3 && t.Context().Err() == nil {
			_ = sleep.For(t.Context(), 10*time.Millisecond)
		}
		ended <- f.direct.SignalWorkflow(t.Context(), f.run.GetID(), "", "end", nil)
		f.proxy.Mend()
	}()
	status, doc := f.follow(t, f.run, patience)
	require.NoError(t, testenv.Receive(t, ended, "the signal that ends the run"))
	require.Equal(t, exitcode.OK, status)
	require.EqualValues(t, "completed", doc.Status)
	require.Equal(t, "done", doc.Result.Data)
}

// unnotified is a run whose end the server does not report to the poll that waited for it, as Temporal's
// may under load.
type unnotified struct {
	client.WorkflowRun
	polls *atomic.Int32
}

func (u unnotified) Get(ctx context.Context, into any) error {
	if u.polls.Add(1) == 1 {
		<-ctx.Done()
		return ctx.Err()
	}
	return u.WorkflowRun.Get(ctx, into)
}

// TestFollowPollsAgain: a follower whose poll is not notified of the end learns it from the next poll.
func TestFollowPollsAgain(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	require.NoError(t, f.direct.SignalWorkflow(t.Context(), f.run.GetID(), "", "end", nil))
	ended := make(chan outcome, 1)
	var polls atomic.Int32
	go func() {
		ended <- newContact(patience).awaitOutcome(t.Context(), unnotified{f.run, &polls})
	}()
	end := testenv.Receive(t, ended, "the end of the run")
	require.NoError(t, end.err)
	require.Equal(t, "done", end.result.Result.Data)
	require.EqualValues(t, 2, polls.Load())
}

// TestFollowGivesUp: a server that stays away leaves the end unknown.
func TestFollowGivesUp(t *testing.T) {
	t.Parallel()
	for name, quiet := range map[string]bool{"shown": false, "quiet": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			givesUp(t, quiet)
		})
	}
}

func givesUp(t *testing.T, quiet bool) {
	t.Helper()
	f := newFar(t)
	f.quiet = quiet
	f.proxy.Cut()
	status, doc := f.follow(t, f.run, 2*time.Second)
	require.Equal(t, exitcode.NoServer, status)
	require.EqualValues(t, "unknown", doc.Status)
	require.Equal(t, f.run.GetRunID(), doc.RunID)
	require.Equal(t, kindNoServer, doc.Error.Kind)
	require.Contains(t, doc.Error.Message, "the server was unreachable for more than 2s")
	said := f.err.String()
	require.Equal(t, 1, strings.Count(said, "lost the server at"), said)
	require.NotContains(t, said, "is back")
	require.NotContains(t, said, "worker")
	require.Contains(t, said, "--address "+f.proxy.Address()+" --namespace default", "what a person needs to look again")
	require.NoError(t, f.direct.SignalWorkflow(t.Context(), f.run.GetID(), "", "end", nil))
}

// TestFollowOfARunThatTheServerDoesNotKnow: it may have lost its database.
func TestFollowOfARunThatTheServerDoesNotKnow(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	run := f.session.Client.GetWorkflow(t.Context(), "nobody-"+f.run.GetID(), f.run.GetRunID())
	status, doc := f.follow(t, run, time.Hour)
	require.Equal(t, exitcode.NoServer, status)
	require.EqualValues(t, "unknown", doc.Status)
	require.NoError(t, f.direct.SignalWorkflow(t.Context(), f.run.GetID(), "", "end", nil))
}

// TestUnsureStart: a start whose answer was lost is neither failed nor running.
func TestUnsureStart(t *testing.T) {
	t.Parallel()
	f := newFar(t)
	f.proxy.Cut()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := start.StartRun(ctx, f.session.Destination(), start.Plan{WorkflowID: "patients-1"}, connect.Attributes{})
	require.Equal(t, exitcode.NoServer, cli.StatusOf(err))
	doc := refusalDocument(err)
	require.EqualValues(t, "unknown", doc.Status)
	require.Equal(t, "patients-1", doc.WorkflowID)
	require.EqualValues(t, "failed", refusalDocument(errors.New("no such file")).Status)
	require.NoError(t, f.direct.SignalWorkflow(t.Context(), f.run.GetID(), "", "end", nil))
}
