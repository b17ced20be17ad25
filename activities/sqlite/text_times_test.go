package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTimesOfTwoForms: SQLite compares times by their characters, so a T is behind every time of the day that has a space instead.
func TestTimesOfTwoForms(t *testing.T) {
	t.Parallel()
	lite, _ := liteTool(t)
	for _, statement := range []string{
		"CREATE TABLE texts (id INTEGER PRIMARY KEY, at TEXT)", "CREATE TABLE times (id INTEGER PRIMARY KEY, at DATETIME)", "CREATE TABLE iso (id INTEGER PRIMARY KEY, at DATETIME)",
		"INSERT INTO texts VALUES (1, '2024-05-01 10:00:00'), (2, '2024-05-02 10:00:00')", "INSERT INTO times SELECT id, at FROM texts",
		"INSERT INTO iso VALUES (1, '2024-05-01T10:00:00Z'), (2, '2024-05-02T10:00:00Z')",
	} {
		lite.RunStatement(t, statement, nil)
	}
	scope := map[string]any{"day": "2024-05-01T00:00:00Z", "spaced": "2024-05-01 00:00:00"}
	for statement, noted := range map[string]bool{
		"SELECT id, at FROM texts WHERE at >= {{ day }}":                       true,
		"SELECT id, at FROM texts WHERE {{ day }} < at;":                       false, // the operand before is not looked at
		"SELECT id, at AS changed FROM times WHERE at >= '{{ day }}' LIMIT 1":  true,
		"SELECT id, at FROM times WHERE at BETWEEN {{ day }} AND '2024-06-01'": true,
		"SELECT id, at FROM iso WHERE at >= {{ day }}":                         false,
		"SELECT id, at FROM texts WHERE datetime(at) >= datetime({{ day }})":   false,
		"SELECT id, at FROM times WHERE at >= {{ spaced }}":                    false,
		"SELECT id, at, {{ day }} AS loaded FROM texts":                        false,
		"SELECT id FROM texts WHERE at >= {{ day }}":                           false,
	} {
		result, err := lite.MakeAttempt(t, lite.StatementInput(t, statement, scope))
		require.NoError(t, err)
		require.NotEmpty(t, result.Data.Data, statement)
		if !noted {
			require.Empty(t, result.Meta.Notes, statement)
			continue
		}
		require.Len(t, result.Meta.Notes, 1, statement)
		require.Contains(t, result.Meta.Notes[0], `"2024-05-01T00:00:00Z" is behind all times of its day that are written like "2024-05-02 10:00:00"`)
	}
}
