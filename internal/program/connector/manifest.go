package connector

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/expression"
	"reprise/interpreter/yamltree"
)

// component is a component of a manifest.
type component map[string]any

// kind is the type of a component; that of code of the connector is Custom.
func (c component) kind() string {
	kind := c.text("type")
	if c.text("class_name") != "" && (kind == "" || strings.HasPrefix(kind, "Custom")) {
		return "Custom"
	}
	return kind
}

func (c component) text(key string) string {
	text, _ := c[key].(string)
	return text
}

// childAt returns the component at a key; nil if there is none.
func (c component) childAt(key string) component {
	below, _ := c[key].(map[string]any)
	return below
}

// componentList returns the components of a list, or a single component as a list.
func (c component) componentList(key string) (list []component) {
	switch of := c[key].(type) {
	case map[string]any:
		return []component{of}
	case []any:
		for _, one := range of {
			if below, isMap := one.(map[string]any); isMap {
				list = append(list, below)
			}
		}
	}
	return list
}

// givenParameters returns the component's $parameters.
func (c component) givenParameters() map[string]any {
	parameters, _ := c[parametersKey].(map[string]any)
	return parameters
}

// wholeNumber returns a whole number; ok is false if there is none.
func (c component) wholeNumber(key string) (n int, ok bool) {
	switch v := c[key].(type) {
	case int:
		return v, true
	case float64:
		return int(v), true
	case string:
		n, err := strconv.Atoi(v)
		return n, err == nil
	}
	return 0, false
}

const (
	parametersKey = "$parameters"
	refKey        = "$ref"
)

// readManifest parses a manifest, resolves its references and propagates parameters, as the CDK does.
func readManifest(data []byte) (component, error) {
	root, err := yamltree.Parse(data)
	if err != nil {
		return nil, err
	}
	if root != nil && root.Kind == yaml.DocumentNode && len(root.Content) > 0 {
		root = root.Content[0]
	}
	if root == nil || root.Kind != yaml.MappingNode {
		return nil, errors.New("the manifest is no map with version and streams")
	}
	whole, _ := plainValue(yamltree.WithoutAliases(root, false)).(map[string]any)
	if _, has := whole["streams"].([]any); !has {
		return nil, errors.New("the manifest has no list of streams; expected a low-code manifest of Airbyte")
	}
	r := &references{root: whole}
	resolved, err := r.resolveValue(whole, nil)
	if err != nil {
		return nil, err
	}
	top := component(resolved.(map[string]any)) // as it was above
	top["type"] = "DeclarativeSource"
	delete(top, "definitions")
	return propagateParameters("", top, nil), nil
}

// plainValue converts a YAML node to a value.
func plainValue(n *yaml.Node) any {
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for key, value := range yamltree.Pairs(n) {
			if key.ShortTag() == "!!merge" {
				mergeInto(out, plainValue(value))
			}
		}
		for key, value := range yamltree.Pairs(n) {
			if key.ShortTag() != "!!merge" {
				out[key.Value] = plainValue(value)
			}
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, item := range n.Content {
			out[i] = plainValue(item)
		}
		return out
	}
	var v any
	if n.ShortTag() == "!!timestamp" || n.Decode(&v) != nil {
		return n.Value
	}
	return v
}

// mergeInto adds the keys of a map, or of several of which the first wins, that a YAML map has under <<.
func mergeInto(out map[string]any, of any) {
	list, isList := of.([]any)
	if !isList {
		list = []any{of}
	}
	for _, one := range slices.Backward(list) {
		members, _ := one.(map[string]any)
		maps.Copy(out, members)
	}
}

// references resolves the references of a manifest.
type references struct{ root map[string]any }

// resolveValue resolves the references in a value; open lists the references that are being resolved.
func (r *references) resolveValue(of any, open []string) (any, error) {
	switch of := of.(type) {
	case map[string]any:
		out := map[string]any{}
		if ref, isText := of[refKey].(string); isText {
			found, err := r.followReference(ref, open)
			if err != nil {
				return nil, err
			}
			below, isMap := found.(map[string]any)
			if !isMap {
				if len(of) == 1 {
					return found, nil
				}
				return nil, fmt.Errorf("%s is no map, and has keys laid over it", ref)
			}
			maps.Copy(out, below)
		}
		for key, value := range of {
			if key == refKey {
				continue
			}
			resolved, err := r.resolveValue(value, open)
			if err != nil {
				return nil, err
			}
			out[key] = resolved
		}
		return out, nil
	case []any:
		out := make([]any, len(of))
		for i, item := range of {
			resolved, err := r.resolveValue(item, open)
			if err != nil {
				return nil, err
			}
			out[i] = resolved
		}
		return out, nil
	case string:
		if strings.HasPrefix(of, "#/") {
			return r.followReference(of, open)
		}
	}
	return of, nil
}

func (r *references) followReference(ref string, open []string) (any, error) {
	if slices.Contains(open, ref) {
		return nil, fmt.Errorf("the reference %s leads back to itself", ref)
	}
	found := any(r.root)
	for rest := strings.TrimPrefix(ref, "#/"); rest != ""; {
		var ok bool
		if found, rest, ok = memberOf(found, rest); !ok {
			return nil, fmt.Errorf("the reference %s leads to nothing", ref)
		}
	}
	return r.resolveValue(found, append(slices.Clone(open), ref))
}

// memberOf returns the member with which a reference begins, whose name may contain slashes.
func memberOf(of any, path string) (found any, rest string, ok bool) {
	first, rest, _ := strings.Cut(path, "/")
	switch of := of.(type) {
	case map[string]any:
		if found, ok = of[first]; ok {
			return found, rest, true
		}
		for key, value := range of {
			if behind, begins := strings.CutPrefix(path, key); begins && (behind == "" || behind[0] == '/') {
				return value, strings.TrimPrefix(behind, "/"), true
			}
		}
	case []any:
		if i, err := strconv.Atoi(first); err == nil && i >= 0 && i < len(of) {
			return of[i], rest, true
		}
	}
	return nil, "", false
}

// usualTypes are the default types of components, by the parent's type and key.
var usualTypes = map[string]string{
	"CompositeErrorHandler.error_handlers": "DefaultErrorHandler", "DatetimeBasedCursor.end_datetime": "MinMaxDatetime",
	"DatetimeBasedCursor.end_time_option": "RequestOption", "DatetimeBasedCursor.start_datetime": "MinMaxDatetime",
	"DatetimeBasedCursor.start_time_option": "RequestOption", "DeclarativeSource.streams": "DeclarativeStream", "DeclarativeSource.spec": "Spec",
	"DeclarativeStream.retriever": "SimpleRetriever", "DeclarativeStream.schema_loader": "JsonFileSchemaLoader",
	"DefaultErrorHandler.response_filters": "HttpResponseFilter", "DefaultPaginator.page_size_option": "RequestOption",
	"DefaultPaginator.page_token_option": "RequestOption", "HttpRequester.error_handler": "DefaultErrorHandler",
	"ListPartitionRouter.request_option": "RequestOption", "ParentStreamConfig.request_option": "RequestOption",
	"ParentStreamConfig.stream": "DeclarativeStream", "RecordSelector.extractor": "DpathExtractor", "RecordSelector.record_filter": "RecordFilter",
	"SimpleRetriever.paginator": "NoPagination", "SimpleRetriever.record_selector": "RecordSelector", "SimpleRetriever.requester": "HttpRequester",
	"SubstreamPartitionRouter.parent_stream_configs": "ParentStreamConfig", "AddFields.fields": "AddedFieldDefinition",
	"CustomPartitionRouter.parent_stream_configs": "ParentStreamConfig",
}

// propagateParameters passes parameters to nested components, where they replace missing keys. A map without a type
// is not a component, and keeps its keys.
func propagateParameters(field string, of map[string]any, inherited map[string]any) map[string]any {
	out := maps.Clone(of)
	if _, has := out["type"]; !has {
		if custom, isText := out["class_name"].(string); isText && custom != "" {
			out["type"] = "Custom"
		} else if usual := usualTypes[field]; usual != "" {
			out["type"] = usual
		}
	}
	kind, isText := out["type"].(string)
	if _, isSchema := out["$schema"]; isSchema || !isText || field != "" && strings.HasSuffix(field, ".schema") {
		return out
	}
	own, _ := out[parametersKey].(map[string]any)
	delete(out, parametersKey)
	current := map[string]any{}
	maps.Copy(current, inherited)
	maps.Copy(current, own)
	for key, value := range current {
		if !expression.Truthy(out[key]) {
			out[key] = value
		}
	}
	for key, value := range out {
		passed := current
		if _, has := current[key]; has {
			passed = maps.Clone(current)
			delete(passed, key)
		}
		switch value := value.(type) {
		case map[string]any:
			out[key] = propagateParameters(kind+"."+key, value, passed)
		case []any:
			items := make([]any, len(value))
			for i, item := range value {
				items[i] = item
				if below, isMap := item.(map[string]any); isMap {
					items[i] = propagateParameters(kind+"."+key, below, passed)
				}
			}
			out[key] = items
		}
	}
	if len(current) > 0 {
		out[parametersKey] = current
	}
	return out
}
