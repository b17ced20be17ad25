package tooltest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
)

// watermarkIsBehindRows: whoever reads state and table at one moment finds all rows below the watermark.
func watermarkIsBehindRows(s *StateTest) {
	const pages, rowsOfPage = 60, 10
	s.ClaimState("a")
	ctx, done := context.WithCancel(s.Context())
	defer done()
	var readers errgroup.Group
	sampled := 0
	readers.Go(func() error {
		in := s.input("")
		in.Fields = Fields(map[string]any{"statement": "SELECT CAST(watermark AS bigint) AS w, (SELECT count(*) FROM " + s.Table +
			") AS n FROM reprise_state WHERE name = '" + s.State + "' AND watermark IS NOT NULL"})
		for ctx.Err() == nil {
			result, err := s.Keeper.Run(context.Background(), in)
			if err != nil {
				return err
			}
			for _, row := range result.Data.Data.([]any) {
				row := row.(map[string]any)
				if row["w"] != row["n"] {
					return fmt.Errorf("the watermark is %v where the table has %v rows", row["w"], row["n"])
				}
				sampled++
			}
		}
		return nil
	})
	for page := range pages {
		rows := make([]any, rowsOfPage)
		for i := range rows {
			rows[i] = Row(page*rowsOfPage+i, page*rowsOfPage+i+1)
		}
		s.MustWrite(s.StateWrite("a", page+1, MoveTo((page+1)*rowsOfPage), nil), rows...)
	}
	done()
	require.NoError(s, readers.Wait())
	require.Positive(s, sampled)
}

// stateModel is what a state, its table and the ledger have to be.
type stateModel struct {
	holder           string
	last             int
	watermark, found *int
	table            map[[2]int]int // how often rows are there
	seen             map[[2]int]bool
	ledger           map[string]int
}

// modelWrite is a write of the property test.
type modelWrite struct {
	key    string
	state  *incremental.StateWrite
	rows   [][2]int
	floor  int
	broken bool // the database refuses one of its rows
}

// statesFollowTheModel makes claims, writes, writes that fail, that come late and that come twice, at random.
func statesFollowTheModel(s *StateTest) {
	s.query(s, "DROP TABLE "+s.Table)
	s.query(s, "CREATE TABLE "+s.Table+" (id bigint, at bigint, page bigint CHECK (page < 10))")
	const seed = 23
	random := rand.New(rand.NewPCG(seed, seed))
	model := &stateModel{table: map[[2]int]int{}, seen: map[[2]int]bool{}, ledger: map[string]int{}}
	holders := []string{"first"}
	s.claimOfModel(model, "first")
	var made []*modelWrite
	for step := range 400 {
		switch chance := random.IntN(10); {
		case chance == 0:
			holders = append(holders, fmt.Sprint("holder ", step))
			s.claimOfModel(model, holders[len(holders)-1])
		case chance == 1:
			s.claimOfModel(model, model.holder)
		case chance == 2 && len(made) > 0:
			s.writeOfModel(model, made[random.IntN(len(made))])
		default:
			write := s.randomWrite(model, random, holders)
			write.key = fmt.Sprint("model ", step)
			made = append(made, write)
			s.writeOfModel(model, write)
		}
		s.requireModel(model, step)
	}
	require.Greater(s, len(model.table), 20)
}

func (s *StateTest) claimOfModel(model *stateModel, holder string) {
	s.Helper()
	claimed := s.ClaimState(holder)
	if claimed.Refused != nil { // the table may have no rows yet, as a write that moved has none
		require.Empty(s, model.table)
		s.reset()
		model.watermark, model.seen, model.holder = nil, map[[2]int]bool{}, ""
		claimed = s.ClaimState(holder)
	}
	if model.holder != holder {
		model.holder, model.last, model.found = holder, 0, model.watermark
	}
	var want any
	if model.found != nil {
		want = *model.found
	}
	require.Equal(s, want, claimed.Watermark.Value.Data)
}

// randomWrite is mostly the next one of the call that holds the state.
func (s *StateTest) randomWrite(model *stateModel, random *rand.Rand, holders []string) *modelWrite {
	holder, number := model.holder, model.last+1
	switch random.IntN(10) {
	case 0:
		holder = holders[random.IntN(len(holders))]
	case 1:
		number += random.IntN(4) - 2
	}
	now := 0
	if model.watermark != nil {
		now = *model.watermark
	}
	write := &modelWrite{broken: random.IntN(8) == 0, floor: now - 3}
	for range random.IntN(6) {
		write.rows = append(write.rows, [2]int{random.IntN(4), now - 4 + random.IntN(8)})
	}
	write.state = s.StateWrite(holder, number, nil, nil)
	if random.IntN(2) == 0 {
		to := now + random.IntN(4) - 1
		write.state.Move = MoveTo(to)
		write.floor = max(to, now) - 3
		write.state.Rows.Sweep = random.IntN(2) == 0
	}
	write.state.Rows.Floor = At(write.floor).Position
	return write
}

func (s *StateTest) writeOfModel(model *stateModel, write *modelWrite) {
	s.Helper()
	rows := lists.Map(write.rows, func(row [2]int) any { return map[string]any{"id": row[0], "at": row[1], "page": 1} })
	in := s.WriteInput(rows...)
	if write.broken && len(rows) > 0 {
		args := slices.Clone(rows)
		args[len(args)-1] = map[string]any{"id": 1, "at": 1, "page": 11}
		in.Args = Value(args)
	}
	in.OperationKey, in.Fingerprint = write.key, ""
	n, err := s.Write(in, write.state)
	want, kind := model.write(write)
	switch kind {
	case "":
		require.NoError(s, err)
		require.Equal(s, want, n)
	case incremental.TypeMoved:
		s.RequireMoved(err, "Nothing was written")
	default:
		require.Error(s, err)
		require.NotContains(s, err.Error(), "no longer belongs to this call")
	}
}

// write applies a write, and gives how many rows are written, or the kind of its error.
func (m *stateModel) write(write *modelWrite) (n int, failure string) {
	if n, known := m.ledger[write.key]; known {
		return n, ""
	}
	state := write.state
	if state.Holder != m.holder || state.Number != m.last && state.Number != m.last+1 {
		return 0, incremental.TypeMoved
	}
	table, seen, within := maps.Clone(m.table), maps.Clone(m.seen), map[[2]int]bool{}
	for i, row := range write.rows {
		if within[row] {
			continue
		}
		within[row] = true
		if m.seen[row] {
			continue
		}
		if write.broken && i == len(write.rows)-1 {
			return 0, "check"
		}
		n++
		table[row]++
		if row[1] >= write.floor {
			seen[row] = true
		}
	}
	if state.Rows.Sweep {
		maps.DeleteFunc(seen, func(row [2]int, _ bool) bool { return row[1] < write.floor })
	}
	m.table, m.seen, m.last, m.ledger[write.key] = table, seen, state.Number, n
	if move := state.Move; move != nil {
		if to := move.To.Value.Data.(int); m.watermark == nil || to > *m.watermark {
			m.watermark = &to
		}
	}
	return n, ""
}

func (s *StateTest) requireModel(model *stateModel, step int) {
	s.Helper()
	var watermark any
	if model.watermark != nil {
		watermark = *model.watermark
	}
	require.Equal(s, watermark, s.Watermark(), "step %d", step)
	require.Equal(s, len(model.seen), s.CountKnown(), "step %d", step)
	var want []string
	for _, row := range slices.SortedFunc(maps.Keys(model.table), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		for range model.table[row] {
			want = append(want, fmt.Sprintf("%d@%d", row[0], row[1]))
		}
	}
	require.Equal(s, want, s.WrittenRows(), "step %d", step)
}

// statesAreAsInMemory: claims, moves and settings at random come to the same in the database and in memory.
func statesAreAsInMemory(s *StateTest) {
	const seed, steps, runs, holders = 29, 300, 2, 24
	s.query(s, "INSERT INTO "+s.Table+" VALUES (1, 1, 1)") // or each claim of a state that has moved is refused
	random := rand.New(rand.NewPCG(seed, seed))
	memory, holder, owner, number, at := &incremental.Keeper{}, "0", "", 0, time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	refused := map[string]int{}
	for step := range steps {
		at = at.Add(time.Second)
		switch chance := random.IntN(10); {
		case chance < 3:
			if chance > 0 {
				holder = strconv.Itoa(random.IntN(holders))
			}
			claim := s.claim(holder)
			claim.Run, claim.Tables = "run"+strconv.Itoa(random.IntN(runs)), []string{"x"}
			switch random.IntN(8) {
			case 0:
				claim.Full, claim.Tables = true, []string{"x", "y"}
			case 1:
				claim.Source.Fingerprint = "there"
			case 2:
				claim.Tables = append(claim.Tables, "y")
			}
			there, err := s.Keeper.ClaimState(s.Context(), s.input(s.Table), claim)
			require.NoError(s, err)
			here := memory.Claim(claim, at)
			require.Equal(s, here.Watermark.Text(), there.Watermark.Text(), step)
			require.Equal(s, here.Refused, there.Refused, step)
			switch {
			case here.Refused != nil:
				refused[here.Refused.Type]++
			case owner != holder:
				owner, number = holder, 0
			}
		case chance == 3:
			change := incremental.StateChange{Name: s.State, By: "ann", Note: strconv.Itoa(step)}
			if random.IntN(2) > 0 {
				change.To = At(random.IntN(steps))
			}
			require.NoError(s, s.Keeper.SetState(s.Context(), s.input(s.Table), change))
			require.Nil(s, memory.Set(change, at))
			owner = ""
		default:
			number++
			write := incremental.StateWrite{Name: s.State, Holder: holder, Run: "run0", Number: number + random.IntN(10)/9, Move: MoveTo(random.IntN(steps))}
			write.Move.Back = random.IntN(10) == 0
			there, here := s.Keeper.MoveState(s.Context(), s.input(s.Table), write), memory.ApplyWrite(write, at)
			require.Equal(s, here == nil, there == nil, "%d: %v, %v", step, here, there)
			if here != nil {
				refused[here.Type]++
				number-- // a write that is made again is the same one
			}
		}
		s.requireAsInMemory(memory, step)
	}
	require.Greater(s, refused[incremental.TypeMoved], 10)
	require.Greater(s, refused[incremental.TypeOfAnother], 10)
}

// requireAsInMemory compares the state and its history, but for their times, and for what only databases have.
func (s *StateTest) requireAsInMemory(memory *incremental.Keeper, step int) {
	s.Helper()
	there, err := s.Keeper.States(s.Context(), s.input(s.Table), s.State)
	require.NoError(s, err)
	here := memory.States(incremental.NameRange{})
	for i := range there {
		there[i].Table, there[i].Source = "", there[i].Source.DigestIdentity()
		require.Equal(s, here[i].ClaimedAt.IsZero(), there[i].ClaimedAt.IsZero(), step)
		there[i].MovedAt, there[i].ClaimedAt = here[i].MovedAt, here[i].ClaimedAt
	}
	require.Equal(s, fmt.Sprint(here), fmt.Sprint(there), step)
	shown := func(changes []incremental.StateChange) []string {
		return lists.Map(changes, func(c incremental.StateChange) string {
			return fmt.Sprint(c.By, ": ", c.From.Text(), " to ", c.To.Text(), " ", c.Note)
		})
	}
	changes, err := s.Keeper.StateHistory(s.Context(), s.input(s.Table), s.State)
	require.NoError(s, err)
	expected := memory.History(s.State)
	require.Equal(s, shown(expected), shown(changes)[len(changes)-len(expected):], step)
}
