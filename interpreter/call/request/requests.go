package request

import (
	"bytes"
	"slices"
)

// Requests are the requests of a call: the one at hand, and what identifies all that it has made.
// Part of the state of a call; kept in workflow history.
type Requests struct {
	Request Request      `json:"request"`
	Seen    Fingerprints `json:"seen,omitempty"` // of requests made
}

// Restarted are the requests of a call that begins again. The origin stays, or a page could
// send the first request elsewhere.
func (r *Requests) Restarted() Requests { return Requests{Request: Request{Origin: r.Request.Origin}} }

// Use makes a request the one at hand.
func (r *Requests) Use(request Request) { r.Request = request }

// Leave drops the first fingerprints, which the host has that the call goes to, and returns
// how many bytes they are.
func (r *Requests) Leave(host Fingerprints) int {
	known := min(len(host), len(r.Seen)) // a call that has ended has none
	r.Seen = r.Seen[known:]
	return known
}

// Prepend puts fingerprints before the ones that were made since.
func (r *Requests) Prepend(before Fingerprints) { r.Seen = slices.Concat(before, r.Seen) }

// Fingerprints are the concatenated fingerprints of a call's requests: compact, because a call
// of 10,000 pages carries them along.
type Fingerprints []byte

// fingerprintSize is 64 bits: enough to distinguish the requests of one call.
const fingerprintSize = 8

func (f Fingerprints) hasPrint(print Fingerprints) bool {
	for at := 0; at+fingerprintSize <= len(f); at += fingerprintSize {
		if bytes.Equal(f[at:at+fingerprintSize], print) {
			return true
		}
	}
	return false
}
