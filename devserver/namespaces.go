package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	persistencespb "go.temporal.io/server/api/persistence/v1"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/resolver"
	"go.temporal.io/server/common/searchattribute/sadefs"
	sqliteschema "go.temporal.io/server/schema/sqlite"
)

// ensureNamespaces creates missing namespaces and search attributes before the server starts, so that the first
// client finds them. Namespaces that exist in the database file keep their ID and gain missing attributes.
func ensureNamespaces(ctx context.Context, conf *config.SQL, cluster string, opts options) error {
	for _, name := range opts.namespaces {
		namespace, err := sqliteschema.NewNamespaceConfig(cluster, name, false, nil)
		if err != nil {
			return fmt.Errorf("describe namespace %q: %w", name, err)
		}
		if err := sqliteschema.CreateNamespaces(conf, namespace); err != nil {
			return fmt.Errorf("create namespace %q: %w", name, err)
		}
	}
	if len(opts.attributes) == 0 {
		return nil
	}
	db, err := sql.NewSQLDB(sqlplugin.DbKindUnknown, conf, resolver.NewNoopResolver(),
		log.NewNoopLogger(), metrics.NoopMetricsHandler)
	if err != nil {
		return fmt.Errorf("open the database for search attributes: %w", err)
	}
	defer func() { _ = db.Close() }()
	for _, name := range opts.namespaces {
		if err := ensureAttributes(ctx, db, name, opts.attributes); err != nil {
			return fmt.Errorf("add search attributes to namespace %q: %w", name, err)
		}
	}
	return nil
}

// ensureAttributes adds search attributes to a stored namespace. SQL stores have a fixed number of columns per type,
// and a namespace maps columns to the names that its users see.
func ensureAttributes(ctx context.Context, db sqlplugin.DB, namespace string, wanted map[string]enums.IndexedValueType) error {
	rows, err := db.SelectFromNamespace(ctx, sqlplugin.NamespaceFilter{Name: &namespace})
	if err != nil {
		return err
	}
	row := rows[0] // selected by a name that was just created, or an error
	encoding, err := enums.EncodingTypeFromString(row.DataEncoding)
	if err != nil {
		return err
	}
	codec := serialization.NewSerializer()
	detail, err := codec.NamespaceDetailFromBlob(&common.DataBlob{Data: row.Data, EncodingType: encoding})
	if err != nil {
		return err
	}
	detail.Config = cmp.Or(detail.Config, &persistencespb.NamespaceConfig{})
	aliases, err := assignColumns(detail.Config.CustomSearchAttributeAliases, wanted)
	if err != nil {
		return err
	}
	detail.Config.CustomSearchAttributeAliases = aliases
	blob, err := codec.NamespaceDetailToBlob(detail)
	if err != nil {
		return err
	}
	row.Data, row.DataEncoding = blob.GetData(), blob.GetEncodingType().String()
	_, err = db.UpdateNamespace(ctx, &row)
	return err
}

// assignColumns returns aliases, a map from column to attribute name, with every wanted attribute added. It assigns
// columns in the order of names, so that the same command always creates the same database.
func assignColumns(aliases map[string]string, wanted map[string]enums.IndexedValueType) (map[string]string, error) {
	columns := sadefs.GetDBIndexSearchAttributes(nil).CustomSearchAttributes
	result := maps.Clone(aliases)
	if result == nil {
		result = map[string]string{}
	}
	taken := map[string]string{}
	for column, name := range result {
		taken[name] = column
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		kind := wanted[name]
		if column, exists := taken[name]; exists {
			if columns[column] != kind {
				return nil, fmt.Errorf("%q exists with type %s, not %s", name, columns[column], kind)
			}
			continue
		}
		column := freeColumn(columns, result, kind)
		if column == "" {
			return nil, fmt.Errorf("no room for %q, the database has no more columns of type %s", name, kind)
		}
		result[column] = name
	}
	return result, nil
}

func freeColumn(columns map[string]enums.IndexedValueType, aliases map[string]string, kind enums.IndexedValueType) string {
	for _, column := range slices.Sorted(maps.Keys(columns)) {
		if _, used := aliases[column]; !used && columns[column] == kind {
			return column
		}
	}
	return ""
}
