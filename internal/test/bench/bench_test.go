package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// TestCases: every playbook that is measured is one that may run.
func TestCases(t *testing.T) {
	t.Parallel()
	catalogue := activities.DefaultCatalogue()
	for _, tool := range []tool.Tool{nap{}, newForgetful(catalogue), newHistoric(catalogue)} {
		require.NoError(t, catalogue.RegisterTool(tool))
	}
	groups, err := options{sizes: "1, 1000,10000", sequential: 300, small: 100, pages: 30}.caseGroups("http://127.0.0.1:1", "http://127.0.0.1:2")
	require.NoError(t, err)
	require.Equal(t, 2+3*4+3, len(groups))
	texts := []string{politeBook("http://127.0.0.1:1", 100, 50)}
	long, err := options{scale: "10, 1000"}.growingLoops()
	require.NoError(t, err)
	groups = append(groups, long[:1], long[1:])
	for _, group := range groups {
		for _, c := range group {
			require.Equal(t, group[0].n, c.n)
			if c.source != "" {
				texts = append(texts, c.source)
			}
		}
	}
	for _, mode := range []string{"insert", "upsert"} {
		for _, c := range loadCases(mode, 10) {
			texts = append(texts, loadBook("http://127.0.0.1:1", "rows_1", c))
		}
	}
	for _, text := range texts {
		file := source.NewFile("bench.yaml", []byte(text))
		_, found := check.Validate(file, catalogue, check.Options{})
		require.False(t, found.HasErrors(), "%s\n%s", file.FormatAll(found), text)
	}

	_, err = options{sizes: "10,many"}.caseGroups("", "")
	require.ErrorContains(t, err, `"many" is no number`)
	_, err = options{scale: "0"}.growingLoops()
	require.ErrorContains(t, err, `-scale "0": "0" is no number`)
	groups, err = options{sizes: "10", only: "pages"}.caseGroups("", "")
	require.NoError(t, err)
	require.Len(t, groups, 3)
	groups, err = options{sizes: "10", only: "pages", cases: "by hand,batch 1"}.caseGroups("", "")
	require.NoError(t, err)
	require.Len(t, groups, 2, "a group without such cases is left out")
	require.Len(t, groups[0], 2)
	require.Equal(t, "batch 1", groups[0][1].name)
	require.Len(t, groups[1], 1)
}

// TestRatio: a case is measured against another of the same pass, and of all passes the one in the middle
// counts.
func TestRatio(t *testing.T) {
	t.Parallel()
	pass := func(first, second time.Duration) []figures {
		of := func(took time.Duration) figures {
			return figures{one: one{n: 10}, took: took, cpu: took / 10, server: took / 5}
		}
		return []figures{of(first), of(second)}
	}
	passes := [][]figures{pass(time.Second, 2*time.Second), pass(10*time.Second, 8*time.Second), pass(time.Second, time.Second)}
	require.Equal(t, "1.00", medianRatio(passes, 1, 0, figures.rate))
	require.Equal(t, "1.00", medianRatio(passes, 1, 0, figures.allCPU))
	require.Equal(t, "0.90", medianRatio(passes[1:], 1, 0, figures.allCPU))
	require.Equal(t, 11*time.Second, sumOfPasses(passes[1:], 0).took)
	require.Equal(t, 20, sumOfPasses(passes[1:], 0).n)
}

// TestCompared: a ratio is that of two runs beside each other, and of the ratios
// the one in the middle counts.
func TestCompared(t *testing.T) {
	t.Parallel()
	at := func(now, before time.Duration) pair {
		of := func(took time.Duration) figures {
			return figures{one: one{name: "batch 1", n: 10}, took: took, cpu: took / 10, server: took / 5, bytes: int64(took.Seconds() * 100)}
		}
		return pair{now: of(now), before: of(before)}
	}
	pairs := []pair{at(2*time.Second, time.Second), at(10*time.Second, 9*time.Second), at(time.Second, 2*time.Second)}
	require.Equal(t, table.Row{"batch 1", 3, "5", "5", "0.90", "0.50", "2.00", "20.00", "20.00", "40.00", "40.00", "20", "20"}, pairsRow(pairs))
	require.Equal(t, "1.25", pairsRow(append(pairs, at(5*time.Second, 8*time.Second)))[4])
}

// TestOutgrown: at its limit a figure is within it, and each beyond is told.
func TestOutgrown(t *testing.T) {
	t.Parallel()
	loop := func(n int, took time.Duration) figures { return figures{one: one{n: n}, took: took} }
	short, long := loop(10, time.Second), loop(100, 13*time.Second)
	long.most, long.large, long.memory = maxEvents, maxBytes, maxMemory
	require.NoError(t, long.outgrownLimits(short))
	long.most++
	long.large++
	long.memory++
	long.took += time.Second
	err := long.outgrownLimits(short)
	for _, what := range []string{
		"100 iterations: the longest history, in events, is 4097, more than 4096",
		"the largest history, in bytes, is 4194305, more than 4194304",
		"in bytes, is 150000001, more than 150000000",
		"against the shortest loop, is 1.4, more than 1.3",
	} {
		require.ErrorContains(t, err, what)
	}
}

// TestByHand: the workflows that playbooks are measured against do the same
// job, and all of it.
func TestByHand(t *testing.T) {
	t.Parallel()
	for _, in := range []handInput{{Size: 7, Width: 3}, {Size: 3, Width: 100}, {Size: 2*handShard + 1, Width: 50}} {
		env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
		env.RegisterWorkflowWithOptions(handLoop, workflow.RegisterOptions{Name: handLoopName})
		env.RegisterWorkflowWithOptions(handIteration, workflow.RegisterOptions{Name: handIterationName})
		env.RegisterActivityWithOptions(handActivity, activity.RegisterOptions{Name: handActivityName})
		env.ExecuteWorkflow(handLoopName, in)
		var results []int
		require.NoError(t, env.GetWorkflowResult(&results))
		require.Len(t, results, in.Size)
		for i, result := range results {
			require.Equal(t, i, result)
		}
	}
}

// TestLargestIn: the payload that counts is found wherever it is in a message.
func TestLargestIn(t *testing.T) {
	t.Parallel()
	payload := func(bytes int) *commonpb.Payload { return &commonpb.Payload{Data: make([]byte, bytes)} }
	event := &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
		ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
			Input:  &commonpb.Payloads{Payloads: []*commonpb.Payload{payload(10), payload(1000)}},
			Header: &commonpb.Header{Fields: map[string]*commonpb.Payload{"a": payload(500)}},
		},
	}}
	largest, err := largestIn(event, 0)
	require.NoError(t, err)
	require.EqualValues(t, proto.Size(payload(1000)), largest)
	largest, err = largestIn(event, 2000)
	require.NoError(t, err)
	require.EqualValues(t, 2000, largest)
}

// TestRowsAPI: pages follow each other to the last, in the order of their cursors or with one.
func TestRowsAPI(t *testing.T) {
	t.Parallel()
	api := newRowsAPI()
	defer api.Close()
	for same, last := range map[bool]time.Time{false: firstRow.Add(299 * time.Second), true: firstRow} {
		rows := []loadedRow{}
		for page := 1; page != 0; {
			got, err := getPage(t.Context(), fmt.Sprintf("%s?page=%d", api.rowsURL(3, same), page))
			require.NoError(t, err)
			rows, page = append(rows, got.Rows...), got.Next
		}
		require.Len(t, rows, 300)
		for i, row := range rows {
			require.EqualValues(t, i, row.ID)
		}
		require.Equal(t, last, rows[299].At)
	}
}
