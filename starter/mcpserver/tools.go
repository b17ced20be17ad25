package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"

	"reprise"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reprise/activities"
	"reprise/internal/base/egress"
	"reprise/internal/program/schema"
	"reprise/internal/program/steer"
	"reprise/internal/program/try"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/starter/author"
	"reprise/starter/cli"
	"reprise/starter/control"
	"reprise/starter/execute"
	"reprise/starter/help"
	"reprise/starter/launch"
	"reprise/starter/load"
	"reprise/starter/look"
	"reprise/starter/session"
)

// jsonValues are the members of a JSON object, with numbers of the types that playbooks use.
type jsonValues map[string]any

// UnmarshalJSON decodes the object.
func (v *jsonValues) UnmarshalJSON(data []byte) error {
	value, err := expression.Decode(data)
	if err != nil {
		return err
	}
	*v, _ = value.(map[string]any) // the schema has accepted it
	return nil
}

// jsonValue is any JSON value, or none.
type jsonValue struct{ value *any }

// UnmarshalJSON decodes the value.
func (v *jsonValue) UnmarshalJSON(data []byte) error {
	value, err := expression.Decode(data)
	v.value = &value
	return err
}

// addMCPTool adds a tool whose input schema is derived from a type.
func addMCPTool[In any](s *mcpServer, name string, hints *mcp.ToolAnnotations, description string, run func(*cli.App, In) error) {
	schema, err := jsonschema.For[In](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[jsonValue](): {}}})
	if err != nil {
		panic(err) // a test makes all of them
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		panic(err)
	}
	tool := &mcp.Tool{Name: name, Annotations: hints, Description: description, InputSchema: schema}
	s.sdk.AddTool(tool, func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var input In
		if err := readMCPInput(request.Params.Arguments, schema, resolved, &input); err != nil {
			result := &mcp.CallToolResult{}
			result.SetError(fmt.Errorf("%s: %w", name, err))
			return result, nil
		}
		return s.runCommand(ctx, textOf(input), func(a *cli.App) error { return run(a, input) }), nil
	})
}

// readMCPInput validates and decodes the arguments of a tool.
func readMCPInput(arguments json.RawMessage, schema *jsonschema.Schema, resolved *jsonschema.Resolved, into any) error {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	var given map[string]any
	if err := json.Unmarshal(arguments, &given); err != nil {
		return fmt.Errorf("the arguments are not an object: %w", err)
	}
	known := schema.PropertyOrder
	for _, name := range cli.SortedKeys(given) {
		if slices.Contains(known, name) {
			continue
		}
		if len(known) == 0 {
			return fmt.Errorf("unknown argument %q; the tool has no arguments", name)
		}
		return fmt.Errorf("unknown argument %q%s", name, cli.ExpectedWords(name, known))
	}
	if err := resolved.Validate(given); err != nil {
		return err
	}
	return json.Unmarshal(arguments, into)
}

// withText is a tool input that can contain the text of a playbook.
type withText interface{ playbookText() string }

// textOf returns the playbook text of a tool input, as standard input of the command; "" if it has none.
func textOf(input any) string {
	if has, is := input.(withText); is {
		return has.playbookText()
	}
	return ""
}

// mcpPlaybook selects a playbook, by file or by text.
type mcpPlaybook struct {
	File     string     `json:"file,omitempty" jsonschema:"path of the playbook, relative to the folder of the server; example:NAME.yaml is one that comes with starter"`
	Text     string     `json:"text,omitempty" jsonschema:"the YAML of the playbook itself, in place of file"`
	Workload jsonValues `json:"workload,omitempty" jsonschema:"values laid over the workload of the playbook"`
}

func (p mcpPlaybook) playbookText() string { return p.Text }

// fileName returns the FILE argument of the command.
func (p mcpPlaybook) fileName() (string, error) {
	switch {
	case p.Text != "" && p.File != "":
		return "", cli.UsageError("file and text exclude each other")
	case p.Text != "":
		return "-", nil
	case p.File == "" || p.File == "-":
		return "", cli.UsageError("file or text is required: the playbook to work on")
	}
	return p.File, nil
}

func (p mcpPlaybook) workloadFlags() load.WorkloadFlags {
	return load.WorkloadFlags{Values: p.Workload}
}

type mcpValidate struct {
	mcpPlaybook

	Files  []string `json:"files,omitempty" jsonschema:"several files, in place of file: playbooks, and tests NAME_test.yaml"`
	Strict bool     `json:"strict,omitempty" jsonschema:"count warnings as problems"`
}

type mcpExplain struct {
	Word string `json:"word,omitempty" jsonschema:"a key path such as retry.then.max_wait, a tool (http) or its field (http.url), a function (len), a diagnostic code, a status, an event, a metric, an environment variable or an exit code (exit 4); without it all of them are listed"`
}

type mcpEval struct {
	Expression string     `json:"expression" jsonschema:"the expression, in {{ }} or without"`
	Names      jsonValues `json:"names,omitempty" jsonschema:"values of the names that it uses, such as {\"response\": {\"has_more\": true}}"`
}

type mcpTest struct {
	Files    []string `json:"files,omitempty" jsonschema:"files of tests, playbooks or folders; by default all tests of the folder and of playbooks/"`
	Run      string   `json:"run,omitempty" jsonschema:"only tests whose names match this regular expression"`
	Coverage bool     `json:"coverage,omitempty" jsonschema:"also the steps, policies and routes that no test took"`
}

type mcpTry struct {
	mcpPlaybook

	Step      string     `json:"step,omitempty" jsonschema:"step to try; default: the first that calls a tool"`
	Element   jsonValue  `json:"element,omitzero" jsonschema:"element of the step's loop; by default the first"`
	With      jsonValues `json:"with,omitempty" jsonschema:"results of other steps by their names, which this step uses"`
	Pages     int        `json:"pages,omitempty" jsonschema:"pages to request; by default 2"`
	Limit     int        `json:"limit,omitempty" jsonschema:"rows to show; by default 5"`
	Partition string     `json:"partition,omitempty" jsonschema:"key of the partition; default: the newest that is complete"`
	DryRun    bool       `json:"dry_run,omitempty" jsonschema:"show the first request without sending it"`
}

type mcpTryWrites struct {
	mcpTry

	AllowWrites bool   `json:"allow_writes,omitempty" jsonschema:"make requests that may change data, such as POST"`
	Write       bool   `json:"write,omitempty" jsonschema:"write to the sinks too"`
	Record      string `json:"record,omitempty" jsonschema:"file to write the answers to, for tests"`
}

type mcpRun struct {
	mcpPlaybook

	WorkflowID string `json:"workflow_id,omitempty" jsonschema:"ID of the run; by default the playbook's name and a random part"`
	Partition  string `json:"partition,omitempty" jsonschema:"key of the partition that the run is about"`
	Strict     bool   `json:"strict,omitempty" jsonschema:"a run with a failed iteration is at best a partial success"`
}

type mcpRunOf struct {
	Run   string `json:"run,omitempty" jsonschema:"workflow ID of the run, or enough of its beginning; by default the newest run"`
	RunID string `json:"run_id,omitempty" jsonschema:"run ID, where several runs had the workflow ID"`
	Step  string `json:"step,omitempty" jsonschema:"a step, with its iterations"`
}

// commandArgs returns the arguments of a command about a run.
func (r mcpRunOf) commandArgs() (args []string) {
	if r.Run != "" {
		args = []string{r.Run}
	}
	return args
}

type mcpEvents struct {
	mcpRunOf

	Index  *int     `json:"index,omitempty" jsonschema:"only the iteration with this index, from 0"`
	Failed bool     `json:"failed,omitempty" jsonschema:"only iterations and steps that failed, with their attempts"`
	Kinds  []string `json:"kinds,omitempty" jsonschema:"only events of these kinds, such as action_error and step_retry"`
}

type mcpList struct {
	Status   interpreter.Status `json:"status,omitempty" jsonschema:"only runs with this status, such as running or failed"`
	Playbook string             `json:"playbook,omitempty" jsonschema:"only runs of the playbook with this name"`
	Label    string             `json:"label,omitempty" jsonschema:"only runs of playbooks with this label, as NAME=VALUE"`
	Since    string             `json:"since,omitempty" jsonschema:"only runs that were started since a time, such as 24h or 2026-01-31"`
	Limit    int                `json:"limit,omitempty" jsonschema:"how many at most; by default 20"`
	Children bool               `json:"children,omitempty" jsonschema:"also child runs, which steps of other runs have started"`
}

type mcpSteer struct {
	Run    string `json:"run" jsonschema:"workflow ID of the run, or enough of its beginning to identify it"`
	Reason string `json:"reason,omitempty" jsonschema:"the reason, kept in the history"`
}

type mcpSteerStep struct {
	mcpSteer

	Step string `json:"step,omitempty" jsonschema:"only this step"`
}

type mcpSteerIteration struct {
	mcpSteerStep

	Index *int `json:"index,omitempty" jsonschema:"only the iteration with this index, from 0"`
}

type mcpSkip struct {
	Run    string `json:"run" jsonschema:"workflow ID of the run, or enough of its beginning to identify it"`
	Step   string `json:"step" jsonschema:"the step to skip"`
	Reason string `json:"reason" jsonschema:"the reason: what is skipped is a failure that somebody will want explained"`
	Index  *int   `json:"index,omitempty" jsonschema:"only the iteration with this index, from 0"`
}

// readOnlyHints returns the annotations of a tool that changes nothing.
func readOnlyHints(title string) *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true}
}

// localHints returns the annotations of a tool that changes nothing and reaches nothing outside this machine.
func localHints(title string) *mcp.ToolAnnotations {
	closed := false
	return &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed}
}

// changesRuns returns the annotations of a tool that changes runs.
func changesRuns(title string, destroys bool) *mcp.ToolAnnotations {
	return &mcp.ToolAnnotations{Title: title, DestructiveHint: &destroys}
}

// addWriting adds the tools for writing playbooks.
func (s *mcpServer) addWriting() {
	addMCPTool(s, "validate", localHints("Check a playbook"),
		"Reports every problem in playbooks and test files, with line, column, code and what would be accepted. explain describes each code.",
		s.validatePlaybook)
	addMCPTool(s, "explain", localHints("Explain a word"),
		"Explains a word of the language: type, default, bounds and an example of a key; the fields of a tool; what a diagnostic means, with a wrong and a right example.",
		func(a *cli.App, in mcpExplain) error {
			if in.Word == "" { // as JSON, all that there is to say of all words is too much
				return author.ExplainWord(a.Streams, "", "table")
			}
			return author.ExplainWord(a.Streams, in.Word, "json")
		})
	addMCPTool(s, "eval", localHints("Evaluate an expression"),
		"Evaluates an expression and returns the value of each of its parts.",
		func(a *cli.App, in mcpEval) error {
			return author.EvalExpression(a.Streams, in.Expression, in.Names, "json")
		})
	addMCPTool(s, "test", localHints("Run tests of playbooks"),
		"Runs tests of playbooks (NAME_test.yaml beside NAME.yaml) without waiting and without a server. For a request without an answer, it returns the entry to add.",
		s.testPlaybook)
	const tries = "Makes the requests of one step, without Temporal, and returns each request as sent (secrets masked), the response, why each policy matched or not, " +
		"what follows, what was collected and the rows of each sink. "
	if s.AllowWrites {
		addMCPTool(s, "try", changesRuns("Try a step", true),
			tries+"Requests that may change data need allow_writes; with write, sinks are written.",
			s.tryStep)
		return
	}
	addMCPTool(s, "try", readOnlyHints("Try a step"),
		tries+"Requests that may change data, and Python code, are refused.",
		func(a *cli.App, in mcpTry) error { return s.tryStep(a, mcpTryWrites{mcpTry: in}) })
}

func (s *mcpServer) validatePlaybook(a *cli.App, in mcpValidate) error {
	files := in.Files
	if len(files) > 0 && (in.File != "" || in.Text != "") {
		return cli.UsageError("files excludes file and text")
	}
	if len(files) == 0 {
		name, err := in.fileName()
		if err != nil {
			return err
		}
		files = []string{name}
	}
	return author.FixAndValidate(a, files, &author.ValidateOptions{Workload: in.Workload, Output: "json", Strict: in.Strict})
}

func (s *mcpServer) testPlaybook(a *cli.App, in mcpTest) error {
	pattern, err := regexp.Compile(in.Run)
	if err != nil {
		return cli.UsageError("run %q is not a regular expression: %w", in.Run, err)
	}
	for _, file := range in.Files {
		if err := s.files.CheckPath(file); err != nil {
			return cli.UsageError("%w", err)
		}
	}
	return author.RunTests(a, in.Files, pattern, &author.TestingOptions{Output: "json", Coverage: in.Coverage, DenyPython: !s.AllowWrites})
}

func (s *mcpServer) tryStep(a *cli.App, in mcpTryWrites) error {
	name, err := in.fileName()
	if err != nil {
		return err
	}
	if in.Pages < 0 || in.Limit < 0 {
		return cli.UsageError("pages and limit must be at least 0")
	}
	o := &author.TryOptions{
		Workload: in.workloadFlags(), Connections: s.connections, Egress: os.Getenv(egress.Variable), Step: in.Step, Element: in.Element.value, WithValues: in.With,
		Pages: cmp.Or(in.Pages, try.DefaultPages), Limit: cmp.Or(in.Limit, author.TryRows), MaxWait: try.DefaultMaxWait, Partition: in.Partition,
		Record: in.Record, AllowPython: s.AllowWrites, AllowWrites: in.AllowWrites, Write: in.Write, DryRun: in.DryRun, Output: "json",
	}
	return author.TryStep(a, name, o)
}

// addReading adds the tools for reading runs.
func (s *mcpServer) addReading() {
	addMCPTool(s, "list", readOnlyHints("List runs"),
		"Lists runs with their statuses, the newest first.",
		func(a *cli.App, in mcpList) error {
			return look.ListRuns(a, &look.RunsOptions{
				Server: s.server, Playbook: in.Playbook, Label: in.Label, Since: in.Since, Status: in.Status, Limit: cmp.Or(in.Limit, look.MostRuns),
				Output: "json", Children: in.Children,
			})
		})
	addMCPTool(s, "status", readOnlyHints("Show where a run is"),
		"Shows, step by step, what a run is doing, why it waits or what failed; with step also the iterations of its loop.",
		func(a *cli.App, in mcpRunOf) error {
			return look.ShowStatus(a, in.commandArgs(), &look.StatusOptions{Run: session.RunFlags{Server: s.server, RunID: in.RunID}, Step: in.Step, Output: "json"})
		})
	addMCPTool(s, "events", readOnlyHints("Show what happened in a run"),
		"Lists what happened in a run: attempts, retries, waits, pages, sinks and routes. For attempts of iterations, set step, index or failed.",
		func(a *cli.App, in mcpEvents) error {
			return look.ShowEvents(a, in.commandArgs(), &look.EventsOptions{
				Run: session.RunFlags{Server: s.server, RunID: in.RunID}, Step: in.Step, Index: in.Index, Failed: in.Failed, Kinds: in.Kinds, Output: "json",
			})
		})
}

// addChanging adds the tools that start and steer runs.
func (s *mcpServer) addChanging() {
	addMCPTool(s, "run", changesRuns("Start a run", true),
		"Starts a run of a playbook on the Temporal server and returns its IDs immediately; follow it with status and events. A worker must be running, such as that of starter dev.",
		s.runPlaybook)
	addMCPTool(s, steer.Pause, changesRuns("Pause a run", false),
		"Pauses a run, or one of its steps: running attempts finish, and no new ones start.",
		func(a *cli.App, in mcpSteerStep) error { return s.steerRun(a, steer.Pause, in.mcpSteer, in.Step, nil) })
	addMCPTool(s, steer.Resume, changesRuns("Resume a run", false),
		"Resumes a paused run, or one of its steps.",
		func(a *cli.App, in mcpSteerStep) error { return s.steerRun(a, steer.Resume, in.mcpSteer, in.Step, nil) })
	addMCPTool(s, steer.RetryNow, changesRuns("End a wait now", false),
		"Makes the attempt that a step or iteration is waiting for immediately.",
		func(a *cli.App, in mcpSteerIteration) error {
			return s.steerRun(a, steer.RetryNow, in.mcpSteer, in.Step, in.Index)
		})
	addMCPTool(s, steer.Skip, changesRuns("Skip a step", true),
		"Gives up on what a step or an iteration is waiting for.",
		func(a *cli.App, in mcpSkip) error {
			return s.steerRun(a, steer.Skip, mcpSteer{Run: in.Run, Reason: in.Reason}, in.Step, in.Index)
		})
	addMCPTool(s, steer.Cancel, changesRuns("Cancel a run", true),
		"Cancels a run: its status becomes cancelled, and its on_failure notices are sent.",
		func(a *cli.App, in mcpSteer) error { return s.steerRun(a, steer.Cancel, in, "", nil) })
}

func (s *mcpServer) runPlaybook(a *cli.App, in mcpRun) error {
	name, err := in.fileName()
	if err != nil {
		return err
	}
	if in.WorkflowID != "" {
		if err := cli.CheckID("workflow_id", in.WorkflowID); err != nil {
			return err
		}
	}
	o := &execute.RunOptions{
		Server: s.server, Workload: in.workloadFlags(), Fairness: launch.FairnessFlags{Priority: launch.DefaultPriority, Weight: 1}, WorkflowID: in.WorkflowID,
		FollowOptions: look.FollowOptions{Output: "json"}, Detach: true, Strict: in.Strict, Partition: in.Partition,
	}
	return look.ReportRefusal(a.Streams, execute.StartRun(a, name, o), "json")
}

// steerRun sends a command to a run. Its author is marked with "(mcp)".
func (s *mcpServer) steerRun(a *cli.App, name string, in mcpSteer, step string, index *int) error {
	o := control.NewOptions(name)
	o.Server, o.Output, o.Reason, o.Step, o.Index = s.server, "json", in.Reason, step, index
	o.By = cli.Whoami() + " (mcp)"
	return control.SteerRuns(a, o, []string{in.Run}, false)
}

// addResources adds the documents that a client may read.
func (s *mcpServer) addResources() {
	document := func(name string) func() ([]byte, error) {
		return func() ([]byte, error) { return reprise.Documents.ReadFile(name) }
	}
	for _, one := range []struct {
		name, title, mime string
		read              func() ([]byte, error)
	}{
		{"llms.txt", "Documentation of Reprise", "text/markdown", document("llms.txt")},
		{"llms-full.txt", "Reference of Reprise: a guide, keys, tools, functions, diagnostics", "text/markdown", func() ([]byte, error) { return []byte(help.WholeReference()), nil }},
		{"playbook.schema.json", "JSON Schema of playbooks", "application/schema+json", func() ([]byte, error) { return schema.Generate(activities.DefaultCatalogue()) }},
	} {
		resource := &mcp.Resource{URI: "reprise://" + one.name, Name: one.name, Title: one.title, MIMEType: one.mime}
		s.sdk.AddResource(resource, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			text, err := one.read()
			if err != nil {
				return nil, err
			}
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: resource.URI, MIMEType: one.mime, Text: string(text)}}}, nil
		})
	}
}
