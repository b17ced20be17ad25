// Package localserver runs a Temporal server with its web UI as a child process, for users without a server: the
// official CLI's development server, or this project's own.
package localserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// BinaryVariable is the environment variable that selects the server binary.
const BinaryVariable = "REPRISE_DEVSERVER"

// ErrNotFound means that this machine has no server to start.
var ErrNotFound = errors.New("no Temporal server found to start")

// Find returns the path of a binary that supports "server start-dev": REPRISE_DEVSERVER, else temporal on PATH, else
// devserver next to this executable or in bin/ of the checkout around the working directory.
func Find() (string, error) {
	if chosen := os.Getenv(BinaryVariable); chosen != "" {
		path, err := exec.LookPath(chosen)
		if err != nil {
			return "", fmt.Errorf("%w: %s=%q: %w", ErrNotFound, BinaryVariable, chosen, err)
		}
		return path, nil
	}
	if path, err := exec.LookPath("temporal"); err == nil {
		return path, nil
	}
	for _, candidate := range candidatePaths() {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: neither temporal on PATH nor devserver beside this program. "+
		"Install the Temporal CLI, or run make bin/devserver in a checkout, or name a running server with --address", ErrNotFound)
}

func candidatePaths() []string {
	var paths []string
	if self, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		paths = append(paths, filepath.Join(filepath.Dir(self), "devserver"))
	}
	if root := checkoutFolder(); root != "" {
		paths = append(paths, filepath.Join(root, "bin", "devserver"))
	}
	return paths
}

// checkoutFolder returns the directory of this module's go.mod, which is the working directory or a parent; ""
// outside of a checkout.
func checkoutFolder() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for ; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && slices.Contains(strings.Split(string(text), "\n"), "module reprise") {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}
