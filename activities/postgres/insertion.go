package postgres

import (
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"reprise/activities/sqltool"
	"reprise/interpreter/lists"
)

// Names that rows to be written have in statements.
const (
	givenName    = "reprise_given"
	positionName = "reprise_n"
	hasPrefix    = "reprise_has_"
	writtenName  = "reprise_written"
	isNewName    = "reprise_new"
	keyName      = "reprise_key"
)

// insertion describes how the rows of a write are inserted by one statement: in the order of their key, so that
// writes of the same rows wait for each other instead of deadlocking, and each row with its own columns.
type insertion struct {
	write *sqltool.TableWrite
	forms []columnForm // of its columns, nil where rows travel as JSON
	// partial lists the columns for which the statement has to know whether a row has them.
	partial []string
	// absent are columns that no row has and that cannot be NULL.
	absent []string
	// ordered are the columns by which rows are written, empty for the given order.
	ordered []string
	formOf  func(column string) columnForm
	// splits says that the statement returns how many rows it has inserted and how many it has updated.
	splits bool
	// returned gets the keys of the rows that are written, of a write that has to know them; else it is nil.
	returned *[]string
	// relation is the name of the rows in the FROM clause of a subquery.
	relation string
}

// insertionOf returns the insertion of a write into the table that the transaction has described.
func (t *tableTx) insertionOf(w *sqltool.TableWrite, forms []columnForm) *insertion {
	i := &insertion{
		write: w, forms: forms, absent: w.AbsentColumns(), formOf: func(column string) columnForm { return t.target.forms[column] },
		splits: w.UpdatesRows() && t.target.splits,
	}
	if w.ReportsRows() {
		i.returned = &t.returned
	}
	for _, column := range w.MissingColumns() {
		if w.UpdatesRows() || i.formOf(column).fallback != "" {
			i.partial = append(i.partial, column)
		}
	}
	switch {
	case !w.MayConflict():
	case len(w.Key) > 0:
		i.ordered = w.Key
	default:
		for _, column := range t.target.unique {
			if slices.Contains(w.Columns, column) {
				i.ordered = append(i.ordered, column)
			}
		}
	}
	return i
}

// isDirect reports whether COPY to the table does what the statement would.
func (i *insertion) isDirect() bool { return len(i.partial) == 0 && !i.write.MayConflict() }

// hasColumn returns the name of the column that says whether a row has a column.
func hasColumn(i int) string { return hasPrefix + strconv.Itoa(i) }

// keyColumn returns a column of the key of a row to be written, as the table compares it; of is in front of its name.
func (i *insertion) keyColumn(of, column string) string {
	form, name := i.formOf(column), of+sqltool.QuoteNames([]string{column})
	if form.base != form.exact {
		name = "CAST(" + name + " AS " + form.exact + ")"
	}
	return name + form.collation
}

// lacksCondition returns the condition that an existing row's replacement lacks a column. The row is found by its key.
func (i *insertion) lacksCondition(column string) string {
	at := slices.Index(i.partial, column)
	if at < 0 {
		return ""
	}
	meets, keys := make([]string, len(i.write.Key)), make([]string, len(i.write.Key))
	for n, key := range i.write.Key {
		meets[n], keys[n] = "excluded."+sqltool.QuoteNames([]string{key}), i.keyColumn("", key)
	}
	return "(" + strings.Join(meets, ", ") + ") IN (SELECT " + strings.Join(keys, ", ") + " FROM " + i.relation + " WHERE NOT " + hasColumn(at) + ")"
}

// insertStatement inserts the rows of a relation with the given columns, in the order of the column
// position.
func (i *insertion) insertStatement(with, from, position string, given []string) string {
	w := i.write
	columns, values := slices.Concat(w.Columns, i.absent), slices.Clone(given)
	for at, column := range w.Columns {
		if n := slices.Index(i.partial, column); n >= 0 {
			values[at] = i.columnOrFallback(column, hasColumn(n), values[at])
		}
	}
	for _, column := range i.absent {
		values = append(values, i.presentValue(column))
	}
	insert := "INSERT INTO " + w.QuotedTable() + " (" + sqltool.QuoteNames(columns) + ") SELECT " + strings.Join(values, ", ") + " FROM " + from +
		i.orderClause(position) + w.ConflictClause(i.lacksCondition)
	if !i.splits && i.returned == nil {
		return with + insert
	}
	if with = strings.TrimSuffix(with, " ") + ", "; with == ", " {
		with = "WITH "
	}
	if i.returned != nil {
		isNew := "true"
		if i.splits {
			isNew = "xmax = 0"
		}
		return with + writtenName + " AS (" + insert + " RETURNING json_build_array(" + sqltool.QuoteNames(w.Key) + ")::text AS " + keyName + ", " + isNew + " AS " + isNewName + ") SELECT " +
			keyName + ", " + isNewName + " FROM " + writtenName
	}
	return with + writtenName + " AS (" + insert + " RETURNING xmax = 0 AS " + isNewName + ") SELECT count(*) FILTER (WHERE " + isNewName +
		"), count(*) FILTER (WHERE NOT " + isNewName + ") FROM " + writtenName
}

// queueStatement adds a statement of the insertion to a batch; done gets what it has written.
func (i *insertion) queueStatement(batch *pgx.Batch, statement string, parameters []any, done func(sqltool.WriteResult)) {
	queued := batch.Queue(statement, parameters...)
	if i.returned != nil {
		queued.Query(func(rows pgx.Rows) error {
			written, err := i.readReturned(rows)
			done(written)
			return err
		})
		return
	}
	if !i.splits {
		queued.Exec(func(tag pgconn.CommandTag) error {
			done(sqltool.AffectedResult(tag.RowsAffected()))
			return nil
		})
		return
	}
	queued.QueryRow(func(row pgx.Row) error {
		written, err := readSplit(row)
		if err != nil {
			return err
		}
		done(written)
		return nil
	})
}

// readReturned reads the keys of the rows that a statement has written.
func (i *insertion) readReturned(rows pgx.Rows) (sqltool.WriteResult, error) {
	var inserted, updated int64
	for rows.Next() {
		var (
			key   string
			isNew bool
		)
		if err := rows.Scan(&key, &isNew); err != nil {
			return sqltool.WriteResult{}, err
		}
		*i.returned = append(*i.returned, key)
		if isNew {
			inserted++
		} else {
			updated++
		}
	}
	if !i.splits {
		return sqltool.AffectedResult(inserted), rows.Err()
	}
	return sqltool.SplitResult(inserted, updated), rows.Err()
}

// readSplit reads what a statement returns that splits.
func readSplit(row pgx.Row) (sqltool.WriteResult, error) {
	var inserted, updated int64
	err := row.Scan(&inserted, &updated)
	return sqltool.SplitResult(inserted, updated), err
}

// columnOrFallback returns the value of a column, or what a row has that lacks it.
func (i *insertion) columnOrFallback(column, has, value string) string {
	fallback := i.formOf(column).fallback
	if i.write.UpdatesRows() && i.write.NeedsValue(column) {
		fallback = i.presentValue(column)
	}
	if fallback == "" {
		return value
	}
	return "CASE WHEN " + has + " THEN " + value + " ELSE " + fallback + " END"
}

// presentValue returns the existing row's value of a NOT NULL column that a row lacks. A new row has none, which gives the
// database's error.
func (i *insertion) presentValue(column string) string {
	const there = "reprise_present"
	conditions := make([]string, len(i.write.Key))
	for n, key := range i.write.Key {
		conditions[n] = there + "." + sqltool.QuoteNames([]string{key}) + " = " + i.keyColumn(givenName+".", key)
	}
	return "(SELECT " + there + "." + sqltool.QuoteNames([]string{column}) + " FROM " + i.write.QuotedTable() + " AS " + there +
		" WHERE " + strings.Join(conditions, " AND ") + ")"
}

// orderClause returns the clause that sorts rows by key, and rows of one key by arrival.
func (i *insertion) orderClause(position string) string {
	if len(i.ordered) == 0 {
		return ""
	}
	terms := lists.Map(i.ordered, func(column string) string { return i.keyColumn("", column) })
	if i.isNumbered() {
		terms = append(terms, position)
	}
	return " ORDER BY " + strings.Join(terms, ", ")
}

// isNumbered reports whether rows need their positions in the statement: if several have the
// same key, the first is inserted. Rows to be updated have distinct keys already.
func (i *insertion) isNumbered() bool { return len(i.ordered) > 0 && !i.write.UpdatesRows() }

// parameterStatement returns the statement that inserts rows given as parameters, and a function that encodes them. If all
// columns have forms, there is an array for each column, which the server reads faster than JSON. JSON is read by the
// table's own types.
func (i *insertion) parameterStatement() (statement string, encode func([]map[string]any) (chunk, error)) {
	i.relation = givenName
	if i.forms == nil || slices.ContainsFunc(i.forms, func(form columnForm) bool { return form.base == "" }) {
		return i.jsonStatement(), encodeChunk
	}
	w := i.write
	arrays, values := make([]string, len(i.forms), len(i.forms)+len(i.partial)), make([]string, len(i.forms))
	for at, form := range i.forms {
		array := form.base + "[]"
		values[at] = sqltool.QuoteNames(w.Columns[at : at+1])
		if form.text == arrayText { // an array of arrays would be one of more dimensions
			array = "text[]"
			values[at] += "::" + form.base
		}
		arrays[at] = "$" + strconv.Itoa(at+1) + "::" + array
	}
	names := sqltool.QuoteNames(w.Columns)
	for at := range i.partial {
		arrays = append(arrays, "$"+strconv.Itoa(len(i.forms)+at+1)+"::bool[]")
		names += ", " + hasColumn(at)
	}
	rows := "unnest(" + strings.Join(arrays, ", ") + ")"
	if i.isNumbered() {
		rows, names = rows+" WITH ORDINALITY", names+", "+positionName
	}
	encode = func(rows []map[string]any) (chunk, error) { return encodeArrays(i, rows) }
	if len(i.partial) == 0 {
		return i.insertStatement("", rows+" AS "+givenName+" ("+names+")", positionName, values), encode
	}
	selected := strings.Join(values, ", ") + strings.TrimPrefix(names, sqltool.QuoteNames(w.Columns))
	with := "WITH " + givenName + " (" + names + ") AS (SELECT " + selected + " FROM " + rows + " AS sent (" + names + ")) "
	return i.insertStatement(with, givenName, positionName, quoteNames(w.Columns)), encode
}

// quoteNames returns names quoted for SQL.
func quoteNames(columns []string) []string {
	return lists.Map(columns, func(column string) string { return sqltool.QuoteNames([]string{column}) })
}

// jsonStatement returns the statement whose parameter is a JSON list of rows.
func (i *insertion) jsonStatement() string {
	const element = "reprise_element"
	w, row := i.write, givenName
	if len(i.partial) == 0 && !i.isNumbered() {
		return i.insertStatement("", "json_populate_recordset(NULL::"+w.QuotedTable()+", $1::text::json) AS "+row, "", quoteNames(w.Columns))
	}
	selected := row + ".*, " + element + "." + positionName
	for at, column := range i.partial {
		selected += ", " + element + ".fields->" + sqltool.QuoteLiteral(column) + " IS NOT NULL AS " + hasColumn(at)
	}
	return i.insertStatement("WITH "+givenName+" AS (SELECT "+selected+" FROM json_array_elements($1::text::json) WITH ORDINALITY AS "+element+
		" (fields, "+positionName+"), json_populate_record(NULL::"+w.QuotedTable()+", "+element+".fields) AS "+row+") ", givenName, positionName, quoteNames(w.Columns))
}

// tableStatement returns the statement that inserts the rows of a table.
func (i *insertion) tableStatement(table string) string {
	i.relation = table
	return i.insertStatement("", table+" AS "+givenName, givenName+".ctid", quoteNames(i.write.Columns))
}
