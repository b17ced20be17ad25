package expression

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"reprise/interpreter/lists"
)

// textFunctions work on rendered text: nil is the empty text, a number its digits, a list or a map its JSON.
var textFunctions = []function{
	{
		name: "text", min: 1, max: -1, signature: "text(x, …)",
		doc: "The values as text, joined; the same as a ~ b.", call: opText,
	},
	{
		name: "string", min: 1, max: 1, signature: "string(x)",
		doc:  "x as text: nil is empty, lists and maps are JSON.",
		call: func(b *Budget, args []any) (any, error) { return textOf(b, args[0]) },
	},
	{
		name: "lower", min: 1, max: 1, signature: "lower(text)",
		doc: "The text in lower case.", call: callOnText(changeCase(strings.ToLower)),
	},
	{
		name: "upper", min: 1, max: 1, signature: "upper(text)",
		doc: "The text in upper case.", call: callOnText(changeCase(strings.ToUpper)),
	},
	{
		name: "snake_case", min: 1, max: 1, signature: "snake_case(text)",
		doc: "The text as a name in snake case: orderID and Order-Id become order_id, HTTPServer http_server. " +
			"Letters, digits and _ stay; whatever else separates words becomes one _.",
		call: callOnText(callSnakeCase),
	},
	{
		name: "trim", min: 1, max: 2, signature: "trim(text[, characters])",
		doc: "The text without white space at both ends, or without the given characters.", call: callOnText(callTrim),
	},
	{
		name: "trimPrefix", min: 2, max: 2, signature: "trimPrefix(text, prefix)",
		doc:  "The text without the prefix.",
		call: callOnText(func(_ *Budget, s []string, _ []any) (any, error) { return strings.TrimPrefix(s[0], s[1]), nil }),
	},
	{
		name: "trimSuffix", min: 2, max: 2, signature: "trimSuffix(text, suffix)",
		doc:  "The text without the suffix.",
		call: callOnText(func(_ *Budget, s []string, _ []any) (any, error) { return strings.TrimSuffix(s[0], s[1]), nil }),
	},
	{
		name: "hasPrefix", min: 2, max: 2, signature: "hasPrefix(text, prefix)",
		doc:  "Whether the text starts with the prefix.",
		call: callOnText(func(_ *Budget, s []string, _ []any) (any, error) { return strings.HasPrefix(s[0], s[1]), nil }),
	},
	{
		name: "hasSuffix", min: 2, max: 2, signature: "hasSuffix(text, suffix)",
		doc:  "Whether the text ends with the suffix.",
		call: callOnText(func(_ *Budget, s []string, _ []any) (any, error) { return strings.HasSuffix(s[0], s[1]), nil }),
	},
	{
		name: "indexOf", min: 2, max: 2, signature: "indexOf(text, part)",
		doc: "The index at which the part first occurs in the text; -1 if it does not occur.",
		call: callOnText(func(_ *Budget, s []string, _ []any) (any, error) {
			return characterIndex(s[0], strings.Index(s[0], s[1])), nil
		}),
	},
	{
		name: "lastIndexOf", min: 2, max: 2, signature: "lastIndexOf(text, part)",
		doc: "The index at which the part last occurs in the text; -1 if it does not occur.",
		call: callOnText(func(_ *Budget, s []string, _ []any) (any, error) {
			return characterIndex(s[0], strings.LastIndex(s[0], s[1])), nil
		}),
	},
	{
		name: "split", min: 2, max: 3, signature: "split(text, separator[, most])",
		doc: "The parts of the text between separators. With most, there are at most that many parts.", call: callSplit,
	},
	{
		name: "replace", min: 3, max: 4, signature: "replace(text, old, new[, most])",
		doc: "The text with old replaced by new. With most, at most that many times.", call: callReplace,
	},
	{
		name: "join", min: 1, max: 2, signature: "join(xs[, separator])",
		doc: "The elements as text with the separator between them.", call: callJoin,
	},
}

// callOnText wraps a function so that it gets its arguments rendered as text, and charges for scanning them.
func callOnText(call func(b *Budget, texts []string, args []any) (any, error)) func(*Budget, []any) (any, error) {
	return func(b *Budget, args []any) (any, error) {
		texts := make([]string, len(args))
		for i, arg := range args {
			s, err := textOf(b, arg)
			if err != nil {
				return nil, err
			}
			if err := b.chargeRead(len(s)); err != nil {
				return nil, err
			}
			texts[i] = s
		}
		return call(b, texts, args)
	}
}

// changeCase charges for the converted text. Some letters take more bytes in the other case, but never more than
// half as many again.
func changeCase(convert func(string) string) func(*Budget, []string, []any) (any, error) {
	return func(b *Budget, s []string, _ []any) (any, error) {
		if err := b.chargeText(len(s[0]) * 3 / 2); err != nil {
			return nil, err
		}
		return convert(s[0]), nil
	}
}

func callSnakeCase(b *Budget, s []string, _ []any) (any, error) {
	if err := b.chargeWork(len(s[0])/indexPerStep+1, len(s[0])*5/2); err != nil { // an _ for each letter at most, which may be longer in lower case
		return nil, err
	}
	return snakeCase([]rune(s[0])), nil
}

// snakeCase separates words with _. A capital letter starts a word if it follows a small letter or a digit, or if
// it is the last of several capitals and the next letter is small.
func snakeCase(text []rune) string {
	var out strings.Builder
	separated, last := false, rune(0)
	for i, r := range text {
		isWord := r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
		if !isWord {
			separated = out.Len() > 0
			continue
		}
		begins := unicode.IsUpper(r) && i > 0 &&
			(unicode.IsLower(text[i-1]) || unicode.IsDigit(text[i-1]) ||
				unicode.IsUpper(text[i-1]) && i+1 < len(text) && unicode.IsLower(text[i+1]))
		if (separated || begins) && last != '_' && r != '_' {
			out.WriteByte('_')
		}
		separated, last = false, unicode.ToLower(r)
		out.WriteRune(last)
	}
	return out.String()
}

func callTrim(b *Budget, s []string, args []any) (any, error) {
	if len(args) == 1 {
		return strings.TrimSpace(s[0]), nil
	}
	if err := b.chargeWork(len(s[0])/indexPerStep*(len(s[1])/indexPerStep+1), 0); err != nil {
		return nil, err
	}
	return strings.Trim(s[0], s[1]), nil
}

func characterIndex(s string, offset int) int {
	if offset < 0 {
		return -1
	}
	return utf8.RuneCountInString(s[:offset])
}

func callSplit(b *Budget, args []any) (any, error) {
	most := -1
	if len(args) > 2 {
		var err error
		if most, err = wholeArgument("split", "the number of parts", args, 2); err != nil {
			return nil, err
		}
	}
	return callOnText(func(b *Budget, s []string, _ []any) (any, error) {
		n := strings.Count(s[0], s[1]) + 1
		if most >= 0 {
			n = min(n, most)
		}
		if err := b.chargeList(n); err != nil {
			return nil, err
		}
		parts := strings.SplitN(s[0], s[1], most)
		out := lists.Map(parts, func(part string) any { return part })
		return out, nil
	})(b, args[:2])
}

func callReplace(b *Budget, args []any) (any, error) {
	most := -1
	if len(args) > 3 {
		var err error
		if most, err = wholeArgument("replace", "the number of times", args, 3); err != nil {
			return nil, err
		}
	}
	return callOnText(func(b *Budget, s []string, _ []any) (any, error) {
		n := strings.Count(s[0], s[1])
		if most >= 0 {
			n = min(n, most)
		}
		if err := b.chargeText(len(s[0]) + n*(len(s[2])-len(s[1]))); err != nil {
			return nil, err
		}
		return strings.Replace(s[0], s[1], s[2], n), nil
	})(b, args[:3])
}

func callJoin(b *Budget, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		return nil, errors.New("join needs a list, not " + describeValue(s) + "; split makes a list of a string")
	}
	list, err := opList(b, args[0], "join")
	if err != nil {
		return nil, err
	}
	separator, err := textOf(b, argumentAt(args, 1))
	if err != nil {
		return nil, err
	}
	return joinValues(b, list, separator)
}
