package postgres_test

import (
	"testing"

	"reprise/activities/tooltest"
)

func TestPostgresTables(t *testing.T) {
	t.Parallel()
	pg, _ := pgTool(t)
	tooltest.Tables{SQL: pg}.Run(t)
}
