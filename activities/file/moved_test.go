package file_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// writes makes a write per key, whose rows hold the key, and gives how many of
// them were written.
func writes(t *testing.T, c *activities.Catalogue, mode string, keys ...string) int {
	t.Helper()

	written := 0

	for _, key := range keys {
		result, err := writeFile(t, c, key, []any{map[string]any{"key": key}, key}, map[string]any{"path": "rows.jsonl", "mode": mode})
		require.NoError(t, err)

		if result.Data.Data.(map[string]any)["rows_written"] != 0 {
			written++
		}
	}
	return written
}

// lines are what writes of these keys put into a file.
func lines(keys ...string) string {
	text := ""
	for _, key := range keys {
		text += fmt.Sprintf("{\"key\":%q}\n%q\n", key, key)
	}
	return text
}

// What the journal says holds for the file that was written. Where that is
// gone, what comes again is written again.
func TestFileThatIsAnotherByNow(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		change func(t *testing.T, dir string)
		want   string // after a and b came again, and c for the first time
	}{
		"untouched": {func(*testing.T, string) {}, lines("a", "b", "c")},
		"removed": {func(t *testing.T, dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "rows.jsonl")))
		}, lines("a", "b", "c")},
		"renamed, and a new one made": {func(t *testing.T, dir string) {
			require.NoError(t, os.Rename(filepath.Join(dir, "rows.jsonl"), filepath.Join(dir, "rows.1.jsonl")))
			put(t, dir, "rows.jsonl", "")
		}, lines("a", "b", "c")},
		"replaced by a shorter one": {func(t *testing.T, dir string) {
			put(t, dir, "new", "1\n")
			require.NoError(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "rows.jsonl")))
		}, "1\n" + lines("a", "b", "c")},
		"replaced by a longer one": {func(t *testing.T, dir string) {
			put(t, dir, "rows.jsonl", strings.Repeat("1\n", 50))
		}, strings.Repeat("1\n", 50) + lines("a", "b", "c")},
		"emptied": {func(t *testing.T, dir string) {
			require.NoError(t, os.Truncate(filepath.Join(dir, "rows.jsonl"), 0))
		}, lines("a", "b", "c")},
		"its beginning cut off": {func(t *testing.T, dir string) {
			put(t, dir, "rows.jsonl", lines("b"))
		}, lines("b", "a", "b", "c")},
		"copied": {func(t *testing.T, dir string) {
			content := get(t, dir, "rows.jsonl")
			require.NoError(t, os.Remove(filepath.Join(dir, "rows.jsonl")))
			put(t, dir, "rows.jsonl", content)
		}, lines("a", "b", "c")},
		"added to by hand": {func(t *testing.T, dir string) {
			put(t, dir, "rows.jsonl", lines("a", "b")+"1\n")
		}, lines("a", "b") + "1\n" + lines("c")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			c, dir := fileWorker(t)
			other := activities.NewCatalogue(activities.Resources{Directory: dir})

			require.Equal(t, 2, writes(t, c, "append", "a", "b"))
			require.Zero(t, writes(t, other, "append", "a", "b"), "another worker knows it too")
			test.change(t, dir)
			writes(t, c, "append", "a")
			writes(t, other, "append", "b", "c")
			require.Equal(t, test.want, get(t, dir, "rows.jsonl"))
			require.Zero(t, writes(t, c, "append", "c", "b", "a"))
			require.Zero(t, writes(t, activities.NewCatalogue(activities.Resources{Directory: dir}), "append", "a", "b", "c"), "nor after a restart")
			require.Equal(t, test.want, get(t, dir, "rows.jsonl"))
		})
	}
}

func TestFileThatWasOverwrittenIsAnotherByNow(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	require.Equal(t, 2, writes(t, c, "overwrite", "a", "b"))
	require.Zero(t, writes(t, c, "overwrite", "a", "b"))
	require.NoError(t, os.Remove(filepath.Join(dir, "rows.jsonl")))
	require.Equal(t, 1, writes(t, c, "overwrite", "b"))
	require.Equal(t, lines("b"), get(t, dir, "rows.jsonl"))
}

// A worker may die between the replacement of a file and the line that says so.
func TestFileReplacedByAWorkerThatDied(t *testing.T) {
	t.Parallel()

	for _, replaced := range []bool{false, true} {
		t.Run(fmt.Sprint(replaced), func(t *testing.T) {
			t.Parallel()

			c, dir := fileWorker(t)
			require.Equal(t, 1, writes(t, c, "overwrite", "a"))

			before := get(t, dir, "rows.jsonl")
			require.Equal(t, 1, writes(t, c, "overwrite", "b"))

			journal, _, found := strings.Cut(get(t, dir, "rows.jsonl.reprise"), "done b ")
			require.True(t, found)
			put(t, dir, "rows.jsonl.reprise", journal)

			if !replaced {
				put(t, dir, "rows.jsonl", before)
			}

			c = activities.NewCatalogue(activities.Resources{Directory: dir})
			require.Zero(t, writes(t, c, "overwrite", "a"), "a is older than b, which may be there")
			require.Equal(t, 1, writes(t, c, "overwrite", "b"))
			require.Equal(t, lines("b"), get(t, dir, "rows.jsonl"))
		})
	}
}

// A write whose file is gone before it ends has written nothing.
func TestFileThatMovesDuringAWrite(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	path := filepath.Join(dir, "rows.jsonl")
	rows := make([]any, 100_000)

	for i := range rows {
		rows[i] = strings.Repeat("x", 50)
	}

	// Now and then a write ends before the file is removed.
	for try := range 100 {
		key := fmt.Sprint("k", try)
		failed := make(chan error, 1)
		_ = os.Remove(path) // of the write before, which has not noticed

		go func() {
			_, err := writeFile(t, c, key, rows, map[string]any{"path": "rows.jsonl"})
			failed <- err
		}()

		for len(failed) == 0 && os.Remove(path) != nil {
			runtime.Gosched()
		}

		if err := testenv.Receive(t, failed, "the end of the write"); err != nil {
			object := tooltest.ErrorObject(t, err)
			require.Equal(t, "moved", object.Type, object.Message)
			require.Equal(t, interpreter.ClassRetryable, object.Class)

			_, err := writeFile(t, c, key, rows, map[string]any{"path": "rows.jsonl"})
			require.NoError(t, err)
			require.Equal(t, len(rows), strings.Count(get(t, dir, "rows.jsonl"), "\n"))
			return
		}
	}

	require.Fail(t, "no write has noticed that its file was removed")
}

// A writer that waits for the lock of a journal that is removed meanwhile notes
// its write in the one that is there then.
func TestFileJournalThatIsRemoved(t *testing.T) {
	t.Parallel()

	c, dir := fileWorker(t)
	path := filepath.Join(dir, "rows.jsonl.reprise")
	held, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, syscall.Flock(int(held.Fd()), syscall.LOCK_EX))

	failed := make(chan error, 1)

	go func() {
		_, err := writeFile(t, c, "a", []any{1}, map[string]any{"path": "rows.jsonl"})
		failed <- err
	}()

	require.Eventually(t, func() bool { return opened(t, path) == 2 }, testenv.Within(10*time.Second), time.Millisecond)
	require.NoError(t, os.Remove(path))
	require.NoError(t, held.Close())
	require.NoError(t, testenv.Receive(t, failed, "the end of the write"))
	require.Contains(t, get(t, dir, "rows.jsonl.reprise"), "done a - 1\n")
}

// opened counts how often this process has a file open.
func opened(t *testing.T, path string) int {
	t.Helper()

	all, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)

	n := 0

	for _, fd := range all {
		if target, err := os.Readlink(fd); err == nil && target == path {
			n++
		}
	}
	return n
}

// smallFiles is set in the process in which files cannot grow.
const smallFiles = "TEST_SMALL_FILES"

// A write for which the disk has no room leaves nothing behind, also where
// nobody writes to the file any more.
func TestFileOnAFullDisk(t *testing.T) {
	t.Parallel()

	for _, full := range []string{"data", "journal", "overwrite"} {
		t.Run(full, func(t *testing.T) {
			t.Parallel()

			command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFileWhereFilesAreSmall$", "-test.v")
			command.Env = append(os.Environ(), smallFiles+"="+full)
			out, err := command.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "--- PASS: TestFileWhereFilesAreSmall")
		})
	}
}

// TestFileWhereFilesAreSmall has a process of its own, because the limit is the
// process's.
func TestFileWhereFilesAreSmall(t *testing.T) {
	full := os.Getenv(smallFiles)
	if full == "" {
		t.Skip("see TestFileOnAFullDisk")
	}

	c, dir := fileWorker(t)
	mode := map[bool]string{true: "overwrite", false: "append"}[full == "overwrite"]
	require.Equal(t, 1, writes(t, c, mode, "a"))

	room := 1000
	if full == "journal" { // room for the line before the write, and not for the one after it
		put(t, dir, "rows.jsonl.reprise", get(t, dir, "rows.jsonl.reprise")+strings.Repeat("-\n", 2000))

		room = len(get(t, dir, "rows.jsonl.reprise")) + len("begin 16 12345 big 0123456789abcdef\n") + 2
	}

	signal.Ignore(syscall.SIGXFSZ) // what is left is EFBIG, which comes like ENOSPC

	var unlimited syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &unlimited))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: uint64(room), Max: unlimited.Max}))

	rows := []any{strings.Repeat("x", 600), strings.Repeat("y", 600)}
	fields := map[string]any{"path": "rows.jsonl", "mode": mode}
	_, err := writeFile(t, c, "big", rows, fields)
	object := tooltest.ErrorObject(t, err)
	require.Equal(t, interpreter.ClassRetryable, object.Class)
	require.Equal(t, "no_space", object.Type)
	require.Contains(t, object.Message, "file too large")
	require.Equal(t, lines("a"), get(t, dir, "rows.jsonl"))
	require.NoFileExists(t, filepath.Join(dir, "rows.jsonl.reprise.new"))

	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &unlimited))

	_, err = writeFile(t, c, "big", rows, fields)
	require.NoError(t, err)
	require.Equal(t, 0, writes(t, c, mode, "a"))
	require.Contains(t, get(t, dir, "rows.jsonl"), rows[1])
}
