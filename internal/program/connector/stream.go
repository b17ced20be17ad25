package connector

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"reprise/internal/program/connector/jinja"
	"reprise/internal/program/scaffold"
	"reprise/interpreter/expression"
)

// The keys of a step at which gaps are noted.
const (
	atRequest     = "url"
	atLoop        = "loop"
	atIncremental = "incremental"
	atRows        = "rows"
	atRetry       = "retry"
	atSink        = "sink"
)

// step is a step that reads one stream.
type step struct {
	stream string // its name in the manifest
	name   string
	table  string
	of     component
	// full marks the separate reading of a parent from its start, which keeps no state.
	full bool
	// written is set if the rows are written to a table, read that other steps need them.
	written, read bool

	needed          []string // fields of its rows, by templates and those below
	base            string   // of the address, where it is constant
	auth            string
	method          string
	url             any
	params, headers map[string]any
	body            any
	form, args      map[string]any
	format          string
	rateLimit       *pair
	loop            *loop
	parents         []*step // whose rows are its partitions
	incremental     *incremental
	path            []string // to the rows, of the response
	hasRows         bool
	where           *code
	failures        []policy
	paging          *paging
	fields          []pair
	exclude         []string
	shape           string // expression over the rows, "" for none
	key             []string
	mode            string // of its sink, "" for the usual one
	nested          string // what becomes of lists in the rows, "" for the usual
	contract        any    // of the schema, nil for evolve
	columns         []pair
	gaps            map[string][]Gap
	added           map[string]addedField
	use             string   // the list of policies that it shares, "" for one of its own
	tasks           []string // of code in the connector that finds, keeps or changes rows
	stub            string   // the step in Python for that code, which writes the rows; "" if there is none
}

// addedField is a field added by a transformation, which child steps may need.
type addedField struct {
	text  string
	scope func(into *trace) scope
}

// pair is a key with its value.
type pair struct {
	name  string
	value any
}

// addGap records a part without a counterpart.
func (s *step) addGap(at, component, format string, args ...any) {
	one := Gap{Stream: s.stream, Component: cmp.Or(component, "a component without a type"), Reason: fmt.Sprintf(format, args...)}
	for _, known := range s.gaps[at] {
		if known == one {
			return
		}
	}
	s.gaps[at] = append(s.gaps[at], one)
}

// newStep returns the step that reads a stream; full requests one that reads everything, for its child streams.
func (c *converter) newStep(of component, full bool) *step {
	name := streamName(of)
	id := name
	if full {
		id += "\x00full"
	}
	for n := 0; ; n++ { // streams of one name that differ are others
		known := c.steps[fmt.Sprint(id, n)]
		if known == nil {
			id = fmt.Sprint(id, n)
			break
		}
		if sameStream(known.of, of) {
			return known
		}
	}
	table := scaffold.NameOf(name, "rows")
	s := &step{stream: name, of: of, full: full, table: table, gaps: map[string][]Gap{}, added: map[string]addedField{}, params: map[string]any{}, headers: map[string]any{}}
	if full {
		s.name = c.unusedName("all_"+table, table+"_all")
	} else {
		s.name = c.unusedName(table, "read_"+table, table+"_rows")
	}
	c.steps[id] = s
	c.convertStep(s)
	c.list = append(c.list, s)
	return s
}

// sameStream reports whether two streams make the same requests, ignoring parameters that were passed on only for
// child streams.
func sameStream(a, b component) bool {
	return reflect.DeepEqual(requestOf(a), requestOf(b))
}

func requestOf(stream component) []any {
	requester := stream.childAt("retriever").childAt("requester")
	return []any{requester["url_base"], requester["path"], requester["http_method"], requester["request_body_json"]}
}

// convertStep converts all parts of a step.
func (c *converter) convertStep(s *step) {
	retriever := s.of.childAt("retriever")
	if kind := s.of.kind(); kind != "DeclarativeStream" {
		s.addGap(atRequest, kind, "only streams of type DeclarativeStream are read")
	}
	switch kind := retriever.kind(); kind {
	case "SimpleRetriever":
	case "Custom":
		s.addGap(atRequest, customName(retriever, "CustomRetriever"), "requests are those of a SimpleRetriever")
	default:
		s.addGap(atRequest, kind, "only a SimpleRetriever is read")
	}
	c.convertPartitions(s, retriever)
	if cursor := s.of.childAt("incremental_sync"); cursor != nil {
		c.convertCursor(s, cursor)
	}
	requester := retriever.childAt("requester")
	if requester.kind() == "Custom" {
		s.addGap(atRequest, customName(requester, "CustomRequester"), "requests are those of an HttpRequester")
	}
	c.convertSelector(s, retriever.childAt("record_selector"))
	c.convertRequest(s, retriever, requester)
	c.convertErrors(s, requester)
	c.convertTransformations(s)
	if s.incremental != nil {
		s.incremental.fromAdded(s)
	}
	c.convertSchema(s)
	s.key = c.keyOf(s)
}

// customName returns the name of a custom component with its class.
func customName(of component, kind string) string {
	class := of.text("class_name")
	if class == "" {
		return kind
	}
	return kind + " (" + class[strings.LastIndex(class, ".")+1:] + ")"
}

// keyOf returns the columns of the primary key.
func (c *converter) keyOf(s *step) (key []string) {
	parts, isList := s.of["primary_key"].([]any)
	if !isList {
		parts = []any{s.of["primary_key"]}
	}
	scope := c.stepScope(s, s.of, &trace{})
	for _, part := range parts {
		if nested, isNested := part.([]any); isNested && len(nested) == 1 {
			part = nested[0]
		}
		text, isText := part.(string)
		if value, err := scope.translateValue(text); err == nil && isText {
			text = expression.Text(value)
		}
		switch {
		case part == nil || text == "" && isText:
		case !isText || jinja.HasTemplate(text):
			s.addGap(atSink, "primary_key", "%v is no column", part)
			return nil
		default:
			key = append(key, text)
		}
	}
	return key
}

// stepScope returns the scope of the step's templates.
func (c *converter) stepScope(s *step, of component, into *trace) scope {
	parameters := of.givenParameters()
	out := scope{
		"config": c.configKeys(into, false), optionalConfig: c.configKeys(into, true),
		"parameters": func(keys []any) (code, error) {
			return resolveParameter(c, s, of, parameters, keys, into)
		},
		"options": func(keys []any) (code, error) {
			return resolveParameter(c, s, of, parameters, keys, into)
		},
	}
	out["stream_state"] = func([]any) (code, error) { return constantCode(nil), nil }
	if s.loop != nil {
		for _, name := range []string{"stream_partition", "stream_slice"} {
			out[name] = s.loop.partitionField
		}
	}
	if s.incremental != nil {
		s.incremental.addTo(out, s)
	}
	return out
}

// resolveParameter returns a parameter's value with its templates resolved.
func resolveParameter(c *converter, s *step, of component, parameters map[string]any, keys []any, into *trace) (code, error) {
	value := any(parameters)
	for _, key := range keys {
		name, isText := key.(string)
		if !isText {
			return unsupportedError("a parameter whose name is no constant")
		}
		value = expression.MapMember(value, name)
	}
	text, isText := value.(string)
	if !isText || !jinja.HasTemplate(text) {
		return constantCode(value), nil
	}
	without := component{}
	for key, one := range of {
		without[key] = one
	}
	delete(without, parametersKey)
	return c.stepScope(s, without, into).translateExpression(text)
}

// translateAt translates a component's value in the scope of a step, and records the configuration it reads.
func (c *converter) translateAt(s *step, at string, of component, key string, roots scope) any {
	var into trace
	value, err := c.stepScope(s, of, &into).withRoots(roots).translateValue(of[key])
	if err != nil {
		s.addGap(at, key, "%v", fmt.Errorf("%v: %w", of[key], err))
		return nil
	}
	c.read.mergeTrace(into)
	return value
}

// convertSelector converts where the rows are in a response.
func (c *converter) convertSelector(s *step, selector component) {
	extractor := selector.childAt("extractor")
	keys, isList := extractor["field_path"].([]any)
	if !isList && extractor["field_path"] != nil {
		keys = []any{extractor["field_path"]}
	}
	found := "whole responses are the rows"
	if len(keys) > 0 {
		found = "the rows are those of its field_path"
	}
	switch kind := extractor.kind(); kind {
	case "DpathExtractor", "":
	case "Custom":
		name := customName(extractor, "CustomRecordExtractor")
		s.addStub(name, found, "find the rows as "+name+" does")
	default:
		s.addGap(atRows, kind, "%s", found)
	}
	for _, key := range keys {
		var into trace
		parts, err := c.stepScope(s, extractor, &into).textParts(expression.Text(key))
		if err == nil && !joinTexts(parts).known {
			err = fmt.Errorf("%v is no constant", key)
		}
		if err != nil {
			s.addGap(atRows, "DpathExtractor", "%v", err)
			s.path = nil
			return
		}
		if text := expression.Text(joinTexts(parts).value); text != "" {
			s.path = append(s.path, text)
		}
	}
	s.hasRows = len(s.path) > 0
	filter := selector.childAt("record_filter")
	if filter == nil {
		return
	}
	if filter.kind() == "Custom" {
		name := customName(filter, "CustomRecordFilter")
		s.addStub(name, "no row is left out", "leave out the rows that "+name+" leaves out")
		return
	}
	if filter.text("condition") == "" {
		return
	}
	var into trace
	condition, err := c.stepScope(s, filter, &into).withRoots(scope{"record": rootedKeys("row")}).translateExpression(filter.text("condition"))
	if err != nil {
		s.addGap(atRows, "RecordFilter", "%s: %v", oneLine(filter.text("condition")), err)
		return
	}
	c.read.mergeTrace(into)
	if condition.known && expression.Truthy(condition.value) {
		return
	}
	s.where = &condition
}

// rootedKeys returns a resolver of the members of a name.
func rootedKeys(name string) func(keys []any) (code, error) {
	return func(keys []any) (code, error) { return pathCode(name, keys...), nil }
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// rowsPath returns the path to the rows in the syntax of `rows`; "" for the whole response.
func (s *step) rowsPath() string {
	var b strings.Builder
	for i, key := range s.path {
		switch {
		case key == "*":
			b.WriteString("[*]")
		case !plainKey.MatchString(key):
			if strings.Contains(key, `"`) {
				b.WriteString("['" + key + "']")
			} else {
				b.WriteString(`["` + key + `"]`)
			}
		case i == 0:
			b.WriteString(key)
		default:
			b.WriteString("." + key)
		}
	}
	return strings.TrimPrefix(b.String(), ".")
}

// rowsCode returns the rows of the current response as an expression.
func (s *step) rowsCode() code {
	for _, key := range s.path {
		if key == "*" {
			c := callCode("pluck", pathCode("response"), constantCode(strings.Join(s.path, ".")))
			c.falsy = true
			return c
		}
	}
	keys := make([]any, len(s.path))
	for i, key := range s.path {
		keys[i] = key
	}
	return pathCode("response", keys...)
}
