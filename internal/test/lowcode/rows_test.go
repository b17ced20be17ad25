package lowcode_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// rows are rows of a page.
func (a *api) rows(r *reader, stream component, one part, page, n int) []any {
	out := []any{}
	for i := range n {
		out = append(out, a.row(r, stream, one, page, i))
	}
	return out
}

// row is a row: what its schema says, and what the manifest reads of it.
func (a *api) row(r *reader, stream component, one part, page, i int) map[string]any {
	a.number++
	row := map[string]any{}
	schema := a.schema(r, stream)
	for n, name := range sortedKeys(schema.of("properties")) {
		if n < 14 {
			row[name] = a.value(schema.of("properties").of(name), name, 0)
		}
	}
	selector := stream.of("retriever").of("record_selector")
	condition := selector.of("record_filter").text("condition")
	texts := []any{condition, stream.of("retriever").of("paginator").of("pagination_strategy")["cursor_value"]}
	for _, transformation := range stream.list("transformations") {
		for _, field := range transformation.list("fields") {
			texts = append(texts, field["value"])
		}
	}
	paths := slices.Concat(pathsOf("record", texts...), pathsOf("last_record", texts...), a.parentPaths(r, stream), removedPaths(stream))
	slices.SortStableFunc(paths, func(a, b []string) int { return len(b) - len(a) })
	for _, path := range paths {
		a.need(row, path)
	}
	for _, key := range keyOf(r, stream) {
		row[key] = a.keyValue(schema.of("properties").of(key))
	}
	a.setCursor(r, stream, one, row, page, i)
	if len(row) == 0 {
		row["name"] = fmt.Sprintf("name %d", a.number)
	}
	a.passFilter(r, selector.of("record_filter"), one, row)
	return row
}

// removedPaths are the paths that are removed from rows.
func removedPaths(stream component) (out [][]string) {
	for _, transformation := range stream.list("transformations") {
		for _, pointer := range listOf(transformation["field_pointers"]) {
			var path []string
			for _, key := range listOf(pointer) {
				path = append(path, textOf(key))
			}
			out = append(out, path)
		}
	}
	return out
}

// need gives a row a value at a path where it has none.
func (a *api) need(row map[string]any, path []string) {
	if known(valueAt(row, path)) == nil {
		set(row, path, fmt.Sprintf("v%d", a.number))
	}
}

// keyOf are the columns of the primary key of a stream, none where they are no columns.
func keyOf(r *reader, stream component) (key []string) {
	for _, one := range listOfOne(stream["primary_key"]) {
		if list := listOf(one); len(list) == 1 {
			one = list[0]
		}
		text, is := one.(string)
		if !is || text == "" {
			return nil
		}
		if value, is := interpolate(text, r.in(stream, nil)).(string); is {
			key = append(key, value)
		}
	}
	return key
}

// keyValue is another one for each row.
func (a *api) keyValue(schema component) any {
	if slices.Contains(listOfOne(schema["type"]), any("integer")) || schema == nil && a.draw(2, "key") == 0 {
		return 100 + a.number
	}
	if slices.Contains(listOfOne(schema["type"]), any("string")) || schema == nil {
		return fmt.Sprintf("k%d", a.number)
	}
	return 100 + a.number
}

// value is one of a type.
func (a *api) value(schema component, name string, depth int) any {
	kinds := listOfOne(schema["type"])
	pick := func(kind string) bool { return slices.Contains(kinds, any(kind)) }
	if list := listOf(schema["enum"]); len(list) > 0 {
		return plainJSON(list[a.draw(len(list), name, a.number)])
	}
	switch {
	case a.draw(9, "nil", name, a.number) == 0 && pick("null"):
		return nil
	case pick("string"):
		switch schema.text("format") {
		case "date-time":
			return formatTime(a.now.Add(-time.Duration(a.number)*time.Hour), "%Y-%m-%dT%H:%M:%SZ")
		case "date":
			return formatTime(a.now.AddDate(0, 0, -a.number%60), "%Y-%m-%d")
		}
		return fmt.Sprintf("%s %d", name, a.number)
	case pick("integer"):
		return a.number * 7
	case pick("number"):
		return float64(a.number) + 0.5
	case pick("boolean"):
		return a.number%2 == 0
	case pick("object") && depth < 2:
		out := map[string]any{"n": a.number}
		for i, key := range sortedKeys(schema.of("properties")) {
			if i < 4 {
				out[key] = a.value(schema.of("properties").of(key), key, depth+1)
			}
		}
		return out
	case pick("array") && depth < 2:
		return []any{a.value(schema.of("items"), name, depth+1)}
	}
	return fmt.Sprintf("any %d", a.number)
}

// schema is the JSON Schema of a stream, nil where there is none.
func (a *api) schema(r *reader, stream component) component {
	loader := stream.of("schema_loader")
	if loader.kind("") == "InlineSchemaLoader" {
		return loader.of("schema")
	}
	path := "schemas/" + stream.text("name") + ".json"
	if text := loader.text("file_path"); text != "" {
		path = "schemas/" + filepath.Base(textOf(interpolate(text, r.in(loader, nil))))
	}
	if a.read == nil {
		return nil
	}
	data, err := a.read(path)
	var out map[string]any
	if err != nil || json.Unmarshal(data, &out) != nil {
		return nil
	}
	return out
}

// parentPaths are the paths that streams below a stream read of its rows.
func (a *api) parentPaths(r *reader, stream component) (out [][]string) {
	for _, other := range a.manifest.list("streams") {
		a.pathsBelow(r, other, stream.text("name"), &out)
	}
	return out
}

func (a *api) pathsBelow(r *reader, other component, name string, out *[][]string) {
	for _, router := range other.of("retriever").list("partition_router") {
		for _, parent := range router.list("parent_stream_configs") {
			if parent.of("stream").text("name") == name {
				*out = append(*out, strings.Split(textOf(interpolate(parent.text("parent_key"), r.in(parent, nil))), "/"))
				for _, path := range listOf(parent["extra_fields"]) {
					var keys []string
					for _, key := range listOf(path) {
						keys = append(keys, textOf(interpolate(textOf(key), r.in(parent, nil))))
					}
					*out = append(*out, keys)
				}
			}
			a.pathsBelow(r, parent.of("stream"), name, out)
		}
	}
}

// setCursor gives a row a time in its span, in the form of the cursor. Those of a feed get older.
func (a *api) setCursor(r *reader, stream component, one part, row map[string]any, page, i int) {
	cursor := stream.of("incremental_sync")
	if cursor == nil {
		return
	}
	from, to := one.from, one.to
	if cursor["is_data_feed"] == true || cursor["is_client_side_incremental"] == true { // which the API does not know the start of
		from = r.datetime(cursor, "start_datetime", one)
	}
	if to.After(a.now) {
		to = a.now
	}
	share := float64(a.draw(900, "time", a.number)) / 1000
	if cursor["is_data_feed"] == true {
		share = max(0, 0.9-float64(page)*0.2-float64(i)*0.01)
	}
	at := from.Add(time.Duration(share * float64(to.Sub(from)))).Truncate(time.Second)
	if at.Before(from) {
		at = from
	}
	format := cursor.text("datetime_format")
	if formats := listOf(cursor["cursor_datetime_formats"]); len(formats) > 0 {
		format = textOf(formats[0])
	}
	text := any(formatTime(at, format))
	if n, is := literalOf(text.(string)); is {
		if _, number := n.(int); number {
			text = n
		}
	}
	field := r.cursorField(cursor)
	for _, transformation := range stream.list("transformations") {
		for _, added := range transformation.list("fields") {
			if path := listOf(added["path"]); len(path) != 1 || path[0] != field {
				continue
			}
			for _, path := range pathsOf("record", added["value"]) {
				set(row, path, text)
			}
			return
		}
	}
	row[field] = text
}

// passFilter changes what a filter reads so that it holds of two rows in three.
func (a *api) passFilter(r *reader, filter component, one part, row map[string]any) {
	condition := filter.text("condition")
	if condition == "" {
		return
	}
	wanted := a.number%3 != 0
	more := one.names()
	more["record"] = row
	values := []any{true, false, 1, 0, nil, "x", ""}
	values = append(values, lexemeTexts(condition)...)
	for _, path := range pathsOf("record", condition) {
		for _, value := range append([]any{valueAt(row, path)}, values...) {
			if _, is := value.(undefined); is || !set(row, path, value) {
				continue
			}
			if func() (ok bool) {
				defer func() { _ = recover() }()
				return holds(condition, r.in(filter, more)) == wanted
			}() {
				return
			}
		}
	}
}

// lexemeTexts are the texts that a template has in quotes.
func lexemeTexts(template string) (out []any) {
	for rest := template; rest != ""; {
		found := lexemes.FindStringSubmatch(rest)
		if found == nil {
			rest = rest[1:]
			continue
		}
		if found[3] != "" {
			out = append(out, unquote(found[3]))
		}
		rest = rest[len(found[0]):]
	}
	return out
}
