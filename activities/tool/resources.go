package tool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"reprise/internal/base/connection"
	"reprise/internal/base/egress"
	"reprise/internal/base/private"
	"reprise/internal/base/secrets"
	"reprise/interpreter"
)

// Resources are a worker's connections, folders and limits, as tools use them.
type Resources struct {
	// Connections finds the URL behind a connection's name.
	Connections ConnectionResolver
	// Sources reads the secrets that connections have elsewhere.
	Sources *connection.Sources
	// Confine refuses an attempt that a database tool may not make; nil refuses none.
	Confine func(interpreter.ToolInput) error
	// Egress decides which addresses tools may connect to; nil is egress.LocalPolicy.
	Egress *egress.Policy
	// Access decides who may use connections.
	Access ConnectionAccess
	// Directory is the base of relative paths.
	Directory string
	// Private are files and folders that playbooks may neither read nor write, such as that of the
	// connections.
	Private []string
	// MaxResponseBytes bounds what is read of a response, a file or a result.
	MaxResponseBytes int64
	// MaxPayload bounds a result, in bytes of JSON.
	MaxPayload int
	// MemoryBytes bounds the memory that all attempts of the worker use together for what they
	// read.
	MemoryBytes int64
	Logger      *slog.Logger
	// Secrets are masked in everything that a worker reports. A tool adds what it fetches, such
	// as a token.
	Secrets *secrets.Masker
	// Logins has the tokens of logins that all workers share.
	Logins LoginTokens
	// Bodies stores large bodies while they are downloaded; nil where the workers share no store.
	Bodies BodyStore
}

// BodyStore stores parts of large bodies, so that a worker continues the download of one that was lost. It is safe for concurrent use.
type BodyStore interface {
	// PartBytes returns the size of a part.
	PartBytes() int64
	// WriteObject writes an object as a whole, and replaces the one that has the key.
	WriteObject(ctx context.Context, key string, content []byte) error
	// ReadObject reads an object; found is false if there is none.
	ReadObject(ctx context.Context, key string) (content []byte, found bool, err error)
	// RemoveObjects removes all objects whose keys have a prefix.
	RemoveObjects(ctx context.Context, prefix string) error
}

// PrivateFiles returns the files of the programs and of their operator, which playbooks may not
// use.
func (res Resources) PrivateFiles() private.Places {
	return private.Places{Directory: res.Directory, Paths: res.Private}
}

// TemporaryFile returns a new file on the worker's disk. It has no name, so that nothing of it is left once it is closed, whatever ends the worker.
func (res Resources) TemporaryFile() (*os.File, error) {
	folder := filepath.Join(res.Directory, private.Folder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(folder, "unnamed-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ConnectionResolver finds the URL of a connection, or the text that connection.EntryText made of a
// map: docs/concepts/security.md#connections. It is safe for concurrent use. The URL usually
// contains a password and never leaves the worker.
type ConnectionResolver interface {
	Connection(name string) (url string, ok bool)
}

// ConnectionPrefix begins the variables of connections.
const ConnectionPrefix = "REPRISE_AUTH_"

// ConnectionVariable returns the environment variable that configures a connection:
// upper case, with _ for whatever is neither a letter nor a digit.
func ConnectionVariable(name string) string {
	return ConnectionPrefix + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}

// IsConnectionName reports whether an auth is the name of a connection, and not a connection itself, such as
// sqlite:rows.db.
func IsConnectionName(auth string) bool { return !strings.ContainsAny(auth, ":/@= \t\r\n") }

// Connection gives the URL of a connection to a tool, or a final error that says how to
// configure it. Its secrets are masked in whatever error the attempt ends with.
func (res Resources) Connection(ctx context.Context, name, tool string) (string, error) {
	return res.findConnection(ctx, name, tool, false)
}

// RereadConnection returns a connection after reading its secrets again. It is used when the other side
// has refused them: they may have changed.
func (res Resources) RereadConnection(ctx context.Context, name, tool string) (string, error) {
	return res.findConnection(ctx, name, tool, true)
}

func (res Resources) findConnection(ctx context.Context, name, tool string, anew bool) (string, error) {
	// An author who writes the connection itself would show a password.
	if !IsConnectionName(name) {
		return "", ConfigErrorf("auth must be the name of a connection that the worker knows, such as pg_main, " +
			"not the connection itself")
	}
	configured, ok := res.Connections.Connection(name)
	if !ok {
		return "", NotConfiguredError(name)
	}
	if err := res.Access.RefuseUse(ctx, name, configured, tool); err != nil {
		return "", err
	}
	resolved, err := connection.ResolveSources(configured, func(source connection.SecretSource) (string, error) { return res.Sources.Read(source, anew) })
	switch {
	case errors.Is(err, connection.ErrMissing):
		missing := ConfigErrorf("connection %q: %s", name, err)
		missing.Type = typeSecretMissing
		return "", missing
	case errors.Is(err, connection.ErrUnreadable):
		return "", &Error{
			Kind: interpreter.KindConnection, Class: interpreter.ClassRetryable, Type: TypeSecretStore,
			Message: fmt.Sprintf("connection %q: %s", name, err),
		}
	case err != nil:
		return "", ConfigErrorf("connection %q %w", name, err)
	}
	SecretsOf(ctx).AddSent(res.Secrets.AddConnection(resolved))
	return resolved, nil
}

const (
	// typeSecretMissing is the type of the error of a secret that is nowhere.
	typeSecretMissing = "secret_missing"
	// TypeConnectionDenied is the type of the error of a connection that the tool or the worker may not use.
	TypeConnectionDenied = "connection_denied"
	// TypeSecretStore is the type of the error of a secret that cannot be read now.
	TypeSecretStore = "secret_store"
)

// PrivateFileError returns the final error for a path at which the worker keeps its own files. name is the tool's.
func PrivateFileError(name, step, path string) error {
	return ConfigErrorf("step %q: path is %q, one of the worker's own files (keys, runs, journals, connections, callers), which %s neither reads nor writes", step, path, name)
}

// NotConfiguredError returns the final error of a connection that the worker does not have.
func NotConfiguredError(name string) error {
	return ConfigErrorf("connection %q is not configured: set %s in the worker's environment and restart it, or add it to the worker's file of connections",
		name, ConnectionVariable(name))
}

// URLConnection returns a connection for a tool that needs only a URL. anew reads its secrets
// again.
func (res Resources) URLConnection(ctx context.Context, name, tool string, anew bool) (string, error) {
	raw, err := res.findConnection(ctx, name, tool, anew)
	if err == nil && connection.IsMap(raw) {
		return "", ConfigErrorf("connection %q is a map for http, which %s cannot use: it needs a URL", name, tool)
	}
	return raw, err
}
