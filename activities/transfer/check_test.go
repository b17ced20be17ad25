package transfer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/interpreter/playbook/check"
	"reprise/interpreter/source"
)

// TestCheck: what is wrong with from and to is found before a run, with its place.
func TestCheck(t *testing.T) {
	t.Parallel()
	for fields, says := range map[string]string{
		`from: {tool: htp, url: "http://localhost/a.csv"}, to: {tool: sqlite, path: a.db, table: a}`:                                                                                    `tool of from must be http, file, postgres or sqlite, not "htp"; did you mean "http"?`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, tabel: a}`:                                                                                                     `did you mean "table"?`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, table: a, mode: upsert}`:                                                                                       `mode: upsert of sqlite needs "key"`,
		`from: {tool: file, path: a.csv}, to: {tool: postgres, table: a}`:                                                                                                               `needs "auth", because its tool is postgres`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, statement: SELECT 1}`:                                                                                          `to writes rows to a table, and statement does not`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, table: "{{ run.id }}"}`:                                                                                        `table of sqlite must not be a template`,
		`from: {path: a.csv}, to: {tool: sqlite, path: a.db, table: a}`:                                                                                                                 `from needs tool, which is http, file, postgres or sqlite`,
		`from: {tool: file, path: a.csv}, to: "{{ run.id }}"`:                                                                                                                           `to of transfer must be written as a map with tool`,
		`from: {tool: file, path: a.xml, format: xml}, to: {tool: sqlite, path: a.db, table: a}`:                                                                                        `from is XML, so it needs rows`,
		`from: {tool: file, path: a.parquet, format: parquet}, to: {tool: sqlite, path: a.db, table: a}`:                                                                                "",
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, table: a, args: [1]}`:                                                                                          `to.args must be a map of names to expressions`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, table: a, fields: {id: "{{ ro.id }}"}}`:                                                                        `unknown name "ro"`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, table: a, key: id, exclude: [id]}`:                                                                             `exclude cannot drop the column "id"`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, table: a}, batch: many`:                                                                                        `batch of transfer must be a number`,
		`from: {tool: file, path: "{{ item }}"}, to: {tool: sqlite, path: a.db, table: a, mode: replace}, loop: {collection: [a, b]}`:                                                   `each iteration would publish its own rows`,
		`to: {tool: sqlite, path: a.db, table: a}`:                                                                                                                                      `needs "from", because its tool is transfer`,
		`from: {tool: sqlite, path: a.db, statement: SELECT 1}, to: {tool: sqlite, path: a.db, table: a}`:                                                                               `from needs order_by, a column whose values are unique, such as id`,
		`from: {tool: sqlite, path: a.db, statement: SELECT 1, order_bi: id}, to: {tool: sqlite, path: a.db, table: a, mode: upsert, key: id}`:                                          `did you mean "order_by"?`,
		`from: {tool: sqlite, path: a.db, statement: SELECT 1, order_by: [a, b]}, to: {tool: sqlite, path: a.db, table: a}`:                                                             `order_by of from must be one column, not a list`,
		`from: {tool: sqlite, path: a.db, statement: SELECT 1, order_by: "{{ run.id }}"}, to: {tool: sqlite, path: a.db, table: a}`:                                                     `order_by of sqlite must not be a template`,
		`from: {tool: sqlite, path: a.db, statement: "SELECT row_number() OVER (PARTITION BY a ORDER BY lower(b)) AS n FROM c", order_by: n}, to: {tool: sqlite, path: b.db, table: a}`: `row_number() computes n anew`,
		`from: {tool: postgres, auth: pg, statement: 'SELECT gen_random_uuid() "n" FROM c', order_by: N}, to: {tool: sqlite, path: b.db, table: a}`:                                     `gen_random_uuid() computes n anew`,
		`from: {tool: sqlite, path: a.db, statement: "SELECT id, row_number() OVER () AS n, random() r FROM c", order_by: id}, to: {tool: sqlite, path: b.db, table: a}`:                "",
		`from: {tool: file, path: a.csv, order_by: id}, to: {tool: sqlite, path: a.db, table: a}`:                                                                                       `order_by of file needs tool: postgres or tool: sqlite beside it`,
		`from: {tool: postgres, auth: pg, table: a, order_by: id}, to: {tool: sqlite, path: a.db, table: a}`:                                                                            `from reads rows by a statement, and table does not apply to it`,
		`from: {tool: postgres, auth: pg, order_by: id}, to: {tool: sqlite, path: a.db, table: a}`:                                                                                      `needs "statement" or "table"`,
		`from: {tool: postgres, statement: SELECT 1, order_by: id}, to: {tool: sqlite, path: a.db, table: a}`:                                                                           `needs "auth"`,
		`from: {tool: postgres, auth: pg, statement: DELETE FROM a, order_by: id}, to: {tool: sqlite, path: a.db, table: a}`:                                                            `the statement of from must begin with select, values or with`,
		`from: {tool: postgres, auth: pg, statement: "SELECT {{ ru.id }}", order_by: id}, to: {tool: sqlite, path: a.db, table: a}`:                                                     `unknown name "ru"`,
		`from: {tool: postgres, auth: pg, statement: "SELECT 1; SELECT 2", order_by: id}, to: {tool: sqlite, path: a.db, table: a}`:                                                     `a second statement starts here`,
		`from: {tool: postgres, auth: pg, statement: "SELECT * FROM {{ run.id }}", order_by: id}, to: {tool: sqlite, path: a.db, table: a}`:                                             `table`,
		`from: {tool: postgres, auth: pg, statement: SELECT 1, order_by: id, rows: a}, to: {tool: sqlite, path: a.db, table: a}`:                                                        `rows of postgres needs tool: http or tool: file beside it`,
		`from: {tool: file, path: a.json, row: a}, to: {tool: sqlite, path: a.db, table: a}`:                                                                                            `did you mean "rows"?`,
		`from: {tool: http, url: "http://localhost/a.json", rows: "data.edges[*].node"}, to: {tool: sqlite, path: a.db, table: a}`:                                                      `rows of from is "data.edges[*].node"; a transfer reads a single list`,
		`from: {tool: file, path: a.json, rows: data.*.items}, to: {tool: sqlite, path: a.db, table: a}`:                                                                                `write only names with dots between them, such as data.items`,
		`from: {tool: file, path: a.json, rows: "data[0]"}, to: {tool: sqlite, path: a.db, table: a}`:                                                                                   `rows of from is "data[0]"`,
		`from: {tool: file, path: a.json, rows: "data.orders[]"}, to: {tool: sqlite, path: a.db, table: a}`:                                                                             "",
		`from: {tool: http, url: "http://localhost/a.json", rows: data.items}, to: {tool: sqlite, path: a.db, table: a}`:                                                                "",
		`from: {tool: file, path: a.csv}, to: {tool: file, path: b.csv, mode: overwrite}`:                                                                                               `a transfer appends to a file`,
		`from: {tool: file, path: a.csv}, to: {tool: file, auth: lake, path: b.csv, mode: overwrite}`:                                                                                   "",
		`from: {tool: file, path: "{{ item }}"}, to: {tool: file, auth: lake, path: b.csv, mode: overwrite}, loop: {collection: [a, b]}`:                                                `each iteration would publish its own rows`,
		`from: {tool: file, path: "{{ item }}"}, to: {tool: file, auth: lake, path: "{{ item }}", format: csv, mode: overwrite}, loop: {collection: [a, b]}`:                            "",
		`from: {tool: file, path: a.csv}, to: {tool: file, path: b.parquet, mode: overwrite, columns: {id: bigant}}`:                                                                    `columns of file has the type "bigant" for "id", which must be`,
		`from: {tool: file, path: a.csv}, to: {tool: file, path: b.parquet, mode: overwrite, columns: {id: bigants}}`:                                                                   `did you mean "bigint"?`,
		`from: {tool: file, path: a.csv}, to: {tool: file, path: "b/{{ row.kind }}", format: csv}`:                                                                                      `path names "row", but rows can go to several paths only with auth or as Parquet`,
		`from: {tool: file, path: a.csv}, to: {tool: file, path: "b/{{ row.kind }}", format: parquet}`:                                                                                  "",
		`from: {tool: file, path: a.csv}, to: {tool: file, auth: lake, path: "b/{{ row.kind }}", format: csv, mode: overwrite, allow_empty: true}`:                                      `allow_empty has no path to empty`,
		`from: {tool: file, path: "{{ row.x }}"}, to: {tool: file, path: b.parquet}`:                                                                                                    `unknown name "row"`,
		`from: {tool: file, path: a.csv}, to: {tool: file, path: b.parquet, columns: id}`:                                                                                               `must be a list of names, or a map from names to types, not "id"`,
		`from: {tool: file, path: a.csv}, to: {tool: file, path: b, format: parquet, mode: overwrite, columns: {id: "NUMERIC (12, 2)  not null"}}`:                                      "",
		`from: {tool: file, path: a.csv}, to: {tool: file, auth: lake, path: b.csv, rejected: {path: c}}`:                                                                               "",
		`from: {tool: file, path: a.csv}, to: {tool: file, path: b.csv, rejected: {path: c}}`:                                                                                           `rejected needs a folder of files, and this writes one file`,
		`from: {tool: file, path: a.csv, mode: append}, to: {tool: file, path: b.csv}`:                                                                                                  `mode applies only when writing, and this reads a file`,
		`from: {tool: file, path: a.csv, batch: 5}, to: {tool: file, path: b.csv}`:                                                                                                      `batch of a transfer is written beside from, not in it`,
		`from: {tool: file, path: a.csv}, to: {tool: file, format: csv}`:                                                                                                                `needs "path"`,
		`from: {tool: file, path: a.csv}, to: {tool: file, path: b.csv, table: a}`:                                                                                                      `the tool file has no field "table"`,
		`from: {tool: sqlite, path: a.db, statement: SELECT 1}, to: {tool: file, path: b.csv}`:                                                                                          `from needs order_by`,
		`from: {tool: file, path: a.csv}, to: {tool: file, path: "{{ run.id }}.csv", columns: [id], args: {id: "{{ row.id }}"}}`:                                                        "",
		`from: {tool: postgres, auth: pg, statement: "SELECT {{ run.id }}"}, to: {tool: sqlite, path: a.db, table: a, mode: upsert, key: id}`:                                           "",
		`from: {tool: postgres, auth: pg, statement: "SELECT {{ run.id }}", order_by: id}, to: {tool: sqlite, path: a.db, table: a}`:                                                    "",
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, table: a, fields: {id: "{{ int(row.id) }}"}}, batch: 5`:                                                        "",
		`from: {tool: http, url: "{{ run.id }}/a", format: jsonl}, to: {tool: postgres, auth: pg, table: a, mode: replace, args: {id: "{{ row.a }}"}}`:                                  "",
	} {
		text := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: example}\nworkflow:\n- {step: load, tool: transfer, " + fields + "}\n"
		_, problems := check.Validate(source.NewFile("a.yaml", []byte(text)), activities.DefaultCatalogue(), check.Options{})
		if says == "" {
			require.Empty(t, problems, fields)
			continue
		}
		require.Contains(t, problems.Error(), says, fields)
	}
}
