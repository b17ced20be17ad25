package http

import (
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// leastSkew is the least difference of clocks that counts: answers take time, and their dates have no fractions
	// of seconds.
	leastSkew = 30 * time.Second
	// mostSkew is the largest difference that is corrected: otherwise a server could request signatures for tomorrow.
	mostSkew = 12 * time.Hour
)

// remoteClock is the clock of a server that compares the time of a signature with its own. It is safe for concurrent
// use.
type remoteClock struct{ ahead atomic.Int64 }

// remoteNow estimates the time of the server's clock.
func (c *remoteClock) remoteNow() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// learnDate reads the date of a refusal. It reports whether the clock differs from that by which the request was
// signed.
func (c *remoteClock) learnDate(refusal *http.Response) bool {
	date, err := http.ParseTime(refusal.Header.Get("Date"))
	if err != nil {
		return false
	}
	ahead := time.Until(date)
	if ahead.Abs() < leastSkew || ahead.Abs() > mostSkew {
		ahead = 0
	}
	before := time.Duration(c.ahead.Swap(int64(ahead)))
	return (ahead - before).Abs() >= leastSkew
}
