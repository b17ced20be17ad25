package postgres

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/lists"
)

// tableLock is the first key of the advisory locks on names of tables: sqltool.ErrShared says which writes share a
// lock and which hold it exclusively.
const tableLock = 0x7265706e

// lockName returns the second part of the lock's key, which identifies the table.
func lockName(w *sqltool.TableWrite) int32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(w.Table[len(w.Table)-1])) // it never fails
	return int32(hash.Sum32())                         //nolint:gosec // any number will do
}

// shareTable locks a table against writes that need it exclusively.
const shareTable = "SELECT pg_advisory_xact_lock_shared($1::int, $2::int)"

// beginOf begins the transaction of a write, at READ COMMITTED whatever the database's default, because it waits for
// other transactions.
func beginOf(w *sqltool.TableWrite, alone bool) string {
	if alone {
		return beginCommitted
	}
	begin := beginCommitted
	for _, name := range lockNames(w) {
		begin += "; SELECT pg_advisory_xact_lock_shared(" + strconv.Itoa(tableLock) + ", " + strconv.Itoa(int(name)) + ")"
	}
	return begin
}

// lockNames returns the lock names of all tables of a write, sorted: writes that hold several of them exclusively
// would otherwise deadlock.
func lockNames(w *sqltool.TableWrite) []int32 {
	names := lists.Map(w.AllTables(), lockName)
	slices.Sort(names)
	return slices.Compact(names)
}

// lockAlone gives the write exclusive use of its table, if it needs that.
func (t *tableTx) lockAlone(ctx context.Context, w *sqltool.TableWrite) error {
	if !t.alone {
		return nil
	}
	if w.IsBegin() { // each iteration of a loop does
		begun := false
		err := t.Query(ctx, sqltool.BegunStatement, []any{w.StagingID()}, func(func(...any) error) error {
			begun = true
			return nil
		})
		if begun || err != nil {
			return err
		}
	}
	return t.waitShortly(ctx, func() error {
		for _, name := range lockNames(w) {
			if _, err := t.Exec(ctx, "SELECT pg_advisory_xact_lock($1::int, $2::int)", int32(tableLock), name); err != nil {
				return err
			}
		}
		return nil
	})
}

// readers selects the tables that record newer rows of a table: see
// sqltool.TableWrite.NewerNames.
const readers = ` FROM pg_class t JOIN pg_class c ON c.relnamespace = t.relnamespace JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE t.oid = to_regclass($1) AND c.relname >= $2 AND c.relname < $3 AND c.relkind = 'r'`

// noReaders is the condition that no other load is reading: there is no table of newer rows.
const noReaders = "current_setting('transaction_isolation') = 'read committed' AND NOT EXISTS (SELECT" + readers + ")"

// NewerRowTables returns the tables that record newer rows. The owner of the table itself, or of the database, can do
// whatever their owners can.
func (t *tableTx) NewerRowTables(ctx context.Context, w *sqltool.TableWrite) (found [][]string, err error) {
	if t.unread[w.QuotedTable()] {
		return nil, nil
	}
	begin, behind := w.NewerNames(dialect)
	err = t.Query(ctx, "SELECT n.nspname::text, c.relname::text, c.relowner = t.relowner OR "+isTrusted+", pg_get_userbyid(c.relowner)::text"+readers,
		[]any{w.QuotedTable(), begin, behind}, func(scan func(...any) error) error {
			var (
				schema, name, owner string
				trusted             bool
			)
			if err := scan(&schema, &name, &trusted, &owner); err != nil {
				return err
			}
			found = append(found, []string{schema, name})
			if !trusted {
				return untrustedError(name, owner)
			}
			return nil
		})
	return found, err
}

// isTrusted is the condition that a relation c belongs to the user, to a role of the user, to the database's owner or
// to a superuser. A superuser may use any role, but is a member of only those that were granted.
const isTrusted = `(c.relowner IN (SELECT oid FROM pg_roles WHERE rolname = current_user
		UNION ALL SELECT m.roleid FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.member WHERE r.rolname = current_user)
	OR NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AND pg_has_role(c.relowner, 'MEMBER')
	OR c.relowner = (SELECT datdba FROM pg_database WHERE datname = current_database())
	OR (SELECT rolsuper FROM pg_roles WHERE oid = c.relowner))`

// untrustedError returns the error of a table of the ledger that belongs to somebody else: its triggers would run as the worker's user.
func untrustedError(table, owner string) error {
	return &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true, Type: "ledger_owner",
		Message: "table " + strconv.Quote(table) + " belongs to role " + strconv.Quote(owner) + ", and not to the user of the connection, one of its roles, or the owner of the database. " +
			"It was not used, because its triggers would run with the rights of the connection. If you trust the role, transfer the table to the user with ALTER TABLE … OWNER TO, " +
			"or make the user a member of the role; if not, drop the table, and it is created again",
	}
}

// ShareTable lets everybody who may write to a table add rows to the table beside it.
func (t *tableTx) ShareTable(ctx context.Context, w, table *sqltool.TableWrite) error {
	const writers = `SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END
		FROM pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
		WHERE c.oid = to_regclass($1) AND a.privilege_type IN ('INSERT', 'UPDATE', 'DELETE') AND a.grantee <> (SELECT oid FROM pg_roles WHERE rolname = current_user)`
	var grantees []string
	err := t.Query(ctx, writers, []any{w.QuotedTable()}, func(scan func(...any) error) error {
		var grantee string
		err := scan(&grantee)
		grantees = append(grantees, grantee)
		return err
	})
	if err != nil {
		return err
	}
	for _, grantee := range grantees {
		if _, err := t.Exec(ctx, "GRANT SELECT, INSERT ON "+table.QuotedTable()+" TO "+grantee); err != nil {
			return err
		}
	}
	return nil
}

// LockExclusively gives the transaction exclusive use of a table that records newer rows.
func (t *tableTx) LockExclusively(ctx context.Context, table []string) (bool, error) {
	w := &sqltool.TableWrite{TableName: sqltool.TableName{Table: table}}
	_, err := t.Exec(ctx, "LOCK TABLE "+w.QuotedTable()+" IN ACCESS EXCLUSIVE MODE NOWAIT")
	return err == nil || isSQLState(err, "42P01"), err
}

// queueShare gives a write that is sent at once shared use of its table.
func queueShare(batch *pgx.Batch, w *sqltool.TableWrite) {
	batch.Queue(shareTable, int32(tableLock), lockName(w))
}
