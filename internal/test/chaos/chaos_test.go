// Package chaos runs playbooks while something goes wrong: workers and the
// server are killed, the database and the network go away. Whatever happens, a
// run ends with the same result, the same rows and no wait cut short.
//
// Each round is a scenario and a disturbance, drawn from a seed. make test runs
// a few rounds with a new seed; make chaos runs many. A seed decides what
// happens, not to the millisecond when.
package chaos_test

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"reprise/internal/test/testenv"
	"reprise/internal/test/testenv/testworker"
)

var (
	seedFlag   = flag.Uint64("chaos.seed", 0, "what scenarios and disturbances are drawn from; 0 draws a new seed, but for the short form")
	roundsFlag = flag.Int("chaos.rounds", shortForm, "number of rounds; more than 6 take the long disturbances too")
	roundFlag  = flag.Int("chaos.round", 0, "run this round alone, from 1; 0 runs all")
)

const (
	// shortForm is how many rounds leave the long disturbances out.
	shortForm = 6
	// width is how many rounds run at once: most of their time they wait for
	// the server to notice what is gone.
	width = 4
)

func TestMain(m *testing.M) {
	testworker.Main(interceptor())
	testenv.RunInParallel(width)
	testenv.Main(m)
}

// drawSeed is the seed of a test. The short form always has the same one, so that a
// failure repeats.
func drawSeed() uint64 {
	if *seedFlag == 0 && *roundsFlag > shortForm {
		return uint64(rand.Uint32())
	}
	return cmp.Or(*seedFlag, 1)
}

func TestChaos(t *testing.T) {
	seed := drawSeed()
	short := *roundsFlag <= shortForm
	disturbances := kinds(short, rand.New(rand.NewPCG(seed, 0)).Shuffle)
	report := newReport(t, "chaos", seed)
	for number := range report.numbers(*roundsFlag) {
		disturbance := disturbances[(number-1)%len(disturbances)]
		report.round(t, number, disturbance.name, func(t *testing.T) {
			r := newRound(t, number, short, seed, disturbance, (number-1)/len(disturbances))
			took := r.play()
			report.add(&r.stage, disturbance.name, r.scenario.String(), took, r.surplus())
		})
	}
}

// play is a whole round.
func (r *round) play() time.Duration {
	r.t.Helper()
	r.t.Log(r.scenario)
	r.start()
	r.disturbance.strike(r)
	took := r.outcome()
	r.worker.Stop()
	return took
}

// report is what people read while rounds go on.
type report struct {
	name  string
	began time.Time
	seed  uint64

	mu       sync.Mutex
	rounds   int
	failures []string
	requests int
	again    int
	kills    int
}

// newReport begins one that ends with the test.
func newReport(t *testing.T, name string, seed uint64) *report {
	t.Helper()
	p := &report{name: name, began: time.Now(), seed: seed}
	p.printf("%s: %d rounds, seed %d\n", name, *roundsFlag, seed)
	t.Cleanup(p.summary)
	return p
}

// numbers are those of so many rounds, or the one that was asked for.
func (p *report) numbers(rounds int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for number := 1; number <= rounds; number++ {
			if (*roundFlag == 0 || number == *roundFlag) && !yield(number) {
				return
			}
		}
	}
}

// round plays one beside the others.
func (p *report) round(t *testing.T, number int, name string, play func(t *testing.T)) {
	t.Helper()
	t.Run(fmt.Sprintf("%02d %s", number, name), func(t *testing.T) {
		t.Parallel()
		p.watch(t, number)
		play(t)
	})
}

// watch says of a round that fails how to run it again.
func (p *report) watch(t *testing.T, number int) {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	t.Cleanup(func() {
		if t.Failed() {
			p.failed(number)
			t.Logf("again: make chaos CHAOSFLAGS='-run=%s -chaos.seed=%d -chaos.rounds=%d -chaos.round=%d'",
				test, p.seed, *roundsFlag, number)
		}
	})
}

func (p *report) printf(format string, args ...any) { fmt.Fprintf(os.Stdout, format, args...) }

// add prints the line of a round that went well.
func (p *report) add(r *stage, name, scenario string, took time.Duration, again int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rounds++
	p.requests += r.requests()
	p.again += again
	p.kills += r.kills
	p.printf("round %2d  %-54s  %-62s %6.1f s %5d requests, %3d again  %d kills\n",
		r.number, name, scenario, took.Seconds(), r.requests(), again, r.kills)
}

func (p *report) failed(round int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures = append(p.failures, fmt.Sprint(round))
}

func (p *report) summary() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printf("%s: seed %d: %d rounds went well in %.0f s, with %d requests, %d of them made again, and %d kills\n",
		p.name, p.seed, p.rounds, time.Since(p.began).Seconds(), p.requests, p.again, p.kills)
	if len(p.failures) > 0 {
		p.printf("%s: FAILED rounds %s\n", p.name, strings.Join(p.failures, ", "))
	}
}
