package steer

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// TuningText describes people's settings for a step.
func TuningText(tuning interpreter.Tuning) string {
	var parts []string
	if tuning.MaxConcurrency > 0 {
		parts = append(parts, fmt.Sprintf("%s=%d", KeyConcurrency, tuning.MaxConcurrency))
	}
	if rate := tuning.Rate; rate != nil {
		parts = append(parts, fmt.Sprintf("%s=%d/%s", KeyRate, rate.Requests, perText(rate.PerSeconds)))
	}
	return strings.Join(parts, " ")
}

// perText returns the period of a rate.
func perText(seconds float64) string {
	switch seconds {
	case 1:
		return "s"
	case 60:
		return "m"
	case 3600:
		return "h"
	}
	return time.Duration(seconds * float64(time.Second)).String()
}

// ParseTuning parses settings such as max_concurrency=5 and rate_limit=20/s.
func ParseTuning(words []string) (interpreter.Tuning, error) {
	var tuning interpreter.Tuning
	if len(words) == 0 {
		return tuning, fmt.Errorf("nothing to set; give %s=N or %s=20/s", KeyConcurrency, KeyRate)
	}
	given := map[string]bool{}
	for _, word := range words {
		key, value, found := strings.Cut(word, "=")
		if !found {
			return tuning, fmt.Errorf("%q is not KEY=VALUE, such as %s=5 or %s=20/s", word, KeyConcurrency, KeyRate)
		}
		if key != KeyConcurrency && key != KeyRate {
			return tuning, unknownKey(key)
		}
		if given[key] {
			return tuning, fmt.Errorf("%s is given twice", key)
		}
		given[key] = true
		if key == KeyRate {
			rate, err := parseRate(value)
			if err != nil {
				return tuning, err
			}
			tuning.Rate = &rate
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > playbook.MaxConcurrencyLimit {
			return tuning, fmt.Errorf("%s=%s: expected a number from 1 to %d", key, value, playbook.MaxConcurrencyLimit)
		}
		tuning.MaxConcurrency = n
	}
	return tuning, nil
}

// unknownKey returns the error for an unknown setting.
func unknownKey(key string) error {
	known := []string{KeyConcurrency, KeyRate}
	if near := expression.Suggest(key, known); near != "" {
		return fmt.Errorf("the key %q is unknown; did you mean %q?", key, near)
	}
	return fmt.Errorf("the key %q is unknown, expected one of %s", key, strings.Join(known, ", "))
}

// Settings of a step.
const (
	KeyConcurrency = "max_concurrency"
	KeyRate        = "rate_limit"
)

// longestRate is the longest period of a rate.
const longestRate = 24 * time.Hour

// parseRate parses a rate such as 20/s, 100/m or 5/30s.
func parseRate(text string) (interpreter.Rate, error) {
	count, per, found := strings.Cut(text, "/")
	if per != "" && !strings.ContainsAny(per[:1], "0123456789") {
		per = "1" + per
	}
	requests, err := strconv.Atoi(count)
	period, unreadable := time.ParseDuration(per)
	if !found || err != nil || unreadable != nil || requests < 1 || period <= 0 || period > longestRate {
		return interpreter.Rate{}, fmt.Errorf("%s=%s: expected attempts per time of at most a day, such as 20/s, 100/m, 5/h or 10/30s", KeyRate, text)
	}
	return interpreter.Rate{Requests: requests, PerSeconds: period.Seconds()}, nil
}
