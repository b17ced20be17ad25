package scaffold

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// answerMember is a value somewhere in an answer.
type answerMember struct {
	path  []string
	value any
}

// plainName returns the last part of its path, in the form of plain.
func (m answerMember) plainName() string { return plainName(m.path[len(m.path)-1]) }

// parentName returns the part before that, "" for none.
func (m answerMember) parentName() string {
	if len(m.path) < 2 {
		return ""
	}
	return plainName(m.path[len(m.path)-2])
}

var notPlain = regexp.MustCompile(`[^a-z0-9]`)

// plainName returns a name without what styles of writing differ in: page[number], pageNumber and page_number are one.
func plainName(name string) string { return notPlain.ReplaceAllString(strings.ToLower(name), "") }

// mostDepth is how deep members of answers are looked for: real APIs keep their rows within two
// envelopes, and a deep document has too many lists to choose from.
const mostDepth = 4

// membersOf returns the members of maps in an answer, those of the least depth first, lists not entered.
func membersOf(answer any) []answerMember {
	var all []answerMember
	level := []answerMember{{value: answer}}
	for range mostDepth {
		var deeper []answerMember
		for _, of := range level {
			values := expression.MapOf(of.value)
			for _, key := range playbook.SortedKeys(values) {
				deeper = append(deeper, answerMember{path: append(slices.Clip(of.path), key), value: values[key]})
			}
		}
		all = append(all, deeper...)
		level = deeper
	}
	return all
}

// usualRows are names of what holds the rows of an answer.
var usualRows = []string{
	"data", "items", "results", "records", "rows", "entries", "value", "values", "list", "objects", "content", "nodes", "edges", "members", "elements", "collection", "resources", "hits",
}

// rowsOf finds the rows of an answer: path is nil if the answer itself is the list, ok false if there are none.
// resource is the last segment of the request's path.
func rowsOf(answer any, resource string) (path []string, ok bool) {
	if _, isList := answer.([]any); isList {
		return nil, true
	}
	best, points := answerMember{}, 0
	for _, one := range membersOf(answer) {
		list, isList := one.value.([]any)
		if !isList {
			continue
		}
		score := 0 // a list of texts or numbers is rows only by its name
		if len(list) == 0 {
			score++
		} else if _, isMap := list[0].(map[string]any); isMap {
			score += 4
		}
		if slices.Contains(usualRows, one.plainName()) {
			score += 3
		}
		if one.plainName() == plainName(resource) || one.plainName()+"s" == plainName(resource) {
			score += 4
		}
		score -= len(one.path) - 1
		if slices.Contains([]string{"errors", "warnings", "links", "included", "facets", "ids"}, one.plainName()) {
			score -= 6
		}
		if score > points {
			best, points = one, score
		}
	}
	return best.path, points > 0
}

// valueAt returns the value at a path, nil if there is none.
func valueAt(value any, path []string) any {
	for _, key := range path {
		value = expression.MapOf(value)[key]
	}
	return value
}

// setAt returns an answer with another value at a path; what is on the way is made.
func setAt(value any, path []string, to any) any {
	if len(path) == 0 {
		return to
	}
	changed := map[string]any{}
	maps.Copy(changed, expression.MapOf(value))
	changed[path[0]] = setAt(changed[path[0]], path[1:], to)
	return changed
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expressionOf is how an expression names a member of a value.
func expressionOf(root string, path []string) string {
	for _, key := range path {
		if identifier.MatchString(key) {
			root += "." + key
			continue
		}
		quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(key)
		root += "['" + quoted + "']"
	}
	return root
}

// canCollect reports whether a path can be in collect, which is dotted.
func canCollect(path []string) bool {
	return !slices.ContainsFunc(path, func(key string) bool { return strings.ContainsAny(key, ".[]") || key == "" })
}

// keyOf guesses the column that identifies rows, "" if unknown.
func keyOf(rows any) string {
	list, _ := rows.([]any)
	if len(list) == 0 {
		return ""
	}
	first := expression.MapOf(list[0])
	for _, name := range []string{"id", "uuid", "guid", "gid", "key", "_id", "Id", "ID", "number", "code", "sid", "sys_id", "object_id"} {
		switch first[name].(type) {
		case string, int:
			return name
		}
	}
	return ""
}
