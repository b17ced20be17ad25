package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
)

func TestAssignColumns(t *testing.T) {
	t.Parallel()
	wanted := map[string]enums.IndexedValueType{
		"Playbook": enums.INDEXED_VALUE_TYPE_KEYWORD,
		"Owner":    enums.INDEXED_VALUE_TYPE_KEYWORD,
		"Failed":   enums.INDEXED_VALUE_TYPE_INT,
	}
	before := map[string]string{"Keyword01": "Team"}
	got, err := assignColumns(before, wanted)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"Keyword01": "Team", "Keyword02": "Owner", "Keyword03": "Playbook", "Int01": "Failed",
	}, got)
	require.Equal(t, map[string]string{"Keyword01": "Team"}, before, "the argument is not changed")

	again, err := assignColumns(got, wanted)
	require.NoError(t, err)
	require.Equal(t, got, again)
}

func TestAssignColumnsErrors(t *testing.T) {
	t.Parallel()
	_, err := assignColumns(map[string]string{"Int01": "Failed"},
		map[string]enums.IndexedValueType{"Failed": enums.INDEXED_VALUE_TYPE_KEYWORD})
	require.EqualError(t, err, `"Failed" exists with type Int, not Keyword`)

	many := map[string]enums.IndexedValueType{}
	for i := range 100 {
		many[fmt.Sprintf("Flag%02d", i)] = enums.INDEXED_VALUE_TYPE_BOOL
	}
	_, err = assignColumns(nil, many)
	require.ErrorContains(t, err, "the database has no more columns of type Bool")
}
