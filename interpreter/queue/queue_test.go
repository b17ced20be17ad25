package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/queue"
)

// act is what a run does in a table: enter, enter with skip or cancel, leave, or
// vanish; "limit=n" goes before it.
func act(q *queue.Queue, word string, now time.Time) {
	limit := max(q.Limit, 1)
	if given, rest, found := strings.Cut(word, " "); found {
		_, _ = fmt.Sscanf(given, "limit=%d", &limit)
		word = rest
	}
	who, what, _ := strings.Cut(word, ":")
	member := queue.Member{WorkflowID: who, RunID: "1"}
	request := queue.Request{Member: member, Limit: limit, OnConflict: playbook.ConflictQueue}
	switch what {
	case "leaves":
		request = queue.Request{Member: member, Leave: true}
	case "skip":
		request.OnConflict = playbook.ConflictSkip
	case "cancel":
		request.OnConflict = playbook.ConflictCancel
	case "again":
		request.Known = queue.Queued
	case "other":
		request.RunID = "2"
	case "old", "old-cancel": // it began before the others, and its first worker died
		request.Started = request.Started.Add(time.Minute)
		if what == "old-cancel" {
			request.OnConflict = playbook.ConflictCancel
		}
		q.Apply(request, now)
		return
	}
	request.Started = now
	q.Apply(request, now)
}

// messages is what a queue sent in a step, in words.
func messages(q *queue.Queue) string {
	var said []string
	for _, message := range q.Messages {
		text := message.To.WorkflowID + " " + string(message.Decision.State)
		if message.Decision.By != "" {
			text += " by " + message.Decision.By
		}
		said = append(said, text)
	}
	q.Messages = nil
	return strings.Join(said, ", ")
}

func TestQueue(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][][2]string{
		"first come, first served": {
			{"a", "a granted"},
			{"b", "b queued"},
			{"c", "c queued"},
			{"a:leaves", "b granted"},
			{"b:leaves", "c granted"},
			{"c:leaves", ""},
		},
		"who asks again is told what is new": {
			{"a", "a granted"},
			{"b", "b queued"},
			{"b:again", ""},
			{"b", "b queued"},
			{"a:leaves", "b granted"},
			{"b:again", "b granted"},
		},
		"two at a time": {
			{"limit=2 a", "a granted"},
			{"b", "b granted"},
			{"c", "c queued"},
			{"d", "d queued"},
			{"b:leaves", "c granted"},
			{"a:leaves", "d granted"},
		},
		"who asks again is where it was": {
			{"a", "a granted"},
			{"b", "b queued"},
			{"c", "c queued"},
			{"b", "b queued"},
			{"a", "a granted"},
			{"a:leaves", "b granted"},
		},
		"who leaves twice, or was never there": {
			{"a", "a granted"}, {"b", "b queued"}, {"x:leaves", ""}, {"a:leaves", "b granted"}, {"a:leaves", ""},
		},
		"another run with the ID is another": {
			{"a", "a granted"}, {"a:other", "a queued"}, {"a:leaves", "a granted"},
		},
		"who leaves the queue": {
			{"a", "a granted"}, {"b", "b queued"}, {"c", "c queued"}, {"b:leaves", ""}, {"a:leaves", "c granted"},
		},
		"skip": {
			{"a:skip", "a granted"}, {"b:skip", "b skipped by a"}, {"a:leaves", ""}, {"b:skip", "b granted"},
		},
		"skip behind a queue": {
			{"a", "a granted"}, {"b", "b queued"}, {"c:skip", "c skipped by a"}, {"a:leaves", "b granted"},
		},
		"the latest limit counts": {
			{"a", "a granted"},
			{"b", "b queued"},
			{"limit=2 c", "b granted, c queued"},
			{"limit=1 d", "d queued"},
			{"a:leaves", ""},
			{"b:leaves", "c granted"},
		},
		"cancel": {
			{"a:cancel", "a granted"}, {"b:cancel", "a replaced by b, b queued"}, {"a:leaves", "b granted"},
		},
		"of those that cancel the newest waits": {
			{"a:cancel", "a granted"},
			{"b:cancel", "a replaced by b, b queued"},
			{"c:cancel", "b replaced by c, c queued"},
			{"b:leaves", ""},
			{"a:leaves", "c granted"},
		},
		"the oldest is cancelled": {
			{"limit=2 a:cancel", "a granted"},
			{"b:cancel", "b granted"},
			{"c:cancel", "a replaced by c, c queued"},
			{"d:cancel", "b replaced by d, d queued"},
			{"e:cancel", "c replaced by e, e queued"},
			{"a:leaves", "d granted"},
			{"b:leaves", "e granted"},
		},
		"in the order in which they began": {
			{"a", "a granted"},
			{"b", "b queued"},
			{"c", "c queued"},
			{"o:old", "o queued"},
			{"a:leaves", "o granted"},
			{"o:leaves", "b granted"},
			{"b:leaves", "c granted"},
		},
		"who began before does not cancel those after it": {
			{"a:cancel", "a granted"}, {"o:old-cancel", "o replaced by a"}, {"a:leaves", ""},
		},
		"nor waits in their place": {
			{"a:cancel", "a granted"},
			{"b:cancel", "a replaced by b, b queued"},
			{"o:old-cancel", "o replaced by b"},
			{"a:leaves", "b granted"},
		},
		"who cancels goes behind those that wait": {
			{"a", "a granted"},
			{"b", "b queued"},
			{"c:cancel", "a replaced by c, c queued"},
			{"a:leaves", "b granted, b replaced by c"},
			{"b:leaves", "c granted"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, now := queue.Queue{}, time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
			for i, step := range steps {
				now = now.Add(time.Second)
				act(&q, step[0], now)
				require.Equal(t, step[1], messages(&q), "step %d: %s", i, step[0])
			}
		})
	}
}

// TestQueueIsBounded: a queue that could not be taken along into another history takes
// nobody any more, and says so.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	q, now := queue.Queue{}, time.Now()
	for i := range 2000 {
		act(&q, strings.Repeat("x", 900)+fmt.Sprint(i), now)
		if said := messages(&q); strings.HasSuffix(said, "full") {
			require.Greater(t, i, 1000)
			require.Less(t, interpreter.EncodedSize(q), interpreter.MaxInlinePayload)
			act(&q, q.Holders[0].WorkflowID+":leaves", now)
			require.Contains(t, messages(&q), "granted")
			return
		}
	}
	require.Fail(t, "the queue never was full")
}

// TestRecovered: who has a slot is told so again, as that may never have come, and
// who was to go is told that again when somebody still waits for it.
func TestRecovered(t *testing.T) {
	t.Parallel()
	before := queue.Queue{}
	for _, word := range []string{"a", "b:cancel"} {
		act(&before, word, time.Now())
	}
	require.Equal(t, "a granted, a replaced by b, b queued", messages(&before))
	after := before.RecoveredQueue()
	require.Equal(t, "a granted", messages(&after))
	act(&after, "b:cancel", time.Now())
	require.Equal(t, "a replaced by b, b queued", messages(&after))
	require.True(t, before.Holders[0].Leaving, "the queue before stays as it was")
	act(&after, "a:leaves", time.Now())
	require.Equal(t, "b granted", messages(&after))
}

func TestStatus(t *testing.T) {
	t.Parallel()
	q := queue.Queue{}
	now := time.Now()
	for _, who := range []string{"a", "b", "c"} {
		act(&q, who, now)
	}
	status := q.Status([]queue.Member{{WorkflowID: "c", RunID: "1"}, {WorkflowID: "a", RunID: "1"}, {WorkflowID: "b", RunID: "2"}})
	require.Equal(t, queue.Status{Limit: 1, Waiting: 2, Running: 1, Holders: []string{"a"}, HoldersSince: []time.Time{now}, Positions: []int{2, 0, 0}}, status)
}

func TestTicket(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		before, answer, after queue.State
	}{
		{"", queue.Granted, queue.Granted},
		{"", queue.Queued, queue.Queued},
		{queue.Queued, queue.Granted, queue.Granted},
		{queue.Granted, queue.Queued, queue.Granted}, // came late
		{queue.Granted, queue.Skipped, queue.Granted},
		{queue.Granted, queue.Replaced, queue.Replaced},
		{queue.Replaced, queue.Granted, queue.Replaced},
		{queue.Skipped, queue.Granted, queue.Skipped},
	} {
		ticket := &queue.Ticket{State: row.before}
		require.Equal(t, row.before != row.after, ticket.Apply(queue.Decision{State: row.answer}), "%+v", row)
		require.Equal(t, row.after, ticket.State, "%+v", row)
	}
	var none *queue.Ticket
	require.False(t, none.Waits())
}

// TestLineIDs: no two names share a workflow.
func TestLineIDs(t *testing.T) {
	t.Parallel()
	ids := map[string]queue.Name{}
	for _, name := range []queue.Name{
		{Playbook: "a", Key: "b/c"},
		{Playbook: "a/b", Key: "c"},
		{Key: "a/b"},
		{Playbook: "a", Key: "b%2Fc"},
		{Key: "c"},
		{Playbook: strings.Repeat("p", 200), Key: strings.Repeat("ü", 250)},
		{Playbook: strings.Repeat("p", 200), Key: strings.Repeat("ü", 249) + "ä"},
	} {
		id := name.WorkflowID()
		require.Empty(t, ids[id], id)
		require.LessOrEqual(t, len(id), 1000)
		ids[id] = name
	}
	require.Equal(t, "reprise-concurrency/orders/acme%20corp", queue.Name{Playbook: "orders", Key: "acme corp"}.WorkflowID())
}

// TestConcurrencyName passes maxKey.
func TestConcurrencyName(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		`key: "{{ tenant }}"`:                      "test: acme",
		`key: "{{ number }}"`:                      "test: 7",
		`key: "{{ tenant }}-{{ execution_id }}"`:   "test: acme-run-1",
		`shared: warehouse`:                        ": warehouse",
		`key: "{{ workload.nobody }}"`:             "every part of a key needs a value",
		`key: "x-{{ workload.nobody }}"`:           "every part of a key needs a value",
		`key: "{{ list }}"`:                        "must be text, not a list",
		`key: "{{ '' }}"`:                          "must not be empty",
		`key: "{{ replace(long, 'x', 'xxxxx') }}"`: "is 505 bytes long; at most 500 are allowed",
	} {
		book := concurrencyBook(t, words)
		run := interpreter.RunInfo{WorkflowID: "run-1", Playbook: "test"}
		data := interpreter.Data{Workload: expression.Of(map[string]any{
			"tenant": "acme", "number": int64(7), "list": []any{"a"}, "long": strings.Repeat("x", 101),
		})}
		name, err := queue.NameOf(book, interpreter.NewScope(book, run, data), expression.NewBudget(expression.DecisionLimits, time.Now()))
		if err != nil {
			require.Contains(t, interpreter.ExpressionFailure(book, "concurrency", err, time.Now()).Error.Message, want, words)
			continue
		}
		require.Equal(t, want, name.Playbook+": "+name.Key, words)
	}
}

func concurrencyBook(t *testing.T, words string) *playbook.Playbook {
	t.Helper()
	book, err := interpreter.LoadPlaybook("test.yaml", "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: test}\nconcurrency: {"+words+"}\n"+
		"workflow: [{step: a, tool: http, url: x}]\n")
	require.NoError(t, err)
	return book
}

// TestALineIsBoundedByWhatTravels: what JSON writes with six bytes counts with six.
// It passes maxSize.
func TestALineIsBoundedByWhatTravels(t *testing.T) {
	t.Parallel()
	const most, one = 1_200_000, 20_000
	now, q := time.Unix(0, 0).UTC(), queue.Queue{Name: queue.Name{Key: "acme"}}
	for i := range 10_000 {
		q.Apply(queue.Request{
			Member: queue.Member{WorkflowID: fmt.Sprintf("%d%s", i, strings.Repeat("<", 900)), RunID: "1"}, Limit: 1, OnConflict: playbook.ConflictQueue,
		}, now)
		if q.Messages[len(q.Messages)-1].Decision.State == queue.Full {
			require.InDelta(t, most, interpreter.EncodedSize(q), one)
			return
		}
		q.Messages = nil
	}
	t.Fatal("the queue takes any number of runs")
}
