package expression

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBudgetStaysExhausted(t *testing.T) {
	t.Parallel()

	b := NewBudget(Limits{Steps: 10, Bytes: 10}, time.Time{})
	require.NoError(t, b.chargeWork(10, 10))
	require.EqualError(t, b.chargeWork(1, 0), "the expressions of one decision may take 10 steps, and this takes more; "+
		"narrow the list first, or do the work in a tool")
	require.Error(t, b.chargeWork(0, 0))

	steps, bytes := b.Used()
	require.Equal(t, []int{11, 10}, []int{steps, bytes})

	b = NewBudget(Limits{Steps: 10, Bytes: 10}, time.Time{})
	require.EqualError(t, b.chargeWork(0, 11), "the expressions of one decision may make 10 bytes of text and lists, and this makes more; "+
		"take the part that is needed, or do the work in a tool")
	require.Error(t, b.chargeWork(0, 0))

	for _, n := range []int{math.MaxInt, math.MaxInt / 8, -1} {
		require.Error(t, NewBudget(DecisionLimits, time.Time{}).chargeList(n), n)
		require.Error(t, NewBudget(DecisionLimits, time.Time{}).chargeWork(n, n), n)
	}
}

// What each piece of work costs is part of the replay contract: a change of a
// number here changes what old runs do.
func TestCharges(t *testing.T) {
	t.Parallel()

	text := strings.Repeat("a", 6400)
	list := make([]any, 800)

	for i := range list {
		list[i] = i
	}

	pattern, err := compilePattern(`^a*$`)
	require.NoError(t, err)

	discard := func(_ any, err error) error { return err }

	for _, c := range []struct {
		name         string
		work         func(b *Budget) error
		steps, bytes int
	}{
		{"equal texts", func(b *Budget) error { return discard(opEqual(b, text, strings.Clone(text))) }, 100, 0},
		{"texts of other length", func(b *Budget) error { return discard(opEqual(b, text, "a")) }, 0, 0},
		{"equal lists", func(b *Budget) error { return discard(opEqual(b, list, list)) }, 800, 0},
		{"equal maps", func(b *Budget) error {
			return discard(opEqual(b, map[string]any{"a": 1, "b": 2}, map[string]any{"a": 1, "b": 3}))
		}, 4, 0},
		{"less", func(b *Budget) error { return discard(opLess(b, text, text)) }, 100, 0},
		{"in list", func(b *Budget) error { return discard(opIn(b, -1, list)) }, 800, 0},
		{"in text", func(b *Budget) error { return discard(opIn(b, "b", text)) }, 100, 0},
		{"add texts", func(b *Budget) error { return discard(opAdd(b, text, text)) }, 201, 12800},
		{"add lists", func(b *Budget) error { return discard(opAdd(b, list, list)) }, 201, 25600},
		{"tilde", func(b *Budget) error { return discard(opText(b, []any{text, 5, nil})) }, 101, 6401},
		{"tilde list", func(b *Budget) error { return discard(opText(b, []any{[]any{1, 2}})) }, 4, 10},
		{"index of text", func(b *Budget) error { return discard(opIndex(b, text, 5)) }, 400, 0},
		{"slice of text", func(b *Budget) error { return discard(opSlice(b, text, 5, nil)) }, 400, 0},
		{"slice of list", func(b *Budget) error { return discard(opSlice(b, list, 5, nil)) }, 0, 0},
		{"range", func(b *Budget) error { return discard(opRange(b, 1, 800)) }, 101, 12800},
		{"power", func(b *Budget) error { return discard(opPow(b, 2, 10)) }, 4, 0},
		{"matches", func(b *Budget) error { return discard(opMatches(b, text, pattern)) }, 6400*pattern.weight/16 + 1, 0},
		{"len", func(b *Budget) error { return discard(callLen(b, []any{text})) }, 100, 0},
		{"split", func(b *Budget) error { return discard(callSplit(b, []any{text, "a"})) }, 100 + 6401/8 + 1, 6401 * 16},
		{"replace", func(b *Budget) error { return discard(callReplace(b, []any{text, "a", "bb"})) }, 100 + 201, 12800},
		{"sort", func(b *Budget) error { return discard(callSort(b, []any{list})) }, 800*10/8 + 101, 12800},
		{"sum", func(b *Budget) error { return discard(opSum(b, list)) }, 101, 0},
		{"reverse", func(b *Budget) error { return discard(callReverse(b, []any{list})) }, 101, 12800},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()

			b := NewBudget(DecisionLimits, time.Time{})
			require.NoError(t, c.work(b))

			steps, bytes := b.Used()
			require.Equal(t, []int{c.steps, c.bytes}, []int{steps, bytes})
		})
	}
}

// Work that is too large is refused before it is done. Each of these would
// take seconds or gigabytes.
func TestChargedBeforeWork(t *testing.T) {
	t.Parallel()

	text := strings.Repeat("a", 4<<20)
	half := strings.Repeat("ab", 1<<20)
	bomb := any([]any{1})

	for range 60 {
		bomb = []any{bomb, bomb}
	}

	deep := any(1)
	for range 1500 {
		deep = []any{deep}
	}

	bombMap := any(map[string]any{"a": 1})
	for range 60 {
		bombMap = map[string]any{"a": bombMap, "b": bombMap}
	}

	heavy, err := compilePattern(`(a|aa)*(b|bb)*(c|cc)*x$`)
	require.NoError(t, err)

	for _, c := range []struct {
		name string
		work func(b *Budget) (any, error)
	}{
		{"replace grows", func(b *Budget) (any, error) { return callReplace(b, []any{half, "a", half}) }},
		{"replace nothing", func(b *Budget) (any, error) { return callReplace(b, []any{half, "", half}) }},
		{"join with separator", func(b *Budget) (any, error) { return callJoin(b, []any{make([]any, 1000), half}) }},
		{"join shared text", func(b *Budget) (any, error) { return opText(b, []any{text, text, text}) }},
		{"split characters", func(b *Budget) (any, error) { return callSplit(b, []any{text, ""}) }},
		{"trim by text", func(b *Budget) (any, error) { return functions["trim"].call(b, []any{text, text}) }},
		{"upper", func(b *Budget) (any, error) { return functions["upper"].call(b, []any{text}) }},
		{"base64", func(b *Budget) (any, error) { return functions["toBase64"].call(b, []any{text}) }},
		{"range", func(b *Budget) (any, error) { return opRange(b, 0, math.MaxInt) }},
		{"pattern", func(b *Budget) (any, error) { return opMatches(b, text, heavy) }},
		{"list of lists as text", func(b *Budget) (any, error) { return opText(b, []any{bomb}) }},
		{"list of lists as JSON", func(b *Budget) (any, error) { return callToJSON(b, []any{bomb}) }},
		{"maps of maps as JSON", func(b *Budget) (any, error) { return callToJSON(b, []any{bombMap}) }},
		{"too deep for JSON", func(b *Budget) (any, error) { return callToJSON(b, []any{deep}) }},
		{"flatten", func(b *Budget) (any, error) { return callFlatten(b, []any{bomb}) }},
		{"flatten deep", func(b *Budget) (any, error) { return callFlatten(b, []any{deep}) }},
		{"equal bombs", func(b *Budget) (any, error) { return opEqual(b, bomb, []any{bomb.([]any)[0], bomb.([]any)[1]}) }},
		{"equal maps", func(b *Budget) (any, error) { return opEqual(b, bombMap, bombMap) }},
		{"uniq", func(b *Budget) (any, error) { return callUniq(b, []any{bomb}) }},
		{"group by", func(b *Budget) (any, error) { return opGroup(b, []any{[]any{bomb, 1}}) }},
		{"JSON of many values", func(b *Budget) (any, error) {
			return callFromJSON(b, []any{"[" + strings.Repeat("0,", 1<<19) + "0]"})
		}},
		{"sort of long texts", func(b *Budget) (any, error) {
			list := make([]any, 1000)
			for i := range list {
				list[i] = text
			}
			return callSort(b, []any{list})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()

			var err error
			took := Took(func() { _, err = c.work(NewBudget(DecisionLimits, time.Time{})) })
			require.Error(t, err)
			require.Less(t, took, time.Second)
		})
	}
}

// The size that is charged is the size that is made.
func TestSizeOf(t *testing.T) {
	t.Parallel()

	for _, source := range []string{
		`null`, `true`, `-12`, `"a\"\\\n\u0001\u2028é<"`, `[]`, `{}`, `[1, [2, {"a": null}]]`,
		`{"a": 1, "b\n": [true, false]}`, `18446744073709551615`, `"` + "\x7f" + `"`,
	} {
		v := value(t, source)
		size, ok := sizeOf(v, 1000)
		require.True(t, ok)
		require.GreaterOrEqual(t, size, len(encoded(t, v)), source)
		require.LessOrEqual(t, size, len(encoded(t, v))+6, source)
	}

	size, ok := sizeOf(1.5, 1000)
	require.True(t, ok)
	require.Equal(t, 24, size)

	_, ok = sizeOf([]any{"12345"}, 8)
	require.False(t, ok)
	_, ok = sizeOf([]any{"12345"}, 9)
	require.True(t, ok)
}
