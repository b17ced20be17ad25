package e2e_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

// fileBook visits each row of a file, of which a page has a few.
func fileBook(source, loop string) string {
	return book(`
  - step: visit
    tool: http
    url: "{{ ids }}/visit"
    params: {id: "{{ item.id }}", index: "{{ _loop.index }}", size: "{{ _loop.size }}"}
    loop:
      source: {tool: file, ` + source + `}
      mode: parallel
      ` + loop + `
output: "{{ visit }}"
`)
}

// putIDs writes CSV with so many ids that count from the first, gzipped where its name says it. note is the value beside each.
func (w *world) putIDs(name string, first, rows int, note string) (ids []int) {
	w.t.Helper()
	file, err := os.Create(filepath.Join(w.dir, name))
	require.NoError(w.t, err)
	packed := io.WriteCloser(file)
	if filepath.Ext(name) == ".gz" {
		packed = gzip.NewWriter(file)
	}
	out := bufio.NewWriter(packed)
	_, err = out.WriteString("id,note\n")
	require.NoError(w.t, err)
	for id := first; id < first+rows; id++ {
		ids = append(ids, id)
		_, err := fmt.Fprintf(out, "%d,\"%s\"\n", id, note)
		require.NoError(w.t, err)
	}
	require.NoError(w.t, out.Flush())
	require.NoError(w.t, packed.Close())
	_ = file.Close()
	return ids
}

// TestFileSourceOutlivesWorkers: each row of a file that is read in pages is one iteration, whenever workers die, whether the next one can read on from the
// place or has to unpack the file again.
func TestFileSourceOutlivesWorkers(t *testing.T) {
	t.Parallel()
	names, kills := []string{"ids.csv.gz"}, []int{25}
	if *soak {
		names, kills = append(names, "ids.csv"), []int{1, 10, 25, 50}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.patience = testenv.Within(4 * time.Minute)
			api := newSourceAPI(t, 1, 1, 0)
			api.slow = 10 * time.Millisecond
			ids := w.putIDs(name, 1000, 60, "two\nlines")
			worker := w.spawn()
			run := w.start(fileBook("path: "+name+", batch: 5", "batch: 4\n      max_concurrency: 3"), map[string]any{"ids": api.URL})
			for _, visits := range kills {
				require.Eventually(t, func() bool { return api.visitCount() >= visits }, w.patience, tick)
				worker.Kill()
				worker = w.spawn()
			}
			result := w.endsAs(run, "completed")
			require.Equal(t, ids, api.visited(t))
			require.Equal(t, len(ids), step(t, result, "visit").Loop.Stats.Success)
			require.Equal(t, "", api.sizes[0], "nobody knows the size yet")
			require.Equal(t, fmt.Sprint(len(ids)), api.sizes[len(api.sizes)-1])
		})
	}
}

// TestFileSourceThatChanges: the loop fails once the rows of the file as it was have ended, and no row of the file as it is was visited.
func TestFileSourceThatChanges(t *testing.T) {
	t.Parallel()
	w := newWorking(t)
	api := newSourceAPI(t, 1, 1, 0)
	api.slow = 20 * time.Millisecond
	w.putIDs("ids.csv", 1000, 100, "")
	run := w.start(fileBook("path: ids.csv, batch: 2", "max_concurrency: 2"), map[string]any{"ids": api.URL})
	require.Eventually(t, func() bool { return api.visitCount() >= 5 }, patience, tick)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "ids.csv"), []byte("id,note\n5,other\n6,other\n"), 0o600))
	result := w.endsAs(run, "failed")
	require.Equal(t, "SourceFailed", result.Error.Type)
	require.Regexp(t, `its source failed after (\d+) elements, of which (\d+) completed, 0 failed and 0 were cancelled: ids.csv has changed since (\d+) of its rows were read`, result.Error.Message)
	visited := api.visited(t)
	require.Less(t, len(visited), 100)
	require.Len(t, visited, step(t, result, "visit").Loop.Stats.Success)
	for i, id := range visited {
		require.Equal(t, 1000+i, id)
	}
}

// TestLargeFileSource: a worker needs no more memory for a file of 200 MB than for a page, whether it is compressed or not.
func TestLargeFileSource(t *testing.T) {
	if !*soak {
		t.Skip("it reads 400 MB: make soak")
	}
	t.Parallel()
	const rows, every, mostMemory = 2_000_000, 20_000, 150 << 20
	for _, name := range []string{"large.csv", "large.csv.gz"} {
		w := newWorld(t)
		w.patience = testenv.Within(20 * time.Minute)
		api := newSourceAPI(t, 1, 1, 0)
		w.putIDs(name, 0, rows, strings.Repeat("x", 90))
		worker := w.spawn()
		began := time.Now()
		run := w.start(fileBook("path: "+name+", where: \"{{ int(row.id) % "+fmt.Sprint(every)+" == 0 }}\"", "batch: 20"), map[string]any{"ids": api.URL})
		result := w.endsAs(run, "completed")
		require.Equal(t, rows/every, step(t, result, "visit").Loop.Stats.Success)
		for i, id := range api.visited(t) {
			require.Equal(t, i*every, id)
		}
		peak := peakMemory(t, worker.PID())
		t.Logf("%s: %s, at most %d MB of memory", name, time.Since(began).Round(time.Second), peak>>20)
		require.Less(t, peak, mostMemory, name)
		worker.Kill()
	}
}
