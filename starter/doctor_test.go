package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"reprise/internal/base/codec"
	"reprise/internal/base/exitcode"
	"reprise/internal/base/seal"
	"reprise/internal/test/testenv"
	"reprise/starter/cli"
	"reprise/starter/operate"
)

// examine makes the checks, requires the exit status, and returns them by name, with the text for people.
func examine(t *testing.T, wanted int, args ...string) (map[string]operate.DoctorCheck, string) {
	t.Helper()
	var out, text, errs bytes.Buffer
	args = append([]string{"doctor"}, args...)
	got := Main(t.Context(), append(args, "--output", "json"), cli.Streams{Out: &out, Err: &errs})
	require.Equal(t, wanted, got, "%s%s", out.String(), errs.String())
	var report operate.DoctorReport
	require.NoError(t, json.Unmarshal(out.Bytes(), &report), out.String())
	checks := map[string]operate.DoctorCheck{}
	for _, check := range report.Checks {
		checks[check.Name] = check
	}
	require.Len(t, checks, 11)
	require.Equal(t, wanted, Main(t.Context(), args, cli.Streams{Out: &text, Err: &errs}))
	require.Empty(t, errs.String())
	return checks, text.String()
}

// endsOpenRuns terminates the runs that tests before have left, whose workers have stopped, until none is listed as open.
func (y *yard) endsOpenRuns() {
	y.t.Helper()
	require.Eventually(y.t, func() bool {
		open, err := y.env.Client().ListWorkflow(y.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: "ExecutionStatus = 'Running' AND WorkflowType = 'PlaybookWorkflow' AND TaskQueue STARTS_WITH 'test-'",
		})
		for _, one := range open.GetExecutions() {
			_ = y.env.Client().TerminateWorkflow(y.t.Context(), one.GetExecution().GetWorkflowId(), one.GetExecution().GetRunId(), "its test has ended")
		}
		return err == nil && len(open.GetExecutions()) == 0
	}, patience, 100*time.Millisecond)
}

// TestDoctor: what is missing has a check that failed and says what to do, until nothing is missing. Commands that run:
// starter doctor. It sets environment variables, so it does not run in parallel.
func TestDoctor(t *testing.T) {
	key := seal.NewKey()
	file := filepath.Join(t.TempDir(), "secret-key")
	require.NoError(t, os.WriteFile(file, []byte(key), 0o600))
	t.Setenv(seal.Variable, key)
	t.Setenv(seal.FileVariable, file)
	t.Setenv(codec.Variable, seal.NewKey())
	y := newYard(t)
	folder := t.TempDir()
	connections := filepath.Join(folder, "connections.yaml")
	require.NoError(t, os.WriteFile(connections, []byte("shop: {bearer: {from: file, path: shop-token}, host: https://shop.example.com}\n"), 0o600))
	at := []string{"--address", y.env.Address, "--task-queue", y.queue, "--payload-store", "file://" + folder, "--connections", connections}

	y.says(exitcode.OK, "setup", "--payload-store", "") // other tests share the namespace
	y.endsOpenRuns()
	var checks map[string]operate.DoctorCheck
	var text string
	require.Eventually(t, func() bool {
		checks, text = examine(t, exitcode.Failed, at...)
		return checks["search attributes"].Status == operate.CheckOK
	}, patience, 100*time.Millisecond)
	for name, want := range map[string]operate.CheckStatus{
		"server": operate.CheckOK, "namespace": operate.CheckOK, "search attributes": operate.CheckOK, "workers": operate.CheckFailed,
		"builds": operate.CheckSkipped, "task queue": operate.CheckOK, "open runs": operate.CheckOK, "payload store": operate.CheckFailed,
		"secret key": operate.CheckFailed, "codec key": operate.CheckOK, "connections": operate.CheckFailed,
	} {
		require.Equal(t, want, checks[name].Status, "%+v", checks[name])
		require.Contains(t, text, name)
	}
	require.Equal(t, []string{"to start one: worker --address " + y.env.Address + " --task-queue " + y.queue}, checks["workers"].Advice)
	require.Contains(t, checks["payload store"].Found, "starter setup --payload-store ADDRESS")
	require.Contains(t, checks["secret key"].Found, "are both set")
	require.Contains(t, checks["connections"].Found, `connection "shop": `)
	require.Contains(t, text, "\n4 failed checks, 0 warnings\n")
	require.NotContains(t, text, key)

	t.Setenv(seal.Variable, "")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "shop-token"), []byte("tok"), 0o600))
	t.Setenv("REPRISE_SECRETS_DIRECTORY", folder)
	y.says(exitcode.OK, "setup", "--payload-store", "file://"+folder)
	y.starts("first")
	require.Eventually(t, func() bool {
		checks, _ = examine(t, exitcode.Failed, at...) // the server lists a new build before it can describe it
		return strings.Contains(checks["builds"].Found, "deployment "+y.queue+" has 1 build; none is current")
	}, patience, 200*time.Millisecond)
	require.Equal(t, operate.CheckFailed, checks["builds"].Status)
	require.Contains(t, checks["workers"].Found, "none of which is current")
	require.Equal(t, operate.CheckOK, checks["payload store"].Status, "%+v", checks["payload store"])
	require.Equal(t, operate.CheckOK, checks["connections"].Status, "%+v", checks["connections"])
	require.Contains(t, checks["secret key"].Found, keyID(t, key))

	y.makes("first")
	require.Eventually(t, func() bool {
		checks, text = examine(t, exitcode.OK, at...)
		return checks["builds"].Status == operate.CheckOK
	}, patience, 200*time.Millisecond)
	require.Contains(t, checks["builds"].Found, "first is current")
	require.Contains(t, text, "\n0 failed checks, 0 warnings\n")
}

// keyID is the ID of a key.
func keyID(t *testing.T, key string) string {
	t.Helper()
	keys, err := seal.Parse(key)
	require.NoError(t, err)
	return keys.IDs()[0]
}

// TestDoctorWithoutServer: checks of this machine are made all the same.
func TestDoctorWithoutServer(t *testing.T) {
	t.Parallel()
	checks, _ := examine(t, exitcode.NoServer, "--address", "127.0.0.1:1", "--connections", "")
	require.Equal(t, operate.CheckFailed, checks["server"].Status)
	require.Contains(t, checks["server"].Found, "no Temporal server responds at 127.0.0.1:1")
	require.Equal(t, operate.CheckSkipped, checks["open runs"].Status)
	require.Equal(t, operate.CheckSkipped, checks["connections"].Status)
	var out bytes.Buffer
	require.Equal(t, exitcode.Usage, Main(t.Context(), []string{"doctor", "--output", "xml"}, cli.Streams{Out: &out, Err: &out}), out.String())
}

// TestDoctorOfANamespace: what setup adds, and a retention that is too short.
func TestDoctorOfANamespace(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	namespace := newNamespace(t, env)
	checks, _ := examine(t, exitcode.Failed, "--address", env.Address, "--namespace", namespace, "--payload-store", "")
	require.Contains(t, checks["search attributes"].Found, "missing: RepriseDeadLetters")
	require.Contains(t, checks["search attributes"].Advice[0], "setup --address "+env.Address+" --namespace "+namespace)
	require.Contains(t, checks["search attributes"].Advice[1], "temporal operator search-attribute create")
	require.Equal(t, operate.CheckSkipped, checks["payload store"].Status)
}
