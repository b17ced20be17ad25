package host

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/internal/base/connection"
	"reprise/internal/base/regular"
	"reprise/internal/base/secretstore"
	"reprise/interpreter/credential"
	"reprise/interpreter/expression"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// ReadConnections reads connections from a YAML file that maps names to texts and maps, and falls back on the
// environment; without a path it uses only the environment. Errors never quote a connection.
func ReadConnections(path string) (tool.ConnectionResolver, error) {
	environment := activities.EnvConnections(os.LookupEnv)
	if err := checkVariables(os.Environ()); err != nil {
		return nil, err
	}
	if path == "" {
		return environment, nil
	}
	file, err := regular.OpenReread(path, "the file of connections", readConnections)
	if err != nil {
		return nil, err
	}
	return activities.FirstOf{connectionFile{file}, environment}, nil
}

// checkVariables returns an error for a connection in an environment variable that no attempt could use. Connections in
// a file are checked in the same way.
func checkVariables(entries []string) error {
	for _, entry := range slices.Sorted(slices.Values(entries)) { // of two mistakes always the same is reported
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, tool.ConnectionPrefix) || value == "" {
			continue
		}
		var configured any = value
		if connection.IsMap(value) {
			decoded, err := expression.Decode([]byte(value))
			if err != nil {
				return fmt.Errorf("read the connections: the variable %s begins with { and is not JSON", name)
			}
			configured = decoded
		}
		if _, err := connection.EntryText(configured); err != nil {
			return fmt.Errorf("read the connections: the variable %s %w", name, err)
		}
	}
	return nil
}

// connectionFile is a connections file, which is read again when it changes.
type connectionFile struct {
	*regular.Reread[activities.Connections]
}

// Connection finds a connection by name.
func (f connectionFile) Connection(name string) (string, bool) { return f.Current().Connection(name) }

// Texts returns all connections.
func (f connectionFile) Texts() []string { return f.Current().Texts() }

func readConnections(path string) (activities.Connections, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the connections: %w", err)
	}
	value, found := playbook.DecodeData(source.NewFile(path, data))
	if problems := found.Errors(); len(problems) > 0 {
		// A parse error may quote a line that holds a password, so only its place is reported.
		first := problems[0]
		return nil, fmt.Errorf("read the connections: %s:%s: %s [%s]", path, first.Pos, meaningOf(first.Code), first.Code)
	}
	entries, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("read the connections: %s: expected a map of names to URLs, such as clinic: postgres://…", path)
	}
	connections := activities.Connections{}
	for _, name := range slices.Sorted(maps.Keys(entries)) { // of two mistakes always the same is reported
		text, err := connection.EntryText(entries[name])
		if err != nil {
			return nil, fmt.Errorf("read the connections: %s: %s %w", problemPlace(path, data, name, err), displayName(name), err)
		}
		connections[name] = text
	}
	return connections, nil
}

// meaningOf returns what a code of a problem means.
func meaningOf(code string) string {
	for _, known := range playbook.DecodingCodes() {
		if known.Code == code {
			return known.Meaning
		}
	}
	return "not a YAML map of names to URLs"
}

// problemPlace returns the place of a connection's problem, such as connections.yaml:3:5.
func problemPlace(path string, data []byte, name string, err error) string {
	problem, ok := errors.AsType[*connection.Problem](err)
	if !ok {
		return path
	}
	return yamltree.PlaceOf(path, data, append([]string{name}, problem.Path...))
}

// displayName returns a connection's name for messages. If the name was forgotten, it is a URL or a token, which is
// not shown.
func displayName(name string) string {
	if credential.LooksSecret(name) || strings.ContainsAny(name, ":/@ ") {
		return "what follows a name"
	}
	return fmt.Sprintf("connection %q", name)
}

// ResolveSecrets returns connections with the values of their secret sources, for a program that sends nothing. A connection
// whose secret cannot be read is unknown; the logger gets the reason.
func ResolveSecrets(from tool.ConnectionResolver, logger *slog.Logger) tool.ConnectionResolver {
	activities.FirstOf{from}.LogTo(logger)
	return secretResolver{from, &connection.Sources{
		Directory: os.Getenv(connection.DirectoryVariable), Lookup: os.LookupEnv, Now: time.Now, Logger: logger,
		Stores: secretstore.FromEnvironment(os.LookupEnv),
	}}
}

// CheckConnections returns the names of the connections in a file, and what is wrong with those whose secrets cannot be read
// on this machine. Without a path it checks only the environment. Errors never quote a connection.
func CheckConnections(path string) (names, problems []string, err error) {
	if err := checkVariables(os.Environ()); err != nil || path == "" {
		return nil, nil, err
	}
	configured, err := readConnections(path)
	if err != nil {
		return nil, nil, err
	}
	sources := &connection.Sources{
		Directory: os.Getenv(connection.DirectoryVariable), Lookup: os.LookupEnv, Now: time.Now, Stores: secretstore.FromEnvironment(os.LookupEnv),
	}
	defer func() { err = errors.Join(err, sources.Close()) }()
	names = slices.Sorted(maps.Keys(configured))
	for _, name := range names {
		_, err := connection.ResolveSources(configured[name], func(source connection.SecretSource) (string, error) { return sources.Read(source, false) })
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", displayName(name), err))
		}
	}
	return names, problems, nil
}

type secretResolver struct {
	from    tool.ConnectionResolver
	sources *connection.Sources
}

// OnChange sets who is notified of changed files of connections and secrets.
func (r secretResolver) OnChange(changed func(what string, err error)) {
	activities.FirstOf{r.from}.OnChange(changed)
	r.sources.OnChange(changed)
}

// Connection finds a connection by name.
func (r secretResolver) Connection(name string) (string, bool) {
	configured, known := r.from.Connection(name)
	if !known {
		return "", false
	}
	text, err := connection.ResolveSources(configured, func(source connection.SecretSource) (string, error) { return r.sources.Read(source, false) })
	if err != nil {
		r.sources.Logger.Error("a connection cannot be used", "connection", name, "error", err)
	}
	return text, err == nil
}
