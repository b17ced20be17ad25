package sqltool

import (
	"context"
	"strconv"
	"strings"

	"reprise/activities/tool"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// Where the rows of a call or loop replace those of its table, the rows below them are staged beside tables of their own, as parts of the
// same call or loop, and published in the same transaction. A staged row knows its parent by its place, because of several staged rows with
// one key only the last is published.

// Columns of staged rows with rows below them, or above them.
const (
	placeColumn  = "reprise_place"
	parentColumn = "reprise_parent"
)

// stagedBelow is how the rows of a write are staged with those above and below them.
type stagedBelow struct {
	// batch is different for all writes of the call or loop, "" where no rows are staged that others are below.
	batch string
	// root is the write of the rows that are above all others, nil for that one.
	root *TableWrite
}

// stageChild stages the rows of a table of children together with the rows of their parents.
func stageChild(w, child *TableWrite, field string) {
	if !w.IsStaged() || !w.replace {
		return
	}
	if w.root == nil {
		w.batch = expression.ShortDigest(w.Operation, w.partNumber(), w.Round)
	}
	own := *w.Staging
	own.ID = expression.Digest(own.ID, field)[:stagingDigits]
	child.staging = staging{Staging: &own, allowEmpty: w.allowEmpty, stagedBelow: stagedBelow{batch: w.batch, root: w}}
	if w.root != nil {
		child.root = w.root
	}
}

// stagingDigits is the length of an ID of staged rows.
const stagingDigits = 20

// placeOfRow returns the place of a row in its write: the row's number, or for a child row the number of its first
// ancestor followed by its index in each list on the way down, such as 7.0.2.
func (s *rowSet) placeOfRow(number int) string {
	if number > len(s.origins) {
		return strconv.Itoa(number)
	}
	return s.origins[number-1].place()
}

// placeRow adds the place of a staged row, and that of its parent.
func placeRow(w *TableWrite, row map[string]any, number int) {
	if w.batch == "" {
		return
	}
	place := w.placeOfRow(number)
	if w.HasChildren() {
		row[placeColumn] = w.batch + "." + place
	}
	if w.root != nil {
		row[parentColumn] = w.batch + "." + place[:strings.LastIndexByte(place, '.')]
	}
}

// placeColumns returns the columns of places.
func placeColumns(w *TableWrite) (columns []string) {
	if w.batch != "" && w.HasChildren() {
		columns = append(columns, placeColumn)
	}
	if w.batch != "" && w.root != nil {
		columns = append(columns, parentColumn)
	}
	return columns
}

// stagesBelow returns the stages of the tables of children whose rows are staged with those of the write.
func (s *stage) stagesBelow() (below []*stage) {
	for _, child := range s.write.children {
		if child.write.IsStaged() {
			below = append(below, &stage{tx: s.tx, write: child.write, of: child})
		}
	}
	return below
}

// enterPart begins what the part does in its round, also in the tables of children.
func (s *stage) enterPart(ctx context.Context, alone bool) error {
	if err := s.enterOwnPart(ctx, alone); err != nil {
		return err
	}
	s.below = s.stagesBelow()
	for _, below := range s.below {
		if err := below.enterPart(ctx, alone); err != nil {
			return asChildError(below.write, err)
		}
		if below.published != nil {
			continue
		}
		if err := below.leavePart(ctx, 0, nil); err != nil {
			return err
		}
	}
	return nil
}

// stageRows stages rows below others. The columns that link them are recorded even without a row, as their field has occurred.
func (c *childTable) stageRows(ctx context.Context, tx StagingTx, w, write, settled *TableWrite) error {
	s := &stage{tx: tx, write: write, of: c}
	if err := s.enterOwnPart(ctx, false); err != nil {
		return err
	}
	s.columns = lists.AddUnique(s.columns, c.columns...)
	written, beside, err := s.writeRows(ctx, settled)
	if err != nil {
		return err
	}
	w.below.addResult(beside, written)
	return nil
}

// recallBelow adds what was published in the tables of children before.
func (s *stage) recallBelow() {
	for _, below := range s.below {
		if below.published != nil {
			below.write.below.addResult(below.write, *below.published)
		}
		below.recallBelow()
	}
}

// boundsOf returns the rows that the call or loop replaces, with the name of their column, which for rows below others names the table too;
// and the table of the column.
func (s *stage) boundsOf() (where *bounds, column string, table *TableWrite) {
	root := s.write.root
	if root == nil {
		root = s.write
	}
	if root.where == nil || root == s.write {
		return root.where, root.where.columnName(), root
	}
	return root.where, root.QuotedTable() + "." + root.where.column, root
}

// columnName returns the column, "" for no bounds.
func (b *bounds) columnName() string {
	if b == nil {
		return ""
	}
	return b.column
}

// boundsText returns the text by which other loads know the bounds.
func (s *stage) boundsText() string {
	where, column, _ := s.boundsOf()
	if where == nil {
		return ""
	}
	named := *where
	named.column = column
	return named.boundsText()
}

// compareBelow compares staged rows of the tables of children with those that are there, once it is known which of their parents are
// published.
func (p *difference) compareBelow(ctx context.Context) error {
	for _, below := range p.below {
		rows, columns, err := below.countStaged(ctx)
		if err != nil {
			return err
		}
		there, err := p.tx.ReadColumns(ctx, below.write)
		if err != nil {
			return err
		}
		if len(there) == 0 {
			if rows > 0 {
				return below.goneError()
			}
			continue
		}
		own, err := below.compareRows(ctx, rows, columns, there)
		if err == nil {
			err = own.compareUnder(ctx, p)
		}
		if err != nil {
			return asChildError(below.write, err)
		}
		p.under = append(p.under, own)
	}
	return nil
}

// goneError returns the error of rows that were staged for a table that is no longer there.
func (s *stage) goneError() error {
	return tool.Errorf("table %q no longer exists, so its rows cannot be put in place and nothing was published", s.write.Shown)
}

// compareUnder finds out which rows of a table of children are replaced, and which staged ones are put in place.
func (p *difference) compareUnder(ctx context.Context, parent *difference) error {
	if err := p.limitBelow(parent); err != nil {
		return err
	}
	if err := p.excludeNewer(ctx); err != nil {
		return err
	}
	if err := p.refuseUnseen(ctx, parent); err != nil {
		return err
	}
	if p.rows > 0 && parent.leaves {
		if err := parent.indexPlaces(ctx); err != nil {
			return err
		}
		n, err := p.tx.Exec(ctx, "DELETE FROM "+p.beside.QuotedTable()+" AS "+besideName+" WHERE NOT EXISTS (SELECT 1 FROM "+parent.beside.QuotedTable()+" AS "+givenName+
			" WHERE "+givenName+"."+placeColumn+" = "+besideName+"."+parentColumn+" AND "+parent.fresh+")")
		if err != nil {
			return err
		}
		p.leaves = p.leaves || n > 0
	}
	if err := p.indexKeys(ctx); err != nil {
		return err
	}
	if err := p.dropRepeated(ctx); err != nil {
		return err
	}
	return p.compareBelow(ctx)
}

// besideName is a staged row below others in statements.
const besideName = "reprise_beside"

// indexPlaces makes an index by which the rows below staged ones find them. Without it the same is done, slower.
func (p *difference) indexPlaces(ctx context.Context) error {
	return p.indexStaged(ctx, "_place", placeColumn)
}

// indexStaged makes an index of staged rows, if the database allows it.
func (p *difference) indexStaged(ctx context.Context, suffix, columns string) error {
	return p.tx.TryPart(ctx, func() error {
		_, err := p.tx.Exec(ctx, "CREATE INDEX IF NOT EXISTS "+quoteName(p.beside.Table[len(p.beside.Table)-1]+suffix)+" ON "+p.beside.QuotedTable()+" ("+columns+")")
		return err
	})
}

// limitBelow limits the replacement to children of the rows that are replaced.
func (p *difference) limitBelow(parent *difference) error {
	p.within = "true"
	if parent.within == "true" {
		return nil
	}
	if err := p.of.refuseOtherTypes(p.tx.Dialect(), parent, p.there); err != nil {
		return err
	}
	links := strings.Join(lists.Map(p.of.linked, func(column string) string { return thereName + "." + quoteName(column) }), ", ")
	keys := strings.Join(lists.Map(p.of.linked, func(column string) string { return thereName + "." + quoteName(p.of.with[column]) }), ", ")
	below := func(condition string) string {
		return "(" + links + ") IN (SELECT " + keys + " FROM " + parent.write.QuotedTable() + " AS " + thereName + " WHERE " + condition + ")"
	}
	var conditions []string
	if parent.bounded != "true" {
		conditions = append(conditions, below(parent.bounded))
	}
	if parent.notNewer != "true" {
		conditions = append(conditions, "NOT "+below("NOT ("+parent.notNewer+")"))
	}
	p.within = strings.Join(conditions, " AND ")
	return nil
}

// refuseOtherTypes returns an error if rows cannot be found by the columns that link them to their parents.
func (c *childTable) refuseOtherTypes(d *Dialect, parent *difference, children []Column) error {
	write := *parent.write
	write.tableColumns = parent.there
	for _, column := range c.linked {
		of, own := columnNamed(parent.there, c.with[column]), columnNamed(children, column)
		if d.KindOf(of.baseType()).isNumber() != d.KindOf(own.baseType()).isNumber() {
			return tool.Errorf("column %q of table %q has type %s, but %q of table %q has type %s, so the children of the replaced rows cannot be found; "+
				"give both columns the same type", column, c.write.Shown, own.typeText(), c.with[column], parent.write.Shown, of.typeText())
		}
	}
	return c.refuseCoarse(d, &write, children)
}

// refuseUnseen refuses to empty a table of children because no row had their field.
func (p *difference) refuseUnseen(ctx context.Context, parent *difference) error {
	if len(p.columns) > 0 || parent.rows == 0 || p.write.allowEmpty {
		return nil
	}
	n, err := p.countRows(ctx, p.write.QuotedTable(), p.within)
	if n == 0 || err != nil {
		return err
	}
	return stagingError(typeEmptyReplace, "no row for table %q had the field %q, so nothing was deleted: table %q would lose all of its %d rows. "+
		"To allow that, set allow_empty: true", parent.write.Shown, p.of.field, p.write.Shown, n)
}

// deleteUnder deletes rows that are replaced and have no staged one, first those below them.
func (p *difference) deleteUnder(ctx context.Context) error {
	for _, under := range p.under {
		if err := under.deleteUnder(ctx); err != nil {
			return err
		}
		changes := []targetChange{under.deletesWhere(under.within, &under.written)}
		if under.rows > 0 && len(under.write.Key) > 0 {
			changes = []targetChange{under.deletesRepeated(&under.written), under.deletesWhere(under.within+" AND "+under.isGone(), &under.written)}
		}
		for _, change := range changes {
			if err := under.makeChange(ctx, change); err != nil {
				return asChildError(under.write, err)
			}
		}
	}
	return nil
}

// putUnder changes and inserts rows below others, whose parents are in place.
func (p *difference) putUnder(ctx context.Context) error {
	for _, under := range p.under {
		if under.rows > 0 {
			if err := under.putOwn(ctx, p); err != nil {
				return asChildError(under.write, err)
			}
		}
		under.write.below.addResult(under.write, under.written)
		if err := refuseOrphans(under.write, under.written); err != nil {
			return err
		}
		if err := under.putUnder(ctx); err != nil {
			return err
		}
		if under.written == (WriteResult{}) {
			continue
		}
		if err := under.recordPublished(ctx, under.there); err != nil {
			return err
		}
	}
	return nil
}

// putOwn changes and inserts rows of one table of children.
func (p *difference) putOwn(ctx context.Context, parent *difference) error {
	if err := p.linkStored(ctx, parent); err != nil {
		return err
	}
	changes := []targetChange{p.insertsWhere("true", &p.written)}
	if len(p.write.Key) > 0 {
		p.within = p.notNewer // a row of another parent that has the key moves
		changes = []targetChange{p.updateRows(&p.written), p.insertsAbsent(&p.written)}
	}
	for _, change := range changes {
		if change.statement == "" {
			continue
		}
		if err := p.makeChange(ctx, change); err != nil {
			return err
		}
	}
	p.written.affected = p.written.inserted + p.written.updated
	return nil
}

// linkStored gives staged rows the key of their parents as the table has it, where the database holds texts for equal that differ.
func (p *difference) linkStored(ctx context.Context, parent *difference) error {
	if len(parent.write.Key) == 0 || len(p.of.linked) == 0 || p.of.comparesAs(parent.there, p.there) {
		return nil
	}
	var sets []string
	d := p.tx.Dialect()
	for _, column := range p.of.linked {
		if field := p.of.with[column]; d.isText(columnNamed(parent.there, field)) && d.isText(columnNamed(p.there, column)) {
			sets = append(sets, quoteName(column)+" = "+thereName+"."+quoteName(field))
		}
	}
	if len(sets) == 0 {
		return nil
	}
	if err := parent.indexPlaces(ctx); err != nil {
		return err
	}
	_, err := p.tx.Exec(ctx, "UPDATE "+p.beside.QuotedTable()+" AS "+besideName+" SET "+strings.Join(sets, ", ")+" FROM "+parent.beside.QuotedTable()+" AS "+givenName+", "+
		parent.write.QuotedTable()+" AS "+thereName+" WHERE "+givenName+"."+placeColumn+" = "+besideName+"."+parentColumn+" AND "+parent.sameKey())
	return err
}

// isText reports whether a column has texts.
func (d *Dialect) isText(column Column) bool {
	kind := d.KindOf(column.baseType())
	return kind == kindText || kind == kindVarchar || column.Type == "citext"
}
