// Package interpreter has what travels between workflows, activities and histories, and the
// rules that decide about a run as a whole: which steps start (route.go), what names mean
// (scope.go), how a loop ends (loop.go), which statuses exist (status.go) and why something
// waits (reason.go). The machine of one call is package call, and what policies decide is
// package retry.
//
// The package is pure: values in, decisions out. It reads no clock, does no I/O and starts
// no goroutine, so that a replay decides as the first run did. Types whose comment says
// "kept in workflow history" are stored by Temporal.
package interpreter
