// Package activities has the catalogue of the tools that a playbook can call, each of
// which is a package below, and makes Temporal activities of them: it delivers, paces and
// holds attempts, hosts calls, and bounds what leaves a worker. It knows nothing of
// workflows.
package activities

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"sync"

	"reprise/activities/file"
	"reprise/activities/http"
	"reprise/activities/keeper"
	"reprise/activities/memory"
	playbooktool "reprise/activities/playbook"
	"reprise/activities/postgres"
	"reprise/activities/python"
	"reprise/activities/sqlite"
	"reprise/activities/tool"
	"reprise/activities/transfer"
	"reprise/activities/webhook"
	"reprise/interpreter"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
)

// ActivityFunc is the signature of every tool activity.
type ActivityFunc = func(context.Context, interpreter.ToolInput) (interpreter.ToolResult, error)

// Activity is a function to register under a name with a worker.
type Activity struct {
	Name string
	Run  ActivityFunc
}

// Catalogue is the set of tools of a worker. It is filled before use; then it
// is safe for concurrent use.
type Catalogue struct {
	res   Resources
	tools map[string]tool.Tool
	pacer *pacer
	gate  *pauseGate
	// memory is what attempts share for what they read.
	memory *memory.Pool
	// checksOnly says that no tool will be run, so that code may be read with
	// the Python that is there.
	checksOnly bool
	states     *keeper.States

	functions sync.Once // fills byName
	byName    map[string]measuredFunc
}

var (
	_ playbook.Tools     = (*Catalogue)(nil)
	_ check.CodeCompiler = (*Catalogue)(nil)
)

// NewCatalogue returns the tools that come with Reprise. It opens nothing:
// pools are made at the first attempt that needs them.
func NewCatalogue(res Resources) *Catalogue {
	res = res.withDefaults()
	c := &Catalogue{
		res: res, tools: map[string]tool.Tool{}, pacer: newPacer(res.RateLimits, res.Logger), gate: newGate(res.Logger),
		memory: memory.NewPool(res.Payloads.AnswersBytes), states: keeper.NewStates(),
	}
	for _, one := range builtIn(res) {
		c.tools[one.Spec().Name] = one
	}
	return c
}

// builtIn are the tools that come with Reprise.
func builtIn(res Resources) []tool.Tool {
	lent := res.forTools()
	web := http.New(lent, res.HTTP.Transport)
	web.Observe(res.HTTP.Observe)
	callbacks := webhook.Options{Send: web.Send, Keys: res.SecretKeys, CallbackURL: res.CallbackURL}
	files, database, local := file.New(lent), postgres.New(lent), sqlite.New(lent)
	code := python.Options{Allow: res.AllowPython, Command: res.PythonCommand, Check: res.CheckPython}
	return []tool.Tool{
		webhook.NewApproval(lent, callbacks),
		files,
		web,
		playbooktool.Tool{},
		database,
		python.New(lent, code),
		local,
		transfer.New(lent, transfer.Options{
			Land: web.Land, Open: files.Open, Databases: map[string]tool.Ledger{"postgres": database, "sqlite": local}, Reshape: Reshape,
		}),
		webhook.New(lent, callbacks),
	}
}

// Default is a catalogue for programs that only check playbooks.
func Default() *Catalogue {
	c := NewCatalogue(Resources{})
	c.checksOnly = true
	return c
}

var toolName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Payloads are how large the values of runs may be.
func (c *Catalogue) Payloads() Payloads { return c.res.Payloads }

// Register adds a tool. Names are lower-case words, and each belongs to one tool.
func (c *Catalogue) Register(added tool.Tool) error {
	spec := added.Spec()
	switch _, writes := added.(tool.Writer); {
	case !toolName.MatchString(spec.Name):
		return fmt.Errorf("register tool %q: a name must consist of lower-case letters, digits and _, and start with a letter", spec.Name)
	case spec.Name == playbook.WorkbookTool, interpreter.IsServiceActivity(spec.Name):
		return fmt.Errorf("register tool %q: the name is reserved", spec.Name)
	case c.tools[spec.Name] != nil:
		return fmt.Errorf("register tool %q: the name is taken", spec.Name)
	case spec.Writes != writes:
		return fmt.Errorf("register tool %q: its spec says writes: %t, but a method Write is there: %t", spec.Name, spec.Writes, writes)
	}
	c.tools[spec.Name] = added
	return nil
}

// Spec is the spec of a tool; false if there is no such tool.
func (c *Catalogue) Spec(name string) (playbook.ToolSpec, bool) {
	found, ok := c.tools[name]
	if !ok {
		return playbook.ToolSpec{}, false
	}
	return found.Spec(), true
}

// Compile reads the codes of a playbook without running them. It gives nothing where
// playbooks may run none, where there is no Python, and where the time is not enough.
func (c *Catalogue) Compile(codes []string) []*check.CodeProblem {
	if !c.res.AllowPython && !c.checksOnly {
		return nil
	}
	return python.Compile(c.res.PythonCommand, codes)
}

// Names are the names of all tools, sorted.
func (c *Catalogue) Names() []string {
	return slices.Sorted(maps.Keys(c.tools))
}

// MemoryAcquired is how many bytes attempts have acquired so far for what they read.
func (c *Catalogue) MemoryAcquired() int64 { return c.memory.Acquired() }

// Activities are the functions to register with a worker, sorted by name: Run
// of every tool under the tool's name and Write of every writer under
// interpreter.WriteActivity.
func (c *Catalogue) Activities() []Activity {
	wrapped := c.wrapped()
	return lists.Map(slices.Sorted(maps.Keys(wrapped)), func(name string) Activity { return Activity{Name: name, Run: wrapped[name].plain()} })
}

// wrapped are the functions of all activities by name.
func (c *Catalogue) wrapped() map[string]measuredFunc {
	byName := map[string]measuredFunc{}
	for name, one := range c.tools {
		if traits := playbook.TraitsOf(name); traits.InWorkflow && !traits.Awaits { // what is awaited begins with a request
			continue
		}
		_, waits := one.(tool.Beginner)
		run := c.around(name, one.Run)
		if _, itself := one.(tool.Shaper); !itself {
			run = shaping(run)
		}
		byName[name] = c.limited(c.watched(c.wrap(run, waits)))
		if writer, ok := one.(tool.Writer); ok {
			write := interpreter.WriteActivity(name)
			byName[write] = c.limited(c.watched(c.wrap(shaping(c.around(write, writer.Write)), waits)))
		}
	}
	return byName
}

// around is a tool with what is around it.
func (c *Catalogue) around(activity string, run attempt) attempt {
	if c.res.Around != nil {
		run = attempt(c.res.Around(activity, ActivityFunc(run)))
	}
	return counting(run)
}

// limited puts the attempts of a function under the operator's rate limits.
func (c *Catalogue) limited(run measuredFunc) measuredFunc {
	return func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, resultSize, error) {
		in.RateLimit = c.pacer.limitOf(in)
		return run(ctx, in)
	}
}

// function is the activity function of a name, nil if there is none.
func (c *Catalogue) function(name string) measuredFunc {
	c.functions.Do(func() { c.byName = c.wrapped() })
	return c.byName[name]
}

// Recall asks the ledger of a sink for the notes of a call; a tool that keeps
// none has none. See [Ledger].
func (c *Catalogue) Recall(ctx context.Context, in interpreter.ToolInput) ([]interpreter.LedgerEntry, error) {
	ledger, ok := c.tools[in.Tool].(tool.Ledger)
	if !ok || !ledger.Notes(in) {
		return nil, nil
	}
	var notes []interpreter.LedgerEntry
	const beginsItself = true // and never does: asking changes nothing
	ask := c.wrap(func(ctx context.Context, in interpreter.ToolInput) (interpreter.ToolResult, error) {
		found, err := ledger.Recall(ctx, in)
		notes = found
		return interpreter.ToolResult{}, err
	}, beginsItself)
	if _, _, err := ask(ctx, in); err != nil {
		return nil, err // and notes may still be written to
	}
	return notes, nil
}

// Close frees the pools of all tools. Attempts that run fail.
func (c *Catalogue) Close() error {
	var errs []error
	for _, name := range c.Names() {
		if open, ok := c.tools[name].(io.Closer); ok {
			if err := open.Close(); err != nil {
				errs = append(errs, fmt.Errorf("close tool %q: %w", name, err))
			}
		}
	}
	return errors.Join(errs...)
}
