package author

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"reprise/internal/base/terminal"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/starter/wording"
)

// planText renders a plan for people.
type planText struct {
	*planDocument

	b       strings.Builder
	now     time.Time
	width   int
	sampled bool // a sample was requested
}

// planText returns the plan for people, in sections; empty ones are left out.
func (d *planDocument) planText(now time.Time, width int, sampled bool) string {
	t := &planText{planDocument: d, now: now, width: width, sampled: sampled}
	t.writeLine("", "%s", d.Playbook)
	for _, section := range []func(){t.writeRuns, t.writeSlot, t.writePartitions, t.writeSchedules, t.writeSteps, t.writeDiff, t.writeNotes} {
		section()
	}
	t.writeSummary()
	return t.b.String()
}

// writeLine writes a line after a margin.
func (t *planText) writeLine(margin, format string, args ...any) {
	t.b.WriteString(terminal.HangingLine(margin, fmt.Sprintf(format, args...), t.width))
}

func (t *planText) writeVerbatim(margin, text string) {
	for line := range strings.Lines(text) {
		t.b.WriteString(margin + terminal.EscapeInvisible(strings.TrimSuffix(line, "\n")) + "\n")
	}
}

func (t *planText) agoText(at time.Time) string { return terminal.Duration(t.now.Sub(at)) + " ago" }

func (t *planText) writeRuns() {
	if last := t.Last; last == nil {
		t.writeLine("  ", "last run: none")
	} else {
		since := "the playbook is the same"
		if last.Diff != "" {
			since = "the playbook has changed since"
		}
		t.writeLine("  ", "last run: %s, %s, %s; %s", last.WorkflowID, t.agoText(last.StartedAt), last.Status, since)
	}
	for _, run := range t.Running {
		t.writeLine("  ", "%s: %s, started %s", run.Status, run.WorkflowID, t.agoText(run.StartedAt))
	}
}

func (t *planText) writeSlot() {
	slot := t.Concurrency
	if slot == nil {
		return
	}
	verdict := "a run starts immediately"
	if slot.Running >= slot.Limit || slot.Waiting > 0 {
		verdict = "a run waits in position " + fmt.Sprint(slot.Waiting+1) + " of the queue"
		switch slot.OnConflict {
		case playbook.ConflictSkip:
			verdict = "a run is skipped"
		case playbook.ConflictCancel:
			verdict = "a run cancels the running one"
		}
		if len(slot.Holders) > 0 {
			verdict += " behind " + strings.Join(slot.Holders, ", ")
		}
	}
	t.writeLine("  ", "concurrency: key %s, %d of %d running; %s", slot.Key, slot.Running, slot.Limit, verdict)
}

func (t *planText) writePartitions() {
	if parts := t.Partitions; parts != nil {
		t.writeLine("  ", "a run is about %s; %s", parts.Run, parts.tally)
	}
}

func (t *planText) writeSchedules() {
	for _, schedule := range t.Schedules {
		next := "paused"
		times := lists.Map(schedule.Next, func(at time.Time) string { return wording.TimeInZone(at, schedule.Zone) })
		if !schedule.Paused {
			next = "next " + strings.Join(times, ", ")
		}
		if len(times) == 0 && !schedule.Paused {
			next = "never again"
		}
		t.writeLine("  ", "schedule: %s, %s (%s), %s", schedule.Name, schedule.When, schedule.Zone, next)
	}
}

func (t *planText) writeSteps() {
	for _, step := range t.Steps {
		if len(step.Sinks)+len(step.States) == 0 && step.Problem == "" && step.Request == "" && step.Unknown == "" {
			continue // nothing is known of it that a run would show
		}
		t.b.WriteString("\n")
		t.writeLine("", "step %s: %s", step.Step, step.Tool)
		t.writeStep(step)
	}
}

func (t *planText) writeStep(step interpreter.StepPlan) {
	if loop := step.Loop; loop != nil {
		switch {
		case loop.Unknown != "":
			t.writeLine("  ", "loop: its list %s", loop.Unknown)
		case loop.Size != nil && loop.Shown < *loop.Size:
			t.writeLine("  ", "loop: %s, of which the first %d are shown", terminal.Count(*loop.Size, "element"), loop.Shown)
		case loop.Size != nil:
			t.writeLine("  ", "loop: %s", terminal.Count(*loop.Size, "element"))
		}
	}
	if step.Request != "" {
		t.writeVerbatim("  ", text.WrapHard(terminal.OneLine(step.Request), t.width-2)+"\n")
	}
	if step.Unknown != "" && step.Request == "" {
		t.writeLine("  ", "request: %s", step.Unknown)
	}
	if step.Unsampled != "" {
		t.writeLine("  ", "no sample: %s", step.Unsampled)
	}
	t.writeProblem("  ", step.Problem)
	for _, warning := range step.Warnings {
		t.writeLine("  ", "warning: %s", warning)
	}
	for _, state := range step.States {
		t.writeState(state)
	}
	for _, sink := range step.Sinks {
		t.writeSink(sink)
	}
}

func (t *planText) writeProblem(margin, problem string) {
	if problem != "" {
		t.writeLine(margin, "! %s", problem)
	}
}

func (t *planText) writeState(state interpreter.StatePlan) {
	t.writeLine("  ", "state %s, kept by %s", state.State, state.KeptBy)
	t.writeProblem("    ", state.Problem)
	if state.Watermark.Data == nil && state.Problem != "" {
		return
	}
	if state.Watermark.Data == nil {
		t.writeLine("    ", "no watermark yet; reads from %s", wording.CursorText(state.ReadsFrom))
	} else {
		lastRun := ""
		if state.Run != "" { // or a person has set it since
			lastRun = ", last run " + state.Run
		}
		t.writeLine("    ", "watermark %s, moved %s%s; reads from %s", wording.CursorText(state.Watermark), t.agoText(state.MovedAt), lastRun, wording.CursorText(state.ReadsFrom))
	}
	if len(state.Holders) > 0 {
		what := "a run waits for it"
		if state.OnConflict == playbook.ConflictFail {
			what = "a run fails"
		}
		t.writeLine("    ", "held by %s: %s", strings.Join(state.Holders, ", "), what)
	}
}

func (t *planText) writeSink(sink interpreter.SinkPlan) {
	head := "sink " + sink.Place + ": " + sink.Tool
	if sink.Auth != "" {
		head += " " + sink.Auth
	}
	if sink.Target != "" {
		head += ", " + sink.Target
	}
	if sink.Element.Data != nil {
		head += ", for element " + terminal.Shorten(expression.Text(sink.Element.Data), 60)
	}
	t.writeLine("  ", "%s", head)
	if sink.Attempts > 0 {
		t.writeLine("    ", "retry is not set: up to %d attempts within %s for retryable failures", sink.Attempts, playbook.DurationText(playbook.TableElapsed))
	}
	if sink.Unknown != "" {
		t.writeLine("    ", "not known before a run: %s", sink.Unknown)
	}
	if sink.Table != nil {
		t.writeTable(*sink.Table, sink.Problem != "")
	}
	if sink.File != nil {
		t.writeFile(*sink.File, sink.Problem != "")
	}
	t.writeProblem("    ", sink.Problem)
}

// writeFile writes what is at the path of a file or folder, and what a run does to it.
func (t *planText) writeFile(file interpreter.FilePlan, fails bool) {
	how := file.Mode + ", " + file.Format
	if file.Compression != "" {
		how += " with compression " + file.Compression
	}
	switch {
	case file.ByRow:
		how += "; each row goes to the folder of its value, and each folder has manifests of its own"
	case !file.Exists && file.InFolder:
		how += "; the folder has no manifest"
	case file.InFolder:
		how += fmt.Sprintf("; manifest %d names %s with %s, %s", file.Manifest, terminal.Count(file.Files, "file"), terminal.Count(int(file.Rows), "row"), terminal.Count(int(file.Bytes), "byte"))
	case !file.Exists:
		how += "; the file does not exist"
	default:
		how += "; the file exists, " + terminal.Count(int(file.Bytes), "byte")
	}
	t.writeLine("    ", "%s", how)
	replaces := file.Mode == playbook.ModeOverwrite
	switch {
	case fails:
	case file.ByRow && file.ByWrite && replaces:
		t.writeLine("    ", "each write makes the next manifest of each folder that it has rows for, without the files before it")
	case file.ByRow && file.ByWrite:
		t.writeLine("    ", "each write adds a file to each folder that it has rows for, and makes its next manifest")
	case file.ByRow && replaces:
		t.writeLine("    ", "the run replaces the files of each folder that it has rows for, once all is read; other folders keep theirs")
	case file.ByRow:
		t.writeLine("    ", "the run adds its files to the folders that it has rows for, and writes the next manifest of each at the end")
	case file.ByWrite && replaces:
		t.writeLine("    ", "each write makes the next manifest, from %d, without the files before it", file.Manifest+1)
	case file.ByWrite:
		t.writeLine("    ", "each write adds a file and makes the next manifest, from %d", file.Manifest+1)
	case file.InFolder && replaces && file.Exists:
		t.writeLine("    ", "the run writes manifest %d without these files, once all is read", file.Manifest+1)
	case file.InFolder:
		t.writeLine("    ", "the run adds its files and writes manifest %d at the end", file.Manifest+1)
	}
	if file.Rejected != "" && !fails {
		t.writeLine("    ", "rows that do not fit go to %s", file.Rejected)
	}
}

func (t *planText) writeTable(table interpreter.TablePlan, fails bool) {
	how := table.Mode
	if len(table.Key) > 0 {
		how += " by " + strings.Join(table.Key, ", ")
	}
	switch {
	case table.MadeBy != "":
		how += "; the table does not exist, and step " + table.MadeBy + " makes it"
	case table.NewFile:
		how += "; the file does not exist"
	case !table.Exists:
		how += "; the table does not exist"
	case len(table.DDL) > 0:
		how += "; the table changes"
	case table.Empty:
		how += "; the table is empty"
	default:
		how += "; the table exists"
	}
	if table.Rows != nil {
		how += "; sample of " + terminal.Count(*table.Rows, "row")
	}
	t.writeLine("    ", "%s", how)
	t.writeDeletes(table)
	for _, ddl := range table.DDL {
		t.writeVerbatim("    + ", writeDDL(ddl, terminal.LayoutWidth(t.width)-6))
	}
	if left := table.LeftOut; left != nil {
		if left.DiscardedRows+left.DiscardedValues > 0 {
			t.writeLine("    ", "of the sample %s and %s are discarded", terminal.Count(left.DiscardedRows, "row"), terminal.Count(left.DiscardedValues, "value"))
		}
		if left.RoundedValues > 0 {
			t.writeLine("    ", "of the sample %s rounded or cut to what their columns keep", terminal.Count(left.RoundedValues, "value"))
		}
	}
	switch {
	case fails || !table.FromRows:
	case table.Rows != nil:
		t.writeLine("    ", "rows of further requests may change more")
	case !table.Exists:
		t.writeLine("    ", "columns that are not declared are inferred from the rows: %s", t.columnsHint())
	default:
		t.writeLine("    ", "the rows decide whether columns are added or widened: %s", t.columnsHint())
	}
	if table.Rejected != "" {
		t.writeLine("    ", "rows that the database rejects go to %s", table.Rejected)
	}
	for _, child := range table.Children {
		t.writeLine("    ", "lists of the rows go to %s", child.Name)
		t.writeTable(child, fails)
	}
}

// writeDeletes writes what the sink does to existing rows.
func (t *planText) writeDeletes(table interpreter.TablePlan) {
	if where := table.ReplaceWhere; where != nil {
		bounds := ""
		if where.From != "" {
			bounds += " from " + where.From
		}
		if where.To != "" {
			bounds += " before " + where.To
		}
		t.writeLine("    ", "replaces rows with %s%s", where.Column, bounds)
	}
	if most := table.MaxDelete; most != nil {
		t.writeLine("    ", "deletes rows that are not read, at most %.3g%% of the table", 100**most)
	}
}

// columnsHint returns how to learn more about columns.
func (t *planText) columnsHint() string {
	if t.sampled {
		return "there is no sample of them"
	}
	return "--sample reads the first ones"
}

// writeDDL breaks a long CREATE TABLE into one line per column.
func writeDDL(ddl interpreter.DDL, width int) string {
	head, rest, has := strings.Cut(ddl.Statement, " (")
	if ddl.Kind != interpreter.CreateTable || !has || len(ddl.Statement) <= width {
		return ddl.Statement + "\n"
	}
	var b strings.Builder
	b.WriteString(head + " (\n  ")
	depth, quoted := 0, false
	for i, r := range strings.TrimSuffix(rest, ")") {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ' ' && depth == 0 && i > 0 && rest[i-1] == ',':
			b.WriteString("\n  ")
			continue
		}
		b.WriteRune(r)
	}
	b.WriteString("\n)\n")
	return b.String()
}

func (t *planText) writeDiff() {
	if t.Last == nil || t.Last.Diff == "" {
		return
	}
	t.b.WriteString("\nchanges of the playbook since its last run\n")
	t.writeVerbatim("  ", t.Last.Diff)
}

func (t *planText) writeNotes() {
	if len(t.Notes)+len(t.Warnings) > 0 {
		t.b.WriteString("\n")
	}
	for _, warning := range t.Warnings {
		t.writeLine("", "warning: %s", warning)
	}
	for _, note := range t.Notes {
		t.writeLine("", "note: %s", note)
	}
}

// writeSummary writes how many changes the run would make. A statement that several sinks share counts once.
func (t *planText) writeSummary() {
	counts := map[interpreter.DDLKind]int{}
	seen := map[string]bool{}
	for _, step := range t.Steps {
		for _, sink := range step.Sinks {
			if sink.Table == nil {
				continue
			}
			for _, ddl := range sink.Table.AllChanges() {
				if key := sink.Tool + " " + sink.Auth + " " + ddl.Statement; !seen[key] {
					seen[key] = true
					counts[ddl.Kind]++
				}
			}
		}
	}
	problems := "no problems"
	if t.Problems > 0 {
		problems = terminal.Count(t.Problems, "problem")
	}
	t.b.WriteString("\n")
	t.writeLine("", "Plan: %s; %s.", countsOfDDL(counts), problems)
}

// countsOfDDL returns how many statements there are of each kind. Schemas are mentioned only if there are any.
func countsOfDDL(counts map[interpreter.DDLKind]int) string {
	made := terminal.Count(counts[interpreter.CreateTable], "table")
	if schemas := counts[interpreter.CreateSchema]; schemas > 0 {
		made = terminal.Count(schemas, "schema") + " and " + made
	}
	parts := []string{
		made + " to create",
		terminal.Count(counts[interpreter.AddColumn], "column") + " to add",
		fmt.Sprint(counts[interpreter.WidenColumn]) + " to widen",
	}
	for _, kind := range slices.Sorted(maps.Keys(counts)) { // of a worker that is newer than this program
		if !slices.Contains(interpreter.DDLKinds(), kind) {
			parts = append(parts, fmt.Sprintf("%d of kind %q", counts[kind], string(kind)))
		}
	}
	return strings.Join(parts, ", ")
}
