package connector

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/internal/program/node"
	"reprise/interpreter/credential"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook/check"
)

// trace records the paths of the configuration keys that templates read.
type trace struct {
	plain, secret [][]string
	// required lists the keys without a default.
	required [][]string
}

func (t *trace) addPaths(paths [][]string, to *[][]string) {
	for _, path := range paths {
		if !slices.ContainsFunc(*to, func(known []string) bool { return slices.Equal(known, path) }) {
			*to = append(*to, path)
		}
	}
}

// mergeTrace adds the keys of another trace.
func (t *trace) mergeTrace(other trace) {
	t.addPaths(other.plain, &t.plain)
	t.addPaths(other.secret, &t.secret)
	t.addPaths(other.required, &t.required)
}

// secretsStep is the name of the step that reads the secrets which no connection can send.
const secretsStep = "secrets"

// configKeys returns a resolver of configuration keys that records them in the trace. Plain keys become keys of
// workload, secret ones members of the result of the secrets step. Optional keys may be missing.
func (c *converter) configKeys(into *trace, optional bool) func(keys []any) (code, error) {
	return func(keys []any) (code, error) {
		var path []string
		for i, key := range keys {
			text, isText := key.(string)
			if !isText && (i == 0 || path == nil) {
				return unsupportedError("a key of the configuration that is no constant")
			}
			if !isText { // an element of a list: the list as a whole, or a member of one of its objects
				if i+1 == len(keys) {
					break
				}
				text = fmt.Sprint(key)
			}
			path = append(path, text)
		}
		if len(path) == 0 {
			return unsupportedError("the configuration as a whole")
		}
		if c.isSecret(path) {
			into.addPaths([][]string{path}, &into.secret)
			return code{text: secretsStep + memberPath(keys[len(keys)-1:]), prec: precAtom, calm: true, path: true}, nil
		}
		into.addPaths([][]string{path}, &into.plain)
		if !optional {
			into.addPaths([][]string{path}, &into.required)
		}
		at := path0(path[0], keys)
		at.falsy = false // it does not depend on the response
		at.texty = c.schemaOf(path).text("type") == "string"
		return at, nil
	}
}

func path0(first string, keys []any) code {
	if check.FreeName(first) != first {
		return pathCode("workload", keys...)
	}
	return pathCode(first, keys[1:]...)
}

// readSpec returns the connection specification from the manifest, or from a file next to it.
func (c *converter) readSpec() component {
	spec := c.manifest.childAt("spec")
	for _, name := range []string{"spec.yaml", "spec.json"} {
		if spec != nil || c.Read == nil {
			break
		}
		data, err := c.Read(name)
		if err != nil {
			continue
		}
		var root yaml.Node
		if yaml.Unmarshal(data, &root) == nil && len(root.Content) > 0 {
			whole, _ := plainValue(root.Content[0]).(map[string]any)
			spec = whole
		}
	}
	if below := spec.childAt("connection_specification"); below != nil {
		return below
	}
	return spec.childAt("connectionSpecification")
}

// schemaOf returns the schema of a configuration key; nil if the specification lacks it. It searches all
// alternatives.
func (c *converter) schemaOf(path []string) component {
	at := c.spec
	for _, key := range path {
		if at = propertyAt(at, key); at == nil {
			return nil
		}
	}
	return at
}

// isPlace reports whether a key of a path is the place of an object in a list.
func isPlace(key string) bool {
	_, err := strconv.ParseUint(key, 10, 16)
	return err == nil
}

func propertyAt(of component, key string) component {
	if items := of.childAt("items"); items != nil && isPlace(key) {
		return items
	}
	if found := of.childAt("properties").childAt(key); found != nil {
		return found
	}
	for _, alternatives := range []string{"oneOf", "anyOf", "allOf"} {
		for _, one := range of.componentList(alternatives) {
			if found := propertyAt(one, key); found != nil {
				return found
			}
		}
	}
	return nil
}

// isSecret reports whether a configuration key is a secret, according to the specification or, without one, its name.
func (c *converter) isSecret(path []string) bool {
	last := path[len(path)-1]
	schema := c.schemaOf(path)
	if schema == nil {
		return credential.MayName(last)
	}
	secret, _ := schema["airbyte_secret"].(bool)
	return secret || credential.NamesSecret(last)
}

// sampleValue returns the value for a workload key: its default or, if it is required, an example.
func (c *converter) sampleValue(path []string) any {
	schema := c.schemaOf(path)
	last := path[len(path)-1]
	if value, has := defaultAbove(c.schemaOf, path); has {
		return toCanonical(value)
	}
	for _, key := range []string{"default", "const"} {
		if value, has := schema[key]; has {
			return toCanonical(value)
		}
	}
	if schema == nil && !slices.ContainsFunc(c.read.required, func(known []string) bool { return slices.Equal(known, path) }) {
		return nil
	}
	isDate := strings.Contains(last, "date") || strings.HasPrefix(last, "start") || strings.HasPrefix(schema.text("format"), "date")
	if schema != nil && !c.isRequired(path) && (!isDate || !strings.Contains(last, "start")) {
		return nil
	}
	layout := c.forms[strings.Join(path, ".")]
	values, _ := schema["enum"].([]any)
	if examples, _ := schema["examples"].([]any); len(examples) > 0 && len(values) > 0 {
		for _, one := range values {
			if strings.EqualFold(textOf(one), textOf(examples[0])) {
				return toCanonical(one)
			}
		}
	} else if len(examples) > 0 && !placeholder.MatchString(textOf(examples[0])) {
		if _, isList := examples[0].([]any); schema.text("type") == "array" && !isList {
			return []any{toCanonical(examples[0])}
		}
		if _, err := time.Parse(layout, textOf(examples[0])); layout == "" || err == nil || aDate.MatchString(textOf(examples[0])) {
			return toCanonical(examples[0])
		}
	}
	if layout != "" {
		return time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC).Format(layout)
	}
	if len(values) > 0 {
		return toCanonical(values[0])
	}
	kind := schema.text("type")
	switch {
	case kind == "integer", kind == "number":
		return 1
	case kind == "boolean":
		return false
	case kind == "array":
		return []any{}
	case isDate && strings.Contains(schema.text("pattern"), "T"), isDate && schema.text("format") == "date-time":
		return "2024-01-01T00:00:00Z"
	case isDate:
		return "2024-01-01"
	}
	return ""
}

// defaultAbove returns the value of a key in the default of an object that it belongs to: of several alternatives, the
// default chooses one. Some manifests have the alternative itself there, with its properties.
func defaultAbove(schemaOf func(path []string) component, path []string) (any, bool) {
	for i := 1; i < len(path); i++ {
		chosen := schemaOf(path[:i]).childAt("default")
		for _, key := range path[i : len(path)-1] {
			below := chosen.childAt(key)
			if below == nil {
				below = propertyAt(chosen, key)
			}
			chosen = below
		}
		last := path[len(path)-1]
		if value, has := chosen[last]; has {
			return value, true
		}
		if value, has := propertyAt(chosen, last)["const"]; has {
			return value, true
		}
	}
	return nil, false
}

// toCanonical converts a value to the types that expressions use.
func toCanonical(value any) any {
	data, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	decoded, err := expression.Decode(data)
	if err != nil {
		return nil
	}
	return decoded
}

// placeholder matches an example that describes the format of a time instead of being one.
var placeholder = regexp.MustCompile(`(?i)yyyy|dd/mm`)

// textOf returns a value as text; a template is returned unevaluated.
func textOf(of any) string {
	if template, isTemplate := of.(node.Verbatim); isTemplate {
		return string(template)
	}
	return expression.Text(of)
}

func (c *converter) isRequired(path []string) bool {
	return isRequired(c.spec, path)
}

func isRequired(of component, path []string) bool {
	if items := of.childAt("items"); items != nil && isPlace(path[0]) {
		return len(path) == 1 || isRequired(items, path[1:])
	}
	required, _ := of["required"].([]any)
	if found := of.childAt("properties").childAt(path[0]); found != nil {
		if len(path) > 1 {
			return isRequired(found, path[1:])
		}
		return slices.Contains(required, any(path[0]))
	}
	for _, alternatives := range []string{"oneOf", "anyOf", "allOf"} {
		for _, one := range of.componentList(alternatives) {
			if propertyAt(one, path[0]) != nil {
				return isRequired(one, path)
			}
		}
	}
	return false
}

// workloadValues returns the plain configuration keys that are read, with their values.
func (c *converter) workloadValues() map[string]any {
	out := map[string]any{}
	for _, path := range c.read.plain {
		out[path[0]] = withValue(c, out[path[0]], path, 1)
	}
	return out
}

// withValue returns a value of workload with that of a path below it; depth keys of the path lead to the value itself.
func withValue(c *converter, of any, path []string, depth int) any {
	list, isList := of.([]any)
	below, isMap := of.(map[string]any)
	switch {
	case depth == len(path) && (isMap || isList):
		return of // what is read of it is there
	case depth == len(path):
		return c.sampleValue(path)
	case isPlace(path[depth]) && c.schemaOf(path[:depth]).childAt("properties").childAt(path[depth]) == nil:
		place, _ := strconv.Atoi(path[depth])
		for len(list) <= place {
			list = append(list, map[string]any{})
		}
		list[place] = withValue(c, list[place], path, depth+1)
		return list
	case !isMap:
		below = map[string]any{}
	}
	below[path[depth]] = withValue(c, below[path[depth]], path, depth+1)
	return below
}
