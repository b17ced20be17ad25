package oracle_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
)

var storiesFlag = flag.Int("oracle.stories", 4, "how many playbooks that keep a state are run several times on a server")

// fixedStories found something once.
var fixedStories = []uint64{2006, 2132}

// TestStories runs random playbooks that keep a state between runs, several times each, and
// compares what they ask for, their results, rows and watermarks after every run.
func TestStories(t *testing.T) {
	t.Parallel()
	for _, seed := range fixedStories {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newStory(seed).agrees(t)
		})
	}
	first := firstSeed(t, *storiesFlag)
	for i := range uint64(*storiesFlag) {
		t.Run(fmt.Sprint(first+i), func(t *testing.T) {
			t.Parallel()
			newWideStory(first + i).agrees(t)
		})
	}
}

// agrees runs a story, and says what is not as it was predicted.
func (s *story) agrees(t *testing.T) {
	t.Helper()
	if d := s.onServer(t); len(d) > 0 {
		t.Errorf("%s\n%s", strings.Join(d, "\n"), s.describe())
	}
}
