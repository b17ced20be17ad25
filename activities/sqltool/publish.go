package sqltool

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reprise/interpreter/lists"
)

// The names that a target and the table beside it have in statements.
const (
	thereName = "reprise_there"
	givenName = "reprise_given"
)

// publishRows puts the staged rows in place, once.
func (s *stage) publishRows(ctx context.Context) (written WriteResult, err error) {
	if err := s.enterPart(ctx, true); err != nil {
		return written, err
	}
	if s.published != nil {
		s.recallBelow()
		return *s.published, nil
	}
	if err := s.leavePart(ctx, 0, nil); err != nil {
		return written, err
	}
	rows, columns, err := s.countStaged(ctx)
	if err != nil {
		return written, err
	}
	if rows == 0 && !s.write.allowEmpty {
		none := "no rows were read"
		if s.write.replace { // for delete_missing, what is left out counts as read
			none = "no rows were read, or all were rejected or discarded,"
		}
		return written, stagingError(typeEmptyReplace, "%s for table %q, so nothing was deleted there; "+
			"to let such a load empty the table, set allow_empty: true", none, s.write.Shown)
	}
	target, err := s.tx.ReadColumns(ctx, s.write)
	if err != nil {
		return written, err
	}
	if len(target) == 0 && rows > 0 {
		return written, s.goneError()
	}
	if len(target) > 0 { // or there is nothing to delete
		if written, err = s.putRows(ctx, rows, columns, target); err != nil {
			return written, err
		}
	}
	return written, s.endRound(ctx, written)
}

// countStaged returns how many rows were staged, and their columns. It fails if staged rows are
// missing.
func (s *stage) countStaged(ctx context.Context) (rows int64, columns []string, err error) {
	err = s.tx.Query(ctx, "SELECT staged, columns FROM "+StagedTable+" WHERE id = $1 ORDER BY part", []any{s.write.ID}, func(scan func(...any) error) error {
		var (
			staged int64
			text   string
			own    []string
		)
		if err := scan(&staged, &text); err != nil {
			return err
		}
		rows += staged
		err := json.Unmarshal([]byte(text), &own)
		for _, column := range own {
			columns = appendNew(columns, column)
		}
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	slices.Sort(columns)
	var there int64
	if s.beside != nil {
		if there, err = s.countRows(ctx, s.beside.QuotedTable(), "true"); err != nil {
			return 0, nil, err
		}
	}
	if there != rows {
		return 0, nil, s.lostError(rows, there)
	}
	return rows, columns, nil
}

// countRows counts the rows of a table; 0 if it does not exist.
func (s *stage) countRows(ctx context.Context, table, condition string) (n int64, err error) {
	if s.beside != nil && table == s.beside.QuotedTable() {
		if columns, err := s.tx.ReadColumns(ctx, s.beside); len(columns) == 0 || err != nil {
			return 0, err
		}
	}
	err = s.tx.Query(ctx, "SELECT count(*) FROM "+table+" AS "+thereName+" WHERE "+condition, nil, func(scan func(...any) error) error { return scan(&n) })
	return n, err
}

// putRows changes the target, and with it the tables of children whose rows were staged.
func (s *stage) putRows(ctx context.Context, rows int64, columns []string, there []Column) (written WriteResult, err error) {
	p, err := s.compareRows(ctx, rows, columns, there)
	if err != nil {
		return written, err
	}
	if p.within, err = s.withinCondition(ctx, s.write.where, there, thereName+".", true); err != nil {
		return written, err
	}
	for _, prepare := range []func(context.Context) error{p.excludeNewer, p.indexKeys, p.dropRepeated, p.compareBelow, p.deleteUnder} {
		if err := prepare(ctx); err != nil {
			return written, err
		}
	}
	if written, err = p.changeRows(ctx, rows); err != nil {
		return written, err
	}
	if s.write.replace {
		if err := refuseOrphans(s.write, written); err != nil {
			return written, err
		}
	}
	if err := p.putUnder(ctx); err != nil || written == (WriteResult{}) {
		return written, err
	}
	return written, s.recordPublished(ctx, there)
}

// compareRows begins to compare staged rows with those of their target, to which nobody else writes from then on.
func (s *stage) compareRows(ctx context.Context, rows int64, columns []string, there []Column) (*difference, error) {
	if err := s.tx.HoldWriters(ctx, s.write); err != nil {
		return nil, err
	}
	target, err := s.inspectTarget(ctx)
	if err != nil {
		return nil, err
	}
	if s.beside != nil {
		if _, err := s.followColumns(ctx, there); err != nil {
			return nil, err
		}
	}
	if err := s.checkNewer(ctx, there); err != nil {
		return nil, err
	}
	return &difference{stage: s, target: target, rows: rows, columns: columns, there: there}, nil
}

// changeRows deletes, changes and inserts rows of the target.
func (p *difference) changeRows(ctx context.Context, rows int64) (written WriteResult, err error) {
	s, within := p.stage, p.within
	switch {
	case rows == 0 && s.write.deleteMissing:
		return written, s.deleteMissing(ctx, &written, within)
	case rows == 0:
		return written, p.deleteWithin(ctx, &written)
	case s.write.deleteMissing:
		return written, s.deleteMissing(ctx, &written, within+" AND "+p.isGone())
	case len(s.write.Key) == 0:
		return p.replaceAll(ctx, rows)
	}
	return p.byKey(ctx)
}

// deleteMissing deletes what was not read, unless that is too much.
func (s *stage) deleteMissing(ctx context.Context, written *WriteResult, isGone string) error {
	table := s.write.QuotedTable()
	gone, err := s.countRows(ctx, table, isGone)
	if err != nil {
		return err
	}
	if most := s.write.maxDelete; float64(gone) > most*float64(*s.before) {
		return stagingError(typeMaxDelete, "%d of the %d rows of table %q%s were not read, more than max_delete allows (%v), so nothing was deleted; if they are really gone, raise max_delete",
			gone, *s.before, s.write.Shown, s.ofBounds(), most)
	}
	if err := s.deleteBelowGone(ctx, isGone); err != nil {
		return err
	}
	written.deleted, err = s.tx.Exec(ctx, "DELETE FROM "+table+" AS "+thereName+" WHERE "+isGone)
	written.undeleted = max(0, gone-written.deleted)
	return err
}

// deleteBelowGone deletes the children of rows that were not read.
func (s *stage) deleteBelowGone(ctx context.Context, isGone string) error {
	if !s.write.HasChildren() {
		return nil
	}
	parents := *s.write
	var err error
	if parents.tableColumns, err = s.tx.ReadColumns(ctx, &parents); err != nil {
		return err
	}
	keys, err := s.tx.KeysWhere(ctx, &parents, isGone)
	if err != nil {
		return err
	}
	for _, child := range parents.children {
		for some := range slices.Chunk(keys, seenChunk) {
			if err := child.deleteUnder(ctx, s.tx, child.linksOf(some)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ofBounds returns the condition that rows are within bounds, "" for all rows.
func (s *stage) ofBounds() string {
	if s.write.where == nil {
		return ""
	}
	return " of those of replace_where"
}

// endRound drops the table beside, and keeps that its rows are published.
func (s *stage) endRound(ctx context.Context, written WriteResult) error {
	id := s.write.ID
	for _, own := range []*TableWrite{s.beside, s.newer} {
		if own == nil {
			continue
		}
		if _, err := s.tx.Exec(ctx, "DROP TABLE IF EXISTS "+own.QuotedTable()); err != nil {
			return err
		}
	}
	if _, err := s.tx.Exec(ctx, "DELETE FROM "+StagedTable+" WHERE id = $1", id); err != nil {
		return err
	}
	for _, below := range s.below {
		if err := below.endRound(ctx, below.write.below.done[below.write.Shown]); err != nil {
			return err
		}
	}
	_, err := s.tx.Exec(ctx, "UPDATE "+StagingTable+" SET published_at = "+s.tx.Dialect().Now+", rows_affected = $2, rows_deleted = $3 WHERE id = $1",
		id, written.affected, written.deleted)
	return err
}

// difference compares staged rows with those of their target.
type difference struct {
	*stage
	target   *TargetTable
	there    []Column // of the target
	rows     int64    // staged
	columns  []string // that rows have had
	within   string   // condition of the rows of the target that are replaced
	bounded  string   // within without regard to newer rows
	notNewer string   // condition of rows that are not newer
	fresh    string   // condition of staged rows that are put in place
	leaves   bool     // some staged rows are not put in place
	// under are the differences of the tables of children; written is what was done to one of them.
	under   []*difference
	written WriteResult
}

// excludeNewer leaves out rows that other loads have written or deleted since this one began to read.
func (p *difference) excludeNewer(ctx context.Context) error {
	p.bounded, p.notNewer, p.fresh = p.within, "true", "true"
	key, some, err := p.readNewer(ctx)
	if !some || err != nil || len(p.write.Key) == 0 {
		return err
	}
	newer := p.newer.QuotedTable() + " AS " + newerName
	p.notNewer, p.leaves = "NOT EXISTS (SELECT 1 FROM "+newer+" WHERE "+SameKey(key, thereName, newerName)+")", true
	p.within += " AND " + p.notNewer
	p.fresh = "NOT EXISTS (SELECT 1 FROM " + newer + " WHERE " + SameKey(key, newerName, givenName) + " AND (" + newerName + "." + goneColumn +
		" OR EXISTS (SELECT 1 FROM " + p.write.QuotedTable() + " AS " + thereName + " WHERE " + SameKey(key, thereName, newerName) + ")))"
	return nil
}

// sameKey returns the condition that a row of the target and a staged one have one key.
func (p *difference) sameKey() string {
	return SameKey(p.write.Key, thereName, givenName)
}

// isGone returns the condition that a row of the target was not staged.
func (p *difference) isGone() string {
	return "NOT EXISTS (SELECT 1 FROM " + p.beside.QuotedTable() + " AS " + givenName + " WHERE " + SameKey(p.identity(), thereName, givenName) + ")"
}

// identity returns the columns that a staged row and its row in the target have in common. One below others is the same if it is still
// below the same.
func (p *difference) identity() []string {
	if p.of == nil {
		return p.write.Key
	}
	return lists.AddUnique(slices.Clone(p.write.Key), p.of.linked...)
}

// indexKeys makes an index by which a row of the target finds its staged row, in a database that would read all staged rows for
// each. Without it the same is done, slower.
func (p *difference) indexKeys(ctx context.Context) error {
	if !p.tx.Dialect().SearchesByIndex || p.rows == 0 || len(p.write.Key) == 0 {
		return nil
	}
	return p.indexStaged(ctx, "_keys", QuoteNames(p.identity()))
}

// stagedColumns are columns of staged rows.
func stagedColumns(columns []string) []string {
	return lists.Map(columns, func(column string) string { return givenName + "." + quoteName(column) })
}

// orAbort returns what makes a conflict an error where the target is declared to delete the rows that are in the way: they may be new
// ones, or not among those that are replaced.
func (p *difference) orAbort() string { return tableColumns(p.there).OrAbort() }

func (p *difference) insertStatement(condition string) string {
	return "INSERT " + p.orAbort() + "INTO " + p.write.QuotedTable() + " (" + QuoteNames(p.columns) + ") SELECT " + strings.Join(stagedColumns(p.columns), ", ") + " FROM " + p.beside.QuotedTable() + " AS " + givenName +
		" WHERE " + condition + " ORDER BY " + givenName + "." + orderColumn
}

// replaceAll deletes the rows to be replaced, and inserts the new ones; rows is their number.
func (p *difference) replaceAll(ctx context.Context, rows int64) (written WriteResult, err error) {
	if err := p.deleteWithin(ctx, &written); err != nil {
		return written, err
	}
	written.affected, err = p.tx.Exec(ctx, p.insertStatement("true"))
	written.inserted, written.unwritten = written.affected, max(0, rows-written.affected)
	return written, err
}

// deleteWithin deletes the rows of the target that are replaced.
func (p *difference) deleteWithin(ctx context.Context, written *WriteResult) error {
	return p.makeChange(ctx, p.deletesWhere(p.within, written))
}

// deletesWhere deletes the rows of the target that a condition holds for.
func (p *difference) deletesWhere(condition string, written *WriteResult) targetChange {
	rows := "FROM " + p.write.QuotedTable() + " AS " + thereName + " WHERE " + condition
	return targetChange{"DELETE " + rows, rows, &written.deleted, &written.undeleted}
}

// deletesRepeated deletes rows of the target whose key others have too.
func (p *difference) deletesRepeated(written *WriteResult) targetChange {
	table, keys := p.write.QuotedTable()+" AS "+thereName, QuoteNames(p.write.Key)
	return p.deletesWhere(p.within+" AND ("+keys+") IN (SELECT "+keys+" FROM "+table+" WHERE "+p.within+" GROUP BY "+keys+" HAVING count(*) > 1)", written)
}

// insertsAbsent inserts staged rows that the target does not have.
func (p *difference) insertsAbsent(written *WriteResult) targetChange {
	absent := p.fresh + " AND NOT EXISTS (SELECT 1 FROM " + p.write.QuotedTable() + " AS " + thereName + " WHERE " + p.sameKey() + " AND " + p.within + ")"
	return p.insertsWhere(absent, written)
}

// insertsWhere inserts the staged rows that a condition holds for.
func (p *difference) insertsWhere(condition string, written *WriteResult) targetChange {
	return targetChange{p.insertStatement(condition), "FROM " + p.beside.QuotedTable() + " AS " + givenName + " WHERE " + condition, &written.inserted, &written.unwritten}
}

// dropRepeated drops staged rows with the key of a later one: of rows with one key, the one that was written last counts.
func (p *difference) dropRepeated(ctx context.Context) error {
	if p.rows == 0 || !p.write.replace || len(p.write.Key) == 0 {
		return nil
	}
	repeated := fmt.Sprintf("FROM (SELECT %[2]s, row_number() OVER (PARTITION BY %[3]s ORDER BY %[2]s DESC) AS n FROM %[1]s) AS numbered WHERE n > 1",
		p.beside.QuotedTable(), orderColumn, QuoteNames(p.write.Key))
	var n int64
	err := p.tx.Query(ctx, "SELECT count(*) "+repeated, nil, func(scan func(...any) error) error { return scan(&n) })
	if n == 0 || err != nil {
		return err
	}
	p.leaves = true
	if err := p.noteReplaced(ctx, n); err != nil {
		return err
	}
	_, err = p.tx.Exec(ctx, "DELETE FROM "+p.beside.QuotedTable()+" WHERE "+orderColumn+" IN (SELECT "+orderColumn+" "+repeated+")")
	return err
}

// noteReplaced warns if staged rows, n of which have the key of a later one, differ from that: pages or iterations probably have different
// rows with one key.
func (p *difference) noteReplaced(ctx context.Context, n int64) error {
	var there, staged []string
	for _, column := range p.columns {
		there, staged = append(there, thereName+"."+quoteName(column)), append(staged, givenName+"."+quoteName(column))
	}
	table, differ := p.beside.QuotedTable(), int64(0)
	err := p.tx.Query(ctx, "SELECT count(*) FROM (SELECT 1 FROM "+table+" AS "+thereName+", "+table+" AS "+givenName+" WHERE "+p.sameKey()+
		" AND "+thereName+"."+orderColumn+" < "+givenName+"."+orderColumn+" AND "+p.tx.Dialect().Differ(there, staged)+" LIMIT 1) AS one", nil,
		func(scan func(...any) error) error { return scan(&differ) })
	if differ == 0 || err != nil {
		return err
	}
	more, notes := "columns to key", &p.write.notes
	if p.of != nil {
		more, notes = "the columns of with to its key in children", &p.write.below.notes
	}
	*notes = appendNew(*notes, fmt.Sprintf("table %q: %d of %d rows have the key (%s) of a later row, some with other values, and only the last row of each key stays; add %s, unless they are versions of one row",
		p.write.Shown, n, p.rows, strings.Join(p.write.Key, ", "), more))
	return nil
}

// targetChange is one of the statements that make the target equal to the staged rows.
type targetChange struct {
	statement string // "" for none
	// affects are the clauses FROM and WHERE that find the rows which the statement changes.
	affects string
	// counts is increased by the changed rows, and missing by the rows that a trigger prevented from changing.
	counts, missing *int64
}

// makeChange executes a change. Where the target has no triggers, all rows are changed.
func (p *difference) makeChange(ctx context.Context, c targetChange) error {
	var wanted int64
	if p.target.HasTriggers && c.affects != "" {
		err := p.tx.Query(ctx, "SELECT count(*) "+c.affects, nil, func(scan func(...any) error) error { return scan(&wanted) })
		if err != nil {
			return err
		}
	}
	n, err := p.tx.Exec(ctx, c.statement)
	*c.counts += n
	*c.missing += max(0, wanted-n)
	return err
}

// byKey deletes missing rows, updates different ones and inserts new ones. If rows of the table reference each other,
// referenced rows are inserted first and deleted last.
func (p *difference) byKey(ctx context.Context) (written WriteResult, err error) {
	changes := []targetChange{p.deletesWhere(p.within+" AND "+p.isGone(), &written), p.updateRows(&written), p.insertsAbsent(&written)}
	if p.target.SelfReferencing {
		slices.Reverse(changes)
	}
	for _, c := range slices.Insert(changes, 0, p.deletesRepeated(&written)) {
		if c.statement == "" {
			continue
		}
		if err := p.makeChange(ctx, c); err != nil {
			return written, err
		}
	}
	written.affected = written.inserted + written.updated
	return written, nil
}

// mayRespell reports whether texts of a column of the key may be equal to the database and still be other texts, as in a column that ignores
// case. Children keep their links to the key as it is.
func (p *difference) mayRespell(column string) bool {
	at := columnNamed(p.there, column)
	return p.of == nil && !p.write.HasChildren() && !at.ReadOnly && p.tx.Dialect().isText(at)
}

// updateRows updates rows that differ; there are none if they consist only of a key that the target has in the same form.
func (p *difference) updateRows(written *WriteResult) targetChange {
	var sets, there, staged []string
	for _, column := range p.columns {
		if slices.Contains(p.write.Key, column) && !p.mayRespell(column) {
			continue
		}
		name := quoteName(column)
		sets, there, staged = append(sets, name+" = "+givenName+"."+name), append(there, thereName+"."+name), append(staged, givenName+"."+name)
	}
	if len(sets) == 0 {
		return targetChange{}
	}
	table, beside := p.write.QuotedTable()+" AS "+thereName, p.beside.QuotedTable()+" AS "+givenName
	differ := " WHERE " + p.sameKey() + " AND " + p.within + " AND " + p.tx.Dialect().Differ(there, staged)
	return targetChange{
		"UPDATE " + p.orAbort() + table + " SET " + strings.Join(sets, ", ") + " FROM " + beside + differ,
		"FROM " + table + ", " + beside + differ, &written.updated, &written.unwritten,
	}
}
