package connector

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"reprise/internal/program/connector/jinja"
	"reprise/internal/program/connector/pyliteral"
	"reprise/internal/program/scaffold"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// pathPart matches a part of a JSONPath.
var pathPart = regexp.MustCompile(`^(?:\.?([A-Za-z0-9_@-]+|\*)|\['([^']*)'\]|\["([^"]*)"\]|\[(-?\d+)\]|\[(\*)\]|\[(-1):\])`)

// jsonPath returns the keys of a JSONPath: texts, of which * stands for all elements, and numbers. The error says that
// it selects in another way.
func jsonPath(of string) (keys []any, err error) {
	rest := strings.TrimPrefix(strings.TrimSpace(of), "$")
	for rest != "" {
		found := pathPart.FindStringSubmatch(rest)
		if found == nil {
			_, err := unsupportedError("the JSONPath %s", of)
			return nil, err
		}
		if n, err := strconv.Atoi(found[4] + found[6]); err == nil {
			keys = append(keys, n)
		} else {
			keys = append(keys, found[1]+found[2]+found[3]+found[5])
		}
		rest = rest[len(found[0]):]
	}
	return keys, nil
}

// textKeys returns keys as texts.
func textKeys(keys []any) []string {
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = expression.Text(key)
	}
	return out
}

// unknownRows reports whether dlt finds the rows of a response by itself.
func (of *dltResource) unknownRows() bool {
	return of.endpoint["data_selector"] == nil && !of.isSingleEntity()
}

// convertSelectorPath converts where the rows are in a response.
func (r *restAPI) convertSelectorPath(of *dltResource) {
	s := of.step
	selector := of.endpoint.text("data_selector")
	switch {
	case of.unknownRows():
		s.addGap(atRows, "data_selector", "dlt finds the list of rows in the first response by itself; here the whole response is the rows: name their path in rows")
		return
	case selector == "":
		if of.endpoint["data_selector"] != nil {
			s.addGap(atRows, "data_selector", "%s", kindOf(of.endpoint["data_selector"]))
		}
		return
	}
	keys, err := jsonPath(selector)
	for _, key := range keys {
		if _, isNumber := key.(int); isNumber && err == nil {
			_, err = unsupportedError("the JSONPath %s", selector)
		}
	}
	if err != nil {
		s.addGap(atRows, "data_selector", "%v: these are whole responses", err)
		return
	}
	s.path = textKeys(keys)
	if n := len(s.path); n > 1 && s.path[n-1] == "*" { // the elements of a list are its rows
		s.path = s.path[:n-1]
	}
	if len(s.path) == 1 && s.path[0] == "*" {
		s.path = nil
	}
	s.hasRows = len(s.path) > 0
}

// convertFilters converts processing steps: filters whose function is one expression. A filter behind a step that was not
// converted may need what that step does.
func (r *restAPI) convertFilters(of *dltResource) {
	s := of.step
	steps, isList := of.of["processing_steps"].([]any)
	if !isList && of.of["processing_steps"] != nil {
		s.addGap(atRows, "processing_steps", "%s", kindOf(of.of["processing_steps"]))
	}
	changed := false
	for _, one := range steps {
		step := dictOf(one)
		for _, kind := range playbook.SortedKeys(step) {
			lambda, isLambda := step[kind].(*pyliteral.Lambda)
			if kind != "filter" || !isLambda || changed || len(lambda.Params) != 1 {
				changed = changed || kind != "filter"
				reason := kind + ": " + kindOf(step[kind])
				s.addStub("processing_steps", reason, reason)
				continue
			}
			condition, err := r.filterCode(lambda)
			if err != nil {
				s.addStub("processing_steps", fmt.Sprintf("%s: %v", kind, err), kind+": "+kindOf(lambda))
				continue
			}
			if s.where != nil {
				condition = andCode(*s.where, condition)
			}
			s.where = &condition
		}
		if step == nil {
			s.addGap(atRows, "processing_steps", "%s", kindOf(one))
		}
	}
}

// filterCode translates the body of a function of one row.
func (r *restAPI) filterCode(of *pyliteral.Lambda) (code, error) {
	tree, err := jinja.ParseExpression(of.Body)
	if err != nil {
		return code{}, err
	}
	return scope{of.Params[0]: rootedKeys("row")}.translateNode(tree)
}

// dltTypes are the types of dlt's columns, with those of sinks.
var dltTypes = map[string]string{
	"text": "text", "bigint": "bigint", "double": "double precision", "bool": "boolean", "timestamp": "timestamptz", "date": "date", "time": "time",
	"decimal": "numeric", "wei": "numeric", "json": "jsonb", "complex": "jsonb", "binary": "bytea",
}

// convertSink converts how the rows are written.
func (r *restAPI) convertSink(of *dltResource) {
	s := of.step
	r.noteUnknown(s, atSink, of.of, "name", "endpoint", "table_name", "write_disposition", "primary_key", "columns", "include_from_parent", "processing_steps", "selected",
		"max_table_nesting", "parallelized", "schema_contract")
	key := keyNames(of.of["primary_key"])
	if key == nil && of.of["primary_key"] != nil {
		s.addGap(atSink, "primary_key", "%s", kindOf(of.of["primary_key"]))
	}
	disposition, isText := of.of["write_disposition"].(string)
	if config := of.of.childAt("write_disposition"); config != nil {
		disposition, isText = config.text("disposition"), true
		if strategy := config.text("strategy"); strategy != "" && strategy != "delete-insert" && strategy != "upsert" {
			s.addGap(atSink, "write_disposition", "the strategy %s: rows are updated in place", strategy)
		}
		r.noteUnknown(s, atSink, config, "disposition", "strategy")
	}
	switch {
	case of.of["write_disposition"] != nil && !isText:
		s.addGap(atSink, "write_disposition", "%s: rows are added", kindOf(of.of["write_disposition"]))
		s.mode = modeInsert
	case disposition == "replace":
		s.mode = "replace"
	case disposition == "merge" && len(key) > 0:
		s.mode = "upsert"
	default: // dlt adds rows, also with merge if there is no key
		s.mode = modeInsert
	}
	s.key = key
	if s.mode == modeInsert && s.incremental != nil {
		s.incremental.key = key
	}
	r.convertColumns(of)
	r.convertNested(of)
	switch contract := of.of["schema_contract"].(type) {
	case nil:
	case string:
		s.contract = contract
	case map[string]any: // of whose parts dlt lets the others evolve
		s.contract = mergeMaps(map[string]any{"tables": "evolve", "columns": "evolve", "data_type": "evolve"}, contract)
	default:
		s.addGap(atSink, "schema_contract", "%s", kindOf(contract))
	}
}

// convertNested converts what becomes of lists in rows: dlt makes tables of them, which needs a key here.
func (r *restAPI) convertNested(of *dltResource) {
	s := of.step
	n, is := of.of.wholeNumber("max_table_nesting")
	switch {
	case is && n == 0, r.Sink == scaffold.SinkFile, r.Sink == scaffold.SinkNone:
	case len(s.key) == 0:
		addNoteOf(r.converter, s, "without a primary_key, lists in its rows stay columns of JSON; dlt makes tables of them")
	default:
		s.nested = "tables"
		r.addNote("maps in rows stay columns of JSON; dlt makes a column of each field")
	}
}

// keyNames returns the columns of a key.
func keyNames(of any) (key []string) {
	if text, isText := of.(string); isText && text != "" {
		return []string{text}
	}
	list, _ := of.([]any)
	for _, one := range list {
		text, isText := one.(string)
		if !isText {
			return nil
		}
		key = append(key, text)
	}
	return key
}

func (r *restAPI) convertColumns(of *dltResource) {
	s := of.step
	columns := of.of.childAt("columns")
	if list, isList := of.of["columns"].([]any); isList {
		columns = component{}
		for _, one := range list {
			column := dictOf(one)
			columns[column.text("name")] = map[string]any(column)
		}
	} else if columns == nil && of.of["columns"] != nil {
		s.addGap(atSink, "columns", "%s", kindOf(of.of["columns"]))
	}
	for _, name := range playbook.SortedKeys(columns) {
		column := columns.childAt(name)
		kind := column.text("data_type")
		if kind != "" && dltTypes[kind] == "" || name == "" {
			s.addGap(atSink, "columns", "%s of type %s", name, kind)
		} else if kind != "" {
			s.columns = append(s.columns, pair{name, dltTypes[kind]})
		}
		r.noteUnknown(s, atSink, column, "name", "data_type", "nullable", "description", "precision", "scale")
	}
}
