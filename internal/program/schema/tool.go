package schema

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// routing are the keys of a step that calls no tool.
var routing = []string{"step", "desc", "vars", "next", "join", "on_success", "on_failure"}

// callRules returns the rules of a section that calls a tool: which fields each tool accepts.
func (g *generator) callRules(s playbook.Section) []node {
	rules := lists.Map(g.callableTools(s.Name), func(name string) node { return node{"if": isTool(name), "then": g.callNode(s, g.toolSpec(name))} })
	known := node{"enum": g.toolNames()}
	rules = append(rules, node{"properties": node{"tool": anyOf(known, node{"type": "string", "pattern": `\{\{`}, typesNode("object"))}})
	without := node{"not": node{"required": []string{"tool"}}}
	switch s.Name {
	case "step":
		rules = append(rules, node{"if": without, "then": node{"propertyNames": node{"enum": routing}}})
	case "notice", "notify":
		older := node{"required": []string{"kind"}} // a form that validate takes with a warning
		rules = append(rules, node{"if": node{"not": anyOf(node{"required": []string{"tool"}}, older)}, "then": g.callNode(s, g.toolSpec(playbook.NoticeTool))})
	}
	return rules
}

// isTool returns a schema that matches a call of a tool, whose fields may be grouped.
func isTool(name string) node {
	return whereIs("tool", anyOf(node{"const": name}, node{
		"type": "object", "required": []string{"kind"}, "properties": node{"kind": node{"const": name}},
	}))
}

// callNode returns the schema of a section that calls a tool.
func (g *generator) callNode(s playbook.Section, spec playbook.ToolSpec) node {
	names := spec.FieldNames()
	for _, key := range s.Keys {
		names = append(names, keySpellings(key)...)
	}
	inTool := spec.FieldNames()
	for _, key := range g.sections["tool"].Keys {
		inTool = append(inTool, key.Name)
	}
	fields := node{"$ref": "#/definitions/" + fieldsOf(spec.Name)}
	grouped := node{"if": typesNode("object"), "then": node{"propertyNames": node{"enum": sortedNames(inTool)}, "allOf": []node{fields}}}
	all := []node{fields}
	if s.Name != "workbook entry" || spec.Name == playbook.WorkbookTool { // to which callers hand the rest
		all = append(all, demandedFields(spec)...)
	}
	return node{"propertyNames": node{"enum": sortedNames(names)}, "properties": node{"tool": grouped}, "allOf": all}
}

func sortedNames(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// demandedFields returns the required fields of a call, next to `tool` or inside it.
func demandedFields(spec playbook.ToolSpec) []node {
	has := func(name string) []node {
		return []node{
			{"required": []string{name}},
			{"properties": node{"tool": node{"type": "object", "required": []string{name}}}, "required": []string{"tool"}},
		}
	}
	var all []node
	for _, field := range spec.Fields {
		if field.Required {
			all = append(all, anyOf(has(field.Name)...))
		}
	}
	for _, group := range spec.RequireOneOf {
		var some []node
		for _, name := range group {
			some = append(some, has(name)...)
		}
		all = append(all, anyOf(some...))
	}
	return all
}

// toolFields returns the definition with the types of a tool's fields.
func (g *generator) toolFields(tool string) node {
	properties := node{}
	for _, field := range g.toolSpec(tool).Fields {
		properties[field.Name] = g.fieldNode(field)
	}
	return node{"properties": properties}
}

func (g *generator) fieldNode(field playbook.Field) node {
	value := node{"description": FieldSentence(field), "markdownDescription": FieldSentence(field)}
	maps.Copy(value, g.fieldKind(field))
	if field.Default != "" && len(field.Enum) > 0 {
		value["default"] = field.Default
	}
	return value
}

// FieldSentence returns the documentation of a tool's field, with its default.
func FieldSentence(field playbook.Field) string {
	text := field.Doc
	if field.Default != "" {
		text += " Default: " + field.Default + "."
	}
	return text
}

func (g *generator) fieldKind(field playbook.Field) node {
	written := node{"type": "string", "pattern": template}
	switch field.Kind {
	case playbook.KindText, playbook.KindStatement:
		return anyOf(acceptedWords(field, "string", "number", "boolean"), written)
	case playbook.KindLiteral:
		return anyOf(acceptedWords(field, "string"), listNode(acceptedWords(field, "string"), 0))
	case playbook.KindChoice:
		return anyOf(acceptedWords(field, "string"), g.keysOf(field))
	case playbook.KindMap:
		if len(field.Keys) > 0 {
			return anyOf(g.keysOf(field), written)
		}
		if len(field.Each) > 0 {
			return node{"type": "object", "additionalProperties": g.keysOf(playbook.Field{Keys: field.Each})}
		}
		return anyOf(typesNode("object"), written)
	case playbook.KindList:
		return anyOf(typesNode("array"), written)
	case playbook.KindColumns:
		return anyOf(typesNode("array"), typesNode("object"), written)
	case playbook.KindCode:
		return typesNode("string")
	case playbook.KindNumber:
		return anyOf(typesNode("number"), written)
	case playbook.KindBoolean:
		return anyOf(typesNode("boolean"), written)
	case playbook.KindDuration:
		return anyOf(durationNode(node{"type": "number", "minimum": 0}), written)
	case playbook.KindRequest:
		return g.requestNode()
	case playbook.KindCall:
		return g.nestedTool(field)
	case playbook.KindSteps:
		return listNode(sectionRef("step"), 1)
	case playbook.KindValue:
	}
	return node{}
}

// requestNode returns the schema of a map with the fields of http.
func (g *generator) requestNode() node {
	properties := node{"auth": typesNode("string")}
	for _, field := range g.toolSpec(playbook.NoticeTool).Fields {
		properties[field.Name] = node{}
	}
	return node{"type": "object", "required": []string{"url"}, "properties": properties, "additionalProperties": false}
}

// nestedTool returns the schema of a map with one of several tools and its fields.
func (g *generator) nestedTool(field playbook.Field) node {
	rules := lists.Map(field.Enum, func(name string) node {
		spec := g.toolSpec(name)
		names := append(spec.FieldNames(), playbook.FieldTool, "auth")
		if field.Name == playbook.FieldTo {
			names = append(names, playbook.RowWords...)
		}
		for _, key := range field.Keys {
			if slices.Contains(key.Needs, playbook.Need{Field: playbook.FieldTool, Value: name}) {
				names = append(names, key.Name)
			}
		}
		return node{"if": whereIs(playbook.FieldTool, node{"const": name}), "then": node{
			"propertyNames": node{"enum": sortedNames(names)}, "allOf": []node{{"$ref": "#/definitions/" + fieldsOf(name)}},
		}}
	})
	return node{"type": "object", "required": []string{playbook.FieldTool}, "properties": node{playbook.FieldTool: node{"enum": field.Enum}}, "allOf": rules}
}

// keysOf returns the schema of a map with fixed keys.
func (g *generator) keysOf(field playbook.Field) node {
	properties, required := node{}, []string{}
	for _, key := range field.Keys {
		properties[key.Name] = g.fieldNode(key)
		if key.Required {
			required = append(required, key.Name)
		}
	}
	return node{"type": "object", "properties": properties, "additionalProperties": false, "required": required}
}

// acceptedWords returns the schema of the words that a field accepts, in any case; if it accepts any, of all values
// of some types.
func acceptedWords(field playbook.Field, kinds ...string) node {
	if len(field.Enum) == 0 {
		return typesNode(kinds...)
	}
	patterns := lists.Map(field.Enum, anyCase)
	return anyOf(node{"enum": field.Enum}, node{"type": "string", "pattern": "^(" + strings.Join(patterns, "|") + ")$"})
}

// anyCase returns a pattern that matches a word in any case.
func anyCase(word string) string {
	var pattern strings.Builder
	for _, r := range word {
		if lower, upper := unicode.ToLower(r), unicode.ToUpper(r); lower != upper {
			pattern.WriteString("[" + string(upper) + string(lower) + "]")
			continue
		}
		pattern.WriteRune(r)
	}
	return pattern.String()
}
