package interpreter

// Staging says of a call of a table sink that its rows are published together with those of the
// whole call or loop: in mode replace, or with delete_missing. Kept in workflow history.
type Staging struct {
	// ID names the call or loop. It is 20 hexadecimal digits, the same for all its writes and
	// for no other visit, run or sink.
	ID string `json:"id"`
	// Part is the index of the iteration that writes, nil where there is no loop, and where a
	// loop is published.
	Part *int `json:"part,omitempty"`
	// Round is how often the part has begun anew (then.restart) before this: rows of its rounds
	// before count no more.
	Round int `json:"round,omitempty"`
	// Do is what the call does; the zero value writes rows.
	Do StagingStep `json:"do,omitempty"`
}

// StagingStep is what a call does to staged rows.
type StagingStep string

const (
	// StagingBegin has what other loads write to the table from now on known when the rows are published: the call or loop is
	// about to read.
	StagingBegin StagingStep = "begin"
	// StagingSettle drops what rounds of the part before Round have staged, and writes nothing.
	StagingSettle StagingStep = "settle"
	// StagingPublish puts all staged rows in place, in one transaction. Without a loop it settles Round too.
	StagingPublish StagingStep = "publish"
)
