package interpreter

import (
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/playbook"
)

// Names of the workflow in which a worker determines what a run would do, and of its activity. Both take a
// call.PlanInput and return a PlanAnswer.
const (
	PlanWorkflow = "PlanWorkflow"
	PlanActivity = "plan"
)

// PlanAnswer describes what a run of a playbook would do, if that is known without running it;
// kept in workflow history.
type PlanAnswer struct {
	// Problems is the text of the errors that the worker found in the playbook, "" for none.
	Problems string     `json:"problems,omitempty"`
	Count    int        `json:"count,omitempty"`
	Warnings []string   `json:"warnings,omitempty"`
	Steps    []StepPlan `json:"steps,omitempty"`
}

// StepPlan predicts what a step would do; kept in workflow history.
type StepPlan struct {
	Step string `json:"step"` // for a playbook run by a step, STEP/INNER
	Tool string `json:"tool,omitempty"`
	// Request is the first request, "" if unknown.
	Request string `json:"request,omitempty"`
	// Loop is nil if the step has no loop.
	Loop   *LoopPlan   `json:"loop,omitempty"`
	States []StatePlan `json:"states,omitempty"`
	Sinks  []SinkPlan  `json:"sinks,omitempty"`
	// Sampled says that the first request was made. Unsampled says why not, if that was requested.
	Sampled   bool   `json:"sampled,omitempty"`
	Unsampled string `json:"unsampled,omitempty"`
	// Unknown says what about the step only a run can determine.
	Unknown string `json:"unknown,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Warnings are those of the call, if the sample is everything that it would read.
	Warnings []string `json:"warnings,omitempty"`
}

// LoopPlan describes a loop's elements, as far as they are known; kept in workflow history.
type LoopPlan struct {
	// Size is the number of elements, nil if only a run can determine it.
	Size    *int   `json:"size,omitempty"`
	Shown   int    `json:"shown,omitempty"` // number of elements whose sinks are listed
	Unknown string `json:"unknown,omitempty"`
}

// StatePlan is a state that a step keeps between runs; kept in workflow history.
type StatePlan struct {
	State     string                 `json:"state"`
	KeptBy    string                 `json:"kept_by"` // "temporal", or the tool whose database keeps it
	Type      incremental.CursorType `json:"type"`
	Watermark expression.Value       `json:"watermark"`
	ReadsFrom expression.Value       `json:"reads_from"`        // incremental.value of the run
	MovedAt   time.Time              `json:"moved_at,omitzero"` // when its watermark last changed
	Run       string                 `json:"run,omitempty"`     // the last run that claimed it
	Table     string                 `json:"table,omitempty"`   // as in incremental.State
	Emptied   bool                   `json:"emptied,omitempty"` // its table has lost all loaded rows
	// Holders lists the workflow IDs of the runs that hold the key, and OnConflict what happens to another run.
	Holders    []string            `json:"holders,omitempty"`
	OnConflict playbook.OnConflict `json:"on_conflict"`
	Problem    string              `json:"problem,omitempty"`
}

// SinkPlan predicts what a sink would do; kept in workflow history.
type SinkPlan struct {
	Place string `json:"place"` // within the playbook
	Tool  string `json:"tool"`
	Auth  string `json:"auth,omitempty"` // name of its connection
	// Target is the sink's destination, as written in the playbook; Table is what it would do to a table, File to a file or
	// to a folder of files.
	Target string     `json:"target,omitempty"`
	Table  *TablePlan `json:"table,omitempty"`
	File   *FilePlan  `json:"file,omitempty"`
	// Element is the element of the loop, if the target depends on it.
	Element expression.Value `json:"element,omitzero"`
	// Attempts is how often a table sink without its own retry tries a write that fails as retryable; 0 for other
	// sinks.
	Attempts int `json:"attempts,omitempty"`
	// Unknown says what cannot be predicted without a run, and why.
	Unknown string `json:"unknown,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// FilePlan predicts what a write would do to a file, or to a folder of files that manifests name, in its present state; kept in workflow
// history.
type FilePlan struct {
	Mode        string `json:"mode"` // append or overwrite
	Format      string `json:"format"`
	Compression string `json:"compression,omitempty"`
	// Exists says that the file is there, or that the folder has a manifest. Bytes is the size of the file, or of all files of the manifest.
	Exists bool  `json:"exists"`
	Bytes  int64 `json:"bytes,omitempty"`
	// InFolder says that rows become files of a folder. Manifest is the number of its last manifest, which names Files files with Rows rows; the
	// next one is that of a run, unless another run writes before it.
	InFolder bool  `json:"in_folder,omitempty"`
	Manifest int   `json:"manifest,omitempty"`
	Files    int   `json:"files,omitempty"`
	Rows     int64 `json:"rows,omitempty"`
	// ByWrite says that each write makes a file and a manifest, because rows are not staged until the call or loop ends.
	ByWrite bool `json:"by_write,omitempty"`
	// ByRow says that each row goes to a folder of its own value, each with manifests of its own, which are not looked up.
	ByRow bool `json:"by_row,omitempty"`
	// Rejected is the folder for rows that do not fit; "" if such a row fails the write.
	Rejected string `json:"rejected,omitempty"`
}

// ReplacedRows are the rows whose column is at least From and less than To; each is "" if there is no such bound.
type ReplacedRows struct {
	Column string `json:"column"`
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
}

// TablePlan predicts what a write would do to a table in its present state; kept in workflow history.
type TablePlan struct {
	Name string `json:"name"`
	// Qualified is the canonical name of the table in its database, the same for each spelling; "" if it was not
	// looked up.
	Qualified string   `json:"qualified,omitempty"`
	Exists    bool     `json:"exists"`
	Empty     bool     `json:"empty,omitempty"` // it exists and has no rows
	Mode      string   `json:"mode"`
	Key       []string `json:"key,omitempty"`
	// ReplaceWhere bounds the rows that mode replace replaces, nil for all rows.
	ReplaceWhere *ReplacedRows `json:"replace_where,omitempty"`
	// MaxDelete is the share of the table that delete_missing may delete, nil if it deletes nothing.
	MaxDelete *float64 `json:"max_delete,omitempty"`
	// MadeBy is the step that creates a missing table by a statement, so that the sink would not create it.
	MadeBy string `json:"made_by,omitempty"`
	// NewFile says that the database file would be created.
	NewFile bool `json:"new_file,omitempty"`
	// DDL are the statements that would change the table, in order.
	DDL []DDL `json:"ddl,omitempty"`
	// FromRows says that further changes depend on rows that were not read: all of them, or those beyond a sample.
	FromRows bool `json:"from_rows,omitempty"`
	// Rows is the number of sampled rows, nil without a sample. LeftOut counts those that the schema contract
	// leaves out.
	Rows     *int       `json:"rows,omitempty"`
	LeftOut  *RowCounts `json:"left_out,omitempty"`
	Rejected string     `json:"rejected,omitempty"` // table for rows that the database rejects
	// Children are the tables for lists in the rows.
	Children []TablePlan `json:"children,omitempty"`
}

// AllChanges returns the statements that would change the table and its child tables.
func (p *TablePlan) AllChanges() (all []*DDL) {
	for i := range p.DDL {
		all = append(all, &p.DDL[i])
	}
	for i := range p.Children {
		all = append(all, p.Children[i].AllChanges()...)
	}
	return all
}

// EachTable calls do for the plan of the table and for those of its child tables, until it fails.
func (p TablePlan) EachTable(do func(TablePlan) error) error {
	if err := do(p); err != nil {
		return err
	}
	for _, child := range p.Children {
		if err := child.EachTable(do); err != nil {
			return err
		}
	}
	return nil
}
