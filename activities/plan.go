package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"reprise/activities/attempt"
	"reprise/activities/tool"
	"reprise/internal/base/heartbeat"
	"reprise/internal/base/secrets"
	"reprise/interpreter"
	"reprise/interpreter/call"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

const (
	// mostElements is of how many elements of a loop the sinks are planned.
	mostElements = 3
	// mostPlannedStates bounds the states of one step that a plan has.
	mostPlannedStates = 20
	// mostPlannedRuns is how many levels of playbooks that run others a plan follows.
	mostPlannedRuns = 4
)

// planPlaybook predicts what a run of a playbook would do. It changes nothing:
// databases are opened to read, and a request is made only for a sample, by GET.
func planPlaybook(ctx context.Context, c *Catalogue, in call.PlanInput) (interpreter.PlanAnswer, error) {
	defer heartbeat.StartSending(ctx)()
	ctx = attempt.WithDelivery(ctx, attempt.NewDelivery(ctx, true))
	script := in.Script
	task := in.Task.WithScript(script)
	checked := CheckPlaybook(c, interpreter.CheckInput{
		Name: task.Name, Source: script.Source, Workload: task.Data.Workload, Files: script.Files,
	})
	answer := interpreter.PlanAnswer{Problems: checked.Problems, Count: checked.Count, Warnings: slices.Concat(checked.ValidationWarnings, checked.Warnings)}
	if checked.Count > 0 {
		return answer, nil
	}
	book, err := interpreter.LoadPlaybook(task.Name, task.Source)
	if err != nil {
		return answer, attempt.ApplicationError(&interpreter.ErrorObject{
			Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Message: err.Error(), Final: true,
		})
	}
	if refusal := RefuseUnknown(c, task.Name, script.Source); refusal != "" {
		answer.Problems, answer.Count = refusal, 1
		return answer, nil
	}
	p := &planner{catalogue: c, sample: in.Sample, now: time.Now(), files: map[string]string{}, makers: map[string]string{}}
	maps.Copy(p.files, script.Files)
	for _, file := range checked.Files {
		p.files[file.Name] = file.Source
	}
	p.planSteps(ctx, book, task, "", 0)
	maskSteps(p.steps, c.res.Secrets)
	answer.Steps = p.steps
	return answer, nil
}

// maskSteps masks secrets of the worker's connections in a plan's data and errors.
func maskSteps(steps []interpreter.StepPlan, known *secrets.Masker) {
	mask := func(texts ...*string) {
		for _, text := range texts {
			*text = known.MaskText(*text)
		}
	}
	for i := range steps {
		step := &steps[i]
		mask(&step.Request, &step.Problem, &step.Unsampled)
		for j := range step.Warnings {
			mask(&step.Warnings[j])
		}
		for j := range step.States {
			state := &step.States[j]
			mask(&state.State, &state.Problem)
			state.Watermark = expression.Of(known.Value(state.Watermark.Data))
			state.ReadsFrom = expression.Of(known.Value(state.ReadsFrom.Data))
		}
		for j := range step.Sinks {
			sink := &step.Sinks[j]
			mask(&sink.Target, &sink.Problem)
			sink.Element = expression.Of(known.Value(sink.Element.Data))
			if sink.Table == nil {
				continue
			}
			for _, ddl := range sink.Table.AllChanges() {
				mask(&ddl.Statement)
			}
		}
	}
}

// planner gathers what the steps of a playbook would do.
type planner struct {
	catalogue *Catalogue
	sample    bool
	now       time.Time
	files     map[string]string
	makers    map[string]string // steps that make tables by statements, by tableName
	steps     []interpreter.StepPlan
}

// planSteps plans the steps of a playbook. within is the step that runs it, with a slash behind it.
func (p *planner) planSteps(ctx context.Context, book *playbook.Playbook, task call.Task, within string, depth int) {
	for _, step := range book.Steps {
		if step.Action != nil {
			p.addMaker(book, step, within+step.Name)
		}
	}
	for _, step := range book.CallSteps() {
		if step.Action == nil {
			continue
		}
		s := &stepPlanner{planner: p, book: book, task: task, step: step, depth: depth, known: map[string]int{}}
		s.task.Step, s.task.Visit = step.Name, 1
		s.plan.Step = within + step.Name
		s.plan.Tool, _ = book.ResolveAction(step.Action).ToolName()
		at := len(p.steps)
		p.steps = append(p.steps, interpreter.StepPlan{})
		s.planStep(ctx)
		p.steps[at] = s.plan
	}
}

// stepPlanner plans one step.
type stepPlanner struct {
	*planner
	book  *playbook.Playbook
	task  call.Task
	step  *playbook.Step
	plan  interpreter.StepPlan
	depth int
	known map[string]int // which of the sinks a target is
}

func (s *stepPlanner) planStep(ctx context.Context) {
	whole := s.newCall(call.Snapshot{})
	if s.step.Loop == nil {
		s.planOne(ctx, whole, nil)
		return
	}
	elements := s.loopElements(whole)
	for i := range elements[:min(len(elements), mostElements)] {
		element := expression.Of(elements[i])
		snapshot := call.Snapshot{Index: &i, Size: len(elements), Element: element}
		s.planOne(ctx, s.newCall(snapshot), &element)
	}
	if len(elements) == 0 {
		s.planOne(ctx, whole, nil)
	}
	for _, target := range whole.Config().SinkTargets(s.now) {
		if slices.Contains(s.step.Sinks, target.Sink) {
			s.planSink(ctx, target, nil, nil)
		}
	}
}

func (s *stepPlanner) newCall(snapshot call.Snapshot) *call.Call {
	return s.task.BuildCall(s.book, s.step, snapshot, func() float64 { return 0 })
}

// loopElements returns the elements of the step's loop, if the workload decides them.
func (s *stepPlanner) loopElements(whole *call.Call) []any {
	s.plan.Loop = &interpreter.LoopPlan{Unknown: whole.Config().CollectionUnknown()}
	if s.plan.Loop.Unknown != "" {
		return nil
	}
	scope := interpreter.NewScope(s.book, s.task.Run, s.task.Data)
	var elements []any
	collection, err := s.step.Loop.Collection.Render(scope, expression.DecisionBudget(s.now))
	if err == nil {
		elements, err = interpreter.LoopElements(collection)
	}
	if err != nil {
		s.plan.Problem = "loop.collection: " + err.Error()
		return nil
	}
	size := len(elements)
	s.plan.Loop.Size, s.plan.Loop.Shown = &size, min(size, mostElements)
	return elements
}

// planOne plans the call of the step, or of one element of its loop.
func (s *stepPlanner) planOne(ctx context.Context, of *call.Call, element *expression.Value) {
	isFirst := s.plan.Request == "" && !s.plan.Sampled && s.plan.Unsampled == ""
	others := len(s.plan.States) // of other elements
	watermarks := s.planStates(ctx, of, element)
	var written map[string]interpreter.ToolInput
	if unknown := of.Config().RequestUnknown(); unknown != "" {
		s.plan.Unknown = unknown
		s.noteUnsampled("the request %s", unknown)
	} else {
		written = s.driveCall(ctx, of, watermarks, isFirst)
	}
	for _, target := range of.Config().SinkTargets(s.now) {
		if s.step.Loop == nil || !slices.Contains(s.step.Sinks, target.Sink) {
			planned := s.planSink(ctx, target, written, element)
			if target.Sink == s.book.StateHome(s.step) {
				s.findUnclaimable(s.plan.States[others:], planned.Table)
			}
		}
	}
}

// planSink predicts what a sink would do. written has the requests of sinks that the sample reached, by
// place.
func (s *stepPlanner) planSink(
	ctx context.Context, target call.SinkTarget, written map[string]interpreter.ToolInput, element *expression.Value,
) interpreter.SinkPlan {
	if isTable(target.Input) {
		if input, has := written[target.Input.Place]; has {
			target.Input = input
		}
	}
	key := target.Input.Place
	if target.ByElement && element != nil {
		fields, _ := json.Marshal(target.Input.Fields) // of canonical values
		key = fmt.Sprintf("%s %s %s", key, target.Input.Auth, fields)
	}
	if at, has := s.known[key]; has {
		return s.plan.Sinks[at]
	}
	s.known[key] = len(s.plan.Sinks)
	plan := interpreter.SinkPlan{Place: target.Input.Place, Tool: target.Input.Tool, Auth: target.Input.Auth, Unknown: target.Unknown}
	plan.Target = targetText(target)
	if !target.Sink.Action.OwnRetry && s.book.RetriesTable(target.Sink, target.Input.Tool) {
		plan.Attempts = playbook.TableAttempts
	}
	if target.ByElement && element != nil {
		plan.Element = *element
	}
	switch {
	case target.Unknown != "":
	case isTable(target.Input):
		s.planTable(ctx, target.Input, &plan)
	case playbook.TraitsOf(target.Input.Tool).IntoFile:
		if target.Action.FolderOfRows() != "" {
			target.Input.RowPaths = []string{}
		}
		s.planFile(ctx, target.Input, !s.book.StagesFile(s.step, target.Sink), &plan)
	}
	s.plan.Sinks = append(s.plan.Sinks, plan)
	return plan
}

// planTable predicts what a write would do to its table, assuming that earlier statements of the playbook have
// created theirs.
func (s *stepPlanner) planTable(ctx context.Context, in interpreter.ToolInput, plan *interpreter.SinkPlan) {
	plan.Table, plan.Problem = plannedTable(ctx, s.catalogue, in)
	if plan.Table == nil || plan.Table.Exists {
		return
	}
	if step, has := s.makers[tableName(plan.Table.Name)]; has {
		plan.Table.MadeBy, plan.Table.DDL, plan.Table.FromRows, plan.Problem = step, nil, false, ""
	}
}

// planFile predicts what a write would do to its file. byWrite says that each write is published by itself.
func (s *stepPlanner) planFile(ctx context.Context, in interpreter.ToolInput, byWrite bool, plan *interpreter.SinkPlan) {
	files, ok := s.catalogue.tools[in.Tool].(tool.FilePlanner)
	if !ok {
		plan.Problem = fmt.Sprintf("this worker has no tool %q that writes to files", in.Tool)
		return
	}
	in.RateLimit, in.ControlID = nil, "" // no attempt of the call
	found, err := attempt.CallTool(ctx, s.catalogue.Attempts, in, files.PlanFile)
	plan.Problem = problemText(err)
	if found.Mode != "" {
		found.ByWrite = found.InFolder && byWrite
		plan.File = &found
	}
}

// addMaker notes the table that a step makes by a statement.
func (p *planner) addMaker(book *playbook.Playbook, step *playbook.Step, name string) {
	statement := book.ResolveAction(step.Action).Field(playbook.FieldStatement)
	if statement == nil {
		return
	}
	if found := createsTable.FindStringSubmatch(statement.Raw); found != nil {
		p.makers[tableName(found[1])] = name
	}
}

// createsTable finds the table that a statement makes.
var createsTable = regexp.MustCompile(`(?is)^\s*create\s+(?:unlogged\s+)?table\s+(?:if\s+not\s+exists\s+)?([^\s(]+)`)

// tableName returns a name without its schema, quotes and upper case.
func tableName(name string) string {
	return strings.ToLower(strings.Trim(name[strings.LastIndexByte(name, '.')+1:], `"`))
}

// isTable reports whether rows are written to a table.
func isTable(in interpreter.ToolInput) bool {
	_, has := in.Fields["table"]
	return has && playbook.TraitsOf(in.Tool).KeepsStates
}

// targetText names what a sink writes to. Templates with unknown values are shown unevaluated.
func targetText(target call.SinkTarget) string {
	if path, has := target.Input.Fields["path"]; has && isTable(target.Input) {
		table := expression.Text(target.Input.Fields["table"].Data)
		return tool.CutText(table+" of "+expression.Text(path.Data), maxTarget)
	}
	if path := target.Action.FolderOfRows(); path != "" {
		return tool.CutText(path, maxTarget)
	}
	for _, name := range []string{"table", playbook.FieldURL, "path", playbook.FieldStatement} {
		if value, has := target.Input.Fields[name]; has {
			return tool.CutText(expression.Text(value.Data), maxTarget)
		}
		if node := target.Action.Field(name); node != nil {
			return tool.CutText(node.Raw, maxTarget)
		}
	}
	return ""
}

// maxTarget bounds the text of a target, in bytes.
const maxTarget = 200

// plannedTable predicts what a write would do to its table, or why it would fail.
func plannedTable(ctx context.Context, c *Catalogue, in interpreter.ToolInput) (*interpreter.TablePlan, string) {
	plan, err := PlanTable(ctx, c, in)
	if plan.Name == "" {
		return nil, problemText(err)
	}
	return &plan, problemText(err)
}

// problemText returns why a write would fail, "" for nil.
func problemText(err error) string {
	if err == nil {
		return ""
	}
	if failure := attempt.FailureOf(err); failure != nil {
		return failure.Message
	}
	return err.Error()
}

// PlanTable predicts what a write would do to its table, in the way attempts are made: within
// the time limit, with secrets masked in the error.
func PlanTable(ctx context.Context, c *Catalogue, in interpreter.ToolInput) (plan interpreter.TablePlan, err error) {
	table, ok := c.tools[in.Tool].(tool.Planner)
	if !ok {
		return plan, fmt.Errorf("this worker has no tool %q that writes to tables", in.Tool)
	}
	in.RateLimit, in.ControlID = nil, "" // no attempt of the call
	return attempt.CallTool(ctx, c.Attempts, in, func(ctx context.Context, in interpreter.ToolInput) (plan interpreter.TablePlan, err error) {
		if in, _, err = attempt.WithShapedRows(ctx, in); err != nil {
			return plan, err
		}
		return table.PlanWrite(ctx, in)
	})
}

// noteUnsampled says why a requested sample was not made.
func (s *stepPlanner) noteUnsampled(format string, args ...any) {
	if s.sample && s.plan.Unsampled == "" && !s.plan.Sampled {
		s.plan.Unsampled = fmt.Sprintf(format, args...)
	}
}

// planBelow plans the playbook that the step runs, by the request of its call.
func (s *stepPlanner) planBelow(ctx context.Context, of *call.Call, in interpreter.ToolInput) {
	if s.depth == mostPlannedRuns {
		s.plan.Unknown = "the plan follows playbooks no deeper than here"
		return
	}
	callee, failure := of.Config().FindCallee(in, s.files)
	if failure != nil {
		s.plan.Problem = failure.Message
		return
	}
	book, err := interpreter.LoadPlaybook(callee.Name, callee.Source)
	if err != nil {
		s.plan.Problem = err.Error()
		return
	}
	empty := expression.Of(map[string]any{})
	workload := expression.Of(expression.MergeMaps(book.Workload, expression.MapOrEmpty(callee.Workload.Data)))
	task := call.Task{
		Name: callee.Name, Source: callee.Source, Run: s.task.Run, Limits: s.task.Limits,
		Data: interpreter.Data{Workload: workload, Vars: empty, Steps: empty},
	}
	task.Run.Playbook, task.Run.FullRefresh = book.Name, playbook.StripStepPrefix(s.step.Name, s.task.Run.FullRefresh)
	s.planSteps(ctx, book, task, s.plan.Step+"/", s.depth+1)
}
