package playbook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/partition"
	"reprise/interpreter/source"
)

// Partitions are the parts of its data that each run of a playbook reads one of
// (docs/concepts/state.md#partitions).
type Partitions struct {
	*partition.Set

	Pos    source.Position
	Values Words // position of the value of each word
	// Zone is the name of the time zone, "" for UTC.
	Zone string
	// Length is the length of each partition if it is not a calendar unit.
	Length time.Duration
}

// partitionsRead has the decoded words of Partitions.
type partitionsRead struct {
	partition.Rule

	start, until, zone string
	words, values      Words
}

const everyForm = "hour, day, week, month or year, or a duration such as 6h"

var partitionsSection = sectionOf(section{name: "partitions", prefix: "partitions."}, []keyOf[partitionsRead]{
	acceptKey(key{name: "every", doc: "the length of a partition: `hour`, `day`, `week`, `month` or `year` in the zone, or a duration", required: "every: day"},
		readAs(WordLength, func(d *decoder, w written, p *partitionsRead) { readEvery(d, w.node, p) }).also(partition.Units...)),
	acceptKey(key{name: "start", doc: "the start of the first partition: a date or a time", required: "start: 2024-01-01"},
		asName(func(p *partitionsRead, text string) { p.start = text })),
	acceptKey(key{name: "end", doc: "the time after which no partition ends; default: none, there is always a next one"}, asName(func(p *partitionsRead, text string) { p.until = text })),
	acceptKey(key{name: "zone", doc: "the time zone of hours, days, weeks, months and years, such as `Europe/Berlin`; default UTC"},
		asName(func(p *partitionsRead, name string) { p.zone = name })),
})

// readEvery reads a unit or a length.
func readEvery(d *decoder, n *yaml.Node, p *partitionsRead) {
	if match := longUnit.FindStringSubmatch(n.Value); match != nil && match[1] == "1" && strings.ContainsAny(match[2][:1], "dw") {
		meant := map[string]string{"d": partition.Day, "w": partition.Week}[match[2][:1]]
		d.Errorf(positionOf(n), CodeWrongValue, "partitions.every cannot be %q; did you mean %q?", n.Value, meant)
		return
	}
	if n.ShortTag() != "!!str" || n.Value != "" && n.Value[0] >= '0' && n.Value[0] <= '9' {
		p.Length = d.timeLimit(n, "partitions.every", "")
		return
	}
	text, ok := d.readName(n, "partitions.every")
	if !ok {
		return
	}
	if slices.Contains(partition.Units, text) {
		p.Unit = text
		return
	}
	plain := strings.TrimSuffix(strings.ToLower(strings.TrimPrefix(text, "@")), "s")
	meant := map[string]string{"hourly": partition.Hour, "daily": partition.Day, "weekly": partition.Week, "monthly": partition.Month, "yearly": partition.Year, "annually": partition.Year}[plain]
	if meant == "" {
		meant = expression.Suggest(plain, partition.Units)
	}
	if meant == "" && strings.HasPrefix(plain, "da") {
		meant = partition.Day
	}
	hint := ", expected " + everyForm
	if meant != "" {
		hint = fmt.Sprintf("; did you mean %q?", meant)
	}
	d.Errorf(positionOf(n), CodeWrongValue, "partitions.every cannot be %q%s", ShortenText(text), hint)
}

// readPartitions reads a list of texts, or a section.
func readPartitions(d *decoder, n *yaml.Node, pb *Playbook) {
	if n.Kind == yaml.SequenceNode {
		if keys := readPartitionKeys(d, n); keys != nil {
			set, _ := partition.New(partition.Rule{Keys: keys}) // a list makes no problem
			pb.Partitions = &Partitions{Set: set, Pos: positionOf(n), Values: Words{}}
		}
		return
	}
	f, ok := d.readFields(n, partitionsSection, partitionsSection.sectionTitle())
	if !ok {
		return
	}
	read := &partitionsRead{words: f.words, values: f.keyPositions(Words{}, "")}
	before := len(d.Found)
	d.readWords(f, read, at{})
	if len(d.Found) > before || !readPartitionTimes(d, f, read) {
		return
	}
	set, problem := partition.New(read.Rule)
	if problem != nil {
		d.Errorf(read.values.Place(problem.Word, f.pos), CodeBounds, "partitions.%s %s", problem.Word, problem.Message)
		return
	}
	pb.Partitions = &Partitions{Set: set, Pos: f.pos, Values: read.values, Zone: read.zone, Length: read.Length}
}

// readPartitionTimes reads the times, in the zone.
func readPartitionTimes(d *decoder, f *fields, p *partitionsRead) bool {
	zone, err := expression.LoadZone(p.zone)
	if err != nil {
		d.Errorf(p.values.Place("zone", f.pos), CodeWrongValue, "partitions.zone: %s", err)
		return false
	}
	p.Zone = zone
	for _, one := range []struct {
		word, text string
		into       *time.Time
	}{{"start", p.start, &p.Start}, {"end", p.until, &p.Until}} {
		at, err := ParseMoment(one.text, time.UTC)
		if err != nil {
			d.Errorf(p.values.Place(one.word, f.pos), CodeWrongValue, "partitions.%s: %s", one.word, err)
			return false
		}
		if one.text != "" {
			*one.into = inZone(one.text, at, zone)
		}
	}
	return true
}

// inZone converts a time that was parsed as UTC: if its text has no offset, the time is in zone.
func inZone(text string, at time.Time, zone *time.Location) time.Time {
	if _, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at
	}
	return expression.WallTime(at, zone)
}

// MomentIn is ParseMoment with the partitions' time zone.
func (p *Partitions) MomentIn(text string) (time.Time, error) {
	zone, err := expression.LoadZone(p.Zone)
	if err != nil {
		return time.Time{}, err
	}
	at, err := ParseMoment(text, time.UTC)
	return inZone(text, at, zone), err
}

// maxPartitionKey bounds a key of a list, in bytes: it is part of workflow IDs.
const maxPartitionKey = 200

// readPartitionKeys reads a list of partitions; nil if it is invalid.
func readPartitionKeys(d *decoder, n *yaml.Node) []string {
	if len(n.Content) == 0 || len(n.Content) > partition.MaxListed {
		d.Errorf(positionOf(n), CodeBounds, "partitions has %d entries, expected 1 to %d", len(n.Content), partition.MaxListed)
		return nil
	}
	var keys []string
	before := len(d.Found)
	for _, item := range n.Content {
		key, ok := d.readName(item, "an entry of partitions")
		switch {
		case !ok:
		case slices.Contains(keys, key):
			d.Errorf(positionOf(item), CodeDuplicateEntry, "the partition %q is in the list twice", ShortenText(key))
		case len(key) > maxPartitionKey || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7F }):
			d.Errorf(positionOf(item), CodeBadName, "an entry of partitions must be one line of at most %d bytes, not %q", maxPartitionKey, ShortenText(key))
		default:
			keys = append(keys, key)
		}
	}
	if len(d.Found) > before {
		return nil
	}
	return keys
}

// PartitionWord is the name in expressions of the run's partition.
const PartitionWord = "partition"

// RunPartition returns the partition of a run: the one with a key, or without a key the newest that was complete at a
// time. It returns nil for a playbook without partitions.
func (pb *Playbook) RunPartition(key string, at time.Time) (*partition.Partition, error) {
	if pb.Partitions == nil {
		if key != "" {
			return nil, fmt.Errorf("playbook %s has no partitions, so no run of it is about %s", pb.Name, ShortenText(key))
		}
		return nil, nil
	}
	p, err := pb.Partitions.ForRun(key, at)
	if err != nil {
		return nil, err
	}
	return &p, nil
}
