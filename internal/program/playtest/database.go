package playtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"reprise/activities/sqltool"
	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/statement"
)

const (
	// databasePatience bounds creating and dropping a test's objects in PostgreSQL.
	databasePatience = time.Minute
	// databasePrefix begins the names of databases, roles and schemas of tests.
	databasePrefix = "reprise_test_"
	// dayOfName is the layout of the date in these names.
	dayOfName = "20060102"
)

// leftBehind are queries that return statements to drop what killed tests left behind on earlier days. The date is in
// the names, because the server does not know when a database was created.
var leftBehind = []string{
	"SELECT format('DROP DATABASE IF EXISTS %I WITH (FORCE)', datname) FROM pg_database WHERE datname::text ~ $1 AND substr(datname::text, length($2) + 1, 8) < $3",
	"SELECT format('DROP SCHEMA IF EXISTS %I CASCADE', nspname) FROM pg_namespace WHERE nspname::text ~ $1 AND substr(nspname::text, length($2) + 1, 8) < $3",
	"SELECT format('DROP ROLE IF EXISTS %I', rolname) FROM pg_roles WHERE rolname::text ~ $1 AND substr(rolname::text, length($2) + 1, 8) < $3",
}

// dropLeft drops what tests left behind more than a day ago, if the role is allowed to. Failures to drop do not fail
// a test.
func dropLeft(ctx context.Context, conn *pgx.Conn) {
	const day = 24 * time.Hour
	for _, query := range leftBehind {
		rows, err := conn.Query(ctx, query, "^"+databasePrefix+`[0-9]{8}_[a-z2-7]{12}$`, databasePrefix, time.Now().UTC().Add(-day).Format(dayOfName))
		if err != nil {
			continue
		}
		drops, _ := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, drop := range drops {
			_, _ = conn.Exec(ctx, drop)
		}
	}
}

// bounds is what keeps a test away from other data on the server.
type bounds int

const (
	// ownRole is a database with its own role, which has no rights elsewhere.
	ownRole bounds = iota
	// ownDatabase is a database owned by the role of --postgres.
	ownDatabase
	// ownSchema is a schema in the database of --postgres.
	ownSchema
)

// database is a test's own database or schema in PostgreSQL.
type database struct {
	server string // URL of --postgres
	name   string
	url    string // that leads there
	role   string // of --postgres
	bounds bounds
	undo   []string // statements that drop it, the last first
}

// newDatabase creates a database with its own role if the URL's role is allowed to, else a schema.
func newDatabase(server string) (_ *database, err error) {
	parsed, err := url.Parse(server)
	if err != nil || parsed.Scheme != "postgres" && parsed.Scheme != "postgresql" {
		return nil, fmt.Errorf("--postgres must be a URL such as postgres://user:password@localhost/test")
	}
	ctx, cancel := context.WithTimeout(context.Background(), databasePatience)
	defer cancel()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the database of --postgres: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	d := &database{server: server, name: databasePrefix + time.Now().UTC().Format(dayOfName) + "_" + strings.ToLower(rand.Text()[:12])}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.dropAll())
		}
	}()
	var super, makesDatabases, makesRoles bool
	const rights = `SELECT current_user::text, rolsuper, rolsuper OR rolcreatedb, rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user`
	if err := conn.QueryRow(ctx, rights).Scan(&d.role, &super, &makesDatabases, &makesRoles); err != nil {
		return nil, fmt.Errorf("read the privileges of the role of --postgres: %w", err)
	}
	dropLeft(ctx, conn)
	if !makesDatabases {
		return d, d.makeSchema(ctx, conn, parsed)
	}
	if makesRoles {
		err := d.makeWithRole(ctx, conn, parsed)
		if err == nil || super {
			return d, err
		}
		if err := d.dropAll(); err != nil {
			return nil, err
		}
	}
	return d, d.makeAlone(ctx, conn, parsed)
}

// makeWithRole creates a database and the role that owns it.
func (d *database) makeWithRole(ctx context.Context, conn *pgx.Conn, server *url.URL) error {
	d.bounds = ownRole
	password := rand.Text()
	for _, step := range [][2]string{
		{fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", d.name, password), "DROP ROLE IF EXISTS " + d.name},
		{fmt.Sprintf("GRANT %s TO CURRENT_USER", d.name), ""},
		{fmt.Sprintf("CREATE DATABASE %s OWNER %s", d.name, d.name), "DROP DATABASE IF EXISTS " + d.name + " WITH (FORCE)"},
	} {
		if err := d.createDroppable(ctx, conn, step[0], step[1]); err != nil {
			return err
		}
	}
	d.url = d.leadTo(server, d.name, url.UserPassword(d.name, password), "")
	err := d.enterDatabase(ctx)
	if err != nil {
		return fmt.Errorf("the role %s of --postgres is a superuser, so each test logs in as a role of its own, with a password, which the server refuses "+
			"from here: allow it in pg_hba.conf, or use a role that is not a superuser and may create databases: %w", d.role, err)
	}
	return nil
}

// makeAlone creates a database that the role of the URL owns.
func (d *database) makeAlone(ctx context.Context, conn *pgx.Conn, server *url.URL) error {
	d.bounds = ownDatabase
	if err := d.createDroppable(ctx, conn, "CREATE DATABASE "+d.name, "DROP DATABASE IF EXISTS "+d.name+" WITH (FORCE)"); err != nil {
		return err
	}
	d.url = d.leadTo(server, d.name, server.User, "")
	return d.enterDatabase(ctx)
}

// makeSchema creates a schema in the database of the URL.
func (d *database) makeSchema(ctx context.Context, conn *pgx.Conn, server *url.URL) error {
	d.bounds = ownSchema
	if err := d.createDroppable(ctx, conn, "CREATE SCHEMA "+d.name, "DROP SCHEMA IF EXISTS "+d.name+" CASCADE"); err != nil {
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" { // insufficient_privilege
			return fmt.Errorf("the role %s of --postgres may create neither a database nor a schema for a test; allow it with ALTER ROLE %s CREATEDB",
				d.role, pgx.Identifier{d.role}.Sanitize())
		}
		return err
	}
	d.url = d.leadTo(server, conn.Config().Database, server.User, d.name)
	return d.enterDatabase(ctx)
}

// leadTo returns the URL of a database on the server, with the schema for unqualified names.
func (d *database) leadTo(server *url.URL, name string, user *url.Userinfo, schema string) string {
	there, query := *server, server.Query()
	query.Del("search_path")
	query.Del("database")
	query.Del("dbname")
	if user != server.User {
		for _, word := range []string{"user", "password", "passfile", "options", "sslcert", "sslkey", "sslpassword"} {
			query.Del(word)
		}
	}
	if schema != "" {
		query.Set("search_path", schema)
	}
	there.Path, there.RawPath, there.User, there.RawQuery = "/"+name, "", user, query.Encode()
	return there.String()
}

// createDroppable executes a statement, and records the statement that undoes it.
func (d *database) createDroppable(ctx context.Context, conn *pgx.Conn, made, drop string) error {
	if _, err := conn.Exec(ctx, made); err != nil {
		return fmt.Errorf("create a database for the test on the server of --postgres: %w", err)
	}
	if drop != "" {
		d.undo = append(d.undo, drop)
	}
	return nil
}

// enterDatabase checks that the URL leads to what was created: a pooler in between may lead to another database or
// schema.
func (d *database) enterDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return fmt.Errorf("connect to the test's database on the server of --postgres: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var name string
	var schemas []string
	if err := conn.QueryRow(ctx, "SELECT current_database()::text, current_schemas(false)::text[]").Scan(&name, &schemas); err != nil {
		return fmt.Errorf("check the test's database on the server of --postgres: %w", err)
	}
	if d.bounds == ownSchema {
		name = strings.Join(schemas, ", ")
	}
	if name != d.name {
		return fmt.Errorf("the test would run in %s instead of %s, which was created for it; point the URL at PostgreSQL itself, not at a pooler", name, d.name)
	}
	return nil
}

// dropAll drops what was created.
func (d *database) dropAll() error {
	if len(d.undo) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), databasePatience)
	defer cancel()
	conn, err := pgx.Connect(ctx, d.server)
	if err != nil {
		return fmt.Errorf("the test's %s remains on the server of --postgres, which cannot be reached: %w", d.name, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var errs []error
	for _, text := range slices.Backward(d.undo) {
		if _, err := conn.Exec(ctx, text); err != nil {
			errs = append(errs, fmt.Errorf("the test's %s remains on the server of --postgres: %w", d.name, err))
		}
	}
	d.undo = nil
	return errors.Join(errs...)
}

// A statement whose verb is in ofServer changes more than tables if beyondDatabase matches it.
var (
	ofServer       = []string{"alter", "comment", "create", "do", "drop", "grant", "reassign", "reindex", "revoke", "security"}
	beyondDatabase = regexp.MustCompile(`(?i)\b(database|group|owned|role|system|tablespace|user)\b`)
)

// confineInput refuses statements that could affect anything outside of the test's database or schema.
func (d *database) confineInput(in interpreter.ToolInput) error {
	text, states := in.Fields[playbook.FieldStatement]
	switch {
	case d.bounds == ownRole:
		return nil
	case states && d.bounds == ownSchema:
		return tool.ConfigErrorf("step %q: the role %s of --postgres may not create databases, so the test has only a schema, and a statement could reach beyond it: "+
			"allow it with ALTER ROLE %s CREATEDB, or give the statement an answer in the test, such as {result: []}", in.Step, d.role, pgx.Identifier{d.role}.Sanitize())
	case states:
		written := expression.Text(text.Data)
		parsed, _ := statement.Parse(written, statement.Postgres)
		if slices.Contains(ofServer, parsed.Verb()) && beyondDatabase.MatchString(written) {
			return tool.ConfigErrorf("step %q: the statement changes databases, roles or the server, not tables of the test's own database; "+
				"give it an answer in the test, such as {result: []}", in.Step)
		}
		return nil
	case d.bounds == ownDatabase:
		return nil
	}
	tables, err := sqltool.TargetTables(in)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if len(table.Table) > 1 {
			return tool.ConfigErrorf("step %q: the role %s of --postgres may not create databases, so the test has only a schema, and table %s is in another one: "+
				"allow it with ALTER ROLE %s CREATEDB, or name the table without a schema", in.Step, d.role, table.Shown, pgx.Identifier{d.role}.Sanitize())
		}
	}
	return nil
}
