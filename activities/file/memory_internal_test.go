package file

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities/format"
)

// TestPartsOfUploads: parts are as small as S3 takes them, and few enough for files of any target size.
func TestPartsOfUploads(t *testing.T) {
	t.Parallel()
	const least, most = 5 << 20, 10_000
	for _, target := range []int64{0, 1, usualTargetSize, 50 << 30, 5 << 40} {
		w := objectWrite{targetSize: target}
		require.GreaterOrEqual(t, w.partBytes(), least, target)
		require.Greater(t, int64(most)*int64(w.partBytes()), target, target)
	}
	require.Equal(t, least, (&objectWrite{targetSize: usualTargetSize}).partBytes())
}

// TestHeadsAreShared: records with the same columns have them once in memory, and records with other columns have their own.
func TestHeadsAreShared(t *testing.T) {
	t.Parallel()
	record := func(name string, kind format.CellKind) *stagedRecord {
		return &stagedRecord{Columns: []string{name}, Kinds: map[string]format.CellKind{name: kind}}
	}
	heads := sharedHeads{}
	first, same, kind, name := record("id", "whole"), record("id", "whole"), record("id", "text"), record("at", "text")
	for _, one := range []*stagedRecord{first, same, kind, name} {
		heads.share(one)
	}
	first.Columns[0], first.Kinds["id"] = "changed", "changed"
	require.Equal(t, first, same)
	require.Equal(t, record("id", "text"), kind)
	require.Equal(t, record("at", "text"), name)
}
