package connection

import (
	"io/fs"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reprise/interpreter/expression"
	"reprise/interpreter/lists"
)

// SecretSource says where to read the value of a secret field: {from: file, path: shop, field: password}.
type SecretSource struct {
	// From is FromFile, FromEnv, FromVault, FromAWS or FromGCP.
	From string
	// Path is the file, relative to the directory of secrets, or the path in Vault.
	Path string
	// Name is the environment variable, or the name of a secret in AWS Secrets Manager (or its ARN) or in Google
	// Cloud Secret Manager.
	Name string
	// Region is that of AWS; "" for the usual one.
	Region string
	// Field is a member of the value, which is then JSON; "" for the whole value.
	Field string
	// Refresh is how long a value is cached.
	Refresh time.Duration
}

// The kinds of sources.
const (
	FromFile  = "file"
	FromEnv   = "env"
	FromVault = "vault"
	FromAWS   = "aws"
	FromGCP   = "gcp"
)

// isStored reports whether a server has the secret, and not the worker's machine.
func (s SecretSource) isStored() bool {
	return s.From == FromVault || s.From == FromAWS || s.From == FromGCP
}

// usualRefresh is the default of Refresh.
const usualRefresh = 5 * time.Minute

// String describes the source in messages.
func (s SecretSource) String() string {
	text := "file " + s.Path
	switch s.From {
	case FromEnv:
		text = "variable " + s.Name
	case FromVault:
		text = "Vault path " + s.Path
	case FromAWS:
		text = "AWS secret " + s.Name
	case FromGCP:
		text = "Google secret " + s.Name
	}
	if s.Field != "" {
		text += ", field " + s.Field
	}
	return text
}

// readSecret returns a text; "" if the field has a source, whose value is not read here.
func (s section) readSecret(key string) string {
	if !s.isSourced(key) {
		return s.optionalText(key)
	}
	if from := s.subsection(key); from != nil {
		from.readSource()
	}
	return ""
}

// requiredSecret is readSecret for a required field.
func (s section) requiredSecret(key string) string {
	if s.isSourced(key) {
		return s.readSecret(key)
	}
	return s.requiredText(key)
}

// isSourced reports whether a field names a source instead of a value.
func (s section) isSourced(key string) bool {
	_, isMap := s.values[key].(map[string]any)
	return isMap
}

// readSource reads the section as the source of a secret.
func (s section) readSource() (source SecretSource) {
	source.From, _ = s.values["from"].(string)
	switch source.From {
	case FromFile:
		s.refuseUnknown([]string{"from", "path", "field", "refresh"})
		source.Path = s.requiredText("path")
		if source.Path != "" && !filepath.IsLocal(source.Path) {
			s.d.recordProblem(s.pathOf("path"), "must have a path below the secrets directory as %s", s.keyName("path"))
		}
	case FromEnv:
		s.refuseUnknown([]string{"from", "name", "field", "refresh"})
		source.Name = s.requiredText("name")
	case FromVault:
		s.refuseUnknown([]string{"from", "path", "field", "refresh"})
		source.Path = s.requiredText("path")
		if source.Path != "" && (!fs.ValidPath(source.Path) || !strings.Contains(source.Path, "/")) {
			s.d.recordProblem(s.pathOf("path"), "must have a path in Vault as %s, such as kv/data/shop", s.keyName("path"))
		}
	case FromAWS:
		s.refuseUnknown([]string{"from", "name", "region", "field", "refresh"})
		source.Name, source.Region = s.requiredText("name"), s.optionalText("region")
	case FromGCP:
		s.refuseUnknown([]string{"from", "name", "field", "refresh"})
		source.Name = s.requiredText("name")
	default:
		s.d.recordProblem(s.pathOf("from"), "must have file, env, vault, aws or gcp as %s", s.keyName("from"))
	}
	source.Field, source.Refresh = s.optionalText("field"), s.readDuration("refresh", usualRefresh)
	return source
}

// readDuration returns an optional positive duration, usual by default.
func (s section) readDuration(key string, usual time.Duration) time.Duration {
	if !s.hasKey(key) {
		return usual
	}
	text, _ := s.values[key].(string)
	duration, err := time.ParseDuration(text)
	if err != nil || duration <= 0 {
		s.d.recordProblem(s.pathOf(key), "must have a duration as %s, such as 30s or 5m", s.keyName(key))
	}
	return duration
}

// HasSources reports whether a configured connection reads a secret from a source.
func HasSources(text string) bool {
	if !IsMap(text) {
		return false
	}
	found := false
	_, err := ResolveSources(text, func(SecretSource) (string, error) { found = true; return "value", nil })
	return found && err == nil
}

// ResolveSources replaces the sources in a configured connection by their values, which read returns. A map that describes a
// URL, such as a database connection, becomes the URL. The error is from read, or a *Problem.
func ResolveSources(text string, read func(SecretSource) (string, error)) (string, error) {
	if !IsMap(text) {
		return text, nil
	}
	value, err := expression.Decode([]byte(text))
	entry, isMap := value.(map[string]any)
	if err != nil || !isMap {
		return "", notAConnection
	}
	if _, problem := decodeMap(entry); problem != nil {
		return "", problem
	}
	entry = maps.Clone(entry)
	delete(entry, "uses") // which nothing sends
	r := &resolver{read: read}
	resolved := r.resolveValue(entry, false)
	if r.err != nil {
		return "", r.err
	}
	switch resolved := resolved.(type) {
	case string:
		return resolved, nil
	case map[string]any:
		if address, isURL := resolved["url"].(string); isURL {
			return withLogin(address, resolved["user"], resolved["password"])
		}
	}
	encoded, err := expression.Encode(resolved)
	return string(encoded), err
}

// resolver replaces sources by values, and keeps the first error.
type resolver struct {
	read func(SecretSource) (string, error)
	err  error
}

// resolveValue replaces the sources in a value. named says that the keys of a map are names of headers or parameters:
// such a map is never a source.
func (r *resolver) resolveValue(value any, named bool) any {
	if list, isList := value.([]any); isList {
		return lists.Map(list, func(item any) any { return r.resolveValue(item, false) })
	}
	entry, isMap := value.(map[string]any)
	if !isMap {
		return value
	}
	if isSource(entry) && !named {
		text, err := r.read(section{d: &decoder{}, values: entry}.readSource())
		if err != nil && r.err == nil {
			r.err = err
		}
		return text
	}
	resolved := make(map[string]any, len(entry))
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		resolved[key] = r.resolveValue(entry[key], slices.Contains([]string{"headers", "query", "form", "claims"}, key))
	}
	return resolved
}

// isSource reports whether a map describes the source of a secret.
func isSource(of map[string]any) bool {
	_, has := of["from"].(string)
	return has
}

// withLogin returns a URL with a user and a password, each unless it is nil.
func withLogin(address string, user, password any) (string, error) {
	name, hasUser := user.(string)
	secret, hasPassword := password.(string)
	if !hasUser && !hasPassword {
		return address, nil
	}
	u, err := url.Parse(address)
	switch {
	case err == nil && hasUser && u.User.Username() != "":
		return "", &Problem{Path: []string{"user"}, Message: "has a user in url and in user; keep one"}
	case err == nil && !hasUser:
		name = u.User.Username()
	}
	if err != nil || name == "" {
		return "", &Problem{Path: []string{"url"}, Message: "must have a user in url, such as postgres://user@host/database, or in user beside it"}
	}
	u.User = url.User(name)
	if hasPassword {
		u.User = url.UserPassword(name, secret)
	}
	return u.String(), nil
}
