package docs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reprise/interpreter/lists"
)

// openAPI is the part of an OpenAPI document that the page of the HTTP API uses.
type openAPI struct {
	Info  struct{ Description string }
	Paths map[string]map[string]operation
	// Components are the objects that other parts refer to.
	Components struct {
		SecuritySchemes map[string]struct{ Type, Scheme, Description string }
		Schemas         map[string]schema
		Responses       map[string]response
	}
}

type operation struct {
	Summary, Description string
	Security             *[]map[string]any // nil is that of the document
	Parameters           []struct {
		Name, In, Description string
		Required              bool
	}
	RequestBody *struct {
		Required bool
		Content  map[string]struct{ Schema schema }
	}
	Responses map[string]response
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]struct{ Schema schema }
}

type schema struct {
	Ref         string `json:"$ref"`
	Type        any
	Description string
	Properties  map[string]schema
	Required    []string
	Enum        []any
	Const       any
}

// methods are the HTTP methods in the order in which the page lists them.
var methods = []string{"get", "head", "post", "put", "patch", "delete"}

// httpAPIPage returns the page of the HTTP API from an OpenAPI document.
func httpAPIPage(document []byte) (string, error) {
	var api openAPI
	if err := json.Unmarshal(document, &api); err != nil {
		return "", fmt.Errorf("read the OpenAPI document: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", api.Info.Description)
	for _, path := range slices.Sorted(maps.Keys(api.Paths)) {
		for _, method := range methods {
			if one, found := api.Paths[path][method]; found {
				api.writeRequest(&b, strings.ToUpper(method)+" "+path, one)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(api.Components.Schemas)) {
		fmt.Fprintf(&b, "\n## The object %s\n\n", name)
		one := api.Components.Schemas[name]
		if one.Description != "" {
			fmt.Fprintf(&b, "%s\n\n", one.Description)
		}
		b.WriteString(markdownTable(one.memberRows()))
	}
	return b.String(), nil
}

func (api openAPI) writeRequest(b *strings.Builder, title string, one operation) {
	fmt.Fprintf(b, "\n## %s\n\n%s.", codeSpan(title), one.Summary)
	if one.Description != "" {
		fmt.Fprintf(b, " %s", one.Description)
	}
	fmt.Fprintf(b, "\n\n%s\n", api.accessText(one))
	if len(one.Parameters) > 0 {
		rows := [][]string{{"parameter", "in", "what it says"}}
		for _, parameter := range one.Parameters {
			rows = append(rows, []string{codeSpan(parameter.Name), parameter.In, parameter.Description})
		}
		b.WriteString("\n" + markdownTable(rows))
	}
	if one.RequestBody != nil {
		fmt.Fprintf(b, "\nThe body is %s.\n", strings.Join(slices.Sorted(maps.Keys(one.RequestBody.Content)), ", or "))
		for _, kind := range slices.Sorted(maps.Keys(one.RequestBody.Content)) {
			if rows := one.RequestBody.Content[kind].Schema.memberRows(); len(rows) > 1 {
				b.WriteString("\n" + markdownTable(rows))
				break
			}
		}
	}
	rows := [][]string{{"status", "means", "body"}}
	for _, status := range slices.Sorted(maps.Keys(one.Responses)) {
		answer := api.resolveResponse(one.Responses[status])
		bodies := lists.Map(slices.Sorted(maps.Keys(answer.Content)), func(kind string) string { return kind + answer.Content[kind].Schema.schemaLink() })
		rows = append(rows, []string{codeSpan(status), answer.Description, strings.Join(bodies, ", ")})
	}
	b.WriteString("\n" + markdownTable(rows))
}

// accessText describes who may send a request.
func (api openAPI) accessText(one operation) string {
	if one.Security == nil || len(*one.Security) == 0 {
		return "It needs no token."
	}
	for _, way := range *one.Security {
		if len(way) == 0 {
			return "It needs a token, `Authorization: Bearer TOKEN`, or the signature of a sender."
		}
	}
	return "It needs a token, `Authorization: Bearer TOKEN`."
}

func (api openAPI) resolveResponse(answer response) response {
	if name, is := strings.CutPrefix(answer.Ref, "#/components/responses/"); is {
		return api.Components.Responses[name]
	}
	return answer
}

// schemaLink returns a link to the schema that a body refers to; "" for a body without a reference.
func (s schema) schemaLink() string {
	name, is := strings.CutPrefix(s.Ref, "#/components/schemas/")
	if !is {
		return ""
	}
	return fmt.Sprintf(": [%s](#the-object-%s)", name, strings.ToLower(name))
}

// memberRows returns the table rows of an object's members.
func (s schema) memberRows() [][]string {
	rows := [][]string{{"member", "type", "what it says"}}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		member := s.Properties[name]
		says := member.Description
		if slices.Contains(s.Required, name) {
			says = strings.TrimSpace("Always there. " + says)
		}
		rows = append(rows, []string{codeSpan(name), member.typeText(), says})
	}
	return rows
}

// typeText describes the possible values of a member.
func (s schema) typeText() string {
	words := lists.Map(s.Enum, func(one any) string { return codeSpan(fmt.Sprint(one)) })
	switch types := s.Type.(type) {
	case string:
		words = append(words, types)
	case []any:
		for _, one := range types {
			words = append(words, fmt.Sprint(one))
		}
	}
	if s.Const != nil {
		words = append(words, codeSpan(fmt.Sprint(s.Const)))
	}
	return cmp.Or(strings.Join(words, ", "), strings.TrimPrefix(s.schemaLink(), ": "), "any value")
}
