package check

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// Members with a fixed type.
var (
	numberMembers = map[string][]string{
		"error": {"status", "retry_after", "attempt", "page", "policy"}, "_retry": {"page", "index", "attempt", "count", "policy"},
		"_loop": {"index", "count", "size"}, playbook.PartitionWord: {"index"}, "meta": {"attempts", "pages", "status"},
	}
	textMembers = map[string][]string{
		"error": {"kind", "class", "message", "type", "url"}, "this": {"status"}, "run": {"id", "playbook"}, playbook.PartitionWord: {"key"},
	}
)

// checkMixedTypes warns about comparisons of a text with a number, such as error.status == "404": they are never
// true. It ignores responses, whose types are unknown.
func checkMixedTypes(c *checker) {
	for _, at := range c.pb.AllValues() {
		for leaf := range at.Node.Templates() {
			for _, segment := range leaf.Template.Segments() {
				if segment.Program == nil {
					continue
				}
				for _, mixed := range segment.Program.MixedComparisons(c.typeOf) {
					warnMixed(c, c.placeOf(leaf, segment.InnerOffset()+mixed.Offset), mixed)
				}
			}
		}
	}
}

func warnMixed(c *checker, pos place, mixed expression.MixedComparison) {
	always := "never true"
	if mixed.Operator == "!=" {
		always = "always true"
	}
	if mixed.Type == expression.TextType {
		c.Warnf(pos.sourcePosition(), codeMixedTypes, "%s is text, and %s is a number, so this is %s; write '%s'", mixed.Other, mixed.Written, always, mixed.Written)
		return
	}
	number := plainText(mixed.Written)
	if _, err := strconv.Atoi(number); err != nil {
		c.Warnf(pos.sourcePosition(), codeMixedTypes, "%s is a number, and %s is text, so this is %s; compare it with a number", mixed.Other, mixed.Written, always)
		return
	}
	c.Warnf(pos.sourcePosition(), codeMixedTypes, "%s is a number, and %s is text, so this is %s; write %s", mixed.Other, mixed.Written, always, number)
	if pos.node.File() != nil { // quotes may be escaped there
		end := c.placeOf(pos.node, pos.offset+utf8.RuneCountInString(mixed.Written))
		c.AddFix(pos.node.File().TextBetween(pos.sourcePosition(), end.sourcePosition()), number)
	}
}

// plainText returns a literal text without its quotes.
func plainText(written string) string {
	const quotes = 2
	if len(written) < quotes {
		return written
	}
	return written[1 : len(written)-1]
}

// typeOf returns the type of the value at a path, as far as it is known.
func (c *checker) typeOf(root string, path []any) expression.Type {
	if root == "steps" && len(path) > 1 { // the envelope of a step is as this
		root, path = "this", path[1:]
	}
	if root == "this" && len(path) > 1 && (path[0] == "error" || path[0] == "meta") {
		root, path = path[0].(string), path[1:]
	}
	member, ok := playbook.MemberAt(path, 0)
	if !ok || len(path) != 1 {
		return expression.AnyType
	}
	return memberType(root, member)
}

func memberType(owner, member string) expression.Type {
	switch {
	case slices.Contains(numberMembers[owner], member):
		return expression.NumberType
	case slices.Contains(textMembers[owner], member):
		return expression.TextType
	}
	return expression.AnyType
}
