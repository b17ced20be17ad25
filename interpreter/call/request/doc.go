// Package request makes the requests of a call. From a step, an iteration or a sink, its scope and the page that is
// due, a Builder makes the input of an attempt.
// source.go says whose requests they are, builder.go makes the first one, that of the next page, and the input
// of each attempt, keys.go the keys that identify them. render.go renders fields, next.go applies the changes of
// next_call, secret.go defers what only an activity may know, and sent.go normalizes what is sent, for the tool
// http and for the check for repeated requests.
package request
