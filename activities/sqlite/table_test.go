package sqlite_test

import (
	"testing"

	"reprise/activities"
	"reprise/activities/tooltest"
)

func TestSQLiteTables(t *testing.T) {
	t.Parallel()
	catalogue := activities.NewCatalogue(activities.Resources{Directory: t.TempDir()})
	t.Cleanup(func() { _ = catalogue.Close() })
	tooltest.Tables{SQL: tooltest.SQL{Catalogue: catalogue, Name: "sqlite", Auth: "sqlite:tables.db"}}.Run(t)
}
