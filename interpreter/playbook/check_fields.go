package playbook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// checkFields compares the fields of a call with the spec of its tool.
func (c *checker) checkFields(call actionAt, spec ToolSpec) {
	for _, entry := range call.action.Fields {
		c.checkField(call, spec, entry)
	}
	if !c.partial { // or what is missing may be what could not be decoded
		c.checkMissing(call, spec)
	}
}

func (c *checker) checkField(call actionAt, spec ToolSpec, entry *Entry) {
	field, ok := spec.field(entry.Key)
	if !ok {
		c.unknownField(call, spec, entry)
		return
	}
	if problem := field.problem(entry.Value); problem != "" {
		c.errorf(entry.Value.Pos, codeFieldType, "%s of %s %s", field.Name, spec.Name, problem)
	} else if spec.needs(field) && field.Kind != KindStatement && entry.Value.blank() {
		c.errorf(entry.Value.Pos, codeFieldType, "%s of %s is empty; give it a value", field.Name, spec.Name)
	} else if field.Kind == KindRequest {
		c.checkRequest(field.Name, entry.Value)
	} else if len(field.Keys) > 0 {
		c.checkKeys(field, entry.Value)
	}
	c.checkNeed(call.action, spec, field, entry)
}

// checkNeed refuses a field that means nothing beside what another one says.
func (c *checker) checkNeed(action *Action, spec ToolSpec, field Field, entry *Entry) {
	met := func(need Need) bool {
		node := action.Field(need.Field)
		return node != nil && (node.Template != nil || strings.EqualFold(expression.Text(node.Value), need.Value))
	}
	if len(field.Needs) == 0 || c.partial || slices.ContainsFunc(field.Needs, met) {
		return
	}
	needs := lists.Map(field.Needs, func(need Need) string { return need.Field + ": " + need.Value })
	c.errorf(entry.KeyPos, codeFieldType, "%s of %s needs %s beside it", field.Name, spec.Name, strings.Join(needs, " or "))
}

// checkMissing finds the fields that the tool needs and the call does not have.
func (c *checker) checkMissing(call actionAt, spec ToolSpec) {
	action := call.action
	has := func(name string) bool { return action.has(name) || action.meant(spec, call.section(), name) }
	for _, field := range spec.Fields {
		if field.Required && !has(field.Name) {
			c.missingField(call, spec, fmt.Sprintf("%q", field.Name))
		}
	}
	for _, group := range spec.RequireOneOf {
		if !slices.ContainsFunc(group, has) && !c.givenByCallers(call, group) {
			c.missingField(call, spec, oneOf(lists.Map(group, strconv.Quote)))
		}
	}
	for _, need := range spec.RequireIf {
		node := action.Field(need.Field)
		if node != nil && node.Value == need.Value && !has(need.Needs) {
			c.errorf(node.Pos, codeMissingField, "%s: %s of %s needs %q", need.Field, need.Value, spec.Name, need.Needs)
		}
	}
}

// blank reports whether text, or a list, that is written out holds nothing. Of SQL
// check_statements.go says so.
func (n *Node) blank() bool {
	switch v := n.Value.(type) {
	case string:
		return n.Template == nil && strings.TrimSpace(v) == ""
	case []any:
		return len(v) == 0
	}
	return n.kind == listNode && len(n.Items) == 0
}

// checkRequest compares a request among the fields of a call with what http
// sends.
func (c *checker) checkRequest(name string, request *Node) {
	spec, known := c.tools.Spec(NoticeTool)
	if !known || request.Template != nil {
		return
	}
	hasURL := false
	for _, entry := range request.Entries {
		hasURL = hasURL || entry.Key == "url"
		field, ok := spec.field(entry.Key)
		switch {
		case entry.Key == "auth":
			field = Field{Name: "auth", Kind: KindText}
		case !ok:
			hint := "its keys are auth, " + listed(spec.FieldNames())
			if near := expression.Suggest(entry.Key, append(spec.FieldNames(), "auth")); near != "" {
				hint = "did you mean " + quote(near) + "?"
			}
			c.errorf(entry.KeyPos, codeUnknownField, "%s has no key %q; %s", name, shorten(entry.Key), hint)
			c.offer(entry.Key, expression.Certain(entry.Key, append(spec.FieldNames(), "auth")))
			continue
		}
		if problem := field.problem(entry.Value); problem != "" {
			c.errorf(entry.Value.Pos, codeFieldType, "%s of %s %s", field.Name, name, problem)
		}
	}
	if !hasURL && !c.partial {
		c.errorf(request.Pos, codeMissingField, "%s needs a url: where the request is sent", name)
	}
}

// has reports whether a field is there, words of the language included.
func (a *Action) has(name string) bool {
	switch name {
	case "auth":
		return a.Auth != nil
	case "args":
		return a.Args != nil
	case FieldWorkflow:
		if a.Inline != nil {
			return true
		}
	}
	return a.Field(name) != nil
}

// givenByCallers reports whether a workbook entry gets one of the words from
// every step that calls it.
func (c *checker) givenByCallers(call actionAt, group []string) bool {
	if call.spot != atWorkbook {
		return false
	}
	callers := c.callers(call.action)
	return len(callers) > 0 && !slices.ContainsFunc(callers, func(step *Step) bool {
		return !slices.ContainsFunc(callKeys, func(k keyOf[Action]) bool { return slices.Contains(group, k.name) && step.Action.has(k.name) })
	})
}

func (c *checker) missingField(call actionAt, spec ToolSpec, what string) {
	c.errorf(call.action.start(), codeMissingField, "%s needs %s, as its tool is %s", call.who(), what, spec.Name)
}

// kind is what a call is that writes, in messages.
func (a actionAt) kind() string {
	if a.spot&atNotices != 0 {
		return "a notice"
	}
	return "a sink"
}

// who names the call in a message.
func (a actionAt) who() string {
	switch {
	case a.spot&atNotices != 0:
		return "the notice " + a.sink.Place
	case a.sink != nil:
		return fmt.Sprintf("a sink of step %q", a.step.Name)
	case a.step != nil:
		return fmt.Sprintf("step %q", a.step.Name)
	}
	return fmt.Sprintf("the workbook entry %q", a.action.Name)
}

// section is the section that the call is in.
func (a actionAt) section() *section {
	switch {
	case a.spot&atNotices != 0:
		return noticeSection
	case a.sink != nil:
		return sinkSection
	case a.step == nil:
		return workbookSection
	}
	return stepSection
}

// unknownField reports a key that is neither a word of the language nor a
// field of the tool. A misspelt word looks like a field, so both are suggested.
func (c *checker) unknownField(call actionAt, spec ToolSpec, entry *Entry) {
	section := call.section()
	hint := fieldHint(entry.Key, section, spec)
	c.errorf(entry.KeyPos, codeUnknownField, "the tool %s has no field %q%s", spec.Name, shorten(entry.Key), hint.text)
	c.offer(entry.Key, hint.certain(entry.Key, append(spec.FieldNames(), section.names()...)))
}

// fieldHint says what is meant by a key that is neither a field of the tool nor a
// word of the section.
func fieldHint(name string, s *section, spec ToolSpec) hint {
	if known, ok := s.find(name, true); ok {
		return writes(known.name)
	}
	if newer, ok := olderFields[name]; ok {
		if _, known := spec.field(newer); known {
			return writes(newer)
		}
	}
	if found := foreignKey(name, s, &spec); found.text() != "" {
		return foreignHint(found)
	}
	if hint, found := otherLevel(name, s, sections, false); found {
		return hint
	}
	if near := expression.Suggest(name, append(spec.FieldNames(), s.names()...)); near != "" {
		return meant(near)
	}
	if hint, found := otherLevel(name, s, sections, true); found {
		return hint
	}
	return says("; its fields are " + listed(spec.FieldNames()))
}

// kindRule says what is wrong with a value of a kind, "" if nothing is.
type kindRule struct {
	// written is asked of what has no template, nil where all is right.
	written func(Field, *Node) string
	// template is asked of what has one, nil where all is right: what it gives is not
	// known here.
	template func(Field, *Node) string
	// empty is true where nothing may be, or written says so itself.
	empty bool
}

var kindRules = map[FieldKind]kindRule{
	KindValue:     {empty: true},
	KindLiteral:   {written: Field.literalProblem, template: Field.literalProblem, empty: true},
	KindChoice:    {written: choiceProblem, template: Field.literalProblem, empty: true},
	KindCode:      {written: isCode, template: isCode, empty: true},
	KindRequest:   {written: requestProblem, template: requestProblem, empty: true},
	KindMap:       {written: ofType("a map", func(n *Node) bool { return n.kind == mapNode }), template: mixedProblem},
	KindList:      {written: ofType("a list", func(n *Node) bool { return n.kind == listNode }), template: mixedProblem},
	KindText:      {written: textProblem},
	KindStatement: {written: textProblem},
	KindNumber:    {written: ofType("a number", func(n *Node) bool { return isNumber(n.Value) })},
	KindBoolean:   {written: ofType("true or false", func(n *Node) bool { return n.Value == true || n.Value == false })},
	KindDuration:  {written: durationProblem},
}

// problem says what is wrong with a field's value, "" if nothing is.
func (f Field) problem(node *Node) string {
	rule := kindRules[f.Kind]
	check := rule.written
	if node.Template != nil {
		check = rule.template
	} else if !rule.empty && node.kind == constantNode && node.Value == nil {
		return "is empty; give it a value or leave it out"
	}
	if check == nil {
		return ""
	}
	return check(f, node)
}

// ofType is the rule that a value is of a type.
func ofType(want string, is func(*Node) bool) func(Field, *Node) string {
	return func(_ Field, node *Node) string { return wrongType(node, want, is(node)) }
}

var isCode = ofType("text below code: |", func(n *Node) bool { _, ok := n.Value.(string); return ok })

func choiceProblem(f Field, node *Node) string {
	if node.kind == mapNode {
		return "" // its keys are checked by themselves
	}
	return f.literalProblem(node)
}

func requestProblem(_ Field, node *Node) string {
	if node.Template != nil {
		return "must be written out as a map with a url; templates are allowed in its values"
	}
	return wrongType(node, "a map with a url, such as {url: …, body: …}", node.kind == mapNode)
}

func textProblem(f Field, node *Node) string {
	return cmp.Or(wrongType(node, "text", node.scalar()), f.enumProblem(node))
}

// scalar is false for lists and maps.
func (n *Node) scalar() bool {
	if n.kind == listNode || n.kind == mapNode {
		return false
	}
	switch n.Value.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}

func (f Field) literalProblem(node *Node) string {
	switch {
	case node.kind == listNode:
		for _, item := range node.Items {
			if problem := f.literalProblem(item); problem != "" {
				return problem
			}
		}
		return ""
	case node.Template != nil || !node.Constant():
		return "must be written out: no template is allowed here"
	}
	if list, ok := node.Value.([]any); ok {
		for _, item := range list {
			if _, ok := item.(string); !ok {
				return "must be text or a list of texts, not a list with " + describe(item)
			}
		}
		return ""
	}
	text, ok := node.Value.(string)
	if problem := wrongType(node, "text", ok); problem != "" {
		return problem
	}
	if f.Unquoted && strings.Contains(text, `"`) {
		return fmt.Sprintf("must be a name without quotes, as the tool quotes it, not %s", text)
	}
	return f.enumProblem(node)
}

// mixedProblem refuses text with templates in it where a map or list is needed.
func mixedProblem(f Field, node *Node) string {
	if _, ok := node.Template.Single(); ok {
		return ""
	}
	return fmt.Sprintf("must be a %s, not text; a single {{ }} may give one", f.Kind)
}

func wrongType(node *Node, want string, ok bool) string {
	if ok {
		return ""
	}
	got := describe(node.Value)
	switch node.kind {
	case listNode:
		got = "a list"
	case mapNode:
		got = "a map"
	case constantNode, templateNode:
	}
	return "must be " + want + ", not " + got
}

func isNumber(v any) bool {
	return expression.TypeName(v) == expression.TypeName(0)
}

func (f Field) enumProblem(node *Node) string {
	if len(f.Enum) == 0 {
		return ""
	}
	text := expression.Text(node.Value)
	if slices.ContainsFunc(f.Enum, func(one string) bool { return strings.EqualFold(one, text) }) {
		return ""
	}
	if near := cmp.Or(f.foreignValue(text), expression.Suggest(text, f.Enum)); near != "" {
		return fmt.Sprintf("must be %s, not %q; did you mean %q?", oneOf(f.Enum), text, near)
	}
	return fmt.Sprintf("must be %s, not %q", oneOf(f.Enum), text)
}

func durationProblem(_ Field, node *Node) string {
	switch v := node.Value.(type) {
	case int, float64, json.Number:
		if seconds, isFloat := expression.Float(v); !isFloat || seconds >= 0 {
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
