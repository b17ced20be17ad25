package host

import (
	"fmt"
	"os"

	"reprise/activities"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// RateLimits are the operator's, of a YAML file: a map of keys to limits in the
// words of rate_limit. Path "" is none.
func RateLimits(path string) (activities.RateLimits, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the rate limits: %w", err)
	}
	file := source.NewFile(path, data)
	limits, found := playbook.OwnedLimits(file)
	if problems := found.Errors(); len(problems) > 0 {
		return nil, fmt.Errorf("read the rate limits: %s", file.FormatAll(problems[:1]))
	}
	return limits, nil
}
