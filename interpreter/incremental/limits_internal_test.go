package incremental

import (
	"bytes"
	"compress/flate"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func mustParse(t *testing.T, as CursorType, value any) Cursor {
	t.Helper()
	cursor, err := Parse(as, value)
	require.NoError(t, err)
	return cursor
}

// set changes a state for a person, and gives the type of the refusal, "" for none.
func (k *Keeper) setTo(name, note string, to Cursor) string {
	if refused := k.Set(StateChange{Name: name, By: "ana", Note: note, To: to}, time.Unix(0, 0)); refused != nil {
		return refused.Type
	}
	return ""
}

// TestKeeperForgetsOldChanges passes MaxChanges and maxHistoryWeight: the oldest changes are forgotten first.
func TestKeeperForgetsOldChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ note, changes int }{"many": {0, MaxChanges + 5}, "long": {1000, maxHistoryWeight/1000 + 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &Keeper{}
			for i := range c.changes {
				require.Empty(t, k.setTo(fmt.Sprintf("s%04d", i), strings.Repeat("x", c.note), mustParse(t, Integer, i)))
			}
			require.Less(t, len(k.changes), c.changes)
			require.LessOrEqual(t, len(k.changes), MaxChanges)
			require.LessOrEqual(t, k.historyWeight, maxHistoryWeight)
			require.Equal(t, fmt.Sprintf("s%04d", c.changes-len(k.changes)), k.changes[0].Name)
			require.Equal(t, c.changes, k.Len(), "the states stay")
		})
	}
}

// TestKeeperIsFull passes maxWeight: no further state is kept, those that are stay, and the snapshot fits into a payload.
func TestKeeperIsFull(t *testing.T) {
	t.Parallel()
	k, count := &Keeper{}, 0
	for ; ; count++ {
		require.Less(t, count, MaxStates, "the bytes are reached first")
		if refused := k.setTo(fmt.Sprintf("s%05d", count), "", mustParse(t, Text, strings.Repeat("x", mostText))); refused != "" {
			require.Equal(t, TypeFull, refused)
			break
		}
	}
	require.Equal(t, count, k.Len())
	require.LessOrEqual(t, k.weight, maxWeight)
	require.Empty(t, k.setTo("s00000", "", mustParse(t, Text, "short")), "one that is known may move")
}

// TestLongCursors passes mostText.
func TestLongCursors(t *testing.T) {
	t.Parallel()
	mustParse(t, Text, strings.Repeat("x", mostText))
	_, err := Parse(Text, strings.Repeat("x", mostText+1))
	require.EqualError(t, err, "a string of 1001 bytes is too long for a cursor, which has at most 1000")
}

// TestForeignSnapshots passes maxSnapshot, of which a few packed bytes unpack to more, and MaxChanges.
func TestForeignSnapshots(t *testing.T) {
	t.Parallel()
	packed := func(text string) []byte {
		var out bytes.Buffer
		writer, err := flate.NewWriter(&out, flate.BestSpeed)
		require.NoError(t, err)
		_, err = writer.Write([]byte(text))
		require.NoError(t, err)
		require.NoError(t, writer.Close())
		return out.Bytes()
	}
	_, err := ReadKeeper(packed(strings.Repeat(" ", maxSnapshot-2) + "{}"))
	require.NoError(t, err)
	_, err = ReadKeeper(packed(strings.Repeat(" ", maxSnapshot-1) + "{}"))
	require.ErrorContains(t, err, "read the states: ")
	_, err = ReadKeeper(packed(`{"changes": [` + strings.Repeat(`{"name": "s"},`, MaxChanges) + `{"name": "s"}]}`))
	require.EqualError(t, err, "1001 changes of states, of which 1000 are kept")
}
