package expression

import (
	"fmt"
	"maps"
	"slices"
)

// predicateKind is whether a function takes an expression that is evaluated once per element.
type predicateKind int

const (
	noPredicate    predicateKind = iota
	mayPredicate                 // sum(xs) and sum(xs, .price): call handles the form without a predicate
	needsPredicate               // filter(xs, # > 1): call is nil, the compiler builds the loop
)

// function is a function of the language. The table is read-only.
type function struct {
	name      string
	min, max  int    // number of arguments, including the predicate; max -1 means any number
	signature string // for the documentation and for messages about the number of arguments
	doc       string // one sentence
	predicate predicateKind

	// call gets between min and max canonical values and returns a canonical value. It charges b before it works.
	call func(b *Budget, args []any) (any, error)

	// written has the checks of arguments that are literal texts, by argument index. The text that a check refuses
	// is a problem when the playbook is read, before any run.
	written map[int]func(text string) error
}

// FunctionDoc describes a function for the documentation of the language.
type FunctionDoc struct {
	Name      string
	Signature string
	Doc       string
}

// functions holds every function by its canonical name.
var functions = functionTable(predicateFunctions, valueFunctions, textFunctions, listFunctions, mapFunctions, rowFunctions,
	numberFunctions, timeFunctions, calendarFunctions, jsonFunctions)

// functionTable returns the functions by name. Two functions with the same name are a programming error, which ends
// the program at its start.
func functionTable(groups ...[]function) map[string]*function {
	all := map[string]*function{}
	for _, group := range groups {
		for i := range group {
			name := group[i].name
			if all[name] != nil {
				panic(fmt.Sprintf("two functions are called %s: %s and %s", name, all[name].signature, group[i].signature))
			}
			all[name] = &group[i]
		}
	}
	return all
}

// functionNames returns the names of all functions, sorted.
func functionNames() []string {
	return slices.Sorted(maps.Keys(functions))
}

// IsFunction reports whether the language has a function with this name.
func IsFunction(name string) bool {
	_, found := functions[name]
	return found
}

// FunctionDocs returns the documentation of each function, sorted by name.
func FunctionDocs() []FunctionDoc {
	docs := make([]FunctionDoc, 0, len(functions))
	for _, name := range functionNames() {
		f := functions[name]
		docs = append(docs, FunctionDoc{Name: f.name, Signature: f.signature, Doc: f.doc})
	}
	return docs
}

// filterAliases maps names of Jinja filters to the functions of the language.
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

// refused has functions and filters of other systems, each with a hint what to write instead.
var refused = map[string]string{
	// From Jinja.
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
	"urlencode":  "the params of an http step and the values in its url are encoded automatically",
	"raw":        "use it at the end of a template in a url, as in {{ path | raw }}",
	"escape":     "nothing is escaped in rendered text; SQL takes values as parameters",
	"e":          "nothing is escaped in rendered text; SQL takes values as parameters",
	"safe":       "nothing is escaped in rendered text, so there is no need to mark it safe",
	"range":      "write 0..n-1; both ends are included",
	"random":     "an expression must give the same result on every replay; use a tool for random values",
	"lookup":     "write the name itself, or x[key] for a computed key",
	"batch":      "write chunk(xs, n)",
	"combine":    "write merge(a, b)",
	"json_query": `write pluck(x, "items.*.id")`,
	"strptime":   `write date(text, "02.01.2006")`,

	// From Airbyte's low-code connectors.
	"now_utc":                  "write now(), or format_time(now(), \"2006-01-02\") for another form",
	"today_utc":                "write format_time(now(), \"2006-01-02\"), or start_of(now(), \"day\") for a time",
	"today_with_timezone":      `write format_time(now(), "2006-01-02", "Europe/Berlin")`,
	"day_delta":                `write add_time(now(), "-1d"); format_time(t, "2006-01-02") gives it another form`,
	"format_datetime":          `write format_time(t, "2006-01-02"); a layout shows how 2006-01-02 15:04:05 is written`,
	"str_to_datetime":          `times are text; write date(text), or date(text, "02.01.2006") with the layout of the text`,
	"timestamp":                "write unix(t)",
	"camel_case_to_snake_case": "write snake_case(text)",
	"sanitize_url":             "the params of an http step and the values in its url are encoded automatically",
	"generate_uuid":            "an expression must give the same result on every replay; operation_key is unique for each request",
	"base64encode":             "write toBase64(text)",
	"base64decode":             "write fromBase64(text)",
	"regex_search":             `write text matches "^a+$" for a condition, or split(text, separator)[0] for a part`,
	"MinMaxDatetime":           "write latest(a, b) or earliest(a, b)",

	// From Airflow, n8n and SQL.
	"strftime":   `write format_time(t, "2006-01-02"), or unix(t) for %s`,
	"date_trunc": `write start_of(t, "day")`,
	"trunc":      `write start_of(t, "day"), or floor(x) of a number`,
	"timedelta":  `write add_time(t, "-1d")`,
	"days_ago":   `write add_time(now(), "-7d")`,
	"date_add":   `write add_time(t, "1d")`,
	"dateAdd":    `write add_time(t, "1d")`,
	"date_range": `write time_range(from, to, "1d")`,
	"formatDate": `write format_time(t, "2006-01-02")`,
	"today":      `write start_of(now(), "day")`,
	"utcnow":     "write now()",
	"datetime":   "times are text; write now(), or date(text) for a time in another form",
	"jmespath":   `write pluck(x, "items.*.id")`,
	"assign":     "write merge(a, b)",
	"without":    `write omit(map, ["name"]), or filter(xs, # != value)`,
	"greatest":   "write max(a, b), or latest(a, b) of times",
	"least":      "write min(a, b), or earliest(a, b) of times",

	// From expr.
	"timezone":   "times are in UTC; format_time(t, layout, zone) shows them in a zone, and add_time and start_of count in one",
	"repeat":     `write join(map(1..n, "text"))`,
	"splitAfter": "write map(split(x, separator), # ~ separator)",
	"bitnot":     "write -x - 1",
	"bitnand":    "write -bitand(a, b) - 1",
	"bitshl":     "write x * 2 ** n",
	"bitshr":     "write floor(x / 2 ** n)",
	"bitushr":    "write floor(x / 2 ** n) for a positive x",
}

// argumentError is the error of an argument of the wrong type: what the function needs, and what it got.
func argumentError(name, wants string, got any) error {
	return fmt.Errorf("%s needs %s, not %s", name, wants, describeValue(got))
}

// describeValue returns the type of a value for a message, and a short text itself.
func describeValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case string:
		return fmt.Sprintf("the string %q", shortText(v))
	default:
		return "a " + TypeName(v)
	}
}
