package e2e_test

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/known"
	"reprise/internal/program/backfill"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/workflows/protocol"
)

// guarded is a playbook that uses a connection in each way in which attempts are made: by itself, in a loop of batches, as a sink.
const guarded = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: vault}
workload: {api: http://127.0.0.1:1, items: [1, 2, 3]}
workflow:
  - step: once
    tool: http
    auth: ours
    url: /echo
    next: [{step: each}]
  - step: each
    tool: http
    auth: ours
    method: POST
    url: /echo
    body: "{{ item }}"
    loop: {collection: "{{ workload.items }}", element: item, batch: 2}
    next: [{step: within}]
  - step: within
    tool: playbook
    workflow:
      - step: inner
        tool: http
        auth: ours
        url: /echo
`

// writeKey writes a new public key, and returns the private one.
func writeKey(t *testing.T, path string) ed25519.PrivateKey {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	return private
}

// knowing is a world whose worker knows a folder and a key.
func knowing(t *testing.T, only bool) (w *world, folder string, key ed25519.PrivateKey) {
	t.Helper()
	w = newWorld(t)
	folder = t.TempDir()
	keys := filepath.Join(t.TempDir(), "keys.pem")
	key = writeKey(t, keys)
	var err error
	w.resources.Known, err = known.OpenFolder(folder, keys)
	require.NoError(t, err)
	w.resources.Known.Only = only
	w.resources.Playbooks = folder
	w.connected["ours"] = `{"url": "` + w.api.URL() + `", "uses": {"playbooks": ["vault", "vault.*"]}}`
	w.work()
	return w, folder, key
}

func signText(t *testing.T, text string, key ed25519.PrivateKey) string {
	t.Helper()
	signed, _, err := known.SignPlaybook("test.yaml", []byte(text), key)
	require.NoError(t, err)
	return string(signed)
}

// TestKnownPlaybooks: a connection whose uses name playbooks serves those that the worker knows, in every kind of attempt, and no
// other ones, whatever they call themselves.
func TestKnownPlaybooks(t *testing.T) {
	t.Parallel()
	w, folder, key := knowing(t, false)
	result := w.ends("failed", guarded, nil)
	require.Equal(t, []any{interpreter.ClassFinal, "connection_denied"}, []any{result.Error.Class, result.Error.Type})
	require.Equal(t, `connection "ours" may be used by known playbooks vault, vault.*, and playbook vault has no signature, and its bytes are in no file of this `+
		`worker's folder: its uses.playbooks decides`, result.Error.Message)
	require.Empty(t, w.api.Requests(""))
	signed := signText(t, guarded, key)
	w.completes(signed, nil)
	require.Len(t, w.api.Requests(""), 5)
	result = w.ends("failed", strings.Replace(signed, "url: /echo\n", "url: /echo?all=1\n", 1), nil)
	require.Contains(t, result.Error.Message, "playbook vault has a signature that is of no key of this worker, or was changed after it was signed")
	result = w.ends("failed", signText(t, strings.Replace(guarded, "name: vault", "name: other", 1), key), nil)
	require.Contains(t, result.Error.Message, "may be used by playbooks vault, vault.*, and not by other")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "vault.yaml"), []byte(guarded), 0o600))
	w.completes(guarded, nil)
	require.NoError(t, os.Remove(filepath.Join(folder, "vault.yaml")))
	result = w.ends("failed", guarded, nil)
	require.Equal(t, "connection_denied", result.Error.Type)
	require.Len(t, w.api.Requests(""), 10)
}

// TestForgedPlaybooks: what a client writes does not make a playbook known: the name of a known one in a reprocess, the bytes of a
// known one in an activity that no run has started, another playbook under the path that a known one runs.
func TestForgedPlaybooks(t *testing.T) {
	t.Parallel()
	w, _, key := knowing(t, false)
	c := w.env.Client()
	signed := signText(t, guarded, key)
	of, err := interpreter.LoadPlaybook("vault.yaml", signed)
	require.NoError(t, err)
	evil := strings.Replace(guarded, "items: [1, 2, 3]", "items: [evil]", 1)

	forged := w.input(evil, nil)
	forged.Reprocess = &protocol.Reprocess{
		Origin: interpreter.RunInfo{Playbook: "vault", WorkflowID: "vault", RunID: "vault"},
		Loops: []protocol.ReprocessLoop{{
			Step: "each", Visit: 1, Subset: protocol.Subset{Indexes: []int{0}, Size: 1}, Elements: []expression.Value{expression.Of("x")},
		}},
	}
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "reprocess-" + w.queue, TaskQueue: w.queue}, protocol.PlaybookWorkflowName, forged)
	require.NoError(t, err)
	reprocessed, _ := w.outcome(run)
	require.NotEqual(t, interpreter.Completed, reprocessed.Status)

	handle, err := c.ExecuteActivity(t.Context(), client.StartActivityOptions{ID: "alone-" + w.queue, TaskQueue: w.queue, StartToCloseTimeout: patience, ScheduleToCloseTimeout: patience},
		"http", interpreter.ToolInput{
			Tool: "http", Playbook: "vault", Attestation: of.Attestation(), Step: "once", Auth: "ours", TimeoutSeconds: 5,
			Fields: map[string]expression.Value{"url": expression.Of("/echo")},
		})
	require.NoError(t, err)
	require.ErrorContains(t, handle.Get(t.Context(), nil), "the activity was started by a client, and not by a run")

	outer := signText(t, strings.Replace(book("  - step: call\n    tool: playbook\n    path: vault.yaml\n"), "name: test", "name: vault", 1), key)
	nested := w.input(outer, nil)
	nested.Files = map[string]string{"vault.yaml": evil}
	run, err = c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "nested-" + w.queue, TaskQueue: w.queue}, protocol.PlaybookWorkflowName, nested)
	require.NoError(t, err)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Contains(t, result.Error.Message, "playbook vault has no signature")
	require.Empty(t, w.api.Requests(""))
}

// TestOnlyKnown: a worker with --only-known runs known playbooks, those that these run, and backfills of them, and nothing else.
func TestOnlyKnown(t *testing.T) {
	t.Parallel()
	w, folder, key := knowing(t, true)
	run := w.start(guarded, nil)
	require.ErrorContains(t, testenv.WaitOutcome(t, run, nil), "test.yaml: this worker runs only playbooks that it knows (--only-known), and playbook vault has no signature")
	w.completes(signText(t, guarded, key), nil)
	outer := signText(t, book("  - step: call\n    tool: playbook\n    name: vault\n"), key)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "vault.yaml"), []byte(guarded), 0o600))
	w.completes(outer, nil)
	before := len(w.api.Requests(""))
	nested := w.input(signText(t, book("  - step: call\n    tool: playbook\n    path: other.yaml\n"), key), nil)
	nested.Files = map[string]string{"other.yaml": strings.Replace(guarded, "batch: 2", "batch: 3", 1)}
	run, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "nested-" + w.queue, TaskQueue: w.queue}, protocol.PlaybookWorkflowName, nested)
	require.NoError(t, err)
	result, err := w.outcome(run)
	require.NoError(t, err)
	require.Equal(t, "unknown_playbook", result.Error.Type)
	require.Len(t, w.api.Requests(""), before)
}

// TestBackfillsOfKnown: the playbook that starter backfill writes has no signature; the one that it runs has.
func TestBackfillsOfKnown(t *testing.T) {
	t.Parallel()
	w, _, key := knowing(t, true)
	daily := strings.Replace(guarded, "workload:", "partitions: {every: day, start: 2026-01-01}\nworkload:", 1)
	for text, completes := range map[string]bool{signText(t, daily, key): true, daily: false} {
		book, err := interpreter.LoadPlaybook("daily.yaml", text)
		require.NoError(t, err)
		input := w.input(string(backfill.PlaybookSource(book, "daily.yaml", 2)), map[string]any{"keys": []any{"2026-01-01"}, "given": map[string]any{}})
		input.Name, input.Files = backfill.FileName("daily.yaml"), map[string]string{backfill.CalledName("daily.yaml"): text}
		id := "backfill-" + playbook.UnsignedDigest([]byte(text))[:8] + w.queue
		run, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: w.queue}, protocol.PlaybookWorkflowName, input)
		require.NoError(t, err)
		result, err := w.outcome(run)
		require.NoError(t, err)
		require.Equal(t, completes, result.Status == interpreter.Completed, "%v", result)
	}
	input := w.input(strings.Replace(daily, "name: vault", "name: vault.backfill", 1), nil)
	input.Name, input.Files = backfill.FileName("daily.yaml"), map[string]string{backfill.CalledName("daily.yaml"): daily}
	run, err := w.env.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "named-" + w.queue, TaskQueue: w.queue}, protocol.PlaybookWorkflowName, input)
	require.NoError(t, err)
	require.ErrorContains(t, testenv.WaitOutcome(t, run, nil), "playbook vault.backfill has no signature")
}
