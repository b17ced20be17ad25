package statement

func wordSet(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, word := range words {
		m[word] = true
	}
	return m
}

// beforeValue are the keywords that a value may directly follow.
var beforeValue = wordSet("select", "distinct", "all", "any", "some", "where", "and", "or", "not", "on", "having",
	"when", "then", "else", "case", "between", "symmetric", "asymmetric", "like", "ilike", "to", "escape",
	"returning", "limit", "offset", "first", "next", "rows", "range", "groups", "zone", "variadic")

// beforeValueSQLite are further such keywords of SQLite.
var beforeValueSQLite = wordSet("is", "glob", "regexp", "match")

// notOperands are words that do not end an operand.
var notOperands = wordSet("select", "distinct", "all", "any", "some", "where", "and", "or", "not", "on", "having",
	"when", "then", "else", "case", "between", "symmetric", "asymmetric", "like", "ilike", "to", "escape",
	"returning", "limit", "offset", "first", "next", "rows", "range", "groups", "zone", "variadic",
	"is", "glob", "regexp", "match", "from", "join", "in", "by", "set", "values", "as", "using", "for", "placing", "interval")

// clauses are the keywords that begin a clause. They determine the meaning of the list that follows at the same
// level of parentheses.
var clauses = wordSet("select", "from", "where", "by", "set", "values", "having", "limit", "offset", "returning",
	"on", "using", "into", "window", "union", "intersect", "except", "fetch", "for", "when", "rows", "range", "groups")

// withParams are, by dialect, the verbs of statements that may have parameters.
var withParams = map[Dialect]map[string]bool{
	Postgres: wordSet("select", "insert", "update", "delete", "merge", "with", "values", "explain", "call"),
	SQLite:   wordSet("select", "insert", "update", "delete", "replace", "with", "values", "explain"),
}

// fromInside are functions whose arguments are separated by FROM, FOR, IN or PLACING.
var fromInside = wordSet("extract", "substring", "trim", "overlay", "position")

// insideFrom are the words that separate these arguments, or precede one.
var insideFrom = wordSet("from", "for", "in", "placing", "both", "leading", "trailing")

// types are the types that may precede a literal in PostgreSQL: INTERVAL '…'.
var types = wordSet("interval", "date", "time", "timetz", "timestamp", "timestamptz", "json", "jsonb", "uuid", "inet",
	"cidr", "macaddr", "numeric", "decimal", "real", "float", "float4", "float8", "int", "integer", "int2", "int4",
	"int8", "smallint", "bigint", "bool", "boolean", "text", "varchar", "bytea", "point", "box", "xml", "bit",
	"jsonpath", "money", "tsquery", "tsvector", "daterange", "tsrange", "tstzrange", "int4range", "int8range",
	"numrange", "regclass", "oid")

// intervalFields may follow INTERVAL '…'.
var intervalFields = wordSet("year", "month", "day", "hour", "minute", "second")

// instead says what SQL requires directly after a keyword, and what to write there.
type instead struct{ what, hint string }

const tableHint = "write the table's name; to choose between tables, use one step for each table, with a route to each"

var refusedBehind = map[string]instead{
	"from":      {"a table", tableHint},
	"join":      {"a table", tableHint},
	"into":      {"a table", tableHint},
	"update":    {"a table", tableHint},
	"table":     {"a table", tableHint},
	"only":      {"a table", tableHint},
	"using":     {"a table", tableHint},
	"exists":    {"a query", "write the query, with templates for its values"},
	"by":        {"a column to order or group by", "write the column, or choose one with CASE {{ … }} WHEN 'a' THEN a … END"},
	"set":       {"a column", "write the column's name"},
	"as":        {"a name or a query", "write it"},
	"values":    {"a row", "write VALUES ({{ a }}, {{ b }}); many rows are written with table instead of statement"},
	"in":        {"a list of values", "write = ANY({{ ids }})"},
	"is":        {"the operand of IS", "write IS NOT DISTINCT FROM {{ … }}"},
	"interval":  {"the text of an interval", "write INTERVAL '{{ n }} days'"},
	"asc":       {"a sort direction", "write the statement once per direction"},
	"collate":   {"a collation", "write its name"},
	"default":   {"a default", "write the value"},
	"row":       {"a row", "write ROW({{ a }}, {{ b }})"},
	"array":     {"an array", "write {{ xs }} alone, or ARRAY[{{ a }}, {{ b }}]"},
	"recursive": {"a name", "write it"},
}

const sqliteInHint = "write IN (SELECT value FROM json_each({{ ids }}))"

// verbHints say how to achieve the effect of a statement that cannot have parameters.
var verbHints = map[string]string{
	"set":    "write SELECT set_config('name', {{ value }}, true); it applies only to its own statement, because every statement is its own session",
	"notify": "write SELECT pg_notify('channel', {{ payload }})",
	"do":     "write SELECT, INSERT, UPDATE or DELETE, or SELECT a function that accepts the value",
	"create": "among DDL statements, only CREATE TABLE … AS SELECT accepts values",
	"copy":   "write INSERT, or table mode",
}
