package airbyte

import (
	"encoding/json"
	"fmt"
	"strings"

	"reprise/internal/program/node"
	"reprise/interpreter/playbook/check"
)

// loop is what a step is repeated for.
type loop struct {
	collection any    // a list, or a template
	list       string // the same as an expression
	element    string
	fields     []string // of the elements; they are values where there is one, unless nested says otherwise
	nested     bool     // the elements are maps
	whole      bool     // the elements are rows of the parent
	options    []sliceOption
}

// sliceOption is a value of a partition or a slice that goes into requests.
type sliceOption struct {
	option component
	value  code
}

// field resolves a field of the partition.
func (l *loop) field(keys []any) (code, error) {
	if len(keys) == 0 {
		return unsupported("the partition as a whole")
	}
	for _, field := range l.fields {
		if keys[0] == field {
			if !l.nested {
				keys = keys[1:]
			}
			c := path(l.element, keys...)
			c.falsy = false
			return c, nil
		}
	}
	return unsupported("the field %v of the partition", keys[0])
}

// state names the state of an element, "" where the default does.
func (l *loop) state(name string) string {
	switch {
	case l.whole && !l.nested:
		return name + "/{{ string(" + l.element + ") }}"
	case !l.nested:
		return ""
	}
	for _, field := range l.fields {
		if field == parentSlice {
			name += "/{{ string(" + l.element + "." + field + ") }}"
			continue
		}
		name += "/{{ " + l.element + members([]any{field}) + " }}"
	}
	return name
}

// parentSlice is the field with the partition of the parent.
const parentSlice = "parent_slice"

// source is a list of partitions.
type source struct {
	list string // expression
	// constant is the list where it is constant.
	constant any
	fields   []string
	nested   bool
	about    string // what the elements are called, where their field cannot be their name
}

// partitions fills the loop of a step.
func (c *converter) partitions(s *step, retriever component) {
	routers := retriever.components("partition_router")
	if len(routers) == 0 {
		routers = retriever.components("stream_slicer")
	}
	text, _ := json.Marshal(s.of)
	deep := strings.Contains(string(text), parentSlice)
	l := &loop{}
	var sources []source
	for _, router := range routers {
		var one source
		switch kind := router.kind(); kind {
		case "SubstreamPartitionRouter":
			one = c.substreams(s, l, router, deep, len(routers) > 1)
		case "ListPartitionRouter":
			one = c.listed(s, l, router)
		case "SinglePartitionRouter":
		case "Custom":
			s.gap(atLoop, customName(router, "CustomPartitionRouter"), "the request is made once")
		default:
			s.gap(atLoop, kind, "the request is made once")
		}
		if one.list != "" {
			sources = append(sources, one)
		}
	}
	if len(sources) == 0 {
		return
	}
	all := combined(sources)
	l.list, l.fields, l.nested = all.list, all.fields, all.nested
	l.collection = node.Verbatim("{{ " + all.list + " }}")
	if all.constant != nil {
		l.collection = all.constant
	}
	if !l.nested {
		l.element = c.element(all.fields[0], all.about)
	} else {
		l.element = c.element(all.about, "item")
	}
	for i := range l.options {
		field := l.options[i].value.text
		l.options[i].value, _ = l.field([]any{field})
	}
	s.loop = l
}

// element is a name for an element: that of another loop may be taken again.
func (c *converter) element(names ...string) string {
	for _, name := range names {
		name = check.FreeName(name)
		if c.names["element "+name] || !c.names[name] {
			c.names["element "+name], c.names[name] = true, true
			return name
		}
	}
	return c.free("item", names[0]+"_item")
}

// combined is every combination of the partitions of several routers.
func combined(sources []source) source {
	all := sources[0]
	for _, next := range sources[1:] {
		outer, inner := "outer", "#"
		if !all.nested {
			outer = "{" + quote(all.fields[0]) + ": outer}"
		}
		if !next.nested {
			inner = "{" + quote(next.fields[0]) + ": #}"
		}
		all = source{
			list:   "flatten(map(" + all.list + ", let outer = #; map(" + next.list + ", merge(" + outer + ", " + inner + "))))",
			fields: append(append([]string{}, all.fields...), next.fields...), nested: true, about: next.about,
		}
	}
	return all
}

// option notes that a field of the partition goes into requests; its code follows once the element has a name.
func (l *loop) option(of component, field string) {
	if option := of.of("request_option"); option != nil {
		l.options = append(l.options, sliceOption{option: option, value: code{text: field}})
	}
}

func (c *converter) listed(s *step, l *loop, router component) source {
	field, _ := c.translated(s, atLoop, router, "cursor_field", nil).(string)
	if field == "" {
		s.gap(atLoop, "ListPartitionRouter", "without a constant cursor_field")
		return source{}
	}
	out := source{fields: []string{field}, about: field + "_item"}
	switch values := c.translated(s, atLoop, router, "values", nil).(type) {
	case []any:
		out.list, out.constant = constant(values).text, values
	case node.Verbatim:
		out.list = strings.TrimSuffix(strings.TrimPrefix(string(values), "{{ "), " }}")
	default:
		s.gap(atLoop, "ListPartitionRouter", "the values %v", router["values"])
		return source{}
	}
	l.option(router, field)
	return out
}

// substreams are the partitions below one or several parents.
func (c *converter) substreams(s *step, l *loop, router component, deep, nested bool) source {
	configs := router.components("parent_stream_configs")
	var lists []string
	out := source{nested: nested || deep || len(configs) > 1}
	for _, config := range configs {
		parent := config.of("stream")
		field, _ := c.translated(s, atLoop, config, "partition_field", nil).(string)
		key, _ := c.translated(s, atLoop, config, "parent_key", nil).(string)
		if parent == nil || field == "" || key == "" {
			s.gap(atLoop, "ParentStreamConfig", "without a stream, a parent_key or a partition_field that is constant")
			continue
		}
		dependent, _ := config["incremental_dependency"].(bool)
		from := c.stream(parent, parent.of("incremental_sync") != nil && !dependent)
		from.read = true
		for _, gaps := range []string{atLoop, atRequest} {
			if len(from.gaps[gaps]) > 0 {
				s.gap(atLoop, "ParentStreamConfig", "the parent %s has parts that were not converted", from.stream)
				break
			}
		}
		value, err := from.parentValue(c, key)
		if err != nil {
			s.gap(atLoop, "ParentStreamConfig", "%v", err)
			continue
		}
		if _, isAdded := from.added[key]; !isAdded && value != "#" {
			from.needed = append(from.needed, strings.Trim(key, "/"))
		}
		l.whole = l.whole || value == "#"
		lists = append(lists, c.below(from, field, value, deep, out.nested))
		if deep && from.loop != nil && !hasField(out.fields, parentSlice) {
			out.fields = append(out.fields, parentSlice)
		}
		if !hasField(out.fields, field) {
			out.fields = append(out.fields, field)
		}
		if out.about == "" {
			out.about = strings.TrimSuffix(from.table, "s") + "_" + field
			if out.nested {
				out.about = strings.TrimSuffix(from.table, "s")
			}
		}
		l.option(config, field)
		if config["extra_fields"] != nil {
			s.gap(atLoop, "ParentStreamConfig", "extra_fields")
		}
	}
	switch len(lists) {
	case 0:
		return source{}
	case 1:
		out.list = lists[0]
	default:
		out.list = "concat(" + strings.Join(lists, ", ") + ")"
	}
	return out
}

func hasField(fields []string, field string) bool {
	for _, one := range fields {
		if one == field {
			return true
		}
	}
	return false
}

// parentValue is the value of a row of a parent by its key, in which # is the row.
func (s *step) parentValue(c *converter, key string) (string, error) {
	if one, isAdded := s.added[key]; isAdded {
		var into trace
		value, err := one.scope(&into).with(record("#")).expression(one.text)
		if err != nil {
			return "", fmt.Errorf("the key %s of the parent %s: %w", key, s.stream, err)
		}
		c.read.merge(into)
		return value.text, nil
	}
	var keys []any
	if key = strings.Trim(key, "/"); key == "" {
		return "#", nil
	}
	for _, part := range strings.Split(key, "/") {
		keys = append(keys, part)
	}
	text := members(keys)
	if text[0] != '.' {
		text = "#" + text
	}
	return text, nil
}

// below is the list of partitions below a parent.
func (c *converter) below(from *step, field, value string, deep, nested bool) string {
	element := value
	if nested {
		if value[0] == '.' {
			value = "#" + value
		}
		element = "{" + quote(field) + ": " + value + "}"
	}
	rows := from.name
	switch {
	case from.loop == nil:
	case !deep:
		rows = "filter(flatten(" + from.name + ".results), # != nil)" // an iteration that failed has none
	default:
		outer := "outer"
		if !from.loop.nested {
			outer = "{" + quote(from.loop.fields[0]) + ": outer}"
		}
		return "let all = " + from.loop.list + "; flatten(map(" + from.name + ".results, let outer = all[#index]; map(# or [], {" +
			quote(field) + ": " + value + ", " + parentSlice + ": " + outer + "})))"
	}
	if element == "#" {
		return rows
	}
	return "map(" + rows + ", " + element + ")"
}
