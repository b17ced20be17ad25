package sqlite

import (
	"database/sql/driver"

	"modernc.org/sqlite"

	"reprise/activities/sqltool"
	"reprise/interpreter/incremental"
)

// Functions for times and sequences in SQL: SQLite stores times as text and would compare them character by
// character.
const (
	instantFunction  = "reprise_instant"
	notOlderFunction = "reprise_not_older"
)

func init() {
	sqlite.MustRegisterDeterministicScalarFunction(instantFunction, 2, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		text, isText := args[0].(string)
		offset, isOffset := args[1].(int64)
		if instant, ok := sqltool.SortableInstant(text, int(offset)); isText && isOffset && ok {
			return instant, nil
		}
		return nil, nil
	})
	sqlite.MustRegisterDeterministicScalarFunction(notOlderFunction, 3, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		as, isType := args[2].(string)
		if args[0] == nil || args[1] == nil || !isType {
			return nil, nil
		}
		if sqltool.CompareCursors(incremental.CursorType(as), storedValue(args[0]), storedValue(args[1])) < 0 {
			return int64(0), nil
		}
		return int64(1), nil
	})
}

// storedValue returns a value that a table has as expressions have it.
func storedValue(value driver.Value) any {
	switch value := value.(type) {
	case int64:
		return int(value)
	case []byte:
		return string(value)
	}
	return value
}
