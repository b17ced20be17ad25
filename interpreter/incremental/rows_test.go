package incremental_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/incremental"
)

// TestRowsAtOtherCursorsAreOthers: with one key, every cursor makes another row.
func TestRowsAtOtherCursorsAreOthers(t *testing.T) {
	t.Parallel()

	rows := &incremental.RowIdentity{CursorPath: "at", Type: incremental.Integer, Key: []string{"id"}}
	seen := map[[incremental.HashLength]byte]int{}
	for at := range 100_000 {
		hash := rows.IdentifyRow(map[string]any{"id": 1, "at": at}, nil, &[]byte{}).Hash
		before, known := seen[hash]
		require.False(t, known, "%d is taken for %d", at, before)
		seen[hash] = at
	}
}

func TestRowsAreToldApart(t *testing.T) {
	t.Parallel()

	byKey := &incremental.RowIdentity{CursorPath: "meta.at", Type: incremental.Time, Key: []string{"id", "a.b"}}
	whole := &incremental.RowIdentity{CursorPath: "meta.at", Type: incremental.Time}
	row := func(id, ab, at, note any) any {
		return map[string]any{"id": id, "a.b": ab, "meta": map[string]any{"at": at}, "note": note}
	}
	base := row(1, 2, "2024-01-01T00:00:00Z", "x")
	for name, test := range map[string]struct {
		other              any
		sameKey, sameWhole bool
	}{
		"itself":          {row(1, 2, "2024-01-01T00:00:00Z", "x"), true, true},
		"another column":  {row(1, 2, "2024-01-01T00:00:00Z", "y"), true, false},
		"another form":    {row(1, 2, "2024-01-01T01:00:00+01:00", "x"), true, false},
		"another instant": {row(1, 2, "2024-01-01T00:00:00.000000001Z", "x"), false, false},
		"another key":     {row(2, 2, "2024-01-01T00:00:00Z", "x"), false, false},
		"second of key":   {row(1, "2", "2024-01-01T00:00:00Z", "x"), false, false},
		"keys exchanged":  {row(2, 1, "2024-01-01T00:00:00Z", "x"), false, false},
		"no cursor":       {row(1, 2, nil, "x"), false, false},
		"no map":          {"text", false, false},
	} {
		require.Equal(t, test.sameKey, byKey.IdentifyRow(base, base, &[]byte{}).Hash == byKey.IdentifyRow(test.other, test.other, &[]byte{}).Hash, name)
		require.Equal(t, test.sameWhole, whole.IdentifyRow(base, base, &[]byte{}).Hash == whole.IdentifyRow(test.other, test.other, &[]byte{}).Hash, name)
	}
	require.Nil(t, byKey.IdentifyRow(row(1, 2, nil, "x"), nil, &[]byte{}).Position)
	require.NotEqual(t, byKey.IdentifyRow(row(1, 2, nil, "x"), nil, &[]byte{}).Hash, byKey.IdentifyRow(row(2, 2, nil, "x"), nil, &[]byte{}).Hash)
	require.Equal(t, byKey.IdentifyRow(base, base, &[]byte{}).Position, byKey.IdentifyRow(row(7, 7, "2024-01-01", "z"), nil, &[]byte{}).Position)
}

func TestContributedRows(t *testing.T) {
	t.Parallel()

	require.Empty(t, incremental.ContributedRows(nil))
	require.Equal(t, []any{1, nil}, incremental.ContributedRows([]any{1, nil}))
	require.Equal(t, []any{map[string]any{"id": 1}}, incremental.ContributedRows(map[string]any{"id": 1}))
}
