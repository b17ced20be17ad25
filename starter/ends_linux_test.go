package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
	"reprise/starter/cli"
)

// endings are, for each command, words with which it lasts: BLACKHOLE is a server that answers nothing, PIPE a pipe without a
// writer, and standard input has no end. Those of none have nothing to wait for.
var endings = map[string]string{
	"new": "asks.yaml --openapi http://BLACKHOLE/api.json", "validate": strings.Repeat("large.yaml ", 30), "try": "fetch.yaml", "eval": "1 --with -", "test": "slow_test.yaml",
	"plan": "fetch.yaml", "graph": "patients --address BLACKHOLE", "tools": "", "explain": "", "docs": "--listen 127.0.0.1:0", "lsp": "-", "mcp": "-", "schema": "",
	"migrate": "-", "sign": "large.yaml --key /nowhere", "run": "wait.yaml --address BLACKHOLE", "backfill": "daily.yaml --address BLACKHOLE", "backfill status": "daily.yaml --address BLACKHOLE",
	"schedule create": "nightly fetch.yaml --cron 0_3_*_*_* --address BLACKHOLE", "schedule update": "nightly fetch.yaml --address BLACKHOLE",
	"schedule list": "--address BLACKHOLE", "schedule show": "nightly --address BLACKHOLE", "schedule pause": "nightly --address BLACKHOLE",
	"schedule resume": "nightly --address BLACKHOLE", "schedule trigger": "nightly --address BLACKHOLE",
	"schedule backfill": "nightly --from 2026-01-01 --to 2026-01-02 --address BLACKHOLE", "schedule delete": "nightly --yes --address BLACKHOLE",
	"list": "--address BLACKHOLE", "status": "patients --address BLACKHOLE", "follow": "patients --address BLACKHOLE", "events": "patients --address BLACKHOLE",
	"logs": "patients --follow --file log.json", "stats": "patients --address BLACKHOLE", "report": "patients -o r.html --address BLACKHOLE",
	"pause": "patients --address BLACKHOLE", "resume": "patients --address BLACKHOLE", "set": "patients fetch rate_limit=2/s --address BLACKHOLE",
	"retry-now": "patients --address BLACKHOLE", "skip": "patients fetch --reason no --address BLACKHOLE", "cancel": "patients --address BLACKHOLE",
	"approve": "patients --address BLACKHOLE", "reject": "patients --address BLACKHOLE", "complete": "patients fetch --address BLACKHOLE",
	"fail": "patients fetch --error no --address BLACKHOLE", "progress": "patients fetch --done 10 --address BLACKHOLE",
	"audit verify": "absent.log", "auth login": "shop --address BLACKHOLE", "auth list": "--address BLACKHOLE", "auth status": "shop --address BLACKHOLE",
	"auth refresh": "shop --address BLACKHOLE", "auth logout": "shop --address BLACKHOLE",
	"dead-letters list": "patients --address BLACKHOLE", "dead-letters show": "patients/fetch#1/0 --address BLACKHOLE",
	"dead-letters reprocess": "patients --address BLACKHOLE",
	"state list":             "orders.yaml --address BLACKHOLE", "state show": "orders.yaml orders --address BLACKHOLE", "state reset": "orders.yaml orders --yes --address BLACKHOLE",
	"state set": "orders.yaml orders 7 --yes --address BLACKHOLE", "state history": "orders.yaml orders --address BLACKHOLE",
	"state prune": "shops.yaml --unused-since 90d --yes --address BLACKHOLE",
	"ui":          "--listen 127.0.0.1:0 --address BLACKHOLE", "serve": "--listen 127.0.0.1:0 --address BLACKHOLE", "serve token new": "ada", "setup": "--address BLACKHOLE", "doctor": "--address BLACKHOLE", "replay": "--address BLACKHOLE",
	"builds": "--address BLACKHOLE", "builds current": "v1 --address BLACKHOLE", "builds ramp": "v1 --address BLACKHOLE",
	"builds move": "patients --to v1 --address BLACKHOLE", "builds retire": "v1 --to v2 --address BLACKHOLE", "builds delete": "v1 --address BLACKHOLE",
	"demo-api": "--port 0", "options": "", "completion": "bash", "version": "", "dev": "--port 0 --ui-port 0 --page-port 0",
}

// leaves are the commands that do something, by their words.
func leaves(command *cobra.Command, words string) map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	if words != "" && command.Runnable() {
		if _, is := command.Annotations[cli.GroupAnnotation]; !is {
			all[words] = command
		}
	}
	for _, below := range command.Commands() {
		if !below.Hidden && below.Name() != "help" {
			for name, leaf := range leaves(below, strings.TrimSpace(words+" "+below.Name())) {
				all[name] = leaf
			}
		}
	}
	return all
}

// TestEveryCommandEnds: with SIGTERM, within a second, whatever it waits for or is busy with. starter dev and starter run have as
// long as their server needs.
func TestEveryCommandEnds(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	fetch := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: fetch}\nworkflow:\n  - step: fetch\n    tool: http\n    url: http://BLACKHOLE/\n"
	const head = "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: any}\n"
	asks := "workflow:\n  - {step: ask, tool: approval, message: \"Go on?\"}\n"
	var large strings.Builder
	large.WriteString("apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: large}\nworkflow:\n")
	for i := range 8000 {
		fmt.Fprintf(&large, "  - step: s%d\n    vars: {a: \"{{ missing_%d + vars.b }}\"}\n    next: [s%d]\n", i, i, (i*7919)%8000)
	}
	for name, text := range map[string]string{
		"fetch.yaml": fetch, "large.yaml": large.String(), "log.json": "", "wait.yaml": head + asks,
		"daily.yaml":     head + "partitions: {every: day, start: 2026-01-01}\n" + asks,
		"sleeps.yaml":    head + "workflow:\n  - step: sleep\n    tool: python\n    code: |\n      import time\n      def main():\n          time.sleep(60)\n",
		"slow_test.yaml": "playbook: sleeps.yaml\ntests: [{name: slow, expect: {status: completed}}]\n",
		"orders.yaml": head + "workflow:\n  - step: orders\n    tool: http\n    url: http://BLACKHOLE/\n    params: {after: \"{{ incremental.value }}\"}\n" +
			"    incremental: {cursor_path: id, initial_value: 0}\n    sink: {tool: sqlite, path: rows.db, table: one}\n",
		"shops.yaml": head + "workflow:\n  - step: orders\n    tool: http\n    url: http://BLACKHOLE/\n    params: {after: \"{{ incremental.value }}\", shop: \"{{ shop }}\"}\n" +
			"    incremental: {cursor_path: id, initial_value: 0}\n    loop: {collection: [1], element: shop, sink: {tool: sqlite, path: rows.db, table: one}}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	all := leaves(newRoot(&cli.App{}), "")
	require.NotEmpty(t, all)
	starter, err := exec.LookPath("starter")
	require.NoError(t, err)
	for words := range all {
		given, known := endings[words]
		require.True(t, known, "starter %s: say in endings how it is kept waiting", words)
		t.Run(strings.ReplaceAll(words, " ", "_"), func(t *testing.T) {
			t.Parallel()
			hole, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { _ = hole.Close() }()
			var reached atomic.Bool
			go func() {
				for {
					conn, err := hole.Accept()
					if err != nil {
						return
					}
					reached.Store(true)
					t.Cleanup(func() { _ = conn.Close() })
				}
			}()
			address := hole.Addr().String()
			within := t.TempDir()
			entries, err := os.ReadDir(folder)
			require.NoError(t, err)
			for _, entry := range entries {
				text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(within, entry.Name()), bytes.ReplaceAll(text, []byte("BLACKHOLE"), []byte(address)), 0o600))
			}
			args := strings.Fields(words)
			for _, word := range strings.Fields(given) {
				if word = strings.ReplaceAll(word, "BLACKHOLE", address); strings.HasPrefix(word, "0_") {
					word = strings.ReplaceAll(word, "_", " ")
				}
				if word != "-" || words == "eval" || words == "migrate" {
					args = append(args, word)
				}
			}
			cmd := exec.Command(starter, args...)
			cmd.Dir = within
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + within, localServer(t)}
			var printed bytes.Buffer
			cmd.Stdout, cmd.Stderr = &printed, &printed
			in, err := cmd.StdinPipe()
			require.NoError(t, err)
			defer in.Close()
			require.NoError(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			lasts := strings.Contains(given, "BLACKHOLE") || words == "try"
			for deadline := time.Now().Add(testenv.Within(500 * time.Millisecond)); time.Now().Before(deadline) && (!lasts || !reached.Load()); {
				time.Sleep(10 * time.Millisecond)
			}
			began := time.Now()
			select {
			case err := <-ended:
				require.False(t, lasts || words == "test" || words == "validate", "it ended by itself (%v) and proves nothing: %s", err, printed.String())
				return
			default:
			}
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			limit := testenv.Within(time.Second)
			if words == "dev" {
				limit = patience
			}
			select {
			case err := <-ended:
				t.Logf("ended after %v (%v): %s", time.Since(began), err, printed.String())
			case <-time.After(limit):
				_ = cmd.Process.Kill()
				_ = testenv.Receive(t, ended, "the end of a process that was killed")
				require.FailNow(t, "it goes on", "after %v: %s", time.Since(began), printed.String())
			}
		})
	}
}
