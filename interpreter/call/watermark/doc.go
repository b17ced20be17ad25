// Package watermark is what one call makes of the state that its step keeps between runs
// (docs/concepts/state.md#what-a-run-reads). The call claims the state before it renders its
// first request, reads the cursors of what each page contributes, and moves the watermark with the
// write of a page, with the write of its last sink, or after it.
//
// watermark.go has what a call knows of its state, rows.go the cursors of pages, step.go which state it is
// and what it is about, and moves.go when it moves.
package watermark
