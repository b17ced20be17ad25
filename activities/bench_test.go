package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/attempt"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

const benchPages = 1000

const benchPaged = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: bench}
workflow:
  - step: fetch
    tool: http
    url: %s/rows
    params: {page: 1}
    retry:
      - when: "{{ response.paging.hasMore }}"
        then:
          max_attempts: 10001
          next_call: {params: {page: "{{ response.paging.page + 1 }}"}}
          collect: {path: data}
`

// benchAPI answers with pages of 100 rows, encoded beforehand.
func benchAPI(b *testing.B) string {
	b.Helper()
	pages := map[string][]byte{}
	for page := 1; page <= benchPages; page++ {
		rows := make([]map[string]any, 100)
		for i := range rows {
			n := (page-1)*100 + i
			rows[i] = map[string]any{"id": n, "patient_id": fmt.Sprintf("p%02d", n), "score": n * 7 % 100}
		}
		body, err := json.Marshal(map[string]any{"data": rows, "paging": map[string]any{"page": page, "hasMore": page < benchPages}})
		require.NoError(b, err)
		pages[fmt.Sprint(page)] = body
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(pages[r.URL.Query().Get("page")])
	}))
	b.Cleanup(server.Close)
	return server.URL
}

// BenchmarkDrivePages fetches a call's pages, as many in one activity as
// belong there, with and without the JSON that lies between two of them.
func BenchmarkDrivePages(b *testing.B) {
	task := call.Task{
		Name: "bench.yaml", Source: fmt.Sprintf(benchPaged, benchAPI(b)), Step: "fetch", Visit: 1,
		Run: interpreter.RunInfo{WorkflowID: "w", RunID: "r"},
	}
	catalogue := activities.DefaultCatalogue()
	for name, travel := range map[string]func(call.DriveOutput) call.DriveOutput{
		"alone":     func(output call.DriveOutput) call.DriveOutput { return output },
		"with JSON": func(output call.DriveOutput) call.DriveOutput { return overJSON(b, output) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				machine := pagedCall(b, catalogue, task)
				for !machine.Finished() {
					output, err := catalogue.Calls.Drive(b.Context(), call.DriveInput{
						Task: task, Calls: []call.Snapshot{{State: machine.View().SnapshotFor(true)}}, Width: 1, Pages: true,
					}, call.Script{Source: task.Source})
					require.NoError(b, err)
					machine.Apply(travel(output).Calls[0], time.Now())
				}
				require.Len(b, machine.Result().Data.Data, 100*benchPages)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchPages, "ns/page")
		})
	}
}

// pagedCall is a call whose first page is there: what follows may share an
// activity.
func pagedCall(b *testing.B, catalogue *activities.Catalogue, task call.Task) *call.Call {
	b.Helper()
	book, step, err := task.LoadStep()
	require.NoError(b, err)
	call := task.BuildCall(book, step, call.Snapshot{}, func() float64 { return 0 })
	result, err := activityNamed(b, catalogue, "http")(b.Context(), call.Next(time.Now()).Input)
	require.NoError(b, err)
	call.ApplyOutcome(interpreter.Outcome{Data: result.Data.Data, Meta: result.Meta}, time.Now())
	require.True(b, call.View().FetchesPage())
	return call
}

func activityNamed(b *testing.B, catalogue *activities.Catalogue, name string) attempt.Func {
	b.Helper()
	for _, activity := range catalogue.Attempts.Activities() {
		if activity.Name == name {
			return activity.Run
		}
	}
	require.Failf(b, "no activity", "%s", name)
	return nil
}

// overJSON is what the other side of Temporal gets.
func overJSON(b *testing.B, output call.DriveOutput) (back call.DriveOutput) {
	b.Helper()
	encoded, err := json.Marshal(output)
	require.NoError(b, err)
	require.NoError(b, json.Unmarshal(encoded, &back))
	return back
}

// echo is a tool that answers at once.
type echo struct{}

func (echo) Spec() playbook.ToolSpec { return playbook.ToolSpec{Name: "echo", Summary: "Gives back."} }

func (echo) Run(_ context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
	return interpreter.ToolResult{Data: expression.Of(in.Fields["give"].Data)}, nil
}

const benchLoop = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: bench}
workflow:
  - step: each
    tool: echo
    ms: 0
    give: "{{ item }}"
    loop: {collection: "{{ 1..50 }}", mode: parallel, batch: 50}
`

// BenchmarkDriveBatch makes a batch of 50 calls of a tool that answers at once.
func BenchmarkDriveBatch(b *testing.B) {
	const calls = 50
	catalogue := activities.DefaultCatalogue()
	require.NoError(b, catalogue.RegisterTool(echo{}))
	in := call.DriveInput{Width: 50, Task: call.Task{
		Name: "bench.yaml", Source: benchLoop, Step: "each", Visit: 1, Run: interpreter.RunInfo{WorkflowID: "w", RunID: "r"},
	}}
	for i := range calls {
		in.Calls = append(in.Calls, call.Snapshot{Index: &i, Size: calls, Element: expression.Of(i)})
	}
	b.ReportAllocs()
	for b.Loop() {
		output, err := catalogue.Calls.Drive(b.Context(), in, call.Script{Source: benchLoop})
		require.NoError(b, err)
		require.Equal(b, calls-1, output.Calls[calls-1].Result.Data.Data)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/calls, "ns/call")
}
