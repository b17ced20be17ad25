package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"reprise/activities/sqltool"
	"reprise/activities/tooltest"
	"reprise/interpreter"
	"reprise/interpreter/expression"
)

// oddValues are written to columns of every type: what a type refuses is refused by each way.
var oddValues = []any{
	nil, true, false, 0, 7, -1, 40000, 5000000000, 9223372036854775807, 2.5, 1e21, 1e-7,
	json.Number("12345678901234567890123"), json.Number("1234567890123456789012345678901234567890"),
	json.Number("0.1234567890123456789012345678901234567890"), json.Number("1e400"),
	"0", "-17", "1.50", "infinity", "-Infinity", "NaN", "2024-02-29", "2024-02-30", "2024-03-31T02:30:00+01:00",
	"2024-03-31 02:30:00.123456 Europe/Berlin", "24:00:00", "1 year 2 days", "4 days ago", "t", "off", "yes",
	"red", "Red", "101", "10101", "5", "10:30:00.4999996", "2024-02-29 10:30:59.4999996", "{}", "{1,2}", "{{1,2},{3,4}}", `{"a": 1}`, `[1, "a", null]`, `"quoted"`, "null ", "[1,5)", "empty", "(1,2)",
	`\xdeadbeef`, `\000`, `\n`, "\\N", "\u2028", "e\u0301", "\x7f", "a\x01b", "127.0.0.1", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
	"abcdefghijkl", "    x", "x    ", "000123", "<a/>", "$1,000.00",
	[]any{},
	[]any{1, 2, nil},
	[]any{"a", `b"c\d`, "NULL", nil, ""},
	[]any{[]any{1, 2}, []any{3, 4}},
	[]any{[]any{1}, []any{2, 3}},
	[]any{[]any{}, []any{}},
	[]any{map[string]any{"k": 1}},
	[]any{true},
	[]any{2.5},
	[]any{"{1}"},
	[]any{[]any{"{1}"}},
	map[string]any{},
	map[string]any{"a": []any{1, nil, map[string]any{"b": "ü\u2028\t"}}},
	map[string]any{"x": 1, "y": "2"},
}

// valuesFor are the values for a type; most refuse nasty texts.
func valuesFor(kind string) []any {
	values := oddValues
	if !slices.Contains([]string{"text", "name", "json", "jsonb", "text[]", "bytea", "xml"}, kind) {
		return values
	}
	for _, text := range tooltest.Nasty {
		values = append(values, text, []any{text, nil}, map[string]any{"k": text})
	}
	return values
}

var oddTypes = []string{
	"smallint", "numeric", "numeric(6,2)", "bit(3)", "varbit(4)", "interval", "interval hour", "interval(1)", "timestamp(0)", "time(1)[]", "name", "tsvector", "odd_short", "odd_shorts", "double precision", "boolean", "text", "varchar(5)", "char(8)", "date", "timestamptz", "json", "jsonb", "bytea",
	"xml", "int4range", "box", "integer[]", "text[]", "varchar(3)[]", "jsonb[]", "box[]", "odd_pair[]",
	"odd_enum", "odd_positive", "odd_of_odd", "odd_list", "odd_pair", "odd_json",
}

// manyRows are more than a statement has as its parameters.
const manyRows = 1001

// TestWaysToWriteAgree writes odd values to columns of every type as arrays, to a view that COPY cannot write to, by COPY,
// and by a temporary table. What arrives is what the server makes of them as JSON, or all refuse it.
func TestWaysToWriteAgree(t *testing.T) {
	t.Parallel()

	pg, db := pgTool(t)
	db.Exec(t, `CREATE TYPE odd_enum AS ENUM ('red', 'off'); CREATE DOMAIN odd_positive AS integer CHECK (VALUE > 0);
		CREATE DOMAIN odd_of_odd AS odd_positive; CREATE DOMAIN odd_list AS integer[]; CREATE TYPE odd_pair AS (x integer, y text);
		CREATE DOMAIN odd_json AS jsonb; CREATE DOMAIN odd_short AS varchar(5); CREATE DOMAIN odd_shorts AS varchar(3)[]`)
	for n, kind := range oddTypes {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			table := fmt.Sprintf("odd_%d", n)
			db.Exec(t, fmt.Sprintf(`CREATE TABLE %[1]s_copied (id int, v %[2]s); CREATE TABLE %[1]s_beside (id int PRIMARY KEY, v %[2]s);
				CREATE TABLE %[1]s_json (id int, v %[2]s); CREATE TABLE %[1]s_under (id int, v %[2]s); CREATE VIEW %[1]s AS SELECT * FROM %[1]s_under`, table, kind))
			conn, err := pgx.Connect(t.Context(), db.URL)
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			populate := fmt.Sprintf("INSERT INTO %[1]s SELECT id, v FROM json_populate_recordset(NULL::%[1]s, $1::text::json)", table+"_json")
			many := make([]any, 1, manyRows)
			for i, value := range valuesFor(kind) {
				row := map[string]any{"id": i, "v": value}
				sent, refused := asSent(kind, value)
				encoded, err := expression.Encode([]any{map[string]any{"id": i, "v": sent}})
				require.NoError(t, err)
				asJSON := errors.New("a difference of type")
				if !refused {
					_, asJSON = conn.Exec(t.Context(), populate, string(encoded))
				}
				asArrays := insertOne(t, pg, table, row)
				require.Equal(t, asJSON == nil, asArrays == nil, "%#v: as JSON %v, as arrays %v", value, asJSON, asArrays)
				if asJSON == nil {
					many = append(many, row)
				} else if i%15 == 0 {
					requireRefused(t, pg, map[string]any{"table": table + "_beside", "mode": "upsert", "key": "id"}, row)
					requireRefused(t, pg, map[string]any{"table": table + "_copied"}, row)
				}
			}
			many[0] = map[string]any{"id": -1}
			for len(many) < manyRows {
				many = append(many, map[string]any{"id": -1 - len(many)})
			}
			_, err = pg.MakeAttempt(t, pg.TableInput(map[string]any{"table": table + "_beside", "mode": "upsert", "key": "id"}, many))
			require.NoError(t, err)
			in := pg.TableInput(map[string]any{"table": table + "_copied"}, many)
			in.OperationKey = table
			_, err = pg.MakeAttempt(t, in)
			require.NoError(t, err)
			const written = "SELECT id, v::text FROM %s_%s WHERE id >= 0 ORDER BY id"
			want := pg.RunStatement(t, fmt.Sprintf(written, table, "json"), nil)
			for _, way := range []string{"under", "copied", "beside"} {
				require.Equal(t, want, pg.RunStatement(t, fmt.Sprintf(written, table, way), nil), way)
			}
		})
	}
}

// asSent is what is sent to a column of a kind for a value, and whether the contract refuses it as the server would make another one of it.
func asSent(kind string, value any) (sent any, refused bool) {
	text, _ := value.(string)
	switch kind {
	case "smallint", "numeric", "numeric(6,2)", "double precision", "odd_positive", "odd_of_odd":
		return value, slices.Contains([]string{"000123", "infinity", "-Infinity", "NaN"}, text)
	case "interval", "interval hour", "interval(1)":
		return value, slices.Contains([]string{"0", "-17", "1.50", "101", "10101", "5", "000123"}, text) || isNoText(value)
	case "boolean":
		return value, text == "off" || text == "yes"
	case "timestamptz":
		return value, text == "000123" || isNoText(value)
	case "bytea":
		if _, isText := value.(string); !isText {
			return value, value != nil
		}
		data, isBytes := sqltool.ReadBytes(text)
		return data, !isBytes
	case "date", "timestamp(0)":
		if text == "2024-03-31T02:30:00+01:00" {
			return "2024-03-31 01:30:00", false
		}
		return value, text == "000123" || strings.HasSuffix(text, "Europe/Berlin") || isNoText(value)
	}
	return value, false
}

// isNoText reports whether a value is one of which PostgreSQL would read the JSON as a time.
func isNoText(value any) bool {
	_, isText := value.(string)
	return value != nil && !isText
}

// insertOne writes a row.
func insertOne(t *testing.T, pg tooltest.SQL, table string, row map[string]any) error {
	t.Helper()
	in := pg.TableInput(map[string]any{"table": table}, []any{row})
	in.OperationKey = fmt.Sprint(table, " ", row["id"])
	_, err := pg.MakeAttempt(t, in)
	return err
}

// requireRefused requires that a write of many rows is refused for one of them.
func requireRefused(t *testing.T, pg tooltest.SQL, fields, row map[string]any) {
	t.Helper()
	rows := make([]any, manyRows)
	for i := range rows {
		rows[i] = map[string]any{"id": -1 - i}
	}
	rows[500] = row
	in := pg.TableInput(fields, rows)
	in.OperationKey = fmt.Sprint("refused ", fields, row["id"])
	refused := pg.FailingCall(t, in)
	require.Equal(t, interpreter.KindTool, refused.Kind)
}

// TestCopyStoresWhatInsertDoes: rules, policies, and columns that are always made by the database keep their meaning.
func TestCopyStoresWhatInsertDoes(t *testing.T) {
	t.Parallel()

	pg, db := pgTool(t)
	db.Exec(t, `CREATE TABLE kept (id int, v text); CREATE TABLE ruled (id int, v text);
		CREATE RULE elsewhere AS ON INSERT TO ruled DO INSTEAD INSERT INTO kept VALUES (NEW.id, NEW.v);
		CREATE TABLE numbered (id int GENERATED ALWAYS AS IDENTITY, v text);
		CREATE TABLE made (id int, v text GENERATED ALWAYS AS ('made') STORED);
		CREATE TABLE fired (id int, v text);
		CREATE FUNCTION fired() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.v := 'fired ' || NEW.v; RETURN NEW; END $$;
		CREATE TRIGGER fired BEFORE INSERT ON fired FOR EACH ROW EXECUTE FUNCTION fired();
		CREATE TABLE parts (id int, v text) PARTITION BY LIST (id); CREATE TABLE part_1 PARTITION OF parts FOR VALUES IN (1)`)
	write := func(table string) error { return insertOne(t, pg, table, map[string]any{"id": 1, "v": "a"}) }
	require.NoError(t, write("ruled"))
	require.Equal(t, []any{map[string]any{"id": 1, "v": "a"}}, pg.RunStatement(t, "SELECT * FROM kept", nil))
	require.ErrorContains(t, write("numbered"), "GENERATED ALWAYS")
	require.ErrorContains(t, write("made"), "generated column")
	require.NoError(t, write("fired"))
	require.Equal(t, []any{map[string]any{"id": 1, "v": "fired a"}}, pg.RunStatement(t, "SELECT * FROM fired", nil))
	require.NoError(t, write("parts"))
	require.Equal(t, []any{map[string]any{"id": 1, "v": "a"}}, pg.RunStatement(t, "SELECT * FROM part_1", nil))
}

// TestPoliciesHoldHoweverRowsTravel: a user for whom a table has policies may write to it, in any mode and number of rows,
// what they allow, and nothing else.
func TestPoliciesHoldHoweverRowsTravel(t *testing.T) {
	t.Parallel()
	_, db := pgTool(t)
	pg, user := asUser(t, db)
	db.Exec(t, fmt.Sprintf(`GRANT ALL ON SCHEMA public TO %[1]s; CREATE TABLE own (id int PRIMARY KEY, v text);
		GRANT ALL ON own TO %[1]s; ALTER TABLE own ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON own USING (v = 'own')`, user))
	for _, mode := range []string{"insert", "upsert"} {
		for _, size := range []int{3, manyRows} {
			rows := make([]any, size)
			for i := range rows {
				rows[i] = map[string]any{"id": i, "v": "own"}
			}
			db.Exec(t, "TRUNCATE own")
			in := pg.TableInput(map[string]any{"table": "own", "mode": mode, "key": "id"}, rows)
			in.OperationKey = fmt.Sprint(mode, size)
			_, err := pg.MakeAttempt(t, in)
			require.NoError(t, err, "%s of %d", mode, size)
			require.Equal(t, int64(size), db.Query(t, "SELECT count(*) AS n FROM own")[0]["n"])
			rows[1] = map[string]any{"id": size, "v": "other"}
			in = pg.TableInput(map[string]any{"table": "own", "mode": mode, "key": "id"}, rows[1:2])
			in.OperationKey = fmt.Sprint("other ", mode, size)
			require.Contains(t, pg.FailingCall(t, in).Message, "row-level security")
		}
	}
}

func TestPostgresSaysWhereTextCannotBeStored(t *testing.T) {
	t.Parallel()

	pg, db := pgTool(t)
	db.Exec(t, "CREATE TABLE nul (id int, v text, j jsonb); CREATE VIEW nul_view AS SELECT * FROM nul")
	for _, table := range []string{"nul", "nul_view"} {
		refused := pg.FailingCall(t, pg.TableInput(map[string]any{"table": table}, []any{map[string]any{"id": 1}, map[string]any{"id": 2, "v": "a\x00b"}}))
		require.Contains(t, refused.Message, `row 2 for table "`+table+`", column "v": the text has the character U+0000`)
	}
	refused := pg.FailingCall(t, pg.TableInput(map[string]any{"table": "nul"}, []any{map[string]any{"id": 1}, map[string]any{"id": 2, "j": []any{"\x00"}}}))
	require.Contains(t, refused.Message, `row 2, column "j": unsupported Unicode escape sequence`)
}
