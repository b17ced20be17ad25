package statement

import (
	"slices"
	"strings"
)

// plainVerbs are the verbs of statements that may be plain. Statements into which a WITH may lead also leave
// nothing in the session.
var plainVerbs = wordSet("select", "insert", "update", "delete", "values", "with")

// openers are words before a parenthesis that PostgreSQL does not read as names of functions: reserved words, names
// of types, and words of its grammar.
var openers = wordSet("all", "and", "any", "array", "as", "between", "case", "cast", "distinct", "else", "except", "exists",
	"from", "group", "having", "in", "intersect", "lateral", "limit", "not", "offset", "on", "only", "or", "returning",
	"row", "select", "some", "symmetric", "then", "union", "using", "values", "variadic", "when", "where",
	"coalesce", "extract", "greatest", "grouping", "least", "nullif", "overlay", "position", "substring", "trim",
	"bit", "char", "character", "decimal", "float", "numeric", "time", "timestamp", "varchar",
	"current_time", "current_timestamp", "localtime", "localtimestamp")

// harmless are functions of PostgreSQL that neither change nor read the session.
var harmless = wordSet("count", "sum", "min", "max", "avg", "array_agg", "string_agg", "bool_and", "bool_or", "every",
	"json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg",
	"row_number", "rank", "dense_rank", "lag", "lead", "first_value", "last_value", "ntile",
	"lower", "upper", "initcap", "length", "char_length", "octet_length", "btrim", "ltrim", "rtrim", "lpad", "rpad",
	"left", "right", "repeat", "replace", "reverse", "split_part", "strpos", "starts_with", "substr", "translate",
	"concat", "concat_ws", "format", "md5", "encode", "decode", "regexp_match", "regexp_replace", "quote_literal",
	"abs", "ceil", "ceiling", "floor", "mod", "power", "round", "sign", "sqrt", "trunc", "random", "gen_random_uuid",
	"now", "age", "clock_timestamp", "statement_timestamp", "transaction_timestamp", "date_part", "date_trunc",
	"make_date", "make_interval", "to_char", "to_date", "to_number", "to_timestamp",
	"array_length", "array_position", "array_to_string", "cardinality", "string_to_array", "unnest", "generate_series",
	"to_json", "to_jsonb", "row_to_json", "json_build_array", "jsonb_build_array", "json_build_object", "jsonb_build_object",
	"json_array_elements", "jsonb_array_elements", "json_array_elements_text", "jsonb_array_elements_text",
	"json_array_length", "jsonb_array_length", "json_extract_path_text", "jsonb_extract_path_text", "jsonb_set",
	"json_to_recordset", "jsonb_to_recordset", "json_populate_recordset", "jsonb_populate_recordset")

// isPlain reports whether a PostgreSQL statement only reads and writes rows: it changes nothing in its session,
// except through definitions in the database such as triggers. It returns false if that is uncertain.
// The server joins consecutive literals, with the escapes of the first.
func (p *parser) isPlain() bool {
	if p.dialect != Postgres || !plainVerbs[p.verb] {
		return false
	}
	for i, t := range p.tokens {
		switch {
		case t.kind == placeholderToken,
			t.kind == numberToken && strings.Contains(t.text, "$"),
			p.isText(i) && p.isText(i-1),
			t.namesCatalog(),
			p.isAny(i, "into") && !p.isAny(i-1, "insert"),
			p.isAny(i, "(") && !p.opensPlainly(i):
			return false
		}
	}
	return true
}

// isText reports whether token i is a literal, or the template that replaced one.
func (p *parser) isText(i int) bool {
	return i >= 0 && (p.tokens[i].kind == literalToken || p.tokens[i].param != nil && !p.tokens[i].param.bare)
}

// namesCatalog reports whether the token may be the name of a system table: an UPDATE of pg_settings is a SET. A
// name with escapes may be any.
func (t token) namesCatalog() bool {
	switch t.kind {
	case wordToken:
		return strings.HasPrefix(t.text, "pg_")
	case quotedToken:
		return strings.HasPrefix(t.text, `"pg_`) || !strings.HasPrefix(t.text, `"`)
	}
	return false
}

// opensPlainly reports whether the parenthesis at i opens the arguments of a harmless function, or belongs to no
// function.
func (p *parser) opensPlainly(i int) bool {
	if i == 0 {
		return true
	}
	switch before := p.tokens[i-1]; before.kind {
	case operatorToken:
		return true
	case punctToken:
		return p.isAny(i-1, "(", ",", "[")
	case quotedToken:
		return p.listsColumns(i)
	case wordToken:
		// The server folds only ASCII: the Kelvin sign is not a k.
		known := (openers[before.text] || harmless[before.text]) && p.isASCII(i-1) && !p.isAny(i-2, ".")
		return known || p.listsColumns(i) || p.opensClause(i)
	}
	return false
}

// isASCII reports whether token i consists of ASCII characters.
func (p *parser) isASCII(i int) bool {
	word := p.source[p.tokens[i].start:p.tokens[i].end]
	return !slices.ContainsFunc(word, func(r rune) bool { return r >= 0x80 })
}

// listsColumns reports whether the parenthesis at i follows a name that is defined or written to: INSERT INTO t
// (…), WITH t (…), AS t (…), or a type.
func (p *parser) listsColumns(i int) bool {
	if i > 1 && p.tokens[i-2].kind == operatorToken && p.tokens[i-2].text == "::" ||
		p.isAny(i-2, "as", "with") || p.isAny(i-2, "recursive") && p.isAny(i-3, "with") {
		return true
	}
	name := i - 1
	for p.isAny(name-1, ".") {
		name -= 2
	}
	return p.isAny(name-1, "into")
}

// opensClause reports whether the parenthesis at i follows a combination of keywords that is not a function: ORDER
// BY (…), count(*) FILTER (…), ON CONFLICT (…) DO. What follows the last one distinguishes it from the condition of
// a JOIN.
func (p *parser) opensClause(i int) bool {
	switch {
	case p.isAny(i-1, "by"):
		return p.isAny(i-2, "group", "order", "partition")
	case p.isAny(i-1, "over", "filter"):
		return p.isAny(i-2, ")")
	case !p.isAny(i-1, "conflict") || !p.isAny(i-2, "on"):
		return false
	}
	for i++; i < len(p.tokens) && !p.isAny(i, "(", ")"); i++ {
	}
	return p.isAny(i, ")") && p.isAny(i+1, "do")
}
