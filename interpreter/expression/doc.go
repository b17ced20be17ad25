// Package expression evaluates the expressions and templates of the playbook
// language: expr-lang with the Jinja forms that docs/concepts/expressions.md lists.
//
// Every evaluation is deterministic and bounded. It reads no clock, draws no
// random numbers, starts no goroutines and never lets the order of a Go map
// show, so a workflow may call it while it is replayed.
//
// Values are canonical at all times (see [Canonical]): what an expression
// returns is unchanged by a trip through JSON, with whole numbers exact at any
// size. Nobody may change a value in place, because results share structure
// with the data they were taken from.
//
// Work is charged to a [Budget] before it is done. The limits and every charge
// are part of the replay contract: another number in a later build would end
// an old run at another place.
package expression
