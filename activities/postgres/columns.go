package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
)

// textForm is how a value is written as text, so that it becomes what json_populate_recordset makes
// of the same value as JSON.
type textForm int

// The forms of columns, in the numbers that ReadColumns has for them in SQL.
const (
	noText    textForm = iota // such as a composite type: only JSON will do
	plainText                 // the input function of the type reads it
	jsonText                  // JSON, of texts too
	arrayText                 // an array whose elements are plain
)

// columnForm is how values of a column travel as text.
type columnForm struct {
	text textForm
	// base is the type as which an array of values is read, "" if only the column itself reads them correctly. It has
	// no length or precision, which the column checks as in an INSERT.
	base string
	// exact is the type with its limits, and collation the clause for a collation other than the type's. With both,
	// values compare as in the column.
	exact, collation string
	// fallback is the column's value in rows that lack it, "" for NULL.
	fallback string
}

// target is what a write needs to know about its table.
type target struct {
	forms map[string]columnForm // by column
	// plain says that it is a table and not a view: a view may have other defaults than its tables.
	plain bool
	// unique are the columns of unique indexes.
	unique []string
	// leading are the columns with which indexes begin.
	leading []string
	// copyable says that COPY does the same as INSERT: there are no rules and no row-level policies, and it is
	// neither a view nor a foreign table.
	copyable bool
	// splits says that an upsert can return which rows are new, by their xmax: only the rows of a heap have it, and to return it takes the
	// right to read the table, and may not need a policy for rows.
	splits bool
	// tempAllowed says that the user may make temporary tables.
	tempAllowed bool
	// foreign says that the table, or a partition of it, is on another server.
	foreign bool
}

// refuseForeign refuses a table whose rows are on another server, as with postgres_fdw. That server commits just
// before this one: if this commit fails, the rows are written without the ledger knowing, and the next attempt
// writes them twice.
func (t *target) refuseForeign(w *sqltool.TableWrite) error {
	if !t.foreign {
		return nil
	}
	return tool.Errorf("%s is a foreign table, or has a foreign partition: another server commits its rows separately from the ledger, "+
		"so they could be written twice; write to that server with a separate connection", w.Shown)
}

// formsOf returns the forms of columns, nil where one has none.
func (t *target) formsOf(columns []string) []columnForm {
	forms := make([]columnForm, len(columns))
	for i, name := range columns {
		if forms[i] = t.forms[name]; forms[i].text == noText {
			return nil
		}
	}
	return forms
}

// tableDescription is what a session remembers of a table: describing it takes the server longer
// than writing a page.
type tableDescription struct {
	version string // see tableVersion
	columns []sqltool.Column
	target  target
	until   time.Time
}

// Bounds of what a session remembers.
const (
	descriptionAge         = time.Minute
	rememberedDescriptions = 100
)

// tableVersion returns a text that changes with table $1 or one of its columns; "" without a table.
const tableVersion = `SELECT coalesce((SELECT c.oid::text || ' ' || c.xmin::text || ' ' ||
		(SELECT string_agg(a.xmin::text, ' ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0)
	FROM pg_class c WHERE c.oid = to_regclass($1)), '')`

// errChanged rolls a write back that was planned for a table which has changed since.
var errChanged = errors.New("the table has changed")

// ReadColumns returns the table's columns in order, none if the table does not exist.
func (t *tableTx) ReadColumns(ctx context.Context, w *sqltool.TableWrite) ([]sqltool.Column, error) {
	if columns, is := t.rememberedColumns(w); is {
		return columns, nil
	}
	name := w.QuotedTable()
	t.described, t.unchecked = true, ""
	if known, is := t.tables[name]; is {
		t.target = known.target
		return slices.Clone(known.columns), nil
	}
	known, err := t.checkedDescription(ctx, w)
	if err != nil || known.version == "" || t.changing {
		return known.columns, err
	}
	if t.tables == nil {
		t.tables = map[string]tableDescription{}
	}
	t.tables[name] = known
	return slices.Clone(known.columns), nil
}

// checkedDescription describes a table, or has the server say that it still is as the session remembers it. Its version is "" without a table.
func (t *tableTx) checkedDescription(ctx context.Context, w *sqltool.TableWrite) (known tableDescription, err error) {
	name := w.QuotedTable()
	remembers := t.session != nil && (!w.IsStaged() || w.Do == "") // what begins or publishes describes its tables anew
	if remembers {
		var is bool
		if known, is = t.session.tables[name]; is && time.Now().Before(known.until) {
			version := ""
			if err := t.tx.QueryRow(ctx, tableVersion, name).Scan(&version); err != nil {
				return known, err
			}
			if version == known.version {
				t.target = known.target
				return known, nil
			}
		}
	}
	known.columns, known.version, err = t.describeTable(ctx, name)
	known.target, known.until = t.target, time.Now().Add(descriptionAge)
	if err = cmp.Or(err, t.target.refuseForeign(w)); err != nil || known.version == "" || !remembers {
		return known, err
	}
	if t.session.tables == nil || len(t.session.tables) >= rememberedDescriptions {
		t.session.tables = map[string]tableDescription{}
	}
	t.session.tables[name] = known
	return known, nil
}

// recallTables asks in one message whether all tables of a write are as the session remembers them, and which of them other loads read.
func (t *tableTx) recallTables(ctx context.Context, w *sqltool.TableWrite) error {
	if t.session == nil || w.IsStaged() || !w.HasChildren() {
		return nil
	}
	batch, tables, unread := &pgx.Batch{}, map[string]tableDescription{}, map[string]bool{}
	for _, table := range w.AllTables() {
		name := table.QuotedTable()
		known, is := t.session.tables[name]
		if !is || !time.Now().Before(known.until) {
			return nil
		}
		begin, behind := table.NewerNames(dialect)
		batch.Queue("SELECT ("+tableVersion+"), EXISTS (SELECT"+readers+")", name, begin, behind).QueryRow(func(row pgx.Row) error {
			var (
				version string
				isRead  bool
			)
			if err := row.Scan(&version, &isRead); err != nil {
				return err
			}
			if version == known.version {
				tables[name], unread[name] = known, !isRead
			}
			return nil
		})
	}
	if err := t.sendBatch(ctx, batch); err != nil {
		return err
	}
	t.described, t.tables, t.unread = true, tables, unread
	return nil
}

// rememberedColumns returns the columns as the session remembers them, for the first table of a write. They have to be checked before
// anything is written.
func (t *tableTx) rememberedColumns(w *sqltool.TableWrite) (columns []sqltool.Column, is bool) {
	if t.session == nil || t.described || w.IsStaged() {
		return nil, false
	}
	known, is := t.session.tables[w.QuotedTable()]
	if !is || !time.Now().Before(known.until) {
		return nil, false
	}
	t.described, t.target, t.unchecked = true, known.target, known.version
	return slices.Clone(known.columns), true
}

// checkRemembered makes the transaction roll back if the table differs from what the session
// remembers.
func (t *tableTx) checkRemembered(ctx context.Context, w *sqltool.TableWrite) error {
	if t.unchecked == "" {
		return nil
	}
	var version string
	if err := t.tx.QueryRow(ctx, tableVersion, w.QuotedTable()).Scan(&version); err != nil {
		return err
	}
	if version != t.unchecked {
		return errChanged
	}
	return nil
}

// describeTable returns what writes need to know of the columns of a table, $1.
const describeTable = `SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), coalesce((
			WITH RECURSIVE base AS (SELECT t.oid, t.typtype, t.typbasetype, t.typtypmod UNION ALL
				SELECT d.oid, d.typtype, d.typbasetype, greatest(base.typtypmod, d.typtypmod) FROM base JOIN pg_type d ON d.oid = base.typbasetype WHERE base.typtype = 'd')
			SELECT CASE WHEN typtype = 'e' THEN 'text' ELSE format_type(oid, CASE oid WHEN 'numeric'::regtype THEN typtypmod ELSE -1 END) END FROM base WHERE typtype <> 'd' AND t.typtype IN ('d', 'e')
		), ''),
		CASE WHEN a.attidentity = 'a' OR a.attgenerated <> '' THEN 0
			WHEN b.oid IN ('json'::regtype, 'jsonb'::regtype) THEN 2
			WHEN b.typcategory = 'A' AND e.typtype IN ('b', 'e', 'r', 'm') AND e.typdelim = ',' AND e.typcategory <> 'A'
				AND e.oid NOT IN ('json'::regtype, 'jsonb'::regtype) THEN 3
			WHEN b.typcategory <> 'A' AND b.typtype IN ('b', 'e', 'r', 'm') THEN 1
			ELSE 0 END,
		CASE WHEN NOT (greatest(a.atttypmod, t.typtypmod) = -1 OR coalesce(e.oid, b.oid) = ANY ('{varchar,bpchar,numeric,bit,varbit,timestamp,timestamptz,time,timetz}'::regtype[]))
				OR b.typcategory <> 'A' AND (b.typdelim <> ',' OR b.typarray = 0) THEN ''
			ELSE format_type(b.oid, -1) END,
		a.attidentity = 'a' OR a.attgenerated <> '',
		CASE 'bytea'::regtype WHEN b.oid THEN 1 WHEN e.oid THEN 2 ELSE 0 END,
		(a.attnotnull OR t.typnotnull) AND a.attidentity = '' AND NOT a.atthasdef AND t.typdefaultbin IS NULL,
		CASE WHEN a.attcollation <> t.typcollation THEN (SELECT ' COLLATE ' || quote_ident(n.nspname) || '.' || quote_ident(l.collname)
			FROM pg_collation l JOIN pg_namespace n ON n.oid = l.collnamespace WHERE l.oid = a.attcollation) ELSE '' END,
		coalesce('(' || CASE a.attidentity WHEN 'd' THEN 'nextval(' || quote_literal(pg_get_serial_sequence($1, a.attname)) || ')'
			WHEN '' THEN CASE a.attgenerated WHEN '' THEN coalesce(pg_get_expr(d.adbin, d.adrelid), pg_get_expr(t.typdefaultbin, 0)) END
			END || ')::' || format_type(a.atttypid, -1), ''),
		EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND a.attnum = ANY (i.indkey)),
		EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL AND i.indkey[0] = a.attnum),
		c.relkind IN ('r', 'p'),
		c.relkind IN ('r', 'p') AND NOT c.relrowsecurity AND NOT c.relhasrules,
		c.relkind = 'r' AND c.relam = (SELECT m.oid FROM pg_am m WHERE m.amname = 'heap') AND NOT c.relrowsecurity AND NOT c.relhasrules
			AND has_table_privilege(c.oid, 'SELECT'),
		has_database_privilege(current_database(), 'TEMPORARY'),
		CASE c.relkind WHEN 'f' THEN true WHEN 'p' THEN EXISTS (
			SELECT FROM pg_partition_tree(c.oid) p JOIN pg_class f ON f.oid = p.relid WHERE f.relkind = 'f') ELSE false END
	FROM pg_attribute a
		JOIN pg_class c ON c.oid = a.attrelid
		JOIN pg_type t ON t.oid = a.atttypid
		JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
		LEFT JOIN pg_type e ON e.oid = b.typelem
		LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
	WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`

// describeTable asks the server to describe a table. A generated or always numbered column has no form: COPY would
// write to it, and INSERT refuses. A column has no base if its length or precision may change how a text is read, as
// with interval.
func (t *tableTx) describeTable(ctx context.Context, table string) (columns []sqltool.Column, version string, err error) {
	t.target = target{forms: map[string]columnForm{}}
	batch := &pgx.Batch{}
	batch.Queue(tableVersion, table).QueryRow(func(row pgx.Row) error { return row.Scan(&version) })
	batch.Queue(describeTable, table).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var (
				column sqltool.Column
				form   columnForm
				unique bool
				leads  bool
			)
			if err := rows.Scan(&column.Name, &column.Type, &column.Base, &form.text, &form.base, &column.ReadOnly, &column.Bytes, &column.Required, &form.collation, &form.fallback,
				&unique, &leads, &t.target.plain, &t.target.copyable, &t.target.splits, &t.target.tempAllowed, &t.target.foreign); err != nil {
				return err
			}
			form.exact, column.Collation = column.Type, strings.TrimPrefix(form.collation, " COLLATE ")
			if unique {
				t.target.unique = append(t.target.unique, column.Name)
			}
			if leads {
				t.target.leading = append(t.target.leading, column.Name)
			}
			t.target.forms[column.Name] = form
			columns = append(columns, column)
		}
		return rows.Err()
	})
	return columns, version, t.tx.SendBatch(ctx, batch).Close()
}
