package expression_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

func manyRows(n int) []any {
	rows := make([]any, n)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "name": fmt.Sprint("n", i), "tags": []any{"a", "b"}, "of": map[string]any{"x": i}}
	}
	return rows
}

// TestRowMap: the parts of a mapping give together what it gives as a whole.
func TestRowMap(t *testing.T) {
	t.Parallel()
	scope := expression.MapScope{"result": map[string]any{"items": manyRows(50), "none": nil}, "src": "crm", "rows": manyRows(3)}
	for _, text := range []string{
		"{{ map(rows, {'id': #.id, 'from': src}) }}", "{{ map(result.items, {'id': .id, 'n': len(.tags), 'all': map(.tags, # ~ '!')}) }}",
		"  {{ rows | map(.of) }} ", "{{ map(rows, .id + len(result.items)) }}", "{{ map(result.none, {'id': #}) }}",
		"{{ map(filter(result.items, .id > 40), {'x': .of.x, 'first': find(rows, true).id}) }}", "{{ map(rows, .id == '1') }}", "{{ map(rows, let y = .id; y * 2) }}",
	} {
		template, problems := expression.ParseTemplate(text)
		require.Empty(t, problems, text)
		whole := budget()
		want, err := template.Render(scope, whole)
		require.NoError(t, err, text)
		mapping := template.RowMap()
		require.NotNil(t, mapping, text)
		parts := budget()
		list, err := mapping.List(scope, parts)
		require.NoError(t, err, text)
		got, _, err := mapping.MapRows(list.([]any), scope, parts)
		require.NoError(t, err, text)
		require.Equal(t, want, any(got), text)
		place := func(offset int) string { return fmt.Sprint(" at ", offset) }
		whole.PlaceNotes(0, place)
		parts.PlaceNotes(0, place)
		require.Equal(t, whole.Notes(), parts.Notes(), text)
	}
}

// TestNoRowMap: what is no mapping, or depends on the index, is not taken apart.
func TestNoRowMap(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"{{ rows }}", "{{ filter(rows, .id) }}", "{{ map(rows, #index) }}", "{{ map(rows, [#index, #]) }}", "x {{ map(rows, #) }}", "{{ let r = rows; map(r, #) }}",
		"{{ map(rows, #) | first }}", "text", "", "{{ map(rows, map(.tags, #index)) }}",
	} {
		template, problems := expression.ParseTemplate(text)
		require.Empty(t, problems, text)
		require.Nil(t, template.RowMap(), text)
	}
}

// TestRowMapOfMany: a list of any length is mapped where a decision may not, and an element that runs away fails with its index.
func TestRowMapOfMany(t *testing.T) {
	t.Parallel()
	scope := expression.MapScope{"rows": manyRows(15_000), "row": manyRows(1)}
	of := func(text string) (*expression.RowMap, error) {
		template, problems := expression.ParseTemplate(text)
		require.Empty(t, problems, text)
		_, err := template.Render(scope, budget())
		return template.RowMap(), err
	}
	mapping, err := of("{{ map(rows, {'id': .id, 'of': .of, 'tags': map(.tags, upper(#)), 'text': .name ~ '-' ~ toJSON(.of)}) }}")
	failure := &expression.Error{}
	require.ErrorAs(t, err, &failure)
	require.True(t, failure.TooMuch)
	got, _, err := mapping.MapRows(scope["rows"].([]any), scope, budget())
	require.NoError(t, err)
	require.Len(t, got, 15_000)
	require.Equal(t, map[string]any{"id": 14_999, "of": map[string]any{"x": 14_999}, "tags": []any{"A", "B"}, "text": `n14999-{"x":14999}`}, got[14_999])

	mapping, err = of("{{ map(rows, .id + 1 if .id < 7 else .name + 1) }}")
	require.ErrorAs(t, err, &failure)
	require.False(t, failure.TooMuch)
	_, at, again := mapping.MapRows(scope["rows"].([]any), scope, budget())
	require.Equal(t, 7, at)
	require.Equal(t, err, again, "with the same place")

	mapping, _ = of("{{ map(rows, 1 if .id < 9 else len(map(1..250000, #))) }}")
	_, at, err = mapping.MapRows(scope["rows"].([]any), scope, expression.NewBudget(expression.DecisionLimits, time.Time{}))
	require.Equal(t, 9, at)
	require.ErrorContains(t, err, "may take 200000 steps")

	_, err = of("{{ map(7, #) }}")
	require.ErrorContains(t, err, "map needs a list")
}

// TestMembersOfRowMap: what a mapping names of its element, without what it names of others, and what may be absent.
func TestMembersOfRowMap(t *testing.T) {
	t.Parallel()
	for text, names := range map[string][]any{
		"{{ map(rows, {'id': #.id, 'name': .name, 'from': src.name}) }}":                             {"id", "name"},
		"{{ map(rows, {id: .id, tags: map(.tags, .label), n: len(filter(.of, #.x > 1))}) }}":         {"id", "tags", "of"},
		"{{ map(rows, {a: .a ?? 0, b: .b | default('x'), c: default(.c, 1), d: .d or '', e: .e}) }}": {"e"},
		"{{ map(rows, {a: .a is defined, b: .b != nil ? .c : .d, e: .get('e')}) }}":                  {},
		"{{ map(rows, .of.x) }}": {"of"},
		// What only looks like a fallback is none.
		"{{ map(rows, {'is it?': .a, 'or': .b, \"if\": .c, 'e': ' ? ' ~ .d ~ ' or '}) }}":      {"a", "b", "c", "d"},
		"{{ map(rows, {a: 1 if .a > 2 else 3, b: .b == 'x' ? 1 : 0, c: .c == 'nil'}) }}":       {"a", "b", "c"},
		"{{ map(rows, {a: (.a + 1) or 0, b: .b and .c, d: default(1, .d), e: [.e] == nil}) }}": {"a", "b", "c", "d", "e"},
		// One counts wherever it is.
		"{{ map(rows, {a: .a.x ?? 0, b: (.b)[0] ?? 1, c: #?.c?.x || 1, d: nil != .d, e: .e is not string}) }}": {},
		"{{ map(rows, {a: .a ?? .b, c: upper(.c | default('x')), d: trim(.d) or '', e: get(.e, 'x')}) }}":      {},
		"{{ map(rows, {k: .k, v: upper(.b) if .k == 1 else .c ~ '!', w: if not .w { .x } else { 0 }}) }}":      {"k", "k"},
		"{{ map(rows, {of: any(.of, .a ?? .b), n: all(.n, .x == #.y) ?? true}) }}":                             {"of"},
	} {
		template, problems := expression.ParseTemplate(text)
		require.Empty(t, problems, text)
		var found []any
		for _, ref := range template.RowMap().Members() {
			name, _ := ref.Path[0].(string)
			found = append(found, name)
			require.Equal(t, name, string([]rune(text)[ref.Offset:ref.End]), text)
		}
		require.ElementsMatch(t, names, found, text)
	}
}

// TestShownMembers: a key that has just a member shows it where it is not nil, and nothing else does.
func TestShownMembers(t *testing.T) {
	t.Parallel()
	rows := []any{map[string]any{"id": 1, "n": nil}, map[string]any{"id": nil, "n": "x", "none": nil}}
	for text, shown := range map[string]bool{
		"{{ map(rows, {'id': .id, n: #.n, from: 'crm'}) }}": true,
		"{{ map(rows, {id: .id, n: .n ?? 0}) }}":            true, // n may be absent
		"{{ map(rows, {'id': .id, 'none': .none}) }}":       false,
		"{{ map(rows, {'id': upper(.id)}) }}":               false,
		"{{ map(rows, {id: .id, of: {n: .n}}) }}":           false,
		"{{ map(rows, .id) }}":                              false,
		"{{ map(rows, {id: 1}) }}":                          true,
	} {
		template, problems := expression.ParseTemplate(text)
		require.Empty(t, problems, text)
		require.Equal(t, shown, template.RowMap().ShowsMembers(rows), text)
	}
}

// TestMisspeltMembersOfElements: a predicate that names a member that no element has, and that certainly means another, gets a note.
func TestMisspeltMembersOfElements(t *testing.T) {
	t.Parallel()
	scope := expression.MapScope{"xs": []any{
		map[string]any{"id": 1, "active": true, "email": "a", "items": []any{map[string]any{"sku": 1}}},
		map[string]any{"id": 2, "active": false},
	}, "none": []any{}, "texts": []any{"a"}}
	for source, notes := range map[string][]string{
		`filter(xs, .activ)`:                        {"no element has .activ; did you mean .active?"},
		`filter(xs, #.activ == true)`:               {"no element has .activ; did you mean .active?"},
		`map(xs, {"e": .emial, "i": .id})`:          {"no element has .emial; did you mean .email?"},
		`any(xs, .activ or .id == 1)`:               nil, // it provides for its absence
		`filter(xs, .activ ?? true)`:                nil,
		`filter(xs, .activ is defined)`:             nil,
		`filter(xs, .archived)`:                     nil, // nothing is similar
		`filter(xs, .email == "a")`:                 nil, // one has it
		`filter(xs, any(.items, .skuu == 1))`:       {"no element has .skuu; did you mean .sku?"},
		`filter(none, .activ) + map(texts, .activ)`: nil,
		`sortBy(xs, .ids)`:                          {"no element has .ids; did you mean .id?"},
		`findLast(xs, .emial == "a")`:               {"no element has .emial; did you mean .email?"},
	} {
		_, found, err := evaluatedWith(t, source, scope)
		require.NoError(t, err, source)
		for i := range found {
			found[i], _, _ = strings.Cut(found[i], " at ")
		}
		require.Equal(t, notes, found, source)
	}
}
