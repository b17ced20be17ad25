package loop

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/workflows/drive"
	"reprise/workflows/gate"
	"reprise/workflows/protocol"
)

// A loop over a source makes one call, page by page, and runs the rows of the pages in shards. These are like those
// of any large loop: a shard has its elements in its input, and lingers. The workflow that reads the source starts
// no iteration itself. When its history gets long, it stops reading, and another workflow reads on from there: a
// child, or one started by its parent after a signal. Both may linger, so that an iteration that waits for hours
// delays neither the source nor other iterations.
const (
	// shardElements and shardBytes bound the input of one shard of a loop over a source, which would otherwise grow
	// with max_concurrency and the size of pages.
	shardElements = interpreter.LeafElements
	shardBytes    = 500_000

	// readingShare divides the history of a workflow that starts other readers: it stops reading when one
	// readingShare-th is filled.
	readingShare = 3
	// readersPerLevel is the number of readers that the first workflow of a loop starts directly before further
	// ones start readers of their own, so that its history stays short however large the source is.
	readersPerLevel = 8
)

// sourceReader reads the source of a loop in one workflow.
type sourceReader struct {
	loop *Loop
	call *call.Call
	// buffer are the elements that were read and are not in a shard yet.
	buffer []expression.Value
	// ahead are the pages with elements that may not have begun.
	ahead []readPages
	pages int  // number of pages taken from the call
	over  bool // this workflow reads no further
	wait  *interpreter.Wait
	until time.Time
}

// readPages are pages that were read together.
type readPages struct {
	count int
	end   int // position after their last element
}

// runSource reads the source and runs its elements, until it has ended, or others read on, and all shards have
// ended.
func (l *Loop) runSource(ctx workflow.Context) {
	reading, stop := workflow.WithCancel(ctx)
	s := newSource(ctx, l)
	workflow.Go(reading, s.readSource)
	next := 0
	for l.mayBeginMore(ctx) {
		l.waitUntil(ctx, func() bool { return len(s.buffer) > 0 || s.over || !l.mayBeginMore(ctx) })
		if len(s.buffer) == 0 || !l.mayBeginMore(ctx) {
			break
		}
		p := runNext(ctx, l, s.nextShard(next))
		if p.gaveUp {
			break
		}
		next = p.first + p.next
		s.recordBegun(next)
	}
	if !s.over {
		stop()
		disconnected, _ := workflow.NewDisconnectedContext(ctx)
		_ = workflow.Await(disconnected, func() bool { return s.over })
	}
	s.readOn(ctx)
	l.started = l.Result.Stats.Total
	l.waitUntil(ctx, func() bool { return len(l.shards) == 0 })
	s.leaveRest(ctx)
}

// mayBeginMore reports whether the loop may begin further iterations.
func (l *Loop) mayBeginMore(ctx workflow.Context) bool {
	return ctx.Err() == nil && l.Result.Budget == nil
}

// runNext starts a shard and waits until the next one may begin.
func runNext(ctx workflow.Context, l *Loop, p *openShard) *openShard {
	l.describeLoop(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		l.runShard(ctx, p)
		l.endShard(ctx, p)
	})
	l.waitUntil(ctx, func() bool { return p.ended || p.lingers })
	return p
}

// readOn starts workflows that read the rest of the source, one after another.
func (s *sourceReader) readOn(ctx workflow.Context) {
	l := s.loop
	for n := 0; l.left != nil && l.mayBeginMore(ctx); n++ {
		level := n / readersPerLevel
		if l.Input.Shard != nil {
			if level = l.Input.Source.Level - 1; level < 0 || gate.HistoryIsLong(ctx) {
				return
			}
		}
		first := l.Result.Stats.Total
		for _, p := range l.shards {
			if p.reads != nil {
				first += p.next // not in the result yet
			}
		}
		name := fmt.Sprintf("/source-%d-%d", l.indexAt(first), l.left.State.Attempts)
		p := runNext(ctx, l, l.openShard(&openShard{
			id: protocol.ChildID(l.Input.Task, name), first: first, end: first,
			reads: &protocol.LoopSource{Data: l.Input.Source.Data, Call: *l.left, Level: level},
		}))
		if l.left = p.source; p.gaveUp {
			return
		}
		l.Shard.Size = l.Shard.First + first + p.next
	}
}

// leaveRest signals the parent to let another workflow read on, unless it has been signalled before.
func (s *sourceReader) leaveRest(ctx workflow.Context) {
	l := s.loop
	if l.left == nil || l.Input.Shard == nil || l.reported != nil || !l.mayBeginMore(ctx) {
		return
	}
	_ = gate.SignalWorkflow(ctx, workflow.GetInfo(ctx).ParentWorkflowExecution.ID, protocol.LingerSignal, lingeringReport(ctx, l, l.lingeringUse())).Get(ctx, nil)
}

// newSource returns the reader of the source, whose call begins or continues.
func newSource(ctx workflow.Context, l *Loop) *sourceReader {
	s := &sourceReader{loop: l}
	l.source, l.Shard.Open = s, true
	s.call = ResumeCall(ctx, l.book, l.loop.Source, s.sourceTask(), l.Input.Source.Call)
	s.pages = s.call.View().Pages
	return s
}

// sourceTask returns the task of the source's call.
func (s *sourceReader) sourceTask() protocol.Task {
	task := s.loop.Input.Task
	task.Step, task.Data = s.loop.loop.Source.Name, s.loop.Input.Source.Data
	return task
}

// readSource makes the call of the source until it has ended or is left to another workflow.
func (s *sourceReader) readSource(ctx workflow.Context) {
	l := s.loop
	d := &drive.Driver{
		Call: s.call, Waiting: s.waitRecorder(ctx), Renews: func() bool { return s.pauseReading(ctx) },
		Host: &drive.ActivityHost{Task: s.sourceTask(), Snapshot: l.Input.Source.Call, MostPages: func() int { return max(1, s.maxAhead()-s.aheadPages()) }},
	}
	l.left = d.Run(ctx)
	s.addElements()
	if s.over = true; l.left == nil {
		s.recordEnd(ctx)
	}
	l.describeLoop(ctx)
}

// recordEnd records the end of the source.
func (s *sourceReader) recordEnd(ctx workflow.Context) {
	l, result := s.loop, *s.call.Result()
	l.Shard.Open = false
	l.Result.Attempts += result.Meta.Attempts
	l.Result.Pages += result.Meta.Pages
	l.Result.SourceCut = result.Meta.Truncated || result.Meta.Incomplete || result.Cut != nil || result.Status == interpreter.Partial
	for _, warning := range result.Warnings {
		l.Result.AddWarning(warning)
	}
	if result.Failed() && result.Error.Kind != interpreter.KindCancelled && ctx.Err() == nil {
		l.Result.SourceError = result.Error.ShrunkError()
	}
}

// pauseReading adds the rows read so far and waits until the iterations need more. The driver calls it before each step
// of the call. It returns true if another workflow must read on.
func (s *sourceReader) pauseReading(ctx workflow.Context) bool {
	s.addElements()
	if s.call.View().IsAtEnd() {
		return false
	}
	_ = workflow.Await(ctx, func() bool { return s.aheadPages() < s.maxAhead() })
	return ctx.Err() == nil && s.isHistoryFull(ctx)
}

// isHistoryFull reports whether the history has no room for more pages.
func (s *sourceReader) isHistoryFull(ctx workflow.Context) bool {
	share := 1
	if s.loop.Input.Shard == nil || s.loop.Input.Source.Level > 0 {
		share = readingShare
	}
	info := workflow.GetInfo(ctx)
	return gate.HistoryIsLong(ctx) || info.GetCurrentHistoryLength() > gate.LongHistory/share || info.GetCurrentHistorySize() > gate.LargeHistory/share
}

// addElements adds the elements of pages that the call has read since the last time.
func (s *sourceReader) addElements() {
	elements, l := s.call.RemoveElements(), s.loop
	read := s.call.View().Pages
	count := read - s.pages
	s.pages = read
	if len(elements) == 0 {
		return
	}
	s.buffer = append(s.buffer, lists.Map(elements, expression.Of)...)
	l.Result.AddElements(len(elements))
	l.Shard.Size = l.Shard.First + l.Result.Stats.Total
	s.ahead = append(s.ahead, readPages{count: max(1, count), end: l.Result.Stats.Total})
}

// recordBegun records that the elements before a position have begun.
func (s *sourceReader) recordBegun(before int) {
	for len(s.ahead) > 0 && s.ahead[0].end <= before {
		s.ahead = s.ahead[1:]
	}
}

// aheadPages returns the number of pages with elements that may not have begun.
func (s *sourceReader) aheadPages() (count int) {
	for _, pages := range s.ahead {
		count += pages.count
	}
	return count
}

// maxAhead returns how many pages the source may be ahead of the iterations: as many as iterations run at a time.
func (s *sourceReader) maxAhead() int {
	l := s.loop
	if l.loop.Mode != playbook.Parallel {
		return 1
	}
	if tuned := l.controls.TuningOf(l.step.Name).MaxConcurrency; tuned > 0 {
		return tuned
	}
	return l.loop.MaxConcurrency
}

// nextShard opens a shard with elements that were read, from at most half of the pages that may be ahead, so that
// reading continues meanwhile.
func (s *sourceReader) nextShard(first int) *openShard {
	l, count, size := s.loop, 0, 0
	most := min(len(s.buffer), shardElements)
	pages, ofHalf := 0, (s.maxAhead()+1)/2
	for _, read := range s.ahead {
		if pages += read.count; pages >= ofHalf {
			most = min(most, max(1, read.end-first))
			break
		}
	}
	for count < most && (count == 0 || size < shardBytes) {
		size += interpreter.EncodedSize(s.buffer[count])
		count++
	}
	elements := s.buffer[:count:count]
	s.buffer = s.buffer[count:]
	name := fmt.Sprintf("/shard-%d", l.indexAt(first))
	return l.openShard(&openShard{id: protocol.ChildID(l.Input.Task, name), first: first, end: first + count, elements: elements})
}

// waitRecorder returns a recorder of the waits of the source, which updates the details.
func (s *sourceReader) waitRecorder(ctx workflow.Context) drive.WaitRecorder {
	return func(call *call.Call, wait *interpreter.Wait, until time.Time) {
		s.wait, s.until = wait, until
		s.loop.describeLoop(ctx)
		if news, waits := drive.WaitsForPeople(call, wait, s.loop.Input.Task.Visit); waits {
			news.Step = s.loop.step.Name
			s.loop.notifier.NotifyParent(ctx, news)
		}
	}
}

// sourceProgress returns the progress of the source; nil if this workflow reads none.
func (s *sourceReader) sourceProgress() *protocol.SourceProgress {
	if s == nil {
		return nil
	}
	return &protocol.SourceProgress{Reads: s.loop.Shard.Open, CallStatus: s.call.View().Status(s.wait, s.until)}
}

// waitStatus returns the status of a source that is being read; nil for none, and while it waits for the iterations.
func (s *sourceReader) waitStatus() *interpreter.CallStatus {
	if s == nil || s.over || s.wait == nil && s.aheadPages() >= s.maxAhead() {
		return nil
	}
	status := s.call.View().Status(s.wait, s.until)
	if status.Status == interpreter.Pending {
		status.Status = interpreter.Running
	}
	return &status
}

// describeSource describes the source for people.
func (s *sourceReader) describeSource() string {
	status := s.call.View().Status(s.wait, s.until)
	text := fmt.Sprintf("\nThe source: %s, %s read", status.Status, source.Count(status.Pages, "page"))
	if status.Waiting != "" {
		text += ", waits for " + source.MarkdownCode(status.Waiting, protocol.MaxText)
	}
	return text + "\n"
}
