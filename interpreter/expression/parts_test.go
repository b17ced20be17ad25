package expression_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

// TestParts: what an expression is made of, with the values that it has there.
func TestParts(t *testing.T) {
	t.Parallel()
	scope := expression.MapScope{
		"response": map[string]any{"has_more": false, "data": []any{1, 2}, "total": 7}, "error": nil, "offset": 2, "key": "total", "limit": 10,
	}
	for source, want := range map[string]string{
		"response.has_more":                                     "response.has_more=false",
		"{{ response.has_more }}":                               "response.has_more=false",
		"not response.has_more":                                 "response.has_more=false",
		"response.has_more == true and offset < response.total": "response.has_more=false; response.has_more == true=false; offset=2; response.total=7; offset < response.total=true",
		"len(response.data) > limit":                            "response.data=[1,2]; len(response.data)=2; limit=10",
		"error is defined":                                      "error=null",
		"error.class in ['a']":                                  "error.class=null",
		"response[key] + 1":                                     "key=\"total\"; response[key]=7",
		"any(response.data, # > offset)":                        "response.data=[1,2]",
		"any(response.data, # > 1) or offset":                   "response.data=[1,2]; any(response.data, # > 1)=true; offset=2",
		"let n = offset + 1; n * 2":                             "offset=2",
		"response.data[0:1]":                                    "response.data=[1,2]",
		"response.nothing | default(3)":                         "response.nothing=null",
		"{'a': offset, 'b': [limit]}":                           "offset=2; limit=10",
		"a {{ offset }} b {{ offset + limit }}":                 "offset=2; limit=10",
		"offset ? limit : error":                                "offset=2; limit=10; error=null",
		"int(error) > 0":                                        "error=null; int(error)=!",
		"1 + 1":                                                 "",
	} {
		template, problems := expression.ParseTemplate(source)
		if !strings.Contains(source, "{{") {
			template, problems = expression.ParseCondition(source)
		}
		require.Empty(t, problems, source)
		var got []string
		for _, part := range template.Parts(scope, expression.NewBudget(expression.DecisionLimits, time.Time{})) {
			if part.Err != nil {
				got = append(got, part.Text+"=!")
				continue
			}
			encoded, err := expression.Encode(part.Value)
			require.NoError(t, err)
			got = append(got, part.Text+"="+string(encoded))
		}
		require.Equal(t, want, strings.Join(got, "; "), source)
	}
}

// TestPartsAreBounded: neither many names nor long texts are shown in full.
func TestPartsAreBounded(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("n%d", i))
	}
	for _, source := range []string{strings.Join(names, " + "), "a['" + strings.Repeat("x", 1000) + "']", strings.Repeat("{{ a }} {{ b }} ", 50)} {
		template, problems := expression.ParseTemplate("{{ " + source + " }}")
		if strings.Contains(source, "{{") {
			template, problems = expression.ParseTemplate(source)
		}
		require.Empty(t, problems)
		parts := template.Parts(expression.MapScope{}, expression.NewBudget(expression.DecisionLimits, time.Time{}))
		require.LessOrEqual(t, len(parts), 20)
		for _, part := range parts {
			require.LessOrEqual(t, len([]rune(part.Text)), 81, "and an ellipsis")
		}
	}
}

// TestLengths: a length that has to reach a number is found in every form in which people write it.
func TestLengths(t *testing.T) {
	t.Parallel()
	scope := expression.MapScope{"response": map[string]any{"rows": []any{1, 2, 3}, "total": 9}, "size": 10, "text": "ten"}
	for condition, want := range map[string][]expression.LengthComparison{
		"len(response.rows) == 10":                   {{Text: "len(response.rows)", Length: 3, Wanted: 10}},
		"10 == len(response.rows)":                   {{Text: "len(response.rows)", Length: 3, Wanted: 10}},
		"len(response.rows) >= size":                 {{Text: "len(response.rows)", Length: 3, Wanted: 10}},
		"size <= len(response.rows)":                 {{Text: "len(response.rows)", Length: 3, Wanted: 10}},
		"len(response.rows) > size - 1":              {{Text: "len(response.rows)", Length: 3, Wanted: 10}},
		"9 < len(response.rows)":                     {{Text: "len(response.rows)", Length: 3, Wanted: 10}},
		"response.rows | length == 10":               {{Text: "response.rows | length", Length: 3, Wanted: 10}},
		"status == 200 and len(response.rows) >= 10": {{Text: "len(response.rows)", Length: 3, Wanted: 10}},
		"len(response.rows) != 0":                    nil,
		"len(response.rows) < 10":                    nil,
		"len(response.rows) > 0":                     {{Text: "len(response.rows)", Length: 3, Wanted: 1}},
		"response.total > 10":                        nil,
		"len(response.none) == 10":                   {{Text: "len(response.none)", Wanted: 10}},
		"len(response.rows) == text":                 nil,
		"len(response.rows) * 2 == 10":               nil,
	} {
		template, problems := expression.ParseCondition(condition)
		require.Empty(t, problems, condition)
		require.Equal(t, want, template.Lengths(scope, expression.NewBudget(expression.DecisionLimits, time.Unix(0, 0))), condition)
	}
}
