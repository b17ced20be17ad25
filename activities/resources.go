package activities

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"reprise/activities/attempt"
	"reprise/activities/keeper"
	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/internal/base/audit"
	"reprise/internal/base/connection"
	"reprise/internal/base/egress"
	"reprise/internal/base/known"
	"reprise/internal/base/seal"
	"reprise/internal/base/secrets"
	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// defaultMaxResponseBytes bounds what a tool reads from the other side, after
// decompression: 10 MiB.
const defaultMaxResponseBytes = 10 << 20

// Resources is what a worker provides to its tools. The zero value works: connections come from
// the environment, and python is off.
type Resources struct {
	// Connections finds the URL of a connection by name; nil uses the environment
	// (EnvConnections).
	Connections tool.ConnectionResolver
	// SecretsDirectory is the directory with the secret files that connections name; "" for none.
	SecretsDirectory string
	// SecretStores are the servers that have secrets of connections, by the kind of source.
	SecretStores map[string]connection.SecretStore
	// Confine refuses PostgreSQL servers that must not be reached; nil refuses nothing.
	Confine func(interpreter.ToolInput) error
	// Egress decides which addresses tools may connect to; nil is egress.LocalPolicy.
	Egress *egress.Policy
	HTTP   HTTPOptions
	// TaskQueue is the one that the worker polls, "" for a program that polls none.
	TaskQueue string
	// Known are the playbooks that the worker knows; nil for a program whose owner decides what runs.
	Known *known.Playbooks
	// AllowPython lets playbooks run Python code with the worker's rights.
	AllowPython bool
	// CheckPython may refuse code in the activity that would run it; nil allows
	// all that AllowPython does.
	CheckPython   func(ctx context.Context, code string) error
	PythonCommand string // "" is python3
	// Directory is the base of relative paths of file and sqlite; paths of
	// file cannot leave it. "" is the working directory.
	Directory string
	// Private are files of the operator that tool file neither reads nor writes.
	Private []string
	// Playbooks is the folder of playbooks that others run by name; "" for none.
	Playbooks string
	// Limits bound what a playbook's policies may request; the zero value has no limits. Each
	// run records them.
	Limits playbook.Limits
	// Heartbeat is the time between two heartbeats of an activity, 0 for heartbeat.Default. Each run records it.
	Heartbeat time.Duration
	// RateLimits are the operator's limits, which apply in addition to those of playbooks.
	RateLimits attempt.RateLimits
	// MaxResponseBytes bounds a response, a file or a result; 0 is
	// defaultMaxResponseBytes.
	MaxResponseBytes int64
	// Payloads bound how large values may be; each run records them.
	Payloads attempt.Payloads
	Logger   *slog.Logger // nil discards
	// SecretKeys encrypt the results of secret steps, and make the tokens of
	// callbacks; nil refuses both.
	SecretKeys *seal.Keys
	// CallbackURL is where other systems reach starter serve; "" if it is unknown.
	CallbackURL string
	// Secrets are masked in everything that a worker reports; nil makes a new set. The
	// connections are added automatically. A tool adds what it fetches, such as a token.
	Secrets *secrets.Masker
	// Audit is the log of denials and of changed files; nil keeps none.
	Audit *audit.Trail
	// Telemetry records what attempts do; nil records nothing.
	Telemetry attempt.Telemetry
	// Around wraps attempts of tools, by the name of their activity; nil for nothing. Tests of
	// playbooks use it to answer.
	Around func(activity string, run attempt.Func) attempt.Func

	// TokenSpool is the folder that stores tokens of logins until they are reported; "" stores them in memory
	// only.
	TokenSpool string

	sources *connection.Sources
	logins  *keeper.Logins
}

// HTTPOptions are the settings of the http tool.
type HTTPOptions struct {
	// Transport replaces the shared transport; nil is the usual one.
	Transport http.RoundTripper
	// Observe wraps the HTTP transport of attempts, for example to show their requests; nil for
	// no wrapper.
	Observe func(http.RoundTripper) http.RoundTripper
}

func (res Resources) withDefaults() Resources {
	if res.Connections == nil {
		res.Connections = EnvConnections(os.LookupEnv)
	}
	res.PythonCommand = cmp.Or(res.PythonCommand, "python3")
	res.Directory = cmp.Or(res.Directory, ".")
	if res.Payloads.MaxBytes <= 0 {
		res.Payloads.MaxBytes = interpreter.MaxInlinePayload
	}
	if res.Payloads.AnswersBytes <= 0 {
		res.Payloads.AnswersBytes = memory.DefaultBytes
	}
	if res.Payloads.Patience <= 0 {
		res.Payloads.Patience = interpreter.StorePatience
	}
	if res.MaxResponseBytes <= 0 {
		res.MaxResponseBytes = defaultMaxResponseBytes
	}
	res.Logger = cmp.Or(res.Logger, slog.New(slog.DiscardHandler))
	res.Secrets = cmp.Or(res.Secrets, &secrets.Masker{})
	res.Logger = slog.New(res.Secrets.Handler(res.Logger.Handler()))
	res.sources = &connection.Sources{Directory: res.SecretsDirectory, Lookup: os.LookupEnv, Now: time.Now, Logger: res.Logger, Stores: res.SecretStores}
	res.logins = &keeper.Logins{
		Keys: res.SecretKeys, Spool: &keeper.TokenSpool{Directory: res.TokenSpool, Logger: res.Logger}, Secrets: res.Secrets, Logger: res.Logger,
	}
	res.Known.LogTo(res.Logger)
	if logs, ok := res.Connections.(interface{ LogTo(*slog.Logger) }); ok {
		logs.LogTo(res.Logger)
	}
	if res.Audit != nil {
		res.notifyChanges(func(what string, err error) {
			if err := res.Audit.WriteChange(what, err); err != nil {
				res.Logger.Error("a change of a file is not in the audit log", "file", what, "error", err)
			}
		})
	}
	for _, url := range append(configuredURLs(res.Connections), fromEnvironment(os.Environ())...) {
		res.Secrets.AddConnection(url)
	}
	res.SecretKeys.Watch(res.Logger, func(text string) { res.Secrets.AddConnection("bearer:" + text) }) // masked like passwords
	return res
}

// notifyChanges sets who is notified of changed files of connections, secrets and keys.
func (res Resources) notifyChanges(changed func(what string, err error)) {
	FirstOf{res.Connections}.OnChange(changed)
	res.sources.OnChange(changed)
	res.Known.OnChange(changed)
}

// forTools returns the part of the resources for tools.
func (res Resources) forTools() tool.Resources {
	return tool.Resources{
		Connections: res.Connections, Sources: res.sources, Confine: res.Confine, Egress: res.Egress, Access: res.access(), Directory: res.Directory, Private: res.Private, MaxResponseBytes: res.MaxResponseBytes,
		MaxPayload: res.Payloads.MaxBytes, MemoryBytes: res.Payloads.AnswersBytes, Logger: res.Logger, Secrets: res.Secrets,
		Logins: res.logins, Bodies: res.bodies(),
	}
}

// bodies returns the store for large bodies, which is the payload store; nil if there is none.
func (res Resources) bodies() tool.BodyStore {
	store, _ := res.Payloads.Store.(tool.BodyStore)
	return store
}

// access decides who may use the connections.
func (res Resources) access() tool.ConnectionAccess {
	return tool.ConnectionAccess{TaskQueue: res.TaskQueue, Known: res.Known}
}

// forAttempts returns the part of the resources for attempts.
func (res Resources) forAttempts() attempt.Resources {
	return attempt.Resources{
		Connections: res.Connections, Access: res.access(), Payloads: res.Payloads, RateLimits: res.RateLimits, Logger: res.Logger, Secrets: res.Secrets,
		SecretKeys: res.SecretKeys, Audit: res.Audit, Telemetry: res.Telemetry, Around: res.Around,
	}
}

// configuredURLs returns the URLs of connections that can be listed; those of others are known once
// they are used.
func configuredURLs(resolver tool.ConnectionResolver) []string {
	switch resolver := resolver.(type) {
	case interface{ Texts() []string }:
		return resolver.Texts()
	case FirstOf:
		var all []string
		for _, one := range resolver {
			all = append(all, configuredURLs(one)...)
		}
		return all
	}
	return nil
}

// fromEnvironment returns the URLs of connections in the environment, and the other secrets
// there.
func fromEnvironment(entries []string) []string {
	var all []string
	for _, entry := range entries {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case value == "":
		case strings.HasPrefix(name, tool.ConnectionPrefix), strings.EqualFold(name, "http_proxy"), strings.EqualFold(name, "https_proxy"):
			all = append(all, value)
		case slices.Contains([]string{"TEMPORAL_API_KEY", "PGPASSWORD"}, name):
			all = append(all, "bearer:"+value)
		}
	}
	return all
}

// Connections is a fixed set of connections by name, such as the worker's
// configuration file.
type Connections map[string]string

// Connection finds a connection by name.
func (c Connections) Connection(name string) (string, bool) {
	url, ok := c[name]
	return url, ok && url != ""
}

// Texts are all connections.
func (c Connections) Texts() []string { return slices.Collect(maps.Values(c)) }

// EnvConnections resolves pg_main as REPRISE_AUTH_PG_MAIN by the function it
// is, usually os.LookupEnv.
type EnvConnections func(variable string) (string, bool)

// Connection finds a connection by name.
func (lookup EnvConnections) Connection(name string) (string, bool) {
	url, ok := lookup(tool.ConnectionVariable(name))
	return url, ok && url != ""
}

// FirstOf tries resolvers in order.
type FirstOf []tool.ConnectionResolver

// Connection finds a connection by name.
func (all FirstOf) Connection(name string) (string, bool) {
	for _, resolver := range all {
		if url, ok := resolver.Connection(name); ok {
			return url, true
		}
	}
	return "", false
}

// OnChange sets who is notified of changed files of the resolvers that have one.
func (all FirstOf) OnChange(changed func(what string, err error)) {
	for _, resolver := range all {
		if notifies, ok := resolver.(interface{ OnChange(func(string, error)) }); ok {
			notifies.OnChange(changed)
		}
	}
}

// LogTo gives the resolvers a logger that want one.
func (all FirstOf) LogTo(logger *slog.Logger) {
	for _, resolver := range all {
		if logs, ok := resolver.(interface{ LogTo(*slog.Logger) }); ok {
			logs.LogTo(logger)
		}
	}
}
