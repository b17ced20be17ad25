package playbook

import (
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/yamltree"
)

// occasion says after which outcomes an older form evaluates a condition. The list evaluates every condition after
// every outcome.
type occasion uint8

const (
	anyOutcome occasion = iota
	afterFailure
	afterSuccess
)

// Facts about names after a success, and after a failure with and without a response.
var (
	SuccessFacts = map[string]expression.Fact{
		"error": expression.FactNil, "success": expression.FactTrue, "status_code": expression.FactBetween(100, 399),
	}
	FailureFacts = map[string]expression.Fact{
		"error": expression.FactDefined, "success": expression.FactFalse, "status_code": expression.FactBetween(400, 599),
		"response": expression.FactNil, "data": expression.FactNil, "page": expression.FactNil,
	}
	NoAnswerFacts = map[string]expression.Fact{
		"error": expression.FactDefined, "success": expression.FactFalse, "status_code": expression.FactNil,
		"response": expression.FactNil, "data": expression.FactNil, "page": expression.FactNil,
	}
)

// FailuresOnly reports whether a condition can only be true after a failure.
func FailuresOnly(p *expression.Program) bool {
	return p.Assume(SuccessFacts) == expression.AlwaysFalse
}

// SuccessesOnly reports whether a condition can only be true after a success.
func SuccessesOnly(p *expression.Program) bool {
	return p.Assume(FailureFacts) == expression.AlwaysFalse && p.Assume(NoAnswerFacts) == expression.AlwaysFalse
}

// origin is the scalar from which a condition was rewritten.
type origin struct {
	raw string
	// offsets are the offsets in raw of the runes of the rewritten text, and of its end.
	offsets []int
}

// ownCondition returns a new condition; from is the word from which it is derived.
func (p *policyDraft) ownCondition(source, from string) *yaml.Node {
	n := p.scalarFrom("{{ "+source+" }}", "!!str", from)
	n.Style = yamltree.QuoteStyle(n.Value)
	return n
}

// mergeConditions uses the condition under one of two words, otherwise the fallback, and stop_when.
func (p *policyDraft) mergeConditions(first, second, fallback string, o occasion) {
	one, other := p.values[first], p.values[second]
	switch {
	case one != nil && other != nil:
		p.Errorf(positionOf(p.keys[second]), CodeConflict, "%q means the same as %q on line %d; keep one of them",
			second, first, p.keys[first].Line)
	case one == nil && other == nil:
		p.when = p.ownCondition(fallback, "")
	case one == nil:
		first, one = second, other
		fallthrough
	default:
		p.when, p.whenKey = p.listCondition(one, o), p.keys[first]
	}
	if n := p.values["stop_when"]; n != nil {
		p.stop = p.listCondition(n, o)
	}
}

// listCondition converts a condition for the list: without names that only older forms have, and true only after
// the outcomes for which its form evaluates it. An unchanged condition remains the same node, and so does one with
// a problem, which decoding it will report.
func (d *decoder) listCondition(n *yaml.Node, o occasion) *yaml.Node {
	return d.listConditionOf(n, o, nil)
}

// listConditionOf is listCondition for a form with additional names.
func (d *decoder) listConditionOf(n *yaml.Node, o occasion, names *pageNames) *yaml.Node {
	if d.broken[n] || n.Kind != yaml.ScalarNode || isNull(n) {
		return n
	}
	template, problems := expression.ParseCondition(n.Value)
	if len(problems) > 0 || template == nil {
		return n
	}
	program, ok := template.SingleProgram()
	if !ok {
		return n
	}
	w := &rewriter{source: []rune(program.Source())}
	w.base = len([]rune(n.Value[:max(strings.Index(n.Value, program.Source()), 0)]))
	before := beforeCondition(program, o)
	w.addText("{{ "+before, 0)
	changed := w.replaceNames(program, statusWord(program, o), names)
	if !changed && before == "" {
		return n
	}
	if before != "" {
		w.addText(")", len(w.source))
	}
	w.addText(" }}", len(w.source))
	return d.rewriteNode(n, w)
}

// beforeCondition returns the text before a condition that restricts it to the outcomes of its form.
func beforeCondition(program *expression.Program, o occasion) string {
	switch {
	case o == afterFailure && !FailuresOnly(program):
		return "error is defined and ("
	case o == afterSuccess && !SuccessesOnly(program):
		return "error is not defined and ("
	}
	return ""
}

// statusWord returns the list's name for status_code.
func statusWord(program *expression.Program, o occasion) string {
	switch {
	case o == afterFailure, o == anyOutcome && FailuresOnly(program):
		return "error.status"
	case o == afterSuccess, SuccessesOnly(program):
		return "this.meta.status"
	}
	return "(error.status or this.meta.status)"
}

func (d *decoder) rewriteNode(n *yaml.Node, w *rewriter) *yaml.Node {
	rewritten := &yaml.Node{
		Kind: yaml.ScalarNode, Tag: "!!str", Value: string(w.out),
		Line: n.Line, Column: n.Column, Style: yamltree.QuoteStyle(string(w.out)),
	}
	copyComments(rewritten, n)
	if d.origins == nil {
		d.origins = map[*yaml.Node]*scalarOrigin{}
	}
	d.origins[rewritten] = &scalarOrigin{
		origin: &origin{raw: n.Value, offsets: append(w.offsets, w.base+len(w.source))}, style: yamltree.StyleOf(n),
	}
	return rewritten
}

// rewriter rewrites an expression and records the origin of each part.
type rewriter struct {
	source  []rune
	base    int // offset of source in the scalar
	out     []rune
	offsets []int
}

// addText writes text and records source[at] as its origin.
func (w *rewriter) addText(text string, at int) {
	for _, r := range text {
		w.out = append(w.out, r)
		w.offsets = append(w.offsets, w.base+at)
	}
}

func (w *rewriter) copyText(from, to int) {
	for i := from; i < to; i++ {
		w.addText(string(w.source[i]), i)
	}
}

// replaceNames copies the source, without surrounding white space, and replaces the names of older forms; it
// returns false if there are none.
func (w *rewriter) replaceNames(program *expression.Program, status string, names *pageNames) bool {
	at, end := 0, len(w.source)
	for at < end && unicode.IsSpace(w.source[at]) {
		at++
	}
	for end > at && unicode.IsSpace(w.source[end-1]) {
		end--
	}
	changed := false
	for _, ref := range program.Refs() {
		newer, behind := names.newName(ref, w.source)
		switch ref.Root {
		case "status_code":
			newer, behind = status, ref.End
		case "attempt":
			newer, behind = "_retry.attempt", ref.End
		case "data":
			newer, behind = "response", ref.End
		case "success":
			newer, behind = w.operandText("error is not defined", ref.Offset, ref.End), ref.End
		}
		if newer == "" || ref.Offset < at {
			continue
		}
		w.copyText(at, ref.Offset)
		w.addText(newer, ref.Offset)
		at, changed = behind, true
	}
	w.copyText(at, end)
	return changed
}

// operandText puts a test in parentheses unless it is the whole condition or an operand of and, or.
func (w *rewriter) operandText(test string, from, to int) string {
	before := strings.TrimSpace(string(w.source[:from]))
	after := strings.TrimSpace(string(w.source[to:]))
	loose := before == "" || strings.HasSuffix(before, "(") || strings.HasSuffix(before, " and") || strings.HasSuffix(before, " or")
	if loose && (after == "" || after[0] == ')' || strings.HasPrefix(after, "and ") || strings.HasPrefix(after, "or ")) {
		return test
	}
	return "(" + test + ")"
}
