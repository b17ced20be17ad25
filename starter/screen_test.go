package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/exitcode"
	"reprise/internal/base/terminal"
	"reprise/internal/observe/render"
	"reprise/internal/test/testenv"
	"reprise/starter/cli"
	"reprise/workflows/protocol"
)

// TestJSONStaysWhatItIs: programs read the same values.
func TestJSONStaysWhatItIs(t *testing.T) {
	t.Parallel()
	value := map[string]any{"\u202ekey": "esc \x1b[31m, del \x7f, c1 \u009b, \u2028, quote \" and \\"}
	var b bytes.Buffer
	require.NoError(t, terminal.PrintJSON(&terminal.Screen{To: &b}, value))
	require.NotContains(t, b.String(), "\u202e")
	require.NotContains(t, b.String(), "\x7f")
	var back map[string]any
	require.NoError(t, json.Unmarshal(b.Bytes(), &back))
	require.Equal(t, value, back)
}

// TestHostileTextsReachNoTerminal runs commands over texts that others wrote:
// names and messages that people are shown.
func TestHostileTextsReachNoTerminal(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b]0;owned\x07\u202egnp.exe\u009b2J"
	dir := t.TempDir()
	file := filepath.Join(dir, "hostile.yaml")
	text, err := json.Marshal(map[string]any{
		"apiVersion": "reprise/v1", "kind": "Playbook", "metadata": map[string]any{"name": "x"},
		"workflow": []any{map[string]any{"step": hostile, "tool": hostile, hostile: hostile}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	for _, args := range [][]string{
		{"validate", file},
		{"validate", file, "--output", "json"},
		{"run", file},
		{"run", hostile},
		{hostile},
		{"tools", hostile},
		{"run", "../playbooks/hello.yaml", "--set", hostile},
		{"migrate", "--check", file},
	} {
		var out, errs bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), testenv.Within(time.Minute))
		status := Main(ctx, args, cli.Streams{In: bytes.NewReader(nil), Out: &out, Err: &errs})
		cancel()
		require.NotEqual(t, exitcode.OK, status, args)
		for _, b := range []string{"\x1b", "\x07", "\u202e", "\u009b"} {
			require.NotContains(t, out.String()+errs.String(), b, "%q", args)
		}
	}

	result := protocol.Result{Status: "failed", Warnings: []string{hostile}}
	var b bytes.Buffer
	render.PrintReport(&terminal.Screen{To: &b}, render.EndedRun{WorkflowID: hostile, Result: result}, terminal.Paper{Width: 80})
	require.Contains(t, b.String(), `\u001b]0;owned\u0007\u202egnp.exe\u009b2J: failed`)
	require.NotContains(t, b.String(), "\x1b")
}

type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestOutputThatCannotBeWritten: whoever asked for the output has to learn that
// it is not there.
func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"version"},
		{"version", "--output", "json"},
		{"tools"},
		{"tools", "http"},
		{"--help"},
		{"validate", "../playbooks/hello.yaml"},
		{"migrate", "../playbooks/hello.yaml"},
	} {
		var errs bytes.Buffer
		status := Main(t.Context(), args, cli.Streams{In: bytes.NewReader(nil), Out: full{}, Err: &errs})
		require.Equal(t, exitcode.Failed, status, "%q: %s", args, errs.String())
		require.Contains(t, errs.String(), "no space left", "%q", args)
	}
}
