package lsp

import (
	"regexp"
	"strings"

	"reprise/interpreter/lists"
)

// place describes the position of a cursor within a document.
type place struct {
	// keys lead from the top of the document to the map that the cursor is in.
	keys []string
	// key is the key whose value the cursor is in; "" if it is at a key.
	key string
	// expression is set if the cursor is inside {{ }}.
	expression bool
	// tool is the tool of the nearest enclosing call; "" for none.
	tool string
}

// keyed matches a line that begins with a key: its dashes, the key and the value.
var keyed = regexp.MustCompile(`^( *)((?:- +)*)([\w.-]+):(?: +(.*))?$`)

// keyLine is a line that keyed matches. Columns are in bytes.
type keyLine struct {
	dash   int // column of the first dash, -1 for none
	column int // of the key
	key    string
	value  string
}

func parseKeyLine(line string) (keyLine, bool) {
	match := keyed.FindStringSubmatch(line)
	if match == nil {
		return keyLine{}, false
	}
	w := keyLine{dash: -1, column: len(match[1]) + len(match[2]), key: match[3], value: match[4]}
	if match[2] != "" {
		w.dash = len(match[1])
	}
	return w, true
}

// placeOf determines the place of a cursor from the text before it, by indentation and braces, because the document
// need not be valid YAML while it is being edited.
func placeOf(t text, line, at int) place {
	before := t.lineAt(line)[:min(at, len(t.lineAt(line)))]
	p := place{expression: strings.LastIndex(before, "{{") > strings.LastIndex(before, "}}")}
	own, found := parseKeyLine(before)
	if !found { // a key that is being typed, behind dashes or not
		rest := strings.TrimLeft(before, " -")
		own = keyLine{dash: strings.IndexByte(before[:len(before)-len(rest)], '-'), column: len(before) - len(rest)}
		own.value = rest
	}
	p.keys, p.key = flowKeys(own.key, own.value)
	p.tool = toolAround(t, line, own.column)
	p.keys = append(keysAround(t, line, own), p.keys...)
	return p
}

// keysAround returns the keys that lead to a line, which is a key of a map or an item of a list.
func keysAround(t text, line int, at keyLine) []string {
	var keys []string
	for n := line - 1; n >= 0; n-- {
		above, found := parseKeyLine(t.lineAt(n))
		switch {
		case !found:
			continue
		case at.dash >= 0: // what has the list
			if above.column > at.dash || above.column == at.dash && above.dash >= 0 {
				continue
			}
			keys = append([]string{above.key}, keys...)
		case above.column == at.column && above.dash >= 0: // the first key of the item
		case above.column < at.column:
			keys = append([]string{above.key}, keys...)
		default:
			continue
		}
		at = above
	}
	return keys
}

// flowKeys parses braces in a value. keys are the keys of the maps that are open at its end, starting with the
// value's own; last is the key whose value the end is in.
func flowKeys(key, value string) (keys []string, last string) {
	last = key
	quote := byte(0)
	start := 0
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case strings.HasPrefix(value[i:], "{{") || strings.HasPrefix(value[i:], "}}"):
			i++
		case c == '"' || c == '\'':
			quote = c
		case c == '{':
			keys, last, start = append(keys, last), "", i+1
		case c == '}' && len(keys) > 0:
			keys, last = keys[:len(keys)-1], keys[len(keys)-1]
		case c == ',' || c == '[':
			start = i + 1
			if len(keys) > 0 && c == ',' {
				last = ""
			}
		case c == ':':
			last = strings.Trim(value[start:i], " ")
		}
	}
	keys = lists.Filter(keys, func(key string) bool { return key != "" })
	return keys, last
}

// toolAround returns the tool among the siblings of a key at a column.
func toolAround(t text, line, column int) string {
	begin := line
	for ; begin > 0; begin-- { // the first key of the map
		one, found := parseKeyLine(t.lineAt(begin))
		if found && (one.column < column || one.column == column && one.dash >= 0) {
			break
		}
	}
	for n := begin; n < len(t); n++ {
		one, found := parseKeyLine(t.lineAt(n))
		switch {
		case !found:
		case n > line && (one.column < column || one.column == column && one.dash >= 0):
			return ""
		case one.column == column && one.key == "tool":
			return strings.Trim(one.value, `"' `)
		}
	}
	return ""
}

// sections maps the last keys of a place to the section of the language that is there.
var sections = map[string]string{
	"": "playbook", "metadata": "metadata", "schedule": "schedule", "triggers": "trigger", "concurrency": "concurrency",
	"partitions": "partitions", "workbook": "workbook entry", "workflow": "step", "loop": "loop", "source": "source", "incremental": "incremental",
	"dead_letter": "dead_letter", "failure_budget": "failure_budget", "thresholds": "thresholds", "rate_limit": "rate_limit",
	"retry": "retry policy", "then": "then", "next_call": "next_call", "collect": "collect", "per_iteration": "per_iteration",
	"sink": "sink", "on_success": "notice", "on_failure": "notice", "notify": "notify", "expect": "expect", "next": "next entry",
}

// sectionName returns the section whose keys are allowed at a place; "" if any keys are.
func (p place) sectionName() string {
	last := ""
	if len(p.keys) > 0 {
		last = p.keys[len(p.keys)-1]
	}
	return sections[last]
}
