package playbook

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"
)

// Duration reads a duration as authors write it: a Go duration such as 90s or
// 1m30s, or a number of seconds such as 0.5 (docs/concepts/runs.md).
func (d *decoder) duration(n *yaml.Node, what string) (time.Duration, bool) {
	if !d.literal(n, what) {
		return 0, false
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		seconds, ok := d.number(n, what)
		if !ok {
			return 0, false
		}
		return d.seconds(n, what, seconds)
	case "!!str":
		if length, err := time.ParseDuration(n.Value); err == nil {
			if length < 0 {
				d.errorf(position(n), codeBounds, "%s must not be negative, not %s", what, n.Value)
				return 0, false
			}
			return length, true
		}
	}
	d.errorf(position(n), codeWrongType, "%s must be a duration such as 90s or 1m30s, or a number of seconds, not %s%s",
		what, describeYAML(n), spelledDuration(n.Value))
	return 0, false
}

func (d *decoder) seconds(n *yaml.Node, what string, seconds float64) (time.Duration, bool) {
	const most = float64(math.MaxInt64) / float64(time.Second)
	switch {
	case seconds < 0:
		d.errorf(position(n), codeBounds, "%s must not be negative, not %s", what, n.Value)
	case seconds >= most:
		d.errorf(position(n), codeBounds, "%s must be less than %.0f seconds, not %s", what, most, n.Value)
	default:
		// Rounded, because 0.3 seconds are not quite 300 ms as a float.
		return time.Duration(math.Round(seconds * float64(time.Second))), true
	}
	return 0, false
}

// timeLimit reads a duration that must be longer than nothing; otherwise says what works in its place.
func (d *decoder) timeLimit(n *yaml.Node, what, otherwise string) time.Duration {
	length, ok := d.duration(n, what)
	if ok && length == 0 {
		d.errorf(position(n), codeBounds, "%s must be more than 0%s", what, otherwise)
	}
	return length
}

// longUnit is a number of a unit as people write it.
var longUnit = regexp.MustCompile(`^(\d{1,5}) *(d|days?|w|weeks?|h|hours?|hrs?|m|mins?|minutes?|s|secs?|seconds?)$`)

// spelledDuration completes a message with the duration that was meant.
func spelledDuration(text string) string {
	match := longUnit.FindStringSubmatch(text)
	if match == nil {
		return ""
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		return ""
	}
	unit := match[2][:1]
	switch unit {
	case "d":
		n, unit = n*24, "h"
	case "w":
		n, unit = n*7*24, "h"
	}
	return fmt.Sprintf("; write %d%s", n, unit)
}
