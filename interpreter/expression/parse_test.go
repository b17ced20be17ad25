package expression

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseTrees(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ source, tree string }{
		// operands
		{`1`, `1`},
		{`1_000`, `1000`},
		{`0x1F`, `31`},
		{`0b101`, `5`},
		{`0o17`, `15`},
		{`1.5e3`, `1500`},
		{`.5`, `0.5`},
		{`9223372036854775807`, `9223372036854775807`},
		{`-9223372036854775808`, `-9223372036854775808`},
		{`18446744073709551615`, `18446744073709551615`},
		{`"a\n\"b"`, `"a\n\"b"`},
		{`'it''s'`, ``}, // two texts side by side
		{`'\d+'`, `"\\d+"`},
		{`'\\d'`, `"\\d"`},
		{`"\u00e9\x41"`, `"éA"`},
		{`"\ud83d\ude00"`, `"😀"`},
		{"`a\\n``b`", "\"a\\\\n`b\""},
		{"'two\nlines'", `"two\nlines"`},
		{`true and True`, `(and true true)`},
		{`nil == None`, `(== nil nil)`},
		{`null != none`, `(!= nil nil)`},
		{`(1, 2,)`, `[1 2]`},
		{`(1,)`, `[1]`},
		{`[]`, `[]`},
		{`[1, [2],]`, `[1 [2]]`},
		{`{}`, `(map )`},
		{`{a: 1, "b c": 2, 3: x, (k): 4,}`, `(map "a": 1 "b c": 2 "3": x k: 4)`},
		{`matches`, `matches`},
		{`let`, `let`},

		// members
		{`a.b.c`, `(. (. a "b") "c")`},
		{`a.in.not`, `(. (. a "in") "not")`},
		{`a.b[0]["x"]`, `(. (. (. a "b") 0) "x")`},
		{`a.0.1`, `(. (. a 0) 1)`},
		{`a?.b.c`, `(chain (. (?. a "b") "c"))`},
		{`a?.[0]`, `(chain (?. a 0))`},
		{`a[1:2]`, `(slice a 1 2)`},
		{`a[:-1]`, `(slice a _ (- 1))`},
		{`a[1:]`, `(slice a 1 _)`},
		{`a[:]`, `(slice a _ _)`},
		{`a.get("k")`, `(get a "k")`},
		{`a.get("k", 1).b`, `(. (get a "k" 1) "b")`},

		// precedence
		{`a or b and c`, `(or a (and b c))`},
		{`a || b && c`, `(|| a (&& b c))`},
		{`a or b or c`, `(or (or a b) c)`},
		{`not a == b`, `(not (== a b))`},
		{`not a in b`, `(not (in a b))`},
		{`not not a`, `(not (not a))`},
		{`not a and b`, `(and (not a) b)`},
		{`not a or not b`, `(or (not a) (not b))`},
		{`a == b and not c`, `(and (== a b) (not c))`},
		{`!a == b`, `(== (! a) b)`},
		{`a not in b`, `(not (in a b))`},
		{`a not contains b`, `(not (contains a b))`},
		{`a startsWith b or a endsWith c`, `(or (startsWith a b) (endsWith a c))`},
		{`a < b < c`, `(&& (< a b) (< b c))`},
		{`1 <= a <= b < c`, `(&& (&& (<= 1 a) (<= a b)) (< b c))`},
		{`a + b == c - d`, `(== (+ a b) (- c d))`},
		{`1..n + 1`, `(.. 1 (+ n 1))`},
		{`x in 1..3`, `(in x (.. 1 3))`},
		{`a - b - c`, `(- (- a b) c)`},
		{`a + b * c`, `(+ a (* b c))`},
		{`a / b % c`, `(% (/ a b) c)`},
		{`a + b ~ c`, `(+ a ($text b c))`},
		{`a ~ b * c ~ d`, `($text a (* b c) d)`},
		{`a ~ b == c`, `(== ($text a b) c)`},
		{`-2 ** 2`, `(- (** 2 2))`},
		{`2 ** 3 ** 2`, `(** 2 (** 3 2))`},
		{`2 ** -1`, `(** 2 (- 1))`},
		{`2 ^ 3`, `(^ 2 3)`},
		{`-a.b`, `(- (. a "b"))`},
		{`+a - -b`, `(- (+ a) (- b))`},
		{`a ?? b == c`, `(== (?? a b) c)`},
		{`a ?? b ?? c`, `(?? (?? a b) c)`},
		{`a ?? -1`, `(?? a (- 1))`},
		{`-a ?? b`, `(- (?? a b))`},
		{`a ?? b + 1`, `(+ (?? a b) 1)`},
		{`(a or b) and c`, `(and (or a b) c)`},

		// conditionals
		{`a ? b : c`, `(if a b c)`},
		{`a ? b : c ? d : e`, `(if a b (if c d e))`},
		{`a ?: b`, `(if a a b)`},
		{`a ? : b`, `(if a a b)`},
		{`a or b ? c : d`, `(if (or a b) c d)`},
		{`a if b else c`, `(if b a c)`},
		{`a if b else c if d else e`, `(if b a (if d c e))`},
		{`a ~ 'x' if b or c else d ~ 'y'`, `(if (or b c) ($text a "x") ($text d "y"))`},
		{`(a if b else c) + 1`, `(+ (if b a c) 1)`},
		{`if a { b } else { c }`, `(if a b c)`},
		{`if a { b } else if c { d } else { e }`, `(if a b (if c d e))`},
		{`let x = a; x + 1`, `(let x a (+ x 1))`},
		{`let x = a; let y = x; x ~ y`, `(let x a (let y x ($text x y)))`},
		{`[let x = 1; x, 2]`, `[(let x 1 x) 2]`},

		// filters and tests
		{`a | lower`, `(lower a)`},
		{`a|lower|upper`, `(upper (lower a))`},
		{`a | default(1)`, `(default a 1)`},
		{`a + b | int`, `(+ a (int b))`},
		{`(a + b) | int`, `(int (+ a b))`},
		{`a | int + 1`, `(+ (int a) 1)`},
		{`a == b | length`, `(== a (len b))`},
		{`-a | abs`, `(abs (- a))`},
		{`not a | length`, `(not (len a))`},
		{`a ** b | int`, `(** a (int b))`},
		{`a ?? b | lower`, `(lower (?? a b))`},
		{`a | first ?? 0`, `(?? (first a) 0)`},
		{`a.b | join(",")`, `(join (. a "b") ",")`},
		{`a | tojson`, `(toJSON a)`},
		{`a | d(0)`, `(default a 0)`},
		{`a | filter(.x > 1) | map(.y)`, `(map (filter a {(> (. # "x") 1)}) {(. # "y")})`},
		{`x is defined`, `(!= x nil)`},
		{`x.y is not defined`, `(== (. x "y") nil)`},
		{`x is undefined`, `(== x nil)`},
		{`x is none and y is not none`, `(and (== x nil) (!= y nil))`},
		{`x is true`, `(== x true)`},
		{`x is not False`, `(!= x false)`},
		{`x is string`, `(== (type x) "string")`},
		{`x is not mapping`, `(!= (type x) "map")`},
		{`x | first is none`, `(== (first x) nil)`},
		{`not x is none`, `(not (== x nil))`},
		{`-x is none`, `(== (- x) nil)`},
		{`'t' if x | string | lower == 't' else 'f'`, `(if (== (lower (string x)) "t") "t" "f")`},

		// calls and predicates
		{`now()`, `(now)`},
		{`len(a)`, `(len a)`},
		{`round(a, 2,)`, `(round a 2)`},
		{`none(xs, # > 1)`, `(none xs {(> # 1)})`},
		{`all(xs, any(.ys, # == 1))`, `(all xs {(any (. # "ys") {(== # 1)})})`},
		{`map(xs, #index)`, `(map xs {#index})`},
		{`reduce(xs, #acc + #, 0)`, `(reduce xs {(+ #acc #)} 0)`},
		{`map(xs, {a: #})`, `(map xs {(map "a": #)})`},
		{`map(xs, {"a": .b, c: 1})`, `(map xs {(map "a": (. # "b") "c": 1)})`},
		{`map(xs, {})`, `(map xs {(map )})`},
		{`map(xs, {let y = #; y})`, `(map xs {(let y # y)})`},
		{`map(xs, {{"a": #}})`, `(map xs {(map "a": #)})`},
		{`filter(xs, {.a and .b})`, `(filter xs {(and (. # "a") (. # "b"))})`},
		{`map(xs, #.a.b)`, `(map xs {(. (. # "a") "b")})`},
		{`map(xs, .a[0])`, `(map xs {(. (. # "a") 0)})`},
		{`count(xs, # > 1)`, `(count xs {(> # 1)})`},
		{`xs | count(.ok)`, `(count xs {(. # "ok")})`},
		{`sum(xs)`, `(sum xs)`},
		{`sum(xs, .n)`, `(sum xs {(. # "n")})`},
		{`sortBy(xs, .n, "desc")`, `(sortBy xs {(. # "n")} "desc")`},
	} {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()

			parsed, problems := parseExpression([]rune(c.source), false)
			if c.tree == "" {
				require.NotEmpty(t, problems)
				return
			}

			require.Empty(t, problems)
			require.Equal(t, c.tree, dump(parsed.node))
		})
	}
}

// What is printed for messages and for migrate reads back as the same tree.
func TestPrintedReadsBack(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ source, printed string }{
		{`a | default(1) | int + 1`, `int(default(a, 1)) + 1`},
		{`'x' if a is defined else b`, `a != nil ? "x" : b`},
		{`not a == b`, `not (a == b)`},
		{`(not a) == b`, `(not (a == b))`},
		{`(a + b) * c`, `(a + b) * c`},
		{`a - (b - c)`, `a - (b - c)`},
		{`a - b - c`, `a - b - c`},
		{`a ~ (b ~ c) ~ d * 2`, `a ~ (b ~ c) ~ d * 2`},
		{`(a ~ b) * 2 + (a ~ b) | lower`, `(a ~ b) * 2 + lower(a ~ b)`},
		{`(-a) ** 2`, `(-a) ** 2`},
		{`-a ** 2`, `-(a ** 2)`},
		{`-1`, `-1`},
		{`(a or b).c`, `(a or b).c`},
		{`(a if b else c).d`, `(b ? a : c).d`},
		{`(1).x`, `(1).x`},
		{`a["b c"].d[0]`, `a["b c"].d[0]`},
		{`a?.b.c`, `a?.b.c`},
		{`a < b < c`, `a < b && b < c`},
		{`(a == b) == c`, `(a == b) == c`},
		{`a in (1, 2)`, `a in [1, 2]`},
		{`x.get("k")`, `get(x, "k")`},
		{`map(xs, {let y = #; y})`, `map(xs, { let y = #; y })`},
		{`map(xs, {a: .b})`, `map(xs, ({a: .b}))`},
		{`{"a b": 1, c: 2, (d): 3}`, `{"a b": 1, c: 2, (d): 3}`},
		{`(let x = 1; x) + 1`, `(let x = 1; x) + 1`},
		{`a[1:]`, `a[1:]`},
		{`'é"'`, `"é\""`},
	} {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()

			first, problems := parseExpression([]rune(c.source), false)
			require.Empty(t, problems)

			printed := printNode(first.node)
			if !strings.HasPrefix(c.printed, "(not") {
				require.Equal(t, c.printed, printed)
			}

			second, problems := parseExpression([]rune(printed), false)
			require.Empty(t, problems)
			require.Equal(t, dump(first.node), dump(second.node))
		})
	}
}

func TestRefs(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		source string
		refs   []Ref
	}{
		{`1 + 2`, nil},
		{`a`, []Ref{{Root: "a", Offset: 0, End: 1, Bare: true}}},
		{`a.b`, []Ref{{Root: "a", Path: []any{"b"}, Offset: 0, End: 1, Bare: true}}},
		{`(a.b)`, []Ref{{Root: "a", Path: []any{"b"}, Offset: 1, End: 2, Bare: true}}},
		{`steps["fetch one"].data[0].x`, []Ref{
			{Root: "steps", Path: []any{"fetch one", "data", 0, "x"}, Offset: 0, End: 5, Bare: true},
		}},
		{`é + a?.b`, []Ref{
			{Root: "é", Offset: 0, End: 1},
			{Root: "a", Path: []any{"b"}, Offset: 4, End: 5},
		}},
		{`a.b[i].c`, []Ref{
			{Root: "a", Path: []any{"b"}, Offset: 0, End: 1},
			{Root: "i", Offset: 4, End: 5},
		}},
		{`a[-1].b`, []Ref{{Root: "a", Offset: 0, End: 1}}},
		{`a.b[1:].c`, []Ref{{Root: "a", Path: []any{"b"}, Offset: 0, End: 1}}},
		{`a.b.get("c").d`, []Ref{{Root: "a", Path: []any{"b"}, Offset: 0, End: 1}}},
		{`len(a.b)`, []Ref{{Root: "a", Path: []any{"b"}, Offset: 4, End: 5}}},
		{`let x = a.b; x.c + y`, []Ref{
			{Root: "a", Path: []any{"b"}, Offset: 8, End: 9},
			{Root: "y", Offset: 19, End: 20},
		}},
		{`filter(a.b, .c > d.e)`, []Ref{
			{Root: "a", Path: []any{"b"}, Offset: 7, End: 8},
			{Root: "d", Path: []any{"e"}, Offset: 17, End: 18},
		}},
		{`x + (let x = 1; x)`, []Ref{{Root: "x", Offset: 0, End: 1}}},
	} {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()

			program, problems := Compile(c.source)
			require.Empty(t, problems)
			require.Equal(t, c.refs, program.Refs())
		})
	}
}
