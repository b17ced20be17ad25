package activities_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/activities/tooltest"
	"reprise/interpreter"
)

// BenchmarkLargeAnswer is a page of 1 MB, without a connection and with one whose
// secret it is looked through for.
func BenchmarkLargeAnswer(b *testing.B) {
	row := `{"id":12345,"patient_id":"p77","name":"Somebody Else","score":71,"at":"2024-05-01T10:00:00Z"},`
	answer := "[" + strings.Repeat(row, 1<<20/len(row)) + "null]"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(answer))
	}))
	b.Cleanup(server.Close)

	c := activities.NewCatalogue(activities.Resources{Connections: activities.Connections{"api": "bearer:eyJhbGciOiJIUzI1NiJ9.x8Yz12.Q7xAbCdEfGhIjKl"}})

	for name, auth := range map[string]string{"no connection": "", "a connection": "api"} {
		b.Run(name, func(b *testing.B) {
			var call attempt.Func

			for _, activity := range c.Attempts.Activities() {
				if activity.Name == "http" {
					call = activity.Run
				}
			}

			for b.Loop() {
				_, err := call(b.Context(), interpreter.ToolInput{
					Tool: "http", Step: "fetch", Auth: auth, Fields: tooltest.Fields(map[string]any{"url": server.URL}),
				})
				require.NoError(b, err)
			}
		})
	}
}
