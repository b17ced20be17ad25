package memory

// EstimateJSON is what JSON is thought to take in memory once it is decoded, and
// as JSON again at least.
func EstimateJSON(body []byte) (bytes int64, least int) {
	e := estimateJSON(body)
	return e.bytes, e.least
}
