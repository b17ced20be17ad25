package playbook

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
	"reprise/interpreter/source"
)

// checkIncremental checks what a step keeps between runs: docs/concepts/state.md#what-a-run-reads.
// Where two of its states would be one is in check_state.go.
func checkIncremental(c *checker) {
	for _, step := range c.pb.Steps {
		c.checkRestartFull(step)
		if i := step.Incremental; i != nil && step.Action != nil {
			c.checkReadsRows(step)
			c.checkCursorPath(step)
			c.checkInitialValue(i)
			c.checkRangeStart(step)
			c.checkStatementRange(step)
			c.checkRowOrder(step)
			c.checkNamesState(step)
			c.checkMissingFiltered(step)
			c.checkSinkRows(step)
		}
	}
	if c.pb.State != "" && !c.partial && len(c.pb.KeptStates()) == 0 {
		c.warnf(c.pb.StatePos, codeNoEffect, "state has no effect: no step of the playbook has incremental")
	}
}

// checkReadsRows refuses a state of a step that reads no rows, or hides them.
func (c *checker) checkReadsRows(step *Step) {
	i := step.Incremental
	tool := c.toolOf(c.pb.Resolve(step.Action))
	if spec := c.spec(tool); tool != WorkbookTool && spec != nil && !TraitsOf(tool).ReadsRows {
		c.errorf(i.Pos, codeIncremental, "step %q cannot have incremental: tool %s reads no rows of a source; the tools that do are %s",
			step.Name, tool, listed(lists.Filter(c.tools.Names(), func(name string) bool { return TraitsOf(name).ReadsRows })))
		return
	}
	if step.Secret {
		c.errorf(i.Pos, codeSecretStep, "step %q is secret and cannot have incremental; its cursors would be kept where they can be read", step.Name)
	}
}

// checkCursorPath warns of a path that begins where the page does and not at the row.
func (c *checker) checkCursorPath(step *Step) {
	i := step.Incremental
	for collect := range step.Collects() {
		if collect.Path == "" {
			continue
		}
		path := strings.TrimPrefix(strings.ReplaceAll(i.CursorPath, "[*]", ""), collect.Path+".")
		if path != i.CursorPath {
			c.warnf(i.value("cursor_path"), codeIncremental,
				"cursor_path begins at a row, and collect.path (%s) leads to the rows already; write cursor_path: %s", collect.Path, path)
			return
		}
	}
}

// wholeText is the text of a whole number.
var wholeText = regexp.MustCompile(`^-?[0-9]+$`)

// checkInitialValue warns of a number that is compared as text.
func (c *checker) checkInitialValue(i *Incremental) {
	text, isText := i.InitialValue.(string)
	if isText && i.Type == incremental.Text && !i.Words.Has("type") && wholeText.MatchString(text) {
		c.warnf(i.value("initial_value"), codeIncremental,
			"%q is text, and as text 10 comes before 9; write initial_value: %s without quotes, or type: text if that is meant", text, text)
	}
}

// checkRangeStart refuses a range that loses rows which share the watermark.
func (c *checker) checkRangeStart(step *Step) {
	i := step.Incremental
	if !i.OpenStart || i.Lag != 0 || i.CursorPath == "" || i.cursorIsKey(c.pb, step) {
		return
	}
	lag := ""
	switch i.Type {
	case incremental.Time:
		lag = "lag: 1s"
	case incremental.Date, incremental.Integer:
		lag = "lag: 1"
	case incremental.Text, incremental.Token:
	default:
		return // reported
	}
	if lag != "" {
		lag = "a lag of at least what the source's cursors count in, such as " + lag + ", or "
	}
	c.errorf(i.value("range_start"), codeIncremental,
		"range_start: open loses rows that share the last row's cursor and come after it; write %srange_start: closed if the source also answers rows with the value itself, "+
			"or key: %s if no two rows have the same", lag, i.CursorPath)
}

// cursorIsKey reports whether no two rows have one cursor.
func (i *Incremental) cursorIsKey(pb *Playbook, step *Step) bool {
	key := i.Key
	if sink := step.lastSink(); key == nil && sink != nil && sink.Action != nil {
		if node := pb.Resolve(sink.Action).Field("key"); node != nil && node.constant {
			key = literalTexts(node.Value)
		}
	}
	return len(key) == 1 && key[0] == i.CursorPath
}

// literalTexts is a text, or a list of them, that is written out.
func literalTexts(value any) []string {
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	return lists.Pick(list, func(one any) (string, bool) {
		text, isText := one.(string)
		return text, isText
	})
}

// beyondValue is a comparison in SQL that leaves out rows with the value itself.
var beyondValue = regexp.MustCompile(`>\s*\{\{\s*incremental\s*\.\s*value\s*\}\}`)

// checkStatementRange warns of SQL that asks only for rows behind the value, which without a
// lag loses those that share it.
func (c *checker) checkStatementRange(step *Step) {
	i := step.Incremental
	node := c.pb.Resolve(step.Action).Field(FieldStatement)
	if node == nil || i.OpenStart || i.Lag != 0 || i.Type == incremental.Token || i.cursorIsKey(c.pb, step) {
		return
	}
	if at := beyondValue.FindStringIndex(node.Raw); at != nil {
		c.warnf(node.Position(len([]rune(node.Raw[:at[0]]))), codeIncremental,
			"> loses rows that share the last row's cursor and come after it; write >= {{ incremental.value }}: rows that come again are recognized")
	}
}

// checkRowOrder warns where a promise about the order is of no use.
func (c *checker) checkRowOrder(step *Step) {
	if i := step.Incremental; i.Ascending && !step.pagesOnly() && !c.partial {
		c.warnf(i.value("row_order"), codeNoEffect,
			"row_order: asc moves the watermark page by page where per_iteration is the only sink of the call; here it moves once, when the call has ended well")
	}
}

// checkNamesState warns of a call that reads everything in every run, and refuses one whose sink would
// insert the rows below the watermark each time: only those within the lag are known.
func (c *checker) checkNamesState(step *Step) {
	if c.partial || c.unclear {
		return
	}
	action := c.pb.Resolve(step.Action)
	if !TraitsOf(c.toolOf(action)).ReadsRows {
		return
	}
	nodes := action.nodes()
	for _, policy := range step.Retry {
		nodes = append(nodes, policy.Then.nodes()...)
	}
	if slices.ContainsFunc(nodes, func(node *Node) bool { return node.Names(IncrementalWord) }) {
		return
	}
	reads := fmt.Sprintf("no field of step %q names incremental.value, so every run reads all rows", step.Name)
	instead := "write mode: upsert with a key"
	filter := filterOf(c.toolOf(action), step.Incremental)
	if filter != "" {
		instead = "write such as " + filter + ", or mode: upsert with a key"
	}
	switch sink := c.pb.insertsTwice(step); {
	case sink != nil && step.Incremental.Lag == 0:
		c.errorf(step.Incremental.Pos, codeIncremental, "%s, and the sink in line %d would insert those below the watermark each time; %s", reads, sink.Pos.Line, instead)
	case sink != nil:
		c.warnf(step.Incremental.Pos, codeIncremental, "%s, and the sink in line %d inserts those below the watermark less the lag each time; %s", reads, sink.Pos.Line, instead)
	case slices.ContainsFunc(step.Retry, func(p *Policy) bool { return p.When.Names(IncrementalWord) || p.StopWhen.Names(IncrementalWord) }):
		// It reads newest first, until a condition says that it has the rest.
	case filter != "":
		c.warnf(step.Incremental.Pos, codeIncremental, "%s; write such as %s", reads, filter)
	default:
		c.warnf(step.Incremental.Pos, codeIncremental, "%s", reads)
	}
}

// checkMissingFiltered warns of rows without a cursor that are to be read, and that a filter by the value leaves out at the
// source, from the first run on.
func (c *checker) checkMissingFiltered(step *Step) {
	i := step.Incremental
	if i.OnMissing != MissingInclude || c.partial {
		return
	}
	action := c.pb.Resolve(step.Action)
	if node := action.Field(FieldStatement); node != nil {
		if byValue.MatchString(node.Raw) && !orNull.MatchString(node.Raw) {
			c.warnf(i.value("on_missing"), codeIncremental,
				"on_missing: include reads rows without %s only if the statement does not filter them out; write OR %s IS NULL in its WHERE", i.CursorPath, i.CursorPath)
		}
		return
	}
	nodes := action.nodes()
	for _, policy := range step.Retry {
		nodes = append(nodes, policy.Then.nodes()...)
	}
	if !namesMember(nodes, IncrementalWord, "value") || namesMember(nodes, IncrementalWord, "watermark") {
		return
	}
	instead := "{{ incremental.watermark }}"
	if i.Lag != 0 {
		instead = "{{ incremental.watermark is defined ? incremental.value : nil }}"
	}
	c.warnf(i.value("on_missing"), codeIncremental,
		"on_missing: include reads rows without %s only if the request does not filter them out, as incremental.value does from the first run on; "+
			"write %s in its place, which is nil at first", i.CursorPath, instead)
}

// byValue and orNull are a statement that filters by the value, and one that keeps rows without a cursor.
var (
	byValue = regexp.MustCompile(`\{\{[^}]*\bincremental\s*\.\s*value\b`)
	orNull  = regexp.MustCompile(`(?i)\bis\s+null\b|\bcoalesce\s*\(`)
)

// namesMember reports whether a template of values names a member of a word.
func namesMember(nodes []*Node, word, member string) bool {
	for _, node := range nodes {
		for leaf := range node.Templates() {
			for _, ref := range leaf.Template.Refs() {
				members := ConstantMembers(ref.Path)
				if ref.Root == word && len(members) > 0 && members[0] == member {
					return true
				}
			}
		}
	}
	return false
}

// filterOf shows how a tool asks for what is new, "" where it cannot.
func filterOf(tool string, i *Incremental) string {
	switch traits := TraitsOf(tool); {
	case traits.IntoFile:
		return ""
	case traits.Requests && i.Type == incremental.Token:
		return `params: {sync_token: "{{ incremental.value }}"}`
	case traits.Requests:
		return `params: {updated_since: "{{ incremental.value }}"}`
	case traits.Dialect != "" && i.CursorPath != "":
		return fmt.Sprintf("WHERE %s >= {{ incremental.value }}", i.CursorPath)
	}
	return `args: {since: "{{ incremental.value }}"}`
}

// checkSinkRows warns of a table that gets one row for a page, where rows that come again are
// distinguished one by one.
func (c *checker) checkSinkRows(step *Step) {
	sink := c.pb.StateHome(step)
	if sink == nil || sink.Action.Args == nil || sink.Action.Args.Entries == nil || !c.pb.Resolve(sink.Action).knowsRows() {
		return
	}
	c.warnf(sink.Action.Args.Pos, codeIncremental,
		"args is one row, but rows that come again are recognized one by one; write a row for each: args: \"{{ result | map({id: .id}) }}\", or mode: upsert with a key")
}

// checkRestartFull refuses to forget a state that there is not, and to read rows again that a
// sink would write twice.
func (c *checker) checkRestartFull(step *Step) {
	for _, policy := range step.Retry {
		if !policy.Then.RestartFull {
			continue
		}
		pos := policy.Then.value("restart")
		if step.Incremental == nil {
			c.errorf(pos, codeCannotRestart, "restart: full begins at the initial value of incremental, which step %q does not have; write restart: true", step.Name)
			continue
		}
		if sink := c.pb.insertsTwice(step); sink != nil {
			c.errorf(pos, codeCannotRestart,
				"restart: full reads all rows again, and the sink in line %d would insert them twice; write mode: upsert with a key", sink.Pos.Line)
		}
	}
}

// knowsRows reports whether a table leaves out rows that it has from an earlier write of the step.
func (a *Action) knowsRows() bool {
	mode, known := a.mode()
	return known && slices.Contains([]string{"insert", "insert_or_ignore"}, mode)
}

func (i *Incremental) value(word string) source.Position { return i.Values.at(word, i.Pos) }
