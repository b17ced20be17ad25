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

// Sum is the digest in bytes.
func Sum(vs ...any) []byte {
	hasher := sha256.New()
	prefix := make([]byte, 0, 24)
	for _, v := range vs {
		encoded, err := Encode(v)
		if err != nil {
			encoded = []byte(fmt.Sprint(v))
		}
		prefix = append(strconv.AppendInt(prefix[:0], int64(len(encoded)), 10), ':')
		hasher.Write(prefix)
		hasher.Write(encoded)
	}
	return hasher.Sum(make([]byte, 0, sha256.Size))
}
