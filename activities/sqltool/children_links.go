package sqltool

import (
	"context"
	"reflect"
	"slices"

	"reprise/activities/tool"
)

// Rows of children have the key of their parent in the columns that link them to it. The database may hold keys for equal that differ, by a
// collation, by a scale, by spaces at the end. Then the row that an upsert updates keeps the key that it has, and the columns of its children,
// which may have another type, may not hold both for equal. So children get the key as the table of their parents has it.

// findLinks returns the values that link rows to parents of a table, as that table has them; nil where the columns of both tables hold the same
// values for equal, so that any form of a key will do, and for a parent that the table lacks.
func (c *childTable) findLinks(ctx context.Context, tx TableTx, w *TableWrite, parents []map[string]any) ([]map[string]any, error) {
	links := make([]map[string]any, len(parents))
	if !w.upsert || len(parents) == 0 {
		return links, nil
	}
	write := *c.write
	columns, err := tx.ReadColumns(ctx, &write)
	if err != nil {
		return nil, err
	}
	if c.comparesAs(w.tableColumns, columns) {
		return links, nil
	}
	if err := c.refuseCoarse(tx.Dialect(), w, columns); err != nil {
		return nil, err
	}
	if _, err := tx.ReadColumns(ctx, w); err != nil { // a transaction knows one table
		return nil, err
	}
	keys, err := tx.StoredKeys(ctx, w, parents, false)
	if err != nil {
		return nil, err
	}
	for i, key := range keys {
		if key != nil {
			links[i] = c.linksOf(keys[i : i+1])[0]
		}
	}
	return links, nil
}

// comparesAs reports whether the columns that link rows to their parents compare values in the same way as the
// columns of the parent's key.
func (c *childTable) comparesAs(parents, children tableColumns) bool {
	return !slices.ContainsFunc(c.linked, func(column string) bool {
		of, own := columnNamed(parents, c.with[column]), columnNamed(children, column)
		return of.Type == "" || of.Type != own.Type || of.Base != own.Base || of.Collation != own.Collation
	})
}

// refuseCoarse returns an error if a column that links rows to their parents holds keys for equal that the table of the parents
// distinguishes: the children of one would be deleted with those of the other.
func (c *childTable) refuseCoarse(d *Dialect, w *TableWrite, children tableColumns) error {
	for _, column := range c.linked {
		of, own := columnNamed(w.tableColumns, c.with[column]), columnNamed(children, column)
		if of.Type == "" || own.Type == "" || !isCoarser(d, own, of) {
			continue
		}
		return tool.Errorf("column %q of table %q has type %s, which treats values as equal that %q of table %q, of type %s, keeps apart, "+
			"so writing one row could delete the children of another; give both columns the same type", column, c.write.Shown, own.typeText(), c.with[column], w.Shown, of.typeText())
	}
	return nil
}

// isCoarser reports whether a column is known to hold values for equal that another one distinguishes.
func isCoarser(d *Dialect, own, of Column) bool {
	kind, keys := d.KindOf(own.baseType()), d.KindOf(of.baseType())
	isText := keys == kindText || keys == kindVarchar
	switch {
	case own.Type == "citext":
		return of.Type != "citext"
	case own.Collation == NoCase, own.Collation == RTrim:
		return of.Collation != own.Collation && !keys.isNumber()
	case kind == kindDate:
		return keys == kindInstant || keys == kindTimestamp
	}
	return isText && (kind == kindNumeric || kind == kindReal || kind == kindDouble)
}

// typeText returns the type of a column as a message shows it.
func (c Column) typeText() string {
	if c.Collation == "" {
		return c.Type
	}
	return c.Type + " COLLATE " + c.Collation
}

// linksOf returns the keys of parents as the columns of their children have them.
func (c *childTable) linksOf(parents []map[string]any) []map[string]any {
	links := make([]map[string]any, len(parents))
	for i, parent := range parents {
		links[i] = make(map[string]any, len(c.linked))
		for _, column := range c.linked {
			links[i][column] = base64Of(parent[c.with[column]])
		}
	}
	return links
}

// givenBelow returns the links of parents in all forms in which their children may have them: as the parents give their keys, and as their table
// has them.
func (c *childTable) givenBelow(parents, links []map[string]any) []map[string]any {
	given := c.linksOf(parents)
	for i, link := range links {
		if link != nil && !reflect.DeepEqual(link, given[i]) {
			given = append(given, link)
		}
	}
	return given
}

// ComparedColumns returns the columns of the table whose values a write compares with others.
func ComparedColumns(w *TableWrite) []string {
	var columns []string
	if w.upsert {
		columns = w.Key
	}
	for _, column := range w.links {
		columns = appendNew(columns, column)
	}
	return columns
}
