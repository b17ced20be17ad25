package workflows_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter/partition"
	"reprise/workflows/keeper"
)

// TestPartitionsContinueAsNew: what is done is there in the next history.
func TestPartitionsContinueAsNew(t *testing.T) {
	t.Parallel()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(keeper.PartitionsWorkflow, workflow.RegisterOptions{Name: partition.WorkflowName})
	at := time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)
	p := partition.Partition{Key: "2024-01-01", Start: at, End: at.Add(24 * time.Hour)}
	note := partition.Note{Playbook: "orders", Partition: p, Identity: "one", Run: "run", Status: partition.Done}
	var rejected error
	env.RegisterDelayedCallback(func() {
		answer := &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { t.Error(err) }, OnComplete: func(_ any, err error) { require.NoError(t, err) },
		}
		env.UpdateWorkflow(partition.NoteUpdate, "one", answer, note)
		env.UpdateWorkflow(partition.NoteUpdate, "two", &testsuite.TestUpdateCallback{
			OnAccept: func() { t.Error("a note of no partition was accepted") }, OnReject: func(err error) { rejected = err }, OnComplete: func(any, error) {},
		}, partition.Note{Status: partition.Done})
	}, time.Second)
	env.RegisterDelayedCallback(func() { env.SetContinueAsNewSuggested(true) }, 2*time.Second)
	env.RegisterDelayedCallback(func() {
		env.UpdateWorkflow(partition.NoteUpdate, "three", &testsuite.TestUpdateCallback{
			OnAccept: func() {}, OnReject: func(err error) { t.Error(err) }, OnComplete: func(any, error) {},
		}, note)
	}, 3*time.Second)
	env.ExecuteWorkflow(partition.WorkflowName, []byte(nil))
	require.ErrorContains(t, rejected, "a note needs a partition")
	var next *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &next)
	var snapshot []byte
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &snapshot))
	ledger, err := partition.ReadLedger(snapshot)
	require.NoError(t, err)
	require.Equal(t, partition.Done, ledger.StatusOf(p, "one"))
	require.Equal(t, partition.Stale, ledger.StatusOf(p, "two"))
}
