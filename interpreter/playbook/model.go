package playbook

import (
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
	"reprise/interpreter/statement"
)

// Playbook is a decoded file. It is immutable once Decode has returned it, and safe for concurrent use; every
// template in it is compiled.
type Playbook struct {
	File        *source.File
	Hash        string // hex SHA-256 of the source bytes and the language version
	APIVersion  string
	Name        string
	Description string
	Labels      map[string]string
	Triggers    []*Trigger
	names       []HeadName // metadata.name and the names of labels
	attestation Attestation
	Schedule    *Schedule      // nil for none
	Timeout     time.Duration  // of the whole run; 0 for none
	Strict      bool           // a failed iteration makes the run at most a partial success
	Concurrency *Concurrency   // nil if runs do not wait for each other
	Partitions  *Partitions    // nil if each run loads everything
	State       string         // replaces Name in the default names of states; "" for Name
	Workload    map[string]any // defaults of the workload, never nil
	WorkloadPos Words          // position of each key of Workload
	Output      *Node          // nil for the result of the step that ended last
	Workbook    []*Action
	Steps       []*Step
	// OnSuccess and OnFailure are notices about the end of the run, Notify those about further events.
	OnSuccess, OnFailure, Notify []*Notice
	// Expect is how long a run may take before it is late; 0 means forever. ExpectPos is its position.
	Expect    time.Duration
	ExpectPos source.Position
	StatePos  source.Position // position of State
	// secrets are the names of the steps whose results are secret.
	secrets []string
	// lent are the lists of policies, and the retries of workbook entries, that steps use.
	lent []*lentList
	// inline is set for a playbook that is part of another one.
	inline *inline
	// Unread are the texts below unknown keys. They may be names that the playbook gives to something.
	Unread []string
}

// Trigger says whose signed deliveries start runs of the playbook.
type Trigger struct {
	Pos     source.Position
	Sender  Sender
	Name    string   // name of the sender; "" for that of the secret
	Secret  string   // name of a connection
	Headers []string // headers that runs receive in addition to those of the sender
	Events  []string // nil for all
	// Identity is the header that distinguishes deliveries whose bodies have no ID; "" if the bodies distinguish
	// them.
	Identity string
	// The following fields describe the signatures of a sender of kind HMAC.
	Header    string
	Prefix    string   // text before the signature
	Algorithm string   // SHA256 or SHA512
	Encoding  string   // Hex or Base64
	Body      string   // BodyJSON, BodyForm or BodyText
	ID        []string // path to the ID of a delivery in its body; nil if the whole body identifies it
}

// HeadName is a name in metadata, with its position.
type HeadName struct {
	What, Name string
	Pos        source.Position
}

// Words has the position of every key that the author wrote in a map, for checks that need to know whether and
// where a word is.
type Words map[string]source.Position

// Has reports whether the author wrote the word.
func (w Words) Has(word string) bool { _, ok := w[word]; return ok }

// firstOf returns the first of some words that the author wrote, "" for none.
func (w Words) firstOf(some []string) string { return lists.First(some, w.Has) }

// Place returns the word's position, or fallback if it was not written.
func (w Words) Place(word string, fallback source.Position) source.Position {
	if pos, ok := w[word]; ok {
		return pos
	}
	return fallback
}

// Step is one node of the graph.
type Step struct {
	Name    string
	Index   int // index in the file, from 0
	Desc    string
	NamePos source.Position
	Action  *Action // nil for a router
	// Secret says that the worker encrypts the result. SecretPos is the position of the word.
	Secret    bool
	SecretPos source.Position
	// Rows is the path to the rows of a page, nil for the page itself or the path of its collect. Where selects the
	// rows that a page contributes, nil for all.
	Rows  *RowPath
	Where *Node
	// Collect is used if no policy has a collect; nil for none.
	Collect *Collect
	Loop    *Loop
	// Incremental configures the state that the step keeps between runs; nil for none.
	Incremental *Incremental
	Retry       []*Policy
	ownRetry    bool    // the retry is in the step itself, not in a workbook entry
	Sinks       []*Sink // sinks of its result, in order; with a loop, of the aggregate
	// OnSuccess and OnFailure are notices about the end of a visit of the step.
	OnSuccess, OnFailure []*Notice
	Vars                 []*Entry
	Next                 []*Route
}

// RowPath is the path to the rows of a page. Keys are as in expression.ParsePattern.
type RowPath struct {
	Pos  source.Position
	Text string
	Keys []any
}

// Action is a call of a tool by a step, a sink or a workbook entry.
type Action struct {
	Name    string // of workbook entries only
	Pos     source.Position
	Tool    *Node // text, or a template over the workload; see ToolName
	Fields  []*Entry
	Args    *Node // a map of templates; nil if missing
	Auth    *Node
	Timeout time.Duration // of one attempt; 0 for the tool's default
	// Idempotency is operation, attempt, none or "" (the tool's default).
	Idempotency string
	Retry       []*Policy // of sinks only: failure policies
	// OwnRetry says that a sink has a retry, possibly empty.
	OwnRetry bool
	// Rows says how a sink, or a transfer, changes its rows before it writes them; nil for no changes.
	Rows *RowShape
	// RateLimit limits the attempts of a step; nil for none.
	RateLimit *RateLimit
	// Inline is the playbook with the inline steps of a call of PlaybookTool; nil for none. It is separate: its
	// templates are not rendered here.
	Inline *Playbook
	// problems are the problems that decoding found in the values of fields, by field.
	problems map[string]source.Diagnostics
}

// RowShape is how a sink changes each row before it writes it: docs/concepts/written-once.md#the-shape-of-rows.
type RowShape struct {
	// Fields are added to the row. Their values are scalars, whose expressions see the row as RowWord.
	Fields []*Entry
	// Exclude are the fields that are removed.
	Exclude []*ExcludedField
	// Only says that rows keep only Fields: args of a transfer.
	Only bool
	// Path is the part of the path of a file that names RowWord, nil if it does not: each row goes to its own folder. The field
	// path has the folder in which all of these are.
	Path *Node
}

// ExcludedField is a field that a sink removes from its rows.
type ExcludedField struct {
	Name string
	Pos  source.Position
}

// RateLimit bounds how often attempts with the same Key may be sent by all iterations, runs and workers of a task
// queue together: those of the playbook or, with Shared, of all playbooks that share the key.
type RateLimit struct {
	Pos      source.Position
	Requests int
	Per      time.Duration
	Key      *Node // nil for the host of the URL
	Shared   *Node // nil if the key is private to the playbook
}

// ToolName returns the tool's name; false if it is not literal.
func (a *Action) ToolName() (string, bool) {
	if a.Tool == nil || a.Tool.Template != nil {
		return "", false
	}
	name, ok := a.Tool.Value.(string)
	return name, ok
}

// AsCall returns the node as a call, with its tool and fields; nil if it is not written as one.
func (n *Node) AsCall() *Action {
	if n == nil || n.Kind != MapNode {
		return nil
	}
	call := &Action{Pos: n.Pos, Tool: n.Get(FieldTool), Auth: n.Get("auth")}
	for _, entry := range n.Entries {
		if entry.Key != FieldTool && entry.Key != "auth" {
			call.Fields = append(call.Fields, entry)
		}
	}
	return call
}

// ToolTraits returns the traits of the call's tool; the default ones if its name is not literal.
func (a *Action) ToolTraits() Traits {
	name, _ := a.ToolName()
	return TraitsOf(name)
}

// Field returns a field of the tool by name, nil if it is missing.
func (a *Action) Field(name string) *Node {
	for _, field := range a.Fields {
		if field.Key == name {
			return field.Value
		}
	}
	return nil
}

// Sink is an action that writes a result.
type Sink struct {
	Action *Action
	Pos    source.Position
	// Place identifies the sink in the playbook, such as "fetch.retry[1].then.sink"; it is part of the operation
	// key.
	Place string
}

// Notice is an action that reports an event to others. Its failure is only a warning and never changes what it
// reports.
type Notice struct {
	Sink *Sink
	On   []string // events; for notify only
}

// Loop is a step's loop section.
type Loop struct {
	Pos        source.Position
	Words      Words // keys that the author wrote
	Values     Words // positions of their values; those in failure_budget and thresholds with dots
	Collection *Node
	// Source provides the elements page by page, instead of Collection; nil for none. See SourceSuffix.
	Source         *Step
	Element        string
	Mode           LoopMode
	MaxConcurrency int
	Batch          int  // iterations per child, unless AutoBatch
	AutoBatch      bool // the size of the collection determines it: see BatchSize
	FailureBudget  *FailureBudget
	Thresholds     Thresholds
	// StatsOnly leaves the results of iterations out of the loop's result.
	StatsOnly bool
	Sinks     []*Sink // sinks of each iteration, in order
	// DeadLetter is the sink for failed iterations.
	DeadLetter *Sink
}

// Constants of automatic batches, which grow with the collection (docs/concepts/loops.md): up to shownAlone
// elements get a child each, because people look at them individually. Larger collections have about autoChildren
// children, each of at most maxAutoBatch iterations. The iterations of a batch share the maximum size of a result;
// if their results are not kept, a child of a long loop has more of them, because a child costs a server as much as
// hundreds of iterations: about longLoopChildren children, of at most MaxBatch.
const (
	shownAlone   = 100
	autoChildren = 40
	// maxAutoBatch bounds a batch whose size the author has not chosen: its iterations share the maximum size of a
	// result, and a history.
	maxAutoBatch     = 50
	longLoopChildren = 200
)

// BatchSize returns the number of iterations in one child of a loop over n elements. It depends only on n and the
// loop, so that it is the same for all shards of a loop, and in a reprocess of some of its iterations.
func (l *Loop) BatchSize(n int) int {
	switch {
	case !l.AutoBatch:
		return max(l.Batch, 1)
	case n <= shownAlone:
		return 1
	}
	batch := min((n+autoChildren-1)/autoChildren, maxAutoBatch)
	if l.StatsOnly {
		batch = max(batch, min(n/longLoopChildren, MaxBatch))
	}
	return batch
}

// LoopMode says whether iterations run concurrently.
type LoopMode string

// The modes of a loop.
const (
	Sequential LoopMode = "sequential"
	Parallel   LoopMode = "parallel"
)

// FailureBudget ends a loop early once failed/ended exceeds Rate after MinSamples iterations have ended.
type FailureBudget struct {
	Rate       float64
	MinSamples int
}

// Thresholds are shares of successes: at least Completed makes the step completed, at least PartialSuccess a
// partial success, less makes it failed.
type Thresholds struct {
	Completed      float64
	PartialSuccess float64
}

// Route is one entry of next.
type Route struct {
	Pos     source.Position
	When    *Node // nil for unconditional entries and else
	Else    bool
	Targets []*Target
}

// Target is a step that a route leads to.
type Target struct {
	Pos  source.Position
	Step string
	Args *Node // a map of templates; nil if missing
}

// Entry is a key with a templated value, in file order.
type Entry struct {
	Key    string
	KeyPos source.Position
	Value  *Node
}

// Node is a YAML value in which any string may be a template. At most one of Template, Items and Entries is set;
// without them the node is the constant in Value. Lists and maps without templates are in Value too.
type Node struct {
	Pos source.Position
	// Raw is the decoded text of a scalar; "" for lists and maps.
	Raw      string
	Template *expression.Template
	Items    []*Node  // not nil for a list, even if it is empty
	Entries  []*Entry // not nil for a map, even if it is empty
	Value    any      // canonical

	// statement is the parsed SQL of a statement field, nil elsewhere.
	statement *statement.Statement

	Kind     NodeKind
	constant bool         // Value contains the whole node
	file     *source.File // with style, for the positions of the runes of Raw; nil in tests
	style    source.Style
	origin   *origin // what Raw was rewritten from, nil if it is in the file
}

// NodeKind is the kind of a node.
type NodeKind uint8

// The kinds of nodes.
const (
	ConstantNode NodeKind = iota
	TemplateNode
	ListNode
	MapNode
)

// Step returns a step by name, nil if there is none. It also finds the source of a loop by its name.
func (pb *Playbook) Step(name string) *Step {
	if loop, isSource := strings.CutSuffix(name, SourceSuffix); isSource {
		if step := pb.Step(loop); step != nil && step.Loop != nil {
			return step.Loop.Source
		}
		return nil
	}
	return lists.First(pb.Steps, func(step *Step) bool { return step.Name == name && name != "" })
}

// SourceSuffix follows the name of a step in the name of its loop's source. The source is a separate step that no
// route leads to; its calls, keys and events have that name.
const SourceSuffix = ".source"

// LoopStep returns the name of the step whose loop a source feeds; for other steps, the name itself.
func LoopStep(name string) string { return strings.TrimSuffix(name, SourceSuffix) }

// IsSource reports whether the step is the source of a loop.
func (s *Step) IsSource() bool { return strings.HasSuffix(s.Name, SourceSuffix) }

// CallSteps returns the steps, each followed by the source of its loop, if it has one.
func (pb *Playbook) CallSteps() []*Step {
	all := make([]*Step, 0, len(pb.Steps))
	for _, step := range pb.Steps {
		all = append(all, step)
		if step.Loop != nil && step.Loop.Source != nil {
			all = append(all, step.Loop.Source)
		}
	}
	return all
}

// StartStep is the name of the step where a run starts, if there is one of that name.
const StartStep = "start"

// FirstStep returns the step that a run begins with: the one named start, otherwise the first one; nil for a playbook
// without steps.
func (pb *Playbook) FirstStep() *Step {
	if start := pb.Step(StartStep); start != nil {
		return start
	}
	if len(pb.Steps) == 0 {
		return nil
	}
	return pb.Steps[0]
}

// Action returns an entry of the workbook by name, nil if there is none.
func (pb *Playbook) Action(name string) *Action {
	return lists.First(pb.Workbook, func(action *Action) bool { return action.Name == name && name != "" })
}

// Defaults of policies: docs/concepts/attempts.md.
const (
	DefaultInitialDelay = time.Second
	DefaultMaxDelay     = time.Minute // or the initial delay if that is longer
	DefaultMultiplier   = 2.0
	DefaultMaxWait      = time.Hour

	DefaultFailureAttempts = 3
	DefaultPages           = 10_000
	DefaultPolls           = 100 // also for pages of the older forms
	DefaultRestarts        = 1

	// DefaultFailClass is the class of a failure that fail makes of a response.
	DefaultFailClass = "final"

	// DefaultInto is the default name of the collected data.
	DefaultInto = "pages"
)

// HeadNames returns the names in metadata with their positions.
func (pb *Playbook) HeadNames() []HeadName { return pb.names }

// FieldProblems returns what decoding found in the values of fields, by field.
func (a *Action) FieldProblems() map[string]source.Diagnostics { return a.problems }

// OlderWords returns, by words of then, the words of an older form from which they were converted.
func (t *Then) OlderWords() map[string]string { return t.spelt }
