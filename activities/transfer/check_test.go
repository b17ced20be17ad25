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
		`from: {tool: htp, url: "http://localhost/a.csv"}, to: {tool: sqlite, path: a.db, table: a}`:                                                   `tool of from must be http or file, not "htp"; did you mean "http"?`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, tabel: a}`:                                                                    `did you mean "table"?`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, table: a, mode: upsert}`:                                                      `mode: upsert of sqlite needs "key"`,
		`from: {tool: file, path: a.csv}, to: {tool: postgres, table: a}`:                                                                              `needs "auth", as its tool is postgres`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, statement: SELECT 1}`:                                                         `to writes rows to a table, and statement does not`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, table: "{{ run.id }}"}`:                                                       `table of sqlite must not be a template`,
		`from: {path: a.csv}, to: {tool: sqlite, path: a.db, table: a}`:                                                                                `from needs tool, which is http or file`,
		`from: {tool: file, path: a.csv}, to: "{{ run.id }}"`:                                                                                          `to of transfer must be written as a map with tool`,
		`from: {tool: file, path: a.xml, format: xml}, to: {tool: sqlite, path: a.db, table: a}`:                                                       `format of from must be csv, jsonl or json`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, table: a, args: [1]}`:                                                         `to.args must be a map of names to expressions`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, table: a, fields: {id: "{{ ro.id }}"}}`:                                       `unknown name "ro"`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, table: a, key: id, exclude: [id]}`:                                            `the column "id" cannot be left out`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, table: a}, batch: many`:                                                       `batch of transfer must be a number`,
		`from: {tool: file, path: "{{ item }}"}, to: {tool: sqlite, path: a.db, table: a, mode: replace}, loop: {collection: [a, b]}`:                  `each iteration would publish its own rows`,
		`to: {tool: sqlite, path: a.db, table: a}`:                                                                                                     `needs "from", as its tool is transfer`,
		`from: {tool: file, path: a.csv}, to: {tool: sqlite, path: a.db, table: a, fields: {id: "{{ int(row.id) }}"}}, batch: 5`:                       "",
		`from: {tool: http, url: "{{ run.id }}/a", format: jsonl}, to: {tool: postgres, auth: pg, table: a, mode: replace, args: {id: "{{ row.a }}"}}`: "",
	} {
		text := "apiVersion: reprise/v1\nkind: Playbook\nmetadata: {name: example}\nworkflow:\n- {step: load, tool: transfer, " + fields + "}\n"
		_, problems := check.Validate(source.NewFile("a.yaml", []byte(text)), activities.Default(), check.Options{})
		if says == "" {
			require.Empty(t, problems, fields)
			continue
		}
		require.Contains(t, problems.Error(), says, fields)
	}
}
