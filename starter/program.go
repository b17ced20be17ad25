package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is this program as its user calls it: what is printed as a command is
// pasted.
func program() string { return programName(os.Args[0]) }

func programName(called string) string {
	if filepath.Base(called) == called || strings.Contains(called, "go-build") { // go run leaves nothing behind
		return "starter"
	}
	if strings.ContainsAny(called, " '\"$\\") {
		return "'" + strings.ReplaceAll(called, "'", `'\''`) + "'"
	}
	return called
}

// hasTemporal reports whether Temporal's own command line is installed.
func hasTemporal() bool {
	_, err := exec.LookPath("temporal")
	return err == nil
}
