package playbook_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

const daily = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: orders, description: "old"}
partitions: {every: day, start: 2024-01-01, zone: Europe/Berlin}
workflow:
  - step: start
    desc: reads
    tool: playbook
    workload: {day: "{{ partition.key }}"}
    workflow:
      - {step: one, desc: "inner", tool: python, code: "def main(): return 1"}
`

func decoded(t *testing.T, text string) *playbook.Playbook {
	t.Helper()
	book, found := playbook.Decode(source.NewFile("orders.yaml", []byte(text)))
	require.Empty(t, found)
	return book
}

// TestIdentity: what is done stays done where a playbook says the same in another way.
func TestIdentity(t *testing.T) {
	t.Parallel()
	identity := decoded(t, daily).ContentHash()
	require.Len(t, identity, 16)
	for _, row := range []struct {
		old, changed string
		same         bool
	}{
		{"partitions:", "# a comment\npartitions:", true},
		{"old", "new", true},
		{"desc: reads", "desc: writes", true},
		{`desc: "inner", `, "", true},
		{"kind: Playbook", `kind: "Playbook"`, true},
		{"{every: day, start: 2024-01-01, zone: Europe/Berlin}", "\n  zone: Europe/Berlin\n  start: 2023-01-01\n  every: day\n  end: 2030-01-01", true},
		{"zone: Europe/Berlin", "zone: Europe/Paris", false},
		{"return 1", "return 2", false},
		{"day: \"{{ partition.key }}\"", "day: \"{{ partition.start }}\"", false},
		{"name: orders", "name: other", false},
	} {
		require.Contains(t, daily, row.old)
		other := decoded(t, strings.Replace(daily, row.old, row.changed, 1)).ContentHash()
		require.Equal(t, row.same, identity == other, "%s is %s", row.old, row.changed)
	}
}

// TestPartitionOfARun: that of its key, or the newest, and none where the playbook has none.
func TestPartitionOfARun(t *testing.T) {
	t.Parallel()
	at := time.Date(2024, time.March, 1, 12, 0, 0, 0, time.UTC)
	book := decoded(t, daily)
	p, err := book.RunPartition("", at)
	require.NoError(t, err)
	require.Equal(t, "2024-02-29", p.Key)
	require.Equal(t, "2024-02-29T00:00:00+01:00", p.ExprValue()["start"])
	p, err = book.RunPartition("2024-01-02", at)
	require.NoError(t, err)
	require.Equal(t, 1, p.Index)
	none := decoded(t, strings.Replace(daily, "partitions: {every: day, start: 2024-01-01, zone: Europe/Berlin}\n", "", 1))
	p, err = none.RunPartition("", at)
	require.NoError(t, err)
	require.Nil(t, p)
	_, err = none.RunPartition("2024-01-02", at)
	require.EqualError(t, err, "playbook orders has no partitions, so no run of it is about 2024-01-02")
	for text, want := range map[string]string{
		"2024-03-31 02:30":     "2024-03-31T03:30:00+02:00",
		"2024-03-01":           "2024-03-01T00:00:00+01:00",
		"2024-03-01T00:00:00Z": "2024-03-01T01:00:00+01:00",
	} {
		moment, err := book.Partitions.MomentIn(text)
		require.NoError(t, err)
		require.Equal(t, want, moment.In(zoneOf(t, book)).Format(time.RFC3339))
	}
}

// TestRepeatedPartitions: a schedule with several runs for a partition is a warning where each of them inserts the rows again.
func TestRepeatedPartitions(t *testing.T) {
	t.Parallel()
	const text = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: p, schedule: {%s}}
partitions: {every: %s, start: 2024-01-01, zone: Europe/Berlin}
workflow:
  - {step: before, tool: sqlite, path: a.db, statement: "%s orders WHERE day = {{ partition.key }}", next: a}
  - step: a
    tool: http
    url: https://api.example.com/orders
    params: {day: "{{ partition.key }}"}
    sink: {tool: sqlite, path: a.db, table: orders, mode: %s, key: id}
`
	for _, test := range []struct {
		times, every, statement, mode string
		warns                         bool
	}{
		{`cron: "0 */6 * * *", zone: Europe/Berlin`, "day", "SELECT 1 FROM", "insert", true},
		{"every: 6h", "day", "SELECT 1 FROM", "insert", true},
		{`cron: "0 3 * * *"`, "week", "SELECT 1 FROM", "insert", true},
		{`cron: ["0 3 * * *", "0 4 * * *"]`, "day", "SELECT 1 FROM", "insert", true},
		{`cron: "0 */6 * * *"`, "day", "DELETE FROM", "insert", false},
		{`cron: "0 */6 * * *"`, "day", "SELECT 1 FROM", "upsert", false},
		{`cron: "0 */6 * * *"`, "day", "SELECT 1 FROM", "insert_or_ignore", false},
		{`cron: "0 3 * * *", zone: Asia/Tokyo`, "day", "SELECT 1 FROM", "insert", false},
		{`cron: ["0 3 * * 1-5", "0 5 * * sat,sun"]`, "day", "SELECT 1 FROM", "insert", false},
		{`cron: "0 3 1 * *"`, "month", "SELECT 1 FROM", "insert", false},
		{`cron: "0 3 * * mon"`, "week", "SELECT 1 FROM", "insert", false},
		{`cron: "5 * * * *"`, "hour", "SELECT 1 FROM", "insert", false},
		{"every: 24h", "day", "SELECT 1 FROM", "insert", false},
	} {
		path := filepath.Join(t.TempDir(), "p.yaml")
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, text, test.times, test.every, test.statement, test.mode), 0o600))
		_, found, says := validate(t, path)
		require.False(t, found.HasErrors(), says)
		require.Equal(t, test.warns, strings.Contains(says, "the schedule has several runs for one partition"), "%v: %s", test, says)
	}
}

func zoneOf(t *testing.T, book *playbook.Playbook) *time.Location {
	t.Helper()
	p, err := book.Partitions.FindPartition("2024-01-01")
	require.NoError(t, err)
	return p.Start.Location()
}
