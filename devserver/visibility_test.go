package main

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSlimVisibility: indexes that nothing uses are gone, those that lists use stay, and full-text search knows of each change.
func TestSlimVisibility(t *testing.T) {
	t.Parallel()
	conf, err := openSQLite(filepath.Join(t.TempDir(), "state.db"))
	require.NoError(t, err)
	ctx := t.Context()
	for range 2 { // a file is started with again
		require.NoError(t, slimVisibility(ctx, conf))
	}
	db, err := sql.Open("sqlite", "file:"+conf.DatabaseName+"?mode=rw")
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	indexes, err := texts(ctx, db, "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL", lastTable)
	require.NoError(t, err)
	require.ElementsMatch(t, neededIndexes, indexes)
	exec := func(statement string) {
		t.Helper()
		_, err := db.ExecContext(ctx, statement)
		require.NoError(t, err)
	}
	found := func(table, word string) int {
		t.Helper()
		ids, err := texts(ctx, db, "SELECT rowid FROM "+table+" WHERE "+table+" MATCH ?", word)
		require.NoError(t, err)
		return len(ids)
	}
	exec(`INSERT INTO executions_visibility (namespace_id, run_id, start_time, execution_time, workflow_id, workflow_type_name, status, encoding, task_queue, _version)
		VALUES ('n', 'r', '2026-01-01', '2026-01-01', 'w', 't', 1, 'json', 'q', 1)`)
	for _, words := range []string{"red", "green", "green", "blue"} {
		exec(`UPDATE executions_visibility SET status = 2, search_attributes = '{"Text01": "` + words + ` paint", "KeywordList01": "` + words + `"}'`)
		for _, word := range strings.Fields("red green blue") {
			want := 0
			if word == words {
				want = 1
			}
			require.Equal(t, want, found("executions_visibility_fts_text", word), "%s while it is %s", word, words)
			require.Equal(t, want, found("executions_visibility_fts_keyword_list", word), "%s while it is %s", word, words)
		}
	}
	exec(`UPDATE executions_visibility SET search_attributes = '{}'`)
	require.Zero(t, found("executions_visibility_fts_text", "blue"))
	exec(`INSERT INTO executions_visibility_fts_text (executions_visibility_fts_text, rank) VALUES ('integrity-check', 1)`)
	exec(`INSERT INTO executions_visibility_fts_keyword_list (executions_visibility_fts_keyword_list, rank) VALUES ('integrity-check', 1)`)
	exec(`DELETE FROM executions_visibility`)
	require.Zero(t, found("executions_visibility_fts_keyword_list", "blue"))
}
