package call_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
)

// fakeState is a state as whoever keeps it does: its watermark, and the write of the call that
// came last.
type fakeState struct {
	found  any
	holder string
	number int
}

// answerState plays a claim, or a move that is no write's. The script may have a line
// `state refused TYPE` or `state fails`.
func (h *host) answerState(machine *call.Call, input interpreter.StateInput, indent string) {
	where := "temporal " + input.Group
	if input.Place != nil {
		where = input.Place.Tool + " " + expression.Text(input.Place.Fields["table"].Data)
		require.Nil(h.t, input.Place.Result, "what is written has no business here")
	}
	said := ""
	if len(h.script) > 0 && strings.HasPrefix(h.script[0], "state ") {
		said, h.script = strings.TrimPrefix(h.script[0], "state "), h.script[1:]
	}
	if claim := input.Claim; claim != nil {
		fmt.Fprintf(&h.text, "%sclaim %s in %s\n", indent, claim.Name, where)
		h.state.holder = claim.Holder
		output := interpreter.StateOutput{}
		if h.state.found != nil {
			found, err := incremental.Parse(claim.Source.Type, h.state.found)
			require.NoError(h.t, err)
			output.Claimed.Watermark = found
		}
		if kind, refused := strings.CutPrefix(said, "refused "); refused {
			output.Claimed.Refused = &incremental.Refusal{Type: kind, Message: "it is refused"}
		}
		machine.StateAnswered(output, h.now)
		return
	}
	for _, moves := range input.Moves {
		if input.Place == nil {
			where = "temporal " + moves.Group
		}
		for _, write := range moves.Writes {
			fmt.Fprintf(&h.text, "%s%s in %s\n", indent, h.state.write(h.t, write), where)
		}
	}
	if said == "fails" {
		machine.StateFailed(interpreter.ErrorObject{Class: interpreter.ClassRetryable, Message: "it is away"}, h.now)
		return
	}
	machine.StateAnswered(interpreter.StateOutput{}, h.now)
}

// write checks that a write is the next one of the call that holds the state, or the last one
// again, and shows it.
func (s *fakeState) write(t *testing.T, write incremental.StateWrite) string {
	require.Equal(t, s.holder, write.Holder, "a write without a claim")
	require.Contains(t, []int{s.number, s.number + 1}, write.Number, "a write out of turn")
	s.number = write.Number
	text := fmt.Sprintf("state #%d", write.Number)
	if write.Move != nil {
		text += " to " + tables.Encode(t, write.Move.To.Value.Data)
		if write.Move.Back {
			text += " back"
		}
	}
	if rows := write.Rows; rows != nil {
		key, err := json.Marshal(rows.Key)
		require.NoError(t, err)
		text += " known by " + string(key)
	}
	return text
}
