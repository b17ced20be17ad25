package page_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/tables"
	"reprise/interpreter/call/page"
)

// TestMergeRows: rows of one key become one, with the fields of all; rows without a partner stay and are counted.
func TestMergeRows(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		key        []string
		rows, want string
		alone      int
		warning    string
	}{
		"two requests":   {[]string{"id"}, `[{"id": 1, "a": 1}, {"id": 2, "a": 2}, {"id": 2, "b": 3}, {"id": 1, "b": null}]`, `[{"a":1,"b":null,"id":1},{"a":2,"b":3,"id":2}]`, 0, ""},
		"the last stays": {[]string{"id"}, `[{"id": 1, "a": {"x": 1}}, {"id": 1, "a": {"y": 2}}]`, `[{"a":{"y":2},"id":1}]`, 0, ""},
		"two columns":    {[]string{"a", "b"}, `[{"a": 1, "b": 23}, {"a": 12, "b": 3}, {"a": 1, "b": 23, "c": 1}, {"a": 12, "b": 3, "c": 2}]`, `[{"a":1,"b":23,"c":1},{"a":12,"b":3,"c":2}]`, 0, ""},
		"no partner": {
			[]string{"id"},
			`[{"id": 1}, {"id": 2}, {"id": 3}, {"id": 1, "b": 1}]`, `[{"b":1,"id":1},{"id":2},{"id":3}]`, 2,
			"merge_by: 2 of 3 rows occurred less often than others and may lack fields; the first is id 2",
		},
		"three requests, one is short": {
			[]string{"id"},
			`[{"id": 1}, {"id": 2}, {"id": 1}, {"id": 2}, {"id": 1}]`, `[{"id":1},{"id":2}]`, 1,
			"merge_by: 1 of 2 rows occurred less often than others and may lack fields; the first is id 2",
		},
		"no key": {
			[]string{"id"},
			`[{"id": 1}, {"id": null, "a": 1}, 5, {"id": 1}, {"a": 2}]`, `[{"id":1},{"a":1,"id":null},5,{"a":2}]`, 3,
			"merge_by: 3 of 4 rows occurred less often than others and may lack fields; the first is a row without id",
		},
		"types differ": {[]string{"id"}, `[{"id": 1}, {"id": "1"}]`, `[{"id":1},{"id":"1"}]`, 2, "merge_by merged nothing: no two of 2 rows have the same id"},
		"none":         {[]string{"id"}, `[]`, `[]`, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := tables.Value(t, test.rows).([]any)
			before, err := json.Marshal(rows)
			require.NoError(t, err)
			got := page.MergeRows(rows, test.key)
			text, err := json.Marshal(got.Rows)
			require.NoError(t, err)
			require.Equal(t, test.want, string(text))
			require.Equal(t, test.alone, got.Alone)
			require.Equal(t, test.warning, got.Warning(test.key))
			after, err := json.Marshal(rows)
			require.NoError(t, err)
			require.Equal(t, string(before), string(after))
		})
	}
}
