package expression

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/source"
)

// TestRefused holds the whole text of every message, because the messages are
// what an author works with.
// It passes maxSource, maxNodes, maxNesting and maxClosures.
func TestRefused(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		source  string
		at      int
		code    string
		message string
	}{
		// words of the lexer
		{`a // b`, 2, "syntax", `"//" is floor division in Jinja and a comment in expr; write floor(a / b)`},
		{`a /* b */`, 2, "syntax", `comments are not part of an expression; put them into the YAML as # comment`},
		{`a === b`, 2, "syntax", `"===" is no operator; write ==`},
		{`a !== b`, 2, "syntax", `"!==" is no operator; write !=`},
		{`a <> b`, 2, "syntax", `"<>" is no operator; write !=`},
		{`::len(a)`, 0, "syntax", `"::" is no operator; a slice has no step, and a function is called by its name alone`},
		{`a->b`, 1, "syntax", `"->" is no operator; write the member as a.b`},
		{`$env.a`, 0, "syntax", `"$env" is a name of n8n; credentials stay with the worker: use a connection, with auth`},
		{`$a.b`, 0, "syntax", `names start with a letter or "_"; "$" is not part of a name`},
		{`a & b`, 2, "syntax", `"&" is no operator; write and, or bitand(a, b)`},
		{`b"x"`, 0, "syntax", `bytes literals such as b"x" are not accepted; write the text without b`},
		{`'é' + 'abc`, 6, "syntax", `the text that starts with ' is never closed`},
		{`"\u12"`, 1, "syntax", `\u needs 4 hexadecimal digits; a backslash itself is written \\`},
		{`"\U80000000"`, 1, "syntax", `\U needs 8 hexadecimal digits; a backslash itself is written \\`},
		{`"\U00110000"`, 1, "syntax", `"\\U00110000" is not a character`},
		{`a"x"`, 1, "syntax", `unexpected the text "x"; an operator was expected here`},
		{`"\ud83d"`, 1, "syntax", `"\\ud83d" is not a character`},
		{`2nd.x`, 0, "syntax", `"2nd" is neither a number nor a name; a name cannot start with a digit, reach it as steps["2nd"]`},
		{`a \ b`, 2, "syntax", `"\\" is not part of an expression`},
		{`1e999`, 0, "syntax", `"1e999" is too large for a number`},
		{`0xZZ`, 0, "syntax", `"0xZZ" does not fit into 64 bits`},

		// operands
		{``, 0, "syntax", `the expression is empty`},
		{`   `, 0, "syntax", `the expression is empty`},
		{`a +`, 2, "syntax", `a value is missing after "+"`},
		{`a + * b`, 4, "syntax", `a value is missing before "*"`},
		{`and b`, 0, "syntax", `a value is missing before "and"`},
		{`| len`, 0, "syntax", `a value is missing before "|"`},
		{`a b`, 2, "syntax", `unexpected "b"; an operator was expected here`},
		{`a 'b'`, 2, "syntax", `unexpected the text "b"; an operator was expected here`},
		{`a = b`, 2, "syntax", `"=" is no comparison; write ==`},
		{`a == not b`, 5, "syntax", `put parentheses around not here: (not x)`},
		{`a; b`, 1, "syntax", `";" belongs only behind let, as in let x = a.b; x + 1`},
		{`a, b`, 1, "syntax", `"," belongs only inside brackets; a list is written [a, b]`},
		{`a)`, 1, "syntax", `")" closes nothing`},
		{`(a + b`, 0, "syntax", `"(" is never closed; ")" is missing`},
		{`len(a`, 3, "syntax", `"(" is never closed; ")" is missing`},
		{`[1, 2`, 0, "syntax", `"[" is never closed; "]" is missing`},
		{`{a: 1`, 0, "syntax", `"{" is never closed; "}" is missing`},
		{`{a 1}`, 3, "syntax", `unexpected "1"; ":" was expected after a key, as in {name: value}`},
		{`{+: 1}`, 1, "syntax", `unexpected "+"; a key was expected: a name, a text, a number, or (an expression) in parentheses`},
		{`()`, 0, "syntax", `"()" holds no value; an empty list is written []`},
		{`vars.*`, 4, "syntax", `a name was expected after ".", not "*"; other keys are written a["the key"]`},
		{`a.`, 1, "syntax", `a name was expected after ".", not the end; other keys are written a["the key"]`},
		{`.a`, 0, "syntax", `a name is missing before "."; .name alone is allowed only inside a predicate`},
		{`# > 1`, 0, "syntax", `"#" is the element of a list and is allowed only inside a predicate, as in filter(xs, # > 1)`},
		{`a[]`, 1, "syntax", `an index was expected in "[]"`},
		{`a[1`, 1, "syntax", `"[" is never closed; "]" is missing`},
		{`"a"("b")`, 3, "syntax", `only functions can be called, by their names: len(x)`},
		{`1..2..3`, 4, "syntax", `unexpected ".."; a range has two ends, as in 1..3`},

		// chains
		{`a == b == c`, 7, "ambiguous", `a == b == c means one thing in Jinja and another in expr; ` +
			`add parentheses, (a == b) == c, or write a == b and b == c`},
		{`a < b == c`, 6, "ambiguous", `a < b == c means one thing in Jinja and another in expr; ` +
			`add parentheses, (a < b) == c, or write a < b and b == c`},
		{`a in b == c`, 7, "ambiguous", `a in b == c means one thing in Jinja and another in expr; ` +
			`add parentheses, (a in b) == c, or write a in b and b == c`},
		{`a not in b in c`, 11, "ambiguous", `a in b in c means one thing in Jinja and another in expr; ` +
			`add parentheses, (a in b) in c, or write a in b and b in c`},

		// conditionals and let
		{`a if b`, 2, "syntax", `"a if c" needs an else; write a if c else nil, or a if c else ""`},
		{`[a if b, 1]`, 3, "syntax", `"a if c" needs an else; write a if c else nil, or a if c else ""`},
		{`a if b c`, 7, "syntax", `unexpected "c"; "else" or an operator was expected here`},
		{`a else b`, 2, "syntax", `"else" without "if"; write a if c else b`},
		{`a ? b`, 2, "syntax", `"?" needs ":"; write c ? a : b`},
		{`if a { b }`, 10, "syntax", `unexpected the end; if needs an else: if c { a } else { b }`},
		{`if a`, 4, "syntax", `unexpected the end; if is written if c { a } else { b }, or a if c else b`},
		{`let x = 1`, 9, "syntax", `unexpected the end; let needs a body: let x = …; …`},
		{`let x = 1;`, 10, "syntax", `let needs a body: let x = …; …`},
		{`let x 1; x`, 6, "syntax", `unexpected "1"; let is written let x = …; …`},
		{`let x = 1; let x = 2; x`, 15, "syntax", `"x" is already bound by an outer let; choose another name`},
		{`let nil = 1; nil`, 4, "syntax", `"nil" is reserved; choose another name`},

		// functions
		{`lenght(a)`, 0, "unknown-function", `unknown function "lenght"; did you mean "length"?`},
		{`a | lowr`, 4, "unknown-function", `unknown function "lowr"; did you mean "lower"?`},
		{`frobnicate(a)`, 0, "unknown-function", `unknown function "frobnicate"; docs/reference/expressions.md lists the functions`},
		{`xs | count`, 5, "ambiguous", `count without a condition is the length in Jinja, and the number of true elements in expr; ` +
			`write len(xs), or count(xs, # > 1) with a condition`},
		{`count(xs)`, 0, "ambiguous", `count without a condition is the length in Jinja, and the number of true elements in expr; ` +
			`write len(xs), or count(xs, # > 1) with a condition`},
		{`a | +`, 4, "syntax", `unexpected "+"; the name of a function was expected after "|", as in x | lower`},
		{`a.items()`, 2, "unsupported", `values have no method "items"; write it as the function ` + functions["toPairs"].signature},
		{`a.strip()`, 2, "unsupported", `values have no method "strip"; write it as the function ` + functions["trim"].signature},
		{`a.frob()`, 2, "unsupported", `values have no method "frob"; functions are written f(x) or x | f`},
		{`a | default(value=1)`, 12, "unsupported", `value= is a keyword argument, which are not accepted; ` +
			`write the arguments in order: ` + functions["default"].signature},
		{`a | map(attribute='n')`, 8, "unsupported", `attribute= is not accepted; write the member with a dot: map(xs, .name)`},
		{`a | map('upper')`, 8, "ambiguous", `"upper" is the same for every element; in Jinja it would be the name of a ` +
			`member or filter: write map(xs, .upper) or map(xs, upper(#))`},
		{`lower()`, 0, "arguments", `lower takes 1 argument, not 0: ` + functions["lower"].signature},
		{`a | lower(1)`, 4, "arguments", `lower takes 1 argument, not 2 with the value before it: ` + functions["lower"].signature},
		{`filter(xs)`, 0, "arguments", `filter takes 2 arguments, not 1: ` + functions["filter"].signature},

		// tests, pointers, patterns
		{`a is`, 4, "syntax", `unexpected the end; a test was expected after "is", such as defined or none; values are compared with ==`},
		{`a is 1`, 5, "syntax", `unexpected "1"; a test was expected after "is", such as defined or none; values are compared with ==`},
		{`a is even`, 5, "unknown-function", `unknown test "even"; write x % 2 == 0`},
		{`a is defind`, 5, "unknown-function", `unknown test "defind"; did you mean "defined"?`},
		{`a is frobbed`, 5, "unknown-function", `unknown test "frobbed"; the tests are defined, none, true, false, ` +
			`string, number, boolean, mapping and sequence`},
		{`filter(xs, #index > 0)`, 12, "unsupported", `#index is available only in map and reduce, not in filter`},
		{`map(xs, #acc)`, 9, "unsupported", `#acc is available only in reduce, not in map`},
		{`map(xs, #name)`, 9, "syntax", `unknown #name; a member of the element is written .name or #.name`},
		{`a matches b`, 10, "pattern", `the pattern of matches must be a constant, as in name matches "^a+$"; for plain text use contains`},

		// limits
		{`all(a, all(b, all(c, # > 1)))`, 21, "too-large", `all inside all inside all: predicates may be nested 2 deep; ` +
			`compute the inner list in vars first`},
		{
			strings.Repeat("(", 70) + "a" + strings.Repeat(")", 70), 64, "too-large",
			`the expression is nested more than 64 deep; compute a part of it in vars first`,
		},
		{
			strings.Repeat("-", 70) + "a", 63, "too-large",
			`the expression is nested more than 64 deep; compute a part of it in vars first`,
		},
		{
			"a" + strings.Repeat("+a", 300), 499, "too-large",
			`the expression has more than 500 parts; compute a part of it in vars first`,
		},
		{
			`"` + strings.Repeat("x", 4095) + `"`, 0, "too-large",
			`the expression has 4097 bytes, 4096 are allowed; compute a part of it in vars first`,
		},
	} {
		t.Run(source.CutText(c.source, 40), func(t *testing.T) {
			t.Parallel()

			program, problems := Compile(c.source)
			require.Nil(t, program)
			require.NotEmpty(t, problems)
			require.Equal(t, c.message, problems[0].Message)
			require.Equal(t, c.at, problems[0].Offset)
			require.Equal(t, c.code, problems[0].Code)
			require.Greater(t, problems[0].End+1, problems[0].Offset)
		})
	}
}

// Everything that is wrong is said at once, in the order of the text.
func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()

	_, problems := Compile(`lowr(a) ~ (b | upper(1, 2)) ~ filter(xs, #index) ~ (a == b == c)`)

	var offsets []int
	for _, p := range problems {
		offsets = append(offsets, p.Offset)
	}

	require.Equal(t, []int{0, 15, 42, 59}, offsets)
}

// What stands in the tree twice counts twice, so that a short text cannot
// make a program of any size.
func TestChainsCountTwice(t *testing.T) {
	t.Parallel()

	nested := "x"
	for range 12 {
		nested = "(a<(" + nested + ")<a)"
	}

	_, problems := Compile(nested)
	require.Len(t, problems, 1)
	require.Equal(t, "too-large", problems[0].Code)

	_, problems = Compile(strings.Repeat("(", 20) + "a" + strings.Repeat(" ?: b)", 20))
	require.Len(t, problems, 1)
	require.Equal(t, "too-large", problems[0].Code)
}

func TestRefusedFunctions(t *testing.T) {
	t.Parallel()
	require.NotEmpty(t, refused)

	for name, hint := range refused {
		_, problems := Compile(name + "(a)")
		require.Len(t, problems, 1, "%s is a function: remove it from refused in functions.go", name)

		if name == "count" {
			continue // has a message of its own
		}

		require.Equal(t, "unsupported", problems[0].Code, name)
		require.Equal(t, `"`+name+`" is not a function here; `+hint, problems[0].Message)
	}
}

// TestNamesOfOtherLanguages: what Airbyte's templates and Jinja call a function has a hint of what to write.
func TestNamesOfOtherLanguages(t *testing.T) {
	t.Parallel()

	for source, want := range map[string]string{
		`now_utc()`:                          `write now()`,
		`now_utc().strftime("%Y-%m-%d")`:     `write format_time(t, "2006-01-02"), or unix(t) for %s`,
		`now_utc().strftime("%s")`:           `write now()`,
		`today_utc()`:                        `write format_time(now(), "2006-01-02")`,
		`today_with_timezone("Europe/Rome")`: `write format_time(now(), "2006-01-02", "Europe/Berlin")`,
		`day_delta(-1)`:                      `write add_time(now(), "-1d")`,
		`format_datetime(x, "%Y")`:           `write format_time(t, "2006-01-02")`,
		`str_to_datetime(x)`:                 `write date(text)`,
		`timestamp(x)`:                       `write unix(t)`,
		`duration("P1D")`:                    `add_time(t, "1d")`,
		`duration("P1Y2M3DT4H5M6S")`:         `add_time(t, "1y2mo3d4h5m6s")`,
		`xs | batch(10)`:                     `write chunk(xs, n)`,
		`a | combine(b)`:                     `write merge(a, b)`,
		`camel_case_to_snake_case(x)`:        `write snake_case(text)`,
		`greatest(a, b)`:                     `latest(a, b)`,
	} {
		_, problems := Compile(source)
		require.NotEmpty(t, problems, source)

		var messages []string
		for _, p := range problems {
			messages = append(messages, p.Message)
		}

		require.Contains(t, strings.Join(messages, "\n"), want, source)
	}
}

// TestLetMayHaveTheNameOfAFunction: a new function breaks no expression that has such a name.
func TestLetMayHaveTheNameOfAFunction(t *testing.T) {
	t.Parallel()

	for source, want := range map[string]any{
		`let merge = 1; merge + 1`:                                                   2,
		`let len = [1, 2]; len(len)`:                                                 2,
		`let latest = "2026-01-01"; latest | latest("2025-01-01")`:                   "2026-01-01",
		`let filter = [1, 2]; filter(filter, # > 1)[0]`:                              2,
		`let max = 5; map([1, 9], max(#, max))[0]`:                                   5,
		`let text = "a"; text ~ text`:                                                "aa",
		`let type = "x"; type is string`:                                             true,
		`let count = 3; count(1..count, # > 1) + count`:                              5,
		`let sum = 4; sum([sum, 1])`:                                                 5,
		`let first = 1; let last = 2; {first: last, "sum": first + last}["sum"] + 0`: 3,
	} {
		program, problems := Compile(source)
		require.Empty(t, problems, source)

		got, err := program.Eval(MapScope{}, NewBudget(DecisionLimits, time.Unix(0, 0)))
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
}
