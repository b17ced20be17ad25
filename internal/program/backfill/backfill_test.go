package backfill

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/partition"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// matrixOf is what a ledger knows of the partitions of a rule.
func matrixOf(t *testing.T, partitions, now string, ledger *partition.Ledger) *Matrix {
	t.Helper()
	book, found := playbook.Decode(source.NewFile("book.yaml", []byte(`apiVersion: reprise/v1
kind: Playbook
metadata: {name: orders}
partitions: `+partitions+`
workflow: [{step: start, vars: {key: "{{ partition.key }}"}}]
`)))
	require.Empty(t, found)
	at, err := time.Parse(time.RFC3339, now)
	require.NoError(t, err)
	all, err := book.Partitions.CompletePartitions(at)
	require.NoError(t, err)
	return newMatrix(book, all, ledger)
}

// TestText: a line for each day, month, year or decade, of at most 80 columns.
func TestText(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ partitions, now, want string }{
		{
			"{every: hour, start: 2024-10-26 20:00, zone: Europe/Berlin}", "2024-10-27T23:30:00Z",
			"orders: 29 partitions, 29 missing\n2024-10-26                      ....\n2024-10-27  .........................\n. missing\n",
		},
		{
			"{every: day, start: 2024-02-27}", "2024-03-03T00:00:00Z",
			"orders: 5 partitions, 5 missing\n2024-02                            ...\n2024-03  ..\n. missing\n",
		},
		{
			"{every: week, start: 2024-12-23}", "2025-01-14T00:00:00Z",
			"orders: 3 partitions, 3 missing\n2024                                                        .\n2025     ..\n. missing\n",
		},
		{
			"{every: month, start: 2023-11-01}", "2024-02-14T00:00:00Z",
			"orders: 3 partitions, 3 missing\n2023               ..\n2024     .\n. missing\n",
		},
		{"{every: year, start: 2018-01-01}", "2022-01-01T00:00:00Z", "orders: 4 partitions, 4 missing\n2010s            ..\n2020s    ..\n. missing\n"},
		{
			"{every: 6h, start: 2024-01-01}", "2024-01-14T00:00:00Z", "orders: 52 partitions, 52 missing\n2024-01-01T00:00:00…  " +
				strings.Repeat(".", 50) + "\n2024-01-13T12:00:00…  ..\n. missing\n",
		},
		{"[eu, us]", "2024-01-14T00:00:00Z", "orders: 2 partitions, 2 missing\neu                    ..\n. missing\n"},
	} {
		text := matrixOf(t, row.partitions, row.now, &partition.Ledger{}).Text()
		require.Equal(t, row.want, text)
		for line := range strings.Lines(text) {
			require.LessOrEqual(t, len(line), 81)
		}
	}
}

// TestRanges: days that follow each other are named by the first and the last one; names have no order.
func TestRanges(t *testing.T) {
	t.Parallel()
	m := matrixOf(t, "{every: day, start: 2024-01-01}", "2024-01-09T12:00:00Z", &partition.Ledger{})
	for _, done := range []int{2, 4} {
		m.Rows[done].Status = partition.Done
	}
	ranges, more := m.Ranges(partition.Missing, 3)
	require.Equal(t, []string{"2024-01-01 to 2024-01-02", "2024-01-04", "2024-01-06 to 2024-01-08"}, ranges)
	require.Zero(t, more)
	ranges, more = m.Ranges(partition.Missing, 1)
	require.Equal(t, []string{"2024-01-01 to 2024-01-02"}, ranges)
	require.Equal(t, 2, more)
	ranges, _ = m.Ranges(partition.Failed, 3)
	require.Empty(t, ranges)
	ranges, _ = matrixOf(t, "[eu, us]", "2024-01-09T12:00:00Z", &partition.Ledger{}).Ranges(partition.Missing, 3)
	require.Equal(t, []string{"eu", "us"}, ranges)
}

// TestSelect: which partitions a choice means, and that those which run are left out.
func TestSelect(t *testing.T) {
	t.Parallel()
	ledger := &partition.Ledger{}
	m := matrixOf(t, "{every: day, start: 2024-01-01}", "2024-01-06T12:00:00Z", ledger)
	note := func(i int, identity string, status partition.Status) {
		row := m.Rows[i]
		p := partition.Partition{Key: row.Key, Index: row.Index, Start: row.Start, End: row.End}
		require.NoError(t, ledger.ApplyNote(partition.Note{Playbook: "orders", Partition: p, Identity: identity, Run: row.Key, Status: status}))
	}
	note(0, m.Identity, partition.Done)
	note(1, m.Identity, partition.Failed)
	note(2, "other", partition.Done)
	note(3, m.Identity, partition.Running)
	m = matrixOf(t, "{every: day, start: 2024-01-01}", "2024-01-06T12:00:00Z", ledger)
	require.Equal(t, "2024-01-04", m.Rows[3].Run)
	m.Rows[3].Status = partition.Running // as the server says
	m.LimitRange(0, 4)
	require.Equal(t, "5 partitions, 1 done, 1 running, 1 failed, 1 stale, 1 missing", m.Tally())
	require.Equal(t, "orders: 5 partitions, 1 done, 1 running, 1 failed, 1 stale, 1 missing\n2024-01  #xs>.\n"+
		"# done   > running   x failed   s stale   . missing\nmissing: 2024-01-05\nfailed: 2024-01-02\nrunning: 2024-01-04 (2024-01-04)\n", m.Text())
	for only, want := range map[string][]string{
		OnlyMissing: {"2024-01-02", "2024-01-05"},
		OnlyFailed:  {"2024-01-02"},
		OnlyStale:   {"2024-01-03"},
		OnlyAll:     {"2024-01-01", "2024-01-02", "2024-01-03", "2024-01-05"},
	} {
		require.Equal(t, want, m.SelectKeys(only), only)
	}
}

// TestNames: the playbook of a backfill finds the file that it runs, whatever that is called.
func TestNames(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"orders.yaml": "orders.yaml", "./orders.yaml": "orders.yaml", "a/b/orders.yaml": "a/b/orders.yaml", "/a/orders.yaml": "/a/orders.yaml",
		"stdin": "stdin", "example:backfill": "example:backfill", "../x: y/o.yaml": "../x: y/o.yaml",
	} {
		require.Equal(t, want, CalledName(file))
	}
}
