package playtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/internal/base/connection"
	"reprise/internal/base/seal"
	"reprise/internal/program/host"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/mailbox"
	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
	"reprise/interpreter/tree"
	"reprise/workflows/protocol"
)

// runID is the ID of every run: execution_id in expressions.
const runID = "test"

const (
	// longestRun ends a run that would not end otherwise: one that awaits an answer which the test does not have.
	longestRun = 10 * 365 * 24 * time.Hour
	// idleLimit bounds how long a tool may run, in real time: without it, a tool that hangs would hang the test.
	idleLimit = 5 * time.Minute
	// mostAttempts bounds the attempts of a test. Waits take no time in tests, so a playbook that polls forever would
	// never end.
	mostAttempts = 20_000
)

// Options say how to run tests.
type Options struct {
	// Postgres is the URL of a server on which each test gets its own database; if "", tests contain the responses of
	// postgres.
	Postgres string
	// PythonCommand is "" for python3.
	PythonCommand string
	// DenyPython refuses playbooks that contain Python code.
	DenyPython bool
}

// stage is one run of a playbook in the test environment.
type stage struct {
	suite   *Suite
	test    *playbook.Test
	options Options
	env     *testsuite.TestWorkflowEnvironment
	dir     string
	begun   time.Time
	script  *script
	files   fileAnswers
	seen    *observations
	server  *server
	// database is the test's database in PostgreSQL; nil if there is none.
	database *database
	number   int // of the run, behind those before it
	// attempts is held, for reading, by running activities: a failed run may leave some behind.
	attempts sync.RWMutex
	// attemptsMade counts the attempts, so that an endless run can be stopped.
	attemptsMade atomic.Int64
	stopped      atomic.Pointer[string] // why the test had the run stop, nil for not
}

// outcome is the result of a run, or its error.
type outcome struct {
	result protocol.Result
	err    error // the run did not come to a result
	took   time.Duration
}

// newStage prepares a test, or an earlier run of the test. It uses the folder and the states of the previous stage;
// nil if there is none.
func newStage(suite *Suite, test *playbook.Test, options Options, before *stage) (*stage, error) {
	began := test.Clock
	switch {
	case began.IsZero() && before != nil:
		began = before.now()
	case began.IsZero():
		began = playbook.DefaultClock
	}
	s := &stage{suite: suite, test: test, options: options, begun: began, script: newScript(suite, test), seen: newSeen()}
	s.server = &server{now: s.now, before: test.States, states: map[string]*incremental.Keeper{}, limits: map[string]*limiter{}}
	if before != nil {
		s.dir, s.database, s.number, s.server.states = before.dir, before.database, before.number+1, before.server.states
	} else if err := s.makePlaces(); err != nil {
		return nil, errors.Join(err, s.removeFolder())
	}
	if err := s.writeFiles(); err != nil {
		return nil, errors.Join(err, s.removeFolder())
	}
	return s, nil
}

// makePlaces creates the test's folder and its database.
func (s *stage) makePlaces() (err error) {
	if s.dir, err = os.MkdirTemp("", "starter-test-"); err != nil {
		return fmt.Errorf("create a folder for the test: %w", err)
	}
	if s.options.Postgres != "" {
		s.database, err = newDatabase(s.options.Postgres)
	}
	return err
}

// removeFolder removes the test's folder and its database.
func (s *stage) removeFolder() error {
	var err error
	if s.database != nil {
		err = s.database.dropAll()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// writeFiles creates the test's files in its folder.
func (s *stage) writeFiles() error {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return fmt.Errorf("open the folder of the test: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, name := range playbook.SortedKeys(s.test.Files) {
		if dir := filepath.Dir(name); dir != "." {
			if err := root.MkdirAll(dir, 0o750); err != nil {
				return fmt.Errorf("create the folder of file %q: %w", name, err)
			}
		}
		if err := root.WriteFile(name, []byte(s.test.Files[name]), 0o600); err != nil {
			return fmt.Errorf("create file %q: %w", name, err)
		}
	}
	return nil
}

func (s *stage) now() time.Time {
	if s.env == nil {
		return s.begun
	}
	return s.env.Now().UTC()
}

// sinceBegin returns how long the run has taken by the test's clock.
func (s *stage) sinceBegin() time.Duration { return s.now().Sub(s.begun) }

// stopRun ends the run because the test has failed. Only the first reason is kept.
func (s *stage) stopRun(why string) {
	if s.stopped.CompareAndSwap(nil, &why) {
		s.env.CancelWorkflow()
	}
}

// runPlaybook executes the run.
func (s *stage) runPlaybook() (o outcome) {
	catalogue, err := s.openTools()
	if err != nil {
		return outcome{err: err}
	}
	defer func() { _ = catalogue.Close() }()
	defer func() {
		if r := recover(); r != nil {
			o.err = fmt.Errorf("the run got stuck: %.300v", r)
		}
	}()
	for _, act := range s.test.At {
		s.scheduleAct(act)
	}
	s.env.ExecuteWorkflow(protocol.PlaybookWorkflowName, protocol.Input{
		Name: s.suite.Book.File.Name, Source: string(s.suite.source), Workload: expression.Of(mapOrEmpty(s.test.Workload)),
		Strict: s.test.Strict, Partition: s.test.Partition, Files: s.suite.files,
	})
	s.attempts.Lock()
	defer s.attempts.Unlock()
	o.took = s.sinceBegin()
	err = s.env.GetWorkflowError()
	if err == nil {
		o.err = s.env.GetWorkflowResult(&o.result)
		return o
	}
	o.err = endOf(err, &o.result)
	return o
}

func mapOrEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// endOf reads the result of an unsuccessful run. The error is that it has none.
func endOf(err error, into *protocol.Result) error {
	var application *temporal.ApplicationError
	if errors.As(err, &application) && application.HasDetails() {
		return application.Details(into)
	}
	if cancelled, ok := errors.AsType[*temporal.CanceledError](err); ok && cancelled.HasDetails() {
		return cancelled.Details(into)
	}
	if _, ok := errors.AsType[*temporal.TimeoutError](err); ok {
		return errors.New("the run never ends: it waits for something that the test does not provide. Answer an awaited attempt with {complete: …} or {approve: {}}, and end a pause with {resume: {}}")
	}
	if application != nil {
		return errors.New(application.Message())
	}
	return err
}

// openTools creates the test environment and its tools.
func (s *stage) openTools() (*activities.Catalogue, error) {
	quiet := slog.New(slog.DiscardHandler)
	environment := &testsuite.WorkflowTestSuite{}
	environment.SetLogger(log.NewStructuredLogger(quiet))
	s.env = environment.NewTestWorkflowEnvironment()
	s.env.SetStartTime(s.begun)
	s.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: runID, TaskQueue: protocol.DefaultTaskQueue})
	s.env.SetTestTimeout(idleLimit)
	s.env.SetWorkflowRunTimeout(longestRun)
	s.env.SetWorkerOptions(worker.Options{
		DeadlockDetectionTimeout: time.Minute, // a busy machine is no deadlock
		BackgroundActivityContext: attempt.WithWorker(context.Background(), attempt.Worker{
			StopGrace: time.Second, Now: s.now, Turns: s.server, Observer: s.hostedObserver,
		}),
		Interceptors: []interceptor.WorkerInterceptor{&around{stage: s}},
	})
	if !s.test.ScheduledAt.IsZero() {
		scheduled := temporal.NewSearchAttributeKeyTime(protocol.ScheduledAttribute).ValueSet(s.test.ScheduledAt)
		if err := s.env.SetTypedSearchAttributesOnStart(temporal.NewSearchAttributes(scheduled)); err != nil {
			return nil, fmt.Errorf("set the time of the schedule: %w", err)
		}
	}
	connections, err := s.testConnections()
	if err != nil {
		return nil, err
	}
	keys, err := seal.Parse(seal.NewKey())
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	catalogue := activities.NewCatalogue(activities.Resources{
		Connections: connections, Confine: connections.confineInput, HTTP: activities.HTTPOptions{Transport: &transport{stage: s}}, AllowPython: !s.options.DenyPython,
		PythonCommand: s.options.PythonCommand, Directory: s.dir, Playbooks: s.suite.folder, Logger: quiet, SecretKeys: keys,
		CallbackURL: "https://callback.test", Around: s.aroundTool,
	})
	host.Register(s.env, catalogue)
	s.registerAlone()
	return catalogue, nil
}

// registerAlone registers replacements of services that runs share, since a test has no other runs: rate limits,
// queues, earlier answers.
func (s *stage) registerAlone() {
	// The playbook's code was compiled when the suite was loaded.
	checks := activities.NewCatalogue(activities.Resources{Playbooks: s.suite.folder})
	for name, run := range map[string]any{
		interpreter.CheckActivity: func(_ context.Context, in interpreter.CheckInput) (interpreter.CheckResult, error) {
			return s.suite.checkOnce(in, func() interpreter.CheckResult { return activities.CheckPlaybook(checks, in) }), nil
		},
		queue.EnterActivity: s.enterQueue,
		tree.AdmitActivity: func(_ context.Context, start tree.RunStart) (tree.AdmissionAnswer, error) {
			return tree.AdmissionAnswer{Count: start.Count}, nil
		},
		tree.MayStartActivity: func(context.Context, tree.RunStart) (tree.AdmissionAnswer, error) {
			return tree.AdmissionAnswer{}, nil
		},
		tree.CancelActivity:    func(context.Context, tree.CancelRequest) error { return nil },
		mailbox.SettleActivity: func(context.Context, []string) error { return nil },
		interpreter.RecallActivity: func(context.Context, interpreter.Recall) (interpreter.EarlierAnswers, error) {
			return interpreter.EarlierAnswers{}, nil
		},
		partition.NoteActivity: func(context.Context, partition.Note) error { return nil },
	} {
		s.env.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: name, DisableAlreadyRegisteredCheck: true})
	}
}

// enterQueue gives a run its slot at once: no other run competes for it.
func (s *stage) enterQueue(ctx context.Context, enter queue.Enter) error {
	if enter.Request.Leave {
		return nil
	}
	member := enter.Request.Member
	return s.env.SignalWorkflowByID(activity.GetInfo(ctx).WorkflowExecution.ID, queue.DecisionSignal, queue.Decision{
		RunID: member.RunID, Queue: enter.Name.WorkflowID(), Visit: member.Visit, State: queue.Granted,
	})
}

// ignoredUpdate returns update callbacks that ignore the result.
func ignoredUpdate(onReject func(error)) *testsuite.TestUpdateCallback {
	return &testsuite.TestUpdateCallback{OnAccept: func() {}, OnReject: onReject, OnComplete: func(any, error) {}}
}

// scheduleAct has an action of people performed at its time. A worker that is lost from the beginning is lost before
// the run starts: a timer could fire after the first attempt. The others need a run, which a timer of 1 ns waits for.
func (s *stage) scheduleAct(act *playbook.TestAct) {
	if act.After == 0 && act.Verb() == playbook.ActLoseWorker {
		s.performAct(act)
		return
	}
	s.env.RegisterDelayedCallback(func() { s.performAct(act) }, max(act.After, 1))
}

func (s *stage) performAct(act *playbook.TestAct) {
	verb := act.Verb()
	s.script.dueAct(act)
	switch verb {
	case playbook.ActCancel:
		s.env.CancelWorkflow()
		return
	case playbook.ActLoseWorker:
		s.script.loseNext(act.LoseWorker)
		return
	}
	update := map[string]string{
		playbook.ActPause: protocol.PauseUpdate, playbook.ActResume: protocol.ResumeUpdate,
		playbook.ActRetryNow: protocol.RetryNowUpdate, playbook.ActSkip: protocol.SkipUpdate,
	}[verb]
	s.env.UpdateWorkflow(update, "", ignoredUpdate(func(err error) {
		s.script.addComplaint(act.Pos, fmt.Sprintf("%s was refused: %v", verb, err))
	}), protocol.CommandInput{Step: act.Step, Reason: act.Reason, By: "test"})
}

// testConnections returns the connections of the test. Unnamed connections get a made-up token, which
// suffices for http; for sqlite and postgres the test has to name a database.
func (s *stage) testConnections() (testConnections, error) {
	connections := testConnections{given: map[string]string{}}
	for _, name := range playbook.SortedKeys(s.test.Connections) {
		text, err := connection.EntryText(s.test.Connections[name])
		if err != nil {
			return connections, fmt.Errorf("connections: %s %w", name, err)
		}
		if connection.HasSources(text) {
			return connections, fmt.Errorf("connections: %s reads a secret with {from: …}; in a test, write a made-up value instead", name)
		}
		if parsed, err := connection.Parse(text); err == nil && parsed.Session != nil {
			return connections, fmt.Errorf("connections: %s has a session, which logs in; those of a test are made up: write headers, query or bearer", name)
		}
		connections.given[name] = text
	}
	if s.database != nil {
		connections.postgres, connections.names = s.database, s.suite.Book.ConnectionsOf("postgres")
	}
	return connections, nil
}

// testConnections has the connections of a test.
type testConnections struct {
	given    map[string]string
	postgres *database // of the test, nil for none
	names    []string  // of connections of postgres, nil for all that are not given
}

// Connection returns a connection by name. PostgreSQL connections always lead to the test's own database.
func (m testConnections) Connection(name string) (string, bool) {
	text, given := m.given[name]
	switch {
	case m.postgres != nil && isPostgres(text):
		return m.postgres.url, true
	case given:
		return text, true
	case m.postgres != nil && (m.names == nil || slices.Contains(m.names, name)):
		return m.postgres.url, true
	}
	return "bearer:made-up-token", true
}

// isPostgres reports whether a connection is for PostgreSQL.
func isPostgres(connection string) bool {
	scheme, _, _ := strings.Cut(connection, ":")
	return strings.EqualFold(scheme, "postgres") || strings.EqualFold(scheme, "postgresql")
}

// confineInput refuses what could affect PostgreSQL outside of the test's database or schema.
func (m testConnections) confineInput(in interpreter.ToolInput) error {
	if m.postgres == nil {
		return nil
	}
	return m.postgres.confineInput(in)
}
