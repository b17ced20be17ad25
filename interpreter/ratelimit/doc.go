// Package ratelimit implements limits on how often attempts are sent: a Limiter leases slots to workers
// (limiter.go) and calls attempts back that wait elsewhere (away.go); headers.go parses what servers report about
// their own limits.
package ratelimit
