package state

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/terminal"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
	"reprise/starter/cli"
)

// TestSetOfWhatIsToCome: rows before a time that is to come would be lost without a word.
func TestSetOfWhatIsToCome(t *testing.T) {
	t.Parallel()
	times := &playbook.Incremental{Type: incremental.Time, InitialValue: "2024-01-01T00:00:00Z"}
	days := &playbook.Incremental{Type: incremental.Date, InitialValue: "2024-01-01"}
	now := time.Now().UTC()
	for _, refused := range []struct {
		section *playbook.Incremental
		value   string
	}{{times, "9999-01-01T00:00:00Z"}, {times, now.Add(time.Hour).Format(time.RFC3339)}, {days, now.AddDate(0, 0, 2).Format(time.DateOnly)}} {
		_, err := parseCursor(refused.section, refused.value)
		require.ErrorContains(t, err, "the VALUE "+refused.value+" is in the future")
	}
	for _, taken := range []struct {
		section *playbook.Incremental
		value   string
	}{
		{times, now.Add(-time.Minute).Format(time.RFC3339)},
		{days, now.AddDate(0, 0, -1).Format(time.DateOnly)},
		{&playbook.Incremental{Type: incremental.Integer, InitialValue: 0}, "9223372036854775807"},
		{&playbook.Incremental{Type: incremental.Token}, "9999-01-01"},
	} {
		_, err := parseCursor(taken.section, taken.value)
		require.NoError(t, err, taken.value)
	}
}

// TestSetOfATime: the source gets the time as it stands, without space around it.
func TestSetOfATime(t *testing.T) {
	t.Parallel()
	times := &playbook.Incremental{Type: incremental.Time, InitialValue: "2024-01-01T00:00:00Z"}
	cursor, err := parseCursor(times, " 2024-03-01T00:00:05Z ")
	require.NoError(t, err)
	require.Equal(t, "2024-03-01T00:00:05Z", cursor.Value.Data)
}

// TestSetOfANegativeValue: a value that looks like a flag is an error that says how it is written.
func TestSetOfANegativeValue(t *testing.T) {
	t.Parallel()
	command := newStateSetCommand(&cli.App{})
	command.SetArgs([]string{"orders.yaml", "-5"})
	command.SilenceErrors, command.SilenceUsage = true, true
	require.ErrorContains(t, command.Execute(), "a negative VALUE last, after --: starter state set --yes -- FILE STEP -5")
}

// TestStateText: the run that claimed a state last need not be the one that moved it.
func TestStateText(t *testing.T) {
	t.Parallel()
	doc := stateDocument{
		Step: "orders", State: "shop/orders", Type: incremental.Integer, Watermark: expression.Of(7), ReadsFrom: expression.Of(7), Run: "shop-1", Rows: 2,
		HeldBy: []string{},
	}
	require.Equal(t, `state       shop/orders
step        orders
stored      by Temporal, after the rows (at least once)
watermark   7 (integer)
reads from  7
moved       -
held        by no run
last run    shop-1
rows        2
`, stateText(doc, "by Temporal, after the rows (at least once)", time.Now()))
	require.Contains(t, statesTable([]stateDocument{doc}, time.Now(), terminal.Paper{Width: 80}), "│ last run │")
}

// TestChangesAt80Columns: who has changed a state, when, from where, to where and why is shown at 80 columns.
func TestChangesAt80Columns(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 23, 0, 14, 0, time.UTC)
	changes := []changeDocument{
		{At: at, By: "orders-20261122-230000-4f1c", From: expression.Of("2026-01-01T00:00:00Z"), To: expression.Of("2026-11-22T22:59:58.123456+01:00")},
		{At: at.Add(time.Hour), By: "ann@warehouse-host", From: expression.Of("2026-11-22T22:59:58.123456+01:00"), To: expression.Of("2026-03-01T00:00:00Z"), Note: "late rows of March came with the second delivery"},
		{At: at.Add(2 * time.Hour), By: "ann@warehouse-host", From: expression.Of("2026-03-01T00:00:00Z")},
		{By: "orders-" + strings.Repeat("long-", 4) + "1", To: expression.Of(strings.Repeat("x", 50)), Note: "again"},
	}
	require.Equal(t, `┌─────────────────────────┬────────────────────────────────────┬───────────────┐
│ at, by                  │ from, to                           │ note          │
├─────────────────────────┼────────────────────────────────────┼───────────────┤
│ 2026-11-22 23:00:14 UTC │ 2026-01-01T00:00:00Z               │               │
│ orders-20261122-230000- │ → 2026-11-22T22:59:58.123456+01:00 │               │
│ 4f1c                    │                                    │               │
├─────────────────────────┼────────────────────────────────────┼───────────────┤
│ 2026-11-23 00:00:14 UTC │ 2026-11-22T22:59:58.123456+01:00   │ late rows of  │
│ ann@warehouse-host      │ → 2026-03-01T00:00:00Z             │ March came    │
│                         │                                    │ with the      │
│                         │                                    │ second        │
│                         │                                    │ delivery      │
├─────────────────────────┼────────────────────────────────────┼───────────────┤
│ 2026-11-23 01:00:14 UTC │ 2026-03-01T00:00:00Z               │               │
│ ann@warehouse-host      │ forgotten                          │               │
├─────────────────────────┼────────────────────────────────────┼───────────────┤
│ -                       │ -                                  │ again         │
│ orders-long-long-long-  │ → xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx │               │
│ long-1                  │ xxxxxxxxxxxxxxxxxx                 │               │
└─────────────────────────┴────────────────────────────────────┴───────────────┘`, changesTable(changes, at.Add(48*time.Hour), terminal.Paper{Width: 80}))
}
