package serve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	operator "reprise/internal/base/connection"
	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// CallerRole is what a caller may do over HTTP with the runs of some playbooks.
type CallerRole string

// The roles of callers. A caller without any starts the playbooks of its list, and reads its own runs.
const (
	MayStart  CallerRole = "start"  // start runs
	MayRead   CallerRole = "read"   // read the status and result of runs
	MaySteer  CallerRole = "steer"  // send them commands
	MayAnswer CallerRole = "answer" // answer their approvals
	MayDecode CallerRole = "decode" // decrypt and encrypt payloads, which do not say what playbook they are of
	MayDoAll  CallerRole = "admin"  // all of these
)

var callerRoles = []string{string(MayStart), string(MayRead), string(MaySteer), string(MayAnswer), string(MayDecode), string(MayDoAll)}

// grant is the roles of a caller for the playbooks whose names fit a pattern.
type grant struct {
	pattern string
	roles   []CallerRole
}

// allows reports whether the grant has a role for a playbook.
func (g grant) allows(role CallerRole, name string) bool {
	return (slices.Contains(g.roles, role) || slices.Contains(g.roles, MayDoAll)) && operator.FitsPattern(g.pattern, name)
}

// may reports whether the caller has a role for a playbook.
func (c *caller) may(role CallerRole, name string) bool {
	if slices.ContainsFunc(c.grants, func(one grant) bool { return one.allows(role, name) }) {
		return true
	}
	return role == MayStart && (slices.Contains(c.playbooks, anyPlaybook) || slices.Contains(c.playbooks, name))
}

// mayDecodeAll reports whether the caller may decode payloads, of whatever playbook.
func (c *caller) mayDecodeAll() bool {
	return slices.ContainsFunc(c.grants, func(one grant) bool { return one.pattern == anyPlaybook && one.allows(MayDecode, "") })
}

// callerProblem is what is wrong with an entry of the file of callers.
type callerProblem struct {
	path    []string // of the key or the item of a list, from the entry
	message string
}

func (p *callerProblem) Error() string { return p.message }

func problemAt(path []string, format string, args ...any) error {
	return &callerProblem{path: path, message: fmt.Errorf(format, args...).Error()}
}

// readGrants reads a map of patterns to roles at a path of an entry.
func readGrants(path []string, value any) ([]grant, error) {
	entries, ok := value.(map[string]any)
	if !ok || len(entries) == 0 {
		return nil, problemAt(path, `%s must be a map of playbooks to roles, such as {"billing-*": [read, steer]}`, path[len(path)-1])
	}
	var grants []grant
	for _, pattern := range slices.Sorted(maps.Keys(entries)) {
		at := append(slices.Clone(path), pattern)
		if pattern == "" || !operator.IsPattern(pattern) {
			return nil, problemAt(at, "this is no pattern: write the name of a playbook, with * for any characters")
		}
		roles, err := readRoles(at, entries[pattern])
		if err != nil {
			return nil, err
		}
		if pattern != anyPlaybook && slices.Contains(roles, MayDecode) {
			return nil, problemAt(at, `decode needs the pattern "*", because payloads do not say what playbook they are of`)
		}
		grants = append(grants, grant{pattern: pattern, roles: roles})
	}
	return grants, nil
}

// readRoles reads a role, or a list of them.
func readRoles(path []string, value any) ([]CallerRole, error) {
	texts, ok := textsOf(value)
	if !ok || len(texts) == 0 {
		return nil, problemAt(path, "expected a role or a list of roles: %s", strings.Join(callerRoles, ", "))
	}
	for i, text := range texts {
		if slices.Contains(callerRoles, text) {
			continue
		}
		at := path
		if _, isList := value.([]any); isList {
			at = append(slices.Clone(path), fmt.Sprint(i))
		}
		return nil, problemAt(at, "%s", unknownRole(text))
	}
	return lists.Map(texts, func(text string) CallerRole { return CallerRole(text) }), nil
}

// unknownRole describes a text that is no role. It quotes the text only if it resembles one: it may be a token.
func unknownRole(text string) string {
	if near := expression.Suggest(text, callerRoles); near != "" {
		return fmt.Sprintf("the role %q is unknown; did you mean %q?", text, near)
	}
	return "the role is unknown, expected " + strings.Join(callerRoles, ", ")
}

// unknownKey describes a key that an entry does not have.
func unknownKey(key string, known []string) string {
	if near := expression.Suggest(key, known); near != "" {
		return fmt.Sprintf("the key %q is unknown; did you mean %q?", key, near)
	}
	return fmt.Sprintf("the key %q is unknown, expected %s", key, strings.Join(known, ", "))
}

// formatRoles returns the roles of an entry as YAML, from texts in the form PATTERN=ROLE,ROLE.
func formatRoles(texts []string) (string, error) {
	entries, fields := map[string]any{}, []string(nil)
	for _, text := range texts {
		pattern, given, found := strings.Cut(text, "=")
		switch {
		case !found:
			return "", fmt.Errorf("%q: expected PATTERN=ROLE,ROLE, such as billing-*=read,steer", text)
		case entries[pattern] != nil:
			return "", fmt.Errorf("%q: the roles for %s are given twice", text, pattern)
		}
		roles := strings.Split(given, ",")
		entries[pattern] = lists.Map(roles, func(role string) any { return role })
		if _, err := readGrants([]string{"roles"}, map[string]any{pattern: entries[pattern]}); err != nil {
			return "", fmt.Errorf("%q: %w", text, err)
		}
		fields = append(fields, fmt.Sprintf("%q: [%s]", pattern, strings.Join(roles, ", ")))
	}
	return fmt.Sprintf("roles: {%s}", strings.Join(fields, ", ")), nil
}
