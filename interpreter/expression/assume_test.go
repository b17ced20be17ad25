package expression_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
)

func TestAssume(t *testing.T) {
	t.Parallel()

	success := map[string]expression.Fact{
		"error": expression.FactNil, "code": expression.FactBetween(100, 399), "success": expression.FactTrue,
	}
	failure := map[string]expression.Fact{
		"error": expression.FactDefined, "response": expression.FactNil, "code": expression.FactBetween(400, 599),
	}

	for _, test := range []struct {
		source           string
		success, failure expression.Truth
	}{
		{"true", expression.AlwaysTrue, expression.AlwaysTrue},
		{"0", expression.AlwaysFalse, expression.AlwaysFalse},
		{"x", expression.Undecided, expression.Undecided},
		{"error is defined", expression.AlwaysFalse, expression.AlwaysTrue},
		{"error", expression.AlwaysFalse, expression.AlwaysTrue},
		{"not error", expression.AlwaysTrue, expression.AlwaysFalse},
		{"error is not defined", expression.AlwaysTrue, expression.AlwaysFalse},
		{"error is defined or error is not defined", expression.AlwaysTrue, expression.AlwaysTrue},
		{"error.status >= 500", expression.AlwaysFalse, expression.Undecided},
		{"error.status != 404", expression.AlwaysTrue, expression.Undecided},
		{"error.kind in ['http', 'timeout']", expression.AlwaysFalse, expression.Undecided},
		{"error.message contains 'x'", expression.AlwaysFalse, expression.Undecided},
		{"error.status == 503 or error.status == 429", expression.AlwaysFalse, expression.Undecided},
		{"error.status == 503 or x", expression.Undecided, expression.Undecided},
		{"error.status == 503 and x", expression.AlwaysFalse, expression.Undecided},
		{"response.paging.hasMore", expression.Undecided, expression.AlwaysFalse},
		{"response.paging.hasMore is not defined", expression.Undecided, expression.AlwaysTrue},
		{"code >= 500", expression.AlwaysFalse, expression.Undecided},
		{"code >= 400", expression.AlwaysFalse, expression.AlwaysTrue},
		{"code < 400", expression.AlwaysTrue, expression.AlwaysFalse},
		{"code == 202", expression.Undecided, expression.AlwaysFalse},
		{"code in [429, 503]", expression.AlwaysFalse, expression.Undecided},
		{"code != 200", expression.Undecided, expression.AlwaysTrue},
		{"code == 399", expression.Undecided, expression.AlwaysFalse},
		{"code == 400", expression.AlwaysFalse, expression.Undecided},
		{"code < 399", expression.Undecided, expression.AlwaysFalse},
		{"code <= 100", expression.Undecided, expression.AlwaysFalse},
		{"code < 100", expression.AlwaysFalse, expression.AlwaysFalse},
		{"code >= 399", expression.Undecided, expression.AlwaysTrue},
		{"code > 399", expression.AlwaysFalse, expression.AlwaysTrue},
		{"1 == 1", expression.AlwaysTrue, expression.AlwaysTrue},
		{"1 == 2", expression.AlwaysFalse, expression.AlwaysFalse},
		{"code == nil", expression.AlwaysFalse, expression.AlwaysFalse},
		{"success", expression.AlwaysTrue, expression.Undecided},
		{"success == false", expression.AlwaysFalse, expression.Undecided},
		{"error ? x : false", expression.AlwaysFalse, expression.Undecided},
		{"x if error else y", expression.Undecided, expression.Undecided},
		{"error.status ?? 'none'", expression.AlwaysTrue, expression.Undecided},
		{"'' == x", expression.Undecided, expression.Undecided},
	} {
		t.Run(test.source, func(t *testing.T) {
			t.Parallel()

			program, problems := expression.Compile(test.source)
			require.Empty(t, problems)
			require.Equal(t, test.success, program.Assume(success), "after a success")
			require.Equal(t, test.failure, program.Assume(failure), "after a failure")
		})
	}
}
