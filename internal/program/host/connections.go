package host

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/internal/base/connection"
	"reprise/interpreter/credential"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// Connections are those of a YAML file, a map of names to texts and maps
// of what is sent, and then those of the environment; path "" is the environment alone.
// Nothing of a connection is ever part of an error.
func Connections(path string) (tool.ConnectionResolver, error) {
	environment := activities.EnvConnections(os.LookupEnv)
	if path == "" {
		return environment, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the connections: %w", err)
	}
	value, found := playbook.Data(source.NewFile(path, data))
	if problems := found.Errors(); len(problems) > 0 {
		// A message may quote the line, and the line may hold a password.
		first := problems[0]
		return nil, fmt.Errorf("read the connections: %s:%s: not a YAML map of names to URLs [%s]", path, first.Pos, first.Code)
	}
	entries, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("read the connections: %s: expected a map of names to URLs, such as clinic: postgres://…", path)
	}
	connections := activities.Connections{}
	for _, name := range slices.Sorted(maps.Keys(entries)) { // of two mistakes always the same is reported
		text, err := connection.Text(entries[name])
		if err != nil {
			return nil, fmt.Errorf("read the connections: %s: %s %w", place(path, data, name, err), shown(name), err)
		}
		connections[name] = text
	}
	return activities.FirstOf{connections, environment}, nil
}

// place is where a problem of a connection is, such as connections.yaml:3:5.
func place(path string, data []byte, name string, err error) string {
	root, unread := yamltree.Parse(data)
	problem, ok := errors.AsType[*connection.Problem](err)
	if unread != nil || !ok || len(root.Content) == 0 {
		return path
	}
	at, found := root.Content[0], root.Content[0]
	for _, key := range append([]string{name}, problem.Path...) {
		next := yamltree.IndexOf(at, key)
		if next < 0 {
			break // of a key that is missing the place of its map is shown
		}
		found, at = at.Content[next], at.Content[next+1]
	}
	return fmt.Sprintf("%s:%s", path, yamltree.Position(found))
}

// shown names a connection. Where the name was forgotten, a URL or a token is in its
// place.
func shown(name string) string {
	if credential.Looks(name) || strings.ContainsAny(name, ":/@ ") {
		return "what follows a name"
	}
	return fmt.Sprintf("connection %q", name)
}
