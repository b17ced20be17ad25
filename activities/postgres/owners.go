package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"reprise/activities/sqltool"
	"reprise/interpreter/lists"
)

// ownersAge is how long a session assumes that the owners of the ledger's tables have not
// changed.
const ownersAge = time.Minute

// checkOwners refuses a ledger of which a table belongs to somebody who is not trusted.
func checkOwners(ctx context.Context, conn *pgx.Conn) error {
	session := sessionOf(conn)
	if time.Now().Before(session.owners) {
		return nil
	}
	names := []string{}
	for _, tables := range [][]sqltool.NewTable{ledgerTables, dialect.StateTables(), dialect.StagingTables()} {
		names = append(names, lists.Map(tables, func(table sqltool.NewTable) string { return table.Name })...)
	}
	rows, err := conn.Query(ctx, "SELECT c.relname::text, pg_get_userbyid(c.relowner)::text FROM pg_class c WHERE c.oid IN (SELECT to_regclass(name) FROM unnest(string_to_array($1, ',')) AS name) AND NOT "+
		isTrusted+" ORDER BY 1", strings.Join(names, ","))
	if err != nil {
		return err
	}
	defer rows.Close()
	if rows.Next() {
		var table, owner string
		if err := rows.Scan(&table, &owner); err != nil {
			return err
		}
		return untrustedError(table, owner)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	session.owners = time.Now().Add(ownersAge)
	return nil
}
