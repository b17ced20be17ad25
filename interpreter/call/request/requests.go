package request

import (
	"bytes"
	"slices"
)

// Requests holds the current request of a call and the fingerprints of all that it made. Part of the state of a
// call; kept in workflow history.
type Requests struct {
	Request Request      `json:"request"`
	Seen    Fingerprints `json:"seen,omitempty"` // of requests made
}

// AfterRestart returns the requests of a call that restarts. The origin is kept, or a page could send the first
// request elsewhere.
func (r *Requests) AfterRestart() Requests {
	return Requests{Request: Request{Origin: r.Request.Origin}}
}

// SetCurrent makes a request the current one.
func (r *Requests) SetCurrent(request Request) { r.Request = request }

// DropKnown removes the leading fingerprints that the receiving host already has, and returns their size in bytes.
func (r *Requests) DropKnown(host Fingerprints) int {
	known := min(len(host), len(r.Seen)) // a call that has ended has none
	r.Seen = r.Seen[known:]
	return known
}

// PrependFingerprints inserts fingerprints before those made since.
func (r *Requests) PrependFingerprints(before Fingerprints) { r.Seen = slices.Concat(before, r.Seen) }

// Fingerprints are the concatenated fingerprints of a call's requests: compact, because the state of a call with
// 10,000 pages contains as many.
type Fingerprints []byte

// fingerprintSize is the length of a fingerprint in bytes. 64 bits distinguish the requests of one call.
const fingerprintSize = 8

func (f Fingerprints) hasPrint(print Fingerprints) bool {
	for at := 0; at+fingerprintSize <= len(f); at += fingerprintSize {
		if bytes.Equal(f[at:at+fingerprintSize], print) {
			return true
		}
	}
	return false
}
