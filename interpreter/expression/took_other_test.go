//go:build !linux

package expression

import "time"

// Took is the time that do takes.
func Took(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}
