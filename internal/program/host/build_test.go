package host_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"reprise/activities"
	"reprise/internal/program/host"
	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

// startBuild starts a worker that is a build of a deployment, and returns when the server knows it.
func startBuild(t *testing.T, queue string, build host.OwnBuild) {
	t.Helper()
	env := testenv.Temporal(t)
	catalogue := activities.NewCatalogue(activities.Resources{})
	w := host.NewWorker(env.Dial(t, client.Options{Identity: build.ID}), catalogue, host.Options{TaskQueue: queue, StopTimeout: time.Second, Build: build})
	require.NoError(t, w.Start())
	t.Cleanup(func() {
		w.Stop()
		require.NoError(t, catalogue.Close())
	})
	require.Eventually(t, func() bool {
		_, err := env.Client().WorkerDeploymentClient().GetHandle(build.Deployment).DescribeVersion(t.Context(),
			client.WorkerDeploymentDescribeVersionOptions{BuildID: build.ID})
		return err == nil
	}, testenv.Within(20*time.Second), 50*time.Millisecond)
}

// makeCurrent makes a build the current one of its deployment, and returns when tasks of the queue go there.
func makeCurrent(t *testing.T, queue string, build host.OwnBuild) {
	t.Helper()
	c := testenv.Temporal(t).Client()
	require.Eventually(t, func() bool { // its task queues may not be known yet
		_, err := c.WorkerDeploymentClient().GetHandle(build.Deployment).SetCurrentVersion(t.Context(),
			client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build.ID})
		return err == nil
	}, testenv.Within(20*time.Second), 50*time.Millisecond)
	require.Eventually(t, func() bool {
		described, err := c.DescribeTaskQueue(t.Context(), queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		return err == nil && described.GetVersioningInfo().GetCurrentDeploymentVersion().GetBuildId() == build.ID
	}, testenv.Within(20*time.Second), 50*time.Millisecond)
}

// buildsBook has a loop, whose iterations wait until the API has what they request, and of which one gets responses so large that its
// workflow continues as new, and a concurrency key.
const buildsBook = `
apiVersion: reprise/v1
kind: Playbook
metadata: {name: builds}
concurrency: {key: "{{ api }}", limit: 5}
workflow:
  - step: each
    tool: http
    url: "{{ api }}/{{ item }}"
    rate_limit: {requests: 1000, per: 1s, key: "{{ api }}"}
    retry:
      - {when: "{{ error.status == 404 }}", then: {delay: 500ms, jitter: none, max_attempts: 500}}
      - {when: "{{ response != 1 }}", then: {delay: 2s, jitter: none, max_attempts: 100}}
    loop: {collection: [1, "long{{ of }}"], mode: parallel}
`

// TestBuilds: a run and what it starts stay with the build that is current when it begins, through loops and new histories, in
// workflows and activities; a run that begins later goes to the next build, and so do both runs' shared workflows.
func TestBuilds(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	var open atomic.Bool
	var large [2]atomic.Int64 // responses of the two runs
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		of, long := strings.CutPrefix(r.URL.Path, "/long")
		switch {
		case !open.Load():
			w.WriteHeader(http.StatusNotFound)
		case long && large[len(of)].Add(1) < 5:
			_, _ = w.Write([]byte(`"` + strings.Repeat("x", 900_000) + `"`))
		default:
			_, _ = w.Write([]byte("1"))
		}
	}))
	t.Cleanup(api.Close)
	queue := env.NewTaskQueue()
	first, second := host.OwnBuild{Deployment: queue, ID: "first"}, host.OwnBuild{Deployment: queue, ID: "second"}
	start := func(id, of string) client.WorkflowRun {
		run, err := env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue + id, TaskQueue: queue}, protocol.PlaybookWorkflowName,
			protocol.Input{Name: "builds.yaml", Source: buildsBook, Workload: expression.Of(map[string]any{"api": api.URL, "of": of})})
		require.NoError(t, err)
		return run
	}
	startBuild(t, queue, first)
	makeCurrent(t, queue, first)
	old := start("-old", "")
	awaitChildren(t, queue+"-old/each#1", 2)
	startBuild(t, queue, second)
	makeCurrent(t, queue, second)
	young := start("-young", "y")
	awaitChildren(t, queue+"-young/each#1", 2)
	open.Store(true)
	for run, build := range map[client.WorkflowRun]string{old: "first", young: "second"} {
		require.NoError(t, testenv.WaitOutcome(t, run, nil))
		histories := testenv.Histories(t, env.Client(), run.GetID(), run.GetRunID())
		continued := false
		for _, history := range histories {
			require.Equal(t, []string{build}, workersOf(history), history.String())
			continued = continued || history.Ending() == "ContinuedAsNew"
		}
		require.True(t, continued)
	}
	for _, kind := range []string{"RateLimitWorkflow", "ConcurrencyWorkflow"} {
		require.Eventually(t, func() bool {
			page, err := env.Client().ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
				Query: "TaskQueue = '" + queue + "' AND WorkflowType = '" + kind + "' AND TemporalWorkflowVersioningBehavior = 'AutoUpgrade' AND TemporalWorkerDeploymentVersion = '" + queue + ":second'",
			})
			return err == nil && len(page.GetExecutions()) > 0
		}, testenv.Within(20*time.Second), 200*time.Millisecond, kind)
	}
}

// TestBuildsUpgrade: with auto-upgrade, an open run moves to the build that becomes current.
func TestBuildsUpgrade(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	require.Equal(t, worker.DeploymentOptions{}, host.WorkerOptions(host.OwnBuild{}), "without a build all is as without Worker Versioning")
	queue := env.NewTaskQueue()
	first := host.OwnBuild{Deployment: queue, ID: "first", AutoUpgrade: true}
	startBuild(t, queue, first)
	makeCurrent(t, queue, first)
	const book = "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: asks}\nworkflow:\n  - {step: ask, tool: webhook}\n"
	run, err := env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, protocol.PlaybookWorkflowName,
		protocol.Input{Name: "asks.yaml", Source: book})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := env.Client().QueryWorkflow(t.Context(), run.GetID(), "", protocol.ProgressQuery)
		return err == nil
	}, testenv.Within(20*time.Second), 100*time.Millisecond)
	second := host.OwnBuild{Deployment: queue, ID: "second", AutoUpgrade: true}
	startBuild(t, queue, second)
	makeCurrent(t, queue, second)
	require.NoError(t, env.Client().CancelWorkflow(t.Context(), run.GetID(), ""))
	require.Error(t, testenv.WaitOutcome(t, run, nil))
	require.Contains(t, workersOf(testenv.Histories(t, env.Client(), run.GetID(), "")[0]), "second")
}

// awaitChildren waits until a workflow has started children.
func awaitChildren(t *testing.T, workflowID string, n int) {
	t.Helper()
	c := testenv.Temporal(t).Client()
	require.Eventually(t, func() bool {
		described, err := c.DescribeWorkflowExecution(t.Context(), workflowID, "")
		return err == nil && len(described.GetPendingChildren()) == n
	}, testenv.Within(30*time.Second), 100*time.Millisecond)
}

// workersOf are the identities of the workers that have done workflow tasks and activities of a history, each once, in order.
func workersOf(run testenv.RunHistory) (identities []string) {
	seen := map[string]bool{}
	for _, event := range run.History.GetEvents() {
		identity := ""
		switch event.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			identity = event.GetWorkflowTaskCompletedEventAttributes().GetIdentity()
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
			identity = event.GetActivityTaskStartedEventAttributes().GetIdentity()
		}
		if identity != "" && !seen[identity] {
			seen[identity] = true
			identities = append(identities, identity)
		}
	}
	return identities
}
