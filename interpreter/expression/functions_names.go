package expression

// filterAliases are the names that Jinja has for functions of the language.
var filterAliases = map[string]string{
	"length":    "len",
	"d":         "default",
	"tojson":    "toJSON",
	"to_json":   "toJSON",
	"fromjson":  "fromJSON",
	"from_json": "fromJSON",
	"b64encode": "toBase64",
	"b64decode": "fromBase64",
	"unique":    "uniq",
	"items":     "toPairs",
	"dictsort":  "toPairs",
}

// refused are functions and filters known elsewhere, each with what to write
// instead.
var refused = map[string]string{
	// of Jinja
	"selectattr": "write filter(xs, .name), or filter(xs, .name == value)",
	"rejectattr": "write filter(xs, not .name), or filter(xs, .name != value)",
	"select":     "write filter(xs, # > 1) with the condition",
	"reject":     "write filter(xs, not (# > 1)) with the condition",
	"groupby":    "write groupBy(xs, .name); it gives a map of lists",
	"list":       "a list needs no conversion; keys(x), values(x) and toPairs(x) make one of a map, split(x, \"\") of a string",
	"bool":       "write x == true, or not not x for the truth of x",
	"ternary":    "write a if c else b",
	"attr":       `write x.name, or x["name"]`,
	"capitalize": "write upper(x[0]) ~ lower(x[1:])",
	"title":      "write upper(x[0]) ~ x[1:] for each word",
	"truncate":   "write x[:100]",
	"format":     `write "text " ~ x`,
	"wordcount":  `write len(filter(split(x, " "), # != ""))`,
	"urlencode":  "the params of an http step and the values in its url are encoded by themselves",
	"raw":        "it belongs at the end of a template in a url, as in {{ path | raw }}",
	"escape":     "nothing is escaped in rendered text; SQL takes values as parameters",
	"e":          "nothing is escaped in rendered text; SQL takes values as parameters",
	"safe":       "nothing is escaped in rendered text, so nothing has to be marked safe",
	"range":      "write 0..n-1; both ends are included",
	"random":     "an expression gives the same result on every replay; draw it in a tool",
	"lookup":     "write the name itself, or x[key] for a computed key",

	// of Airflow, n8n and SQL
	"strftime":   `write format_time(t, "2006-01-02")`,
	"date_trunc": `write start_of(t, "day")`,
	"trunc":      `write start_of(t, "day"), or floor(x) of a number`,
	"timedelta":  `write add_time(t, "-1d")`,
	"days_ago":   `write add_time(now(), "-7d")`,
	"date_add":   `write add_time(t, "1d")`,
	"dateAdd":    `write add_time(t, "1d")`,
	"date_range": `write time_range(from, to, "1d")`,
	"formatDate": `write format_time(t, "2006-01-02")`,
	"today":      `write start_of(now(), "day")`,

	// of expr
	"timezone":   "times are in UTC; format_time(t, layout, zone) shows them in a zone, and add_time and start_of count in one",
	"repeat":     `write join(map(1..n, "text"))`,
	"splitAfter": "write map(split(x, separator), # ~ separator)",
	"bitnot":     "write -x - 1",
	"bitnand":    "write -bitand(a, b) - 1",
	"bitshl":     "write x * 2 ** n",
	"bitshr":     "write floor(x / 2 ** n)",
	"bitushr":    "write floor(x / 2 ** n) for a positive x",
}
