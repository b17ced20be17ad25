// Package watermark handles, within one call, the state that its step keeps between runs
// (docs/concepts/state.md#what-a-run-reads). The call claims the state before it renders its first request, reads
// the cursors of each page's rows, and moves the watermark: with the write of a page, with the write of its last
// sink, or after it.
// watermark.go has what a call knows of its state, rows.go the cursors of pages, step.go the identity of the
// state, and moves.go when it moves.
package watermark
