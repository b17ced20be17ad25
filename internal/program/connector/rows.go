package connector

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"reprise/internal/program/node"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// convertTransformations converts what is added to and removed from rows.
func (c *converter) convertTransformations(s *step) {
	for _, one := range s.of.componentList("transformations") {
		switch kind := one.kind(); kind {
		case "AddFields":
			for _, field := range one.componentList("fields") {
				c.addField(s, one, field)
			}
		case "RemoveFields":
			c.removeFields(s, one)
		case "KeysToSnakeCase":
			s.shape = "map(%s, fromPairs(map(toPairs(#), [snake_case(#[0]), #[1]])))"
		case "KeysToLower":
			s.shape = "map(%s, fromPairs(map(toPairs(#), [lower(#[0]), #[1]])))"
		case "FlattenFields":
			s.shape = "map(%s, flatten_fields(#, '.'))"
		case "Custom":
			name := customName(one, "CustomTransformation")
			s.addStub(name, "rows are written as they are read", "change the rows as "+name+" does")
		default:
			s.addGap(atSink, kind, "")
		}
	}
}

// recordScope returns the scope of templates over a row.
func recordScope(root string) scope { return scope{"record": rootedKeys(root)} }

func (c *converter) addField(s *step, of, field component) {
	var into trace
	base := c.stepScope(s, of, &into)
	path, _ := field["path"].([]any)
	var keys []string
	for _, one := range path {
		value, err := base.translateValue(one)
		if err != nil {
			s.addGap(atSink, "AddFields", "%v", err)
			return
		}
		keys = append(keys, expression.Text(value))
	}
	if len(keys) == 0 {
		s.addGap(atSink, "AddFields", "without a path")
		return
	}
	text := expression.Text(field["value"])
	parts, err := c.stepScope(s, field, &into).withRoots(recordScope("row")).textParts(text)
	if err != nil {
		s.addGap(atSink, "AddFields", "%s: %s: %v", strings.Join(keys, "."), oneLine(text), err)
		return
	}
	if len(into.secret) > 0 {
		s.addGap(atSink, "AddFields", "%s would write a secret to a table", strings.Join(keys, "."))
		return
	}
	c.read.mergeTrace(into)
	if len(keys) == 1 {
		s.added[keys[0]] = addedField{text: text, scope: func(into *trace) scope { return c.stepScope(s, field, into) }}
	}
	s.setField(keys, joinTexts(parts), templateValue(parts))
}

// setField sets a field of the rows, which may be nested.
func (s *step) setField(keys []string, value code, whole any) {
	if len(keys) > 1 {
		inner := value.text
		for i := len(keys) - 1; i > 0; i-- {
			inner = "merge(" + s.fieldText(keys[:i]) + ", {" + quoteText(keys[i]) + ": " + inner + "})"
		}
		whole = node.Verbatim("{{ " + inner + " }}")
	}
	for i := range s.fields {
		if s.fields[i].name == keys[0] {
			s.fields[i].value = whole
			return
		}
	}
	s.fields = append(s.fields, pair{keys[0], whole})
}

// fieldText is the expression for a field as the transformations so far have left it.
func (s *step) fieldText(keys []string) string {
	at := "row" + memberPath([]any{keys[0]})
	for _, field := range s.fields {
		template, isTemplate := field.value.(node.Verbatim)
		if field.name == keys[0] && isTemplate && strings.HasPrefix(string(template), "{{ ") && strings.Count(string(template), "{{") == 1 {
			at = strings.TrimSuffix(strings.TrimPrefix(string(template), "{{ "), " }}")
		}
	}
	for _, key := range keys[1:] {
		at += memberPath([]any{key})
	}
	return at
}

func (c *converter) removeFields(s *step, of component) {
	if of.text("condition") != "" {
		s.addGap(atSink, "RemoveFields", "with the condition %s", oneLine(of.text("condition")))
		return
	}
	pointers, _ := of["field_pointers"].([]any)
	for _, pointer := range pointers {
		keys, isList := pointer.([]any)
		if !isList {
			s.addGap(atSink, "RemoveFields", "%v", pointer)
			continue
		}
		texts := make([]string, len(keys))
		for i, key := range keys {
			texts[i] = expression.Text(key)
		}
		switch {
		case len(texts) == 1 && !strings.Contains(texts[0], "*"):
			s.exclude = append(s.exclude, texts[0])
		case len(texts) > 1 && !slices.ContainsFunc(texts, func(key string) bool { return strings.Contains(key, "*") }):
			without := "omit(" + s.fieldText(texts[:len(texts)-1]) + ", [" + quoteText(texts[len(texts)-1]) + "])"
			s.setField(texts[:len(texts)-1], code{text: without, prec: precAtom}, node.Verbatim("{{ "+without+" }}"))
		default:
			s.addGap(atSink, "RemoveFields", "%s", strings.Join(texts, "."))
		}
	}
}

// convertSchema sets the column types that rows do not show: times and days.
func (c *converter) convertSchema(s *step) {
	schema := c.schemaDocument(s)
	for _, name := range playbook.SortedKeys(schema.childAt("properties")) {
		property := schema.childAt("properties").childAt(name)
		kinds := kindsOf(property)
		if !slices.Contains(kinds, "string") || slices.Contains(s.exclude, name) || len(kinds) > 1 {
			continue
		}
		switch property.text("format") {
		case "date-time":
			s.columns = append(s.columns, pair{name, "timestamptz"})
		case "date":
			s.columns = append(s.columns, pair{name, "date"})
		}
	}
}

// kindsOf returns the types of a property, without null.
func kindsOf(property component) (kinds []string) {
	list, isList := property["type"].([]any)
	if !isList {
		list = []any{property["type"]}
	}
	for _, one := range list {
		if text, isText := one.(string); isText && text != "null" {
			kinds = append(kinds, text)
		}
	}
	return kinds
}

// schemaDocument returns the JSON Schema of a stream; nil if it is not available.
func (c *converter) schemaDocument(s *step) component {
	loader := s.of.childAt("schema_loader")
	switch kind := loader.kind(); kind {
	case "InlineSchemaLoader":
		return loader.childAt("schema")
	case "", "JsonFileSchemaLoader":
		if c.Read == nil {
			return nil
		}
		path, _ := c.translateAt(s, atSink, loader, "file_path", nil).(string)
		if path == "" {
			path = "schemas/" + s.stream + ".json"
		}
		for _, place := range []string{path, filepath.Join("schemas", filepath.Base(path))} {
			data, err := c.Read(place)
			if err != nil {
				continue
			}
			var schema map[string]any
			if json.Unmarshal(data, &schema) == nil {
				return schema
			}
		}
	case "DynamicSchemaLoader":
	case "Custom":
		s.addGap(atSink, customName(loader, "CustomSchemaLoader"), "the types of columns follow from the rows")
	default:
		s.addGap(atSink, kind, "the types of columns follow from the rows")
	}
	return nil
}
