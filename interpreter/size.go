package interpreter

import "encoding/json"

// Values that cross a boundary have bounded sizes, so sizes have to be known before.

// EncodedSize is the size of a value in bytes of JSON, as Temporal's data converter
// encodes it. It is 0 for what cannot be encoded: the sender reports that.
func EncodedSize(v any) int {
	size, err := CountEncoded(v)
	if err != nil {
		return 0
	}
	return size
}

// CountEncoded is EncodedSize with the error of what cannot be encoded.
func CountEncoded(v any) (bytes int, err error) {
	var counter byteCounter
	if err := json.NewEncoder(&counter).Encode(v); err != nil {
		return 0, err
	}
	return int(counter) - len("\n"), nil // which an Encoder ends a value with
}

// byteCounter counts what is written to it, and keeps nothing.
type byteCounter int

func (c *byteCounter) Write(encoded []byte) (int, error) {
	*c += byteCounter(len(encoded))
	return len(encoded), nil
}
