package expression

import "time"

// Zone is a time zone by its name, "" for UTC, with the rules that are part of the build: a
// machine's own would give a replay other times.
func Zone(name string) (*time.Location, error) { return zoneOf(name) }

// WallTime is the moment at which the clocks of a zone show a date and time, which is given in
// UTC. Of two such moments it is the earlier one; a time that the clocks leave out is as much
// behind the gap as it is behind the gap's beginning.
func WallTime(shown time.Time, zone *time.Location) time.Time { return wallTime(shown, zone) }

// Offset is how far the clocks of a zone are ahead of UTC at a moment.
func Offset(t time.Time, zone *time.Location) time.Duration { return offsetAt(t, zone) }
