package keeper

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
)

// longService has a long history from its start, and is over once it has acted so often.
type longService struct {
	most, acted, woken, asked int

	failure *interpreter.ErrorObject
	after   error
}

func (s *longService) isOver(workflow.Context) bool { return s.acted == s.most }
func (s *longService) isLong(workflow.Context) bool { return true }
func (s *longService) actWhenDue(workflow.Context)  { s.acted++ }
func (s *longService) isDue(workflow.Context) bool  { return true }
func (s *longService) afterWait(workflow.Context)   { s.woken++ }

func (s *longService) continueAsNew(workflow.Context) (failure *interpreter.ErrorObject, next error) {
	s.asked++
	return s.failure, s.after
}

// TestServe: a service continues as new before it acts, stays where it keeps too much for that, and ends once it is over.
func TestServe(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		service      longService
		acted, asked int
		fails        bool
	}{
		"continues": {longService{most: 3, after: errors.New("continues as new")}, 0, 1, true},
		"stays":     {longService{most: 3, failure: &interpreter.ErrorObject{Message: "too large"}}, 3, 1, false},
		"is over":   {longService{after: errors.New("continues as new")}, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var suite testsuite.WorkflowTestSuite
			env, s := suite.NewTestWorkflowEnvironment(), row.service
			env.ExecuteWorkflow(func(ctx workflow.Context) error { return serveUntilOver(ctx, &s) })
			require.True(t, env.IsWorkflowCompleted())
			require.Equal(t, row.fails, env.GetWorkflowError() != nil)
			require.Equal(t, []int{row.acted, row.acted, row.asked}, []int{s.acted, s.woken, s.asked})
		})
	}
}
