package lowcode_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// component is a map of a manifest.
type component map[string]any

// of is the component that a key has, nil for none.
func (c component) of(key string) component {
	found, _ := c[key].(map[string]any)
	return found
}

// list are the components of a list, or the one that is there.
func (c component) list(key string) (out []component) {
	items, isList := c[key].([]any)
	if !isList && c.of(key) != nil {
		items = []any{c[key]}
	}
	for _, item := range items {
		if one, is := item.(map[string]any); is {
			out = append(out, one)
		}
	}
	return out
}

// text is a text that a key has.
func (c component) text(key string) string {
	text, _ := c[key].(string)
	return text
}

// kind is the type of a component, or what it is where it names none.
func (c component) kind(usual string) string {
	if c["class_name"] != nil {
		return "Custom"
	}
	if kind := c.text("type"); kind != "" {
		return kind
	}
	return usual
}

// parameters are those of a component.
func (c component) parameters() map[string]any { return c.of("$parameters") }

// loadManifest reads a manifest: references are followed, and parameters passed on.
func loadManifest(data []byte) (out component, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%v", reason)
		}
	}()
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return nil, err
	}
	root, is := plainYAML(&node).(map[string]any)
	if !is {
		return nil, fmt.Errorf("a manifest is a map")
	}
	resolved, is := follow(root, root, 0).(map[string]any)
	if !is {
		return nil, fmt.Errorf("a manifest is a map")
	}
	resolved["type"] = "DeclarativeSource"
	return passParameters("", resolved, nil), nil
}

// plainYAML is a YAML value in which times are texts.
func plainYAML(node *yaml.Node) any {
	switch node.Kind {
	case yaml.DocumentNode:
		return plainYAML(node.Content[0])
	case yaml.AliasNode:
		return plainYAML(node.Alias)
	case yaml.SequenceNode:
		out := make([]any, len(node.Content))
		for i, item := range node.Content {
			out[i] = plainYAML(item)
		}
		return out
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i < len(node.Content); i += 2 {
			if node.Content[i].Tag == "!!merge" {
				for key, value := range plainYAML(node.Content[i+1]).(map[string]any) {
					out[key] = value
				}
				continue
			}
			out[node.Content[i].Value] = plainYAML(node.Content[i+1])
		}
		return out
	}
	if node.Tag == "!!timestamp" || node.Tag == "!!str" {
		return node.Value
	}
	var value any
	_ = node.Decode(&value)
	return value
}

// follow is a value without references; keys beside a reference are laid over what it leads to.
func follow(root, of any, depth int) any {
	if depth > 60 {
		panic("references lead back to themselves")
	}
	switch of := of.(type) {
	case string:
		if strings.HasPrefix(of, "#/") {
			return follow(root, referenced(root, of), depth+1)
		}
	case []any:
		out := make([]any, len(of))
		for i, item := range of {
			out[i] = follow(root, item, depth+1)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		if ref, is := of["$ref"].(string); is {
			found := follow(root, referenced(root, ref), depth+1)
			below, isMap := found.(map[string]any)
			if !isMap {
				return found
			}
			out = maps.Clone(below)
		}
		for key, value := range of {
			if key != "$ref" {
				out[key] = follow(root, value, depth+1)
			}
		}
		return out
	}
	return of
}

// referenced is what a reference leads to.
func referenced(root any, ref string) any {
	at, keys := root, strings.Split(strings.TrimPrefix(ref, "#/"), "/")
	for len(keys) > 0 {
		found := false
		for n := 1; n <= len(keys) && !found; n++ { // names may have slashes
			key := strings.Join(keys[:n], "/")
			switch of := at.(type) {
			case map[string]any:
				if value, has := of[key]; has {
					at, keys, found = value, keys[n:], true
				}
			case []any:
				if i, err := strconv.Atoi(key); err == nil && i < len(of) {
					at, keys, found = of[i], keys[n:], true
				}
			}
		}
		if !found {
			panic("no " + ref)
		}
	}
	return at
}

// usual are the types of components that name none, by those that they are in.
var usual = map[string]string{
	"DeclarativeSource.streams": "DeclarativeStream", "DeclarativeStream.retriever": "SimpleRetriever", "SimpleRetriever.requester": "HttpRequester",
	"SimpleRetriever.record_selector": "RecordSelector", "SimpleRetriever.paginator": "NoPagination", "RecordSelector.extractor": "DpathExtractor",
	"RecordSelector.record_filter": "RecordFilter", "HttpRequester.error_handler": "DefaultErrorHandler", "CompositeErrorHandler.error_handlers": "DefaultErrorHandler",
	"DefaultErrorHandler.response_filters": "HttpResponseFilter", "DefaultPaginator.page_size_option": "RequestOption", "DefaultPaginator.page_token_option": "RequestOption",
	"DatetimeBasedCursor.start_datetime": "MinMaxDatetime", "DatetimeBasedCursor.end_datetime": "MinMaxDatetime", "DatetimeBasedCursor.start_time_option": "RequestOption",
	"DatetimeBasedCursor.end_time_option": "RequestOption", "ListPartitionRouter.request_option": "RequestOption", "AddFields.fields": "AddedFieldDefinition",
	"SubstreamPartitionRouter.parent_stream_configs": "ParentStreamConfig", "ParentStreamConfig.request_option": "RequestOption", "ParentStreamConfig.stream": "DeclarativeStream",
	"DeclarativeSource.spec": "Spec", "DeclarativeStream.schema_loader": "JsonFileSchemaLoader",
}

// passParameters passes the parameters of components on to those in them. They are keys of a component where it lacks
// those.
func passParameters(place string, of map[string]any, inherited map[string]any) map[string]any {
	out := maps.Clone(of)
	if _, typed := out["type"]; !typed && usual[place] != "" {
		out["type"] = usual[place]
	}
	kind, typed := out["type"].(string)
	if _, schema := out["$schema"]; !typed || schema || strings.HasSuffix(place, ".schema") {
		return out
	}
	own, _ := out["$parameters"].(map[string]any)
	delete(out, "$parameters")
	current := maps.Clone(inherited)
	if current == nil {
		current = map[string]any{}
	}
	maps.Copy(current, own)
	for key, value := range current {
		if !isTrue(plainJSON(out[key])) {
			out[key] = value
		}
	}
	for key, value := range out {
		passed := maps.Clone(current)
		delete(passed, key)
		switch value := value.(type) {
		case map[string]any:
			out[key] = passParameters(kind+"."+key, value, passed)
		case []any:
			items := append([]any(nil), value...)
			for i, item := range items {
				if below, is := item.(map[string]any); is {
					items[i] = passParameters(kind+"."+key, below, passed)
				}
			}
			out[key] = items
		}
	}
	if len(current) > 0 {
		out["$parameters"] = current
	}
	return out
}
