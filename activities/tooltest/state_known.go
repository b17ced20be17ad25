package tooltest

import (
	"github.com/stretchr/testify/require"

	"reprise/interpreter/incremental"
)

// claimToInsert returns a claim of a call whose sink leaves out rows that come again, by a key.
func (s *StateTest) claimToInsert(holder string, key ...string) incremental.ClaimedState {
	s.Helper()
	claim := s.claim(holder)
	claim.Inserts, claim.Key = true, key
	claimed, err := s.Keeper.ClaimState(s.Context(), s.input(s.Table), claim)
	require.NoError(s, err)
	return claimed
}

// rowsKnownFrom: a claim finds from where on written rows are known, which a smaller floor does not change.
func rowsKnownFrom(s *StateTest) {
	require.Nil(s, s.claimToInsert("a", "id").KnownFrom)
	s.MustWrite(s.StateWrite("a", 1, nil, nil), Row(1, 3), Row(2, 5))
	require.Nil(s, s.claimToInsert("b", "id").KnownFrom, "nothing was forgotten")
	s.MustWrite(s.StateWrite("b", 1, MoveTo(9), At(7).Position), Row(3, 7), Row(4, 9))
	for _, holder := range []string{"c", "c"} {
		claimed := s.claimToInsert(holder, "id")
		require.NotEmpty(s, claimed.KnownTo)
		claimed.KnownTo = nil
		require.Equal(s, incremental.ClaimedState{Watermark: At(9), KnownFrom: At(7).Position}, claimed)
	}
	states, err := s.Keeper.States(s.Context(), s.input(s.Table), s.State)
	require.NoError(s, err)
	require.Equal(s, At(7), states[0].ReadsFrom(incremental.Form{Type: incremental.Integer}, 4), "as the next run does")
	s.MustWrite(s.StateWrite("c", 1, MoveTo(10), At(4).Position), Row(5, 10))
	require.Equal(s, At(7).Position, s.claimToInsert("d", "id").KnownFrom, "what was forgotten stays so")
	require.Nil(s, s.ClaimState("e").KnownFrom, "a sink that takes all rows may get all")
	s.MustWrite(s.StateWrite("e", 1, MoveTo(12), At(11).Position), Row(6, 12))
	require.Equal(s, At(11).Position, s.claimToInsert("f", "id").KnownFrom)
	require.NoError(s, s.Keeper.SetState(s.Context(), s.input(s.Table), incremental.StateChange{Name: s.State, By: "ann@host", To: At(5)}))
	require.Nil(s, s.claimToInsert("g", "id").KnownFrom, "who sets a state wants the rows from there")
}

// rowsOfAnotherKey: what is known by one key is not recognized by another.
func rowsOfAnotherKey(s *StateTest) {
	s.claimToInsert("a", "id")
	require.Nil(s, s.claimToInsert("b", "id", "page").Refused, "nothing is known yet")
	s.MustWrite(s.StateWrite("b", 1, MoveTo(5), At(5).Position), Row(1, 5))
	refused := s.claimToInsert("c", "id").Refused
	require.NotNil(s, refused)
	require.Equal(s, incremental.TypeOfAnother, refused.Type)
	require.Contains(s, refused.Message, "identifies rows by key id, page, and the step by key id")
	require.Contains(s, s.claimToInsert("c").Refused.Message, "and the step by the whole row")
	require.Nil(s, s.claimToInsert("c", "id", "page").Refused)
	require.NoError(s, s.Keeper.SetState(s.Context(), s.input(s.Table), incremental.StateChange{Name: s.State, By: "ann@host", To: At(5)}))
	require.Nil(s, s.claimToInsert("d", "id").Refused, "who sets a state accepts that")
}
