package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// Sizes in the time line, in units of its SVG.
const (
	labelWidth   = 190
	columnWidth  = 4
	timeWidth    = columns * columnWidth
	fullWidth    = labelWidth + timeWidth + 110
	axisHeight   = 26
	barHeight    = 16
	bandHeight   = 12 // of one iteration
	bandsHeight  = 18 // of several
	gap          = 4
	shownTicks   = 8
	labelLetters = 26
)

// drawing is the time line in the form that its template draws.
type drawing struct {
	Width, Height, Right int
	Ticks                []tick
	Lanes                []drawnLane
	Left                 string // visits that are not drawn
}

type tick struct {
	X    float64
	Text string
}

type drawnLane struct {
	Y, TextY    int
	Name, Short string
	State       interpreter.Status
	X, Width    float64
	Took        string
	Height      int
	Own         drawnBand
	Bands       []drawnBand
}

// drawnBand has the SVG paths of a band: what was running, what was waiting, what was open but neither, and the ends
// of failed items.
type drawnBand struct {
	Y, TextY, Height            int
	Name                        string
	Open, Busy, Waiting, Failed string
}

// drawTimeline lays out the time line.
func (t *Timeline) drawTimeline() drawing {
	d := drawing{Width: fullWidth, Right: labelWidth + timeWidth, Ticks: t.axisTicks()}
	switch n := len(t.left); n {
	case 0:
	case countedLeft:
		d.Left = fmt.Sprintf("%d or", n)
	default:
		d.Left = fmt.Sprint(n)
	}
	y := axisHeight
	lanes := slices.Clone(t.lanes)
	slices.SortStableFunc(lanes, func(x, y *lane) int { return x.first.Compare(y.first) })
	for _, lane := range lanes {
		drawn := t.drawLane(lane, y)
		y += drawn.Height + 2*gap
		d.Lanes = append(d.Lanes, drawn)
	}
	d.Height = y
	return d
}

func (t *Timeline) drawLane(l *lane, y int) drawnLane {
	name := l.step
	if l.number > 1 {
		name += fmt.Sprintf("#%d", l.number)
	}
	drawn := drawnLane{Y: y, TextY: y + barHeight - 4, Name: name, Short: cutText(name, labelLetters), State: l.status, Height: barHeight}
	if !l.from.IsZero() {
		drawn.X = labelWidth + t.columnsAt(l.from)*columnWidth
		drawn.Width = max(1.5, (t.columnsAt(l.to)-t.columnsAt(l.from))*columnWidth)
		drawn.Took = tookText(l.to.Sub(l.from))
	}
	drawn.Own = l.own.drawBand(y+4, barHeight-8, 1)
	scale, height := l.maxRunning(), bandHeight
	if l.width > 1 {
		height = bandsHeight
	}
	for _, band := range l.bands {
		if band == nil {
			continue
		}
		below := band.drawBand(y+drawn.Height+gap, height, scale)
		if below.Name = fmt.Sprint(band.first); band.last != band.first {
			below.Name += fmt.Sprintf("–%d", band.last)
		}
		drawn.Bands = append(drawn.Bands, below)
		drawn.Height += height + gap
	}
	return drawn
}

// drawBand makes the paths of a band, whose full height represents scale running things. If only one thing runs at a
// time, it has the full height, even in columns where it begins or ends.
func (b *band) drawBand(y, height int, scale float32) drawnBand {
	var open, busy, waiting, failed shape
	for i := range columns {
		bottom, whole := float64(y+height), scale
		if scale == 1 {
			whole = max(b.open[i], b.busy[i]+b.waiting[i])
		}
		tall := func(count float32) float64 {
			if count <= 0 {
				return 0
			}
			return max(1.5, math.Round(float64(count/whole)*float64(height)*2)/2)
		}
		runs, waits := min(tall(b.busy[i]), float64(height)), tall(b.waiting[i])
		waits = min(waits, float64(height)-runs)
		rest := min(tall(b.open[i]-b.busy[i]-b.waiting[i]), float64(height)-runs-waits)
		busy.addColumn(i, bottom-runs, runs)
		waiting.addColumn(i, bottom-runs-waits, waits)
		open.addColumn(i, bottom-runs-waits-rest, rest)
		if b.failed[i] > 0 {
			failed.addColumn(i, bottom+0.5, 2.5)
		}
	}
	return drawnBand{
		Y: y, TextY: y + height/2 + 4, Height: height,
		Open: open.svgPath(), Busy: busy.svgPath(), Waiting: waiting.svgPath(), Failed: failed.svgPath(),
	}
}

// shape is a path of adjacent rectangles; equal neighbours are merged.
type shape struct {
	b         strings.Builder
	from, to  int // columns
	top, tall float64
}

func (s *shape) addColumn(column int, top, tall float64) {
	if tall <= 0 {
		return
	}
	if s.to == column && s.top == top && s.tall == tall {
		s.to++
		return
	}
	s.flushColumns()
	s.from, s.to, s.top, s.tall = column, column+1, top, tall
}

func (s *shape) flushColumns() {
	if s.to > s.from {
		fmt.Fprintf(&s.b, "M%d %gh%dv%gh-%dz", labelWidth+s.from*columnWidth, s.top, (s.to-s.from)*columnWidth, s.tall, (s.to-s.from)*columnWidth)
	}
	s.from, s.to = 0, 0
}

func (s *shape) svgPath() string {
	s.flushColumns()
	return s.b.String()
}

// axisTicks returns the times shown on the axis, relative to the start.
func (t *Timeline) axisTicks() []tick {
	whole := t.to.Sub(t.from)
	every := whole
	for _, step := range []time.Duration{
		time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second,
		5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 15 * time.Minute,
		30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
		30 * 24 * time.Hour, 365 * 24 * time.Hour,
	} {
		if every = step; whole/step <= shownTicks {
			break
		}
	}
	var ticks []tick
	for at := time.Duration(0); at <= whole && len(ticks) <= 10*shownTicks; at += every {
		ticks = append(ticks, tick{labelWidth + t.columnsAt(t.from.Add(at))*columnWidth, shortTime(at)})
	}
	return ticks
}

// shortTime formats a time without units that are 0.
func shortTime(d time.Duration) string {
	if d >= 24*time.Hour {
		if rest := d % (24 * time.Hour); rest != 0 {
			return fmt.Sprintf("%dd%dh", d/(24*time.Hour), rest/time.Hour)
		}
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return playbook.DurationText(d)
}

// tookText formats a duration with few digits.
func tookText(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < 24*time.Hour:
		return shortTime(d.Round(time.Second))
	}
	return shortTime(d.Round(time.Hour))
}

func cutText(text string, most int) string {
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}
