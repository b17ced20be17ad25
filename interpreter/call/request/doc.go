// Package request makes the requests of a call: of a step, an iteration or a sink, its scope
// and the page that is due, a Builder makes the input of an attempt.
//
// source.go says whose requests they are, builder.go makes the first one, the next page's and
// the input of each attempt, keys.go the keys that name them. render.go renders fields, next.go
// lays over them what next_call changes, secret.go leaves out what only an activity may know,
// and sent.go says what goes out, for the tool http and for the guard against repetition.
package request
