package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/queue"
)

// queuesOf makes queues of words, one after the other: "a@x" is a run with a slot in the
// queue x, "a.b@y" one that is queued in y and for whose end a waits, which has a slot
// in every queue in which it is. limit=n is that of the queues after it, "!" after a
// word that the run replaces others.
func queuesOf(words string) map[string]queue.Queue {
	queues, held, limit := map[string]queue.Queue{}, map[string][]queue.Holding{}, 1
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, word := range strings.Fields(words) {
		if given, found := strings.CutPrefix(word, "limit="); found {
			limit = int(given[0] - '0')
			continue
		}
		at = at.Add(time.Second)
		word, replaces := strings.CutSuffix(word, "!")
		who, key, _ := strings.Cut(word, "@")
		above, _, queued := strings.Cut(who, ".")
		name := queue.Name{Key: key}
		q := queues[name.WorkflowID()]
		q.Name, q.Limit = name, limit
		member := queue.Entry{Member: queue.Member{WorkflowID: who, RunID: "1"}, Since: at, Replaces: replaces}
		if queued {
			member.Parents = held[above]
			q.Waiting = append(q.Waiting, member)
		} else {
			held[who] = append(held[who], queue.Holding{Run: who, Queue: name.WorkflowID()})
			q.Holders = append(q.Holders, member)
		}
		queues[name.WorkflowID()] = q
	}
	return queues
}

func TestDeadlocks(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ queues, victim, why string }{
		"two keys": {
			"a@x b@y a.1@y b.1@x", "b.1@x",
			`it waits for a, which waits for the end of a.1, which is queued under "y", where it waits for b, which waits for the end of this run`,
		},
		"nobody waits for who has a slot": {"a@x b@y a.1@y", "", ""},
		"no circle":                       {"a@x b@y c@z a.1@y b.1@z", "", ""},
		"three keys":                      {"a@x b@y c@z a.1@y b.1@z c.1@x", "c.1@x", "it waits for a"},
		"one of two slots comes free":     {"limit=2 a@x c@x limit=1 b@y a.1@y limit=2 b.1@x", "", ""},
		"both of two slots wait":          {"limit=2 a@x c@x limit=1 b@y a.1@y c.1@y limit=2 b.1@x", "b.1@x", "waits for the end of this run"},
		"a slot that nobody has":          {"limit=2 a@x limit=1 b@y a.1@y limit=2 b.1@x", "", ""},
		"two that share a key":            {"limit=2 a@x b@x a.1@x b.1@x", "b.1@x", "it waits for b, which waits for the end of this run"},
		"one that replaces others":        {"a@x b@y a.1@y b.1@x!", "", ""},
		"a key of a circle waits besides": {"a@x b@y d@z a.1@y b.1@x d.1@x", "b.1@x", "it waits for a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queues := queuesOf(row.queues)
			victim, q := queue.ChooseVictim(queue.FindDeadlocks(queues), queues)
			if row.victim == "" {
				require.Empty(t, q)
				require.Zero(t, victim)
				return
			}
			who, key, _ := strings.Cut(row.victim, "@")
			require.Equal(t, who, victim.WorkflowID)
			require.Equal(t, queue.Name{Key: key}.WorkflowID(), q)
			require.Contains(t, victim.Why, row.why)
			found := queues[q]
			found.RefuseVictim(time.Now(), victim)
			found.RefuseVictim(time.Now(), victim) // it has gone
			require.Equal(t, who+" circle", messages(&found))
			queues[q] = found
			require.Empty(t, queue.FindDeadlocks(queues), "the others get their slots")
		})
	}
}

// TestDeadlocksOfAnUnknownQueue: what a queue would say that does not answer is taken
// to end the wait.
func TestDeadlocksOfAnUnknownQueue(t *testing.T) {
	t.Parallel()
	queues := queuesOf("a@x b@y a.1@y b.1@x")
	require.Len(t, queue.FindDeadlocks(queues), 2)
	x := queue.Name{Key: "x"}.WorkflowID()
	held := queues[queue.Name{Key: "y"}.WorkflowID()]
	require.Equal(t, []string{x}, held.ParentQueues())
	delete(queues, x)
	require.Empty(t, queue.FindDeadlocks(queues))
}

// TestCircleText: a long circle is told in a bounded text.
func TestCircleText(t *testing.T) {
	t.Parallel()
	words := "a0@k0"
	for _, digit := range "123456789" {
		words += " a" + string(digit) + strings.Repeat("x", 300) + "@k" + string(digit)
	}
	for i := range 9 {
		above := strings.Fields(words)[i]
		above, _, _ = strings.Cut(above, "@")
		words += " " + above + ".1@k" + string(rune('1'+i))
	}
	last, _, _ := strings.Cut(strings.Fields(words)[9], "@")
	queues := queuesOf(words + " " + last + ".1@k0")
	victim, _ := queue.ChooseVictim(queue.FindDeadlocks(queues), queues)
	require.Greater(t, len(victim.Why), 1000)
	require.Less(t, len(victim.Why), 2100)
}
