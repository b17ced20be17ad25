package tooltest

import (
	"compress/gzip"
	"io"
	"strings"
)

// Gzip is a text as gzip.
func Gzip(text string) string {
	var b strings.Builder
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}
