package testenv_test

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

// startAndKill starts a helper, waits for its line and kills it with SIGKILL.
func startAndKill(t *testing.T, role string, check func(line string), env ...string) {
	t.Helper()
	cmd := helper(t, role, append([]string{"TEST_TEMPORAL_ADDRESS=", "TEST_POSTGRES_URL="}, env...)...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	check(strings.TrimSpace(testenv.ReadLine(t, bufio.NewReader(out), "what the helper has started")))
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, testenv.WaitResult(t, cmd.Wait, "the end of the killed helper"))
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
		marker := "TESTENV_MARKER=" + rand.Text()
		startAndKill(t, "temporal", func(line string) {
			require.Len(t, testenv.ProcessesWith(t, marker), 2, "the helper and its server")
			address, ui, _ := strings.Cut(line, " ")
			require.Regexp(t, `^127\.0\.0\.1:\d+$`, address)
			response, err := http.Get(ui + "/")
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, 200, response.StatusCode)
		}, marker)
		require.Eventually(t, func() bool {
			return len(testenv.ProcessesWith(t, marker)) == 0
		}, testenv.Within(20*time.Second), 20*time.Millisecond)
	})
}

func TestGivenServersAreUsed(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	startAndKill(t, "temporal", func(line string) {
		require.Equal(t, env.Address+" http://ui.example", line)
	}, "TEST_TEMPORAL_ADDRESS="+env.Address, "TEST_TEMPORAL_UI_URL=http://ui.example/")

	database := testenv.PostgresServer(t)
	data := database.Query(t, "SELECT current_setting('data_directory') AS dir")[0]["dir"]
	startAndKill(t, "postgres", func(line string) {
		require.Equal(t, data, line)
	}, "TEST_POSTGRES_URL="+database.URL)
}

func requireGone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		// An orphan that nobody has waited for yet is as good as gone.
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return errors.Is(err, os.ErrNotExist) || strings.Contains(string(status), ") Z ")
	}, testenv.Within(20*time.Second), 20*time.Millisecond, "process %d is alive", pid)
}
