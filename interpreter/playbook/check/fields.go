package check

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// checkFields checks the fields of a call against the spec of its tool.
func checkFields(c *checker, call playbook.CallAt, spec playbook.ToolSpec) {
	for _, entry := range call.Action.Fields {
		checkField(c, call, spec, entry)
	}
	if !c.partial { // or the missing field could be what was not decoded
		checkMissing(c, call, spec)
	}
}

func checkField(c *checker, call playbook.CallAt, spec playbook.ToolSpec, entry *playbook.Entry) {
	field, ok := spec.Field(entry.Key)
	if !ok {
		unknownField(c, call, spec, entry)
		return
	}
	if problem := fieldProblem(field, entry.Value); problem != "" {
		c.Errorf(entry.Value.Pos, codeFieldType, "%s of %s %s", field.Name, spec.Name, problem)
	} else if spec.MayRequire(field) && field.Kind != playbook.KindStatement && isBlank(entry.Value) && (field.Name != playbook.FieldPath || call.Action.FolderOfRows() == "") {
		c.Errorf(entry.Value.Pos, codeFieldType, "%s of %s is empty; set a value", field.Name, spec.Name)
	} else if field.Kind == playbook.KindRequest {
		checkRequest(c, field.Name, entry.Value)
	} else if field.Kind == playbook.KindCall {
		checkNestedCall(c, call, field, entry.Value)
	} else if len(field.Keys) > 0 {
		checkKeys(c, field, entry.Value)
	} else if len(field.Each) > 0 {
		checkEach(c, field, entry.Value)
	}
	checkNeed(c, call.Action, spec, field, entry)
}

// checkNeed reports a field that has no meaning with the present value of another one.
func checkNeed(c *checker, action *playbook.Action, spec playbook.ToolSpec, field playbook.Field, entry *playbook.Entry) {
	met := func(need playbook.Need) bool {
		node := action.Field(need.Field)
		if need.Field == playbook.FieldTool {
			node = action.Tool
		}
		return node != nil && (node.Template != nil || strings.EqualFold(expression.Text(node.Value), need.Value))
	}
	if len(field.Needs) == 0 || c.partial || slices.ContainsFunc(field.Needs, met) {
		return
	}
	needs := lists.Map(field.Needs, func(need playbook.Need) string { return need.Field + ": " + need.Value })
	c.Errorf(entry.KeyPos, codeFieldType, "%s of %s needs %s beside it", field.Name, spec.Name, strings.Join(needs, " or "))
}

// checkMissing reports fields that the tool needs and the call does not have.
func checkMissing(c *checker, call playbook.CallAt, spec playbook.ToolSpec) {
	action := call.Action
	has := func(name string) bool {
		return hasField(action, name) || meantField(action, spec, call.SectionName(), name)
	}
	for _, field := range spec.Fields {
		if field.Required && !has(field.Name) {
			missingField(c, call, spec, fmt.Sprintf("%q", field.Name))
		}
	}
	for _, group := range spec.RequireOneOf {
		if !slices.ContainsFunc(group, has) && !c.callersProvide(call, group) {
			missingField(c, call, spec, joinChoices(lists.Map(group, strconv.Quote)))
		}
	}
	for _, need := range spec.RequireIf {
		node := action.Field(need.Field)
		if node != nil && node.Value == need.Value && !has(need.Needs) {
			c.Errorf(node.Pos, codeMissingField, "%s: %s of %s needs %q", need.Field, need.Value, spec.Name, need.Needs)
		}
	}
}

// isBlank reports whether a literal text or list is empty. Empty SQL is reported in statements.go.
func isBlank(n *playbook.Node) bool {
	switch v := n.Value.(type) {
	case string:
		return n.Template == nil && strings.TrimSpace(v) == ""
	case []any:
		return len(v) == 0
	}
	return n.Kind == playbook.ListNode && len(n.Items) == 0
}

// checkRequest checks a request among the fields of a call against what http sends.
func checkRequest(c *checker, name string, request *playbook.Node) {
	spec, known := c.tools.Spec(playbook.NoticeTool)
	if !known || request.Template != nil {
		return
	}
	hasURL := false
	for _, entry := range request.Entries {
		hasURL = hasURL || entry.Key == "url"
		field, ok := spec.Field(entry.Key)
		switch {
		case entry.Key == "auth":
			field = playbook.Field{Name: "auth", Kind: playbook.KindText}
		case !ok:
			hint := "its keys are auth, " + playbook.JoinNames(spec.FieldNames())
			if near := expression.Suggest(entry.Key, append(spec.FieldNames(), "auth")); near != "" {
				hint = "did you mean " + playbook.QuoteWord(near) + "?"
			}
			c.Errorf(entry.KeyPos, codeUnknownField, "%s has no key %q; %s", name, playbook.ShortenText(entry.Key), hint)
			c.AddFix(entry.Key, expression.SuggestCertain(entry.Key, append(spec.FieldNames(), "auth")))
			continue
		}
		if problem := fieldProblem(field, entry.Value); problem != "" {
			c.Errorf(entry.Value.Pos, codeFieldType, "%s of %s %s", field.Name, name, problem)
		}
	}
	if !hasURL && !c.partial {
		c.Errorf(request.Pos, codeMissingField, "%s needs a url, to which the request is sent", name)
	}
}

// rowsOfManyLists finds what rows of a step may have, and rows of a transfer may not: elements of lists.
var rowsOfManyLists = regexp.MustCompile(`(^|\.)\*(\.|$)|\[(\*|[0-9]+)\](\.|\[|$)`)

// checkNestedCall checks a field that is a call of another tool, like any other call: from and to of transfer.
func checkNestedCall(c *checker, call playbook.CallAt, field playbook.Field, node *playbook.Node) {
	inner := node.AsCall()
	name, literal := inner.ToolName()
	switch {
	case inner.Tool == nil:
		if !c.partial {
			c.Errorf(node.Pos, codeMissingField, "%s needs tool, which is %s", field.Name, joinChoices(field.Enum))
		}
		return
	case !literal:
		c.Errorf(inner.Tool.Pos, codeFieldType, "tool of %s %s", field.Name, literalProblem(playbook.Field{}, inner.Tool))
		return
	}
	if problem := enumProblem(playbook.Field{Enum: field.Enum}, inner.Tool); problem != "" {
		c.Errorf(inner.Tool.Pos, codeFieldType, "tool of %s %s", field.Name, problem)
		return
	}
	spec, known := c.tools.Spec(strings.ToLower(name))
	if !known {
		return // the catalogue does not have it
	}
	spec.Fields = slices.Concat(spec.Fields, field.Keys)
	at := call
	at.Action, at.Field = inner, field.Name
	checkFields(c, at, spec)
	if inner.Auth != nil && !isScalar(inner.Auth) {
		c.Errorf(inner.Auth.Pos, codeFieldType, "auth of %s must be the name of a connection that the worker knows", field.Name)
	}
	if field.Name == playbook.FieldTo {
		checkMovedTo(c, call, inner)
		return
	}
	if spec.Dialect != "" {
		checkMovedQuery(c, spec, call.Action.Field(playbook.FieldTo).AsCall(), inner)
	}
	if playbook.TraitsOf(spec.Name).IntoFile {
		checkReadFile(c, inner)
		if batch := inner.Field(playbook.FieldBatch); batch != nil {
			c.Errorf(batch.Pos, codeFieldType, "batch of a transfer is written beside %s, not in it; move it there", field.Name)
		}
	}
	if rows := inner.Field(playbook.FieldRows); rows != nil && rowsOfManyLists.MatchString(expression.Text(rows.Value)) {
		c.Errorf(rows.Pos, codeFieldType, "rows of %s is %q; a transfer reads a single list, so write only names with dots between them, such as data.items", field.Name, rows.Value)
	}
	as := inner.Field("format")
	switch {
	case as == nil:
	case as.Value == "text":
		c.Errorf(as.Pos, codeFieldType, "format of %s must be csv, jsonl, json, xml or parquet, which are read row by row, not %q", field.Name, as.Value)
	case as.Value == "xml" && inner.Field(playbook.FieldRows) == nil:
		c.Errorf(as.Pos, codeMissingField, "%s is XML, so it needs rows, which names its first element and the elements that are rows, such as orders.order", field.Name)
	}
}

// hasField reports whether a call has a field, including words of the language.
func hasField(a *playbook.Action, name string) bool {
	switch name {
	case "auth":
		return a.Auth != nil
	case "args":
		return a.Args != nil
	case playbook.FieldWorkflow:
		if a.Inline != nil {
			return true
		}
	}
	return a.Field(name) != nil
}

// callersProvide reports whether all steps that call a workbook entry provide one of the fields.
func (c *checker) callersProvide(call playbook.CallAt, group []string) bool {
	if call.Spot != playbook.AtWorkbook {
		return false
	}
	callers := c.callingSteps(call.Action)
	return len(callers) > 0 && !slices.ContainsFunc(callers, func(step *playbook.Step) bool {
		return !slices.ContainsFunc(playbook.CallWords(), func(word string) bool { return slices.Contains(group, word) && hasField(step.Action, word) })
	})
}

func missingField(c *checker, call playbook.CallAt, spec playbook.ToolSpec, what string) {
	c.Errorf(startOf(call.Action), codeMissingField, "%s needs %s, because its tool is %s", callName(call), what, spec.Name)
}

// writingCallName returns what messages call a writing call.
func writingCallName(a playbook.CallAt) string {
	if a.Spot&playbook.AtNotices != 0 {
		return "a notice"
	}
	return "a sink"
}

// callName returns the name of the call for messages.
func callName(a playbook.CallAt) string {
	switch {
	case a.Spot&playbook.AtNotices != 0:
		return "the notice " + a.Sink.Place
	case a.Sink != nil:
		return fmt.Sprintf("a sink of step %q", a.Step.Name)
	case a.Step != nil:
		return fmt.Sprintf("step %q", a.Step.Name)
	}
	return fmt.Sprintf("the workbook entry %q", a.Action.Name)
}

// unknownField reports a key that is neither a word of the language nor a field of the tool. A misspelt word looks
// like a field, so both are suggested.
func unknownField(c *checker, call playbook.CallAt, spec playbook.ToolSpec, entry *playbook.Entry) {
	section := call.SectionName()
	hint := playbook.FieldHint(entry.Key, section, spec)
	c.Errorf(entry.KeyPos, codeUnknownField, "the tool %s has no field %q%s", spec.Name, playbook.ShortenText(entry.Key), hint.Text)
	c.AddFix(entry.Key, hint.CertainReplacement(entry.Key, append(spec.FieldNames(), playbook.KeysOf(section)...)))
}

// kindRule checks values of one kind of field. Its functions return what is wrong, "" for nothing; a nil function
// accepts everything.
type kindRule struct {
	// written checks a value without templates.
	written func(playbook.Field, *playbook.Node) string
	// template checks a value with templates, as far as that is possible before they are rendered.
	template func(playbook.Field, *playbook.Node) string
	// empty says that the rule accepts an empty value, because it is allowed or because written checks it.
	empty bool
}

var kindRules = map[playbook.FieldKind]kindRule{
	playbook.KindValue:     {empty: true},
	playbook.KindLiteral:   {written: literalProblem, template: literalProblem, empty: true},
	playbook.KindChoice:    {written: choiceProblem, template: literalProblem, empty: true},
	playbook.KindCode:      {written: isCode, template: isCode, empty: true},
	playbook.KindRequest:   {written: requestProblem, template: requestProblem, empty: true},
	playbook.KindCall:      {written: callProblem, template: callProblem, empty: true},
	playbook.KindMap:       {written: requireType("a map", func(n *playbook.Node) bool { return n.Kind == playbook.MapNode }), template: mixedProblem},
	playbook.KindList:      {written: requireType("a list", func(n *playbook.Node) bool { return n.Kind == playbook.ListNode }), template: mixedProblem},
	playbook.KindColumns:   {written: columnsProblem, template: mixedProblem},
	playbook.KindText:      {written: textProblem},
	playbook.KindStatement: {written: textProblem},
	playbook.KindNumber:    {written: requireType("a number", func(n *playbook.Node) bool { return isNumber(n.Value) })},
	playbook.KindBoolean:   {written: requireType("true or false", func(n *playbook.Node) bool { return n.Value == true || n.Value == false })},
	playbook.KindDuration:  {written: durationProblem},
}

// fieldProblem returns what is wrong with a field's value, "" for nothing.
func fieldProblem(f playbook.Field, node *playbook.Node) string {
	rule := kindRules[f.Kind]
	check := rule.written
	if node.Template != nil {
		check = rule.template
	} else if !rule.empty && node.Kind == playbook.ConstantNode && node.Value == nil {
		return "is empty; set a value or remove it"
	}
	if check == nil {
		return ""
	}
	return check(f, node)
}

// requireType returns a rule that requires a type.
func requireType(want string, is func(*playbook.Node) bool) func(playbook.Field, *playbook.Node) string {
	return func(_ playbook.Field, node *playbook.Node) string { return wrongType(node, want, is(node)) }
}

var isCode = requireType("text below code: |", func(n *playbook.Node) bool { _, ok := n.Value.(string); return ok })

func choiceProblem(f playbook.Field, node *playbook.Node) string {
	if node.Kind == playbook.MapNode {
		return "" // its keys are checked by themselves
	}
	return literalProblem(f, node)
}

func requestProblem(_ playbook.Field, node *playbook.Node) string {
	if node.Template != nil {
		return "must be written as a map with a url; templates are allowed in its values"
	}
	return wrongType(node, "a map with a url, such as {url: …, body: …}", node.Kind == playbook.MapNode)
}

func callProblem(f playbook.Field, node *playbook.Node) string {
	if node.Template != nil {
		return "must be written as a map with tool; templates are allowed in its values"
	}
	return wrongType(node, fmt.Sprintf("a map with tool, such as {tool: %s, …}", f.Enum[0]), node.Kind == playbook.MapNode)
}

func textProblem(f playbook.Field, node *playbook.Node) string {
	return cmp.Or(wrongType(node, "text", isScalar(node)), enumProblem(f, node))
}

// isScalar reports whether a node is neither a list nor a map.
func isScalar(n *playbook.Node) bool {
	if n.Kind == playbook.ListNode || n.Kind == playbook.MapNode {
		return false
	}
	switch n.Value.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}

func literalProblem(f playbook.Field, node *playbook.Node) string {
	switch {
	case node.Kind == playbook.ListNode:
		for _, item := range node.Items {
			if problem := literalProblem(f, item); problem != "" {
				return problem
			}
		}
		return ""
	case node.Template != nil || !node.IsConstant():
		return "must not be a template: its value must be known before the run"
	}
	if list, ok := node.Value.([]any); ok {
		for _, item := range list {
			if _, ok := item.(string); !ok {
				return "must be text or a list of texts, not a list with " + playbook.DescribeValue(item)
			}
		}
		return ""
	}
	text, ok := node.Value.(string)
	if problem := wrongType(node, "text", ok); problem != "" {
		return problem
	}
	if f.Unquoted && strings.Contains(text, `"`) {
		return fmt.Sprintf("must be a name without quotes, because the tool quotes it, not %s", text)
	}
	return enumProblem(f, node)
}

// mixedProblem reports text with templates in it where a map or list is needed.
func mixedProblem(f playbook.Field, node *playbook.Node) string {
	if _, ok := node.Template.SingleProgram(); ok {
		return ""
	}
	return fmt.Sprintf("must be a %s, not text; use a single {{ }} that returns one", f.Kind)
}

// columnType is the type of a column with what may follow its word: a length or a precision, and not null.
var columnType = regexp.MustCompile(`^([a-z ]+?) ?(\([0-9, ]+\))?( not null)?$`)

func columnsProblem(f playbook.Field, node *playbook.Node) string {
	if node.Kind != playbook.MapNode {
		return wrongType(node, "a list of names, or a map from names to types", node.Kind == playbook.ListNode)
	}
	for _, entry := range node.Entries {
		if entry.Value.Template != nil {
			continue
		}
		written := strings.ToLower(strings.Join(strings.Fields(expression.Text(entry.Value.Value)), " "))
		word := written
		if parts := columnType.FindStringSubmatch(written); parts != nil {
			word = parts[1]
		}
		if slices.Contains(f.Enum, word) {
			continue
		}
		hint := ""
		if near := expression.Suggest(word, f.Enum); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return fmt.Sprintf("has the type %q for %q, which must be %s%s", written, entry.Key, joinChoices(f.Enum), hint)
	}
	return ""
}

func wrongType(node *playbook.Node, want string, ok bool) string {
	if ok {
		return ""
	}
	got := playbook.DescribeValue(node.Value)
	switch node.Kind {
	case playbook.ListNode:
		got = "a list"
	case playbook.MapNode:
		got = "a map"
	case playbook.ConstantNode, playbook.TemplateNode:
	}
	return "must be " + want + ", not " + got
}

func isNumber(v any) bool {
	return expression.TypeName(v) == expression.TypeName(0)
}

func enumProblem(f playbook.Field, node *playbook.Node) string {
	if len(f.Enum) == 0 {
		return ""
	}
	text := expression.Text(node.Value)
	if slices.ContainsFunc(f.Enum, func(one string) bool { return strings.EqualFold(one, text) }) {
		return ""
	}
	if near := cmp.Or(foreignValue(f, text), expression.Suggest(text, f.Enum)); near != "" {
		return fmt.Sprintf("must be %s, not %q; did you mean %q?", joinChoices(f.Enum), text, near)
	}
	return fmt.Sprintf("must be %s, not %q", joinChoices(f.Enum), text)
}

func durationProblem(_ playbook.Field, node *playbook.Node) string {
	switch v := node.Value.(type) {
	case int, float64, json.Number:
		if seconds, isFloat := expression.NearestFloat(v); !isFloat || seconds >= 0 {
			return ""
		}
		return "must not be negative, not " + expression.Text(v)
	case string:
		d, err := time.ParseDuration(v)
		if err == nil && d >= 0 {
			return ""
		}
		return fmt.Sprintf("must be a duration such as 90s or a number of seconds, not %q", v)
	}
	return wrongType(node, "a duration such as 90s or a number of seconds", false)
}
