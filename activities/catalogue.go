// Package activities has the catalogue of the tools that a playbook can call, one package each, and
// the worker's other activities: checking and planning a playbook. Package attempt makes the
// attempts, package hosting runs calls in activities. None of them imports workflows.
package activities

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"

	"reprise/activities/attempt"
	"reprise/activities/file"
	"reprise/activities/hosting"
	"reprise/activities/http"
	playbooktool "reprise/activities/playbook"
	"reprise/activities/postgres"
	"reprise/activities/python"
	"reprise/activities/sqlite"
	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/activities/transfer"
	"reprise/activities/webhook"
	"reprise/interpreter/playbook"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/service"
)

// Catalogue is the set of tools of a worker. It is filled before use; then it
// is safe for concurrent use.
type Catalogue struct {
	// Attempts makes the attempts of the tools.
	Attempts *attempt.Runner
	// Calls hosts calls of the tools; States reads and writes the state that steps keep between
	// runs.
	Calls  *hosting.Calls
	States *hosting.StateStores

	res   Resources
	tools map[string]tool.Tool
	// checksOnly says that no tool will be run, so any installed Python may read the code.
	checksOnly bool
}

var (
	_ playbook.Tools     = (*Catalogue)(nil)
	_ check.CodeCompiler = (*Catalogue)(nil)
)

// NewCatalogue returns the tools that come with Reprise. It opens nothing:
// pools are made at the first attempt that needs them.
func NewCatalogue(res Resources) *Catalogue {
	res = res.withDefaults()
	tools := map[string]tool.Tool{}
	attempts := attempt.NewRunner(res.forAttempts(), tools)
	states := hosting.NewStateStores(attempts, res.forTools())
	c := &Catalogue{Attempts: attempts, Calls: &hosting.Calls{Attempts: attempts, States: states}, States: states, res: res, tools: tools}
	for _, one := range builtInTools(res) {
		c.tools[one.Spec().Name] = one
	}
	return c
}

// builtInTools returns the tools that come with Reprise.
func builtInTools(res Resources) []tool.Tool {
	lent := res.forTools()
	web := http.New(lent, res.HTTP.Transport)
	web.ObserveRequests(res.HTTP.Observe)
	res.logins.Exchanger = web
	callbacks := webhook.Options{Send: web.SendRequest, Keys: res.SecretKeys, CallbackURL: res.CallbackURL}
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
			Land: web.DownloadRows, Open: files.OpenRows, Targets: map[string]tool.Ledger{"postgres": database, "sqlite": local, "file": files},
			Queries: map[string]sqltool.RowReader{"postgres": database, "sqlite": local}, Reshape: attempt.ReshapeRows,
		}),
		webhook.New(lent, callbacks),
	}
}

// DefaultCatalogue returns a catalogue for programs that only check playbooks.
func DefaultCatalogue() *Catalogue {
	c := NewCatalogue(Resources{})
	c.checksOnly = true
	return c
}

var toolName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// RegisterTool adds a tool. Names are lower-case words, and each belongs to one tool.
func (c *Catalogue) RegisterTool(added tool.Tool) error {
	spec := added.Spec()
	switch _, writes := added.(tool.Writer); {
	case !toolName.MatchString(spec.Name):
		return fmt.Errorf("register tool %q: a name must consist of lower-case letters, digits and _, and start with a letter", spec.Name)
	case spec.Name == playbook.WorkbookTool, service.IsActivity(spec.Name):
		return fmt.Errorf("register tool %q: the name is reserved", spec.Name)
	case c.tools[spec.Name] != nil:
		return fmt.Errorf("register tool %q: the name is taken", spec.Name)
	case spec.Writes != writes:
		return fmt.Errorf("register tool %q: its spec says writes: %t, but a method Write is there: %t", spec.Name, spec.Writes, writes)
	}
	c.tools[spec.Name] = added
	return nil
}

// Spec returns the spec of a tool; false if there is no such tool.
func (c *Catalogue) Spec(name string) (playbook.ToolSpec, bool) {
	found, ok := c.tools[name]
	if !ok {
		return playbook.ToolSpec{}, false
	}
	return found.Spec(), true
}

// CompilePython compiles the Python code of a playbook without running it. It reports nothing if
// playbooks may not run Python, if there is no Python, or if there is too little time.
func (c *Catalogue) CompilePython(codes []string) []*check.CodeProblem {
	if !c.res.AllowPython && !c.checksOnly {
		return nil
	}
	return python.CompileCodes(c.res.PythonCommand, codes)
}

// Names returns the names of all tools, sorted.
func (c *Catalogue) Names() []string {
	return slices.Sorted(maps.Keys(c.tools))
}

// Close frees the pools of all tools, and revokes the leases of secrets. Attempts that run fail.
func (c *Catalogue) Close() error {
	var errs []error
	for _, name := range c.Names() {
		if open, ok := c.tools[name].(io.Closer); ok {
			if err := open.Close(); err != nil {
				errs = append(errs, fmt.Errorf("close tool %q: %w", name, err))
			}
		}
	}
	if err := c.res.sources.Close(); err != nil {
		errs = append(errs, fmt.Errorf("end the leases of secrets: %w", err))
	}
	return errors.Join(errs...)
}
