package expression

import "slices"

// Problem is a mistake in the text of an expression or template. Offset and End are in runes of the given text.
// Message says what is wrong and what to write instead.
type Problem struct {
	Offset, End int
	Code        string
	Message     string
	// Old and New are a correction that is certain: Old, which is at Offset, is to be replaced by New. Both are ""
	// if there is none.
	Old, New string
}

// The codes of problems. Each is a heading in docs/reference/diagnostics.md.
const (
	codeSyntax          = "syntax"
	codeUnknownFunction = "unknown-function" // unknown tests too
	codeArguments       = "arguments"        // a wrong number of arguments
	codeUnsupported     = "unsupported"      // exists in other systems, refused here
	codeAmbiguous       = "ambiguous"        // Jinja and expr read it differently
	codeTooLarge        = "too-large"
	codePattern         = "pattern" // a regular expression that does not compile
	codeJinjaBlock      = "jinja-block"
	codeConditionText   = "condition-text"

	codeTemplateInString = "template-in-string" // from NestedProblems
)

// parseFailure is the panic value that carries the problem that ended a parse.
type parseFailure struct{ problem Problem }

// failParse ends the parse of one expression with a problem. parser.reportProblem records problems after which
// parsing can continue.
func failParse(from, to int, code, message string) {
	panic(parseFailure{Problem{Offset: from, End: to, Code: code, Message: message}})
}

// shiftProblems moves problems by n runes, from offsets in an expression to offsets in its template.
func shiftProblems(problems []Problem, n int) []Problem {
	for i := range problems {
		problems[i].Offset += n
		problems[i].End += n
	}
	return problems
}

func sortProblems(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Offset - b.Offset })
	return problems
}
