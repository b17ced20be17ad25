package payload

import (
	"fmt"
	"strconv"
)

// MaxBytesVariable is the environment variable that bounds single values.
const MaxBytesVariable = "REPRISE_MAX_RESULT_BYTES"

const (
	// DefaultMaxBytes bounds a value where there is a store and nothing else is
	// said.
	DefaultMaxBytes = 64 << 20
	leastMaxBytes   = 256 << 10 // the details of failures need some of it
	// mostMaxBytes bounds what an operator may allow for one value, in bytes. A worker encodes
	// a value in memory several times over, and more would stop it.
	mostMaxBytes = 512 << 20
)

// MaxBytes reads REPRISE_MAX_RESULT_BYTES: how many bytes of JSON a value that
// crosses a boundary may have. lookup is usually os.LookupEnv.
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
