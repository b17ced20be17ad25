package chaos_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/observe/ending"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// again runs what has failed again, with the other system repaired, while the worker is
// killed: what was answered well is not asked again, and what was not is.
func (r *answersRound) again() {
	r.t.Helper()
	origin := r.run
	if !r.form.inner {
		return
	}
	letters := r.letters(origin)
	if len(letters) == 0 {
		return
	}
	failed := map[int]bool{}
	for _, letter := range letters {
		failed[letter.Index] = true
	}
	refused := r.other.repair()
	r.startAgain(origin, letters, nil)
	r.sleep(0, 2000)
	r.blowKill()
	r.await("the reprocess ends", r.ended)
	result, err := ending.WaitForResult(r.t.Context(), r.run)
	require.NoError(r.t, err)
	require.Equal(r.t, interpreter.Completed, result.Status, "%+v", result.Error)
	require.Empty(r.t, r.letters(origin))
	r.other.wait(r.t)
	require.Empty(r.t, r.other.trouble)
	asked := 0
	for item := range r.plans {
		attempts := len(r.other.again[item])
		asked += attempts
		if failed[item] && len(refused[item]) == 0 {
			require.Positive(r.t, attempts, "item %d was not asked again", item)
		} else {
			require.Zero(r.t, attempts, "item %d was answered well, and is asked again", item)
		}
		if len(refused[item]) > 0 {
			require.Equal(r.t, refused[item], r.other.answers[item], "item %d has another answer now", item)
		}
		require.Positive(r.t, r.other.confirms[item], "item %d", item)
	}
	r.checkHistories(testenv.Histories(r.t, r.env.Client(), r.run.GetID(), r.run.GetRunID()))
	r.t.Logf("reprocess of %d items, %d of which have their answer; %d attempts", len(failed), len(refused), asked)
}

// confirm gives back an answer that it is to confirm.
func (o *otherSystem) confirm(w http.ResponseWriter, text []byte) {
	var body struct {
		Got json.RawMessage `json:"got"`
	}
	var got struct{ Item, N int }
	_ = json.Unmarshal(text, &body)
	_ = json.Unmarshal(body.Got, &got)
	o.mu.Lock()
	refuses := o.refuses[got.Item] && !o.repaired
	if o.answers[got.Item] == nil {
		o.answers[got.Item] = map[int]bool{}
	}
	o.answers[got.Item][got.N] = true
	if !refuses {
		o.confirms[got.Item]++
	}
	o.mu.Unlock()
	if refuses {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = w.Write(body.Got)
}

// repair has the system confirm all answers, and complete every attempt from now on. It gives
// the answers that it has refused to confirm, by item.
func (o *otherSystem) repair() map[int]map[int]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.repaired = true
	refused := map[int]map[int]bool{}
	for item := range o.refuses {
		for n := range o.answers[item] {
			if refused[item] == nil {
				refused[item] = map[int]bool{}
			}
			refused[item][n] = true
		}
	}
	return refused
}

func (o *otherSystem) isRepaired() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.repaired
}

// startAgain takes on_start of an attempt that a reprocess makes, and completes it.
func (o *otherSystem) startAgain(w http.ResponseWriter, item int, operation, number, token string) {
	o.mu.Lock()
	o.count++
	if known, found := o.keyed[operation]; !found || known != item {
		o.trouble = append(o.trouble, fmt.Sprintf("item %d is asked again under another operation key", item))
	}
	if !strings.Contains(number, ".") {
		o.trouble = append(o.trouble, fmt.Sprintf("item %d is asked again under the attempt key %s", item, number))
	}
	if o.again[item] == nil {
		o.again[item] = map[string]bool{}
	}
	first := !o.again[item][number]
	o.again[item][number] = true
	o.mu.Unlock()
	if first {
		o.busy.Go(func() {
			o.rest(100 * time.Millisecond)
			attempt := 0
			_, _ = fmt.Sscanf(number[strings.LastIndex(number, ".")+1:], "%d", &attempt)
			to := &begun{item: item, attempt: attempt, token: token}
			o.say(plan{}, &saying{item: item, attempt: attempt, n: o.number(), verb: interpreter.AnswerComplete}, to, 10)
		})
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write([]byte("{}"))
}
