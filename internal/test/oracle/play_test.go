package oracle_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/internal/base/seal"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// began is when every run of the test environment begins.
var began = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)

// came is what became of a run.
type came struct {
	result protocol.Result
	err    error
	log    []made
	files  map[string][]string
	took   time.Duration
	events events        // on a server
	order  disagreements // events that do not follow each other as they should
	apart  bool          // runs below have IDs of their own, as on a server
}

// predict asks the oracle what becomes of a round.
func (r *round) predict() (ran, *oracle) {
	o := &oracle{round: r, counts: map[string]int{}, files: map[string][]string{}, keys: map[string][]string{}, events: events{}}
	workload := map[string]any{"api": "http://127.0.0.1:1"}
	if len(r.data) > 0 {
		data, err := render(r.data, nil)
		if err != nil {
			panic(err)
		}
		workload["given"] = data
	}
	predicted := o.run(r.book, workload, "", 0)
	return predicted, o
}

// stage is a run in the test environment: the workflow code and the activities as
// they are, a real HTTP server, and time that is skipped.
type stage struct {
	env   *testsuite.TestWorkflowEnvironment
	api   *api
	dir   string
	begun atomic.Bool
	// attempts is held by the activities under way: a run that failed leaves some
	// behind. It is no WaitGroup, since one may begin while others are waited for.
	attempts sync.RWMutex
}

func (r *round) stage(t *testing.T) *stage {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s := &stage{env: suite.NewTestWorkflowEnvironment(), dir: t.TempDir()}
	s.env.SetStartTime(began)
	s.env.SetTestTimeout(testenv.Within(time.Minute))
	s.env.SetWorkerOptions(worker.Options{
		DeadlockDetectionTimeout:  time.Minute,
		BackgroundActivityContext: attempt.WithWorker(t.Context(), attempt.Worker{StopGrace: time.Second}),
		Interceptors:              []interceptor.WorkerInterceptor{&noServer{attempts: &s.attempts}},
	})
	keys, err := seal.Parse(seal.NewKey())
	require.NoError(t, err)
	catalogue := activities.NewCatalogue(activities.Resources{
		Connections: activities.Connections{}, Directory: s.dir, SecretKeys: keys,
	})
	t.Cleanup(func() { require.NoError(t, catalogue.Close()) })
	host.Register(s.env, catalogue)
	if !r.hosted {
		s.env.RegisterActivityWithOptions(func(_ context.Context, in call.DriveInput) (call.DriveOutput, error) {
			return call.DriveOutput{Calls: make([]call.Driven, len(in.Calls))}, nil
		}, activity.RegisterOptions{Name: call.DriveActivity, DisableAlreadyRegisteredCheck: true})
	}
	s.api = &api{seed: r.seed, styles: r.styles, counts: map[string]int{}, now: func() time.Duration {
		return s.env.Now().Sub(began)
	}}
	s.api.outside = s.answer
	return s
}

// noServer stands for the server that activities ask whether their run is paused: the
// test environment has none. The workflow's own holds have their effect all the same.
type noServer struct {
	interceptor.WorkerInterceptorBase

	attempts *sync.RWMutex
}

func (n *noServer) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &inbound{interceptor.ActivityInboundInterceptorBase{Next: next}, n.attempts}
}

type inbound struct {
	interceptor.ActivityInboundInterceptorBase

	attempts *sync.RWMutex
}

func (i *inbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	i.attempts.RLock()
	defer i.attempts.RUnlock()
	return i.Next.ExecuteActivity(ctx, in)
}

func (i *inbound) Init(out interceptor.ActivityOutboundInterceptor) error {
	return i.Next.Init(answering(out, out.GetClient))
}

// outbound gives activities another client. The SDK has no name for the type.
type outbound[C any] struct {
	interceptor.ActivityOutboundInterceptorBase
}

func answering[C any](next interceptor.ActivityOutboundInterceptor, _ func(context.Context) C) *outbound[C] {
	return &outbound[C]{interceptor.ActivityOutboundInterceptorBase{Next: next}}
}

func (*outbound[C]) GetClient(context.Context) C { return any(&deaf{}).(C) }

// deaf is a client that knows no run.
type deaf struct{ client.Client }

func (*deaf) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	return nil, serviceerror.NewNotFound("there is no server")
}

func (*deaf) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, serviceerror.NewNotFound("there is no server")
}

func (*deaf) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{}, nil
}

// play runs a round in the test environment.
func (r *round) play(t *testing.T) came {
	t.Helper()
	s := r.stage(t)
	r.makeTables(t, s.dir)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if s.begun.CompareAndSwap(false, true) {
			s.steer(r)
		}
		s.api.ServeHTTP(w, request)
	}))
	defer server.Close()
	s.env.ExecuteWorkflow(protocol.PlaybookWorkflowName, protocol.Input{
		Name: "oracle.yaml", Source: r.book.source(r.data), Workload: expression.Of(map[string]any{"api": server.URL}),
	})
	s.attempts.Lock()
	defer s.attempts.Unlock()
	c := came{took: s.env.Now().Sub(began), err: s.env.GetWorkflowError(), log: s.api.log}
	if c.err == nil {
		require.NoError(t, s.env.GetWorkflowResult(&c.result))
	} else if details(c.err, &c.result) == nil {
		c.err = nil
	}
	c.files = written(t, s.dir)
	r.readTables(t, s.dir, c.files)
	return c
}

func details(err error, into any) error {
	var application *temporal.ApplicationError
	if errors.As(err, &application) && application.HasDetails() {
		return application.Details(into)
	}
	return err
}

// steer has people act, counted from the first request on: before it the clock would
// run to them while the run is admitted. What is skipped is a step: each that waits.
func (s *stage) steer(r *round) {
	for _, each := range r.steers {
		steps := []string{""}
		if each.verb == "skip" {
			steps = nil
			for _, step := range r.book.steps {
				steps = append(steps, step.name)
			}
		}
		s.env.RegisterDelayedCallback(func() {
			for _, step := range steps {
				s.env.UpdateWorkflow(each.verb, "", &testsuite.TestUpdateCallback{
					OnAccept: func() {}, OnReject: func(error) {}, OnComplete: func(any, error) {},
				}, protocol.CommandInput{Step: step, By: "oracle"})
			}
		}, each.at-s.api.now())
	}
}

// answer says from outside what becomes of an attempt.
func (s *stage) answer(_ asked, _ int, header http.Header, all []said) {
	key := header.Get("Idempotency-Key")
	for i, each := range all {
		s.env.RegisterDelayedCallback(func() {
			s.env.UpdateWorkflow(protocol.AnswerUpdate, "", &testsuite.TestUpdateCallback{
				OnAccept: func() {}, OnReject: func(error) {}, OnComplete: func(any, error) {},
			}, each.answer(key, i))
		}, each.after)
	}
}

func (s said) answer(key string, i int) interpreter.Answer {
	a := interpreter.Answer{AnswerTo: interpreter.AnswerTo{Key: key}, Verb: interpreter.AnswerVerb(s.verb)}
	switch s.verb {
	case "complete":
		a.Result = expression.Of(s.value)
	case "progress":
		a.Done = int64(i + 1)
	case "fail":
		a.Message = "it did not work"
		if s.value != nil {
			a.Details = expression.Of(s.value)
		}
		if s.final {
			no := false
			a.Retryable = &no
		}
	}
	return a
}

// written reads what file sinks have written.
func written(t *testing.T, dir string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			all[filepath.Base(name)] = append(all[filepath.Base(name)], normalJSON([]byte(line)))
		}
	}
	return all
}

// value is what a result holds, as the oracle has it.
func value(t *testing.T, of any) any {
	t.Helper()
	text, err := json.Marshal(of)
	require.NoError(t, err)
	parsed, err := parse(text)
	require.NoError(t, err)
	return normal(parsed)
}
