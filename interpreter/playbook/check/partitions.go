package check

import (
	"slices"
	"time"

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
