package postgres_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"

	"reprise/activities/sqltool"
)

// atOnce is what a write that is sent in one message does with each field of a write.
var atOnce = map[string]string{
	"TableName.Table": "the statement names it", "TableName.Shown": "of errors and figures",
	"mode.name": "of plans and errors", "mode.upsert": "Conflict", "mode.replace": "refused: Staged", "mode.conflict": "Conflict",
	"mergeKey.Key": "Conflict", "mergeKey.forms": "SettleWrite", "mergeKey.sequence": "Conflict", "mergeKey.order": "Conflict", "mergeKey.hardDelete": "refused with rows to delete: IsPlain",
	"rowSet.Columns": "insertionOf", "rowSet.Rows": "insertionOf", "rowSet.uniform": "insertionOf", "rowSet.columnRows": "SettleWrite", "rowSet.numbers": "of errors", "rowSet.origins": "of errors",
	"stateRows.State": "queueLedger", "stateRows.unneeded": "Seen", "stateRows.known": "Seen", "stateRows.firsts": "Seen", "stateRows.counts": "Met", "stateRows.inOrder": "Seen", "stateRows.chunks": "Seen",
	"LedgerRecord.Operation": "queueLedger", "LedgerRecord.Fingerprint": "queueLedger", "LedgerRecord.Note": "queueLedger",
	"schemaChange.changes": "refused: plannedTable.Change", "schemaChange.changing": "of errors of a change", "tableColumns": "insertionOf",
	"rejection.table": "refused: IsPlain", "rejection.max": "refused: IsPlain", "rejection.in": "refused: IsPlain",
	"staging.Staging": "refused: Staged", "staging.deleteMissing": "refused: Staged", "staging.maxDelete": "refused: Staged", "staging.allowEmpty": "refused: Staged", "staging.where": "refused: IsPlain", "staging.stagedBelow": "refused: Staged",
	"parentRows.children": "refused: HasChildren", "parentRows.links": "refused: a write of children is part of a write that HasChildren", "parentRows.reports": "refused: HasChildren",
	"parentRows.skipped": "refused: HasChildren", "parentRows.below": "refused: HasChildren",
	"nestedLists.nests": "refused: MakesTables", "nestedLists.made": "of tables of children",
	"Deletes": "refused: IsPlain", "deletesFrom": "refused: IsPlain", "given": "figures", "repeats": "refused: Repeats", "counted": "of later passes", "cursor": "Seen",
	"planned": "plans send nothing", "leftOut": "figures", "notes": "figures", "misspelt": "figures", "target": "figures", "unfit": "refused with rejected: IsPlain", "served": "of rejected rows",
	"refused": "of rejected rows", "lenient": "refused: IsPlain", "finding": "of rejected rows",
}

// TestEachFieldOfAWriteIsDecidedAtOnce: a new field of a write could be ignored in silence by a write in one message.
func TestEachFieldOfAWriteIsDecidedAtOnce(t *testing.T) {
	t.Parallel()
	fields := map[string]bool{}
	write := reflect.TypeFor[sqltool.TableWrite]()
	for i := range write.NumField() {
		field := write.Field(i)
		if field.Name == "settleRules" {
			continue // writeAtOnce settles too
		}
		if !field.Anonymous || field.Type.Kind() != reflect.Struct {
			fields[field.Name] = true
			continue
		}
		for j := range field.Type.NumField() {
			fields[field.Name+"."+field.Type.Field(j).Name] = true
		}
	}
	for name := range fields {
		assert.NotEmpty(t, atOnce[name], "TableWrite has a new field %s: have writeAtOnce (activities/postgres/at_once.go) obey it or refuse such a write, and add to atOnce which", name)
	}
	for name := range atOnce {
		assert.True(t, fields[name], "TableWrite has no field %s: remove it from atOnce", name)
	}
}
