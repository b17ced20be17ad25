package interpreter

import (
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// Names of the workflow that has a worker find out what a run would do, and of its activity. Both
// accept a call.PlanInput and give a PlanAnswer.
const (
	PlanWorkflow = "PlanWorkflow"
	PlanActivity = "plan"
)

// PlanAnswer describes what a run of a playbook would do, if that is known without running it;
// kept in workflow history.
type PlanAnswer struct {
	// Problems is the text of what the worker has found wrong with the playbook, "" for nothing.
	Problems string     `json:"problems,omitempty"`
	Count    int        `json:"count,omitempty"`
	Warnings []string   `json:"warnings,omitempty"`
	Steps    []StepPlan `json:"steps,omitempty"`
}

// StepPlan predicts what a step would do; kept in workflow history.
type StepPlan struct {
	Step string `json:"step"` // of a playbook that a step runs, STEP/INNER
	Tool string `json:"tool,omitempty"`
	// Request is the first one, "" where that is not known.
	Request string `json:"request,omitempty"`
	// Loop is nil for a step without one.
	Loop   *LoopPlan   `json:"loop,omitempty"`
	States []StatePlan `json:"states,omitempty"`
	Sinks  []SinkPlan  `json:"sinks,omitempty"`
	// Sampled says that the first request was made. Unsampled says why not, where it was to be made.
	Sampled   bool   `json:"sampled,omitempty"`
	Unsampled string `json:"unsampled,omitempty"`
	// Unknown says what of the step only a run knows.
	Unknown string `json:"unknown,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Warnings are the warnings of the call, where the sample is all that it would read.
	Warnings []string `json:"warnings,omitempty"`
}

// LoopPlan describes a loop's elements, as far as known; kept in workflow history.
type LoopPlan struct {
	// Size is how many there are, nil where only a run knows.
	Size    *int   `json:"size,omitempty"`
	Shown   int    `json:"shown,omitempty"` // elements whose sinks are listed
	Unknown string `json:"unknown,omitempty"`
}

// StatePlan is a state that a step keeps between runs; kept in workflow history.
type StatePlan struct {
	State     string                 `json:"state"`
	KeptBy    string                 `json:"kept_by"`
	Type      incremental.CursorType `json:"type"`
	Watermark expression.Value       `json:"watermark"`
	ReadsFrom expression.Value       `json:"reads_from"` // incremental.value of the run
	MovedAt   time.Time              `json:"moved_at,omitzero"`
	Run       string                 `json:"run,omitempty"`     // that claimed it last
	Table     string                 `json:"table,omitempty"`   // that of incremental.State
	Emptied   bool                   `json:"emptied,omitempty"` // its table has no rows because of what was loaded
	// Holders lists the workflow IDs of the runs that hold the key, and OnConflict says what happens to
	// another run.
	Holders    []string            `json:"holders,omitempty"`
	OnConflict playbook.OnConflict `json:"on_conflict"`
	Problem    string              `json:"problem,omitempty"`
}

// SinkPlan predicts what a sink would do; kept in workflow history.
type SinkPlan struct {
	Place string `json:"place"` // within the playbook
	Tool  string `json:"tool"`
	Auth  string `json:"auth,omitempty"`
	// Target is what the sink writes to, as written in the playbook; Table is what it would do to
	// a table.
	Target string     `json:"target,omitempty"`
	Table  *TablePlan `json:"table,omitempty"`
	// Element is the element of the loop, where the target depends on it.
	Element expression.Value `json:"element,omitzero"`
	// Attempts is how many a table sink makes of a write without a retry of its own, while they fail as retryable; 0 for other sinks.
	Attempts int `json:"attempts,omitempty"`
	// Unknown says what cannot be predicted without a run, and why.
	Unknown string `json:"unknown,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// ReplacedRows are the rows whose column is at least From, and less than To, each "" for no bound.
type ReplacedRows struct {
	Column string `json:"column"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
}

// TablePlan predicts what a write would do to a table in its present form; kept in workflow
// history.
type TablePlan struct {
	Name string `json:"name"`
	// Qualified is the table as its database names it, the same for each spelling; "" where that was not looked up.
	Qualified string   `json:"qualified,omitempty"`
	Exists    bool     `json:"exists"`
	Empty     bool     `json:"empty,omitempty"` // it exists, and has no rows
	Mode      string   `json:"mode"`
	Key       []string `json:"key,omitempty"`
	// ReplaceWhere bounds what mode replace replaces, nil where that is all rows.
	ReplaceWhere *ReplacedRows `json:"replace_where,omitempty"`
	// MaxDelete is the share of the table that delete_missing may delete, nil where nothing is.
	MaxDelete *float64 `json:"max_delete,omitempty"`
	// MadeBy is the step that makes the table by a statement, where it does not exist; the sink would not make it.
	MadeBy string `json:"made_by,omitempty"`
	// NewFile says that the file of the database would be made.
	NewFile bool `json:"new_file,omitempty"`
	// DDL are the statements that would change the table, in order.
	DDL []DDL `json:"ddl,omitempty"`
	// FromRows says that more of the table follows from rows that were not read: all of them, or
	// those behind a sample.
	FromRows bool `json:"from_rows,omitempty"`
	// Rows is the number of sampled rows, nil without a sample. LeftOut counts what the contract leaves out of them.
	Rows     *int       `json:"rows,omitempty"`
	LeftOut  *RowCounts `json:"left_out,omitempty"`
	Rejected string     `json:"rejected,omitempty"` // table of rows that the database refuses
	// Children are the tables for lists in the rows.
	Children []TablePlan `json:"children,omitempty"`
}

// Changes are the statements that would change the table, and those for lists in its rows.
func (p *TablePlan) Changes() (all []*DDL) {
	for i := range p.DDL {
		all = append(all, &p.DDL[i])
	}
	for i := range p.Children {
		all = append(all, p.Children[i].Changes()...)
	}
	return all
}

// Each does something with the plan of a table and with those of the tables for lists in its rows, until it fails.
func (p TablePlan) Each(do func(TablePlan) error) error {
	if err := do(p); err != nil {
		return err
	}
	for _, child := range p.Children {
		if err := child.Each(do); err != nil {
			return err
		}
	}
	return nil
}
