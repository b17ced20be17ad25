package playbook

import (
	"fmt"
	"slices"
	"time"

	"reprise/interpreter/partition"
)

// PartitionWord is the name of the partition of a run in expressions.
const PartitionWord = "partition"

// checkPartitions checks what partitions a playbook has: docs/concepts/state.md#partitions.
func checkPartitions(c *checker) {
	p := c.pb.Partitions
	if p == nil {
		return
	}
	for _, step := range c.pb.Steps {
		if i := step.Incremental; i != nil {
			c.errorf(i.Pos, codeConflict,
				"step %q has incremental in a playbook with partitions (line %d): a run reads what is new, or its partition; remove one of them", step.Name, p.Pos.Line)
		}
	}
	if s := c.pb.Schedule; s != nil && p.Listed() {
		c.errorf(s.Pos, codeConflict, "a schedule names no partition, and those of a list (line %d) have no time of which one would be the newest; remove the schedule", p.Pos.Line)
	}
	const day = 24 * time.Hour
	if p.Zone != "" && p.Zone != "UTC" && p.Length > 0 && p.Length%day == 0 {
		c.warnf(p.Values.at("every", p.Pos), codeNoEffect, "partitions.every %s is no day of %s where the clocks change; write every: day, or leave out zone", p.Length, p.Zone)
	}
	if !c.options.Now.IsZero() && !p.Listed() {
		c.checkPartitionTimes(p)
	}
	if !c.partial && !c.namesPartition() {
		c.warnf(p.Pos, codeNoEffect, `no expression names partition, so every run reads the same; write such as params: {from: "{{ partition.start }}", to: "{{ partition.end }}"}`)
	}
}

// checkPartitionTimes says what comes of the partitions today.
func (c *checker) checkPartitionTimes(p *Partitions) {
	all, err := p.Complete(c.options.Now)
	switch {
	case err != nil:
		c.errorf(p.Values.at("every", p.Pos), codeBounds, "partitions: %s", err)
	case len(all) == 0:
		_, err := p.Of("", c.options.Now)
		c.warnf(p.Values.at("start", p.Pos), codeBounds, "partitions: %s; until then runs are refused", err)
	}
}

func (c *checker) namesPartition() bool {
	return slices.ContainsFunc(c.pb.values(), func(at valueAt) bool { return at.node.Names(PartitionWord) })
}

// Partition is the partition of a run: that of a key, or the newest that was complete at a time. It
// is nil for a playbook without partitions.
func (pb *Playbook) Partition(key string, at time.Time) (*partition.Partition, error) {
	if pb.Partitions == nil {
		if key != "" {
			return nil, fmt.Errorf("playbook %s has no partitions, so no run of it is about %s", pb.Name, shorten(key))
		}
		return nil, nil
	}
	p, err := pb.Partitions.Of(key, at)
	if err != nil {
		return nil, err
	}
	return &p, nil
}
