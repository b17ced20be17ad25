package interpreter

import "encoding/json"

// Values sent through Temporal have bounded sizes, so their sizes must be known before.

// EncodedSize returns the size of a value in bytes of JSON, as Temporal's data converter encodes it. It returns 0
// for a value that cannot be encoded; the sender reports that.
func EncodedSize(v any) int {
	size, err := CountEncoded(v)
	if err != nil {
		return 0
	}
	return size
}

// CountEncoded is EncodedSize with an error for values that cannot be encoded.
func CountEncoded(v any) (bytes int, err error) {
	var counter byteCounter
	if err := json.NewEncoder(&counter).Encode(v); err != nil {
		return 0, err
	}
	return int(counter) - len("\n"), nil // an Encoder ends each value with a newline
}

// byteCounter is a writer that only counts bytes.
type byteCounter int

func (c *byteCounter) Write(encoded []byte) (int, error) {
	*c += byteCounter(len(encoded))
	return len(encoded), nil
}
