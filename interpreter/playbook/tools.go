package playbook

import (
	"cmp"
	"slices"
	"time"

	"reprise/interpreter/lists"
	"reprise/interpreter/statement"
)

// FieldKind says what a tool field may hold, so that a playbook that gives it
// something else is refused before it runs.
type FieldKind string

// The kinds of fields. Every kind but code and literal may be a template; what
// a template gives is known only at run time and is the tool's to check.
const (
	KindValue     FieldKind = "value"     // anything
	KindText      FieldKind = "text"      // text; numbers and booleans are taken as their text
	KindMap       FieldKind = "map"       // a map
	KindList      FieldKind = "list"      // a list
	KindStatement FieldKind = "statement" // SQL whose templates become bind parameters
	KindCode      FieldKind = "code"      // text that is never a template
	KindLiteral   FieldKind = "literal"   // text or a list of texts without templates, such as a table's name
	KindDuration  FieldKind = "duration"  // seconds, or text such as 90s
	KindNumber    FieldKind = "number"    // a number
	KindBoolean   FieldKind = "boolean"   // true or false
	KindRequest   FieldKind = "request"   // a map with the fields of a request of http
	KindChoice    FieldKind = "choice"    // a word of Enum, or a map with one for each of Keys
	KindSteps     FieldKind = "steps"     // a list of steps, of a playbook of their own
	KindCall      FieldKind = "call"      // a map with tool, one of Enum, and the fields of that tool
)

// Field is one key that a tool understands beside the words of the language.
type Field struct {
	Name     string
	Kind     FieldKind
	Required bool
	Enum     []string // what a text may be; letter case does not matter
	Unquoted bool     // a literal that the tool puts into double quotes, so that it has none
	Default  string   // as the author would write it, for the documentation
	Doc      string   // one sentence
	Keys     []Field  // what a map may have, where that is fixed
	Each     []Field  // what each value of a map may have, a map itself, where the author names the values
	Needs    []Need   // what one of other fields has to be beside it
}

// Need is a value that a field needs another field to have, such as sequence_by mode: upsert.
type Need struct{ Field, Value string }

// ToolSpec is what a playbook may say to a tool. The validation,
// `starter tools` and docs/reference/tools.md are all made from it.
type ToolSpec struct {
	Name    string
	Summary string // one line
	Doc     string // paragraphs
	Fields  []Field
	// RequireOneOf lists groups of fields of which at least one is required, such as
	// {{"statement", "table"}}. A group may include auth and args.
	RequireOneOf [][]string
	// RequireIf lists fields that the value of another field asks for.
	RequireIf []Requirement
	// Secrets are the fields, and args, in which results of secret steps may be
	// used.
	Secrets  []string
	Writes   bool // usable as a sink
	SinkOnly bool // usable as a sink and in no other place
	// Dialect is the SQL of statement fields: postgres, sqlite or "".
	Dialect string
	Example string // YAML of one step
}

// Traits are what a run knows of a tool by its name alone: workflows have no catalogue, and
// what a replay reads must not change with the worker's tools. They are part of the language.
type Traits struct {
	// Timeout bounds one attempt where the step says nothing (docs/concepts/limits.md#of-a-run).
	Timeout time.Duration
	// Dialect is the dialect of the tool's spec.
	Dialect string
	// Keyed tools are sent this key where their method writes and the step does not
	// choose: operation or attempt (docs/concepts/attempts.md#keys).
	Keyed string
	// InWorkflow tools do more than an activity can, such as wait for days, so a
	// workflow makes their attempts and no activity that hosts calls.
	InWorkflow bool
	// Awaits says that an attempt is answered from outside, by people or another
	// system. Timeout bounds that answer; Endless attempts have no bound unless the
	// step sets one.
	Awaits, Endless bool
	// AsksPeople says that what is awaited is the choice of people, who are shown a
	// message, options and a form.
	AsksPeople bool
	// Plays says that an attempt is a run of another playbook.
	Plays bool
	// Requests says that a call has the fields of an HTTP request.
	Requests bool
	// ReadsRows says that a step of the tool may keep a state between runs, which says what
	// of its source is new.
	ReadsRows bool
	// KeepsStates says that a table that the tool writes to can keep the state of a step, in
	// the transaction of its rows.
	KeepsStates bool
	// Moves says that the fields from and to are calls of other tools, whose rows a call of the tool moves.
	Moves bool
	// IntoFile says that a sink writes into the file which the field path names.
	IntoFile bool
}

// PlaybookTool is the tool that runs another playbook as a run of its own.
const PlaybookTool = "playbook"

// NoticeTool is the tool of a notice that names none, and the one whose fields a
// request among fields has.
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

// TraitsOf are the traits of a tool; those of a tool that is not known by name
// are the usual ones.
func TraitsOf(tool string) Traits {
	of := traits[tool]
	if !of.Endless {
		of.Timeout = cmp.Or(of.Timeout, 5*time.Minute)
	}
	return of
}

// Requirement says that a field with a certain value needs another field, such
// as mode: upsert a key.
type Requirement struct {
	Field string
	Value string
	Needs string
}

// Field finds a field by name.
func (s ToolSpec) Field(name string) (Field, bool) {
	i := slices.IndexFunc(s.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return Field{}, false
	}
	return s.Fields[i], true
}

// Needs reports whether a call does without the field at most where it has another.
func (s ToolSpec) Needs(field Field) bool {
	return field.Required ||
		slices.ContainsFunc(s.RequireOneOf, func(group []string) bool { return slices.Contains(group, field.Name) }) ||
		slices.ContainsFunc(s.RequireIf, func(r Requirement) bool { return r.Needs == field.Name })
}

// Described are the fields and, behind each that is a map with fixed keys, those as
// csv.delimiter, or as children.NAME.table where the author names its values, for documents.
func (s ToolSpec) Described() []Field {
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

// FieldNames are the names of all fields in the spec's order.
func (s ToolSpec) FieldNames() []string {
	return lists.Map(s.Fields, func(field Field) string { return field.Name })
}

// Tools is a catalogue of tools. Implementations are safe for concurrent use
// and answer the same for as long as a check runs.
type Tools interface {
	// Spec returns the spec of a tool; false if it does not exist.
	Spec(name string) (ToolSpec, bool)
	// Names are the names of all tools, sorted.
	Names() []string
}

// WorkbookTool is the name under which a step calls an entry of the workbook.
// It is resolved by the interpreter and is in no catalogue.
const WorkbookTool = "workbook"
