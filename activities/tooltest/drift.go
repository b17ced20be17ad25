package tooltest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

var driftCases = tableCases{
	"drift":                    schemasDrift,
	"table is made":            tableIsMade,
	"table is not made":        tableIsNotMade,
	"names":                    namesStay,
	"empty names":              emptyNames,
	"long names":               longNames,
	"long numbers":             longNumbers,
	"generated columns":        generatedColumns,
	"changes that fail":        changesThatFail,
	"widen":                    columnsWiden,
	"evolve together":          evolveTogether,
	"discards by the database": discardsByDatabase,
}

// drift is how rows differ from their table, with what each contract makes of it.
type drift struct {
	name string
	rows []any
	// says is the error where the contract is freeze, "" where there is none.
	says string
	// lenient is set where SQLite, which keeps any value, has no error.
	lenient bool
	evolved string // table with evolve, or the error
	value   string // table with discard_value
	row     string // table with discard_row
	// values and lines are how many discard_value and discard_row leave out.
	values, lines int
	// kind is the type of column with evolve in PostgreSQL, where it is another one.
	column, kind string
}

// drifts begin with a table of id bigint, n integer, word varchar(5), flag boolean.
var drifts = []drift{
	{
		name: "new", rows: []any{row{"id": 1, "n": 5, "word": "a", "flag": true}, row{"id": 2, "extra": "x"}},
		says: `row 2: table "%s" has no column "extra": it has id, n, word, flag`, column: "extra", kind: "text",
		evolved: "1,5,a,true,nil|2,nil,nil,nil,x", value: "1,5,a,true|2,nil,nil,nil", row: "1,5,a,true", values: 1, lines: 1,
	},
	{
		name: "gone", rows: []any{row{"id": 1, "n": 5, "word": "a"}, row{"id": 2, "n": 6}},
		evolved: "1,5,a,nil|2,6,nil,nil", value: "1,5,a,nil|2,6,nil,nil", row: "1,5,a,nil|2,6,nil,nil",
	},
	{
		name: "renamed", rows: []any{row{"id": 1, "n": 5, "words": "a", "flag": true}, row{"id": 2, "n": 6, "word": "b", "flag": nil}},
		says: `row 1: table "%s" has no column "words": did you mean "word"?`, column: "words", kind: "text",
		evolved: "1,5,nil,true,a|2,6,b,nil,nil", value: "1,5,nil,true|2,6,b,nil", row: "2,6,b,nil", values: 1, lines: 1,
	},
	{
		name: "wider", rows: []any{row{"id": 1, "n": 5, "word": "a", "flag": true}, row{"id": 2, "n": 5000000000}},
		says: `row 2, column "n": value "5000000000" is out of range`, lenient: true, column: "n", kind: "bigint",
		evolved: "1,5,a,true|2,5000000000,nil,nil", value: "1,5,a,true|2,nil,nil,nil", row: "1,5,a,true", values: 1, lines: 1,
	},
	{
		name: "narrower", rows: []any{row{"id": 1, "n": 5, "word": "", "flag": true}, row{"id": 2, "n": 0, "word": "b", "flag": false}},
		evolved: "1,5,,true|2,0,b,false", value: "1,5,,true|2,0,b,false", row: "1,5,,true|2,0,b,false",
	},
	{
		name: "nil", rows: []any{row{"id": 1, "n": nil, "word": nil, "flag": nil, "extra": nil}},
		says:    `row 1: table "%s" has no column "extra"`,
		evolved: "1,nil,nil,nil", value: "1,nil,nil,nil", row: "1,nil,nil,nil",
	},
	{
		name: "nested", rows: []any{row{"id": 1, "extra": []any{1}}, row{"id": 2, "extra": row{"a": "b"}}},
		says: `row 1: table "%s" has no column "extra"`, column: "extra", kind: "jsonb",
		evolved: "1,nil,nil,nil,[1]|2,nil,nil,nil,{\"a\":\"b\"}", value: "1,nil,nil,nil|2,nil,nil,nil", values: 2, lines: 2,
	},
	{
		name: "another type", rows: []any{row{"id": 1, "n": "five", "word": "a", "flag": true}, row{"id": 2, "n": 6, "flag": "maybe"}, row{"id": 3, "n": 7}},
		says: `and its column is of type`, evolved: `and its column is of type`,
		value: "1,nil,a,true|2,6,nil,nil|3,7,nil,nil", row: "3,7,nil,nil", values: 2, lines: 2,
	},
}

const driftTable = "id bigint, n integer, word varchar(5), flag boolean"

// schemasDrift makes every case with every contract.
func schemasDrift(s *TableTest) {
	for i := range drifts {
		drift := &drifts[i]
		for _, contract := range []string{"freeze", "evolve", "discard_value", "discard_row"} {
			s.t.Run(drift.name+"/"+contract, func(t *testing.T) {
				own := Tables{s.db}.Test(t)
				own.Create(driftTable)
				drift.check(own, contract)
			})
		}
	}
}

func (d *drift) check(s *TableTest, contract string) {
	lenient := d.lenient && s.db.Name == "sqlite"
	in := s.WriteInput(row{"schema_contract": contract}, d.rows...)
	made := s.planAndApply(in)
	result, err := s.db.MakeAttempt(s.t, in)
	made(err)
	want, leftOut := d.evolved, interpreter.RowCounts{}
	switch contract {
	case "freeze":
		want = d.says
		if want != "" && !lenient {
			break
		}
		require.NoError(s, err)
		require.Nil(s, result.Meta.LeftOut)
		return
	case "discard_value":
		want, leftOut.DiscardedValues = d.value, d.values
	case "discard_row":
		want, leftOut.DiscardedRows = d.row, d.lines
	}
	if d.lenient && s.db.Name == "sqlite" && d.name == "wider" && contract != "evolve" {
		want, leftOut = d.evolved, interpreter.RowCounts{} // an integer of SQLite has 64 bits
	}
	if strings.Contains(want, "%s") || want == d.says || contract == "freeze" {
		if lenient {
			require.NoError(s, err)
			return
		}
		require.Error(s, err)
		if strings.Contains(want, "%s") {
			want = fmt.Sprintf(want, s.Table)
		}
		object := ErrorObject(s.t, err)
		require.Contains(s, object.Message, want)
		require.Contains(s, object.Message, "row ")
		require.Equal(s, interpreter.ClassFinal, object.Class)
		require.Empty(s, s.tableLines())
		return
	}
	require.NoError(s, err)
	require.Equal(s, want, s.tableLines())
	require.Equal(s, &leftOut, result.Meta.LeftOut)
	if contract == "evolve" && d.kind != "" && s.db.Name == "postgres" {
		require.Equal(s, d.kind, s.typeOf(d.column))
	}
	again, err := s.db.MakeAttempt(s.t, in)
	require.NoError(s, err, "delivered twice")
	require.Equal(s, result, again)
	require.Equal(s, want, s.tableLines())
}

// tableLines returns the rows of the table in the order of their ids, with the columns in their order.
func (s *TableTest) tableLines() string {
	s.Helper()
	var lines []string
	for _, one := range s.Query("SELECT * FROM "+s.Table+" ORDER BY id", nil).([]any) {
		cells := lists.Map(s.columnNames(), func(column string) string { return cellOf(one.(row)[column], column) })
		lines = append(lines, strings.Join(cells, ","))
	}
	return strings.Join(lines, "|")
}

func cellOf(value any, column string) string {
	switch value := value.(type) {
	case nil:
		return "nil"
	case []any, map[string]any:
		return strings.ReplaceAll(strings.ReplaceAll(fmt.Sprintf("%#v", Value(value).Data), "map[string]interface {}", ""), "[]interface {}{1}", "[1]")
	case int:
		if column == "flag" { // SQLite has no other booleans
			return fmt.Sprint(value == 1)
		}
	}
	return fmt.Sprint(value)
}

// columnNames are those of the table in their order.
func (s *TableTest) columnNames() (names []string) {
	s.Helper()
	query := "SELECT name FROM pragma_table_info('" + s.Table + "')"
	if s.db.Name == "postgres" {
		query = "SELECT attname::text AS name FROM pg_attribute WHERE attrelid = to_regclass('" + s.Table + "') AND attnum > 0 ORDER BY attnum"
	}
	for _, column := range s.Query(query, nil).([]any) {
		names = append(names, column.(row)["name"].(string))
	}
	return names
}

// typeOf returns the type of a column.
func (s *TableTest) typeOf(column string) string {
	s.Helper()
	query := "SELECT lower(type) AS type FROM pragma_table_info('" + s.Table + "') WHERE name = {{ name }}"
	if s.db.Name == "postgres" {
		query = "SELECT format_type(atttypid, atttypmod) AS type FROM pg_attribute WHERE attrelid = to_regclass('" + s.Table + "') AND attname = {{ name }}"
	}
	return s.Query(query, row{"name": column}).([]any)[0].(row)["type"].(string)
}

// tableIsMade: types follow from the rows, never from nil, and no text is a date.
func tableIsMade(s *TableTest) {
	long := "123456789012345678901234567890"
	rows := []any{
		row{"id": 1, "whole": nil, "mixed": 1, "part": 1, "flag": nil, "at": "2024-01-01T00:00:00Z", "list": nil, "none": nil, "both": 1},
		row{"id": 2, "whole": 7, "mixed": "a", "part": 2.5, "flag": true, "at": nil, "list": []any{1}, "both": true},
	}
	evolve := row{"schema_contract": "evolve", "key": "id", "columns": row{"long": "varchar(40)", "day": "date"}}
	require.Contains(s, s.Refuse(row{"key": "id"}, rows...).Message, "does not exist")
	s.Write(evolve, rows...)
	require.Equal(s, []string{"id", "at", "both", "flag", "list", "mixed", "part", "whole", "day", "long"}, s.columnNames())
	types := map[string]string{
		"id": "bigint", "at": "text", "both": "text", "flag": "boolean", "list": "jsonb", "mixed": "text", "part": "numeric", "whole": "bigint", "day": "date",
		"long": "character varying(40)",
	}
	if s.db.Name == "sqlite" {
		types["list"], types["long"] = "text", "varchar(40)"
	}
	for column, kind := range types {
		require.Equal(s, kind, s.typeOf(column), column)
	}
	require.Contains(s, s.Refuse(evolve, row{"id": 1}).Message, "", "the key is unique")
	require.Contains(s, strings.ToLower(s.Refuse(evolve, row{"id": nil, "whole": 1}).Message), "null", "and not nil")
	s.Write(row{"schema_contract": "evolve", "key": "id", "mode": "upsert"}, row{"id": 2, "whole": 8, "long": long, "none": 1.5})
	require.Equal(s, []any{row{"whole": 8, "long": long, "none": 1.5}}, s.Query("SELECT whole, long, none FROM "+s.Table+" WHERE id = 2", nil))
}

func tableIsNotMade(s *TableTest) {
	const words = "it must be freeze, evolve, discard_value or discard_row"
	for _, test := range []struct {
		contract any
		says     string
	}{
		{"freeze", "does not exist"},
		{row{"columns": "evolve"}, "does not exist"},
		{row{"tables": "discard_rows"}, words},
		{"evolved", words},
		{row{"table": "evolve"}, `schema_contract has no key "table"`},
	} {
		require.Contains(s, s.Refuse(row{"schema_contract": test.contract}, row{"id": 1}).Message, test.says)
	}
	result, err := s.db.MakeAttempt(s.t, s.WriteInput(row{"schema_contract": row{"tables": "discard_value"}}, row{"id": 1}, row{"id": 2}))
	require.NoError(s, err)
	require.Equal(s, &interpreter.RowCounts{DiscardedRows: 2}, result.Meta.LeftOut)
	require.Empty(s, s.columnNames())
	for says, rows := range map[string]row{
		"no row has a value for it": {"other": 1}, "PostgreSQL keeps 63": {"id": 1, strings.Repeat("ä", 32): 1}, "SQLite cannot distinguish it": {"id": 1, "ID": 2},
		"cannot be used": {"id": 1},
	} {
		if strings.HasPrefix(says, "SQLite") && s.db.Name != "sqlite" || strings.HasPrefix(says, "PostgreSQL") && s.db.Name != "postgres" {
			continue
		}
		fields := row{"schema_contract": "evolve", "key": "id"}
		if says == "cannot be used" {
			fields["columns"] = row{"id": "bigint); DROP TABLE x; --"}
		}
		require.Contains(s, s.Refuse(fields, rows).Message, says)
	}
	require.Empty(s, s.columnNames())
}

// namesStay: what differs in letter case is another column where the database says so.
func namesStay(s *TableTest) {
	s.Create(`id bigint, "Name" text`)
	evolve := row{"schema_contract": "evolve"}
	odd := `odd "name" – ünï; DROP`
	s.Write(evolve, row{"id": 1, odd: 1})
	require.Contains(s, s.columnNames(), odd)
	s.Write(evolve, row{"id": 1, "ä": 1, "Ä": 2})
	require.Subset(s, s.columnNames(), []string{"ä", "Ä"}, "SQLite distinguishes them too")
	if s.db.Name == "sqlite" {
		require.Contains(s, s.Refuse(evolve, row{"id": 1, "name": 1}).Message, `SQLite cannot distinguish it from "Name"`)
		return
	}
	s.Write(evolve, row{"id": 1, "name": 1})
	require.Contains(s, s.Refuse(evolve, row{"id": 1, strings.Repeat("n", 64): 1}).Message, "its name has 64 bytes, and PostgreSQL keeps 63")
	s.Write(evolve, row{"id": 1, strings.Repeat("n", 63): 1})
}

// emptyNames: a value without the name of a column is no value that may be left out in silence.
func emptyNames(s *TableTest) {
	for contract, says := range map[string]string{"freeze": `row 2: table "` + s.Table + `" has no column ""`, "evolve": "it is not a name"} {
		if contract == "freeze" {
			s.Create("id bigint PRIMARY KEY")
		}
		for _, mode := range []string{"insert", "upsert"} {
			fields := row{"schema_contract": contract, "mode": mode, "key": "id"}
			require.Contains(s, s.Refuse(fields, row{"id": 1}, row{"id": 2, "": 1}).Message, says)
		}
		s.Query("DROP TABLE IF EXISTS "+s.Table, nil)
	}
	s.Create("id bigint")
	result, err := s.db.MakeAttempt(s.t, s.WriteInput(row{"schema_contract": "discard_value"}, row{"id": 1}, row{"id": 2, "": 1}))
	require.NoError(s, err)
	require.Equal(s, &interpreter.RowCounts{DiscardedValues: 1}, result.Meta.LeftOut)
}

// longNames: PostgreSQL would cut the name of a table, and write to another one.
func longNames(s *TableTest) {
	const longest = 63
	other := strings.Repeat("t", longest)
	s.Query("CREATE TABLE "+other+" (id bigint)", nil)
	s.Create("id bigint CHECK (id > 0)")
	for _, fields := range []row{
		{"table": other + "t"},
		{"table": other + "t", "mode": "upsert", "key": "id"},
		{"table": other + "t", "schema_contract": "evolve"},
		{"rejected": row{"table": other + "t"}},
	} {
		in := s.WriteInput(fields, row{"id": -1})
		_, err := s.db.MakeAttempt(s.t, in)
		if s.db.Name == "postgres" {
			require.Contains(s, ErrorObject(s.t, err).Message, "its name has 64 bytes, and PostgreSQL keeps 63", "%v", fields)
		}
	}
	require.Empty(s, s.Query("SELECT * FROM "+other, nil))
	s.Query("DROP TABLE "+other, nil)
}

// generatedColumns: what the database makes itself is not written, and not made again.
func generatedColumns(s *TableTest) {
	s.Create("id bigint PRIMARY KEY, twice bigint GENERATED ALWAYS AS (id * 2) STORED, n integer")
	for _, contract := range []string{"freeze", "evolve", "discard_value", "discard_row"} {
		object := s.Refuse(row{"schema_contract": contract}, row{"id": 1, "twice": 2})
		require.Contains(s, object.Message, "generated column", contract)
		require.Contains(s, object.Message, "twice", contract)
		require.Equal(s, interpreter.ClassFinal, object.Class)
	}
	s.Write(row{"schema_contract": "evolve"}, row{"id": 1, "n": 3, "more": 1})
	require.Equal(s, []string{`{"id":1,"twice":2}`}, s.ContentLines("id, twice"))
}

// changesThatFail: a change that the database refuses is shown beside its error.
func changesThatFail(s *TableTest) {
	evolve := row{"schema_contract": "evolve"}
	s.Create("id bigint, n integer")
	s.Query("CREATE VIEW "+s.Table+"_view AS SELECT n FROM "+s.Table, nil)
	in := s.WriteInput(evolve, row{"n": 1, "more": 1})
	in.Fields["table"] = expression.Of(s.Table + "_view")
	_, err := s.db.MakeAttempt(s.t, in)
	object := ErrorObject(s.t, err)
	require.Contains(s, object.Message, `changing table "`+s.Table+`_view" by ALTER TABLE "`+s.Table+`_view" ADD COLUMN`)
	require.Equal(s, interpreter.ClassFinal, object.Class)
	if s.db.Name == "postgres" {
		require.Contains(s, s.Refuse(evolve, row{"n": 5000000000}).Message,
			`by ALTER TABLE "`+s.Table+`" ALTER COLUMN "n" TYPE bigint: cannot alter type of a column used by a view`)
	}
	require.Equal(s, []string{"id", "n"}, s.columnNames())
}

// longNumbers: no digit is lost in silence.
func longNumbers(s *TableTest) {
	long, double := json.Number("1234567890123456789012345678901234567890"), json.Number("10000000000000000000000")
	evolve := row{"schema_contract": "evolve"}
	s.Write(evolve, row{"id": 1, "n": 9223372036854775807, "word": long})
	s.Write(evolve, row{"id": 2, "n": -9223372036854775808, "word": 1}, row{"id": 3, "n": double})
	if s.db.Name == "postgres" {
		s.Write(evolve, row{"id": 4, "n": long})
		require.Equal(s, []any{row{"n": long}}, s.Query("SELECT n FROM "+s.Table+" WHERE id = 4", nil))
		return
	}
	for _, contract := range []string{"evolve", "freeze"} {
		require.Contains(s, s.Refuse(row{"schema_contract": contract}, row{"id": 4, "n": 4}, row{"id": 5, "n": long}).Message,
			`row 2, column "n": SQLite would round the number `+long.String()+" in a column of type bigint; declare it as text")
	}
	for contract, want := range map[string]interpreter.RowCounts{
		"discard_value": {DiscardedValues: 1}, "discard_row": {DiscardedRows: 1}, "freeze": {RejectedRows: 1},
	} {
		result, err := s.db.MakeAttempt(s.t, s.WriteInput(row{"schema_contract": contract, "rejected": row{"table": s.Table + "_aside"}}, row{"id": 6, "n": 6}, row{"id": 7, "n": long}))
		require.NoError(s, err)
		require.Equal(s, &want, result.Meta.LeftOut, contract)
	}
	require.Equal(s, []any{row{"row": 2, "column": "n", "value": `{"id":7,"n":` + long.String() + "}"}},
		s.Query(`SELECT "row", "column", value FROM `+s.Table+"_aside", nil))
	require.Equal(s, []any{row{"n": 9223372036854775807, "word": long.String()}}, s.Query("SELECT n, word FROM "+s.Table+" WHERE id = 1", nil))
}

// columnsWiden: what widens loses nothing, and nothing else does.
func columnsWiden(s *TableTest) {
	if s.db.Name == "sqlite" {
		s.t.Skip("SQLite keeps any value")
	}
	for i, test := range []struct {
		from  string
		value any
		to    string // "" is an error
	}{
		{"smallint", 7, "smallint"},
		{"smallint", -40000, "integer"},
		{"smallint", 3000000000, "bigint"},
		{"smallint", 1.5, "numeric"},
		{"integer", "3000000000", "bigint"},
		{"bigint", json.Number("12345678901234567890"), "numeric"},
		{"integer", "1.5", "numeric"},
		{"integer", 2147483647, "integer"},
		{"real", 0.5, "real"},
		{"real", 1e300, "double precision"},
		{"real", 3.141592653589793, "double precision"},
		{"varchar(3)", "abc", "character varying(3)"},
		{"varchar(3)", "äöüß", "text"},
		{"varchar(3)", "abcd", "text"},
		{"integer", true, ""},
		{"integer", "abc", ""},
		{"numeric(4, 2)", 12345, ""},
		{"date", "never", ""},
		{"char(2)", "abc", ""},
		{"boolean", 2, ""},
	} {
		table := fmt.Sprintf("%s_%d", s.Table, i)
		s.Query("CREATE TABLE "+table+" (v "+test.from+")", nil)
		in := s.WriteInput(row{"table": table, "schema_contract": row{"data_type": "evolve"}}, row{"v": nil}, row{"v": test.value})
		made := s.planAndApply(in)
		_, err := s.db.MakeAttempt(s.t, in)
		made(err)
		own := *s
		own.Table = table
		if test.to == "" {
			require.Error(s, err, "%v", test)
			require.NotEqual(s, "numeric", own.typeOf("v"))
			continue
		}
		require.NoError(s, err, "%v", test)
		require.Equal(s, test.to, own.typeOf("v"), "%v", test)
	}
}

// evolveTogether: writes that change a table at once change it once, and all are written.
func evolveTogether(s *TableTest) {
	evolve := row{"schema_contract": "evolve", "key": "id", "mode": "upsert"}
	var (
		group errgroup.Group
		wrote atomic.Int32
	)
	inputs := make([]interpreter.ToolInput, together)
	for i := range inputs {
		inputs[i] = s.WriteInput(evolve, row{"id": i, "shared": i, fmt.Sprint("own", i%4): i, "word": "long enough"})
	}
	for _, in := range inputs {
		group.Go(func() error {
			_, err := s.db.MakeAttempt(s.t, in)
			wrote.Add(1)
			return err
		})
	}
	require.NoError(s, group.Wait())
	require.Len(s, s.ContentLines("id, shared"), together)
	require.Len(s, s.columnNames(), 7)
}

// discardsByDatabase: with schema_contract: discard_value, the database decides whether a value fits its column.
func discardsByDatabase(s *TableTest) {
	if s.db.Name == "sqlite" {
		s.t.Skip("SQLite has no such types")
	}
	s.Create("id bigint PRIMARY KEY, day date, amount numeric(4, 2), short varchar(2), tags text[], doc jsonb, word text")
	rows := []any{
		row{"id": 1, "day": "2024-02-30", "amount": 1.25, "short": "ab", "tags": []any{"a"}, "doc": "text", "word": row{"a": 1}},
		row{"id": 2, "day": "2024-02-29", "amount": 123.4, "short": "abc", "tags": "no list", "doc": 5, "word": "a\x00b"},
		row{"id": 3, "day": "infinity", "amount": "7", "short": nil, "tags": nil, "doc": true, "word": 5},
		row{"id": "x", "day": nil},
	}
	result, err := s.db.MakeAttempt(s.t, s.WriteInput(row{"schema_contract": "discard_value", "mode": "upsert", "key": "id"}, rows...))
	require.NoError(s, err)
	require.Equal(s, &interpreter.RowCounts{DiscardedValues: 5, DiscardedRows: 1}, result.Meta.LeftOut, "a row cannot be without its key")
	require.Equal(s, []any{
		row{"id": 1, "day": nil, "amount": 1.25, "short": "ab", "tags": []any{"a"}, "doc": "text", "word": `{"a":1}`},
		row{"id": 2, "day": "2024-02-29", "amount": nil, "short": nil, "tags": nil, "doc": 5, "word": nil},
		row{"id": 3, "day": "infinity", "amount": 7, "short": nil, "tags": nil, "doc": true, "word": "5"},
	}, s.Query("SELECT * FROM "+s.Table+" ORDER BY id", nil))
	require.Nil(s, rows[0].(row)["no"], "the rows are as they were")
	require.Equal(s, "2024-02-30", rows[0].(row)["day"])
}
