package playbook

import (
	"cmp"
	"slices"
	"time"

	"reprise/interpreter/lists"
	"reprise/interpreter/statement"
)

// FieldKind is the kind of values of a tool field, so that a playbook with another value is refused before it runs.
type FieldKind string

// The kinds of fields. Values of every kind but code and literal may be templates, whose values are known only at
// run time and must be checked by the tool.
const (
	KindValue     FieldKind = "value"     // anything
	KindText      FieldKind = "text"      // text; numbers and booleans are converted
	KindMap       FieldKind = "map"       // a map
	KindList      FieldKind = "list"      // a list
	KindColumns   FieldKind = "columns"   // a list of names of columns, or a map from names to types, whose words are those of Enum
	KindStatement FieldKind = "statement" // SQL whose templates become bind parameters
	KindCode      FieldKind = "code"      // text that is never a template
	KindLiteral   FieldKind = "literal"   // text or a list of texts without templates, such as the name of a table
	KindDuration  FieldKind = "duration"  // seconds, or text such as 90s
	KindNumber    FieldKind = "number"    // a number
	KindBoolean   FieldKind = "boolean"   // true or false
	KindRequest   FieldKind = "request"   // a map with the fields of a request of http
	KindChoice    FieldKind = "choice"    // a word of Enum, or a map with a value for each of Keys
	KindSteps     FieldKind = "steps"     // a list of steps of a separate playbook
	KindCall      FieldKind = "call"      // a map with tool, one of Enum, and the fields of that tool
)

// Field is a key that a tool accepts in addition to the words of the language.
type Field struct {
	Name     string
	Kind     FieldKind
	Required bool
	Enum     []string // allowed texts, regardless of case
	Unquoted bool     // a literal that the tool puts in double quotes, so that it must not contain any
	Default  string   // as the author would write it, for the documentation
	Doc      string   // one sentence
	Keys     []Field  // allowed keys of a map, if they are fixed
	Each     []Field  // allowed keys of each value, itself a map, in a map whose keys the author chooses
	Needs    []Need   // alternatives, of which one must hold for the field to be allowed
}

// Need is a value that another field must have, such as mode: upsert for sequence_by.
type Need struct{ Field, Value string }

// ToolSpec describes what a playbook may configure for a tool. The validation, `starter tools` and
// docs/reference/tools.md are all generated from it.
type ToolSpec struct {
	Name    string
	Summary string // one line
	Doc     string // paragraphs
	Fields  []Field
	// RequireOneOf lists groups of fields of which at least one is required, such as
	// {{"statement", "table"}}. A group may include auth and args.
	RequireOneOf [][]string
	// RequireIf lists fields that are required because of the value of another field.
	RequireIf []Requirement
	// Secrets are the fields, possibly including args, in which results of secret steps may be used.
	Secrets  []string
	Writes   bool // usable as a sink
	SinkOnly bool // usable only as a sink
	// Dialect is the SQL of statement fields: postgres, sqlite or "".
	Dialect string
	Example string // YAML of one step
}

// Traits are what a run knows about a tool from its name alone: workflows have no catalogue, and a replay must not
// depend on the worker's tools. They are part of the language.
type Traits struct {
	// Timeout is the default time limit of one attempt (docs/concepts/limits.md#limits-of-a-run).
	Timeout time.Duration
	// Dialect is the dialect of the tool's spec.
	Dialect string
	// Keyed is the key, operation or attempt, that a tool sends if its method writes and the step does not choose
	// (docs/concepts/keys.md).
	Keyed string
	// InWorkflow says that a workflow makes the attempts, not an activity that hosts calls, because the tool does
	// more than an activity can, such as wait for days.
	InWorkflow bool
	// Awaits says that people or another system answer an attempt from outside, within Timeout; Endless attempts
	// have no limit unless the step sets one.
	Awaits, Endless bool
	// AsksPeople says that the answer is a choice of people, who are shown a message, options and a form.
	AsksPeople bool
	// Plays says that an attempt is a run of another playbook.
	Plays bool
	// Requests says that a call has the fields of an HTTP request.
	Requests bool
	// ReadsRows says that a step of the tool may keep a state between runs, which determines which rows of its
	// source are new.
	ReadsRows bool
	// KeepsStates says that a table written by the tool can keep the state of a step, in the transaction of its
	// rows.
	KeepsStates bool
	// Moves says that the fields from and to are calls of other tools, between which the tool transfers rows.
	Moves bool
	// IntoFile says that a sink writes the file at the field path.
	IntoFile bool
}

// PlaybookTool is the tool that runs another playbook as a separate run.
const PlaybookTool = "playbook"

// NoticeTool is the default tool of a notice, and the one whose fields requests among fields have.
const NoticeTool = "http"

var traits = map[string]Traits{
	"approval":   {InWorkflow: true, Awaits: true, Endless: true, Keyed: "attempt", AsksPeople: true},
	"file":       {IntoFile: true, ReadsRows: true},
	NoticeTool:   {Timeout: 30 * time.Second, Keyed: "operation", Requests: true, ReadsRows: true},
	PlaybookTool: {InWorkflow: true, Endless: true, Plays: true},
	"postgres":   {Dialect: string(statement.Postgres), ReadsRows: true, KeepsStates: true},
	"python":     {ReadsRows: true},
	"sqlite":     {Dialect: string(statement.SQLite), ReadsRows: true, KeepsStates: true},
	"transfer":   {Timeout: 6 * time.Hour, Moves: true},
	"webhook":    {InWorkflow: true, Awaits: true, Keyed: "attempt"},
}

// TraitsOf returns the traits of a tool; the default ones for a tool without an entry.
func TraitsOf(tool string) Traits {
	of := traits[tool]
	if !of.Endless {
		of.Timeout = cmp.Or(of.Timeout, 5*time.Minute)
	}
	return of
}

// Requirement says that a field with a certain value requires another field, such as mode: upsert requires key.
type Requirement struct {
	Field string
	Value string
	Needs string
}

// Field returns a field by name.
func (s ToolSpec) Field(name string) (Field, bool) {
	i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return s.Fields[i], true
}

// MayRequire reports whether a call may require the field, always or depending on other fields.
func (s ToolSpec) MayRequire(field Field) bool {
	return field.Required ||
		slices.ContainsFunc(s.RequireOneOf, func(group []string) bool { return slices.Contains(group, field.Name) }) ||
		slices.ContainsFunc(s.RequireIf, func(r Requirement) bool { return r.Needs == field.Name })
}

// DescribedFields returns the fields for documents; a map with fixed keys is followed by these, as in csv.delimiter, or
// as in children.NAME.table if the author chooses its keys.
func (s ToolSpec) DescribedFields() []Field {
	var all []Field
	for _, field := range s.Fields {
		all = append(all, field)
		for _, key := range field.Keys {
			key.Name = field.Name + "." + key.Name
			all = append(all, key)
		}
		for _, key := range field.Each {
			key.Name = field.Name + ".NAME." + key.Name
			all = append(all, key)
		}
	}
	return all
}

// FieldNames returns the names of all fields in the spec's order.
func (s ToolSpec) FieldNames() []string {
	return lists.Map(s.Fields, func(field Field) string { return field.Name })
}

// Tools is a catalogue of tools. Implementations are safe for concurrent use, and return the same during a check.
type Tools interface {
	// Spec returns the spec of a tool; false if it does not exist.
	Spec(name string) (ToolSpec, bool)
	// Names returns the names of all tools, sorted.
	Names() []string
}

// WorkbookTool is the name under which a step calls an entry of the workbook. The interpreter resolves it; it is in
// no catalogue.
const WorkbookTool = "workbook"
