package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// TestDeepAnswers passes mostLevels: what is nested deeper is about rows.
func TestDeepAnswers(t *testing.T) {
	t.Parallel()
	var deep any = []any{1, 2}
	for level := 0; level <= mostLevels; level++ {
		require.Equal(t, 2, LongestList(deep, 0), level)
		deep = map[string]any{"in": deep}
	}
	require.Equal(t, 2, LongestList(deep, 0))
	require.Equal(t, -1, LongestList(map[string]any{"in": deep}, 0))
}

// TestLongConditions passes mostMembers: of a longer condition the first members are examined.
func TestLongConditions(t *testing.T) {
	t.Parallel()
	var parts []string
	for i := range mostMembers + 5 {
		parts = append(parts, fmt.Sprintf("response.m%d", i))
	}
	template, problems := expression.ParseCondition(strings.Join(parts, " or "))
	require.Empty(t, problems)
	members := pageMembers(&playbook.Policy{When: &playbook.Node{Template: template}})
	require.Len(t, members, mostMembers)
	require.Equal(t, []any{fmt.Sprint("m", mostMembers-1)}, members[mostMembers-1].Path)
}
