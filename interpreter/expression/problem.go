package expression

import "slices"

// Problem is something wrong with an expression or template as written.
// Offset and End are offsets in runes in the text that was given; Message says
// what is wrong and what works.
type Problem struct {
	Offset, End int
	Code        string
	Message     string
	// Old, at Offset, has New as its certain correction; "" for none.
	Old, New string
}

// The codes of problems. Each is a heading of docs/reference/diagnostics.md.
const (
	codeSyntax          = "syntax"
	codeUnknownFunction = "unknown-function" // also unknown tests
	codeArguments       = "arguments"        // a wrong number of arguments
	codeUnsupported     = "unsupported"      // known elsewhere, refused here
	codeAmbiguous       = "ambiguous"        // Jinja and expr read it differently
	codeTooLarge        = "too-large"
	codePattern         = "pattern" // a regular expression that does not compile
	codeJinjaBlock      = "jinja-block"
	codeConditionText   = "condition-text"

	codeTemplateInString = "template-in-string" // of NestedProblems
)

// parseFailure carries the problem that ended a parse up to parse.
type parseFailure struct{ problem Problem }

// failParse ends the parse of one expression. parser.reportProblem collects problems after
// which the parser can continue.
func failParse(from, to int, code, message string) {
	panic(parseFailure{Problem{Offset: from, End: to, Code: code, Message: message}})
}

// shiftProblems moves problems by n runes, from an expression into its template.
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
