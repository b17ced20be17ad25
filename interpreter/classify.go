package interpreter

import (
	"net/http"
	"strings"
)

// ClassifyHTTP returns the class of a response status of 400 or more
// (docs/appendix/errors.md): rate_limited for 429 and for 403 and
// 503 that are Limited, retryable for 408, 425 and the other 5xx, final for the
// rest.
func ClassifyHTTP(status int, limited bool) Class {
	switch {
	case status == http.StatusTooManyRequests:
		return ClassRateLimited
	case limited && (status == http.StatusForbidden || status == http.StatusServiceUnavailable):
		return ClassRateLimited
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status >= 500:
		return ClassRetryable
	}
	return ClassFinal
}

// retryableStates are the SQLSTATE classes that may pass when tried again:
// connection exceptions, transaction rollbacks, insufficient resources and
// operator intervention, and of their states a lock that was not available in time
// (PostgreSQL manual, appendix A).
var retryableStates = []string{"08", "40", "53", "57", "55P03"}

// protocolViolation is 08P01: a statement that takes no parameters was given
// some. It belongs to the connection class and yet is permanent.
const protocolViolation = "08P01"

// ClassifySQLState returns the class of an SQLSTATE code.
func ClassifySQLState(code string) Class {
	if code == protocolViolation {
		return ClassFinal
	}
	for _, prefix := range retryableStates {
		if strings.HasPrefix(code, prefix) {
			return ClassRetryable
		}
	}
	return ClassFinal
}
