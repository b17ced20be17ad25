// Package samples has what tests of texts for people share: golden files, times and
// failures.
package samples

import (
	"flag"
	"testing"
	"time"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

var update = flag.Bool("update", false, "rewrite the expected files")

// Update reports whether expected files are to be rewritten.
func Update() bool { return *update }

// Began is when runs of tests begin.
var Began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// LocalBegan is a time that reads the same in every zone.
var LocalBegan = time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)

// Golden compares a text with a file of testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	testenv.Golden(t, *update, name, got)
}

// FailureOf503 returns a failed attempt of tool http, whose message tries to colour a terminal.
func FailureOf503() *interpreter.ErrorObject {
	return &interpreter.ErrorObject{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable, Status: 503,
		Message: "HTTP 503 from GET https://api.example.com/patients/13/medications: \x1b[31mthe service is\nunavailable",
	}
}
