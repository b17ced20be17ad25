package connector

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reprise/internal/program/node"
	"reprise/interpreter/playbook/check"
)

// loop is the loop of a step.
type loop struct {
	collection any    // a list, or a template
	list       string // the same as an expression
	element    string
	fields     []string // of the elements; they are values where there is one, unless nested says otherwise
	paths      []string // of the fields in rows of the parent, as dlt writes them
	nested     bool     // the elements are maps
	whole      bool     // the elements are rows of the parent
	options    []sliceOption
}

// sliceOption is a value of a partition or time slice that is part of requests.
type sliceOption struct {
	option component
	value  code
}

// partitionField resolves a field of the partition.
func (l *loop) partitionField(keys []any) (code, error) {
	if len(keys) == 0 {
		return unsupportedError("the partition as a whole")
	}
	for _, field := range l.fields {
		if keys[0] == field {
			if !l.nested {
				keys = keys[1:]
			}
			c := pathCode(l.element, keys...)
			c.falsy = false
			return c, nil
		}
	}
	return unsupportedError("the field %v of the partition", keys[0])
}

// stateName returns the name of an element's state; "" for the default.
func (l *loop) stateName(name string) string {
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
		name += "/{{ " + l.element + memberPath([]any{field}) + " }}"
	}
	return name
}

// parentSlice is the field that holds the partition of the parent.
const parentSlice = "parent_slice"

// source is a list of partitions.
type source struct {
	list string // expression
	// constant is the value of the list if that is constant, else nil.
	constant any
	fields   []string
	nested   bool
	about    string // what the elements are called, where their field cannot be their name
}

// convertPartitions converts partition routers to the step's loop.
func (c *converter) convertPartitions(s *step, retriever component) {
	routers := retriever.componentList("partition_router")
	if len(routers) == 0 {
		routers = retriever.componentList("stream_slicer")
	}
	text, _ := json.Marshal(s.of)
	deep := strings.Contains(string(text), parentSlice)
	l := &loop{}
	var sources []source
	for _, router := range routers {
		var one source
		switch kind := router.kind(); kind {
		case "SubstreamPartitionRouter":
			one = c.parentSource(s, l, router, deep, len(routers) > 1)
		case "ListPartitionRouter":
			one = c.listSource(s, l, router)
		case "SinglePartitionRouter":
		case "Custom":
			s.addGap(atLoop, customName(router, "CustomPartitionRouter"), "the request is made once")
		default:
			s.addGap(atLoop, kind, "the request is made once")
		}
		if one.list != "" {
			sources = append(sources, one)
		}
	}
	if len(sources) == 0 {
		return
	}
	all := combineSources(sources)
	l.list, l.fields, l.nested = all.list, all.fields, all.nested
	l.collection = node.Verbatim("{{ " + all.list + " }}")
	if all.constant != nil {
		l.collection = all.constant
	}
	if !l.nested {
		l.element = c.elementName(all.fields[0], all.about)
	} else {
		l.element = c.elementName(all.about, "item")
	}
	for i := range l.options {
		field := l.options[i].value.text
		l.options[i].value, _ = l.partitionField([]any{field})
	}
	s.loop = l
}

// elementName returns a name for a loop's element. Different loops may use the same name.
func (c *converter) elementName(names ...string) string {
	for _, name := range names {
		if strings.HasPrefix(check.FreeName(name), "_") && name[0] != '_' { // a word of expressions
			continue
		}
		name = check.FreeName(name)
		if c.names["element "+name] || !c.names[name] {
			c.names["element "+name], c.names[name] = true, true
			return name
		}
	}
	return c.unusedName("item", names[0]+"_item")
}

// combineSources returns all combinations of the partitions of several routers.
func combineSources(sources []source) source {
	all := sources[0]
	for _, next := range sources[1:] {
		outer, inner := "outer", "#"
		if !all.nested {
			outer = "{" + quoteText(all.fields[0]) + ": outer}"
		}
		if !next.nested {
			inner = "{" + quoteText(next.fields[0]) + ": #}"
		}
		all = source{
			list:   "flatten(map(" + all.list + ", let outer = #; map(" + next.list + ", merge(" + outer + ", " + inner + "))))",
			fields: append(append([]string{}, all.fields...), next.fields...), nested: true, about: next.about,
		}
	}
	return all
}

// sendField records that a field of the partition is part of requests. Its code is set when the element has a name.
func (l *loop) sendField(of component, field string) {
	if option := of.childAt("request_option"); option != nil {
		l.options = append(l.options, sliceOption{option: option, value: code{text: field}})
	}
}

func (c *converter) listSource(s *step, l *loop, router component) source {
	field, _ := c.translateAt(s, atLoop, router, "cursor_field", nil).(string)
	if field == "" {
		s.addGap(atLoop, "ListPartitionRouter", "without a constant cursor_field")
		return source{}
	}
	out := source{fields: []string{field}, about: field + "_item"}
	switch values := c.translateAt(s, atLoop, router, "values", nil).(type) {
	case []any:
		out.list, out.constant = constantCode(values).text, values
	case node.Verbatim:
		list := strings.TrimSuffix(strings.TrimPrefix(string(values), "{{ "), " }}")
		if strings.Contains(list, " ") {
			list = "(" + list + ")"
		}
		out.list = list + " ?? []" // a connector without a value for the list has no partitions
	default:
		s.addGap(atLoop, "ListPartitionRouter", "the values %v", router["values"])
		return source{}
	}
	l.sendField(router, field)
	return out
}

// parentSource returns the partitions from one or several parent streams.
func (c *converter) parentSource(s *step, l *loop, router component, deep, nested bool) source {
	configs := router.componentList("parent_stream_configs")
	var lists []string
	out := source{nested: nested || deep || len(configs) > 1}
	for _, config := range configs {
		parent := config.childAt("stream")
		field, _ := c.translateAt(s, atLoop, config, "partition_field", nil).(string)
		key, _ := c.translateAt(s, atLoop, config, "parent_key", nil).(string)
		if parent == nil || field == "" || key == "" {
			s.addGap(atLoop, "ParentStreamConfig", "without a stream, a parent_key or a partition_field that is constant")
			continue
		}
		dependent, _ := config["incremental_dependency"].(bool)
		from := c.newStep(parent, parent.childAt("incremental_sync") != nil && !dependent)
		from.read = true
		s.parents = append(s.parents, from)
		value, err := from.parentValue(c, key)
		if err != nil {
			s.addGap(atLoop, "ParentStreamConfig", "%v", err)
			continue
		}
		if _, isAdded := from.added[key]; !isAdded && value != "#" {
			from.needed = append(from.needed, strings.Trim(key, "/"))
		}
		l.whole = l.whole || value == "#"
		lists = append(lists, c.parentElements(from, field, value, deep, out.nested))
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
		l.sendField(config, field)
		if config["extra_fields"] != nil {
			s.addGap(atLoop, "ParentStreamConfig", "extra_fields")
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

// addParentGaps says that the rows of a parent may be wrong, because of what was not converted there and is not said of the step
// itself.
func (s *step) addParentGaps() {
	for _, parent := range s.parents {
		for _, gap := range append(slices.Clone(parent.gaps[atLoop]), parent.gaps[atRequest]...) {
			if !s.hasGap(gap.Component, gap.Reason) {
				s.addGap(atLoop, "ParentStreamConfig", "the parent %s has parts that were not converted", parent.stream)
			}
		}
	}
}

func (s *step) hasGap(component, reason string) bool {
	for _, gaps := range s.gaps {
		if slices.ContainsFunc(gaps, func(gap Gap) bool { return gap.Component == component && gap.Reason == reason }) {
			return true
		}
	}
	return false
}

func hasField(fields []string, field string) bool {
	for _, one := range fields {
		if one == field {
			return true
		}
	}
	return false
}

// parentValue returns the value of a parent's row by its key, as an expression in which # is the row.
func (s *step) parentValue(c *converter, key string) (string, error) {
	if one, isAdded := s.added[key]; isAdded {
		var into trace
		value, err := one.scope(&into).withRoots(recordScope("#")).translateExpression(one.text)
		if err != nil {
			return "", fmt.Errorf("the key %s of the parent %s: %w", key, s.stream, err)
		}
		c.read.mergeTrace(into)
		return value.text, nil
	}
	var keys []any
	if key = strings.Trim(key, "/"); key == "" {
		return "#", nil
	}
	for _, part := range strings.Split(key, "/") {
		keys = append(keys, part)
	}
	text := memberPath(keys)
	if text[0] != '.' {
		text = "#" + text
	}
	return text, nil
}

// parentElements returns the list of a parent's partitions as an expression.
func (c *converter) parentElements(from *step, field, value string, deep, nested bool) string {
	element := value
	if nested {
		if value[0] == '.' {
			value = "#" + value
		}
		element = "{" + quoteText(field) + ": " + value + "}"
	}
	rows := from.name
	switch {
	case from.loop == nil:
	case !deep:
		rows = "filter(flatten(" + from.name + ".results), # != nil)" // an iteration that failed has none
	default:
		outer := "outer"
		if !from.loop.nested {
			outer = "{" + quoteText(from.loop.fields[0]) + ": outer}"
		}
		return "let all = " + from.loop.list + "; flatten(map(" + from.name + ".results, let outer = all[#index]; map(# or [], {" +
			quoteText(field) + ": " + value + ", " + parentSlice + ": " + outer + "})))"
	}
	if element == "#" {
		return rows
	}
	return "map(" + rows + ", " + element + ")"
}
