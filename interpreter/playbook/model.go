package playbook

import (
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
	"reprise/interpreter/statement"
)

// Playbook is one decoded file. It is immutable once Decode has returned it
// and safe for concurrent use; every template in it is compiled.
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
	Schedule    *Schedule      // nil: none
	Timeout     time.Duration  // whole run; 0 is none
	Strict      bool           // a failed iteration keeps a run from being completed
	Concurrency *Concurrency   // nil: runs do not wait for each other
	Partitions  *Partitions    // nil: a run is about everything
	State       string         // stands for Name in the default names of states; "": Name
	Workload    map[string]any // canonical defaults, never nil
	WorkloadPos Words          // place of each key of Workload
	Output      *Node          // nil: the result of the step that ended last
	Workbook    []*Action
	Steps       []*Step
	// OnSuccess and OnFailure report how the run has ended, Notify more events.
	OnSuccess, OnFailure, Notify []*Notice
	// Expect is how long a run may take before it is late; 0 is for ever. ExpectPos
	// is where that is.
	Expect    time.Duration
	ExpectPos source.Position
	StatePos  source.Position // of State
	// secrets are the names of the steps whose results are secret.
	secrets []string
	// lent are the lists of policies, and the retries of workbook entries, that steps take.
	lent []*lentList
	// inline is set for a playbook that is within another one.
	inline *inline
	// Unread are the texts below keys that no section has. They may be names
	// that the playbook gives to something.
	Unread []string
}

// Trigger says whose signed deliveries start runs of the playbook.
type Trigger struct {
	Pos     source.Position
	Sender  Sender
	Name    string   // of who sends; "": that of the secret
	Secret  string   // name of a connection
	Headers []string // that runs receive besides the sender's own
	Events  []string // nil: all
	// Identity is the header that distinguishes deliveries whose bodies have no name of one; "": the bodies do.
	Identity string
	// The rest is how a Sender of HMAC signs.
	Header    string
	Prefix    string   // is before the signature
	Algorithm string   // SHA256 or SHA512
	Encoding  string   // Hex or Base64
	Body      string   // BodyJSON, BodyForm or BodyText
	ID        []string // leads to the name of a delivery in its body; nil: it is known by its body
}

// HeadName is a name of metadata, and where it is.
type HeadName struct {
	What, Name string
	Pos        source.Position
}

// Words holds the place of every key that the author wrote in a map, for
// checks that need to know whether and where a word is.
type Words map[string]source.Position

// Has reports whether the author wrote the word.
func (w Words) Has(word string) bool { _, ok := w[word]; return ok }

// firstOf is the first of some words that the author wrote, "" for none.
func (w Words) firstOf(some []string) string { return lists.First(some, w.Has) }

// Place is the word's place, or fallback where it was not written.
func (w Words) Place(word string, fallback source.Position) source.Position {
	if pos, ok := w[word]; ok {
		return pos
	}
	return fallback
}

// Step is one node of the graph.
type Step struct {
	Name    string
	Index   int // place in the file, from 0
	Desc    string
	NamePos source.Position
	Action  *Action // nil: a router
	// Secret says that the result is encrypted by the worker. SecretPos is the word.
	Secret    bool
	SecretPos source.Position
	// Rows is where the rows of a page are, nil for the page itself or the path of its collect. Where says which of them
	// a page contributes, nil for all.
	Rows  *RowPath
	Where *Node
	// Collect serves where no policy has one, nil for none.
	Collect *Collect
	Loop    *Loop
	// Incremental configures the state that the step keeps between runs; nil for none.
	Incremental *Incremental
	Retry       []*Policy
	ownRetry    bool    // it is in the step, and not in a workbook entry
	Sinks       []*Sink // what gets its result, in order; with a loop that of the loop
	// OnSuccess and OnFailure report to others how a visit of the step has ended.
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

// Action is a call of a tool: a step's, a sink's or a workbook entry's.
type Action struct {
	Name    string // workbook entries only
	Pos     source.Position
	Tool    *Node // text, or a template over workload; ToolName gives a literal
	Fields  []*Entry
	Args    *Node // a map of templates; nil when absent
	Auth    *Node
	Timeout time.Duration // one attempt; 0 is the tool's default
	// Idempotency is operation, attempt, none or "" (the tool's default).
	Idempotency string
	Retry       []*Policy // sinks only: failure policies
	// OwnRetry says that a sink has a retry of its own, which may be empty.
	OwnRetry bool
	// Rows says what a sink, or a call that moves rows, changes in its rows before it writes them; nil for nothing.
	Rows *RowShape
	// RateLimit paces the attempts of a step; nil for none.
	RateLimit *RateLimit
	// Inline is the playbook whose steps a call of PlaybookTool writes out; nil if it does not.
	// It is separate: its templates are not rendered here.
	Inline *Playbook
	// problems are the problems that decoding found in the value of a field.
	problems map[string]source.Diagnostics
}

// RowShape is what a sink changes in each row before it writes it: docs/concepts/written-once.md#the-shape-of-rows.
type RowShape struct {
	// Fields are laid over the row. Their values are scalars; their expressions see the row as RowWord.
	Fields []*Entry
	// Exclude are the fields that are left out.
	Exclude []*ExcludedField
	// Only says that Fields are all that is left of the row: args of a call that moves rows.
	Only bool
}

// ExcludedField is a field that a sink leaves out of its rows.
type ExcludedField struct {
	Name string
	Pos  source.Position
}

// RateLimit bounds how often attempts with the same Key may be sent by all iterations, runs and
// workers of a task queue together: those of the playbook or, with Shared, of all playbooks
// that share the key.
type RateLimit struct {
	Pos      source.Position
	Requests int
	Per      time.Duration
	Key      *Node // nil: the host of the URL
	Shared   *Node // nil: the playbook's own
}

// ToolName is the tool's name where it is literal.
func (a *Action) ToolName() (string, bool) {
	if a.Tool == nil || a.Tool.Template != nil {
		return "", false
	}
	name, ok := a.Tool.Value.(string)
	return name, ok
}

// Call is the call that a field is, with its tool and fields; nil where it is not written as one.
func (n *Node) Call() *Action {
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

// Traits are the traits of the call's tool where that is written out, else the usual ones.
func (a *Action) Traits() Traits {
	name, _ := a.ToolName()
	return TraitsOf(name)
}

// Field finds a tool field by name, nil when absent.
func (a *Action) Field(name string) *Node {
	for _, field := range a.Fields {
		if field.Key == name {
			return field.Value
		}
	}
	return nil
}

// Sink is an action that writes a result away.
type Sink struct {
	Action *Action
	Pos    source.Position
	// Place names the sink within the playbook, such as
	// "fetch.retry[1].then.sink"; it is part of the operation key.
	Place string
}

// Notice is an action that reports to others what has happened. Its failure is a
// warning and never changes what it reports.
type Notice struct {
	Sink *Sink
	On   []string // the events; of notify only
}

// Loop is a step's loop section.
type Loop struct {
	Pos        source.Position
	Words      Words // keys the author wrote
	Values     Words // places of their values; those of failure_budget and thresholds with dots
	Collection *Node
	// Source gives the elements page by page, in place of Collection; nil for none. See SourceSuffix.
	Source         *Step
	Element        string
	Mode           LoopMode
	MaxConcurrency int
	Batch          int  // iterations per child, unless AutoBatch
	AutoBatch      bool // the size of the collection says how many: see BatchOf
	FailureBudget  *FailureBudget
	Thresholds     Thresholds
	// StatsOnly leaves the results of iterations out of the loop's result.
	StatsOnly bool
	Sinks     []*Sink // what gets each iteration, in order
	// DeadLetter is written for each iteration that failed.
	DeadLetter *Sink
}

// Batches that grow with the collection (docs/concepts/loops.md): a child for each
// of up to shownAlone elements, which people look at one by one, and beyond that
// about autoChildren of them, each of at most maxAutoBatch iterations. What iterations give shares
// what a batch may give; where nothing is kept of it, a child of a long loop has more of them, as a
// child costs a server as much as hundreds of iterations: about longLoopChildren children, of at most
// MaxBatch.
const (
	shownAlone   = 100
	autoChildren = 40
	// maxAutoBatch bounds a batch that the author has not chosen: iterations of one batch share
	// what a child may give, and a history.
	maxAutoBatch     = 50
	longLoopChildren = 200
)

// BatchOf is how many iterations one child of a loop over n elements runs. It
// follows from n and the loop alone, so that all parts of a loop, and a reprocess of some of
// its iterations, have the same.
func (l *Loop) BatchOf(n int) int {
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

// LoopMode says whether iterations overlap.
type LoopMode string

// The modes of a loop.
const (
	Sequential LoopMode = "sequential"
	Parallel   LoopMode = "parallel"
)

// FailureBudget ends a loop early once failed/ended exceeds Rate after
// MinSamples iterations have ended.
type FailureBudget struct {
	Rate       float64
	MinSamples int
}

// Thresholds are shares of successes: at least Completed ends the step
// completed, at least PartialSuccess partial_success, less failed.
type Thresholds struct {
	Completed      float64
	PartialSuccess float64
}

// Policy is one entry of retry: when it matches an outcome, Then applies.
type Policy struct {
	Number   int // from 1, in the order of the file
	Pos      source.Position
	When     *Node // a condition
	StopWhen *Node // a condition, nil when absent
	Then     Then
	Lent     *Lent // nil for a policy that is in the retry itself
}

// Backoff names how delays grow.
type Backoff string

// The strategies of backoff; the zero value means exponential.
const (
	Exponential Backoff = "exponential"
	Linear      Backoff = "linear"
	Fixed       Backoff = "fixed"
	NoBackoff   Backoff = "none"
)

// Jitter names how a delay is spread. The zero value is the default:
// proportional for failures, none for successes.
type Jitter string

// The kinds of jitter.
const (
	JitterNone         Jitter = "none"
	JitterProportional Jitter = "proportional"
	JitterFull         Jitter = "full"
)

// ExhaustionAction says what happens when a policy has used up its attempts.
type ExhaustionAction string

// The choices of on_exhausted; the zero value is the default of section retry.
const (
	ExhaustedFail     ExhaustionAction = "fail"
	ExhaustedSucceed  ExhaustionAction = "succeed"
	ExhaustedContinue ExhaustionAction = "continue"
	ExhaustedPause    ExhaustionAction = "pause"
)

// Then is what a matching policy does. Pointer fields are nil when the author
// left them out; their defaults depend on whether the match was a failure.
type Then struct {
	Pos          source.Position
	Words        Words             // keys the author wrote
	Values       Words             // places of their values
	spelt        map[string]string // words of an older form that these come from
	MaxAttempts  *int
	Delay        *time.Duration
	InitialDelay *time.Duration
	MaxDelay     *time.Duration
	Multiplier   *float64
	Backoff      Backoff
	Jitter       Jitter
	MaxElapsed   *time.Duration
	MaxWait      *time.Duration
	OnExhausted  ExhaustionAction
	AllowRepeat  bool
	// EndOnRepeat makes the call succeed, with the pages so far, if a page repeats; otherwise
	// the guard fails it.
	EndOnRepeat bool
	// Ignore makes an empty answer of a failure.
	Ignore bool
	// Result is the data of a call that this policy ends as a success; nil where
	// the author left it out.
	Result *Node
	// Fail is the message of the failure that replaces a success, nil to keep the success.
	// Class and Type belong to that failure.
	Fail  *Node
	Class string
	Type  *Node
	// RetryAfter is the wait that the answer requests, nil to read its headers; with Fail, the wait of
	// that failure.
	RetryAfter *Node
	// Restart drops what was collected after a failure and begins the call again;
	// RestartFull does so from the initial value of incremental.
	Restart, RestartFull bool
	// PagesPerActivity bounds the pages that one activity fetches; 0 is the
	// default, 1 an activity per page.
	PagesPerActivity int
	NextCall         *NextCall
	Collect          *Collect
	Sinks            []*Sink // what gets the result of the call, in order
	PageSinks        []*Sink // what gets each page, in order
	// Repeats is true when any word that asks for another attempt is present.
	Repeats bool
	// Delays lists Delay, InitialDelay and MaxDelay in the order of the file, without missing ones.
	Delays []Delay
}

// Delay is a word of then that says how long the policy waits.
type Delay struct {
	Word  string
	Value time.Duration
}

// NextCall changes the request after a success.
type NextCall struct {
	Pos     source.Position
	Args    *Node
	Params  *Node
	Headers *Node
	URL     *Node
	Method  *Node
	Body    *Node
}

// Strategy names how pages are collected.
type Strategy string

// The strategies of collect.
const (
	Append  Strategy = "append"
	Replace Strategy = "replace"
	Merge   Strategy = "merge"
)

// Collect gathers pages into one result.
type Collect struct {
	Pos      source.Position
	Words    Words // keys the author wrote
	Strategy Strategy
	Path     string // dotted with [n]; "" is the whole page
	Into     string // name the collected value has in expressions; "pages" by default
	Optional bool
	// Lists refuses pages that contribute anything but a list: nobody said that one is an element.
	Lists bool
}

// Route is one entry of next.
type Route struct {
	Pos     source.Position
	When    *Node // nil for unconditional entries and else
	Else    bool
	Targets []*Target
}

// Target is a step a route leads to.
type Target struct {
	Pos  source.Position
	Step string
	Args *Node // a map of templates; nil when absent
}

// Entry is a key with a templated value, in the order of the file.
type Entry struct {
	Key    string
	KeyPos source.Position
	Value  *Node
}

// Node is a YAML value in which any string may be a template. At most one of Template, Items
// and Entries is set; without them the node is the constant in Value. Lists and maps without
// templates are in Value too.
type Node struct {
	Pos source.Position
	// Raw is the scalar's text as decoded; "" for lists and maps.
	Raw      string
	Template *expression.Template
	Items    []*Node  // not nil for a list, also an empty one
	Entries  []*Entry // not nil for a map, also an empty one
	Value    any      // canonical

	// statement is the parsed SQL of a statement field, nil elsewhere.
	statement *statement.Statement

	Kind     NodeKind
	constant bool         // Value holds all of it
	file     *source.File // with style, where the runes of Raw are; nil in tests
	style    source.Style
	origin   *origin // what Raw was rewritten from, nil if it is in the file
}

// NodeKind says what a node is.
type NodeKind uint8

// The kinds of nodes.
const (
	ConstantNode NodeKind = iota
	TemplateNode
	ListNode
	MapNode
)

// Step finds a step by name, nil if there is none. The source of a loop is found by its own name.
func (pb *Playbook) Step(name string) *Step {
	if loop, isSource := strings.CutSuffix(name, SourceSuffix); isSource {
		if step := pb.Step(loop); step != nil && step.Loop != nil {
			return step.Loop.Source
		}
		return nil
	}
	return lists.First(pb.Steps, func(step *Step) bool { return step.Name == name && name != "" })
}

// SourceSuffix is behind the name of a step in the name of its loop's source, which is a step of its own that no route leads
// to: its calls, keys and events are those of that name.
const SourceSuffix = ".source"

// LoopStep is the name of the step whose loop a source feeds, and of other steps their own.
func LoopStep(name string) string { return strings.TrimSuffix(name, SourceSuffix) }

// IsSource reports whether the step is the source of a loop.
func (s *Step) IsSource() bool { return strings.HasSuffix(s.Name, SourceSuffix) }

// CallSteps are the steps with the sources of their loops, each behind its step.
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

// First is the step a run begins with: the one named start, else the first of
// the list; nil for a playbook without steps.
func (pb *Playbook) First() *Step {
	if start := pb.Step("start"); start != nil {
		return start
	}
	if len(pb.Steps) == 0 {
		return nil
	}
	return pb.Steps[0]
}

// Action finds an entry of the workbook by name, nil if there is none.
func (pb *Playbook) Action(name string) *Action {
	return lists.First(pb.Workbook, func(action *Action) bool { return action.Name == name && name != "" })
}

// What a policy means where it says nothing: docs/concepts/attempts.md.
const (
	DefaultInitialDelay = time.Second
	DefaultMaxDelay     = time.Minute // or the initial delay, where that is longer
	DefaultMultiplier   = 2.0
	DefaultMaxWait      = time.Hour

	DefaultFailureAttempts = 3
	DefaultPages           = 10_000
	DefaultPolls           = 100 // and pages of the older forms
	DefaultRestarts        = 1

	// DefaultFailClass is the class of a failure that fail makes of an answer.
	DefaultFailClass = "final"

	// DefaultInto is the name of what was collected.
	DefaultInto = "pages"
)

// HeadNames are the names of metadata, and where they are.
func (pb *Playbook) HeadNames() []HeadName { return pb.names }

// FieldProblems are what decoding found in the values of fields, by field.
func (a *Action) FieldProblems() map[string]source.Diagnostics { return a.problems }

// Spelt are the words of an older form that words of then come from, by these.
func (t *Then) Spelt() map[string]string { return t.spelt }
