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

// Partitions say which parts of what it reads the runs of a playbook are about (docs/concepts/state.md#partitions).
type Partitions struct {
	*partition.Set

	Pos    source.Position
	Values Words // place of the value of each word
	// Zone is the name of the time zone, "" for UTC.
	Zone string
	// Length is that of each partition where it is no unit of the calendar.
	Length time.Duration
}

// partitionsRead is what decoding gathers of Partitions.
type partitionsRead struct {
	partition.Rule

	start, until, zone string
	words, values      Words
}

const everyForm = "hour, day, week, month or year, or a duration such as 6h"

var partitionsSection = sectionOf(section{name: "partitions", prefix: "partitions."}, []keyOf[partitionsRead]{
	accept(key{name: "every", doc: "how long a partition is: `hour`, `day`, `week`, `month` or `year` of the zone, or a duration", required: "every: day"},
		as(WordLength, func(d *decoder, w written, p *partitionsRead) { d.every(w.node, p) }).also(partition.Units...)),
	accept(key{name: "start", doc: "where the first partition begins: a date, or a time", required: "start: 2024-01-01"},
		asName(func(p *partitionsRead, text string) { p.start = text })),
	accept(key{name: "end", doc: "no partition ends after this time; default: there is always a next one"}, asName(func(p *partitionsRead, text string) { p.until = text })),
	accept(key{name: "zone", doc: "time zone, such as `Europe/Berlin`, whose hours, days, weeks, months and years are meant; default UTC"},
		asName(func(p *partitionsRead, name string) { p.zone = name })),
})

// every reads a unit or a length.
func (d *decoder) every(n *yaml.Node, p *partitionsRead) {
	if match := longUnit.FindStringSubmatch(n.Value); match != nil && match[1] == "1" && strings.ContainsAny(match[2][:1], "dw") {
		meant := map[string]string{"d": partition.Day, "w": partition.Week}[match[2][:1]]
		d.errorf(position(n), codeWrongValue, "partitions.every cannot be %q; did you mean %q?", n.Value, meant)
		return
	}
	if n.ShortTag() != "!!str" || n.Value != "" && n.Value[0] >= '0' && n.Value[0] <= '9' {
		p.Length = d.timeLimit(n, "partitions.every", "")
		return
	}
	text, ok := d.name(n, "partitions.every")
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
	d.errorf(position(n), codeWrongValue, "partitions.every cannot be %q%s", shorten(text), hint)
}

// partitions reads a list of texts, or a section.
func (d *decoder) partitions(n *yaml.Node, pb *Playbook) {
	if n.Kind == yaml.SequenceNode {
		if keys := d.partitionKeys(n); keys != nil {
			set, _ := partition.New(partition.Rule{Keys: keys}) // a list makes no problem
			pb.Partitions = &Partitions{Set: set, Pos: position(n), Values: Words{}}
		}
		return
	}
	f, ok := d.fields(n, partitionsSection, partitionsSection.title())
	if !ok {
		return
	}
	read := &partitionsRead{words: f.words, values: f.positions(Words{}, "")}
	before := len(d.found)
	d.words(f, read, at{})
	if len(d.found) > before || !d.partitionTimes(f, read) {
		return
	}
	set, problem := partition.New(read.Rule)
	if problem != nil {
		d.errorf(read.values.at(problem.Word, f.pos), codeBounds, "partitions.%s %s", problem.Word, problem.Message)
		return
	}
	pb.Partitions = &Partitions{Set: set, Pos: f.pos, Values: read.values, Zone: read.zone, Length: read.Length}
}

// partitionTimes reads the times, which are those of the zone.
func (d *decoder) partitionTimes(f *fields, p *partitionsRead) bool {
	zone, err := expression.Zone(p.zone)
	if err != nil {
		d.errorf(p.values.at("zone", f.pos), codeWrongValue, "partitions.zone: %s", err)
		return false
	}
	p.Zone = zone
	for _, one := range []struct {
		word, text string
		into       *time.Time
	}{{"start", p.start, &p.Start}, {"end", p.until, &p.Until}} {
		at, err := Moment(one.text, time.UTC)
		if err != nil {
			d.errorf(p.values.at(one.word, f.pos), codeWrongValue, "partitions.%s: %s", one.word, err)
			return false
		}
		if one.text != "" {
			*one.into = inZone(one.text, at, zone)
		}
	}
	return true
}

// inZone is a time that was read in UTC: without an offset in its text the one at which the clocks
// of the zone show it.
func inZone(text string, at time.Time, zone *time.Location) time.Time {
	if _, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at
	}
	return expression.WallTime(at, zone)
}

// MomentIn is Moment with the rules of zones that partitions have.
func (p *Partitions) MomentIn(text string) (time.Time, error) {
	zone, err := expression.Zone(p.Zone)
	if err != nil {
		return time.Time{}, err
	}
	at, err := Moment(text, time.UTC)
	return inZone(text, at, zone), err
}

// maxPartitionKey bounds a key of a list, in bytes.
const maxPartitionKey = 200

// partitionKeys reads a list; nil where it cannot be used.
func (d *decoder) partitionKeys(n *yaml.Node) []string {
	if len(n.Content) == 0 || len(n.Content) > partition.MaxListed {
		d.errorf(position(n), codeBounds, "partitions has %d entries, expected 1 to %d", len(n.Content), partition.MaxListed)
		return nil
	}
	var keys []string
	before := len(d.found)
	for _, item := range n.Content {
		key, ok := d.name(item, "an entry of partitions")
		switch {
		case !ok:
		case slices.Contains(keys, key):
			d.errorf(position(item), codeDuplicateEntry, "the partition %q is in the list twice", shorten(key))
		case len(key) > maxPartitionKey || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7F }):
			d.errorf(position(item), codeBadName, "an entry of partitions must be one line of at most %d bytes, not %q", maxPartitionKey, shorten(key))
		default:
			keys = append(keys, key)
		}
	}
	if len(d.found) > before {
		return nil
	}
	return keys
}
