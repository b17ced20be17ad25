package scaffold

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
)

// answerMember is a member of a response, at any depth.
type answerMember struct {
	path  []string
	value any
}

// plainName returns the last name of the path in normalized form.
func (m answerMember) plainName() string { return plainName(m.path[len(m.path)-1]) }

// parentName returns the normalized name before the last one; "" if there is none.
func (m answerMember) parentName() string {
	if len(m.path) < 2 {
		return ""
	}
	return plainName(m.path[len(m.path)-2])
}

var notPlain = regexp.MustCompile(`[^a-z0-9]`)

// plainName normalizes a name: page[number], pageNumber and page_number become the same.
func plainName(name string) string { return notPlain.ReplaceAllString(strings.ToLower(name), "") }

// mostDepth is the depth to which members of responses are searched: real APIs put their rows at most two envelopes
// deep, and a deep document has too many lists to choose from.
const mostDepth = 4

// membersOf returns the members of objects in a response, by increasing depth. Lists are not entered.
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

// usualRows are the usual names of the member with the rows.
var usualRows = []string{
	"data", "items", "results", "records", "rows", "entries", "value", "values", "list", "objects", "content", "nodes", "edges", "members", "elements", "collection", "resources", "hits",
}

// rowsOf finds the rows of a response: path is nil if the response itself is the list, ok false if there are none.
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

// valueAt returns the value at a path; nil if there is none.
func valueAt(value any, path []string) any {
	for _, key := range path {
		value = expression.MapOf(value)[key]
	}
	return value
}

// setAt returns a response with another value at a path, creating objects on the way.
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

// expressionOf returns an expression for a member of a value.
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

// canCollect reports whether a path can be used in `collect`, whose paths are dotted.
func canCollect(path []string) bool {
	return !slices.ContainsFunc(path, func(key string) bool { return strings.ContainsAny(key, ".[]") || key == "" })
}

// keyOf guesses the column that identifies rows; "" if unknown.
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
