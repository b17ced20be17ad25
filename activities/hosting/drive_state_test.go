package hosting_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/interpreter"
	"reprise/interpreter/call"
)

const drivenStates = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: driven}
workflow:
  - step: fetch
    tool: player
    params: {item: "{{ item }}", since: "{{ incremental.value }}"}
    incremental: {cursor_path: id, initial_value: 0}
    loop:
      collection: [down, silent, unknown]
      element: item
      mode: parallel
      sink: {tool: postgres, auth: "{{ item }}", table: orders}
`

// TestDriveLeavesAClaim: a call whose state is out of reach, or whose claim is not answered within seconds, is left
// to the workflow as it is, and keeps no other one back. A claim that cannot succeed ends its call.
func TestDriveLeavesAClaim(t *testing.T) {
	t.Parallel()
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts connections and says nothing
	require.NoError(t, err)
	defer func() { _ = silent.Close() }()
	p := &player{}
	in := driveInput("", "", "down", "silent", "unknown")
	in.Task.Source = drivenStates
	calls := newStage(t, p, activities.Resources{Connections: activities.Connections{
		"down": "postgres://reader@127.0.0.1:1/clinic", "silent": "postgres://reader@" + silent.Addr().String() + "/clinic?sslmode=disable",
	}}).drive(in)
	book, step, err := in.Task.LoadStep()
	require.NoError(t, err)
	for i, left := range calls[:2] {
		require.Nil(t, left.Result)
		require.NotNil(t, left.State.Todo[0].State, "its claim is due")
		resumed := in.Task.BuildCall(book, step, call.Snapshot{Index: in.Calls[i].Index, Element: in.Calls[i].Element, State: left.State}, nil)
		require.True(t, resumed.View().Begun && !resumed.View().SinkDue(), "no activity hosts it again")
	}
	require.Equal(t, interpreter.KindIncremental, calls[2].Result.Error.Kind)
	require.Contains(t, calls[2].Result.Error.Message, `connection "unknown" is not configured`)
	require.Empty(t, p.asked)
}
