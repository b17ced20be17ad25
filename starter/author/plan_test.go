package author

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/runs"
	"reprise/internal/test/samples"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// TestPlanText: all that a plan may show fits a narrow terminal.
func TestPlanText(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	size, rows, most := 120, 250, 0.1
	loaded := runs.Found{WorkflowID: "orders-5f2c", Status: interpreter.Completed, StartedAt: now.Add(-2 * time.Hour), EndedAt: now.Add(-time.Hour)}
	running := runs.Found{WorkflowID: "orders-9a1b", Status: interpreter.Running, StartedAt: now.Add(-time.Minute)}
	doc := &planDocument{
		Playbook: "orders",
		Last:     &lastRun{Found: loaded, Diff: "--- orders-5f2c\n+++ orders.yaml\n@@ -1,2 +1,2 @@\n-  mode: insert\n+  mode: upsert\n"},
		Running:  []runs.Found{running},
		Concurrency: &plannedSlot{
			Key: "eu", Limit: 1, OnConflict: playbook.ConflictQueue, Running: 1, Waiting: 2, Holders: []string{"orders-9a1b"},
		},
		Schedules: []plannedSchedule{
			{Name: "nightly", When: "daily at 03:00", Zone: "Europe/Berlin", Next: []time.Time{now, now.Add(24 * time.Hour)}},
			{Name: "weekly", When: "mon at 04:00", Zone: "UTC", Paused: true},
		},
		Steps: []interpreter.StepPlan{
			{
				Step: "orders", Tool: "http", Request: "GET https://api.example.com/orders?updated_since=2026-02-28T23:50:00Z&limit=1000&sort=updated_at", Sampled: true,
				States: []interpreter.StatePlan{{
					State: "orders/orders", KeptBy: "postgres", Type: incremental.Time, Watermark: expression.Of("2026-03-01T00:00:00Z"),
					ReadsFrom: expression.Of("2026-02-28T23:50:00Z"), MovedAt: now.Add(-time.Hour), Run: "orders-5f2c", Holders: []string{"orders-9a1b"},
				}},
				Sinks: []interpreter.SinkPlan{
					{Place: "orders.sink", Tool: "postgres", Auth: "warehouse", Target: "shop.orders", Table: &interpreter.TablePlan{
						Name: "shop.orders", Mode: "upsert", Key: []string{"id"}, FromRows: true, Rows: &rows, Rejected: "shop.orders_rejected",
						DDL: []interpreter.DDL{
							{Kind: interpreter.CreateSchema, Statement: `CREATE SCHEMA IF NOT EXISTS "shop"`},
							{
								Kind:      interpreter.CreateTable,
								Statement: `CREATE TABLE IF NOT EXISTS "shop"."orders" ("id" bigint NOT NULL, "a, (b" numeric(12, 2), "note" text, PRIMARY KEY ("id"))`,
							},
						},
					}},
					{
						Place: "orders.retry[1].then.sink", Tool: "postgres", Auth: "warehouse", Target: "shop.log", Problem: `row 3: table "shop.log" has no column "extra"`,
						Table: &interpreter.TablePlan{Name: "shop.log", Exists: true, Mode: "insert", Rows: &rows, LeftOut: &interpreter.RowCounts{DiscardedRows: 1}},
					},
				},
			},
			{
				Step: "items", Tool: "http", Loop: &interpreter.LoopPlan{Size: &size, Shown: 3}, Unknown: "depends on the result of step orders",
				Unsampled: "the request depends on the result of step orders",
				Sinks: []interpreter.SinkPlan{
					{
						Place: "items.loop.sink", Tool: "sqlite", Target: "items of eu.db", Element: expression.Of("eu"),
						Table: &interpreter.TablePlan{Name: "items", NewFile: true, Mode: "insert", FromRows: true},
					},
					{Place: "items.loop.dead_letter", Tool: "file", Target: "{{ name }}.jsonl", Unknown: "depends on the element of the loop"},
					{Place: "items.sink", Tool: "postgres", Auth: "warehouse", Target: "made", Table: &interpreter.TablePlan{Name: "made", Mode: "insert", MadeBy: "start"}},
					{Place: "items.loop.element.sink", Tool: "postgres", Auth: "warehouse", Target: "days", Table: &interpreter.TablePlan{
						Name: "days", Exists: true, Mode: "replace", ReplaceWhere: &interpreter.ReplacedRows{Column: "day", From: "2026-02-28T00:00:00+01:00", To: "2026-03-01T00:00:00+01:00"},
					}},
					{Place: "items.loop.element.sink", Tool: "postgres", Auth: "warehouse", Target: "staff", Table: &interpreter.TablePlan{
						Name: "staff", Exists: true, Mode: "upsert", Key: []string{"id"}, MaxDelete: &most,
					}},
					{Place: "items.retry[1].then.sink", Tool: "postgres", Auth: "warehouse", Target: "orders", Table: &interpreter.TablePlan{
						Name: "orders", Exists: true, Mode: "insert", FromRows: true,
						DDL: []interpreter.DDL{
							{Kind: interpreter.AddColumn, Statement: `ALTER TABLE "orders" ADD COLUMN IF NOT EXISTS "x" bigint`},
							{Kind: interpreter.WidenColumn, Statement: `ALTER TABLE "orders" ALTER COLUMN "n" TYPE numeric`},
						},
					}},
				},
				States: []interpreter.StatePlan{
					{State: "orders/items/<element>", KeptBy: "temporal", Type: incremental.Time, ReadsFrom: expression.Of("2024-01-01")},
					{State: "orders/items/a", KeptBy: "temporal", Type: incremental.Time, Problem: "the connection is refused"},
					{
						State: "orders/items/b", KeptBy: "temporal", Type: incremental.Time, Watermark: expression.Of("2026-02-01"),
						ReadsFrom: expression.Of("2026-02-01"), MovedAt: now.Add(-time.Minute), // by a person
					},
				},
			},
			{Step: "count", Tool: "postgres"},
			{Step: "files", Tool: "http", Request: "GET https://api.example.com/files", Sinks: []interpreter.SinkPlan{
				{Place: "files.sinks[0]", Tool: "file", Auth: "lake", Target: "raw/new", File: &interpreter.FilePlan{Mode: "append", Format: "parquet", InFolder: true, Rejected: "raw/refused"}},
				{Place: "files.sinks[1]", Tool: "file", Auth: "lake", Target: "raw/orders", File: &interpreter.FilePlan{
					Mode: "overwrite", Format: "jsonl", Compression: "gzip", Exists: true, InFolder: true, Manifest: 12, Files: 3, Rows: 100, Bytes: 4096,
				}},
				{Place: "files.sinks[2]", Tool: "file", Auth: "lake", Target: "raw/days", File: &interpreter.FilePlan{
					Mode: "append", Format: "csv", Exists: true, InFolder: true, Manifest: 3, Files: 1, Rows: 1, Bytes: 9, ByWrite: true,
				}},
				{Place: "files.sinks[3]", Tool: "file", Target: "a.csv.gz", Problem: "the existing file is not compressed", File: &interpreter.FilePlan{
					Mode: "append", Format: "csv", Compression: "gzip", Exists: true, Bytes: 5,
				}},
				{Place: "files.sinks[4]", Tool: "file", Target: "b.jsonl", File: &interpreter.FilePlan{Mode: "append", Format: "jsonl"}},
				{Place: "files.sinks[5]", Tool: "file", Auth: "lake", Target: "raw/day={{ row.day }}", File: &interpreter.FilePlan{Mode: "append", Format: "csv", InFolder: true, ByRow: true}},
				{Place: "files.sinks[6]", Tool: "file", Auth: "lake", Target: "raw/day={{ row.day }}", File: &interpreter.FilePlan{Mode: "overwrite", Format: "csv", InFolder: true, ByRow: true}},
				{Place: "files.sinks[7]", Tool: "file", Auth: "lake", Target: "raw/day={{ row.day }}", File: &interpreter.FilePlan{Mode: "append", Format: "csv", InFolder: true, ByRow: true, ByWrite: true}},
			}},
		},
		Warnings: []string{"the playbook's workload has no key \"regoin\""}, Notes: []string{"the playbook cannot be compared"},
	}
	doc.Problems = len(doc.allProblems())
	require.Equal(t, 3, doc.Problems)
	got := doc.planText(now, 80, true)
	samples.Golden(t, "plan/all", got)
	for line := range strings.Lines(got) {
		require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 80, line)
	}
	doc = &planDocument{Playbook: "orders", Concurrency: &plannedSlot{Key: "eu", Limit: 1, OnConflict: playbook.ConflictSkip, Running: 1}}
	samples.Golden(t, "plan/skipped", doc.planText(now, 80, false))
}

// TestEachKindOfDDLIsCounted: a plan with one statement of a kind says so, and never as another kind.
func TestEachKindOfDDLIsCounted(t *testing.T) {
	none := countsOfDDL(nil)
	said := map[string]bool{none: true}
	for _, kind := range append(interpreter.DDLKinds(), "drop_column") {
		text := countsOfDDL(map[interpreter.DDLKind]int{kind: 1})
		require.False(t, said[text], "%s: %s", kind, text)
		said[text] = true
	}
	require.Equal(t, "0 tables to create, 0 columns to add, 0 to widen", none)
	require.Equal(t, "1 schema and 0 tables to create, 0 columns to add, 0 to widen", countsOfDDL(map[interpreter.DDLKind]int{interpreter.CreateSchema: 1}))
	require.Equal(t, `0 tables to create, 0 columns to add, 0 to widen, 2 of kind "drop_column"`, countsOfDDL(map[interpreter.DDLKind]int{"drop_column": 2}))
}

// TestPlaybookDiff: what says nothing is no difference, and what does is shown in the order of the new file.
func TestPlaybookDiff(t *testing.T) {
	const before = `metadata: {name: a, description: old}
workflow:
  - {step: one, tool: http, url: "x", desc: note} # a comment
  - step: two
    body: {desc: kept, n: "1"}
`
	const same = `
workflow:
  - step: one
    url: x
    tool: 'http'
  # another comment
  - {step: two, body: {n: "1", desc: kept}}
metadata: {name: a}
`
	found, err := playbookDiff("was", before, "is", same)
	require.NoError(t, err)
	require.Empty(t, found)
	for old, changed := range map[string]string{`n: "1"`: "n: 1", "desc: kept": "desc: other", "step: one": "step: first", "url: x": "url: y"} {
		found, err = playbookDiff("was", before, "is", strings.Replace(same, old, changed, 1))
		require.NoError(t, err)
		require.Contains(t, found, "--- was\n+++ is\n@@", changed)
		require.Contains(t, found, changed)
		require.Equal(t, 1, strings.Count(found, "\n-"), found)
	}
	_, err = playbookDiff("was", "a: [", "is", same)
	require.Error(t, err)
}
