package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed *.patch
var patches embed.FS

// mutant is a change to the code that breaks a guarantee, with the tests that
// have to detect it. It is a file of the form
//
//	What it breaks, in one or more lines.
//
//	test: internal/test/e2e TestName/subtest
//	chaos: TestName (not where internal/test/oracle notices, or a test of internal/test/e2e without a disturbance)
//
//	--- a/file.go
//	+++ b/file.go
//	@@ … of a unified diff with a line of context, so that it outlives edits nearby
type mutant struct {
	name   string
	breaks string
	tests  []test
	chaos  string // test of internal/test/chaos that has to notice, within 60 rounds; "" for none
	patch  []byte
}

// test is a test of make test that fails with the mutant.
type test struct {
	folder string // of its package, seen from the root
	name   string // with a subtest or without
}

func (t test) String() string { return t.folder + " " + t.name }

// runPattern returns the argument of go test -run.
func (t test) runPattern() string { return "^" + strings.ReplaceAll(t.name, "/", "$/^") + "$" }

// functionName returns the name of the test's Go function.
func (t test) functionName() string {
	name, _, _ := strings.Cut(t.name, "/")
	return name
}

// allMutants returns all mutants, sorted by name.
func allMutants() ([]mutant, error) {
	names, err := fs.Glob(patches, "*.patch")
	if err != nil {
		return nil, err
	}
	all := make([]mutant, len(names))
	for i, name := range names {
		text, err := patches.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if all[i], err = parseMutant(strings.TrimSuffix(name, ".patch"), text); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

func parseMutant(name string, text []byte) (mutant, error) {
	at := bytes.Index(text, []byte("--- a/"))
	if at < 0 {
		return mutant{}, errors.New("there is no diff")
	}
	m := mutant{name: name, patch: text[at:]}
	var breaks []string
	for line := range strings.Lines(string(text[:at])) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, ": ")
		switch word {
		case "":
		case "test":
			folder, function, _ := strings.Cut(rest, " ")
			m.tests = append(m.tests, test{folder, function})
		case "chaos":
			m.chaos = rest
		default:
			breaks = append(breaks, line)
		}
	}
	m.breaks = strings.Join(breaks, " ")
	return m, nil
}

// patchedFiles returns the files that the patch changes, relative to the root.
func (m mutant) patchedFiles() []string {
	var names []string
	for line := range strings.Lines(string(m.patch)) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "--- a/"); found {
			names = append(names, name)
		}
	}
	return names
}

// applyPatch writes the changed files to dir, and an overlay file for the go command that replaces the files under root
// with them. The files under root stay unchanged.
func (m mutant) applyPatch(ctx context.Context, root, dir string) (overlay string, err error) {
	replace := map[string]string{}
	for _, name := range m.patchedFiles() {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return "", err
		}
		changed := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(changed), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(changed, text, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, name)] = changed
	}
	apply := exec.CommandContext(ctx, "git", "apply", "-")
	apply.Dir, apply.Stdin = dir, bytes.NewReader(m.patch)
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir)) // dir belongs to no repository
	if output, err := apply.CombinedOutput(); err != nil && len(m.patch) > 0 {
		return "", fmt.Errorf("%s.patch does not apply any more; make the same change to the code as it is now: %w\n%s",
			m.name, err, output)
	}
	encoded, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, encoded, 0o600)
}
