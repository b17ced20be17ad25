// Package wording describes times, states and cursors in words.
package wording

import (
	"time"

	"reprise/interpreter/playbook"
)

// TimeInZone formats a time in a time zone, or in UTC if this machine does not know the zone.
func TimeInZone(at time.Time, zone string) string {
	location, err := time.LoadLocation(zone)
	if err != nil {
		location = time.UTC
	}
	return at.In(location).Format("2006-01-02 15:04:05 MST")
}

// ShortTime formats a duration without units that are 0; "" for no duration.
func ShortTime(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return playbook.DurationText(d)
}
