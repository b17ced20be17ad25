package expression

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/expr-lang/expr/ast"
	"github.com/stretchr/testify/require"
)

// hugeValues are large ones of every type, so that work which is not charged
// shows. Each call makes copies of its own, as equal texts at one place in memory
// are compared in no time.
func hugeValues() map[string]any {
	const size, parts = 4 << 20, 4

	text := strings.Repeat("a", size)
	number := json.Number(strings.Repeat("9", size))

	var texts, numbers, pairs []any

	longKeys, deepMap := map[string]any{}, any(1)
	deep := any(1)

	for i := range parts {
		part := strings.Repeat("a", size/parts) + string(rune('A'+i))
		longKeys[part] = i
		texts = append(texts, part, strings.Clone(part))
		digits := strings.Repeat("9", size/parts+i%2)
		numbers = append(numbers, json.Number(digits), json.Number("-"+digits))
		pairs = append(pairs, []any{part, i}, []any{strings.Clone(part), i})
	}

	wide := map[string]any{}
	ints := make([]any, 50_000)

	for i := range ints {
		ints[i] = i
		wide[fmt.Sprint("key", i)] = i
		deep, deepMap = []any{deep}, map[string]any{"a": deepMap}
	}

	bomb := any([]any{1})
	for range 40 {
		bomb = []any{bomb, bomb}
	}
	return map[string]any{
		"text": text, "characters": strings.Repeat("é", size/2), "blanks": strings.Repeat(" ", size) + "2026-01-02",
		"digits": strings.Repeat("9", size), "zeros": "0." + strings.Repeat("0", size) + "1", "lines": strings.Repeat("a,", size/2),
		"JSON": "[" + strings.Repeat("1,", size/2) + "1]", "longNumberInJSON": strings.Repeat("1", size),
		"number": number, "less": "-" + number, "exponent": json.Number("1e999999999"), "power": json.Number("1e9223372036854775807"),
		"tie": json.Number("1" + strings.Repeat("0", 308)), "largest": math.MaxFloat64, "large": 1e308, "least": 5e-324,
		"int": math.MaxInt, "minInt": math.MinInt, "small": 2, "nothing": nil, "yes": true,
		"ints": ints, "texts": texts, "numbers": numbers, "pairs": pairs, "deep": deep, "bomb": bomb,
		"wide": wide, "longKeys": longKeys, "deepMap": deepMap,
	}
}

// hugeSources are expressions that between them use every operator, test and
// function of the tables, with the names x, y and z.
func hugeSources() []string {
	sources := []string{
		"x[y]", "x.get(y, z)", "x[y:z]", "x ?? y", "x if y else z", "[x, y]", "{(x): y}", "map([1], {{(x): y}})", "x is not defined",
		"-x", "+x", "!x", "not x", "x ** y", "x.a.b[0]", "x[0]", "x ~ y ~ z", "x not in y", "map([1, 2], [x])", "[y][:1] == [x]",
	}

	for _, op := range slices.Sorted(maps.Keys(binaryLevels)) {
		if op == "matches" {
			sources = append(sources, `x matches "^(a|aa)*(b|bb)*$"`, `x matches "[^a]"`)

			continue
		}

		sources = append(sources, "x "+op+" y")
	}

	for _, test := range slices.Sorted(maps.Keys(tests)) {
		sources = append(sources, "x is "+test)
	}

	for _, name := range functionNames() {
		sources = append(sources, callsOf(functions[name])...)
	}
	return sources
}

// callsOf are calls with every number of arguments, and predicates of several
// forms.
func callsOf(f *function) []string {
	var sources []string

	most := f.max
	if most < 0 {
		most = f.min + 1
	}

	for n := f.min; n <= most; n++ {
		if f.predicate != noPredicate && n > 1 {
			for _, body := range []string{"#", "# == y", "# in y", "x", "#.a", "-#"} {
				sources = append(sources, fmt.Sprintf("%s(x, %s%s)", f.name, body, strings.Repeat(", y", n-2)))
			}

			continue
		}

		sources = append(sources, fmt.Sprintf("%s(%s)", f.name, strings.Join([]string{"x", "y", "z", `"UTC"`}[:n], ", ")))
	}
	return sources
}

// helpersIn adds the helpers that a source is lowered to.
func helpersIn(t *testing.T, source string, found helperFinder) {
	t.Helper()

	parsed, problems := parseExpression([]rune(source), false)
	require.Empty(t, problems, source)

	node := new(lowering).lowerValue(parsed.node)
	ast.Walk(&node, found)
}

type helperFinder map[string]bool

func (f helperFinder) Visit(node *ast.Node) {
	if name, ok := (*node).(*ast.IdentifierNode); ok && helpers[name.Value] != nil {
		f[name.Value] = true
	}
}

// A decision may take a second, 5 µs for each of its steps. That bound is what
// holds in practice; machines that run tests are slow and busy.
//
// The budget is a tenth of a decision's, so that trying everything takes seconds.
const (
	slowestStep = 10 * time.Microsecond
	slowestByte = time.Microsecond / 2
)

var tenth = Limits{Steps: DecisionLimits.Steps / 10, Bytes: DecisionLimits.Bytes / 10}

// Whatever an operator or function is given, it takes no longer than what it has
// charged for, or its error. New ones are found in the tables.
func TestHugeArgumentsAreCharged(t *testing.T) {
	t.Parallel()

	sources := hugeSources()
	found := helperFinder{}

	for _, source := range sources {
		helpersIn(t, source, found)
	}

	found["$nextRow"] = true // it is $tick in the loop of a RowMap

	require.ElementsMatch(t, slices.Collect(maps.Keys(helpers)), slices.Collect(maps.Keys(found)), "every helper is tried")

	one, other := hugeValues(), hugeValues()

	for _, source := range sources {
		t.Run(source, func(t *testing.T) {
			program, problems := Compile(source)
			require.Empty(t, problems)

			uses := program.roots
			for _, scope := range hugeScopes(one, other, len(uses)) {
				requireCharged(t, program, scope)
			}
		})
	}
}

// hugeScopes are the scopes for as many names as an expression uses: every value
// as x, with one of every sort as y and a few as z.
func hugeScopes(one, other map[string]any, names int) []namedScope {
	var scopes []namedScope

	for _, x := range slices.Sorted(maps.Keys(one)) {
		for _, y := range []string{
			"text", "digits", "number", "power", "tie", "large", "small", "nothing", "ints", "texts", "numbers", "bomb", "wide", "longKeys",
		} {
			for _, z := range []string{"small", "text"} {
				scopes = append(scopes, namedScope{
					name:     strings.Join([]string{x, y, z}, ", "),
					MapScope: MapScope{"x": one[x], "y": other[y], "z": other[z]},
				})
				if names < 3 {
					break
				}
			}

			if names < 2 {
				break
			}
		}
	}
	return scopes
}

type namedScope struct {
	MapScope
	name string
}

func requireCharged(t *testing.T, program *Program, scope namedScope) {
	t.Helper()

	const tries = 20 // what shares a processor may slow it down

	for try := 1; ; try++ {
		b := NewBudget(tenth, time.Unix(0, 0))

		var err error
		took := Took(func() { _, err = program.Eval(scope, b) })

		steps, bytes := b.Used()
		require.LessOrEqual(t, steps, tenth.Steps+1)
		require.LessOrEqual(t, bytes, tenth.Bytes+1)

		if err != nil && strings.Contains(err.Error(), "bytes as JSON") {
			steps += tenth.Bytes / textPerStep // the result was walked so far
		}

		if allowed := time.Duration(steps+2)*slowestStep + time.Duration(bytes)*slowestByte; took <= allowed {
			return
		} else if try == tries {
			require.LessOrEqual(t, took, allowed, "%s of %s: %d steps, %d bytes: %v", program.source, scope.name, steps, bytes, err)
		}
	}
}

// EverySource gives the fuzz target expressions that use all there is.
func EverySource() []string { return hugeSources() }
