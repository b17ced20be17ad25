package render_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/require"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/cost"
	"reprise/internal/observe/render"
	"reprise/internal/observe/stats"
	"reprise/internal/test/samples"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// someStats are figures of runs with texts that nobody should trust.
func someStats() stats.Stats {
	share := func(x float64) *float64 { return &x }
	twelve := 12000
	orders := interpreter.TableRows{Table: "public.orders", Connection: "shop", RowTotals: interpreter.RowTotals{Written: 1_234_567, Inserted: 1_000_000, Updated: 234_567, Rejected: 12}}.ToRows()
	both := orders.Plus(interpreter.TableRows{Table: "customers\u202e", RowTotals: interpreter.RowTotals{Written: 6, Deleted: 3}}.ToRows()).
		Plus(&interpreter.Rows{RowTotals: interpreter.RowTotals{Read: 1_300_000}})
	return stats.Stats{
		Runs: []stats.RunSummary{{
			WorkflowID: "patients-\x1b[31m7x2k", Playbook: "patients", Status: interpreter.Running, StartedAt: samples.Began, At: samples.Began.Add(192 * time.Second),
		}, {
			WorkflowID: "patients-9qqa", Status: interpreter.Failed, StartedAt: samples.Began, EndedAt: samples.Began.Add(time.Second), At: samples.Began.Add(time.Second),
		}},
		Attempts: []stats.Bar{{From: 1, To: 1, Items: 90_000}, {From: 2, To: 2, Items: 900}, {From: 11, To: 20, Items: 20}, {From: 101, Items: 1}},
		Errors:   []stats.ErrorCount{{Class: "retryable", Kind: "http", Status: 503, Attempts: 4000, Items: 12}, {Class: "final", Kind: "timeout", Attempts: 1}},
		Waits:    []stats.Waits{{Reason: "rate_limited", Waits: 2, Seconds: 7200}, {Reason: "failure", Waits: 800, Seconds: 1600}},
		Rows:     both,
		Cost:     cost.Cost{Actions: 305_120, Heartbeats: 1200, Workflows: 1, HistoryBytes: 12_900_000},
		Watermarks: []stats.WatermarkMove{
			{Playbook: "patients", Step: "start", State: "patients/start", Before: expression.Of("2026-02-28T23:00:00Z"), After: expression.Of("2026-03-01T11:59:00Z")},
			{Playbook: "items", Step: "load", InChildRuns: true, State: "items/load/eu", After: expression.Of(17), States: 12},
			{Playbook: "patients", Step: "last", State: "patients/last", Pending: expression.Of(12)},
		},
		WatermarksLeft: 2,
		AttemptSeconds: 3200, WaitSeconds: 8800, LimitSeconds: 7200, LimitShare: 0.6,
		Steps: []stats.Figures{
			{Playbook: "patients", Step: "start", Visits: 2, Rows: both},
			{Playbook: "items", Step: "load", InChildRuns: true, Rows: orders},
			{
				Playbook: "patients", Step: "fetch", Visits: 2, Items: 100_000, Success: 90_921, Failed: 12, Open: 67, FirstTry: 90_000,
				Reliability: share(0.9897), SuccessRate: share(0.99987), RetryRate: share(0.0103), WaitSeconds: 8800,
			},
			{Playbook: "others\u202e", Step: strings.Repeat("long", 16), Visits: 1, Items: 1, Open: 1},
		},
		SlowestSteps:      []stats.Slow{{WorkflowID: "patients-\x1b[31m7x2k", Step: "fetch", Visit: 1, Seconds: 191, Status: interpreter.Running}},
		SlowestIterations: []stats.Slow{{WorkflowID: "patients-9qqa", Step: "fetch", Visit: 2, Index: &twelve, Seconds: 63.5, Attempts: 5, Status: interpreter.Failed}},
		Failures: []stats.FailureGroup{{
			Step: "fetch", Class: "retryable", Kind: "http", Status: 503, Items: 12, Indexes: []int{1, 2, 3, 40, 500}, Message: samples.FailureOf503().Message,
		}},
		FailuresLeft: 3,
		Notes:        []string{"patients-\x1b[31m7x2k: it is open, so these are the figures so far"},
	}
}

func TestGoldenStats(t *testing.T) {
	t.Parallel()
	for width, name := range map[int]string{80: "stats/figures", 40: "stats/width_40"} {
		var out bytes.Buffer
		render.PrintStats(&terminal.Screen{To: &out}, someStats(), terminal.Paper{Width: width})
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, text.StringWidth(strings.TrimRight(line, "\n")), width, line)
			require.NotContains(t, line, "\x1b")
			require.NotContains(t, line, "\u202e")
		}
		samples.Golden(t, name, out.String())
	}
}
