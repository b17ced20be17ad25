// Package connect finds and connects to the Temporal server that the user means. Flags take precedence over
// environment variables, and those over profiles, as in Temporal's own tools.
package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/BurntSushi/toml"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"reprise/internal/base/codec"
	"reprise/internal/base/regular"
)

// DefaultNamespace is used if no flag, variable or profile names a namespace.
const DefaultNamespace = "default"

// dialTimeout bounds how long to wait for a server to respond.
const dialTimeout = 5 * time.Second

// Flags are the command line's server settings; "" if not set.
type Flags struct {
	Address   string
	Namespace string
	Profile   string
	// MaskKey gets each API key that is read from the file of KeyFileVariable; nil ignores them.
	MaskKey func(key string)
	// Logger gets what is wrong with a changed file of KeyFileVariable; nil logs nothing.
	Logger *slog.Logger
}

// KeyFileVariable is the environment variable of a file that has the API key, instead of TEMPORAL_API_KEY. It is read
// again when it has changed.
const KeyFileVariable = "TEMPORAL_API_KEY_FILE"

// keyVariable is Temporal's own variable of the API key.
const keyVariable = "TEMPORAL_API_KEY"

// ResolveOptions returns client options from flags, TEMPORAL_* variables and the profile of the configuration file. HostPort
// is "" if none of them names a server.
func ResolveOptions(flags Flags) (client.Options, error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{
		ConfigFileProfile: flags.Profile, EnvLookup: nonEmptyVariables{},
	})
	if malformed, ok := errors.AsType[toml.ParseError](err); ok {
		// The parse error may quote a line that holds a key, so only the line number is reported.
		return client.Options{}, fmt.Errorf("read Temporal's configuration: line %d is not valid TOML", malformed.Position.Line)
	}
	if err != nil {
		return client.Options{}, fmt.Errorf("read Temporal's configuration: %w", err)
	}
	keys, err := flags.openKeyFile()
	if err != nil {
		return client.Options{}, err
	}
	if keys != nil {
		profile.APIKey = keys.Current() // which decides about TLS, and precedes that of a profile
	}
	profile.Address = cmp.Or(flags.Address, profile.Address)
	profile.Namespace = cmp.Or(flags.Namespace, profile.Namespace, DefaultNamespace)
	options, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	if err != nil {
		return client.Options{}, fmt.Errorf("read Temporal's configuration: %w", err)
	}
	if keys != nil {
		options.Credentials = client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) { return keys.Current(), nil })
	}
	if flags.Profile != "" && profile.Address == "" {
		return client.Options{}, fmt.Errorf("the profile %q has no address; set one with --address", flags.Profile)
	}
	return options, nil
}

// openKeyFile reads the file of KeyFileVariable; it returns nil if the variable is not set.
func (f Flags) openKeyFile() (*regular.Reread[string], error) {
	path := os.Getenv(KeyFileVariable)
	switch {
	case path == "":
		return nil, nil
	case os.Getenv(keyVariable) != "":
		return nil, fmt.Errorf("%s and %s are both set; unset one of them", keyVariable, KeyFileVariable)
	}
	keys, err := regular.OpenReread(path, "the file of "+KeyFileVariable, func(path string) (string, error) {
		data, err := regular.Read(path)
		if err != nil {
			return "", fmt.Errorf("read %s: %w", KeyFileVariable, err)
		}
		key := strings.TrimSpace(string(data))
		if key == "" || strings.ContainsFunc(key, unicode.IsControl) { // a header with it would be refused, with the key in the error
			return "", fmt.Errorf("read %s: %s is empty, or has more than one line", KeyFileVariable, path)
		}
		if f.MaskKey != nil {
			f.MaskKey(key)
		}
		return key, nil
	})
	if err == nil && f.Logger != nil {
		keys.LogTo(f.Logger)
	}
	return keys, err
}

// nonEmptyVariables looks up environment variables, and treats empty ones as not set.
type nonEmptyVariables struct{}

func (nonEmptyVariables) Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasSuffix(entry, "=") })
}

func (nonEmptyVariables) LookupEnv(name string) (string, bool) {
	value := os.Getenv(name)
	return value, value != ""
}

// WithKey adds the API key of a local server; "" for a server that requires none. The key travels unencrypted, but
// stays on this machine.
func WithKey(options client.Options, key string) client.Options {
	if key != "" && options.Credentials == nil {
		options.Credentials = client.NewAPIKeyStaticCredentials(key)
		options.ConnectionOptions.TLSDisabled = options.ConnectionOptions.TLS == nil
	}
	return options
}

// NoServerError is the error if no usable server was reached at an address, and what to do about it.
type NoServerError struct {
	Address string
	Err     error
	said    string // in place of the usual words
	reached bool   // a server is there
}

func (e *NoServerError) Error() string {
	if e.said != "" {
		return e.said
	}
	return fmt.Sprintf("no Temporal server responds at %s (%s); set another address with --address, or start a server with starter dev",
		e.Address, reasonOf(e.Err))
}

// Unwrap returns the reason.
func (e *NoServerError) Unwrap() error { return e.Err }

// reasonOf returns the message of a connection error without the prefixes that gRPC and the SDK add.
func reasonOf(err error) string {
	reason := err.Error()
	if _, inner, found := strings.Cut(reason, `desc = "`); found {
		reason = strings.TrimSuffix(inner, `"`)
	}
	for _, around := range []string{"failed reaching server: ", "transport: ", "Error while dialing: "} {
		reason = strings.TrimPrefix(reason, around)
	}
	switch {
	case strings.Contains(reason, "no children to pick from"):
		return "its host has no address"
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("not within %s", dialTimeout)
	}
	return reason
}

// WithoutCompression switches off compression for a server on this machine, unless options choose it: without a network,
// compression costs more than it saves. For other servers the SDK compresses messages by default.
func WithoutCompression(options client.Options) client.Options {
	if options.ConnectionOptions.GrpcCompression == nil && IsLocal(options.HostPort) {
		options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	return options
}

// IsLocal reports whether an address is on this machine. "" is the SDK's default address, which is local.
func IsLocal(address string) bool {
	host, _, err := net.SplitHostPort(cmp.Or(address, client.DefaultHostPort))
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// Dial connects and makes sure that the namespace exists. encryption encrypts what is sent and decrypts what is received; nil has no
// key. The error is a *NoServerError unless ctx has ended.
func Dial(ctx context.Context, options client.Options, encryption *codec.Codec, logger *slog.Logger) (client.Client, error) {
	logger = cmp.Or(logger, slog.New(slog.DiscardHandler))
	options, err := encryption.ClientOptions(options, logger)
	if err != nil {
		return nil, err
	}
	options.Logger = log.NewStructuredLogger(slog.New(quietHandler{logger.Handler()}))
	limited, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := client.DialContext(limited, WithoutCompression(options))
	if err != nil {
		return nil, dialError(ctx, options, err, isOverloaded(err))
	}
	_, err = c.WorkflowService().DescribeNamespace(limited, &workflowservice.DescribeNamespaceRequest{Namespace: options.Namespace})
	if err != nil {
		c.Close()
		return nil, dialError(ctx, options, err, true)
	}
	return c, nil
}

func dialError(ctx context.Context, options client.Options, err error, reached bool) error {
	if ctx.Err() != nil {
		return fmt.Errorf("connect to %s: %w", options.HostPort, ctx.Err())
	}
	failed := &NoServerError{Address: options.HostPort, Err: err, reached: reached}
	switch {
	case IsNamespaceMissing(err):
		failed.said = fmt.Sprintf("the Temporal server at %s has no namespace %q: use another with --namespace, or create it there",
			options.HostPort, options.Namespace)
	case reached && IsUnreachable(err):
		failed.said = fmt.Sprintf("the Temporal server at %s is reachable but not ready: %s", options.HostPort, reasonOf(err))
	case isDenied(err):
		failed.said = fmt.Sprintf("the Temporal server at %s requires an API key. Set TEMPORAL_API_KEY, or for a starter dev, run the command in its directory: %v",
			options.HostPort, err)
	}
	return failed
}
