package testenv_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

// helperVariable makes this test binary behave like another one, whose tests are
// killed in the middle or lack a binary.
const helperVariable = "TESTENV_HELPER"

// fakeMain is a testing.TB outside of a test run.
type fakeMain struct{ testing.TB }

func (fakeMain) Helper()        {}
func (fakeMain) Name() string   { return "helper" }
func (fakeMain) Cleanup(func()) {}
func (fakeMain) Fatal(args ...any) {
	fmt.Println(args...)
	os.Exit(1)
}

func (f fakeMain) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }

// helperProcess starts what it is told to, says so and waits to be killed.
func helperProcess() {
	t := fakeMain{}
	switch os.Getenv(helperVariable) {
	case "postgres":
		database := testenv.Postgres(t)
		fmt.Println(database.Query(t, "SELECT pg_backend_pid() AS pid, current_setting('data_directory') AS dir")[0]["dir"])
	case "temporal":
		env := testenv.Temporal(t)
		fmt.Println(env.Address, env.UIURL)
	}
	select {}
}

// helper returns the command of this binary as a helper.
func helper(t *testing.T, role string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), append([]string{helperVariable + "=" + role}, env...)...)
	if role == "temporal" { // its payload store is a temporary directory, and who is killed cleans nothing up
		cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir())
	}
	return cmd
}

func TestMissingServersFailWithAHint(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, role string
		env        []string
		want       string
	}{
		{
			name: "no such dev server", role: "temporal", env: []string{"TEST_TEMPORAL_ADDRESS=", "TEST_DEVSERVER=/nowhere/devserver"},
			want: "use the dev server of TEST_DEVSERVER",
		},
		{
			name: "dev server that exits", role: "temporal", env: []string{"TEST_TEMPORAL_ADDRESS=", "TEST_DEVSERVER=false"},
			want: "the server has ended: exit status 1",
		},
		{
			name: "no URL", role: "postgres", env: []string{"TEST_POSTGRES_URL=host=h password=secret"},
			want: "expected postgres://user:password@host:port/database",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := helper(t, tt.role, tt.env...).CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(out), tt.want)
			require.NotContains(t, string(out), "secret")
		})
	}
}
