package render

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/terminal"
	"reprise/internal/observe/runs"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/workflows/protocol"
)

func TestRowsText(t *testing.T) {
	t.Parallel()
	for want, totals := range map[string]interpreter.RowTotals{
		"":               {},
		"1,234,567 read": {Read: 1_234_567},
		"3 written":      {Written: 3, Inserted: 3},
		"1,003 written (1,000 inserted, 3 updated)":               {Written: 1003, Inserted: 1000, Updated: 3},
		"18 written (10 inserted, 3 updated, 5 either)":           {Written: 18, Inserted: 10, Updated: 3},
		"20 read, 18 written, 3 deleted, 2 rejected, 1 discarded": {Read: 20, Written: 18, Deleted: 3, Rejected: 2, Discarded: 1},
	} {
		require.Equal(t, want, RowsText(totals))
	}
	require.Equal(t, []string{"", "0", "7 read", "1,005"}, []string{
		ShortRows(nil), ShortRows(&interpreter.RowTotals{Rejected: 1}), ShortRows(&interpreter.RowTotals{Read: 7}),
		ShortRows(&interpreter.RowTotals{Read: 7, Written: 1000, Deleted: 5}),
	})
}

// TestStatusSaysWhatHappenedToRows: a step has its tables, and the run the sum where several steps have some.
func TestStatusSaysWhatHappenedToRows(t *testing.T) {
	t.Parallel()
	table := func(name string, written int64) *interpreter.Rows {
		return interpreter.TableRows{Table: name, Connection: "shop", RowTotals: interpreter.RowTotals{Written: written, Rejected: 1}}.ToRows()
	}
	read := &interpreter.Rows{RowTotals: interpreter.RowTotals{Read: 20}}
	load, both := read.Plus(table("orders", 18)), table("orders", 4).Plus(table("customers", 1))
	status := &runs.Status{
		At: time.Unix(0, 0), Rows: load.Plus(both),
		Steps: []runs.Step{{Step: "load", Visit: 1, Rows: load}, {Step: "both", Visit: 1, Rows: both}, {Step: "none", Visit: 1}},
	}
	var shown strings.Builder
	PrintStatus(&shown, status, terminal.Paper{Width: 80})
	for _, want := range []string{
		"load: 20 read; orders of shop: 18 written, 1 rejected\n", "both: 5 written, 2 rejected\n", "both: customers of shop: 1 written, 1 rejected\n",
		"rows: 20 read, 23 written, 3 rejected\n",
	} {
		require.Contains(t, shown.String(), want)
	}
	status.Steps = status.Steps[:1]
	shown.Reset()
	PrintStatus(&shown, status, terminal.Paper{Width: 80})
	require.NotContains(t, shown.String(), "rows: ")
}

// TestReportSaysWhatHappenedToRows: what a run prints at its end has the tables of its steps, the sum and the watermarks.
func TestReportSaysWhatHappenedToRows(t *testing.T) {
	t.Parallel()
	orders := interpreter.TableRows{Table: "orders", Connection: "shop", RowTotals: interpreter.RowTotals{Written: 18, Deleted: 2, Rejected: 1}}.ToRows()
	orders = orders.Plus(&interpreter.Rows{RowTotals: interpreter.RowTotals{Read: 21}})
	load := protocol.StepRecord{Step: "load", Visit: 1, Rows: orders, Incremental: &interpreter.StateRecord{
		State: "shop/load", From: expression.Of(8), Before: expression.Of(10), Watermark: expression.Of(31),
	}}
	result := protocol.Result{Status: interpreter.Completed, Rows: orders, Steps: []protocol.StepRecord{load}}
	shown := func() string {
		var b strings.Builder
		PrintReport(&b, EndedRun{WorkflowID: "shop-1", Result: result}, terminal.Paper{Width: 100})
		return b.String()
	}
	require.Contains(t, shown(), "load: 21 read; orders of shop: 18 written, 2 deleted, 1 rejected\nload: watermark from 10 to 31\nshop-1: completed\n")
	again := load
	again.Visit, again.Incremental = 2, &interpreter.StateRecord{State: "shop/load", Watermark: expression.Of(31), Before: expression.Of(31), MovesTo: expression.Of(40)}
	result.Steps, result.Rows = append(result.Steps, again), orders.Plus(orders)
	require.Contains(t, shown(), "load#2: watermark from 31 to 40\nrows: 42 read, 36 written, 4 deleted, 2 rejected\n")
	for status, want := range map[interpreter.Status]string{
		interpreter.Running: "moves to 40 when the run has completed", interpreter.Partial: "not moved, because the run has not completed",
		interpreter.Failed: "not moved, because the run has not completed",
	} {
		result.Status = status
		require.Contains(t, shown(), "load#2: watermark 31, "+want+"\n")
	}
	result.Status, result.Warnings = interpreter.Completed, []string{"step load: its state was not moved"}
	require.Contains(t, shown(), "load#2: watermark 31, moves to 40 unless a warning of the run says otherwise\n")
}
