package testenv

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// Processes returns the IDs of the running processes whose environment has the
// entry "NAME=value". A test that starts a program with a value of its own finds
// everything that the program started in turn and left behind, whatever its name
// or parent. It reads /proc, so it needs Linux; elsewhere the test fails.
func Processes(t testing.TB, entry string) []int {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Fatalf("look for processes: %v", err)
	}
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatalf("look for processes: %v", err)
	}
	var found []int
	for _, file := range files {
		// Processes end while we look, and other users' cannot be read.
		environ, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+entry+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}
