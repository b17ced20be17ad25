package sqlite

import "reprise/activities/tool"

// SQLiteMemoryBytes is what a worker lets SQLite take.
func SQLiteMemoryBytes(res tool.Resources) int64 { return sqliteMemoryBytes(res) }

// SQLiteMemoryLimit is what SQLite may take of this process by now, 0 before its
// first use.
func SQLiteMemoryLimit() int64 {
	sqliteMemory.mu.Lock()
	defer sqliteMemory.mu.Unlock()
	return sqliteMemory.limit
}

// SQLiteUsers is how many use SQLite now.
func SQLiteUsers() int {
	sqliteMemory.mu.Lock()
	defer sqliteMemory.mu.Unlock()
	return sqliteMemory.using
}
