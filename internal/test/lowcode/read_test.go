package lowcode_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// reader reads streams as their manifest says.
type reader struct {
	config  map[string]any
	now     time.Time
	api     *api
	state   map[string]time.Time // of the last run, by stream and partition
	reached map[string]time.Time // by this run
	texts   map[string]any       // the cursors that reach that far, as rows have them
	before  map[string]any       // those of the last run
}

// part is a slice of a stream: a parent's row, an element of a list, a span of time, or several of these.
type part struct {
	fields map[string]any // partition fields and ends of the span
	extra  map[string]any
	key    string // of the partition
	from   time.Time
	to     time.Time
}

// request is one to the API.
type request struct {
	method  string
	url     string // without a query
	query   url.Values
	headers map[string]string
	body    any    // JSON
	form    string // form or text
}

// in is what the templates of a component can read.
func (r *reader) in(of component, more names) names {
	out := names{"config": r.config, "now": r.now, "parameters": map[string]any(of.parameters()), "options": map[string]any(of.parameters())}
	if of.parameters() == nil {
		out["parameters"] = map[string]any{}
	}
	maps.Copy(out, more)
	return out
}

// names are what templates can read of a part.
func (p part) names() names {
	fields := map[string]any{"extra_fields": p.extra}
	maps.Copy(fields, p.fields)
	return names{"stream_slice": fields, "stream_partition": fields, "stream_interval": fields, "stream_state": map[string]any{}}
}

// read are the records of a stream, as they are written.
func (r *reader) read(stream component) []map[string]any {
	retriever := stream.of("retriever")
	if kind := stream.kind("DeclarativeStream"); kind != "DeclarativeStream" {
		panic(unplayable("a stream of type " + kind))
	}
	if kind := retriever.kind("SimpleRetriever"); kind != "SimpleRetriever" {
		panic(unplayable("a retriever of type " + kind))
	}
	var all []map[string]any
	for _, one := range r.parts(stream) {
		records := r.readPart(stream, one)
		r.observe(stream, one, records)
		all = append(all, records...)
	}
	return all
}

// unplayable is a part of a manifest that is not played here.
type unplayable string

func (u unplayable) Error() string { return string(u) }

// parts are the slices of a stream.
func (r *reader) parts(stream component) []part {
	parts := []part{{fields: map[string]any{}}}
	routers := stream.of("retriever").list("partition_router")
	for _, router := range routers {
		var next []part
		for _, before := range parts {
			for _, one := range r.partition(router) {
				joined := part{fields: maps.Clone(before.fields), extra: maps.Clone(one.extra), key: before.key + one.key}
				maps.Copy(joined.fields, one.fields)
				next = append(next, joined)
			}
		}
		parts = next
	}
	cursor := stream.of("incremental_sync")
	if cursor == nil {
		return parts
	}
	if kind := cursor.kind("DatetimeBasedCursor"); kind != "DatetimeBasedCursor" {
		panic(unplayable("a cursor of type " + kind))
	}
	var out []part
	for _, one := range parts {
		out = append(out, r.spans(stream, cursor, one)...)
	}
	return out
}

// partition are the parts that one router gives.
func (r *reader) partition(router component) (out []part) {
	switch kind := router.kind(""); kind {
	case "ListPartitionRouter":
		values := router["values"]
		if text, is := values.(string); is {
			values = interpolate(text, r.in(router, nil))
		}
		field := textOf(interpolate(router.text("cursor_field"), r.in(router, nil)))
		for _, value := range listOf(plainJSON(values)) {
			if text, is := value.(string); is {
				value = interpolate(text, r.in(router, nil))
			}
			out = append(out, part{fields: map[string]any{field: value}, key: sourceOf(value)})
		}
	case "SubstreamPartitionRouter":
		for _, parent := range router.list("parent_stream_configs") {
			out = append(out, r.partsOfParent(parent)...)
		}
	default:
		panic(unplayable("a router of type " + kind))
	}
	return out
}

func (r *reader) partsOfParent(parent component) (out []part) {
	stream := parent.of("stream")
	before := r.state
	if dependent, _ := parent["incremental_dependency"].(bool); !dependent {
		r.state = map[string]time.Time{}
	}
	defer func() { r.state = before }()
	key := textOf(interpolate(parent.text("parent_key"), r.in(parent, nil)))
	field := textOf(interpolate(parent.text("partition_field"), r.in(parent, nil)))
	for _, one := range r.parts(stream) {
		for _, record := range r.readPart(stream, one) {
			value := valueAt(record, strings.Split(key, "/"))
			if _, missing := value.(undefined); missing {
				continue
			}
			extra := map[string]any{}
			paths, _ := parent["extra_fields"].([]any)
			for _, path := range paths {
				keys := make([]string, 0, 2)
				for _, key := range listOf(path) {
					keys = append(keys, textOf(interpolate(textOf(key), r.in(parent, nil))))
				}
				extra[strings.Join(keys, ".")] = known(valueAt(record, keys))
			}
			out = append(out, part{fields: map[string]any{field: value, "parent_slice": one.fields}, extra: extra, key: sourceOf(value) + one.key})
		}
	}
	return out
}

// known is a value in which what is undefined is none.
func known(of any) any {
	if _, is := of.(undefined); is {
		return nil
	}
	return of
}

// valueAt is the value at a path, undefined where there is none.
func valueAt(of any, path []string) any {
	for _, key := range path {
		switch at := of.(type) {
		case map[string]any:
			value, has := at[key]
			if !has {
				return undefined{}
			}
			of = value
		case []any:
			var i int
			if n, err := fmt.Sscanf(key, "%d", &i); n != 1 || err != nil || i >= len(at) {
				return undefined{}
			}
			of = at[i]
		default:
			return undefined{}
		}
	}
	return of
}

// valuesAt are the values at a path with stars.
func valuesAt(of any, path []string) []any {
	if len(path) == 0 {
		return []any{of}
	}
	if path[0] != "*" {
		value := valueAt(of, path[:1])
		if _, missing := value.(undefined); missing {
			return nil
		}
		return valuesAt(value, path[1:])
	}
	var out []any
	switch at := of.(type) {
	case []any:
		for _, item := range at {
			out = append(out, valuesAt(item, path[1:])...)
		}
	case map[string]any:
		for _, key := range sortedKeys(at) {
			out = append(out, valuesAt(at[key], path[1:])...)
		}
	}
	return out
}

// readPart are the records of all pages of a part.
func (r *reader) readPart(stream component, one part) (records []map[string]any) {
	retriever := stream.of("retriever")
	pager := r.pagerOf(retriever)
	token := pager.first()
	for page := 1; ; page++ {
		if page > 40 {
			panic(unplayable("pages that do not end"))
		}
		asked := r.request(stream, one, pager, token)
		found := r.api.answer(r, stream, one, pager, asked, page, token)
		if found.status >= 400 { // what is ignored ends the pages
			return records
		}
		raw := r.extract(retriever.of("record_selector"), found.body)
		selected := r.selectRecords(stream, one, raw, token)
		records = append(records, selected...)
		var last any
		if len(selected) > 0 {
			last = selected[len(selected)-1]
		}
		if token = pager.next(r, found, len(raw), last, token); token == nil || r.feedEnds(stream, one, last) {
			return records
		}
	}
}

// extract are the rows of a body.
func (r *reader) extract(selector component, body any) (rows []any) {
	extractor := selector.of("extractor")
	if kind := extractor.kind("DpathExtractor"); kind != "DpathExtractor" {
		panic(unplayable("an extractor of type " + kind))
	}
	path := r.fieldPath(extractor)
	var found any
	switch {
	case slices.Contains(path, "*"):
		found = any(valuesAt(body, path))
	default:
		found = known(valueAt(body, path))
	}
	if list, is := found.([]any); is {
		return list
	}
	if isTrue(found) {
		return []any{found}
	}
	return nil
}

// fieldPath is the path of an extractor.
func (r *reader) fieldPath(extractor component) (path []string) {
	keys, isList := extractor["field_path"].([]any)
	if !isList && extractor["field_path"] != nil {
		keys = []any{extractor["field_path"]}
	}
	for _, key := range keys {
		if text := textOf(interpolate(textOf(key), r.in(extractor, nil))); text != "None" {
			path = append(path, text)
		}
	}
	return path
}

// selectRecords are the records of a page: filtered, then transformed.
func (r *reader) selectRecords(stream component, one part, rows []any, token any) (records []map[string]any) {
	selector := stream.of("retriever").of("record_selector")
	filter := selector.of("record_filter")
	if filter.kind("RecordFilter") != "RecordFilter" {
		panic(unplayable("a filter of type " + filter.kind("")))
	}
	for _, row := range rows {
		record, isMap := copyOf(row).(map[string]any)
		if !isMap {
			panic(unplayable("rows that are no maps"))
		}
		more := r.withState(stream, one)
		more["record"], more["next_page_token"] = record, tokenNames(token)
		if condition := filter.text("condition"); condition != "" && !holds(condition, r.in(filter, more)) {
			continue
		}
		if r.isOld(stream, one, record) {
			continue
		}
		for _, transformation := range stream.list("transformations") {
			r.transform(transformation, record, one)
		}
		records = append(records, record)
	}
	return records
}

func tokenNames(token any) any {
	if token == nil {
		return nil
	}
	return map[string]any{"next_page_token": token}
}

// copyOf is a value that shares nothing with another.
func copyOf(of any) any {
	encoded, err := json.Marshal(of)
	if err != nil {
		panic(err)
	}
	return decode(encoded)
}

// decode reads JSON.
func decode(data []byte) any {
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	var out any
	if decoder.Decode(&out) != nil || decoder.More() {
		return nil
	}
	return plainJSON(out)
}

// transform changes a record.
func (r *reader) transform(of component, record map[string]any, one part) {
	more := one.names()
	more["record"] = record
	switch kind := of.kind(""); kind {
	case "AddFields":
		if of.text("condition") != "" {
			panic(unplayable("AddFields with a condition"))
		}
		for _, field := range of.list("fields") {
			value := field["value"]
			if text, is := value.(string); is {
				value = r.added(field, text, more)
			}
			setAt(record, listOf(field["path"]), value)
		}
	case "RemoveFields":
		if of.text("condition") != "" {
			panic(unplayable("RemoveFields with a condition"))
		}
		for _, pointer := range listOf(of["field_pointers"]) {
			removeAt(record, listOf(pointer))
		}
	default:
		panic(unplayable("a transformation of type " + kind))
	}
}

// added is the value of a field that is added, of the type that it says.
func (r *reader) added(field component, text string, more names) any {
	value := interpolate(text, r.in(field, more))
	is := map[string]bool{}
	switch value.(type) {
	case string:
		is["string"] = true
	case int:
		is["integer"] = true
	case float64:
		is["number"] = true
	case bool:
		is["boolean"] = true
	}
	if kind := field.text("value_type"); kind != "" && value != nil && !is[kind] {
		out, _, _ := render(text, r.in(field, more))
		return out
	}
	return value
}

func setAt(of map[string]any, path []any, value any) {
	for _, key := range path[:len(path)-1] {
		below, is := of[textOf(key)].(map[string]any)
		if !is {
			below = map[string]any{}
			of[textOf(key)] = below
		}
		of = below
	}
	of[textOf(path[len(path)-1])] = value
}

func removeAt(of any, path []any) {
	at, is := of.(map[string]any)
	switch {
	case strings.Contains(textOf(path[0]), "*"):
		panic(unplayable("RemoveFields with a star"))
	case !is:
	case len(path) == 1:
		delete(at, textOf(path[0]))
	default:
		removeAt(at[textOf(path[0])], path[1:])
	}
}
