package lowcode_test

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/internal/program/scaffold"
)

// configurer makes a configuration as the specification of a connector has it.
type configurer struct {
	api     *api
	start   time.Time
	secrets map[string]any // by name, of all depths
	keys    []string       // at the top
	// inAddress are the names of what addresses read, and atStart that of what one begins with.
	inAddress, atStart map[string]bool
}

// beginning matches a template at the beginning of an address.
var beginning = regexp.MustCompile(`^\s*\{\{\s*config(?:\[['"]|\.)(\w+)(?:['"]\])?\s*\}\}`)

// findAddresses finds what the addresses of requesters read.
func (c *configurer) findAddresses(of any) {
	switch of := of.(type) {
	case component:
		c.findAddresses(map[string]any(of))
	case map[string]any:
		for key, value := range of {
			text, is := value.(string)
			if !is || key != "url_base" && key != "path" && key != "url" || !strings.Contains(text, "config") {
				c.findAddresses(value)
				continue
			}
			if found := beginning.FindStringSubmatch(text); found != nil && key != "path" {
				c.atStart[found[1]] = true
			}
			for _, path := range pathsOf("config", text) {
				c.inAddress[path[len(path)-1]] = true
			}
		}
	case []any:
		for _, item := range of {
			c.findAddresses(item)
		}
	}
}

// specOf is the specification of a connector, of its manifest or of a file beside it.
func specOf(manifest component, read func(string) ([]byte, error)) component {
	spec := manifest.of("spec")
	if spec == nil && read != nil {
		for _, name := range []string{"spec.yaml", "spec.json"} {
			var node yaml.Node
			if data, err := read(name); err == nil && yaml.Unmarshal(data, &node) == nil {
				whole, _ := plainYAML(&node).(map[string]any)
				spec = whole
			}
		}
	}
	for _, key := range []string{"connection_specification", "connectionSpecification"} {
		if below := spec.of(key); below != nil {
			return below
		}
	}
	return spec
}

// placeholder is what a connection has in the place of a secret.
func placeholder(name string) string {
	return strings.ToUpper(scaffold.NameOf(notName.ReplaceAllString(name, "_"), "VALUE"))
}

// config is a configuration: what is required, what has a default, dates, and about half of the rest.
func (c *configurer) config(schema component, depth int) map[string]any {
	out := map[string]any{}
	for _, one := range []string{"oneOf", "anyOf", "allOf"} {
		if list := schema.list(one); len(list) > 0 {
			chosen := list[0]
			for _, other := range list {
				if text := strings.ToLower(fmt.Sprint(chosen)); strings.Contains(text, "refresh") || strings.Contains(text, "oauth") {
					chosen = other
				}
			}
			for key, value := range c.config(chosen, depth) {
				out[key] = value
			}
		}
	}
	properties := schema.of("properties")
	for _, name := range sortedKeys(properties) {
		property := properties.of(name)
		if depth == 0 {
			c.keys = append(c.keys, name)
		}
		needed := slices.Contains(listOf(schema["required"]), any(name)) || property["default"] != nil || property["const"] != nil ||
			property["airbyte_secret"] == true || c.inAddress[name] || strings.Contains(name, "date") || depth > 0 || c.api.draw(2, "optional", name) == 0
		if value := c.value(property, name, depth); needed && value != nil {
			out[name] = value
		}
	}
	return out
}

// secretName matches names of secrets.
var secretName = regexp.MustCompile(`(?i)key|token|secret|password`)

// notName matches what the names of secrets do not have.
var notName = regexp.MustCompile(`[^A-Za-z0-9]+`)

func (c *configurer) value(schema component, name string, depth int) any {
	text := strings.ToLower(name + " " + schema.text("format") + " " + schema.text("pattern"))
	isDate := strings.Contains(text, "date") || strings.HasPrefix(name, "start") && !strings.Contains(text, "end")
	switch {
	case schema["airbyte_secret"] == true:
		c.secrets[name] = placeholder(name)
		return c.secrets[name]
	case schema["const"] != nil:
		return plainJSON(schema["const"])
	case isDate && slices.Contains(listOfOne(schema["type"]), any("string")):
		return c.date(schema, name)
	case schema.of("default")["properties"] != nil: // an alternative in the place of its values
		return c.config(schema.of("default"), depth+1)
	case schema["default"] != nil:
		return plainJSON(schema["default"])
	case len(listOf(schema["enum"])) > 0:
		return plainJSON(listOf(schema["enum"])[0])
	}
	switch textOf(listOfOne(schema["type"])[0]) {
	case "integer", "number":
		if examples := listOf(schema["examples"]); len(examples) > 0 {
			return plainJSON(examples[0])
		}
		return 3
	case "boolean":
		return true
	case "object", "<nil>":
		return c.config(schema, depth+1)
	case "array":
		if list := listOf(schema["examples"]); len(list) > 0 {
			return plainJSON(listOfOne(list[0]))
		}
		if items := schema.of("items"); items["properties"] != nil {
			return []any{c.config(items, depth+1)}
		}
		if list := listOf(schema.of("items")["enum"]); len(list) > 0 {
			return []any{plainJSON(list[0])}
		}
		return []any{"one", "two"}
	}
	if schema["oneOf"] != nil || schema["properties"] != nil {
		return c.config(schema, depth+1)
	}
	return c.text(schema, name)
}

// text is a text: an example that is one word, or the name.
func (c *configurer) text(schema component, name string) string {
	if c.atStart[name] {
		return c.api.address + "/configured"
	}
	for _, example := range listOf(schema["examples"]) {
		text := textOf(plainJSON(example))
		if at, err := url.Parse(text); err == nil && strings.HasPrefix(at.Scheme, "http") {
			return strings.TrimRight(text, "/")
		}
		if text != "" && !strings.ContainsAny(text, "<> {}") {
			return text
		}
	}
	if strings.Contains(strings.ToLower(name), "url") {
		return c.api.address + "/configured"
	}
	return "my-" + strings.ReplaceAll(name, "_", "-")
}

// date is where reading starts, or yesterday's for an end.
func (c *configurer) date(schema component, name string) string {
	at := c.start
	if strings.Contains(name, "end") || strings.Contains(name, "until") {
		at = c.api.now.AddDate(0, 0, -1).Truncate(24 * time.Hour)
	}
	pattern := schema.text("pattern") + schema.text("format") + fmt.Sprint(schema["examples"])
	switch {
	case schema.text("pattern") == "^[0-9]{4}-[0-9]{2}$":
		return formatTime(at, "%Y-%m")
	case strings.Contains(schema.text("description"), "YYYYMMDD"):
		return formatTime(at, "%Y%m%d")
	case strings.Contains(schema.text("pattern"), "T") && strings.Contains(schema.text("pattern"), `.[0-9]`):
		return formatTime(at, "%Y-%m-%dT%H:%M:%S.000Z")
	case strings.Contains(pattern, "T00") || strings.Contains(schema.text("pattern"), "T") || strings.Contains(schema.text("format"), "time"):
		return formatTime(at, "%Y-%m-%dT%H:%M:%SZ")
	case strings.Contains(schema.text("pattern"), " "):
		return formatTime(at, "%Y-%m-%d %H:%M:%S")
	}
	return formatTime(at, "%Y-%m-%d")
}

// complete gives a configuration the keys that a manifest reads and its specification lacks. What authenticators read
// is as connections have it: their placeholders are the names in capitals.
func (c *configurer) complete(config map[string]any, of any, login bool) {
	switch of := of.(type) {
	case component:
		c.complete(config, map[string]any(of), login)
	case map[string]any:
		for _, key := range sortedKeys(of) {
			c.complete(config, of[key], login || key == "authenticator")
		}
	case []any:
		for _, item := range of {
			c.complete(config, item, login)
		}
	case string:
		if !strings.Contains(of, "config") || !strings.Contains(of, "{") {
			return
		}
		defer func() { _ = recover() }() // what is no template
		for _, path := range pathsOf("config", of) {
			name := path[len(path)-1]
			_, missing := valueAt(config, path).(undefined)
			switch {
			case login && !addresses.MatchString(textOf(valueAt(config, path))):
				set(config, path, placeholder(name))
			case missing && (strings.Contains(of, ".get(") || slices.Contains(c.keys, path[0])) || !missing:
			case secretName.MatchString(name):
				c.secrets[name] = placeholder(name)
				set(config, path, c.secrets[name])
			case strings.Contains(name, "date"):
				set(config, path, c.date(nil, name))
			default:
				set(config, path, c.text(nil, name))
			}
		}
	}
}
