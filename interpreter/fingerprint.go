package interpreter

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Fingerprints are those of the requests that a call has made, one behind the
// other: a call of 10,000 pages takes them along again and again. Kept with
// CallState.
type Fingerprints []byte

// fingerprintSize is 64 bits: enough to tell the requests of one call apart.
const fingerprintSize = 8

func (f Fingerprints) has(print Fingerprints) bool {
	for at := 0; at+fingerprintSize <= len(f); at += fingerprintSize {
		if bytes.Equal(f[at:at+fingerprintSize], print) {
			return true
		}
	}
	return false
}

// UnmarshalJSON reads what encoding/json writes, a text in base64, and the form
// of older histories, a list of texts in hexadecimal.
func (f *Fingerprints) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		decoded, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return fmt.Errorf("decode fingerprints: %w", err)
		}
		*f = decoded
		return nil
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return fmt.Errorf("decode fingerprints: %w", err)
	}
	*f = nil
	for _, text := range list {
		print, err := hex.DecodeString(text)
		if err != nil {
			return fmt.Errorf("decode fingerprints: %w", err)
		}
		*f = append(*f, print...)
	}
	return nil
}
