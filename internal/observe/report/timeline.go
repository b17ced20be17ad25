package report

import (
	"cmp"
	"slices"
	"time"

	"reprise/internal/observe/stats"
	"reprise/interpreter"
)

const (
	// columns is the number of parts into which the time of a run is divided.
	columns = 200
	// shownLanes bounds the visits of steps that are drawn.
	shownLanes = 200
	// countedLeft bounds the count of visits that are not drawn.
	countedLeft = 2000
	// shownBands bounds the bands of one loop, and allBands those of all loops.
	shownBands, allBands = 40, 100
)

// Timeline shows what was running when. Spans are added as they are read; its size is bounded, however large the run
// is.
type Timeline struct {
	from, to time.Time
	lanes    []*lane
	known    map[visit]*lane
	loops    int // lanes with bands
	left     map[visit]bool
}

type visit struct {
	step   string
	number int
}

// lane is a visit of a step.
type lane struct {
	visit
	first    time.Time          // of its spans
	from, to time.Time          // zero until it is known when it began
	status   interpreter.Status // "" until it has ended, as far as is known
	own      band               // its attempts and waits, and those of its sink
	bands    []*band            // iterations by index, nil where there were none
	width    int                // how many iterations are a band
}

// band is one iteration, or several with consecutive indexes. Each series has, for each column, how many were running
// on average.
type band struct {
	open, busy, waiting [columns]float32
	failed              [columns]int32 // that ended in it
	first, last         int            // indexes
}

// NewTimeline returns an empty timeline between two times.
func NewTimeline(from, to time.Time) *Timeline {
	if to.Sub(from) < columns*time.Microsecond {
		to = from.Add(columns * time.Microsecond)
	}
	return &Timeline{from: from, to: to, known: map[visit]*lane{}, left: map[visit]bool{}}
}

// AddSpan adds a span.
func (t *Timeline) AddSpan(span stats.Span) {
	lane := t.laneOf(visit{span.Event.Step, span.Event.Visit})
	if lane == nil {
		return
	}
	if lane.first.IsZero() || span.From.Before(lane.first) {
		lane.first = span.From
	}
	if span.Of == stats.Step {
		lane.from, lane.to, lane.status = span.From, span.To, cmp.Or(span.Event.Status, interpreter.Running)
		return
	}
	into := &lane.own
	if span.Event.Index != nil {
		into = t.bandOf(lane, *span.Event.Index)
	}
	switch span.Of {
	case stats.Attempt:
		t.addSpan(&into.busy, span)
	case stats.Wait:
		t.addSpan(&into.waiting, span)
	case stats.Iteration:
		t.addSpan(&into.open, span)
		if span.Event.Status == interpreter.Failed {
			into.failed[t.columnAt(span.To)]++
		}
	}
}

// laneOf returns the lane of a visit; nil if there are too many.
func (t *Timeline) laneOf(of visit) *lane {
	if known := t.known[of]; known != nil {
		return known
	}
	if len(t.lanes) == shownLanes {
		if len(t.left) < countedLeft {
			t.left[of] = true
		}
		return nil
	}
	begun := &lane{visit: of, width: 1}
	t.known[of] = begun
	t.lanes = append(t.lanes, begun)
	return begun
}

// bandOf returns the band of an iteration. If there are too many bands, neighbours are merged.
func (t *Timeline) bandOf(lane *lane, index int) *band {
	if lane.bands == nil {
		t.loops++
		lane.bands = []*band{}
		for _, other := range t.lanes {
			other.shrinkTo(t.maxBands(), 0)
		}
	}
	lane.shrinkTo(t.maxBands(), index)
	at := index / lane.width
	for len(lane.bands) <= at {
		lane.bands = append(lane.bands, nil)
	}
	if lane.bands[at] == nil {
		lane.bands[at] = &band{first: index, last: index}
	}
	found := lane.bands[at]
	found.first, found.last = min(found.first, index), max(found.last, index)
	return found
}

// maxBands returns how many bands a loop may have.
func (t *Timeline) maxBands() int { return max(1, min(shownBands, allBands/t.loops)) }

// shrinkTo merges neighboring bands of a lane until at most `most` remain, counting the band that an iteration with the
// given index would need.
func (l *lane) shrinkTo(most, index int) {
	for len(l.bands) > most || index/l.width >= most {
		var merged []*band
		for pair := range slices.Chunk(l.bands, 2) {
			if len(pair) == 2 {
				pair[0] = mergeBands(pair[0], pair[1])
			}
			merged = append(merged, pair[0])
		}
		l.bands = merged
		l.width *= 2
	}
}

func mergeBands(x, y *band) *band {
	if x == nil || y == nil {
		return cmp.Or(x, y)
	}
	for i := range columns {
		x.open[i] += y.open[i]
		x.busy[i] += y.busy[i]
		x.waiting[i] += y.waiting[i]
		x.failed[i] += y.failed[i]
	}
	x.first, x.last = min(x.first, y.first), max(x.last, y.last)
	return x
}

// columnsAt converts a time to a position in columns.
func (t *Timeline) columnsAt(when time.Time) float64 {
	return min(max(float64(when.Sub(t.from))/float64(t.to.Sub(t.from))*columns, 0), columns)
}

func (t *Timeline) columnAt(when time.Time) int { return min(int(t.columnsAt(when)), columns-1) }

// least is the part of a column that the shortest span takes, so that it is visible.
const least = 0.1

// addSpan adds a span to the columns that it crosses.
func (t *Timeline) addSpan(series *[columns]float32, span stats.Span) {
	from, to := t.columnsAt(span.From), t.columnsAt(span.To)
	if to-from < least {
		series[t.columnAt(span.From)] += least
		return
	}
	for i := int(from); i < columns && float64(i) < to; i++ {
		series[i] += float32(min(to, float64(i+1)) - max(from, float64(i)))
	}
}

// maxRunning returns the largest number that ran at the same time in a band and column.
func (l *lane) maxRunning() float32 {
	most := float32(1)
	for _, band := range append(l.bands, &l.own) {
		if band == nil {
			continue
		}
		for i := range columns {
			most = max(most, band.open[i], band.busy[i]+band.waiting[i])
		}
	}
	return most
}
