package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	"go.temporal.io/server/tools/common/schema"
	sqltool "go.temporal.io/server/tools/sql"
)

// postgresVariable is the environment variable of --postgres.
const postgresVariable = "DEVSERVER_POSTGRES"

const (
	// visibilitySuffix is what the database of visibility has after the name of the other one: both have a table of
	// schema versions with the same name.
	visibilitySuffix = "_visibility"
	// maintenanceDatabase is the database of each PostgreSQL in which others are created.
	maintenanceDatabase = "postgres"
	// postgresConnections bounds the connections of each of the server's pools, so that it and a test's own fit into the
	// hundred of a PostgreSQL as it is installed.
	postgresConnections = 10
)

// parsePostgres returns the configuration of a database at a URL. Errors do not quote the URL, which has a password.
func parsePostgres(text string) (*config.SQL, error) {
	at, err := url.Parse(text)
	if err != nil || at.Scheme != "postgres" && at.Scheme != "postgresql" {
		return nil, errors.New("--postgres is not a URL of PostgreSQL, such as postgres://user:password@127.0.0.1:5432/temporal")
	}
	name := strings.TrimPrefix(at.Path, "/")
	switch {
	case name == "" || strings.ContainsAny(name, `/"`) || name != strings.ToLower(name):
		return nil, errors.New("--postgres has no name of a database in lower case after its host")
	case at.Hostname() == "":
		return nil, errors.New("--postgres has no host; the server connects by TCP only")
	}
	password, _ := at.User.Password()
	conf := &config.SQL{
		PluginName: postgresql.PluginName, DatabaseName: name, User: at.User.Username(), Password: password,
		ConnectProtocol: "tcp", ConnectAddr: net.JoinHostPort(at.Hostname(), cmp.Or(at.Port(), "5432")),
		ConnectAttributes: map[string]string{}, MaxConns: postgresConnections, MaxIdleConns: postgresConnections,
	}
	for key := range at.Query() {
		conf.ConnectAttributes[key] = at.Query().Get(key)
	}
	return conf, nil
}

// openPostgres returns the configuration of both databases, which it creates and brings to the schema of this server.
func openPostgres(text string) (storage, error) {
	main, err := parsePostgres(text)
	if err != nil {
		return storage{}, err
	}
	visibility := *main
	visibility.DatabaseName += visibilitySuffix
	for folder, conf := range map[string]*config.SQL{"temporal": main, "visibility": &visibility} {
		if err := ensurePostgresSchema(*conf, "postgresql/v12/"+folder); err != nil {
			return storage{}, fmt.Errorf("prepare the database %q: %w", conf.DatabaseName, err)
		}
	}
	return storage{main: main, visibility: &visibility}, nil
}

// ensurePostgresSchema creates a database that is missing, and executes what its schema lacks of the server's own files.
func ensurePostgresSchema(conf config.SQL, files string) error {
	inMaintenance := conf
	if err := sqltool.DoCreateDatabase(&inMaintenance, maintenanceDatabase, log.NewNoopLogger()); err != nil {
		return err
	}
	db, err := sqltool.NewConnection(&conf, log.NewNoopLogger())
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ReadSchemaVersion(); err != nil { // there is no table of versions yet
		if err := schema.NewSetupSchemaTask(db, &schema.SetupConfig{InitialVersion: "0.0"}, log.NewNoopLogger()).Run(); err != nil {
			return err
		}
	}
	return schema.NewUpdateSchemaTask(db, &schema.UpdateConfig{DBName: conf.DatabaseName, SchemaName: files}, log.NewNoopLogger()).Run()
}
