package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"reprise/activities"
	"reprise/internal/base/build"
	"reprise/internal/base/exitcode"
	"reprise/internal/observe/runs"
	"reprise/internal/program/host"
	"reprise/internal/program/rollout"
	"reprise/internal/test/testenv"
	"reprise/starter/cli"
	"reprise/workflows/protocol"
)

// yard is a task queue whose workers are builds of a deployment with its name.
type yard struct {
	t     *testing.T
	env   *testenv.Env
	queue string
	dir   string
}

func newYard(t *testing.T) *yard {
	t.Helper()
	env := testenv.Temporal(t)
	return &yard{t: t, env: env, queue: env.NewTaskQueue(), dir: t.TempDir()}
}

// says runs a command, requires its exit status, and returns what it prints.
func (y *yard) says(status int, args ...string) (out, errs string) {
	y.t.Helper()
	var o, e bytes.Buffer
	got := Main(y.t.Context(), append(args, "--address", y.env.Address, "--task-queue", y.queue), cli.Streams{Out: &o, Err: &e})
	require.Equal(y.t, status, got, "%v\n%s%s", args, o.String(), e.String())
	return o.String(), e.String()
}

// starts starts a worker of a build, and returns what stops it.
func (y *yard) starts(id string) (stop func()) {
	y.t.Helper()
	catalogue := activities.NewCatalogue(activities.Resources{})
	w := host.NewWorker(y.env.Dial(y.t, client.Options{Identity: id}), catalogue, host.Options{
		TaskQueue: y.queue, StopTimeout: time.Second, Build: host.OwnBuild{Deployment: y.queue, ID: id},
	})
	require.NoError(y.t, w.Start())
	running := true
	stop = func() {
		if running {
			running = false
			w.Stop()
			require.NoError(y.t, catalogue.Close())
		}
	}
	y.t.Cleanup(stop)
	return stop
}

// makes makes a build current, and waits until new runs go there.
func (y *yard) makes(id string) {
	y.t.Helper()
	require.Eventually(y.t, func() bool { // the server may not know its workers yet
		var out bytes.Buffer
		return Main(y.t.Context(), []string{"builds", "current", id, "--deployment", y.queue, "--address", y.env.Address, "--task-queue", y.queue},
			cli.Streams{Out: &out, Err: &out}) == exitcode.OK
	}, patience, 100*time.Millisecond)
	require.Eventually(y.t, func() bool {
		described, err := y.env.Client().DescribeTaskQueue(y.t.Context(), y.queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		return err == nil && described.GetVersioningInfo().GetCurrentDeploymentVersion().GetBuildId() == id
	}, patience, 50*time.Millisecond)
}

// runs starts a run and waits until it is on a build and waits for what it waits for.
func (y *yard) runs(id, book, on string, args ...string) string {
	y.t.Helper()
	path := filepath.Join(y.dir, "book.yaml")
	require.NoError(y.t, os.WriteFile(path, []byte("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: yard}\nworkflow:\n"+book), 0o600))
	id = y.queue + "-" + id
	y.says(exitcode.OK, append([]string{"run", path, "--detach", "--workflow-id", id}, args...)...)
	y.goesTo(id, on)
	return id
}

// goesTo waits until a run is on a build.
func (y *yard) goesTo(id, on string) {
	y.t.Helper()
	require.Eventually(y.t, func() bool {
		found, err := (&runs.Reader{Client: y.env.Client(), Namespace: y.env.Namespace}).Find(y.t.Context(), id, "")
		return err == nil && found.Build != nil && *found.Build == runs.Build{Deployment: y.queue, ID: on, Pinned: true}
	}, patience, 100*time.Millisecond, "%s is not on %s", id, on)
}

// asks are iterations that wait for a person.
const asks = "  - {step: ask, tool: approval, message: please, loop: {collection: [1, 2], mode: parallel}}\n"

// fails is an iteration that fails.
const fails = "  - {step: get, tool: http, url: \"http://127.0.0.1:1/\", loop: {collection: [1]}}\n"

// listed reads the builds as starter builds prints them.
func (y *yard) listed() map[string]rollout.BuildStatus {
	y.t.Helper()
	out, _ := y.says(exitcode.OK, "builds", "--output", "json")
	var all rollout.Builds
	require.NoError(y.t, json.Unmarshal([]byte(out), &all))
	require.Equal(y.t, y.queue, all.Deployment)
	byID := map[string]rollout.BuildStatus{}
	for _, one := range all.Builds {
		byID[one.ID] = one
	}
	return byID
}

// TestBuilds: two builds side by side. A run stays with the build that started it while another one becomes current, new runs of people,
// schedules and reprocesses go to that one, and a run is moved with its children once their histories fit. Commands that run: starter
// builds, starter builds current, starter builds ramp, starter builds move, starter builds retire, starter builds delete.
func TestBuilds(t *testing.T) {
	t.Setenv(build.Variable, "second")
	y := newYard(t)
	stopFirst := y.starts("first")
	waits := y.runsBeforeCurrent()
	y.makes("first")
	y.goesTo(waits, "first")
	old := y.runs("old", asks, "first")
	failed := y.runs("failed", fails, "first")
	y.starts("second")
	y.makes("second")
	y.goesTo(y.runs("young", asks, "second"), "second")
	canary := y.runs("canary", asks, "first", "--build", "first")
	y.says(exitcode.OK, "dead-letters", "reprocess", failed, "--detach")
	y.goesToReprocess(failed)
	y.triggers()
	y.waitsForOpenChildren(old, 2)
	require.Eventually(t, func() bool {
		first, second := y.listed()["first"], y.listed()["second"]
		return first.Status == rollout.Draining && first.OpenRuns == 3 && !first.OldestRun.IsZero() && first.Workers == 1 &&
			second.Status == rollout.Current && second.OpenRuns == 1 && second.Workers == 1
	}, patience, 200*time.Millisecond, "%v", y.listed())
	table, _ := y.says(exitcode.OK, "builds")
	require.Regexp(t, `first +│ draining +│ +1 +│ +3 `, table)
	table, _ = y.says(exitcode.OK, "list", "--status", "running")
	require.Regexp(t, `│ first +│`, table)

	stopFirst()
	text, errs := y.says(exitcode.OK, "status", old)
	require.Regexp(t, `pinned to build first, (which has no workers|none of whose workers responds)`, strings.Join(strings.Fields(text+errs), " "))
	require.Contains(t, text, "starter builds move "+old+" --to BUILD")
	_, errs = y.says(exitcode.Usage, "builds", "move", old, "--to", "first")
	require.Contains(t, errs, "this starter is build second, so it cannot check that runs fit build first")
	text, _ = y.says(exitcode.OK, "builds", "move", old, "--to", "second")
	require.Equal(t, old+": 4 workflows moved from build first to build second\n", text)
	y.goesTo(old, "second")
	for _, index := range []string{"0", "1"} {
		y.says(exitcode.OK, "approve", old, "--index", index)
	}
	require.NoError(t, testenv.WaitOutcome(t, y.env.Client().GetWorkflow(t.Context(), old, ""), nil))
	text, _ = y.says(exitcode.OK, "builds", "retire", "first")
	require.Contains(t, text, canary+": 4 workflows moved from build first to build second\n")
	require.Contains(t, text, waits+": 4 workflows moved")
	_, errs = y.says(exitcode.Usage, "builds", "retire", "second", "--to", "first")
	require.Contains(t, errs, "build second gets new runs, so it cannot be retired")
	_, errs = y.says(exitcode.Usage, "builds", "delete", "second")
	require.Contains(t, errs, "the server refuses this")
	y.says(exitcode.OK, "builds", "ramp", "first", "--percent", "5")
	first := y.listed()["first"]
	require.Equal(t, []any{rollout.Ramping, float32(5)}, []any{first.Status, first.Percent})
	for _, id := range []string{waits, canary, y.queue + "-young"} {
		y.says(exitcode.OK, "cancel", id)
	}
}

// TestRetireNamesWhatDoesNotFit: a run of a build whose history this one does not fit stays, and is named.
func TestRetireNamesWhatDoesNotFit(t *testing.T) {
	t.Setenv(build.Variable, "second")
	y := newYard(t)
	odd := worker.New(y.env.Client(), y.queue, worker.Options{DeploymentOptions: worker.DeploymentOptions{
		UseVersioning: true, DefaultVersioningBehavior: workflow.VersioningBehaviorPinned,
		Version: worker.WorkerDeploymentVersion{DeploymentName: y.queue, BuildID: "odd"},
	}})
	odd.RegisterWorkflowWithOptions(func(ctx workflow.Context) error { return workflow.Sleep(ctx, time.Hour) },
		workflow.RegisterOptions{Name: protocol.PlaybookWorkflowName})
	require.NoError(t, odd.Start())
	t.Cleanup(odd.Stop)
	y.makes("odd")
	id := y.runs("odd", asks, "odd")
	y.starts("second")
	y.makes("second")
	var out string
	require.Eventually(t, func() bool { // lists of the server are late
		var printed, said bytes.Buffer
		status := Main(t.Context(), []string{"builds", "retire", "odd", "--address", y.env.Address, "--task-queue", y.queue}, cli.Streams{Out: &printed, Err: &said})
		out = printed.String() + said.String()
		return status == exitcode.Failed
	}, patience, 200*time.Millisecond)
	require.Contains(t, out, id+" does not fit build second and stays on build odd\nmismatch: "+id)
	require.Contains(t, out, "1 of 1 run cannot move to build second")
	y.goesTo(id, "odd")
	require.NoError(t, y.env.Client().TerminateWorkflow(t.Context(), id, "", "test"))
	_, errs := y.says(exitcode.Usage, "builds", "--deployment", y.queue+"-none")
	require.Contains(t, errs, "there is no worker deployment")
}

// runsBeforeCurrent starts a run before any build is current, and requires that its status says so.
func (y *yard) runsBeforeCurrent() string {
	y.t.Helper()
	path := filepath.Join(y.dir, "waits.yaml")
	require.NoError(y.t, os.WriteFile(path, []byte("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: yard}\nworkflow:\n"+asks), 0o600))
	id := y.queue + "-waits"
	require.Eventually(y.t, func() bool {
		_, err := y.env.Client().WorkerDeploymentClient().GetHandle(y.queue).DescribeVersion(y.t.Context(), client.WorkerDeploymentDescribeVersionOptions{BuildID: "first"})
		return err == nil
	}, patience, 50*time.Millisecond)
	y.says(exitcode.OK, "run", path, "--detach", "--workflow-id", id)
	text, errs := y.says(exitcode.OK, "status", id)
	require.Contains(y.t, strings.Join(strings.Fields(text+errs), " "), "no build of deployment "+y.queue+" is current, so its workers get no runs")
	return id
}

// goesToReprocess waits until the reprocess of a run is on the current build.
func (y *yard) goesToReprocess(of string) {
	y.t.Helper()
	require.Eventually(y.t, func() bool {
		list, err := (&runs.Reader{Client: y.env.Client(), Namespace: y.env.Namespace}).List(y.t.Context(), runs.Filter{Search: of + "/"})
		return err == nil && len(list.Runs) == 1 && list.Runs[0].Build != nil && list.Runs[0].Build.ID == "second"
	}, patience, 100*time.Millisecond)
}

// triggers has a schedule start a run, which goes to the current build.
func (y *yard) triggers() {
	y.t.Helper()
	path := filepath.Join(y.dir, "scheduled.yaml")
	require.NoError(y.t, os.WriteFile(path, []byte("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: yard}\nworkflow:\n"+fails), 0o600))
	id := y.queue + "-schedule"
	y.says(exitcode.OK, "schedule", "create", id, path, "--cron", "0 0 1 1 *")
	y.t.Cleanup(func() { _ = y.env.Client().ScheduleClient().GetHandle(y.t.Context(), id).Delete(y.t.Context()) })
	y.says(exitcode.OK, "schedule", "trigger", id)
	require.Eventually(y.t, func() bool {
		list, err := (&runs.Reader{Client: y.env.Client(), Namespace: y.env.Namespace}).List(y.t.Context(), runs.Filter{Schedules: []string{id}})
		return err == nil && len(list.Runs) == 1 && list.Runs[0].Build != nil && list.Runs[0].Build.ID == "second"
	}, patience, 100*time.Millisecond)
}

// waitsForOpenChildren waits until the loop of a run has children.
func (y *yard) waitsForOpenChildren(id string, n int) {
	y.t.Helper()
	require.Eventually(y.t, func() bool {
		described, err := y.env.Client().DescribeWorkflowExecution(y.t.Context(), id+"/ask#1", "")
		return err == nil && len(described.GetPendingChildren()) == n
	}, patience, 100*time.Millisecond)
}
