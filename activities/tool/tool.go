// Package tool is the contract between tools and the code that makes their attempts: what a
// tool implements, what it gets, how it reads its fields, and how it fails. Each tool has its
// own package, which imports this one and no other tool.
package tool

import (
	"context"

	"reprise/interpreter"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// Tool is something a step can call. One value serves all runs of a worker, so it must be safe
// for concurrent use and must not carry anything from one attempt to the next except pools of
// connections. A tool that holds pools or files is also an io.Closer.
type Tool interface {
	// Spec describes the tool's fields, for validation and for
	// docs/reference/tools.md. It needs no resources and always returns the same value.
	Spec() playbook.ToolSpec

	// Run makes one attempt, and never a second one: the policies of the
	// playbook own every retry.
	//
	// Success: the data is canonical (expression.Canonical) and so survives a
	// trip through JSON unchanged.
	//
	// Failure: an *[Error] says kind and class; every other error becomes kind tool and class
	// retryable. Messages are for the author of the playbook: they say what was attempted and
	// hold no secret, which means no password, no Authorization header and no query of a URL.
	// Secrets of the connection that they repeat are masked afterwards; a tool that fetches a
	// secret of its own adds it to Resources.Secrets.
	//
	// Cancellation: ctx ends when the attempt's time is up, when the run is cancelled and when
	// the worker stops. Run then stops what it started, processes and requests included, and
	// returns ctx's error or an error that wraps it; the caller distinguishes the three cases.
	// A Run that takes longer than [StopGrace] to return is abandoned.
	//
	// Fields that are not in Spec are ignored; validation has refused them.
	Run(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error)
}

// Writer is a tool that can be a sink. Write obeys the contract of Run and is delivered at
// least once: if its OperationKey was written before, it changes nothing and succeeds. The rows
// to write come from in.Rows.
type Writer interface {
	Tool
	Write(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error)
}

// Ledger is a Writer that can note, in the transaction of a write, how the call
// continues that writes (docs/concepts/written-once.md#repeated-writes).
type Ledger interface {
	Writer

	// RecordsWrite reports whether Write notes in.Note. It does not read in.Note, and
	// needs no resources.
	//
	// Write then does one of four things, in one transaction: it writes and
	// notes; it writes nothing and gives what was noted before for this write of
	// the call as ToolResult.Noted; it writes nothing and says with
	// ToolResult.Unnotable that the destination takes no notes; or it fails.
	RecordsWrite(in interpreter.ToolInput) bool

	// RecallNotes gives the notes of the call in.Note.Call whose Written is larger than
	// in.Note.Written, in the order of Written. in has the fields and auth of a
	// write and nothing to write. A destination that was never written to has
	// none, and is not made.
	RecallNotes(ctx context.Context, in interpreter.ToolInput) ([]interpreter.LedgerEntry, error)

	// ForgetNotes drops the notes of calls, by their keys. With again, only their contents are
	// dropped: a repeated write still finds that it was made, but has nothing to continue from.
	// in is as for Recall.
	ForgetNotes(ctx context.Context, in interpreter.ToolInput, calls []string, again bool) error
}

// StateStore is a Ledger that keeps states between runs, and moves them in the transaction of
// the rows (docs/concepts/state.md#what-a-run-reads). Its Write honours in.State: in one transaction
// it checks that the call holds the state, leaves out the rows that it knows, writes the
// others, notes those that may come again, and moves the watermark. A write that the ledger
// knows is done, whoever holds the state.
//
// In all of these in has the fields and auth of a write and nothing to write. An error is one
// of the destination, such as that it is away.
type StateStore interface {
	Ledger

	// ClaimState makes the call the holder of the state, or says which call holds it.
	ClaimState(ctx context.Context, in interpreter.ToolInput, claim incremental.Claim) (incremental.ClaimedState, error)

	// MoveState moves a watermark without writing rows.
	MoveState(ctx context.Context, in interpreter.ToolInput, write incremental.StateWrite) error

	// States returns the states whose names begin with the prefix, in the order of their names.
	// It creates nothing: a destination without states returns none.
	States(ctx context.Context, in interpreter.ToolInput, prefix string) ([]incremental.State, error)

	// SetState changes a state on behalf of a person. change.To is the new watermark; zero
	// forgets the state and the rows that it knows. Afterwards no call holds it.
	SetState(ctx context.Context, in interpreter.ToolInput, change incremental.StateChange) error

	// RemoveStates forgets states as SetState does, in one transaction, unless they have been used since they were
	// listed. It returns the names of those that it has forgotten.
	RemoveStates(ctx context.Context, in interpreter.ToolInput, removal incremental.Removal) ([]string, error)

	// StateHistory returns the changes of a state, the oldest first. All moves of one call
	// count as one change.
	StateHistory(ctx context.Context, in interpreter.ToolInput, name string) ([]incremental.StateChange, error)
}

// Planner is a Writer to tables that can predict a write.
type Planner interface {
	Writer

	// PlanWrite predicts what the write of in would do to its table. It changes and creates nothing.
	// in.Args and in.Result are nil if the rows are not known yet. The error is the one that
	// the write would return.
	PlanWrite(ctx context.Context, in interpreter.ToolInput) (interpreter.TablePlan, error)
}

// FilePlanner is a Writer to files that can predict a write.
type FilePlanner interface {
	Writer

	// PlanFile predicts what the write of in would do to its file. It changes and creates nothing. The error is the one that the write
	// would return, as far as it is known without rows; what is there is returned with it.
	PlanFile(ctx context.Context, in interpreter.ToolInput) (interpreter.FilePlan, error)
}

// Preparer is a Ledger that can prepare a write while its note is made.
type Preparer interface {
	Ledger

	// Prepare reads what in is to write, without its note and without resources. Write gets it as in.Prepared.
	Prepare(in interpreter.ToolInput) any
}

// Shaper is a tool that applies a sink's shaping of rows itself. Every other tool gets rows
// that are already shaped.
type Shaper interface {
	// ShapesRows marks the tool.
	ShapesRows()
}

// Beginner is a tool that waits before it acts, for a connection or a lock, and
// calls [BeginAttempt] when it has it. Every other tool has begun when it is called.
type Beginner interface {
	// BeginsItself marks the tool.
	BeginsItself()
}
