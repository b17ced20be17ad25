package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/incremental"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// checkIncremental checks the state that a step keeps between runs: docs/concepts/state.md#what-a-run-reads.
// state.go reports states that would collide.
func checkIncremental(c *checker) {
	for _, step := range c.pb.Steps {
		checkRestartFull(c, step)
		if i := step.Incremental; i != nil && step.Action != nil {
			checkReadsRows(c, step)
			checkCursorPath(c, step)
			checkInitialValue(c, i)
			checkRangeStart(c, step)
			checkBeyondValue(c, step)
			checkRowOrder(c, step)
			checkSlices(c, step)
			checkRowKey(c, step)
			checkIgnoredChanges(c, step)
			checkNamesState(c, step)
			checkMissingFiltered(c, step)
			checkSinkRows(c, step)
		}
	}
	if c.pb.State != "" && !c.partial && len(c.pb.KeptStates()) == 0 {
		c.Warnf(c.pb.StatePos, codeNoEffect, "state has no effect: no step of the playbook has incremental")
	}
}

// checkReadsRows reports a state of a step that reads no rows, or hides them.
func checkReadsRows(c *checker, step *playbook.Step) {
	i := step.Incremental
	tool := c.toolOf(c.pb.ResolveAction(step.Action))
	if spec := c.toolSpec(tool); tool != playbook.WorkbookTool && spec != nil && !playbook.TraitsOf(tool).ReadsRows {
		c.Errorf(i.Pos, codeIncremental, "step %q cannot have incremental: tool %s does not read rows from a source; tools that do are %s",
			step.Name, tool, playbook.JoinNames(lists.Filter(c.tools.Names(), func(name string) bool { return playbook.TraitsOf(name).ReadsRows })))
		return
	}
	if step.Secret {
		c.Errorf(i.Pos, codeSecretStep, "step %q is secret and cannot have incremental, because its cursors would be stored unencrypted", step.Name)
	}
}

// checkCursorPath warns about a path that begins at the page instead of the row.
func checkCursorPath(c *checker, step *playbook.Step) {
	i := step.Incremental
	for collect := range step.CollectSections() {
		if collect.Path == "" {
			continue
		}
		path := strings.TrimPrefix(strings.ReplaceAll(i.CursorPath, "[*]", ""), collect.Path+".")
		if path != i.CursorPath {
			c.Warnf(placeOfField(i, "cursor_path"), codeIncremental,
				"cursor_path starts at a row, and collect.path (%s) already leads to the rows; write cursor_path: %s", collect.Path, path)
			return
		}
	}
}

// wholeText matches the text of a whole number.
var wholeText = regexp.MustCompile(`^-?[0-9]+$`)

// dayFirstText matches the text of a date that begins with the day, the month or the name of one.
var dayFirstText = regexp.MustCompile(`^([0-9]{1,2}[-./ ][0-9]{1,2}[-./ ][0-9]{2,4}\b|((Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?([0-9]{1,2}[- ])?` +
	`(Jan(uary)?|Feb(ruary)?|Mar(ch)?|Apr(il)?|May|June?|July?|Aug(ust)?|Sep(t(ember)?)?|Oct(ober)?|Nov(ember)?|Dec(ember)?)[- ][0-9])`)

// checkInitialValue warns about a number or a date that is compared as text.
func checkInitialValue(c *checker, i *playbook.Incremental) {
	text, isText := i.InitialValue.(string)
	if !isText || i.Type != incremental.Text || i.Words.Has("type") {
		return
	}
	switch {
	case wholeText.MatchString(text):
		c.Warnf(placeOfField(i, "initial_value"), codeIncremental,
			"%q is text, and as text 10 sorts before 9; write initial_value: %s without quotes, or type: text if this is intended", text, text)
	case dayFirstText.MatchString(text):
		c.Warnf(placeOfField(i, "initial_value"), codeIncremental,
			"%q is text, and as text 31/01/2024 sorts behind 01/02/2024; write the format of the dates, such as format: \"%%d/%%m/%%Y\", or type: text if this is intended", text)
	}
}

// checkRangeStart reports a range that loses rows with the same cursor as the watermark.
func checkRangeStart(c *checker, step *playbook.Step) {
	i := step.Incremental
	if !i.OpenStart || i.Lag != 0 || i.CursorPath == "" {
		return
	}
	isKey := cursorIsKey(i, c.pb, step)
	if isKey && i.Step == "" {
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
		return // already reported
	}
	if isKey {
		c.Errorf(placeOfField(i, "range_start"), codeIncremental,
			"range_start: open loses the row at the end of each slice, which is the start of the next one; write a lag of at least one unit of the source's cursors, such as %s", lag)
		return
	}
	if lag != "" {
		lag = "a lag of at least one unit of the source's cursors, such as " + lag + ", or "
	}
	c.Errorf(placeOfField(i, "range_start"), codeIncremental,
		"range_start: open loses rows that have the same cursor as the last row and are written after it; write %srange_start: closed if the source also returns rows with the value itself, "+
			"or key: %s if no two rows have the same cursor", lag, i.CursorPath)
}

// cursorIsKey reports whether all rows have different cursors.
func cursorIsKey(i *playbook.Incremental, pb *playbook.Playbook, step *playbook.Step) bool {
	key := i.Key
	if sink := step.LastSink(); key == nil && sink != nil && sink.Action != nil {
		if node := pb.ResolveAction(sink.Action).Field("key"); node != nil && node.IsConstant() {
			key = playbook.LiteralTexts(node.Value)
		}
	}
	return len(key) == 1 && key[0] == i.CursorPath
}

var (
	// beyondValue matches a comparison that excludes rows with the value itself, in SQL or in the query language of an API.
	beyondValue = regexp.MustCompile(`(?:>|\b[gG][tT])\s*['"]?\{\{\s*incremental\s*\.\s*(?:value|watermark|from)\s*\}\}`)
	// beyondKey matches a parameter, or the end of one in a URL, that is such a comparison: created[gt], updated_at__gt, $gt.
	beyondKey = regexp.MustCompile(`(?i)(?:^|[_\[.$:-])gt\]?$`)
	beyondURL = regexp.MustCompile(`(?i)[_\[.$:-]gt(?:\]|%5d)?=\{\{\s*incremental\s*\.\s*(?:value|watermark|from)\s*\}\}`)
)

// checkBeyondValue warns about a request for rows strictly after the value: without a lag it loses rows that have the same value.
func checkBeyondValue(c *checker, step *playbook.Step) {
	i := step.Incremental
	if i.OpenStart || i.Lag != 0 || i.Type == incremental.Token || cursorIsKey(i, c.pb, step) {
		return
	}
	action := c.pb.ResolveAction(step.Action)
	if node := action.Field(playbook.FieldStatement); node != nil {
		if at := beyondValue.FindStringIndex(node.Raw); at != nil {
			c.Warnf(node.Position(len([]rune(node.Raw[:at[0]]))), codeIncremental,
				"> loses rows that have the same cursor as the last row and are written after it; write >= {{ incremental.value }}: rows that are read again are recognized")
		}
		return
	}
	for _, node := range action.ValueNodes() {
		if at := beyondIn("", node); at != nil {
			c.Warnf(at.Pos, codeIncremental, "greater than (gt) loses rows that have the same cursor as the last row and are written after it; "+
				"request greater than or equal (gte), and rows that are read again are recognized; if the API has only gt, set range_start: open and a lag")
			return
		}
	}
}

// beyondIn returns the first value of a key that requests rows strictly after the value; nil for none.
func beyondIn(key string, node *playbook.Node) *playbook.Node {
	if node == nil {
		return nil
	}
	for _, item := range node.Items {
		if at := beyondIn("", item); at != nil {
			return at
		}
	}
	for _, entry := range node.Entries {
		if at := beyondIn(entry.Key, entry.Value); at != nil {
			return at
		}
	}
	isValue := beyondKey.MatchString(key) && namesMember([]*playbook.Node{node}, "value", "watermark", "from")
	if node.Template != nil && (isValue || beyondValue.MatchString(node.Raw) || beyondURL.MatchString(node.Raw)) {
		return node
	}
	return nil
}

// checkRowOrder warns about an order of rows that has no effect.
func checkRowOrder(c *checker, step *playbook.Step) {
	if i := step.Incremental; i.Ascending && !writesOnlyPages(step) && !c.partial {
		c.Warnf(placeOfField(i, "row_order"), codeNoEffect,
			"row_order: asc moves the watermark page by page only if per_iteration is the only sink of the call; here it moves once, when the call has succeeded")
	}
}

// checkSlices reports slices that no request uses.
func checkSlices(c *checker, step *playbook.Step) {
	i := step.Incremental
	if i.Step == "" || c.partial || c.unclear {
		return
	}
	nodes := c.pb.ResolveAction(step.Action).ValueNodes()
	if !namesMember(nodes, "to", "from") {
		c.Errorf(placeOfField(i, "step"), codeIncremental,
			`no field of step %q uses incremental.from or incremental.to, so each slice would read the same rows; use them, for example params: {since: "{{ incremental.from }}", before: "{{ incremental.to }}"}`, step.Name)
	}
}

// checkRowKey reports rows that are inserted without a key.
func checkRowKey(c *checker, step *playbook.Step) {
	sink := c.pb.InsertsUnkeyed(step)
	if sink == nil || c.partial {
		return
	}
	if i := step.Incremental; i.OpenStart && i.Step != "" {
		c.Errorf(sink.Pos, codeIncremental, "this sink inserts rows without a key, and with range_start: open those at the end of a slice come again in the next one; "+
			"add key, the columns that identify rows, here or in incremental")
		return
	}
	c.Warnf(sink.Pos, codeIncremental,
		"this sink inserts rows without a key: equal rows are counted, and a row that has changed, or has a field that each run sets anew, is inserted again; "+
			"add key, the columns that identify rows, here or in incremental")
}

// changeTime matches the name of a column that says when a row has changed.
var changeTime = regexp.MustCompile(`(?i)updat|modif|(^|_)chang|(^|_)edit`)

// checkIgnoredChanges warns about a sink that skips the changes of rows for which the step asks. A key with the cursor keeps each version.
func checkIgnoredChanges(c *checker, step *playbook.Step) {
	cursor := step.Incremental.CursorPath
	if !changeTime.MatchString(cursor) {
		return
	}
	for _, sink := range step.SuccessSinks() {
		action := c.pb.ResolveAction(sink.Action)
		mode, key := action.Field(playbook.FieldMode), action.Field("key")
		if name, known := action.WriteMode(); !known || mode == nil || !strings.EqualFold(name, "insert_or_ignore") || key == nil || slices.Contains(playbook.LiteralTexts(key.Value), cursor) {
			continue
		}
		c.Warnf(mode.Pos, codeIncremental, "the step reads rows that have changed (%s), and mode: insert_or_ignore skips those that the table has, so it keeps their first version; use mode: upsert", cursor)
	}
}

// checkNamesState warns about a call that reads everything in every run. It is an error if the sink would insert
// the rows below the watermark each time, because only those within the lag are known.
func checkNamesState(c *checker, step *playbook.Step) {
	if c.partial || c.unclear {
		return
	}
	action := c.pb.ResolveAction(step.Action)
	if !playbook.TraitsOf(c.toolOf(action)).ReadsRows {
		return
	}
	nodes := action.ValueNodes()
	for _, policy := range step.Retry {
		nodes = append(nodes, policy.Then.ValueNodes()...)
	}
	if slices.ContainsFunc(nodes, func(node *playbook.Node) bool { return node.UsesAny(playbook.IncrementalWord) }) {
		return
	}
	reads := fmt.Sprintf("no field of step %q uses incremental.value, so every run reads all rows", step.Name)
	instead := "write mode: upsert with a key"
	filter := filterOf(c.toolOf(action), step.Incremental)
	if filter != "" {
		instead = "use it, for example " + filter + ", or mode: upsert with a key"
	}
	newestFirst := slices.ContainsFunc(step.Retry, func(p *playbook.Policy) bool {
		return p.When.UsesAny(playbook.IncrementalWord) || p.StopWhen.UsesAny(playbook.IncrementalWord)
	})
	if cursor := step.Incremental.CursorPath; newestFirst && cursor != "" {
		where := fmt.Sprintf("row.%s >= incremental.value", cursor)
		if step.Incremental.Type == incremental.Time { // the order of texts in two formats differs from that of their times
			where = fmt.Sprintf("latest(row.%[1]s, incremental.value) == row.%[1]s", cursor)
		}
		instead += fmt.Sprintf(", or drop the rows that are read again: where: %s", where)
	}
	switch sink := c.pb.InsertsTwice(step); {
	case step.Where.UsesAny(playbook.IncrementalWord), sink != nil && c.pb.ResolveAction(sink.Action).Args.UsesAny(playbook.IncrementalWord):
		// The step or the sink skips rows below the watermark.
	case sink != nil && step.Incremental.Lag == 0:
		c.Errorf(step.Incremental.Pos, codeIncremental, "%s, and the sink on line %d would insert rows below the watermark in every run; %s", reads, sink.Pos.Line, instead)
	case sink != nil:
		c.Warnf(step.Incremental.Pos, codeIncremental, "%s, and the sink on line %d inserts rows below the watermark minus lag in every run; %s", reads, sink.Pos.Line, instead)
	case newestFirst:
		// It reads the newest rows first, until a condition detects known ones.
	case filter != "":
		c.Warnf(step.Incremental.Pos, codeIncremental, "%s; use it, for example %s", reads, filter)
	default:
		c.Warnf(step.Incremental.Pos, codeIncremental, "%s", reads)
	}
}

// checkMissingFiltered warns about rows without a cursor that should be included, but that the source's filter by
// the value excludes from the first run on.
func checkMissingFiltered(c *checker, step *playbook.Step) {
	i := step.Incremental
	if i.OnMissing != playbook.MissingInclude || c.partial {
		return
	}
	action := c.pb.ResolveAction(step.Action)
	if node := action.Field(playbook.FieldStatement); node != nil {
		if byValue.MatchString(node.Raw) && !orNull.MatchString(node.Raw) {
			c.Warnf(placeOfField(i, "on_missing"), codeIncremental,
				"on_missing: include reads rows without %s only if the statement does not exclude them; add OR %s IS NULL to its WHERE", i.CursorPath, i.CursorPath)
		}
		return
	}
	nodes := action.ValueNodes()
	for _, policy := range step.Retry {
		nodes = append(nodes, policy.Then.ValueNodes()...)
	}
	if !namesMember(nodes, "value") || namesMember(nodes, "watermark") {
		return
	}
	instead := "{{ incremental.watermark }}"
	if i.Lag != 0 {
		instead = "{{ incremental.watermark is defined ? incremental.value : nil }}"
	}
	c.Warnf(placeOfField(i, "on_missing"), codeIncremental,
		"on_missing: include reads rows without %s only if the request does not exclude them, as incremental.value does from the first run; "+
			"use %s instead, which is nil in the first run", i.CursorPath, instead)
}

// byValue matches a statement that filters by the value, orNull one that keeps rows without a cursor.
var (
	byValue = regexp.MustCompile(`\{\{[^}]*\bincremental\s*\.\s*value\b`)
	orNull  = regexp.MustCompile(`(?i)\bis\s+null\b|\bcoalesce\s*\(`)
)

// namesMember reports whether a template or statement in nodes uses one of the members of `incremental`.
func namesMember(nodes []*playbook.Node, oneOf ...string) bool {
	return slices.ContainsFunc(nodes, func(node *playbook.Node) bool {
		return slices.ContainsFunc(node.Refs(), func(ref expression.Ref) bool {
			members := playbook.ConstantMembers(ref.Path)
			return ref.Root == playbook.IncrementalWord && len(members) > 0 && slices.Contains(oneOf, members[0])
		})
	})
}

// filterOf returns an example of how a tool requests new rows, "" if it cannot.
func filterOf(tool string, i *playbook.Incremental) string {
	switch traits := playbook.TraitsOf(tool); {
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

// checkSinkRows warns about a table that gets one row for a whole page, because rows that come again are recognized
// individually.
func checkSinkRows(c *checker, step *playbook.Step) {
	sink := c.pb.StateHome(step)
	if sink == nil || sink.Action.Args == nil || sink.Action.Args.Entries == nil || !knowsRows(c.pb.ResolveAction(sink.Action)) {
		return
	}
	c.Warnf(sink.Action.Args.Pos, codeIncremental,
		"args is one row, but rows that are read again are recognized one by one; write a list with a row each: args: \"{{ result | map({id: .id}) }}\", or mode: upsert with a key")
}

// checkRestartFull reports restart: full without a state, or with a sink that would write rows twice.
func checkRestartFull(c *checker, step *playbook.Step) {
	for _, policy := range step.Retry {
		if !policy.Then.RestartFull {
			continue
		}
		pos := placeOfValue(&policy.Then, "restart")
		if step.Incremental == nil {
			c.Errorf(pos, codeCannotRestart, "restart: full starts at the initial value of incremental, which step %q does not have; write restart: true", step.Name)
			continue
		}
		if sink := c.pb.InsertsTwice(step); sink != nil {
			c.Errorf(pos, codeCannotRestart,
				"restart: full reads all rows again, and the sink on line %d would insert them twice; use mode: upsert with a key", sink.Pos.Line)
		}
	}
}

// knowsRows reports whether a table skips rows that an earlier write of the step has written.
func knowsRows(a *playbook.Action) bool {
	mode, known := a.WriteMode()
	return known && slices.Contains([]string{"insert", "insert_or_ignore"}, mode)
}

func placeOfField(i *playbook.Incremental, word string) source.Position {
	return i.Values.Place(word, i.Pos)
}
