package call

import (
	"bytes"
)

// Fingerprints are those of the requests that a call has made, one behind the
// other: a call of 10,000 pages takes them along again and again. Kept with
// State.
type Fingerprints []byte

// fingerprintSize is 64 bits: enough to distinguish the requests of one call.
const fingerprintSize = 8

func (f Fingerprints) has(print Fingerprints) bool {
	for at := 0; at+fingerprintSize <= len(f); at += fingerprintSize {
		if bytes.Equal(f[at:at+fingerprintSize], print) {
			return true
		}
	}
	return false
}
