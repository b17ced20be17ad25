package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
)

// mended is misspelt once its quick fix is made, its step has another name, and leads on.
const (
	misspelt = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: users}
workload: {api: "http://x"}
workflow:
  - step: begin
    vars: {greeting: "𝄞"}
    next: [fetsh]
  - step: fetch
    tool: http
    url: "{{ api }}/𝄞/{{ begin }}"
  - step: load
    vars: {n: "{{ fetch.x }}"}
`
	mended = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: users}
workload: {api: "http://x"}
workflow:
  - step: begin
    vars: {greeting: "𝄞"}
    next: [users]
  - step: users
    tool: http
    url: "{{ api }}/𝄞/{{ begin }}"
    next: load
  - step: load
    vars: {n: "{{ users.x }}"}
`
)

// TestNeovim: a real editor shows problems, proposes, explains, finds and renames a step, and mends.
func TestNeovim(t *testing.T) {
	t.Parallel()
	editor, err := exec.LookPath("nvim")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal("no nvim on PATH: install the package neovim")
	}
	if err != nil {
		t.Skip("no nvim on PATH: install the package neovim to run this test")
	}
	program, err := os.Executable()
	require.NoError(t, err)
	script, err := filepath.Abs("testdata/neovim.lua")
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.Symlink(program, folder+"/starter")) // by this name the tests are the program
	require.NoError(t, os.WriteFile(folder+"/users.yaml", []byte(misspelt), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Within(time.Minute))
	defer cancel()
	command := exec.CommandContext(ctx, editor, "--headless", "-u", "NONE", "-i", "NONE", "-n", "-c", "luafile "+script)
	command.Dir = folder
	command.Env = append(os.Environ(), "STARTER="+folder+"/starter", "XDG_STATE_HOME="+folder, "XDG_CACHE_HOME="+folder)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	data, err := os.ReadFile(folder + "/result.json")
	require.NoError(t, err, "%s", output)
	var result struct {
		Error      string
		Problems   []string
		Labels     []string
		Members    []string
		Hover      string
		Definition string
		References int
		Text       string
	}
	require.NoError(t, json.Unmarshal(data, &result))
	require.Empty(t, result.Error, "%s", output)
	require.Contains(t, result.Problems, `7:11 step "begin" leads to "fetsh", which is not a step; did you mean "fetch"?`)
	require.Subset(t, result.Labels, []string{"url", "params", "retry"})
	require.Subset(t, result.Members, []string{"begin", "fetch"})
	require.Contains(t, result.Hover, "url")
	require.Equal(t, "8:10", result.Definition)
	require.Equal(t, 3, result.References)
	require.Equal(t, mended, result.Text)
}
