// Package ratelimit has the limits on how often attempts are sent: a Limiter leases turns to
// workers (limiter.go) and calls attempts back that released their slots (away.go); headers.go
// reads what servers say of their own limits.
package ratelimit
