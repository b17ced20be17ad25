package testenv

import (
	"context"
	"testing"

	"reprise/internal/program/demoapi"
)

// DemoAPI starts a demo API of the test's own on a free port of 127.0.0.1 and
// closes it when the test ends.
func DemoAPI(t testing.TB) *demoapi.Server {
	t.Helper()
	api := demoapi.New(demoapi.Options{})
	// The test's context ends before its cleanups, which may still send requests.
	if _, err := api.Start(context.WithoutCancel(t.Context()), "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Close(); err != nil {
			t.Errorf("close demo API: %v", err)
		}
	})
	return api
}
