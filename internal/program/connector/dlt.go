package connector

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"reprise/internal/program/connector/pyliteral"
	"reprise/internal/program/scaffold"
	"reprise/interpreter/credential"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// restAPI converts one configuration of dlt's rest_api source.
type restAPI struct {
	*converter

	client, defaults component
	resources        []*dltResource
}

// dltResource is a resource with the defaults merged into it.
type dltResource struct {
	name         string
	of, endpoint component
	params       map[string]any // without those that are bound to the path
	step         *step
	open         bool             // its conversion has begun
	included     map[string]field // fields of its parent's rows that its rows get
	start, end   *code            // of its incremental reading
}

// field is a field of a parent's rows in the elements of a loop.
type field struct {
	path []any  // in the row of the parent
	name string // in the element
}

// ResourceNames returns the names of the selected resources of a configuration of dlt's rest_api, whose dict begins in a
// line, see Options.
func ResourceNames(data []byte, line int) ([]string, error) {
	config, err := readRestAPI(data, line)
	if err != nil {
		return nil, err
	}
	r := &restAPI{converter: &converter{}, defaults: config.childAt("resource_defaults")}
	err = r.readResources(config)
	var names []string
	for _, one := range r.resources {
		if one.isSelected() {
			names = append(names, one.name)
		}
	}
	return names, err
}

// isSelected reports whether dlt loads a resource, or reads it for others alone.
func (of *dltResource) isSelected() bool { return of.of["selected"] != false }

func (r *restAPI) resourceNames() (names []string) {
	for _, one := range r.resources {
		names = append(names, one.name)
	}
	return names
}

// ConvertRestAPI converts a configuration of dlt's rest_api to a playbook: JSON, or Python source that has it as a dict,
// which is read and never run. The error says what cannot be read, or which requested resource does not exist.
func ConvertRestAPI(data []byte, options Options) (*Result, error) {
	config, err := readRestAPI(data, options.Line)
	if err != nil {
		return nil, err
	}
	c, err := newConverter(options, "resource", "of a rest_api source of dlt")
	if err != nil {
		return nil, err
	}
	r := &restAPI{converter: c, client: config.childAt("client"), defaults: config.childAt("resource_defaults")}
	r.reserveKeys(map[string]any(config))
	if err := r.readResources(config); err != nil {
		return nil, err
	}
	for _, name := range options.Streams {
		if r.findResource(name) == nil {
			return nil, fmt.Errorf("the configuration has no resource %q; it has %s", name, strings.Join(r.resourceNames(), ", "))
		}
	}
	r.noteUnknown(nil, "", config, "client", "resources", "resource_defaults")
	for _, one := range readRemarks(data, options.Line) {
		r.gaps = append(r.gaps, Gap{Component: fmt.Sprintf("line %d", one.Line), Reason: one.Text})
	}
	r.noteUnknown(nil, "", r.client, "base_url", "headers", "auth", "paginator")
	result := &Result{}
	for _, one := range r.resources {
		if slices.Contains(options.Streams, one.name) || len(options.Streams) == 0 && one.isSelected() {
			r.stepOf(one).written = true
			result.Streams = append(result.Streams, one.name)
		}
	}
	if len(result.Streams) == 0 {
		return nil, fmt.Errorf("%w: it has no resource that is selected", errNoConfiguration)
	}
	if err := c.tooManySteps(); err != nil {
		return nil, err
	}
	if found := pipelineDestination.FindSubmatch(data); found != nil {
		if name := string(found[1]); name != sinkDestinations[c.Sink] {
			c.addNote("the source names the destination %s; the playbook's is %s, which --sink chooses", name, c.Sink)
		}
	}
	c.writeResult(result)
	return result, nil
}

// pipelineDestination matches the destination of a pipeline in Python source.
var pipelineDestination = regexp.MustCompile(`\bdestination\s*=\s*(?:["']|dlt\.destinations\.)(\w+)`)

// sinkDestinations are what dlt calls the sinks.
var sinkDestinations = map[string]string{scaffold.SinkPostgres: "postgres", scaffold.SinkFile: "filesystem"}

// errNoConfiguration says that a file has no configuration of rest_api.
var errNoConfiguration = errors.New("expected a configuration of dlt's rest_api")

// readRestAPI reads a configuration from JSON or Python. line is that in which its dict begins, 0 for the only one.
func readRestAPI(data []byte, line int) (component, error) {
	if trimmed := bytes.TrimSpace(data); bytes.HasPrefix(trimmed, []byte("{")) {
		if value, err := expression.Decode(trimmed); err == nil {
			config := expression.MapOf(value)
			if config["client"] == nil || config["resources"] == nil {
				return nil, fmt.Errorf("%w: it has no client and resources", errNoConfiguration)
			}
			return config, nil
		}
	}
	config, err := pyliteral.FindDict(string(data), line, "client", "resources")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoConfiguration, err)
	}
	return config, nil
}

// readRemarks returns what Python source does beside the configuration; nothing for JSON.
func readRemarks(data []byte, line int) []pyliteral.Remark {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil
	}
	return pyliteral.Remarks(string(data), line, "client", "resources")
}

// reserveKeys reserves the names of workload keys for references to the configuration.
func (r *restAPI) reserveKeys(of any) {
	switch of := of.(type) {
	case component:
		r.reserveKeys(map[string]any(of))
	case map[string]any:
		for _, value := range of {
			r.reserveKeys(value)
		}
	case []any:
		for _, value := range of {
			r.reserveKeys(value)
		}
	case *pyliteral.FString:
		r.reserveKeys(of.Parts)
	case *pyliteral.NameExpr:
		r.names[keyOfReference(of)] = true
	}
}

// readResources reads the resources with their defaults.
func (r *restAPI) readResources(config component) error {
	list, isList := config["resources"].([]any)
	if !isList {
		return fmt.Errorf("%w: its resources are no list", errNoConfiguration)
	}
	for _, one := range list {
		of := component{}
		switch one := one.(type) {
		case string:
			of["name"], of["endpoint"] = one, map[string]any{"path": one}
		case map[string]any:
			of = maps.Clone(one)
		default:
			r.gaps = append(r.gaps, Gap{Component: "resource", Reason: kindOf(one) + " is no resource with an endpoint"})
			continue
		}
		resource, err := r.mergeDefaults(of)
		if err != nil {
			return err
		}
		if r.findResource(resource.name) != nil {
			return fmt.Errorf("the resource %q is defined twice", resource.name)
		}
		r.resources = append(r.resources, resource)
	}
	return nil
}

func (r *restAPI) findResource(name string) *dltResource {
	for _, one := range r.resources {
		if one.name == name {
			return one
		}
	}
	return nil
}

// mergeDefaults returns a resource over resource_defaults: of the endpoint, params and json are merged by their keys, and
// so are columns.
func (r *restAPI) mergeDefaults(of component) (*dltResource, error) {
	endpoint := endpointOf(of)
	if of.text("name") == "" {
		return nil, fmt.Errorf("%w: a resource has no constant name", errNoConfiguration)
	}
	merged, below := component{}, component{}
	maps.Copy(merged, r.defaults)
	usual := endpointOf(merged)
	maps.Copy(below, usual)
	maps.Copy(below, endpoint)
	for _, key := range []string{"params", "json"} {
		if usual.childAt(key) != nil && endpoint.childAt(key) != nil {
			below[key] = mergeMaps(usual.childAt(key), endpoint.childAt(key))
		}
	}
	if usual := merged.childAt("columns"); usual != nil && of.childAt("columns") != nil {
		of["columns"] = mergeMaps(usual, of.childAt("columns"))
	}
	maps.Copy(merged, of)
	if _, given := endpoint["path"]; !given {
		below["path"] = of.text("name")
	}
	out := &dltResource{name: of.text("name"), of: merged, endpoint: below, params: map[string]any{}, included: map[string]field{}}
	maps.Copy(out.params, below.childAt("params"))
	return out, nil
}

func mergeMaps(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	maps.Copy(out, over)
	return out
}

// dictOf returns a dict; nil if a value is none.
func dictOf(of any) component {
	dict, _ := of.(map[string]any)
	return dict
}

// endpointOf returns the endpoint of a resource, which may be its path alone.
func endpointOf(of component) component {
	if path := of.text("endpoint"); path != "" {
		return component{"path": path}
	}
	return of.childAt("endpoint")
}

// noteUnknown adds a gap for each key that is not among the known ones; s may be nil.
func (r *restAPI) noteUnknown(s *step, at string, of component, known ...string) {
	for _, key := range playbook.SortedKeys(of) {
		if slices.Contains(known, key) || of[key] == nil {
			continue
		}
		if s == nil {
			r.gaps = append(r.gaps, Gap{Component: key})
			continue
		}
		s.addGap(at, key, "")
	}
}

// kindOf says what a value of Python is, without what may be secret in it.
func kindOf(of any) string {
	switch of := of.(type) {
	case *pyliteral.CallExpr:
		return "the call " + of.Name + "(…)"
	case *pyliteral.NameExpr:
		return "the name " + of.Name
	case *pyliteral.Lambda:
		return "a function of Python"
	case *pyliteral.Other, *pyliteral.FString:
		return "an expression of Python"
	case map[string]any:
		return "a dict"
	case []any:
		return "a list"
	}
	return expression.Text(of)
}

// keyOfReference returns the name of a configuration value, without its sections.
func keyOfReference(of *pyliteral.NameExpr) string {
	key := of.Name
	if len(of.Keys) > 0 {
		key = of.Keys[len(of.Keys)-1]
	}
	return scaffold.NameOf(key[strings.LastIndex(key, ".")+1:], "value")
}

// isSecretReference reports whether a reference is to a secret: by where it leads, or by its name.
func isSecretReference(of *pyliteral.NameExpr) bool {
	return strings.HasPrefix(of.Name, "dlt.secrets") || !strings.HasPrefix(of.Name, "dlt.config") && credential.MayName(keyOfReference(of))
}

// referenceCode returns a configuration value as an expression: a workload key, or a member of the secrets file.
func (r *restAPI) referenceCode(of *pyliteral.NameExpr) code {
	key := keyOfReference(of)
	path := [][]string{{key}}
	if isSecretReference(of) {
		r.read.addPaths(path, &r.read.secret)
		return code{text: secretsStep + memberPath([]any{key}), prec: precAtom, calm: true, path: true}
	}
	r.read.addPaths(path, &r.read.plain)
	r.read.addPaths(path, &r.read.required)
	c := path0(key, []any{key})
	c.falsy = false
	return c
}
