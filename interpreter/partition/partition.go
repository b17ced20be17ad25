// Package partition determines which time partitions a playbook has, and which of them are done. It is pure: the
// time is an argument, and the rules of time zones are part of the build.
package partition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/interpreter/expression"
)

// Bounds of partitions.
const (
	// Max bounds the partitions of a playbook. Hours since the year 1 would be millions, all of which each run
	// iterates over.
	Max = 100_000
	// MaxListed bounds the partitions of a list, and those in a claim: each is stored by its name.
	MaxListed = 1000
)

// The units of `every`.
const (
	Hour  = "hour"
	Day   = "day"
	Week  = "week"
	Month = "month"
	Year  = "year"
)

// oneOf names one period of each unit, for messages.
var oneOf = map[string]string{Hour: "an hour", Day: "a day", Week: "a week", Month: "a month", Year: "a year"}

// Units are the allowed units of `every`.
var Units = []string{Hour, Day, Week, Month, Year}

// Partition is a part of what a playbook reads, and what a run of it loads. Kept in workflow history: a run
// determines its partition once and never again.
type Partition struct {
	Key   string `json:"key"`
	Index int    `json:"index"` // from 0
	// Start and End bound its time, End exclusive; both are zero for a partition of a list.
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
}

// ExprValue returns the value of `partition` in expressions. Times have the offset of the zone, so that they begin with
// its local date.
func (p Partition) ExprValue() map[string]any {
	words := map[string]any{"key": p.Key, "index": p.Index, "start": nil, "end": nil}
	if !p.Start.IsZero() {
		words["start"], words["end"] = p.Start.Format(time.RFC3339), p.End.Format(time.RFC3339)
	}
	return words
}

// Rule is the author's definition: a list, or periods of one of Units or of a fixed length.
type Rule struct {
	Keys   []string
	Unit   string
	Length time.Duration
	Start  time.Time
	Until  time.Time // zero for no end
	Zone   *time.Location
}

// Set has the partitions of a rule.
type Set struct {
	rule  Rule
	first time.Time // local date of Start, as a time in UTC
}

// Problem is a mistake in a rule; Word is the key with the mistake.
type Problem struct{ Word, Message string }

// New returns the partitions of a rule, or what is wrong with it.
func New(rule Rule) (*Set, *Problem) {
	if rule.Keys != nil {
		return &Set{rule: rule}, nil
	}
	if rule.Unit == "" && (rule.Length < time.Second || rule.Length%time.Second != 0) {
		return nil, &Problem{"every", fmt.Sprintf("must be whole seconds, not %s", rule.Length)}
	}
	shown := rule.Start.In(rule.Zone)
	s := &Set{rule: rule, first: time.Date(shown.Year(), shown.Month(), shown.Day(), 0, 0, 0, 0, time.UTC)}
	if year := shown.Year(); year < 1 || year > 9999 {
		return nil, &Problem{"start", "must be in the years 1 to 9999"}
	}
	if begins := s.unitBeginning(shown); !begins.Equal(rule.Start) {
		return nil, &Problem{"start", fmt.Sprintf("must be the start of %s, such as %s, not %s", oneOf[rule.Unit], s.timeText(begins), s.timeText(rule.Start))}
	}
	if rule.Until.IsZero() {
		return s, nil
	}
	if end := s.boundaryTime(1); rule.Until.Before(end) {
		return nil, &Problem{"end", fmt.Sprintf("must not be before %s, where the first partition ends, not %s", s.timeText(end), s.timeText(rule.Until))}
	}
	if s.indexOf(rule.Until) > Max {
		return nil, &Problem{"end", fmt.Sprintf("makes more than %d partitions; use longer partitions, or a later start", Max)}
	}
	return s, nil
}

// unitBeginning returns the beginning of the unit that contains a time.
func (s *Set) unitBeginning(shown time.Time) time.Time {
	date := s.first
	switch s.rule.Unit {
	case "":
		return s.rule.Start
	case Hour:
		return s.rule.Start.Add(-time.Duration(shown.Minute())*time.Minute - time.Duration(shown.Second())*time.Second - time.Duration(shown.Nanosecond()))
	case Week:
		date = date.AddDate(0, 0, -(int(date.Weekday())+6)%7)
	case Month:
		date = date.AddDate(0, 0, 1-date.Day())
	case Year:
		date = time.Date(date.Year(), time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	return expression.WallTime(date, s.rule.Zone).In(s.rule.Zone)
}

// timeText returns a time for display.
func (s *Set) timeText(t time.Time) string {
	shown := t.In(s.rule.Zone)
	if s.rule.Unit != "" && s.rule.Unit != Hour && shown.Hour() == 0 && shown.Minute() == 0 && shown.Second() == 0 {
		return shown.Format(time.DateOnly)
	}
	return shown.Format(time.RFC3339)
}

// partitionLength returns the length of each partition, 0 for calendar units.
func (s *Set) partitionLength() time.Duration {
	if s.rule.Unit == Hour {
		return time.Hour
	}
	return s.rule.Length
}

// boundaryTime returns where the partition with an index begins and the previous one ends.
func (s *Set) boundaryTime(index int) time.Time {
	date := s.first
	switch s.rule.Unit {
	case Day:
		date = date.AddDate(0, 0, index)
	case Week:
		date = date.AddDate(0, 0, 7*index)
	case Month:
		date = date.AddDate(0, index, 0)
	case Year:
		date = date.AddDate(index, 0, 0)
	default:
		return s.rule.Start.Add(time.Duration(index) * s.partitionLength()).In(s.rule.Zone)
	}
	return expression.WallTime(date, s.rule.Zone).In(s.rule.Zone)
}

// indexOf returns the index of the partition that contains a time, below 0 before the first. It is bounded by the
// number of partitions up to the year 9999.
func (s *Set) indexOf(t time.Time) int {
	if length := s.partitionLength(); length > 0 {
		if t.Before(s.rule.Start) {
			return -1
		}
		return int(min(t.Unix()-s.rule.Start.Unix(), int64(1)<<50) / int64(length/time.Second))
	}
	shown := t.In(s.rule.Zone)
	years, months := shown.Year()-s.first.Year(), int(shown.Month()-s.first.Month())
	days := int(time.Date(shown.Year(), shown.Month(), shown.Day(), 0, 0, 0, 0, time.UTC).Sub(s.first) / (24 * time.Hour))
	index := map[string]int{Day: days, Week: days / 7, Month: 12*years + months, Year: years}[s.rule.Unit]
	for t.Before(s.boundaryTime(index)) { // a partition whose midnight was skipped begins later
		index--
	}
	for !t.Before(s.boundaryTime(index + 1)) {
		index++
	}
	return index
}

// partitionAt returns the partition with an index.
func (s *Set) partitionAt(index int) Partition {
	if s.rule.Keys != nil {
		return Partition{Key: s.rule.Keys[index], Index: index}
	}
	start := s.boundaryTime(index)
	return Partition{Key: s.partitionKey(start, s.boundaryTime(index+1)), Index: index, Start: start, End: s.boundaryTime(index + 1)}
}

// partitionKey returns the key of the partition between two times.
func (s *Set) partitionKey(start, end time.Time) string {
	switch s.rule.Unit {
	case Hour:
		return s.hourKey(start)
	case Day:
		// In a zone that skips midnight, the first day begins at one o'clock.
		return start.Format(time.DateOnly)
	case Week:
		year, week := start.ISOWeek()
		return fmt.Sprintf("%04d-W%02d", year, week)
	case Month:
		return start.Format("2006-01")
	case Year:
		return start.Format("2006")
	}
	return start.Format(time.RFC3339) + rangeSign + end.Format(time.RFC3339)
}

// rangeSign separates the times of a key. ISO 8601 allows it if a slash is not possible.
const rangeSign = "--"

// hourKey returns the key of an hour: with the offset if the clocks show that hour twice, and with minutes if the
// hour does not begin at 0.
func (s *Set) hourKey(start time.Time) string {
	layout := "2006-01-02T15"
	if start.Minute() != 0 {
		layout += ":04"
	}
	if s.isShownTwice(start) {
		layout += "-07:00"
	}
	return start.Format(layout)
}

func (s *Set) isShownTwice(t time.Time) bool {
	const half = 12 * time.Hour // no zone changes twice in a day
	at := expression.ZoneOffset(t, s.rule.Zone)
	for _, other := range []time.Duration{expression.ZoneOffset(t.Add(-half), s.rule.Zone), expression.ZoneOffset(t.Add(half), s.rule.Zone)} {
		if other != at && expression.ZoneOffset(t.Add(at-other), s.rule.Zone) == other {
			return true
		}
	}
	return false
}

// IsList reports whether the partitions come from a list and have no times.
func (s *Set) IsList() bool { return s.rule.Keys != nil }

// FirstKey returns the key of the first partition.
func (s *Set) FirstKey() string { return s.partitionAt(0).Key }

// UnitName returns the calendar unit of the partitions, one of Units; "" if they have a fixed length or come from a list.
func (s *Set) UnitName() string { return s.rule.Unit }

// completeCount counts the partitions whose time is over.
func (s *Set) completeCount(at time.Time) int {
	if s.IsList() {
		return len(s.rule.Keys)
	}
	if !s.rule.Until.IsZero() && at.After(s.rule.Until) {
		at = s.rule.Until
	}
	return max(s.indexOf(at), 0)
}

// CutByEnd returns the partition that the end of the rule cuts, so that none of its time is read; false if a partition ends there.
func (s *Set) CutByEnd() (Partition, bool) {
	if s.IsList() || s.rule.Until.IsZero() {
		return Partition{}, false
	}
	cut := s.partitionAt(s.completeCount(s.rule.Until))
	return cut, cut.Start.Before(s.rule.Until)
}

// CompletePartitions returns the partitions whose time is over, in order; for a list all of them. The error says that there
// are too many.
func (s *Set) CompletePartitions(at time.Time) ([]Partition, error) {
	count := s.completeCount(at)
	if count > Max {
		return nil, fmt.Errorf("there are %d partitions, more than %d; use longer partitions, or a later start", count, Max)
	}
	all := make([]Partition, 0, count)
	for i := range count {
		p := s.partitionAt(i)
		if s.IsList() || p.Start.Before(p.End) { // a zone may skip a whole day
			all = append(all, p)
		}
	}
	return all, nil
}

// ForRun returns the partition of a run: the one with the key, which must be complete, or without a key the newest
// complete one.
func (s *Set) ForRun(key string, at time.Time) (Partition, error) {
	if key != "" {
		p, err := s.FindPartition(key)
		if err == nil && p.End.After(at) {
			err = fmt.Errorf("the partition %s does not end before %s", key, p.End.Format(time.RFC3339))
		}
		return p, err
	}
	if s.IsList() {
		return Partition{}, fmt.Errorf("the partitions are a list, so a run has to name one of them: %s", s.someKeys())
	}
	count := s.completeCount(at)
	if count == 0 {
		first := s.partitionAt(0)
		return Partition{}, fmt.Errorf("no partition is complete yet: the first one, %s, ends at %s", first.Key, first.End.Format(time.RFC3339))
	}
	if count > Max {
		return Partition{}, fmt.Errorf("there are %d partitions, more than %d; use longer partitions, or a later start", count, Max)
	}
	p := s.partitionAt(count - 1)
	for !p.Start.Before(p.End) { // a day that the zone skips
		p = s.partitionAt(p.Index - 1)
	}
	return p, nil
}

// someKeys lists the first keys of a list.
func (s *Set) someKeys() string {
	const shown = 10
	text := strings.Join(s.rule.Keys[:min(len(s.rule.Keys), shown)], ", ")
	if more := len(s.rule.Keys) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// FirstPartition returns the partition that begins at the start; not for a list.
func (s *Set) FirstPartition() Partition { return s.partitionAt(0) }

// PartitionHolding returns the partition that contains a time.
func (s *Set) PartitionHolding(t time.Time) (Partition, error) {
	if s.IsList() {
		return Partition{}, fmt.Errorf("the partitions are a list without times: %s", s.someKeys())
	}
	if t.Before(s.rule.Start) {
		return Partition{}, fmt.Errorf("%s is before the first partition, %s", s.timeText(t), s.partitionAt(0).Key)
	}
	index := s.indexOf(t)
	if !s.rule.Until.IsZero() && index >= s.completeCount(s.rule.Until) {
		return Partition{}, fmt.Errorf("%s is after the last partition, %s", s.timeText(t), s.partitionAt(s.completeCount(s.rule.Until)-1).Key)
	}
	return s.partitionAt(index), nil
}

// FindPartition returns the partition with a key.
func (s *Set) FindPartition(key string) (Partition, error) {
	if s.IsList() {
		if at := slices.Index(s.rule.Keys, key); at >= 0 {
			return s.partitionAt(at), nil
		}
		near := ""
		if meant := expression.Suggest(key, s.rule.Keys); meant != "" {
			near = fmt.Sprintf("; did you mean %s?", meant)
		}
		return Partition{}, fmt.Errorf("there is no partition %q%s: they are %s", key, near, s.someKeys())
	}
	times := s.possibleStarts(key)
	for _, start := range times {
		p, err := s.PartitionHolding(start)
		if err != nil {
			return p, err
		}
		if p.Key == key && p.Start.Before(p.End) {
			return p, nil
		}
	}
	hint := "keys are such as " + s.partitionAt(0).Key + ", the first one"
	if s.rule.Unit == Hour && len(times) > 0 {
		if p, err := s.PartitionHolding(times[0]); err == nil && strings.HasPrefix(p.Key, key) {
			hint = "this hour occurs twice because the clocks change, so its key needs the offset, such as " + p.Key
		}
	}
	return Partition{}, fmt.Errorf("%q is not the key of a partition; %s", key, hint)
}

// possibleStarts returns the times at which a partition with the key may begin.
func (s *Set) possibleStarts(key string) []time.Time {
	var layouts []string
	text := key
	switch s.rule.Unit {
	case Hour:
		layouts = []string{"2006-01-02T15", "2006-01-02T15:04", "2006-01-02T15-07:00", "2006-01-02T15:04-07:00"}
	case Day:
		layouts = []string{time.DateOnly}
	case Week:
		return s.weekStart(key)
	case Month:
		layouts = []string{"2006-01"}
	case Year:
		layouts = []string{"2006"}
	default:
		text, _, _ = strings.Cut(key, rangeSign)
		layouts = []string{time.RFC3339}
	}
	for _, layout := range layouts {
		shown, err := time.Parse(layout, text)
		switch {
		case err != nil:
			continue
		case strings.Contains(layout, "07:00"):
			return []time.Time{shown}
		}
		return []time.Time{expression.WallTime(shown, s.rule.Zone)}
	}
	return nil
}

// weekStart returns the Monday of a week such as 2024-W05.
func (s *Set) weekStart(key string) []time.Time {
	var year, week int
	if n, err := fmt.Sscanf(key, "%4d-W%2d", &year, &week); err != nil || n != 2 || week < 1 || week > 53 {
		return nil
	}
	fourth := time.Date(year, time.January, 4, 0, 0, 0, 0, time.UTC) // is in the first week
	monday := fourth.AddDate(0, 0, -(int(fourth.Weekday())+6)%7+7*(week-1))
	return []time.Time{expression.WallTime(monday, s.rule.Zone)}
}
