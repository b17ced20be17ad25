package expression_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

func evaluatedWith(t *testing.T, text string, scope expression.MapScope) (value any, notes []string, err error) {
	t.Helper()
	template, problems := expression.ParseCondition(text)
	require.Empty(t, problems)
	budget := expression.DecisionBudget(time.Time{})
	value, err = template.Render(scope, budget)
	budget.PlaceNotes(0, func(offset int) string { return " at " + expression.Text(offset) })
	return value, budget.Notes(), err
}

// TestTextsAreNotOrderedAgainstTheirNumbers: an order of two texts is an error where their numbers have another one.
func TestTextsAreNotOrderedAgainstTheirNumbers(t *testing.T) {
	t.Parallel()
	scope := expression.MapScope{"page": "2", "pages": "12", "headers": map[string]any{"x-page": "9", "x-pages": "10"}, "xs": []any{"b", "10", "9"}}
	for _, text := range []string{
		"page < pages", "page <= pages", "pages > page", "pages >= page", "headers['x-page'] < headers['x-pages']",
		"'9.5' < '10'", "'-1' < '-2'", "'1e3' < '999'", "'7 ' < '12'", "'007' >= '7'",
		"any([page], # < pages)", "filter([pages], # > page)", "sort(xs)", "sort(['2', '12'], 'desc')", "sortBy(xs, #)", "max(['9', '10'])", "min(['9', '10'])", "max(page, pages)",
	} {
		_, _, err := evaluatedWith(t, text, scope)
		require.ErrorContains(t, err, "int(x)", text)
		require.ErrorContains(t, err, "their numbers", text)
	}
	for text, want := range map[string]any{
		"int(page) < int(pages)": true, "'2' < '3'": true, "'12' < '20'": true, "'2024-01-31' < '2024-02-01'": true, "'2024-1-9' < '2024-1-10'": false,
		"'a2' < 'a12'": false, "'1.2.9' < '1.2.10'": false, "'2' < 'x'": true, "'' < '1'": true, "'5' <= '5'": true, "sort(['b', '10', 'a9'])": []any{"10", "a9", "b"},
		"max(['a', '9', 'a10'])": "a10", "sort(['07', '08'])": []any{"07", "08"},
	} {
		value, _, err := evaluatedWith(t, text, scope)
		require.NoError(t, err, text)
		require.Equal(t, want, value, text)
	}
}

// TestComparisonsThatNeverHoldAreNoted: where a text reads as what it is compared with, and is of another type.
func TestComparisonsThatNeverHoldAreNoted(t *testing.T) {
	t.Parallel()
	scope := expression.MapScope{"more": "true", "one": 1, "five": "5", "ready": true, "word": "ready", "list": []any{"1", "2"}}
	for text, at := range map[string]string{
		"more == true": "at 5", "true == more": "at 5", "more != true": "at 5", "one == true": "at 4", "five == 5": "at 5", "ready == 'true'": "at 6", "ready == 'True'": "at 6",
		"5 in list": "at 2", "not (5 in list)": "at 7", "list contains 5": "at 5", "five in [4, 5]": "at 5", "one == '1'": "at 4", "{{ word == 'x' or more == true }}": "at 23",
		"any([more], # == true)": "at 14", "five == 5.5": "at 5",
	} {
		_, notes, err := evaluatedWith(t, text, scope)
		require.NoError(t, err, text)
		require.Len(t, notes, 1, text)
		require.Contains(t, notes[0], at, text)
		require.Contains(t, notes[0], "never equals", text)
	}
	for _, text := range []string{
		"more == 'true'", "one == 1", "word == true", "word == 5", "missing == true", "missing == 5", "one == 5.5", "ready == 2", "word in ['x', 1]", "'1' in list", "missing in [1]", "more == 'x'",
		"list == [1]", "one != 2",
	} {
		_, notes, err := evaluatedWith(t, text, scope)
		require.NoError(t, err, text)
		require.Empty(t, notes, text)
	}
}

// TestTextsThatDecideAreNoted: every text but "" is true, those that read as false too.
func TestTextsThatDecideAreNoted(t *testing.T) {
	t.Parallel()
	scope := expression.MapScope{"more": "false", "zero": "0", "word": "False", "yes": "true", "code": "NO", "empty": "", "last": []any{}, "next": "null", "nobody": "None", "nullable": "nullable"}
	for text, at := range map[string]string{
		"not more": "at 4", "more and 1 == 1": "at 0", "1 == 1 and (zero or 1 == 2)": "", "word ? 1 : 2": "at 0", "any([zero], #)": "at 12", "1 if more else 2": "at 5",
		"next ? 1 : 2": "at 0", "not nobody": "at 4",
	} {
		_, notes, err := evaluatedWith(t, text, scope)
		require.NoError(t, err, text)
		if at == "" { // the operand of or in a value is a default
			require.Empty(t, notes, text)
			continue
		}
		require.Len(t, notes, 1, text)
		require.Contains(t, notes[0], at, text)
		require.Contains(t, notes[0], "is true, as every text", text)
	}
	for _, text := range []string{"not yes", "not code", "empty ? 1 : 2", "more == 'false'", "zero or 'x'", "last and 1", "next or 'x'", "nullable ? 1 : 2"} {
		_, notes, err := evaluatedWith(t, text, scope)
		require.NoError(t, err, text)
		require.Empty(t, notes, text)
	}
	budget := expression.DecisionBudget(time.Time{})
	require.True(t, budget.DecideTruth("0", 3), "the value of a condition as a whole")
	require.Equal(t, 1, budget.NoteCount())
}
