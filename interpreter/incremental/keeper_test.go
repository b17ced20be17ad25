package incremental_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func cursor(t *testing.T, n int) incremental.Cursor {
	t.Helper()
	c, err := incremental.Parse(incremental.Integer, n)
	require.NoError(t, err)
	return c
}

// keeperScript runs words against a keeper: "a claims s", "a moves s 1 to 10", "a moves s 2 back to 5",
// "a undoes s 1", "ana sets s to 7", "ana resets s".
type keeperScript struct {
	t      *testing.T
	keeper *incremental.Keeper
	at     time.Time
}

func (s *keeperScript) do(line string) string {
	s.at = s.at.Add(time.Second)
	words := strings.Fields(line)
	who, name := words[0], words[2]
	number := func(at int) (n int) {
		_, err := fmt.Sscan(words[at], &n)
		require.NoError(s.t, err, line)
		return n
	}
	switch words[1] {
	case "claims":
		source := incremental.SourceIdentity{CursorPath: "id", Type: incremental.Integer, Fingerprint: "here"}
		if len(words) > 4 {
			source.Fingerprint = words[4]
		}
		claimed := s.keeper.Claim(incremental.Claim{Name: name, Holder: who, Run: "run-" + who, Source: source}, s.at)
		if claimed.Refused != nil {
			return claimed.Refused.Type
		}
		return "found " + claimed.Watermark.Text()
	case "moves":
		move := &incremental.Move{To: cursor(s.t, number(len(words)-1)), Back: words[4] == "back", Rows: number(3)}
		refused := s.keeper.ApplyWrite(incremental.StateWrite{Name: name, Holder: who, Number: number(3), Move: move}, s.at)
		if refused != nil {
			return refused.Type
		}
	case "undoes":
		s.keeper.Undo(incremental.StateWrite{Name: name, Holder: who, Number: number(3)}, s.at)
	case "sets":
		require.Nil(s.t, s.keeper.Set(incremental.StateChange{Name: name, By: who, Note: "why", To: cursor(s.t, number(4))}, s.at))
	case "resets":
		require.Nil(s.t, s.keeper.Set(incremental.StateChange{Name: name, By: who}, s.at))
	}
	states := s.keeper.States(incremental.NameRange{Prefix: name})
	if len(states) == 0 {
		return "forgotten"
	}
	return "at " + states[0].Watermark.Text()
}

// TestKeeperCounts: a move to where the watermark is counts the rows of its call, and moves nothing.
func TestKeeperCounts(t *testing.T) {
	t.Parallel()
	k := &incremental.Keeper{}
	s := &keeperScript{t: t, keeper: k, at: noon}
	s.do("a claims s")
	s.do("a moves s 1 to 10")
	s.do("b claims s")
	require.Zero(t, k.States(incremental.NameRange{})[0].Rows)
	s.do("b moves s 1 to 10")
	state := k.States(incremental.NameRange{})[0]
	require.Equal(t, int64(1), state.Rows)
	require.Equal(t, noon.Add(2*time.Second), state.MovedAt)
	require.Len(t, k.History("s"), 1)
}

func TestKeeper(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][][2]string{
		"moves": {
			{"a claims s", "found "}, {"a moves s 1 to 10", "at 10"}, {"a moves s 2 to 20", "at 20"}, {"b claims s", "found 20"},
		},
		"a claim again gets what the first one got": {
			{"a claims s", "found "},
			{"a moves s 1 to 10", "at 10"},
			{"a claims s", "found "},
			{"a moves s 2 to 20", "at 20"},
			{"b claims s", "found 20"},
			{"b moves s 1 to 30", "at 30"},
			{"b claims s", "found 20"},
		},
		"a write again changes nothing": {
			{"a claims s", "found "},
			{"a moves s 1 to 10", "at 10"},
			{"a moves s 1 to 11", "at 10"},
			{"a moves s 2 to 20", "at 20"},
			{"a moves s 1 to 30", "at 20"},
		},
		"out of turn":         {{"a claims s", "found "}, {"a moves s 2 to 10", "state_moved"}, {"a moves s 1 to 10", "at 10"}},
		"never backwards":     {{"a claims s", "found "}, {"a moves s 1 to 10", "at 10"}, {"a moves s 2 to 5", "at 10"}, {"a moves s 3 to 11", "at 11"}},
		"back where it began": {{"a claims s", "found "}, {"a moves s 1 to 10", "at 10"}, {"a moves s 2 back to 5", "at 5"}},
		"undone": {
			{"a claims s", "found "},
			{"a moves s 1 to 10", "at 10"},
			{"b claims s", "found 10"},
			{"b moves s 1 to 20", "at 20"},
			{"b undoes s 1", "at 10"},
			{"b moves s 1 to 20", "at 10"},
			{"c claims s", "found 10"},
		},
		"undone before it arrives":    {{"a claims s", "found "}, {"a undoes s 1", "at "}, {"a moves s 1 to 10", "at "}, {"b claims s", "found "}},
		"undone once another has it":  {{"a claims s", "found "}, {"a moves s 1 to 10", "at 10"}, {"b claims s", "found 10"}, {"a undoes s 1", "at 10"}},
		"undone though nobody has it": {{"a undoes s 1", "forgotten"}},
		"the newest claim wins": {
			{"a claims s", "found "},
			{"b claims s", "found "},
			{"a moves s 1 to 10", "state_moved"},
			{"b moves s 1 to 7", "at 7"},
			{"a claims s", "found 7"},
			{"b moves s 2 to 8", "state_moved"},
			{"a moves s 1 to 9", "at 9"},
		},
		"nobody has claimed it": {{"a moves s 1 to 10", "state_moved"}},
		"another source": {
			{"a claims s", "found "},
			{"b claims s of there", "found "},
			{"b moves s 1 to 10", "at 10"},
			{"c claims s", "state_of_another"},
			{"b moves s 2 to 20", "at 20"},
			{"c claims s of there", "found 20"},
		},
		"set by a person": {
			{"a claims s", "found "},
			{"a moves s 1 to 10", "at 10"},
			{"ana sets s to 3", "at 3"},
			{"a moves s 2 to 20", "state_moved"},
			{"a claims s", "found 3"},
			{"a moves s 1 to 20", "at 20"},
		},
		"set before it was claimed": {{"ana sets s to 3", "at 3"}, {"a claims s of there", "found 3"}},
		"forgotten": {
			{"a claims s", "found "},
			{"a moves s 1 to 10", "at 10"},
			{"ana resets s", "forgotten"},
			{"a moves s 2 to 20", "state_moved"},
			{"b claims s of there", "found "},
			{"ana resets other", "forgotten"},
		},
		"states are apart": {{"a claims s", "found "}, {"b claims t", "found "}, {"a moves s 1 to 1", "at 1"}, {"b moves t 1 to 2", "at 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := keeperScript{t, &incremental.Keeper{}, noon}
			for _, step := range steps {
				require.Equal(t, step[1], script.do(step[0]), step[0])
				packed, err := script.keeper.Snapshot()
				require.NoError(t, err)
				script.keeper, err = incremental.ReadKeeper(packed)
				require.NoError(t, err)
			}
		})
	}
}

func TestKeeperHistory(t *testing.T) {
	t.Parallel()
	script := keeperScript{t, &incremental.Keeper{}, noon}
	for _, line := range []string{
		"a claims s", "a moves s 1 to 10", "a moves s 2 to 20", "b claims s", "c claims s", "c moves s 1 to 30", "x claims t", "x moves t 1 to 1",
		"ana sets s to 5", "d claims s", "d moves s 1 to 6", "d moves s 2 back to 5", "ben resets s",
	} {
		script.do(line)
	}
	said := func(name string) (lines []string) {
		for _, change := range script.keeper.History(name) {
			lines = append(lines, fmt.Sprintf("%s %s: %s -> %s", change.At.Format("05"), change.By, change.From.Text(), change.To.Text()))
		}
		return lines
	}
	require.Equal(t, []string{
		"03 run-a:  -> 20", "06 run-c: 20 -> 30", "09 ana: 30 -> 5", "13 ben: 5 -> ",
	}, said("s"), "who moved nothing has no entry, nor who put it back")
	require.Equal(t, []string{"08 run-x:  -> 1"}, said("t"), "the holder's own")
	require.Equal(t, "why", script.keeper.History("s")[2].Note)
}

// TestKeeperRefusals name what is the matter, and the way out.
func TestKeeperRefusals(t *testing.T) {
	t.Parallel()
	script := keeperScript{t, &incremental.Keeper{}, noon}
	script.do("a claims s")
	script.do("a moves s 1 to 10")
	claim := incremental.Claim{Name: "s", Holder: "b", Run: "run-b", Source: incremental.SourceIdentity{CursorPath: "id", Type: incremental.Integer, Fingerprint: "here"}}
	for _, row := range []struct {
		change func(*incremental.SourceIdentity)
		want   string
	}{
		{func(s *incremental.SourceIdentity) { s.Fingerprint = "there" }, "rows come from another source"},
		{func(s *incremental.SourceIdentity) { s.CursorPath = "at" }, "its cursor is id, and the step's is at"},
		{func(s *incremental.SourceIdentity) { s.CursorPath, s.Type = "", incremental.Token }, "and the step's is a token"},
		{func(s *incremental.SourceIdentity) { s.Type = incremental.Text }, "its cursor has type integer, and the step's has type text"},
	} {
		other := claim
		row.change(&other.Source)
		refused := script.keeper.Claim(other, noon).Refused
		require.NotNil(t, refused)
		require.Contains(t, refused.Message, row.want)
		require.Contains(t, refused.Message, "starter state reset")
	}
	require.Nil(t, script.keeper.Claim(claim, noon).Refused)
	require.Contains(t, script.keeper.ApplyWrite(incremental.StateWrite{Name: "s", Holder: "a", Number: 2}, noon).Message, "run-b")
}

// TestKeeperOfOtherTables: a state that has moved goes to no call that writes to a table to which the call before did not, also where
// another one did earlier. It begins anew for one that reads everything, whatever becomes of that, and is accepted for one where a person
// says so. Of a call of an earlier build the tables are not known.
func TestKeeperOfOtherTables(t *testing.T) {
	t.Parallel()
	k := &incremental.Keeper{}
	claim := func(holder string, full bool, tables ...string) incremental.ClaimedState {
		return k.Claim(incremental.Claim{
			Name: "s", Holder: holder, Run: "run-" + holder, Full: full, Tables: tables,
			Source: incremental.SourceIdentity{CursorPath: "id", Type: incremental.Integer, Fingerprint: "here"},
		}, noon)
	}
	move := func(holder string, to int) {
		t.Helper()
		require.Nil(t, k.ApplyWrite(incremental.StateWrite{Name: "s", Holder: holder, Number: 1, Move: &incremental.Move{To: cursor(t, to), Rows: 1}}, noon))
	}
	refused := func(claimed incremental.ClaimedState, table string) {
		t.Helper()
		require.NotNil(t, claimed.Refused)
		require.Equal(t, incremental.TypeOfAnother, claimed.Refused.Type)
		require.Contains(t, claimed.Refused.Message, table)
	}
	none := []string{}
	require.Nil(t, claim("a", false, "x").Refused)
	require.Nil(t, claim("b", false, "y").Refused, "it has not moved")
	move("b", 10)
	require.Equal(t, cursor(t, 10), claim("c", false, "y").Watermark)
	refused(claim("d", false, "x", "y"), "table x:")
	require.Equal(t, cursor(t, 10), claim("e", false, none...).Watermark)
	refused(claim("f", false, "y"), "table y:")
	require.Equal(t, incremental.ClaimedState{}, claim("g", true, "x", "y"), "it begins anew")
	require.Equal(t, incremental.ClaimedState{}, claim("h", false, "x", "y"), "the call before has failed, and its table lacks rows")
	move("h", 20)
	require.Equal(t, incremental.FullIntoAnother, k.History("s")[1].Note)
	refused(claim("i", false, "z"), "table z:")
	require.Nil(t, k.Set(incremental.StateChange{Name: "s", By: "ana", To: cursor(t, 5)}, noon))
	require.Equal(t, cursor(t, 5), claim("i", false, "z").Watermark)
	require.Equal(t, cursor(t, 5), claim("of an earlier build", false).Watermark)
	require.Equal(t, cursor(t, 5), claim("j", false, "x").Watermark)
}

// TestKeeperIsBounded: 10,000 states with names, holders and cursors as they are fit into one
// payload, and one more is refused with the way out; so are states that are too large together.
func TestKeeperIsBounded(t *testing.T) {
	t.Parallel()
	k := &incremental.Keeper{}
	claim := func(i int, pad string) *incremental.Refusal {
		name := fmt.Sprintf("shop/orders/tenant-%06d%s", i, pad)
		claimed := k.Claim(incremental.Claim{
			Name: name, Holder: strings.Repeat("h", 50) + fmt.Sprint(i), Run: "shop-2026-11-23T12:00:00Z",
			Source: incremental.SourceIdentity{CursorPath: "updated_at", Type: incremental.Time, Fingerprint: fmt.Sprint("source ", i)},
			Tables: []string{"orders of postgres warehouse", "audit of postgres warehouse"},
		}, noon)
		if claimed.Refused != nil {
			return claimed.Refused
		}
		to, err := incremental.Parse(incremental.Time, noon.Add(time.Duration(i)*time.Millisecond).Format(time.RFC3339Nano))
		require.NoError(t, err)
		return k.ApplyWrite(incremental.StateWrite{Name: name, Holder: strings.Repeat("h", 50) + fmt.Sprint(i), Number: 1, Move: &incremental.Move{To: to, Rows: i}}, noon)
	}
	for i := range incremental.MaxStates {
		require.Nil(t, claim(i, ""), i)
	}
	refused := claim(incremental.MaxStates, "")
	require.NotNil(t, refused)
	require.Equal(t, incremental.TypeFull, refused.Type)
	require.Contains(t, refused.Message, "a table of postgres or sqlite")
	require.Nil(t, claim(7, ""), "one that is there is still claimed")
	packed, err := k.Snapshot()
	require.NoError(t, err)
	require.Less(t, len(packed), 1_000_000)
	again, err := incremental.ReadKeeper(packed)
	require.NoError(t, err)
	require.Equal(t, incremental.MaxStates, again.Len())
	names := 0
	for within := (incremental.NameRange{Prefix: "shop/orders/tenant-00"}); ; names++ {
		states := again.States(within)
		if len(states) == 0 {
			break
		}
		require.Len(t, states, incremental.RangeSize)
		within.After = states[len(states)-1].Name
	}
	require.Equal(t, incremental.MaxStates/incremental.RangeSize, names)
	k = &incremental.Keeper{}
	random, n := rand.New(rand.NewPCG(1, 1)), 0
	for ; ; n++ {
		var pad strings.Builder
		for range 400 {
			pad.WriteByte(byte('!' + random.IntN(90)))
		}
		if claim(n, pad.String()) != nil {
			break
		}
	}
	require.Greater(t, n, 3000)
	packed, err = k.Snapshot()
	require.NoError(t, err)
	require.Less(t, len(packed), 1_900_000)
}

func TestKeeperHistoryIsBounded(t *testing.T) {
	t.Parallel()
	k := &incremental.Keeper{}
	for i := range 3000 {
		name := fmt.Sprint("s", i%15)
		if i >= 2500 {
			name = "one"
		}
		require.Nil(t, k.Set(incremental.StateChange{Name: name, By: "ana", To: cursor(t, i)}, noon))
	}
	require.Len(t, k.History("one"), incremental.MaxChangesOfOne)
	require.Equal(t, "2999", k.History("one")[99].To.Text())
	for i := range 2000 {
		require.Nil(t, k.Set(incremental.StateChange{Name: fmt.Sprint("n", i), By: "ana", Note: strings.Repeat("x", 900), To: cursor(t, i)}, noon))
	}
	require.Empty(t, k.History("n0"))
	require.NotEmpty(t, k.History("n1999"))
	packed, err := k.Snapshot()
	require.NoError(t, err)
	_, err = incremental.ReadKeeper(packed)
	require.NoError(t, err)
}

// TestReadKeeper: what no keeper has written is an error.
func TestReadKeeper(t *testing.T) {
	t.Parallel()
	k, err := incremental.ReadKeeper(nil)
	require.NoError(t, err)
	require.Zero(t, k.Len())
	_, err = incremental.ReadKeeper([]byte("nothing"))
	require.Error(t, err)
}

// model is what a keeper has to keep of a state, in a few words.
type model struct {
	watermark, found int
	holder           string
	number           int
	present          bool
}

// TestKeeperAgainstAModel: random claims, writes, duplicates, late writes and changes by people.
func TestKeeperAgainstAModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		script := keeperScript{t, &incremental.Keeper{}, noon}
		models := map[string]*model{"s": {}, "t": {}}
		for range 120 {
			name := []string{"s", "t"}[random.IntN(2)]
			who, m := string(rune('a'+random.IntN(3))), models[name]
			line, want := "", ""
			switch random.IntN(8) {
			case 0, 1:
				line = who + " claims " + name
				if m.holder != who {
					*m = model{watermark: m.watermark, found: m.watermark, holder: who, present: true}
				}
				want = "found " + shown(m.found)
			case 2:
				line = "ana resets " + name
				*m, want = model{}, "forgotten"
			case 3:
				to := 1 + random.IntN(50)
				line, want = fmt.Sprintf("ana sets %s to %d", name, to), fmt.Sprint("at ", to)
				*m = model{watermark: to, present: true}
			default:
				number, to, back := max(1, m.number+random.IntN(4)-1), 1+random.IntN(100), random.IntN(10) == 0
				line = fmt.Sprintf("%s moves %s %d to %d", who, name, number, to)
				if back {
					line = fmt.Sprintf("%s moves %s %d back to %d", who, name, number, to)
				}
				switch {
				case !m.present || m.holder != who || number > m.number+1:
					want = "state_moved"
				case number == m.number+1:
					m.number = number
					if back || to > m.watermark {
						m.watermark = to
					}
				}
			}
			if want == "" {
				want = "at " + shown(m.watermark)
			}
			require.Equal(t, want, script.do(line), "seed %d: %s", seed, line)
		}
	}
}

func shown(watermark int) string {
	if watermark == 0 {
		return ""
	}
	return fmt.Sprint(watermark)
}

// TestChecks passes MaxName, maxText, maxTables, maxCursor and maxMoves.
func TestChecks(t *testing.T) {
	t.Parallel()
	claim := incremental.Claim{Name: "s", Holder: "a", Source: incremental.SourceIdentity{Type: incremental.Time}}
	require.NoError(t, claim.Check())
	for _, change := range []func(*incremental.Claim){
		func(c *incremental.Claim) { c.Name = "" },
		func(c *incremental.Claim) { c.Name = strings.Repeat("x", 501) },
		func(c *incremental.Claim) { c.Holder = "" },
		func(c *incremental.Claim) { c.Run = strings.Repeat("x", 1001) },
		func(c *incremental.Claim) { c.Source.Type = "other" },
		func(c *incremental.Claim) { c.Source.CursorPath = strings.Repeat("x", 1001) },
		func(c *incremental.Claim) { c.Tables = make([]string, 1001) },
	} {
		wrong := claim
		change(&wrong)
		require.Error(t, wrong.Check())
	}
	write := incremental.StateWrite{Name: "s", Holder: "a", Number: 1, Move: &incremental.Move{}}
	require.NoError(t, incremental.CheckWrites([]incremental.StateWrite{write}))
	require.Error(t, incremental.CheckWrites(nil))
	require.Error(t, incremental.CheckWrites(make([]incremental.StateWrite, 10_001)))
	long := incremental.Cursor{Value: expression.Of(strings.Repeat("x", 9000))}
	for _, change := range []func(*incremental.StateWrite){
		func(w *incremental.StateWrite) { w.Number = 0 },
		func(w *incremental.StateWrite) { w.Holder = "" },
		func(w *incremental.StateWrite) { w.Name = "" },
		func(w *incremental.StateWrite) { w.Move = &incremental.Move{Rows: -1} },
		func(w *incremental.StateWrite) { w.Move = &incremental.Move{To: long} },
	} {
		wrong := write
		change(&wrong)
		require.Error(t, incremental.CheckWrites([]incremental.StateWrite{write, wrong}))
	}
	require.NoError(t, incremental.StateChange{Name: "s", By: "ana"}.Check())
	require.Error(t, incremental.StateChange{Name: "s"}.Check())
	require.Error(t, incremental.StateChange{Name: "s", By: "ana", To: long}.Check())
	require.Error(t, incremental.StateChange{By: "ana"}.Check())
}

func TestWorkflowID(t *testing.T) {
	t.Parallel()
	require.Equal(t, "reprise-state/shop%2Forders", incremental.WorkflowID("shop/orders"))
	long := strings.Repeat("x", 2000)
	require.Less(t, len(incremental.WorkflowID(long)), 1000)
	require.NotEqual(t, incremental.WorkflowID(long), incremental.WorkflowID(long+"y"))
}

// TestKeeperRemoves: a state that a call has claimed, or a person has set, since it was listed stays.
func TestKeeperRemoves(t *testing.T) {
	t.Parallel()
	script := keeperScript{t, &incremental.Keeper{}, noon}
	for _, line := range []string{"a claims s1", "a moves s1 1 to 10", "a claims s2", "a claims s3", "a moves s3 1 to 5", "a claims s4", "ana sets s5 to 7"} {
		script.do(line)
	}
	listed := script.keeper.States(incremental.NameRange{})
	require.Len(t, listed, 5)
	require.Equal(t, noon.Add(time.Second), listed[0].UsedAt().Add(-time.Second), "it has moved a second after it was claimed")
	require.Equal(t, listed[1].ClaimedAt, listed[1].UsedAt())
	require.Equal(t, listed[4].MovedAt, listed[4].UsedAt(), "a person has set it")
	for _, line := range []string{"b claims s2", "a moves s3 2 to 6"} {
		script.do(line)
	}
	removal := incremental.Removal{States: lists.Map(append(listed, incremental.State{Name: "absent"}), incremental.State.ListedState), By: "ana", Note: "closed"}
	require.NoError(t, removal.Check())
	require.Equal(t, []string{"s1", "s4", "s5"}, script.keeper.Remove(removal, noon.Add(time.Hour)))
	require.Empty(t, script.keeper.Remove(removal, noon.Add(time.Hour)))
	left := script.keeper.States(incremental.NameRange{})
	require.Equal(t, []string{"s2", "s3"}, lists.Map(left, func(state incremental.State) string { return state.Name }))
	changes := script.keeper.History("s1")
	require.Equal(t, incremental.StateChange{Name: "s1", At: noon.Add(time.Hour), By: "ana", From: cursor(t, 10), Note: "closed"}, changes[len(changes)-1])

	require.Error(t, incremental.Removal{By: "ana"}.Check())
	require.Error(t, incremental.Removal{States: make([]incremental.ListedState, incremental.MaxRemoved+1), By: "ana"}.Check())
	require.Error(t, incremental.Removal{States: removal.States}.Check())
}

// TestUseOfOlderBuilds: it is not known when an older build has claimed a state that it may have moved long before.
func TestUseOfOlderBuilds(t *testing.T) {
	t.Parallel()
	require.Zero(t, incremental.State{Name: "s", Run: "shop-1", MovedAt: noon}.UsedAt())
	require.Equal(t, noon, incremental.State{Name: "s", MovedAt: noon}.UsedAt())
	require.Equal(t, noon, incremental.State{Name: "s", Run: "shop-1", ClaimedAt: noon, MovedAt: noon.Add(-time.Hour)}.UsedAt())
}
