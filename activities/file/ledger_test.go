package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/hosting"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// TestFileJournalIsRidOfNotes: a journal does not grow by what nobody needs, and
// loses nothing else by that. It passes maxIdleNotes.
func TestFileJournalIsRidOfNotes(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	write := tooltest.ActivityOf(t, c, "file.write")
	row := func(n int) interpreter.ToolInput {
		in := tooltest.CompleteInput(fileRow("rows.jsonl", n)(t), "file")
		in.OperationKey, in.Fingerprint = fmt.Sprint("op-", n), fmt.Sprint("f", n)
		return in
	}

	const pages = 150

	continuation := []byte(strings.Repeat("x", 100_000))

	for n := 1; n <= pages; n++ {
		in := row(n)
		in.Note = &interpreter.LedgerEntry{Call: "long", Written: n, Forget: n - 3, Continuation: continuation}
		_, err := write(t.Context(), in)
		require.NoError(t, err)
	}

	info, err := os.Stat(filepath.Join(dir, "rows.jsonl.reprise"))
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(12<<20), "of 20 MB")

	for _, worker := range []*activities.Catalogue{c, activities.NewCatalogue(activities.Resources{Directory: dir})} {
		in := row(0)
		in.Note = &interpreter.LedgerEntry{Call: "long"}
		notes, err := hosting.RecallNotes(t.Context(), worker.Attempts, in)
		require.NoError(t, err)
		require.Len(t, notes, 3)
		require.Equal(t, interpreter.LedgerEntry{Call: "long", Written: pages, Continuation: continuation}, notes[2])
	}

	for n := 1; n <= pages; n++ {
		_, err := write(t.Context(), row(n))
		require.NoError(t, err)
	}

	require.Equal(t, pages, strings.Count(get(t, dir, "rows.jsonl"), "\n"), "every key is known still")
}
