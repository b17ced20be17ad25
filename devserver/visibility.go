package main

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/server/common/config"
)

// neededIndexes are the indexes of the visibility table that this server's queries use. The schema has 58, one for each
// search attribute, and each write of a run updates them all, which took a seventh of the server's time for loops.
// Without an index a list with a filter is as correct, and reads all runs of its namespace.
var neededIndexes = []string{
	"default_idx", "by_workflow_id", "by_workflow_type", "by_status", "by_parent_workflow_id", "by_root_workflow_id",
	"by_temporal_scheduled_by_id", "by_temporal_namespace_division",
	"by_keyword_01", "by_keyword_02", "by_keyword_03", "by_int_01", "by_datetime_01",
}

// searchTrigger is the trigger that updates the full-text search of a run.
const searchTrigger = "executions_visibility_au"

// slimVisibility makes writes of runs cheaper: it drops the indexes that are not needed, and updates full-text search
// only for changed texts.
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
		if slices.Contains(neededIndexes, index) {
			continue
		}
		if _, err := db.ExecContext(ctx, "DROP INDEX "+index); err != nil {
			return fmt.Errorf("drop the index %s: %w", index, err)
		}
	}
	return searchChangesOnly(ctx, db)
}

// searchChangesOnly adds a condition to the trigger of full-text search, unless it has one: that a searched column
// has changed.
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

// openParameters returns the URI parameters that open the server's own database. An in-memory one is shared by its
// name.
func openParameters(conf *config.SQL) string {
	if conf.ConnectAttributes["mode"] == "memory" {
		return "mode=memory&cache=shared"
	}
	return "mode=rw"
}

// texts returns the first column of a query's rows.
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
