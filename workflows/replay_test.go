package workflows_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/workflows"
	"reprise/workflows/loop"
	"reprise/workflows/protocol"
	"reprise/workflows/run"
)

// stored are the histories of testdata/histories, recorded from real runs before the first release. The names stand here one by
// one, so that none is lost unnoticed.
var stored = map[string][]string{
	"approval": {
		"01-PlaybookWorkflow.json",
	},
	"batches": {
		"01-PlaybookWorkflow.json",
		"02-LoopWorkflow.json",
		"03-CallsWorkflow.json",
		"04-CallsWorkflow.json",
		"05-CallsWorkflow.json",
	},
	"cancel_loop": {
		"01-PlaybookWorkflow.json",
		"02-LoopWorkflow.json",
		"03-CallsWorkflow.json",
		"04-CallsWorkflow.json",
		"05-CallsWorkflow.json",
		"06-CallsWorkflow.json",
		"07-CallsWorkflow.json",
		"08-CallsWorkflow.json",
		"09-CallsWorkflow.json",
		"10-CallsWorkflow.json",
		"11-CallsWorkflow.json",
	},
	"cancel_wait": {
		"01-PlaybookWorkflow.json",
	},
	"commands_at_once": {
		"01-PlaybookWorkflow.json",
		"02-LoopWorkflow.json",
		"03-CallsWorkflow.json",
		"04-CallsWorkflow.json",
		"05-CallsWorkflow.json",
		"06-CallsWorkflow.json",
		"07-CallsWorkflow.json",
		"08-CallsWorkflow.json",
		"09-CallsWorkflow.json",
		"10-CallsWorkflow.json",
		"11-CallsWorkflow.json",
		"12-CallsWorkflow.json",
	},
	"error_route": {
		"01-PlaybookWorkflow.json",
	},
	"failure": {
		"01-PlaybookWorkflow.json",
	},
	"failure_budget": {
		"01-PlaybookWorkflow.json",
		"02-LoopWorkflow.json",
		"03-CallsWorkflow.json",
		"04-CallsWorkflow.json",
		"05-CallsWorkflow.json",
		"06-CallsWorkflow.json",
	},
	"fan_out": {
		"01-PlaybookWorkflow.json",
	},
	"invalid_playbook": {
		"01-PlaybookWorkflow.json",
	},
	"key_taken": {
		"01-PlaybookWorkflow.json",
	},
	"loop": {
		"01-PlaybookWorkflow.json",
		"02-LoopWorkflow.json",
		"03-CallsWorkflow.json",
		"04-CallsWorkflow.json",
		"05-CallsWorkflow.json",
	},
	"notices": {
		"01-PlaybookWorkflow.json",
	},
	"page_failing_for_ever": {
		"01-PlaybookWorkflow.json",
	},
	"page_failing_once": {
		"01-PlaybookWorkflow.json",
	},
	"person": {
		"01-PlaybookWorkflow.json",
		"02-LoopWorkflow.json",
		"03-CallsWorkflow.json",
	},
	"places": {
		"01-PlaybookWorkflow.json",
		"02-LoopWorkflow.json",
		"03-CallsWorkflow.json",
		"04-CallsWorkflow.json",
		"05-CallsWorkflow.json",
		"06-CallsWorkflow.json",
		"07-CallsWorkflow.json",
		"08-CallsWorkflow.json",
	},
	"playbooks": {
		"01-PlaybookWorkflow.json",
		"02-PlaybookWorkflow.json",
		"03-PlaybookWorkflow.json",
		"04-PlaybookWorkflow.json",
		"05-LoopWorkflow.json",
		"06-CallsWorkflow.json",
		"07-CallsWorkflow.json",
		"08-LoopWorkflow.json",
		"09-CallsWorkflow.json",
		"10-PlaybookWorkflow.json",
		"11-LoopWorkflow.json",
		"12-CallsWorkflow.json",
		"13-CallsWorkflow.json",
		"14-PlaybookWorkflow.json",
		"15-LoopWorkflow.json",
		"16-CallsWorkflow.json",
		"17-CallsWorkflow.json",
	},
	"poll_exhausted": {
		"01-PlaybookWorkflow.json",
	},
	"reprocess": {
		"01-PlaybookWorkflow.json",
		"02-LoopWorkflow.json",
		"03-CallsWorkflow.json",
	},
	"retry_after": {
		"01-PlaybookWorkflow.json",
	},
	"sink_failure": {
		"01-PlaybookWorkflow.json",
		"02-LoopWorkflow.json",
		"03-CallsWorkflow.json",
		"04-CallsWorkflow.json",
		"05-CallsWorkflow.json",
	},
	"sinks": {
		"01-PlaybookWorkflow.json",
		"02-LoopWorkflow.json",
		"03-CallsWorkflow.json",
		"04-CallsWorkflow.json",
		"05-CallsWorkflow.json",
		"06-CallsWorkflow.json",
		"07-CallsWorkflow.json",
	},
	"statement_parameters": {
		"01-PlaybookWorkflow.json",
	},
	"timeout": {
		"01-PlaybookWorkflow.json",
		"02-LoopWorkflow.json",
		"03-CallsWorkflow.json",
		"04-CallsWorkflow.json",
		"05-CallsWorkflow.json",
		"06-CallsWorkflow.json",
	},
	"turns_of_pages": {
		"01-PlaybookWorkflow.json",
	},
	"turns_of_sinks": {
		"01-PlaybookWorkflow.json",
	},
	"webhook": {
		"01-PlaybookWorkflow.json",
	},
	"worker_lost": {
		"01-PlaybookWorkflow.json",
	},
}

const histories = "testdata/histories"

// replays is how often each history is replayed: the order of a Go map differs
// only sometimes.
const replays = 5

func TestStoredHistoriesReplay(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, len(stored), 12)
	for name, files := range stored {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			loaded := load(t, name)
			require.Len(t, loaded, len(files))
			for i, file := range files {
				require.Equal(t, strings.TrimSuffix(file[len("01-"):], ".json"), loaded[i].Type)
			}
			require.NoError(t, testenv.Replay(loaded, register, replays))
		})
	}
}

// releases are the runs that each release has recorded, make record-histories RELEASE=…, in testdata/releases.
var releases = map[string]int{"v0.1.0": 34}

// TestHistoriesOfReleasesReplay: what a release has begun, this build continues.
func TestHistoriesOfReleasesReplay(t *testing.T) {
	t.Parallel()
	const folder = "testdata/releases"
	for release, runs := range releases {
		found, err := filepath.Glob(filepath.Join(folder, release, "*"))
		require.NoError(t, err)
		require.Len(t, found, runs, release)
		for _, run := range found {
			t.Run(release+"/"+filepath.Base(run), func(t *testing.T) {
				t.Parallel()
				require.NoError(t, testenv.Replay(testenv.LoadHistories(t, run), register, replays))
			})
		}
	}
	stored, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	require.Len(t, stored, len(releases))
}

// TestEveryStoredHistoryIsListed compares the list above with the folder.
func TestEveryStoredHistoryIsListed(t *testing.T) {
	t.Parallel()
	listed := map[string]bool{}
	for name, files := range stored {
		for _, file := range files {
			listed[filepath.Join(histories, name, file)] = true
		}
	}
	found, err := filepath.Glob(filepath.Join(histories, "*", "*"))
	require.NoError(t, err)
	for _, file := range found {
		require.True(t, listed[file], "%s is not listed", file)
		delete(listed, file)
	}
	require.Empty(t, listed, "listed and not there")
}

func load(t *testing.T, name string) []testenv.RunHistory {
	t.Helper()
	require.DirExists(t, filepath.Join(histories, name))
	return testenv.LoadHistories(t, filepath.Join(histories, name))
}

func register(r worker.WorkflowReplayer) { workflows.Register(r) }

// changed registers the workflows with one of them replaced.
func changed(name string, replacement any) func(worker.WorkflowReplayer) {
	return func(r worker.WorkflowReplayer) { workflows.Register(replaced{r, name, replacement}) }
}

type replaced struct {
	worker.WorkflowReplayer
	name        string
	replacement any
}

func (r replaced) RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions) {
	if options.Name == r.name {
		w = r.replacement
	}
	r.WorkflowReplayer.RegisterWorkflowWithOptions(w, options)
}

// The next tests prove that a replay notices changes: the same history, with
// code that does a little more, less, or in another order.

// nondeterminism is the SDK's code for a history that does not fit the code.
const nondeterminism = "[TMPRL1100]"

func TestReplayFailsWithOneMoreTimer(t *testing.T) {
	t.Parallel()
	sleepy := func(ctx workflow.Context, input protocol.Input) (*protocol.Result, error) {
		if err := workflow.Sleep(ctx, time.Second); err != nil {
			return nil, err
		}
		return run.PlaybookWorkflow(ctx, input)
	}
	err := testenv.Replay(load(t, "fan_out"), changed(protocol.PlaybookWorkflowName, sleepy), 1)
	require.ErrorContains(t, err, "PlaybookWorkflow")
	require.ErrorContains(t, err, nondeterminism)
}

// TestReplayFailsInAnotherOrder: the wait of a retry comes after the attempt
// it stood before, because the policy no longer waits.
func TestReplayFailsInAnotherOrder(t *testing.T) {
	t.Parallel()
	hasty := func(ctx workflow.Context, input protocol.Input) (*protocol.Result, error) {
		source := strings.ReplaceAll(input.Source, "delay: 0.1", "backoff: none")
		require.NotEqual(t, input.Source, source)
		input.Source = source
		return run.PlaybookWorkflow(ctx, input)
	}
	err := testenv.Replay(load(t, "page_failing_once"), changed(protocol.PlaybookWorkflowName, hasty), 1)
	require.ErrorContains(t, err, nondeterminism)
}

func TestReplayFailsWithFewerChildren(t *testing.T) {
	t.Parallel()
	lazy := func(ctx workflow.Context, input protocol.LoopInput, script call.Script) (*interpreter.LoopResult, error) {
		input.Elements = input.Elements[:len(input.Elements)-1]
		return loop.LoopWorkflow(ctx, input, script)
	}
	err := testenv.Replay(load(t, "loop"), changed(protocol.LoopWorkflowName, lazy), 1)
	require.ErrorContains(t, err, "LoopWorkflow")
	require.ErrorContains(t, err, nondeterminism)
}

// TestReplayCoversChildren: only the iterations have changed, and the run is
// found wanting all the same.
func TestReplayCoversChildren(t *testing.T) {
	t.Parallel()
	idle := func(workflow.Context, protocol.CallsInput) (*protocol.CallsOutput, error) {
		return &protocol.CallsOutput{}, nil
	}
	loaded := load(t, "loop")
	require.NoError(t, testenv.Replay(loaded[:1], changed(protocol.CallsWorkflowName, idle), 1))
	err := testenv.Replay(loaded, changed(protocol.CallsWorkflowName, idle), 1)
	require.ErrorContains(t, err, "CallsWorkflow")
}

// TestHistoriesNameNoMachine: what is stored is the same for everybody.
func TestHistoriesNameNoMachine(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	require.NoError(t, err)
	for name, files := range stored {
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(histories, name, file))
			require.NoError(t, err)
			require.NotContains(t, string(text), "@"+host)
		}
	}
}
