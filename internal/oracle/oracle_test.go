// Package oracle runs random playbooks against an oracle that is written from the
// specification of the language, and not from the code.
package oracle_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

var (
	seedFlag   = flag.Uint64("oracle.seed", 0, "seed of the first playbook; 0 is another one each time")
	roundsFlag = flag.Int("oracle.rounds", 60, "how many playbooks are run")
)

// TestPlaybooks runs random playbooks in skipped time.
func TestPlaybooks(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = 1 + rand.Uint64()>>33
	}
	t.Logf("seeds %d to %d", seed, seed+uint64(*roundsFlag)-1)
	for i := range *roundsFlag {
		t.Run(fmt.Sprint(seed+uint64(i)), func(t *testing.T) {
			t.Parallel()
			run(t, newRound(seed+uint64(i)))
		})
	}
}

func run(t *testing.T, r *round) {
	t.Helper()
	if d := disagree(t, r); len(d) > 0 {
		whole := r.describe()
		if !d.refused() {
			r, d = shrink(t, r.seed, disagree)
		}
		t.Errorf("%s\n%s\nThe whole:\n%s", strings.Join(d, "\n"), r.describe(), whole)
	}
}

// disagree runs a round, and gives what is not as it was foretold.
func disagree(t *testing.T, r *round) disagreements {
	t.Helper()
	foretold, o := r.foretell()
	return r.compare(t, foretold, o, r.play(t))
}

func (r *round) describe() string {
	text := r.book.source()
	if r.hosted {
		text += "# attempts without waits go together\n"
	}
	for _, s := range r.steers {
		text += fmt.Sprintf("# at %s: %s\n", s.at, s.verb)
	}
	return text + fmt.Sprintf("# alone: go test ./internal/oracle -run 'TestPlaybooks' -oracle.seed=%d -oracle.rounds=1", r.seed)
}
