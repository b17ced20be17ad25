package look

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPlainProgress wants a line whenever something has changed, and no more
// than one per second and step.
func TestPlainProgress(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	now := time.Unix(0, 0)
	progress := newPlainProgress(&b, func() time.Time { return now })
	for _, moment := range []struct {
		at    time.Duration
		lines []line
	}{
		{0, []line{{key: "a#1", text: "a running"}}},
		{500 * time.Millisecond, []line{{key: "a#1", text: "a completed"}, {key: "b#1", text: "b 0/9 done"}}}, // a is too soon
		{time.Second, []line{{key: "a#1", text: "a completed"}, {key: "b#1", text: "b 1/9 done"}}},            // b is too soon
		{2 * time.Second, []line{{key: "a#1", text: "a completed"}, {key: "b#1", text: "b 5/9 done"}}},
		{9 * time.Second, []line{{key: "a#1", text: "a completed"}, {key: "b#1", text: "b 5/9 done"}}}, // nothing new
	} {
		now = time.Unix(0, 0).Add(moment.at)
		progress.showLines(moment.lines)
	}
	progress.close()
	require.Equal(t, "  a running\n  b 0/9 done\n  a completed\n  b 5/9 done\n", b.String())
}

// TestLiveProgressRedrawsItsBlock: it goes to the first column before, as a terminal has written ^C
// there by then.
func TestLiveProgressRedrawsItsBlock(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	progress := &liveProgress{w: &b, width: 10}
	progress.showLines([]line{{key: "a", text: "one"}, {key: "b", text: "two"}})
	progress.showLines([]line{{key: "a", text: "longer than the width", live: "lives longer"}})
	progress.close()
	progress.close()
	require.Equal(t, "one\ntwo\n"+
		"\r\x1b[2A\x1b[J"+"lives lo…\n"+
		"\r\x1b[1A\x1b[J", b.String())
}
