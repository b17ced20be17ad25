package expression

import (
	_ "embed" // the rules of zones
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// zoneRules are the rules of all time zones, edition 2025c of the tz database, which is
// in the public domain. They are part of the build and not those of the machine, as a
// replay has to come to the same times. The file has an index of lines with name, offset
// and length, an empty line, and the rules as the tz database writes them. TestZones
// writes it anew with -zones.
//
//go:embed zones.bin
var zoneRules string

// zones are the zones that were read, by name.
var zones sync.Map

// Zone is a time zone by its name, "" for UTC, with the rules that are part of the build: a
// machine's own would give a replay other times.
func Zone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	if known, ok := zones.Load(name); ok {
		zone, _ := known.(*time.Location)
		return zone, nil
	}
	index, rules, _ := strings.Cut(zoneRules, "\n\n")
	_, behind, found := strings.Cut(index, "\n"+name+" ")
	if !found || strings.ContainsAny(name, " \n") {
		return nil, unknownZone(name)
	}
	line, _, _ := strings.Cut(behind, "\n")
	offset, length, _ := strings.Cut(line, " ")
	from, err := strconv.Atoi(offset)
	if err != nil {
		return nil, err
	}
	size, err := strconv.Atoi(length)
	if err != nil {
		return nil, err
	}
	zone, err := time.LoadLocationFromTZData(name, []byte(rules[from:from+size]))
	if err != nil {
		return nil, err
	}
	zones.Store(name, zone)
	return zone, nil
}

func unknownZone(name string) error {
	return fmt.Errorf("there is no time zone %q; zones are named as Europe/Berlin and UTC", shortText(name))
}

// WallTime is the moment at which the clocks of a zone show a date and time, which is given in
// UTC. Of two such moments it is the earlier one; a time that the clocks leave out is as much
// behind the gap as it is behind the gap's beginning.
func WallTime(shown time.Time, zone *time.Location) time.Time {
	const day = 24 * time.Hour // no zone changes twice in two days
	before, after := Offset(shown.Add(-day), zone), Offset(shown.Add(day), zone)
	for _, offset := range []time.Duration{before, after} {
		if moment := shown.Add(-offset); Offset(moment, zone) == offset {
			return moment
		}
	}
	return shown.Add(-before)
}

// Offset is how far the clocks of a zone are ahead of UTC at a moment.
func Offset(t time.Time, zone *time.Location) time.Duration {
	_, seconds := t.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
