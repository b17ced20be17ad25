package render_test

import (
	"flag"
	"testing"
	"time"

	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

var update = flag.Bool("update", false, "rewrite the expected files")

// began is when runs of tests begin.
var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// localBegan is a time that reads the same in every zone.
var localBegan = time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local)

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	testenv.Golden(t, *update, name, got)
}

func failureOf503() *interpreter.ErrorObject {
	return &interpreter.ErrorObject{
		Kind: interpreter.KindHTTP, Class: interpreter.ClassRetryable, Status: 503,
		Message: "HTTP 503 from GET https://api.example.com/patients/13/medications: \x1b[31mthe service is\nunavailable",
	}
}
