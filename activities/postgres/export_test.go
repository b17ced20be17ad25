package postgres

import "reprise/activities/sqltool"

// NotOlder is for tests.
var NotOlder = notOlderCondition

// NameLock is the advisory lock of a table's name.
func NameLock(table string) (class, name int32) {
	return tableLock, lockName(&sqltool.TableWrite{TableName: sqltool.TableName{Table: []string{table}}})
}
