package host

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"reprise/activities"
	"reprise/activities/http"
	"reprise/activities/tool"
	"reprise/interpreter/credential"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// Connections are those of a YAML file, a map of names to URLs and OAuth 2.0
// clients, and then those of the environment; path "" is the environment alone.
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
		text, err := http.ConnectionText(entries[name])
		if err != nil {
			return nil, fmt.Errorf("read the connections: %s: %s %w", path, shown(name), err)
		}
		connections[name] = text
	}
	return activities.FirstOf{connections, environment}, nil
}

// shown names a connection. Where the name was forgotten, a URL or a token is in its
// place.
func shown(name string) string {
	if credential.Looks(name) || strings.ContainsAny(name, ":/@ ") {
		return "what follows a name"
	}
	return fmt.Sprintf("connection %q", name)
}
