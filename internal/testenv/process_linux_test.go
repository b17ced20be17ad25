package testenv_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/testenv"
)

// startAndKill starts a helper, waits for its line and kills it with SIGKILL.
func startAndKill(t *testing.T, role string, check func(line string)) {
	t.Helper()
	cmd := helper(t, role, "TEST_TEMPORAL_ADDRESS=", "TEST_POSTGRES_URL=")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	check(strings.TrimSpace(line))
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
}

// Only Linux ties the life of a child to that of its parent.
func TestServersDieWithAKilledTestProcess(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		var postmaster int
		var cluster string
		startAndKill(t, "postgres", func(data string) {
			cluster = filepath.Dir(data)
			text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
			require.NoError(t, err)
			_, err = fmt.Sscan(string(text), &postmaster)
			require.NoError(t, err)
			require.NoError(t, syscall.Kill(postmaster, 0))
		})
		requireGone(t, postmaster)
		testenv.PostgresServer(t) // any later server sweeps up
		require.NoDirExists(t, cluster)
	})
	t.Run("temporal", func(t *testing.T) {
		t.Parallel()
		var pids []int
		startAndKill(t, "temporal", func(address string) {
			_, port, _ := strings.Cut(address, ":")
			pids = processesWith(t, "start-dev", port)
			require.Len(t, pids, 1)
		})
		requireGone(t, pids[0])
	})
}

func requireGone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		// An orphan that nobody has waited for yet is as good as gone.
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return errors.Is(err, os.ErrNotExist) || strings.Contains(string(status), ") Z ")
	}, 20*time.Second, 20*time.Millisecond, "process %d is alive", pid)
}

// processesWith returns the processes that have all the words as arguments.
func processesWith(t *testing.T, words ...string) []int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var found []int
next:
	for _, file := range files {
		text, _ := os.ReadFile(file)
		args := "\x00" + string(text)
		for _, word := range words {
			if !strings.Contains(args, "\x00"+word+"\x00") {
				continue next
			}
		}
		var pid int
		_, err := fmt.Sscanf(file, "/proc/%d/cmdline", &pid)
		require.NoError(t, err)
		found = append(found, pid)
	}
	return found
}
