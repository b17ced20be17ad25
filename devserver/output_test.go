package main

import (
	"bytes"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// watchedOutput keeps what a process printed and wakes whoever waits for it.
type watchedOutput struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func (o *watchedOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.text.Write(p)
	select {
	case o.changed <- struct{}{}:
	default:
	}
	return n, err
}

func (o *watchedOutput) match(pattern *regexp.Regexp) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return pattern.FindStringSubmatch(o.text.String())
}

func (o *watchedOutput) await(t *testing.T, pattern *regexp.Regexp, limit time.Duration) []string {
	t.Helper()
	deadline := time.After(limit)
	for {
		if match := o.match(pattern); match != nil {
			return match
		}
		select {
		case <-o.changed:
		case <-deadline:
			o.mu.Lock()
			defer o.mu.Unlock()
			require.FailNow(t, "the process did not announce itself", o.text.String())
		}
	}
}
