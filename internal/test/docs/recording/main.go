// Command recording makes an animated SVG of a terminal session for the README. It reads the two files that script
// --log-out OUT --log-timing TIME writes, and prints the SVG.
//
// Long pauses are shortened, and the whole is scaled to ten seconds, of which the last show the final screen. The
// animation loops; for viewers who prefer reduced motion, it shows the final screen only.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Durations of the animation, in seconds.
const (
	longestPause = 0.7
	playing      = 7.0
	holding      = 3.0
)

var errArguments = errors.New("name the output and the timing that script has written")

func main() {
	if err := convertRecording(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func convertRecording(args []string) error {
	if len(args) != 2 {
		return errArguments
	}
	output, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("read the output: %w", err)
	}
	timing, err := os.ReadFile(args[1])
	if err != nil {
		return fmt.Errorf("read the timing: %w", err)
	}
	frames, err := playFrames(withoutHeader(output), string(timing))
	if err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(drawFrames(frames))
	return err
}

// withoutHeader returns the output without the first line, which script adds.
func withoutHeader(output []byte) []byte {
	if first, rest, found := bytes.Cut(output, []byte("\n")); found && bytes.HasPrefix(first, []byte("Script started")) {
		return rest
	}
	return output
}

// frame is a screen and the time at which it appears.
type frame struct {
	at    float64
	title string
	lines []string // as SVG, without trailing empty ones
}

// playFrames replays the output on a terminal with the recorded timing, and returns each distinct screen.
func playFrames(output []byte, timing string) ([]frame, error) {
	screen, at := &terminal{}, 0.0
	frames := []frame{{lines: []string{}}}
	for _, line := range strings.Split(strings.TrimSpace(timing), "\n") {
		delay, size, _ := strings.Cut(strings.TrimSpace(line), " ")
		pause, err := strconv.ParseFloat(delay, 64)
		if err != nil {
			return nil, fmt.Errorf("read the timing %q: %w", line, err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(size))
		if err != nil {
			return nil, fmt.Errorf("read the timing %q: %w", line, err)
		}
		n = min(n, len(output))
		at += min(pause, longestPause)
		screen.writeOutput(string(output[:n]))
		output = output[n:]
		// Screens that follow within this time are merged, because nobody would see them separately; in seconds.
		const together = 0.04
		if last := &frames[len(frames)-1]; at-last.at < together {
			last.title, last.lines = screen.title, screen.svgLines()
			continue
		}
		frames = append(frames, frame{at: at, title: screen.title, lines: screen.svgLines()})
	}
	for i := range frames {
		frames[i].at *= playing / max(at, 1)
	}
	return frames, nil
}
