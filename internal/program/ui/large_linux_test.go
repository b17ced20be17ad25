package ui_test

import (
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/internal/test/testenv"
)

var (
	soak = flag.Bool("soak", false, "also look at many runs and a loop of 100,000 iterations")
	many = flag.Int("runs", 1000, "how many runs that is, with -soak")
)

// TestPagesWithoutAWorker: a page waits once for workers that give no answer, and not each time.
func TestPagesWithoutAWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.queue = w.env.NewTaskQueue() // of no worker
	alone := w.start("alone-"+w.queue, strings.Replace(fails, "nightly", "alone", 1), nil)
	w.shows("/?playbook=alone", `no-worker">no worker</span>`)
	began := time.Now()
	status, body, _ := w.get("/?playbook=alone")
	took := time.Since(began)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `no-worker">no worker</span>`)
	require.Less(t, took, testenv.Within(300*time.Millisecond))
	w.books["alone"] = strings.Replace(fails, "nightly", "alone", 1)
	body = w.shows("/playbooks/alone", `no-worker">no worker</span>`)
	require.NotContains(t, between(body, "<h2>Last runs</h2>", "</section>"), ">running<")
	body = w.shows("/runs/"+alone, "No worker responds.")
	require.NotContains(t, between(body, `<div class="head">`, "</div>"), "running")
}

// TestLargePages: many runs, and a loop of 100,000 iterations, cost no more calls and
// bytes than a few.
func TestLargePages(t *testing.T) {
	if !*soak {
		t.Skip("-soak")
	}
	w := newWorld(t)
	large := w.start("many-"+w.queue, `apiVersion: reprise/v1
kind: Playbook
metadata: {name: many}
workflow:
  - step: each
    tool: http
    url: "http://127.0.0.1:1/{{ item }}"
    loop: {in: "{{ 0..99999 }}", iterator: item, mode: parallel, max_concurrency: 50}
    retry: [{when: "{{ error is defined }}", then: {max_attempts: 3, delay: 1h}}]
`, nil)
	w.shows("/runs/"+large, "of 100000")
	running := w.queue
	w.queue = w.env.NewTaskQueue() // of no worker
	var group errgroup.Group
	group.SetLimit(16)
	for i := range *many {
		group.Go(func() error {
			w.start(fmt.Sprintf("run-%d-%s", i, running), fails, nil)
			return nil
		})
	}
	require.NoError(t, testenv.WaitResult(t, group.Wait, "the starts of all runs"))
	w.shows("/", "Next page")
	for _, path := range []string{"/", "/?playbook=many", "/?playbook=nightly", "/runs/" + large} {
		w.get(path) // the cache is warm then
		before, began := w.calls.Load(), time.Now()
		status, body, _ := w.get(path)
		took := time.Since(began)
		require.Equal(t, http.StatusOK, status)
		require.LessOrEqual(t, w.calls.Load()-before, int64(10), path)
		require.Less(t, len(body), 200<<10, path)
		require.Less(t, took, testenv.Within(300*time.Millisecond), path)
		t.Logf("%s: %d calls, %d kB, %s", strings.ReplaceAll(path, running, "…"), w.calls.Load()-before, len(body)>>10, took.Round(time.Millisecond))
	}
}
