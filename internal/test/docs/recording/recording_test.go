package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		output string
		want   []string
	}{
		"lines":                {"one\r\ntwo\r\n", []string{"one", "two"}},
		"a line again":         {"one\rtwo", []string{"two"}},
		"lines drawn again":    {"a\r\nb\r\n\r\x1b[2A\x1b[Jc\r\n", []string{"c"}},
		"colours":              {"is \x1b[1;33mlate\x1b[0m now <", []string{`is <tspan class="b y">late</tspan> now &lt;`}},
		"a long line":          {strings.Repeat("x", columns) + "y", []string{strings.Repeat("x", columns), "y"}},
		"more lines than rows": {strings.Repeat("a\r\n", rows) + "b", append(strings.Split(strings.Repeat("a,", rows-1), ",")[:rows-1], "b")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			screen := &terminal{}
			screen.writeOutput(c.output)
			require.Equal(t, c.want, screen.svgLines())
		})
	}
}

// TestPiecesOfOutput: output comes in pieces that end anywhere.
func TestPiecesOfOutput(t *testing.T) {
	t.Parallel()
	screen := &terminal{}
	for _, piece := range strings.Split("is \x1b[32mé\x1b[0m", "") {
		for i := range len(piece) {
			screen.writeOutput(piece[i : i+1])
		}
	}
	require.Equal(t, []string{`is <tspan class="g">é</tspan>`}, screen.svgLines())
}

// TestPlay: pauses are shortened, what nobody could see by itself is one screen, and a title is none of its text.
func TestPlay(t *testing.T) {
	t.Parallel()
	frames, err := playFrames([]byte("\x1b]0;two\x07ab\r\nc"), "0.5 9\n0.01 1\n60 3\n")
	require.NoError(t, err)
	require.Len(t, frames, 3)
	require.Equal(t, frame{at: frames[1].at, title: "two", lines: []string{"ab"}}, frames[1])
	require.InDelta(t, playing, frames[2].at, 0.001)
	require.Equal(t, []string{"ab", "c"}, frames[2].lines)
	_, err = playFrames(nil, "soon")
	require.Error(t, err)
}

// TestDraw: a line that several screens have is in the drawing once.
func TestDraw(t *testing.T) {
	t.Parallel()
	drawing := drawFrames([]frame{{}, {at: 1, lines: []string{"same"}}, {at: 2, lines: []string{"same", "", "new"}}})
	require.Equal(t, 1, strings.Count(drawing, ">same<"))
	require.Equal(t, 3, strings.Count(drawing, "<use "))
	require.Contains(t, drawing, "prefers-reduced-motion")
}
