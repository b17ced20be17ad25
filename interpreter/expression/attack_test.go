package expression_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
	"reprise/interpreter/expression"
)

// attackScope holds lists and texts that are as large as data can be.
func attackScope() expression.MapScope {
	arr := make([]any, 1000)
	big := make([]any, 50_000)

	for i := range arr {
		arr[i] = i
	}

	for i := range big {
		big[i] = map[string]any{"name": "n" + string(rune('a'+i%26)), "v": i}
	}
	return expression.MapScope{
		"arr": arr,
		"big": big,
		"s":   strings.Repeat("é", 500_000),
		"a":   strings.Repeat("a", 100_000),
	}
}

// attacks are expressions that would run long or make much. Each must end
// within the budget, by an error or with a result.
var attacks = []string{
	`all(arr, all(arr, true))`,
	`all(arr, all(arr, # >= 0))`,
	`all(arr, any(arr, # < 0 and # > 1 and # < 0 and # > 1))`,
	`map(arr, map(arr, #))`,
	`map(arr, map(arr, [#, #, #, #, #, #, #, #]))`,
	`map(arr, map(arr, {"a": #, "b": {"c": [#]}}))`,
	`all(arr, all(arr, ` + strings.Repeat(`# >= 0 and `, 120) + `true))`,
	`all(big, ` + strings.Repeat(`.v >= 0 and `, 75) + `true)`,
	`all(arr, [` + strings.Repeat(`arr,`, 300) + `] != null)`,
	`let x = "0123456789"; let a1 = x ~ x ~ x ~ x ~ x ~ x ~ x ~ x; let a2 = a1 ~ a1 ~ a1 ~ a1 ~ a1 ~ a1 ~ a1 ~ a1; ` +
		`let a3 = a2 ~ a2 ~ a2 ~ a2 ~ a2 ~ a2 ~ a2 ~ a2; let a4 = a3 ~ a3 ~ a3 ~ a3 ~ a3 ~ a3 ~ a3 ~ a3; ` +
		`let a5 = a4 ~ a4 ~ a4 ~ a4 ~ a4 ~ a4 ~ a4 ~ a4; let a6 = a5 ~ a5 ~ a5 ~ a5 ~ a5 ~ a5 ~ a5 ~ a5; len(a6)`,
	`reduce(arr, #acc + #acc, "x")`,
	`reduce(arr, #acc ~ #acc, "x")`,
	`reduce(arr, #acc + #acc, [1])`,
	`reduce(arr, [#acc, #acc], 1)`,
	`reduce(arr, {"a": #acc, "b": #acc}, 1)`,
	`reduce(arr, #acc * #acc, 3)`,
	`reduce(arr, #acc ** 9, 3)`,
	`join(map(arr, s))`,
	`map(arr, toJSON(big))`,
	`map(arr, big | tojson | fromjson)`,
	`all(arr, big == big)`,
	`map(arr, -1 in big)`,
	`map(arr, s[-1])`,
	`map(arr, s[1:])`,
	`map(arr, len(s))`,
	`map(arr, upper(s))`,
	`map(arr, split(s, ""))`,
	`map(arr, replace(s, "é", "ééééé"))`,
	`replace(s, "", s)`,
	`map(arr, s contains "x")`,
	`map(arr, s startsWith s)`,
	`map(arr, indexOf(s, "x"))`,
	`map(arr, s matches "^(é|éé)*x$")`,
	`s matches "((é{20}){20})x"`,
	`map(arr, sort(arr))`,
	`map(arr, sortBy(big, .name))`,
	`sortBy(big, .v, "desc")`,
	`groupBy(big, .name)`,
	`map(arr, groupBy(big, .name))`,
	`map(arr, uniq(big))`,
	`map(arr, flatten([big, big]))`,
	`map(arr, concat(big, big))`,
	`map(arr, big + big)`,
	`map(arr, reverse(big))`,
	`map(arr, keys(big[0]))`,
	`map(arr, 1..100000)`,
	`1..1000000000000`,
	`map(arr, toBase64(s))`,
	`sum(1..100000)`,
	`2 ** 1000000000`,
	`9 ** 9 ** 9`,
	`map(arr, map(arr, string(#)))`,
	`let a = [1]; ` + doubling(25) + `a25 == a24`,
	`let a = [1]; ` + doubling(25) + `toJSON(a25)`,
	`let a = [1]; ` + doubling(25) + `a25`,
}

// doubling binds a1 to an, each a list of the one before twice.
func doubling(n int) string {
	names := []string{"a"}
	source := ""

	for i := 1; i <= n; i++ {
		name := "a" + string([]byte{'0' + byte(i/10), '0' + byte(i%10)})
		if i < 10 {
			name = "a" + string([]byte{'0' + byte(i)})
		}

		last := names[len(names)-1]
		source += "let " + name + " = [" + last + ", " + last + "]; "
		names = append(names, name)
	}
	return source
}

// outcome is what must be the same in every run of an attack.
type outcome struct {
	steps, bytes int
	failure      string
	size         int
}

func attack(program *expression.Program, scope expression.Scope) outcome {
	b := expression.NewBudget(expression.DecisionLimits, started)
	result, err := program.Eval(scope, b)

	o := outcome{}
	o.steps, o.bytes = b.Used()

	if err != nil {
		o.failure = err.Error()
		return o
	}

	data, err := expression.Encode(result)
	if err != nil {
		o.failure = err.Error()
	}

	o.size = len(data)
	return o
}

// fastest repeats a slow attack, because what shares a processor slows it down.
func fastest(program *expression.Program, scope expression.Scope) (outcome, time.Duration) {
	for try := 1; ; try++ {
		var o outcome

		if took := expression.Took(func() { o = attack(program, scope) }); took < time.Second || try == 3 {
			return o, took
		}
	}
}

func TestAttacksEnd(t *testing.T) {
	scope := attackScope()

	for _, source := range attacks {
		program, problems := expression.Compile(source)
		require.Empty(t, problems, source)

		first, took := fastest(program, scope)

		// The bound that matters is a workflow task's second; machines
		// that run tests are slow.
		require.Less(t, took, 2*time.Second, source)
		require.LessOrEqual(t, first.steps, expression.DecisionLimits.Steps+1, source)
		require.LessOrEqual(t, first.bytes, expression.DecisionLimits.Bytes+1, source)
		require.LessOrEqual(t, first.size, 4<<20, source)
		require.Equal(t, first, attack(program, scope), source)
		t.Logf("%7d steps %8d bytes %6d ms  %.60s  %.60s", first.steps, first.bytes, took.Milliseconds(), source, first.failure)
	}
}

// Programs are shared by goroutines; each evaluation has its own budget and
// gives the same outcome.
func TestConcurrentEvaluation(t *testing.T) {
	t.Parallel()

	scope := attackScope()

	for _, source := range []string{
		`all(arr, all(arr, # >= 0))`,
		`filter(arr, # % 2 == 0) | map({"v": #, "w": [#]}) | len`,
		`groupBy(arr, # % 7) | keys`,
		`a matches "^a+$" and s contains "é"`,
		`reduce(arr, #acc ~ #acc, "x")`,
		`arr[1] or arr.x ?? s`,
	} {
		program, problems := expression.Compile(source)
		require.Empty(t, problems, source)

		outcomes := make([]outcome, 8)

		var all sync.WaitGroup

		for i := range outcomes {
			all.Go(func() { outcomes[i] = attack(program, scope) })
		}

		testenv.Wait(t, all.Wait, "all results")

		for _, o := range outcomes {
			require.Equal(t, outcomes[0], o, source)
		}
	}
}

// Compiling shares nothing either.
func TestConcurrentCompile(t *testing.T) {
	t.Parallel()

	var all sync.WaitGroup

	for range 8 {
		all.Go(func() {
			for _, source := range attacks {
				_, problems := expression.Compile(source)
				if len(problems) > 0 {
					t.Error(source, problems)
				}
			}
		})
	}

	testenv.Wait(t, all.Wait, "all programs")
}

// One budget serves a whole decision: it ends where its expressions together
// are too much.
func TestBudgetIsShared(t *testing.T) {
	t.Parallel()

	program, problems := expression.Compile(`all(arr, all(arr[:100], # >= 0))`)
	require.Empty(t, problems)

	b := expression.NewBudget(expression.DecisionLimits, started)
	scope := attackScope()

	_, err := program.Eval(scope, b)
	require.NoError(t, err)

	_, err = program.Eval(scope, b)
	require.ErrorContains(t, err, "200000 steps")
}
