package main

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/server/common/config"
)

// keptIndexes are the indexes of the table of runs by which runs are looked for here. The schema has 58, one for each
// attribute that a run may have, and each write of a run writes them all: a seventh of the time that the server needed for
// loops. Without an index a list with a filter is as right, and reads all runs of its namespace.
var keptIndexes = []string{
	"default_idx", "by_workflow_id", "by_workflow_type", "by_status", "by_parent_workflow_id", "by_root_workflow_id",
	"by_temporal_scheduled_by_id", "by_temporal_namespace_division",
	"by_keyword_01", "by_keyword_02", "by_keyword_03", "by_int_01", "by_datetime_01",
}

// searchTrigger keeps what full-text search knows of a run up to date.
const searchTrigger = "executions_visibility_au"

// slimVisibility has a write of a run cost less: indexes that nothing here uses go, and full-text search is written
// where its texts have changed, and not at each write.
func slimVisibility(ctx context.Context, conf *config.SQL) error {
	db, err := sql.Open("sqlite", "file:"+conf.DatabaseName+"?"+openParameters(conf))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	indexes, err := texts(ctx, db, "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL", lastTable)
	if err != nil {
		return err
	}
	for _, index := range indexes {
		if slices.Contains(keptIndexes, index) {
			continue
		}
		if _, err := db.ExecContext(ctx, "DROP INDEX "+index); err != nil {
			return fmt.Errorf("drop the index %s: %w", index, err)
		}
	}
	return searchChangesOnly(ctx, db)
}

// searchChangesOnly returns the trigger of full-text search a condition, unless it has one.
func searchChangesOnly(ctx context.Context, db *sql.DB) error {
	columns, err := texts(ctx, db, `SELECT c.name FROM sqlite_master AS t, pragma_table_info(t.name) AS c
		WHERE t.sql LIKE 'CREATE VIRTUAL TABLE executions_visibility_fts%'`)
	if err != nil {
		return err
	}
	var trigger string
	if err := db.QueryRowContext(ctx, "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?", searchTrigger).Scan(&trigger); err != nil {
		return fmt.Errorf("read the trigger %s: %w", searchTrigger, err)
	}
	head, body, found := strings.Cut(trigger, "BEGIN")
	if !found || strings.Contains(head, "WHEN") {
		return nil
	}
	condition := fmt.Sprintf("WHEN (OLD.%s) IS NOT (NEW.%s) BEGIN", strings.Join(columns, ", OLD."), strings.Join(columns, ", NEW."))
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing after a commit
	for _, change := range []string{"DROP TRIGGER " + searchTrigger, head + condition + body} {
		if _, err := tx.ExecContext(ctx, change); err != nil {
			return fmt.Errorf("change the trigger %s: %w", searchTrigger, err)
		}
	}
	return tx.Commit()
}

// openParameters open the database that the server has: one in memory is shared by its name.
func openParameters(conf *config.SQL) string {
	if conf.ConnectAttributes["mode"] == "memory" {
		return "mode=memory&cache=shared"
	}
	return "mode=rw"
}

// texts returns the first column of what a query returns.
func texts(ctx context.Context, db *sql.DB, query string, args ...any) (found []string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		found = append(found, text)
	}
	return found, rows.Err()
}
