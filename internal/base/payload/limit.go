package payload

import (
	"fmt"
	"strconv"
)

// MaxBytesVariable is the environment variable that limits the size of single values.
const MaxBytesVariable = "REPRISE_MAX_RESULT_BYTES"

const (
	// DefaultMaxBytes is the default limit for a value.
	DefaultMaxBytes = 64 << 20
	leastMaxBytes   = 256 << 10 // the details of failures need some of it
	// mostMaxBytes bounds the configurable limit for one value, in bytes. A worker holds several encodings of a value
	// in memory, and larger ones would stop it.
	mostMaxBytes = 512 << 20
)

// MaxBytes returns REPRISE_MAX_RESULT_BYTES: the limit, in bytes of JSON, for a value between workflows, activities
// and clients. lookup is usually os.LookupEnv.
func MaxBytes(lookup func(string) (string, bool)) (int, error) {
	text, set := lookup(MaxBytesVariable)
	if !set || text == "" {
		return DefaultMaxBytes, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < leastMaxBytes || n > mostMaxBytes {
		return 0, fmt.Errorf("%s is %q; it must be a number of bytes from %d to %d",
			MaxBytesVariable, text, leastMaxBytes, mostMaxBytes)
	}
	return n, nil
}
