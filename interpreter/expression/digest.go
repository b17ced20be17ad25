package expression

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
)

// Hash is a short digest of values, for comparisons within one call.
func Hash(vs ...any) string { return Digest(vs...)[:16] }

// Digest is a stable digest of values.
func Digest(vs ...any) string { return hex.EncodeToString(Sum(vs...)) }

// clearID is how much of an ID stands in clear, in bytes. Temporal accepts 1,000.
const clearID = 900

// BoundedID is a workflow ID that Temporal accepts, whatever the length of the one that is
// given: different IDs stay different.
func BoundedID(id string) string {
	if len(id) <= clearID {
		return id
	}
	digest := sha256.Sum256([]byte(id))
	return id[:clearID] + "~" + hex.EncodeToString(digest[:16])
}

// Sum is the digest in bytes.
func Sum(vs ...any) []byte {
	hasher := sha256.New()
	prefix := make([]byte, 0, 24)
	for _, v := range vs {
		add := func(encoded []byte) {
			prefix = append(strconv.AppendInt(prefix[:0], int64(len(encoded)), 10), ':')
			hasher.Write(prefix)
			hasher.Write(encoded)
		}
		if withEncoded(v, add) != nil {
			add([]byte(fmt.Sprint(v)))
		}
	}
	return hasher.Sum(make([]byte, 0, sha256.Size))
}
