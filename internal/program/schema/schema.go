// Package schema generates the JSON Schema of playbooks, for editors and other tools. It uses the tables that decode
// the language and the specs of the tools, so it contains every word, type, bound and default. Rules about more than
// one place, such as names and routes, are left to `starter validate`.
package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/internal/program/reference"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
)

// File is the path of the schema in the repository.
const File = "schema/playbook.schema.json"

// node is a schema, or a part of one.
type node map[string]any

// generator has what the definitions share.
type generator struct {
	tools    playbook.Tools
	words    *reference.Reference
	sections map[string]playbook.Section
}

// Generate returns the schema, draft 7, as indented JSON with a final line break. It accepts every playbook in which
// `starter validate` finds no error, given the same tools.
func Generate(tools playbook.Tools) ([]byte, error) {
	g := &generator{tools: tools, words: reference.New(tools), sections: map[string]playbook.Section{}}
	definitions := node{}
	for _, section := range playbook.Sections() {
		g.sections[section.Name] = section
	}
	for _, section := range playbook.Sections() {
		definitions[sectionSlug(section.Name)] = g.sectionNode(section)
	}
	for _, name := range g.toolNames() {
		definitions[fieldsOf(name)] = g.toolFields(name)
	}
	root := node{
		"$comment":    "Generated: make reference",
		"$schema":     "http://json-schema.org/draft-07/schema#",
		"title":       "Reprise playbook",
		"description": "A Reprise playbook. Playbooks with apiVersion " + playbook.OlderVersion + " are only checked by starter validate.",
		"definitions": definitions,
		"if":          whereIs("apiVersion", node{"const": playbook.Version}),
		"then":        sectionRef("playbook"),
		"else": node{
			"type":       "object",
			"required":   []string{"apiVersion", "kind", "metadata", "workflow"},
			"properties": node{"apiVersion": node{"enum": []string{playbook.Version, playbook.OlderVersion}}, "kind": node{"enum": []string{"Playbook"}}},
		},
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return out.Bytes(), nil
}

func sectionSlug(section string) string { return strings.ReplaceAll(section, " ", "_") }

func sectionRef(section string) node { return node{"$ref": "#/definitions/" + sectionSlug(section)} }

// fieldsOf returns the name of the definition of a tool's fields.
func fieldsOf(tool string) string { return "fields_of_" + tool }

// whereIs returns a schema that matches a map with a certain value of a key.
func whereIs(key string, value node) node {
	return node{"required": []string{key}, "properties": node{key: value}}
}

func anyOf(some ...node) node { return node{"anyOf": some} }

// sectionNode returns the definition of a section.
func (g *generator) sectionNode(s playbook.Section) node {
	properties, all := node{}, []node{}
	for _, key := range s.Keys {
		entry, _ := g.words.Key(s.Name, key.Name)
		one := describeKey(g.valueNode(s, key), key, entry.Snippet)
		for _, name := range keySpellings(key) {
			properties[name] = one
		}
		if key.Required && s.Name != "retry policy" && s.Name != "next entry" {
			all = append(all, requireNames(keySpellings(key)...))
		}
	}
	definition := node{"type": "object", "properties": properties}
	switch s.Name {
	case "retry policy": // a use is alone
		definition["if"], definition["then"], definition["else"] = node{"required": []string{"use"}}, node{"maxProperties": 1}, node{"required": []string{"when"}}
	case "next entry":
		all = append(all, routeRules()...)
	case "playbook":
		all = append(all, node{"properties": node{"workflow": node{"minItems": 1}}})
	case "partitions":
		unit := node{"enum": []string{"hour", "day", "week", "month", "year"}}
		all = append(all, node{"properties": node{"every": anyOf(unit, typesNode("number"), node{"type": "string", "pattern": durationPattern})}})
	case "concurrency":
		all = append(all, requireNames("key"))
	case "schedule":
		all = append(all, requireNames("cron", "every"))
	case "incremental":
		all = append(all, requireNames("initial_value", "token"))
	}
	if !s.Open {
		definition["additionalProperties"] = false
	} else if s.Name != "tool" { // which the section around it completes
		all = append(all, g.callRules(s)...)
	}
	if len(all) > 0 {
		definition["allOf"] = all
	}
	return definition
}

// durationPattern is the pattern of Go's durations, such as 1h30m.
const durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`

// routeRules returns the rules about keys that an entry of next must combine.
func routeRules() []node {
	return []node{
		{"oneOf": []node{{"required": []string{"step"}}, {"required": []string{"then"}}, {"required": []string{"else"}}}},
		{"dependencies": node{"then": []string{"when"}, "args": []string{"step"}, "else": node{"not": node{"required": []string{"when"}}}}},
	}
}

func keySpellings(key playbook.Key) []string { return append([]string{key.Name}, key.Aliases...) }

func requireNames(names ...string) node {
	some := lists.Map(names, func(name string) node { return node{"required": []string{name}} })
	if len(some) == 1 {
		return some[0]
	}
	return anyOf(some...)
}

// describeKey adds a description for people to the schema of a value. example is the key with a value.
func describeKey(value node, key playbook.Key, example string) node {
	text := keySentence(key, example)
	with := node{"description": strings.ReplaceAll(text, "`", ""), "markdownDescription": text}
	maps.Copy(with, value)
	if _, isRef := value["$ref"]; isRef { // beside which draft 7 reads nothing
		delete(with, "$ref")
		with["allOf"] = []node{value}
	}
	if key.Default != "" {
		with["default"] = valueOf("default: " + key.Default)
	}
	if shown := valueOf(example); shown != nil && key.Kind != playbook.WordSections {
		with["examples"] = []any{shown}
	}
	return with
}

// keySentence returns the documentation of a key, with a one-line example, in Markdown.
func keySentence(key playbook.Key, example string) string {
	text := key.Doc
	if text != "" {
		text = strings.ToUpper(text[:1]) + text[1:] + "."
	}
	if strings.Contains(example, "\n") {
		return text
	}
	return text + " Such as `" + example + "`."
}

// valueOf returns the value of the only key in a YAML text; nil if there is none.
func valueOf(text string) any {
	var pair map[string]any
	if yaml.Unmarshal([]byte(text), &pair) != nil || len(pair) != 1 {
		return nil
	}
	for _, value := range pair {
		if data, err := json.Marshal(value); err == nil { // times become text
			var plain any
			if json.Unmarshal(data, &plain) == nil {
				return plain
			}
		}
	}
	return nil
}

// toolNames returns the accepted values of `tool`, including that for the workbook.
func (g *generator) toolNames() []string {
	names := append([]string{playbook.WorkbookTool}, g.tools.Names()...)
	slices.Sort(names)
	return names
}

// toolSpec returns the spec of a tool. The spec for the workbook has the name of an entry.
func (g *generator) toolSpec(tool string) playbook.ToolSpec {
	if tool == playbook.WorkbookTool {
		return playbook.ToolSpec{Name: tool, Fields: []playbook.Field{{
			Name: "name", Kind: playbook.KindLiteral, Required: true, Doc: "The name of the entry.",
		}}}
	}
	spec, _ := g.tools.Spec(tool)
	return spec
}

// callableTools returns the tools that a section may call.
func (g *generator) callableTools(section string) []string {
	return slices.DeleteFunc(g.toolNames(), func(name string) bool {
		spec := g.toolSpec(name)
		switch section {
		case "step":
			return spec.SinkOnly
		case "workbook entry":
			return spec.SinkOnly || name == playbook.WorkbookTool
		}
		return !spec.Writes
	})
}
