package interpreter

// Staging says that a table sink's rows are published together with those of the whole call or
// loop: in mode replace, or with delete_missing. Kept in workflow history.
type Staging struct {
	// ID names the call or loop. It is 20 hexadecimal digits, the same for all its writes and
	// for no other visit, run or sink.
	ID string `json:"id"`
	// Part is the index of the writing iteration, nil without a loop, and for publishing a
	// loop.
	Part *int `json:"part,omitempty"`
	// Round is how often the part has restarted (then.restart): rows of earlier rounds are
	// discarded.
	Round int `json:"round,omitempty"`
	// Do is the step of staging that the call makes; the zero value writes rows.
	Do StagingStep `json:"do,omitempty"`
}

// StagingStep is what a call does to staged rows.
type StagingStep string

const (
	// StagingBegin records that the call or loop is about to read, so that what other loads write to the table from
	// now on is known when its rows are published.
	StagingBegin StagingStep = "begin"
	// StagingSettle drops what rounds of the part before Round have staged, and writes nothing.
	StagingSettle StagingStep = "settle"
	// StagingPublish puts all staged rows in place, in one transaction. Without a loop it settles Round too.
	StagingPublish StagingStep = "publish"
)
