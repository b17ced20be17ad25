package sqlite

import (
	"database/sql/driver"

	"modernc.org/sqlite"

	"reprise/activities/sqltool"
)

// instantFunction is the function by which tables are asked for times, whose texts SQLite compares by their characters.
const instantFunction = "reprise_instant"

func init() {
	sqlite.MustRegisterDeterministicScalarFunction(instantFunction, 2, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		text, isText := args[0].(string)
		offset, isOffset := args[1].(int64)
		if instant, ok := sqltool.Instant(text, int(offset)); isText && isOffset && ok {
			return instant, nil
		}
		return nil, nil
	})
}
