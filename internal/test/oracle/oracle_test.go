// Package oracle runs random playbooks against an oracle that is written from the
// specification of the language, and not from the code.
package oracle_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	seedFlag    = flag.Uint64("oracle.seed", 1000, "seed of the first playbook; 0 is another one each time")
	roundsFlag  = flag.Int("oracle.rounds", 40, "how many playbooks are run in skipped time")
	serverFlag  = flag.Int("oracle.server", 4, "how many playbooks are run on a server")
	shrinkFlag  = flag.Duration("oracle.shrink", 30*time.Second, "how long a playbook that disagrees is made smaller")
	verboseFlag = flag.Bool("oracle.verbose", false, "show the requests, events and result of a playbook that disagrees")
)

// TestPlaybooks runs random playbooks in skipped time.
func TestPlaybooks(t *testing.T) {
	t.Parallel()
	for _, seed := range seedsWith(t, fixedWide, *roundsFlag) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			run(t, seed, newRound, (*round).play)
		})
	}
}

// fixedWide are playbooks that found something once: pages without end, and a method that another policy had replaced.
var fixedWide = []uint64{20261221, 1585558901, 770143232}

// fixedSeeds are playbooks that found something once: what the code or the oracle had wrong.
var fixedSeeds = []uint64{9, 12, 16, 20, 29, 49, 68, 87, 90, 94, 109, 122, 147, 170, 192, 246, 300, 322, 487, 650, 680, 839, 908}

// TestFixedPlaybooks runs playbooks that are the same each time.
func TestFixedPlaybooks(t *testing.T) {
	t.Parallel()
	for _, seed := range fixedSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			run(t, seed, func(seed uint64) *round { return narrow(seed).round }, (*round).play)
		})
	}
}

func firstSeed(t *testing.T, rounds int) uint64 {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = 1 + rand.Uint64()>>33
	}
	t.Logf("seeds %d to %d", seed, seed+uint64(max(rounds, 1))-1)
	return seed
}

// seedsWith are seeds that found something once, and further ones.
func seedsWith(t *testing.T, fixed []uint64, rounds int) []uint64 {
	t.Helper()
	first := firstSeed(t, rounds)
	seeds := slices.Clone(fixed)
	for i := range rounds {
		seeds = append(seeds, first+uint64(i))
	}
	return seeds
}

// run runs a round, and says what is not as it was predicted.
func run(t *testing.T, seed uint64, build func(uint64) *round, play func(*round, *testing.T) came) {
	t.Helper()
	found := func(r *round) disagreements {
		predicted, o := r.predict()
		return r.compare(t, predicted, o, play(r, t))
	}
	whole := build(seed)
	d := found(whole)
	if len(d) == 0 {
		return
	}
	least := whole
	if !d.refused() {
		least, d = shrink(seed, build, found)
	}
	t.Errorf("%s\n%s\nThe whole:\n%s", strings.Join(d, "\n"), least.describe(), whole.describe())
}

func (r *round) describe() string {
	text := r.book.source(r.data)
	if r.hosted {
		text += "# attempts without waits go together\n"
	}
	for _, s := range r.steers {
		text += fmt.Sprintf("# at %s: %s\n", s.at, s.verb)
	}
	test := "TestPlaybooks"
	switch {
	case r.real:
		test = "TestOnServer"
	case !r.wide:
		return text + fmt.Sprintf("# alone: go test ./internal/test/oracle -run '^TestFixedPlaybooks$/^%d$'", r.seed)
	}
	return text + fmt.Sprintf("# alone: go test ./internal/test/oracle -run '^%s$' -oracle.seed=%d -oracle.rounds=1 -oracle.server=1", test, r.seed)
}
