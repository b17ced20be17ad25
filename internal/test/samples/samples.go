// Package samples has what tests of human-readable output share: golden files, times and failures.
package samples

import (
	"flag"
	"testing"
	"time"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

var update = flag.Bool("update", false, "rewrite the expected files")

// Update reports whether golden files are to be rewritten.
func Update() bool { return *update }

// Began is the start time of the runs in tests.
var Began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// LocalBegan is a time that is formatted identically in every time zone.
var LocalBegan = time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)

// Golden compares a text with a golden file in testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	testenv.Golden(t, *update, name, got)
}

// FailureOf503 returns the error of a failed attempt of tool http. Its message contains a terminal escape sequence.
func FailureOf503() *interpreter.ErrorObject {
	return &interpreter.ErrorObject{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable, Status: 503,
		Message: "HTTP 503 from GET https://api.example.com/patients/13/medications: \x1b[31mthe service is\nunavailable",
	}
}
