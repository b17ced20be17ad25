package scaffold

import (
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"reprise/interpreter/playbook"
)

// Bounds of a sample that is generated from a schema.
const (
	// mostSampleDepth is how deep a sample follows a schema. Recursive schemas have no end.
	mostSampleDepth = 6
	// mostSampleMembers bounds the members of each object in a sample, which people read.
	mostSampleMembers = 40
	// mostSampleValues bounds the total values of a sample: schemas that refer to each other grow with every level.
	mostSampleValues = 2000
)

// sampler generates one sample.
type sampler struct {
	left int // values that it may still make
}

// sampleOf generates a sample of a schema.
func sampleOf(ref *openapi3.SchemaRef, name string) any {
	return (&sampler{left: mostSampleValues}).sampleValue(ref, name, 0)
}

// sampleValue generates a value that matches a schema, for people to change and for tests to respond with; name is
// the member's name, or "". Recursive schemas are cut off at a depth.
func (s *sampler) sampleValue(ref *openapi3.SchemaRef, name string, depth int) any {
	if s.left--; ref == nil || ref.Value == nil || depth > mostSampleDepth || s.left < 0 {
		return nil
	}
	schema := ref.Value
	switch {
	case schema.Example != nil:
		return toCanonical(schema.Example)
	case len(schema.Examples) > 0:
		return toCanonical(schema.Examples[0])
	case schema.Const != nil:
		return toCanonical(schema.Const)
	case schema.Default != nil:
		return toCanonical(schema.Default)
	case len(schema.Enum) > 0:
		return toCanonical(schema.Enum[0])
	}
	members := map[string]any{}
	for _, part := range schema.AllOf {
		if inner, isMap := s.sampleValue(part, name, depth+1).(map[string]any); isMap {
			maps.Copy(members, inner)
		}
	}
	for _, choices := range []openapi3.SchemaRefs{schema.OneOf, schema.AnyOf} {
		if len(choices) > 0 && len(schema.Properties) == 0 {
			return s.sampleValue(firstOf(choices), name, depth+1)
		}
	}
	if len(schema.Properties) > 0 || len(members) > 0 || schema.Type.Includes(openapi3.TypeObject) {
		return s.sampleMembers(schema, members, depth)
	}
	if schema.Items != nil || schema.Type.Includes(openapi3.TypeArray) {
		return []any{s.sampleValue(schema.Items, strings.TrimSuffix(name, "s"), depth+1)}
	}
	return sampleScalar(schema, name)
}

// firstOf returns the first alternative that is not null.
func firstOf(choices openapi3.SchemaRefs) *openapi3.SchemaRef {
	isNull := func(ref *openapi3.SchemaRef) bool { return ref.Value != nil && ref.Value.Type.Is("null") }
	if i := slices.IndexFunc(choices, func(ref *openapi3.SchemaRef) bool { return !isNull(ref) }); i >= 0 {
		return choices[i]
	}
	return choices[0]
}

func (s *sampler) sampleMembers(schema *openapi3.Schema, members map[string]any, depth int) any {
	for i, key := range playbook.SortedKeys(schema.Properties) {
		if i == mostSampleMembers {
			break
		}
		members[key] = s.sampleValue(schema.Properties[key], key, depth+1)
	}
	return members
}

func sampleScalar(schema *openapi3.Schema, name string) any {
	lower := strings.ToLower(name)
	switch {
	case schema.Type.Includes(openapi3.TypeBoolean):
		return false
	case schema.Type.Includes(openapi3.TypeInteger), schema.Type.Includes(openapi3.TypeNumber):
		return 1
	case schema.Format == "date-time":
		return "2024-01-01T00:00:00Z"
	case schema.Format == "date":
		return "2024-01-01"
	case schema.Format == "uuid":
		return "00000000-0000-4000-8000-000000000001"
	case schema.Format == "email":
		return "ada@example.com"
	case schema.Format == "uri", schema.Format == "url", strings.HasSuffix(lower, "url"), strings.HasSuffix(lower, "link"), strings.HasSuffix(lower, "href"):
		return "https://api.example.com/" + lower
	}
	return "text"
}
