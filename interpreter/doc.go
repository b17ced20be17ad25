// Package interpreter has the data that travels between workflows, activities and histories, and the rules that
// decide about a run as a whole: which steps start (route.go), what names in expressions mean (scope.go), how a
// loop ends (loop.go), which statuses exist (status.go) and why something waits (reason.go). Package call drives a
// single call, and package retry implements policies.
// The package is pure: values in, decisions out. It reads no clock, does no I/O and starts no goroutine, so that
// a replay makes the same decisions as the original run. Types whose comment says "kept in workflow history" are
// stored by Temporal.
package interpreter
