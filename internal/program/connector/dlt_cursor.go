package connector

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"reprise/internal/program/connector/jinja"
	"reprise/internal/program/connector/pyliteral"
	"reprise/interpreter/playbook"
)

// isIncremental reports whether a param is the start of the incremental reading.
func isIncremental(of any) bool {
	_, is := incrementalConfig(of)
	return is
}

// incrementalArgs are the arguments of dlt.sources.incremental by position.
var incrementalArgs = map[string]authClass{"incremental": {"incremental", []string{"cursor_path", "initial_value", "last_value_func", "primary_key", "end_value", "row_order"}}}

func incrementalConfig(of any) (component, bool) {
	switch of := of.(type) {
	case map[string]any:
		return of, component(of).kind() == "incremental"
	case *pyliteral.CallExpr:
		config := configOfCall(of, incrementalArgs)
		return config, config != nil
	}
	return nil, false
}

// convertIncremental converts the incremental reading of a resource.
func (r *restAPI) convertIncremental(of *dltResource) {
	s := of.step
	config := of.endpoint.childAt("incremental")
	starts := config.text("start_param")
	for _, name := range playbook.SortedKeys(of.params) {
		if found, is := incrementalConfig(of.params[name]); is {
			config, starts = found, name
		}
	}
	if config == nil {
		if of.endpoint["incremental"] != nil {
			s.addGap(atIncremental, "incremental", "%s", kindOf(of.endpoint["incremental"]))
		}
		return
	}
	r.noteUnknown(s, atIncremental, config, "type", "cursor_path", "initial_value", "start_param", "end_param", "end_value", "lag", "row_order", "on_cursor_value_missing",
		"primary_key", "range_start", "range_end", "convert", "transform", "last_value_func")
	if reference, is := config["last_value_func"].(*pyliteral.NameExpr); config["last_value_func"] != nil && (!is || reference.Name != "max") {
		s.addGap(atIncremental, "last_value_func", "%s: the largest value is kept", kindOf(config["last_value_func"]))
	}
	i := r.cursorOf(of, config)
	if i == nil {
		return
	}
	initial, err := r.valueParts(of, config["initial_value"], false)
	if err != nil || config["initial_value"] == nil {
		reason := "is not set"
		if err != nil {
			reason = err.Error()
		}
		s.addGap(atIncremental, "initial_value", "%s; everything is read each time", reason)
		return
	}
	i.initial = templateValue(initial)
	i.setKind(config["initial_value"])
	r.setBounds(of, config, i, joinTexts(initial))
	for _, key := range []string{"convert", "transform"} {
		if err := of.convertSent(config[key]); err != nil {
			s.addGap(atIncremental, key, "%v: the start is sent as rows have it", err)
		}
	}
	if of.start != nil && starts != "" {
		s.params[starts] = templateValue([]code{*of.start})
	}
	if of.end != nil && config.text("end_param") != "" {
		s.params[config.text("end_param")] = templateValue([]code{*of.end})
	}
}

// convertSent applies a function of Python to the values that requests send. The error says that it cannot be translated.
func (of *dltResource) convertSent(function any) error {
	if function == nil {
		return nil
	}
	lambda, isLambda := function.(*pyliteral.Lambda)
	if !isLambda || len(lambda.Params) != 1 {
		_, err := unsupportedError("%s", kindOf(function))
		return err
	}
	tree, err := jinja.ParseExpression(lambda.Body)
	if err != nil {
		return fmt.Errorf("%s: %w", kindOf(function), err)
	}
	for _, at := range []**code{&of.start, &of.end} {
		if *at == nil {
			continue
		}
		value := **at
		converted, err := scope{lambda.Params[0]: func(keys []any) (code, error) {
			c := value
			for _, key := range keys {
				c = memberCode(c, key)
			}
			return c, nil
		}}.translateNode(tree)
		if err != nil {
			return fmt.Errorf("%s: %w", kindOf(function), err)
		}
		*at = &converted
	}
	return nil
}

// cursorOf returns the cursor of an incremental reading; nil if it cannot be read.
func (r *restAPI) cursorOf(of *dltResource, config component) *incremental {
	s := of.step
	keys, err := jsonPath(config.text("cursor_path"))
	plain := err == nil && len(keys) > 0
	for _, key := range textKeys(keys) {
		plain = plain && plainName.MatchString(key)
	}
	if !plain {
		s.addGap(atIncremental, "cursor_path", "%s; everything is read each time", kindOf(config["cursor_path"]))
		return nil
	}
	i := &incremental{cursor: strings.Join(textKeys(keys), "."), stateful: true, missing: map[string]string{"include": "include", "exclude": "exclude"}[config.text("on_cursor_value_missing")]}
	if len(keys) > 1 {
		i.source = textKeys(keys)
	}
	return i
}

var timeText = regexp.MustCompile(`^\d{4}-\d\d(-\d\d)?([T ]|$)`)

// setKind sets how cursors are compared: dlt compares them as Python does, whose texts of times are in their order.
func (i *incremental) setKind(initial any) {
	switch initial := initial.(type) {
	case int:
		i.kind = "integer"
	case string:
		if i.kind = "text"; timeText.MatchString(initial) {
			i.kind = "time"
		}
	default:
		i.kind = "time"
	}
}

// conditionFrom returns the condition that a row is not older than the start, or has no cursor.
func (i *incremental) conditionFrom(row code) code {
	at := row
	for _, key := range strings.Split(i.cursor, ".") {
		at = memberCode(at, key)
	}
	condition := compareCode(">=", at, pathCode("incremental", "value"))
	if i.kind == "time" {
		condition = code{text: callCode("latest", at, pathCode("incremental", "value")).text + " == " + at.text, prec: precCompare}
	}
	if i.missing == "exclude" && row.text == "row" {
		return andCode(definedCode(at), condition)
	}
	return orCode(negate(definedCode(at)), condition)
}

// setBounds sets where a reading starts and ends. With an end, dlt reads what lies between the two and keeps no state.
func (r *restAPI) setBounds(of *dltResource, config component, i *incremental, initial code) {
	s := of.step
	if end := config["end_value"]; end != nil {
		until, err := r.valueParts(of, end, false)
		if err != nil {
			s.addGap(atIncremental, "end_value", "%v; rows up to now are read", err)
		} else {
			last := joinTexts(until)
			of.start, of.end = &initial, &last
			at := pathCode("row", cursorKeys(i.cursor)...)
			s.where = &code{text: fmt.Sprintf("%s >= %s and %s < %s", at.text, initial.operandText(precJoin), at.text, last.operandText(precJoin)), prec: precAnd}
			addNoteOf(r.converter, s, "with end_value each run reads the same rows and keeps no state, as in dlt; for a backfill by periods see starter backfill")
			return
		}
	}
	start := pathCode("incremental", "value")
	start.falsy = false
	of.start = &start
	r.setLag(s, config, i)
	i.feed = config.text("row_order") == "desc"
	condition := i.conditionFrom(code{text: "row", path: true, prec: precAtom})
	s.where = &condition
	if s.loop != nil {
		i.state = s.loop.stateName(s.table)
		addNoteOf(r.converter, s, "each row of its parent has a state of its own; dlt keeps one for all")
	}
	s.incremental = i
}

func cursorKeys(cursor string) (keys []any) {
	for _, key := range strings.Split(cursor, ".") {
		keys = append(keys, key)
	}
	return keys
}

// setLag sets how far before the last value a reading starts: seconds of a time, or a number.
func (r *restAPI) setLag(s *step, config component, i *incremental) {
	n, is := config.wholeNumber("lag")
	switch {
	case config["lag"] == nil || n == 0 && is:
	case !is || i.kind == "text":
		s.addGap(atIncremental, "lag", "%s", kindOf(config["lag"]))
	case i.kind == "integer":
		i.lag = strconv.Itoa(n)
	default:
		i.lag = strconv.Itoa(n) + "s"
	}
}
