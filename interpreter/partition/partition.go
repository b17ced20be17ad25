// Package partition says which partitions of time a playbook has, and which of them are done. It
// is pure: the time is an argument, and the rules of zones are part of the build.
package partition

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reprise/interpreter/expression"
)

// Max is how many partitions a playbook has at most, and MaxListed how many a list has.
const (
	// Max is how many partitions a playbook may have. Hours since the year 1 would be millions,
	// which each run goes through.
	Max = 100_000
	// MaxListed is how many partitions a written list may have, and a claim of one: each is
	// kept by its name.
	MaxListed = 1000
)

// The units of every.
const (
	Hour  = "hour"
	Day   = "day"
	Week  = "week"
	Month = "month"
	Year  = "year"
)

// oneOf names one of a unit.
var oneOf = map[string]string{Hour: "an hour", Day: "a day", Week: "a week", Month: "a month", Year: "a year"}

// Units are the words of every.
var Units = []string{Hour, Day, Week, Month, Year}

// Partition is one part of what a playbook reads, and what a run of it is about. Kept in workflow
// history: a run decides once which one it has, and never works it out again.
type Partition struct {
	Key   string `json:"key"`
	Index int    `json:"index"` // from 0
	// Start and End bound its time, End exclusive; both are zero for a partition of a list.
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
}

// Words is partition in expressions. Times have the offset of the zone, so that their first
// characters are its dates.
func (p Partition) Words() map[string]any {
	words := map[string]any{"key": p.Key, "index": p.Index, "start": nil, "end": nil}
	if !p.Start.IsZero() {
		words["start"], words["end"] = p.Start.Format(time.RFC3339), p.End.Format(time.RFC3339)
	}
	return words
}

// Rule is the author's definition: a list, or times in one of Units or with a length.
type Rule struct {
	Keys   []string
	Unit   string
	Length time.Duration
	Start  time.Time
	Until  time.Time // zero for no end
	Zone   *time.Location
}

// Set are the partitions of a rule.
type Set struct {
	rule  Rule
	first time.Time // the date of Start as the clocks show it, in UTC
}

// Problem is a mistake in a rule; Word is the key that has it.
type Problem struct{ Word, Message string }

// New makes the partitions of a rule, or says what is wrong with it.
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

// unitBeginning is the beginning of the unit that contains a time.
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

// timeText is a time for people.
func (s *Set) timeText(t time.Time) string {
	shown := t.In(s.rule.Zone)
	if s.rule.Unit != "" && s.rule.Unit != Hour && shown.Hour() == 0 && shown.Minute() == 0 && shown.Second() == 0 {
		return shown.Format(time.DateOnly)
	}
	return shown.Format(time.RFC3339)
}

// partitionLength is the length of each partition, 0 for those of the calendar.
func (s *Set) partitionLength() time.Duration {
	if s.rule.Unit == Hour {
		return time.Hour
	}
	return s.rule.Length
}

// boundaryTime is where the partition of an index begins, and the one before ends.
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

// indexOf returns the index of the partition that contains a time, below 0 before the first. It
// is bounded by the number of partitions up to the year 9999.
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
	for t.Before(s.boundaryTime(index)) { // a time that the clocks left out began before midnight
		index--
	}
	for !t.Before(s.boundaryTime(index + 1)) {
		index++
	}
	return index
}

// partitionAt is the partition of an index.
func (s *Set) partitionAt(index int) Partition {
	if s.rule.Keys != nil {
		return Partition{Key: s.rule.Keys[index], Index: index}
	}
	start := s.boundaryTime(index)
	return Partition{Key: s.partitionKey(start, s.boundaryTime(index+1)), Index: index, Start: start, End: s.boundaryTime(index + 1)}
}

// partitionKey names the partition that begins at a time.
func (s *Set) partitionKey(start, end time.Time) string {
	switch s.rule.Unit {
	case Hour:
		return s.hourKey(start)
	case Day:
		// The first day of a zone that leaves midnight out begins at one o'clock.
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

// rangeSign is between the times of a key, as in ISO 8601 where a slash is none.
const rangeSign = "--"

// hourKey has the offset where the clocks show an hour twice, and minutes where the hour does not
// begin on one.
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

// Listed reports whether the partitions come from a list and have no times.
func (s *Set) Listed() bool { return s.rule.Keys != nil }

// First is the key of the first partition.
func (s *Set) First() string { return s.partitionAt(0).Key }

// UnitName is one of Units, "" for a length or a list.
func (s *Set) UnitName() string { return s.rule.Unit }

// completeCount counts the partitions whose time is over.
func (s *Set) completeCount(at time.Time) int {
	if s.Listed() {
		return len(s.rule.Keys)
	}
	if !s.rule.Until.IsZero() && at.After(s.rule.Until) {
		at = s.rule.Until
	}
	return max(s.indexOf(at), 0)
}

// Complete are the partitions whose time is over, in their order; of a list all. The error is that
// they are too many.
func (s *Set) Complete(at time.Time) ([]Partition, error) {
	count := s.completeCount(at)
	if count > Max {
		return nil, fmt.Errorf("there are %d partitions, more than %d; use longer partitions, or a later start", count, Max)
	}
	all := make([]Partition, 0, count)
	for i := range count {
		p := s.partitionAt(i)
		if s.Listed() || p.Start.Before(p.End) { // a zone may leave out a whole day
			all = append(all, p)
		}
	}
	return all, nil
}

// Of returns the partition of a run: the one with the key, which has to be complete, or without a
// key the newest complete one.
func (s *Set) Of(key string, at time.Time) (Partition, error) {
	if key != "" {
		p, err := s.Find(key)
		if err == nil && p.End.After(at) {
			err = fmt.Errorf("the partition %s does not end before %s", key, p.End.Format(time.RFC3339))
		}
		return p, err
	}
	if s.Listed() {
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
	for !p.Start.Before(p.End) { // a day that the zone leaves out
		p = s.partitionAt(p.Index - 1)
	}
	return p, nil
}

// someKeys names the first keys of a list.
func (s *Set) someKeys() string {
	const shown = 10
	text := strings.Join(s.rule.Keys[:min(len(s.rule.Keys), shown)], ", ")
	if more := len(s.rule.Keys) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// PartitionHolding is the partition in which a time is.
func (s *Set) PartitionHolding(t time.Time) (Partition, error) {
	if s.Listed() {
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

// Find is the partition of a key.
func (s *Set) Find(key string) (Partition, error) {
	if s.Listed() {
		if at := slices.Index(s.rule.Keys, key); at >= 0 {
			return s.partitionAt(at), nil
		}
		near := ""
		if meant := expression.Suggest(key, s.rule.Keys); meant != "" {
			near = fmt.Sprintf("; did you mean %s?", meant)
		}
		return Partition{}, fmt.Errorf("there is no partition %q%s: they are %s", key, near, s.someKeys())
	}
	times := s.startsOf(key)
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

// startsOf are the times that a key may begin at.
func (s *Set) startsOf(key string) []time.Time {
	var layouts []string
	text := key
	switch s.rule.Unit {
	case Hour:
		layouts = []string{"2006-01-02T15", "2006-01-02T15:04", "2006-01-02T15-07:00", "2006-01-02T15:04-07:00"}
	case Day:
		layouts = []string{time.DateOnly}
	case Week:
		return s.weekOf(key)
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

// weekOf is the Monday of a week such as 2024-W05.
func (s *Set) weekOf(key string) []time.Time {
	var year, week int
	if n, err := fmt.Sscanf(key, "%4d-W%2d", &year, &week); err != nil || n != 2 || week < 1 || week > 53 {
		return nil
	}
	fourth := time.Date(year, time.January, 4, 0, 0, 0, 0, time.UTC) // is in the first week
	monday := fourth.AddDate(0, 0, -(int(fourth.Weekday())+6)%7+7*(week-1))
	return []time.Time{expression.WallTime(monday, s.rule.Zone)}
}
