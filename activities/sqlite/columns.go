package sqlite

import (
	"context"
	"slices"
	"strings"
	"sync"

	"reprise/activities/sqltool"
)

// mostKnownTables bounds of how many tables the columns are kept for each file: a playbook may
// write to a table for each of its iterations.
const mostKnownTables = 100

// knownColumns caches the columns of a file's tables, since reading them takes as long as
// writing some rows. Only transactions that changed nothing fill it. SQLite raises the schema
// version with every change of the schema, by any program, and a new version empties the cache.
type knownColumns struct {
	mu      sync.Mutex
	version int64
	tables  map[string][]sqltool.Column
}

// columnsOf returns the columns of the table of a write. The transaction must not have changed the schema: after
// a rollback, its version could be that of another schema.
func (k *knownColumns) columnsOf(ctx context.Context, tx *tableTx, w *sqltool.TableWrite) ([]sqltool.Column, error) {
	var version int64
	err := tx.Query(withoutCancel(ctx), "PRAGMA main.schema_version", nil, func(scan func(...any) error) error { return scan(&version) })
	if err != nil {
		return nil, err
	}
	table := strings.Join(w.Table, "\x00")
	if compared := sqltool.ComparedColumns(w); len(compared) > 0 { // which have collations
		table += "\x00\x00" + strings.Join(compared, "\x00")
	}
	if columns, known := k.getColumns(version, table); known {
		return columns, nil
	}
	columns, err := readColumns(ctx, tx, w)
	if err == nil && len(columns) > 0 {
		k.putColumns(version, table, columns)
	}
	return slices.Clone(columns), err
}

func (k *knownColumns) getColumns(version int64, table string) (columns []sqltool.Column, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.version != version {
		return nil, false
	}
	columns, known = k.tables[table]
	return slices.Clone(columns), known
}

func (k *knownColumns) putColumns(version int64, table string, columns []sqltool.Column) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.version != version || len(k.tables) >= mostKnownTables || k.tables == nil {
		k.version, k.tables = version, map[string][]sqltool.Column{}
	}
	k.tables[table] = columns
}
