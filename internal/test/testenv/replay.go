package testenv

import (
	"fmt"
	"log/slog"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"reprise/internal/base/payload"
)

// ReplayOption is an option of ReplayAll and Replay.
type ReplayOption func(*replayConfig)

type replayConfig struct {
	replayer worker.WorkflowReplayerOptions
	saveTo   string
}

// SaveHistoriesTo makes ReplayAll also write the histories to dir with SaveHistories.
func SaveHistoriesTo(dir string) ReplayOption {
	return func(c *replayConfig) { c.saveTo = dir }
}

// StoredIn makes replays read large values from another store than PayloadStore.
func StoredIn(store *payload.Store) ReplayOption {
	return func(c *replayConfig) { c.replayer.ExternalStorage = store.ExternalStorage() }
}

// ReplayAll replays a run, its chain and all its descendants (see Histories), each the given number of times, with
// the workflows that register adds. The test fails with the name of the first run that diverges. Replays are repeated
// because the iteration order of a Go map differs only sometimes.
func ReplayAll(
	t testing.TB, c client.Client, workflowID, runID string,
	register func(worker.WorkflowReplayer), times int, options ...ReplayOption,
) {
	t.Helper()
	histories := Histories(t, c, workflowID, runID)
	if dir := newReplayConfig(options).saveTo; dir != "" {
		if err := SaveHistories(dir, histories); err != nil {
			t.Fatal(err)
		}
	}
	if err := Replay(histories, register, times, options...); err != nil {
		t.Fatal(err)
	}
}

// Replay replays each history the given number of times with its original workflow ID and run ID, from which child
// workflow IDs may be derived. The error names the run that diverged.
func Replay(histories []RunHistory, register func(worker.WorkflowReplayer), times int, options ...ReplayOption) error {
	if len(histories) == 0 || times < 1 {
		return fmt.Errorf("replay %d histories %d times: expected at least one of each", len(histories), times)
	}
	config := newReplayConfig(options)
	for _, run := range histories {
		for n := 1; n <= times; n++ {
			if err := replayOnce(run, register, config.replayer); err != nil {
				return fmt.Errorf("replay %s, time %d of %d: %w", run, n, times, err)
			}
		}
	}
	return nil
}

func newReplayConfig(options []ReplayOption) replayConfig {
	var config replayConfig
	if store, err := sharedStore(); err == nil {
		config.replayer.ExternalStorage = store.ExternalStorage()
	}
	for _, option := range options {
		option(&config)
	}
	config.replayer.DisableDeadlockDetection = true // large values and busy machines
	return config
}

func replayOnce(run RunHistory, register func(worker.WorkflowReplayer), options worker.WorkflowReplayerOptions) error {
	replayer, err := worker.NewWorkflowReplayerWithOptions(options)
	if err != nil {
		return fmt.Errorf("make replayer: %w", err)
	}
	register(replayer)
	// A divergence is returned as an error, so the log would only repeat it.
	quiet := newLogger(slog.LevelError + 1)
	// The replayer may modify the history, so each replay gets a copy.
	history := proto.Clone(run.History).(*historypb.History)
	return replayer.ReplayWorkflowHistoryWithOptions(quiet, history, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: run.WorkflowID, RunID: run.RunID},
	})
}
