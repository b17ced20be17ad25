package interpreter

// Staging says that the rows of a sink are published together with all others of the call or loop: in mode replace,
// with delete_missing, or below a connection. Kept in workflow history.
type Staging struct {
	// ID identifies the call or loop: 20 hexadecimal digits, the same for all its writes and different for every
	// other visit, run and sink.
	ID string `json:"id"`
	// Part is the index of the writing iteration; nil without a loop, and when a loop is published.
	Part *int `json:"part,omitempty"`
	// Round is the number of restarts of the part (then.restart): rows of earlier rounds are discarded.
	Round int `json:"round,omitempty"`
	// Lap distinguishes the runs of one identity (RunInfo.WholeLap): of files, what a later one stages for a part
	// takes the place of what an earlier one has staged and not published.
	Lap string `json:"lap,omitempty"`
	// Do is the staging step; the zero value writes rows.
	Do StagingStep `json:"do,omitempty"`
}

// StagingStep is an operation on staged rows.
type StagingStep string

const (
	// StagingBegin records that the call or loop is about to read, so that what other loads write to the table from
	// now on is known when its rows are published.
	StagingBegin StagingStep = "begin"
	// StagingSettle drops the rows staged by earlier rounds of the part, and writes nothing.
	StagingSettle StagingStep = "settle"
	// StagingPublish publishes all staged rows in one transaction. Without a loop it also does what StagingSettle
	// does.
	StagingPublish StagingStep = "publish"
)
