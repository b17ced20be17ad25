package e2e_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// contracts writes pages to a table that there is not, and the whole result to one that lacks columns.
const contracts = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: contracts}
workload: {api: "", auth: ""}
workflow:
  - step: start
    tool: postgres
    auth: pg
    statement: CREATE TABLE IF NOT EXISTS narrow (id bigint PRIMARY KEY)
    next: fetch
  - step: fetch
    tool: http
    url: "{{ api }}/api/v1/sales"
    params: {limit: 5, offset: 0}
    retry:
      - when: "{{ response.has_more }}"
        then:
          next_call: {params: {offset: "{{ 5 * _retry.page }}"}}
          collect: {path: sales}
          per_iteration:
            sink: {tool: postgres, auth: pg, table: sales, key: id, mode: upsert, sequence_by: version, schema_contract: evolve, columns: {updated_at: timestamptz}}
    sink: {tool: postgres, auth: pg, table: narrow, mode: insert_or_ignore, schema_contract: discard_value}
output: {values: "{{ steps.fetch.meta.discarded_values }}", rows: "{{ steps.fetch.meta.discarded_rows }}"}
`

// TestContractOfACall: a table is made once, and what is discarded is counted and warned of once for a call of many pages.
func TestContractOfACall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	db := w.database()
	w.work()
	for range 2 {
		result, err := w.outcome(w.start(contracts, map[string]any{"api": w.api.URL()}))
		require.NoError(t, err)
		require.EqualValues(t, "completed", result.Status, "%+v", result.Error)
		require.Equal(t, map[string]any{"values": 24, "rows": 0}, result.Result.Data)
		require.Len(t, result.Warnings, 1)
		require.Contains(t, result.Warnings[0], "24 values were discarded")
		require.EqualValues(t, 12, db.Query(t, "SELECT count(*) AS n FROM sales JOIN narrow USING (id)")[0]["n"])
	}
	require.Equal(t, "timestamp with time zone", db.Query(t, "SELECT DISTINCT pg_typeof(updated_at)::text AS type FROM sales")[0]["type"])
}
