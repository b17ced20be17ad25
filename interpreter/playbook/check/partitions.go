package check

import (
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// checkPartitions checks the partitions of a playbook: docs/concepts/state.md#partitions.
func checkPartitions(c *checker) {
	p := c.pb.Partitions
	if p == nil {
		return
	}
	for _, step := range c.pb.Steps {
		if i := step.Incremental; i != nil {
			c.Errorf(i.Pos, playbook.CodeConflict,
				"step %q has incremental in a playbook with partitions (line %d): a run reads either new rows or its partition; remove one of them", step.Name, p.Pos.Line)
		}
	}
	if s := c.pb.Schedule; s != nil && p.IsList() {
		c.Errorf(s.Pos, playbook.CodeConflict, "a schedule runs the newest partition, and partitions of a list (line %d) have no time; remove the schedule", p.Pos.Line)
	}
	const day = 24 * time.Hour
	if p.Zone != "" && p.Zone != "UTC" && p.Length > 0 && p.Length%day == 0 {
		c.Warnf(p.Values.Place("every", p.Pos), codeNoEffect, "partitions.every %s is not a day in %s when the clocks change; write every: day, or remove zone", p.Length, p.Zone)
	}
	if cut, is := p.CutByEnd(); is {
		c.Warnf(p.Values.Place("end", p.Pos), playbook.CodeBounds, "partitions.end is inside the partition %s, which no run reads: the last one ends at %s; write that, or %s",
			cut.Key, cut.Start.Format(time.RFC3339), cut.End.Format(time.RFC3339))
	}
	if !c.options.Now.IsZero() && !p.IsList() {
		checkPartitionTimes(c, p)
	}
	if c.pb.Schedule != nil && !p.IsList() {
		checkRepeatedPartition(c, p)
	}
	if !c.partial && !c.namesPartition() {
		c.Warnf(p.Pos, codeNoEffect, `no expression uses partition, so every run reads the same data; use it, for example params: {from: "{{ partition.start }}", to: "{{ partition.end }}"}`)
	}
}

// checkPartitionTimes checks which partitions exist today.
func checkPartitionTimes(c *checker, p *playbook.Partitions) {
	all, err := p.CompletePartitions(c.options.Now)
	switch {
	case err != nil:
		c.Errorf(p.Values.Place("every", p.Pos), playbook.CodeBounds, "partitions: %s", err)
	case len(all) == 0:
		_, err := p.ForRun("", c.options.Now)
		c.Warnf(p.Values.Place("start", p.Pos), playbook.CodeBounds, "partitions: %s; until then runs are refused", err)
	}
}

func (c *checker) namesPartition() bool {
	return slices.ContainsFunc(c.pb.AllValues(), func(at playbook.ValueAt) bool { return at.Node.UsesAny(playbook.PartitionWord) })
}

// checkRepeatedPartition warns about a schedule with several runs for a partition if a sink inserts its rows each time, and no statement
// deletes them before.
func checkRepeatedPartition(c *checker, p *playbook.Partitions) {
	sink := c.pb.WritesOnce()
	if sink == nil || c.deletesRows() {
		return
	}
	if mode, known := c.pb.ResolveAction(sink.Action).WriteMode(); !known || mode != "insert" {
		return
	}
	before := ""
	for _, at := range runTimes(c.pb.Schedule, p.FirstPartition().End.Add(-time.Second)) {
		if _, err := p.PartitionHolding(at); err != nil {
			return // it is after the last one
		}
		found, err := p.ForRun("", at)
		if err == nil && found.Key == before {
			c.Warnf(c.pb.Schedule.Pos, codeRepeatedWrite, "the schedule has several runs for one partition, such as %s, and the sink on line %d inserts its rows each time; "+
				"use mode: upsert or replace, times that run each partition once, or starter schedule create --backfill, whose runs load only missing partitions", found.Key, sink.Pos.Line)
			return
		}
		before = found.Key
	}
}

// runTimes returns the next times of a schedule after a time, in order.
func runTimes(s *playbook.Schedule, after time.Time) (times []time.Time) {
	const most = 50
	zone, err := expression.LoadZone(s.Zone)
	if err != nil {
		return nil // another problem includes that
	}
	for i := range most {
		if s.Every > 0 {
			times = append(times, after.Truncate(s.Every).Add(s.Offset+time.Duration(i+1)*s.Every))
		}
	}
	for _, text := range s.Cron {
		line, err := cron.ParseStandard(text)
		if err != nil {
			continue
		}
		at := after.In(zone)
		for range most {
			if at = line.Next(at); at.IsZero() {
				break
			}
			times = append(times, at)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	times = slices.CompactFunc(times, time.Time.Equal)
	return times[:min(len(times), most)]
}

// deletesRows reports whether a statement of the playbook deletes rows.
func (c *checker) deletesRows() bool {
	return slices.ContainsFunc(c.pb.Steps, func(step *playbook.Step) bool {
		if step.Action == nil {
			return false
		}
		statement := c.pb.ResolveAction(step.Action).Field(playbook.FieldStatement)
		if statement == nil {
			return false
		}
		text := strings.ToLower(statement.Raw)
		return strings.Contains(text, "delete") || strings.Contains(text, "truncate")
	})
}
