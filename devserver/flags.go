package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"go.temporal.io/api/enums/v1"
)

const usage = `Temporal server with its web UI in one process, for local work and tests.

Usage:
  devserver [flags]
  devserver server start-dev [flags]     (the form of the official CLI)

Flags:
  --ip ADDR                        address to listen on (default localhost)
  --port, -p N                     gRPC port (default 7233; 0 picks a free one)
  --http-port N                    port of the HTTP API (default: there is none)
  --ui-ip ADDR                     address of the web UI (default: the value of --ip)
  --ui-port N                      port of the web UI (default: port + 1000)
  --metrics-port N                 port of the server's metrics, in Prometheus' format, at
                                   /metrics of the address of --ip (default: there is none)
  --headless                       no web UI
  --db-filename, -f FILE           keep state in this SQLite file (default: memory)
  --postgres URL                   keep state in a PostgreSQL, in the database of the URL and in
                                   one with _visibility after its name; both are created;
                                   DEVSERVER_POSTGRES keeps a password out of the command
  --namespace, -n NAME[,NAME]      create these too; "default" always exists; repeatable
  --search-attribute NAME=TYPE     Text, Keyword, KeywordList, Int, Double, Bool or
                                   Datetime; in every namespace named; repeatable
  --dynamic-config-value KEY=JSON  server setting; repeatable
  --log-level LEVEL                debug, info, warn, error or never (default warn)
  --log-format FORMAT              text, pretty or json (default text)
  --version                        print the versions and exit
  --help                           print this and exit

With a key in the environment variable DEVSERVER_API_KEY, clients must send it as
their API key (authorization: Bearer KEY); without one there is no authentication.
The web UI asks nobody for the key, so with one it has no port. It is at the Unix
socket that DEVSERVER_UI_SOCKET names, in a folder of this user alone, below the
path in DEVSERVER_UI_PATH; whoever serves it on says who may use it.

Either way, keep the server on a loopback address. The web UI on a port and the
HTTP API refuse web pages of other sites.
`

const (
	defaultPort      = 7233
	defaultNamespace = "default"
	uiPortOffset     = 1000
	maxPort          = 65535
)

// options are the options of the command line, validated and with defaults. Ports that were not given are chosen when
// the server starts.
type options struct {
	ip, uiIP     string
	port         int // 0: pick a free one
	httpPort     int // 0: no HTTP API
	uiPort       int // 0: port + uiPortOffset, or a free one when port is picked
	metricsPort  int // 0: no metrics
	headless     bool
	dbFile       string // empty: in memory
	postgres     string // URL of a database in place of SQLite; empty: none
	key          string // that clients must send; empty: none
	uiSocket     string // where the web UI is in place of a port
	uiPath       string // before all paths of the web UI at the socket, such as /temporal
	namespaces   []string
	attributes   map[string]enums.IndexedValueType
	settings     map[string]any
	logLevel     string
	logFormat    string
	version      bool
	uiPortPicked bool // --ui-port 0 was given
}

// parseArgs parses the command line, with or without the leading words "server start-dev". It returns flag.ErrHelp if
// help was requested.
func parseArgs(args []string) (options, error) {
	if len(args) > 0 && args[0] == "help" {
		return options{}, flag.ErrHelp
	}
	if len(args) > 1 && args[0] == "server" && args[1] == "start-dev" {
		args = args[2:]
	}
	opts := options{
		namespaces: []string{defaultNamespace},
		attributes: map[string]enums.IndexedValueType{},
		settings:   map[string]any{},
	}
	set := flagSet(&opts)
	if err := set.Parse(args); err != nil {
		return options{}, err
	}
	if set.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q, expected flags only", set.Arg(0))
	}
	set.Visit(func(f *flag.Flag) {
		if f.Name == "ui-port" && opts.uiPort == 0 {
			opts.uiPortPicked = true
		}
	})
	return opts, opts.complete()
}

func flagSet(opts *options) *flag.FlagSet {
	set := flag.NewFlagSet("devserver", flag.ContinueOnError)
	set.SetOutput(io.Discard) // run prints the error and where to find help
	set.Usage = func() {}
	set.StringVar(&opts.ip, "ip", "localhost", "")
	set.StringVar(&opts.uiIP, "ui-ip", "", "")
	for _, name := range []string{"port", "p"} {
		set.IntVar(&opts.port, name, defaultPort, "")
	}
	set.IntVar(&opts.httpPort, "http-port", 0, "")
	set.IntVar(&opts.uiPort, "ui-port", 0, "")
	set.IntVar(&opts.metricsPort, "metrics-port", 0, "")
	set.BoolVar(&opts.headless, "headless", false, "")
	for _, name := range []string{"db-filename", "f"} {
		set.StringVar(&opts.dbFile, name, "", "")
	}
	set.StringVar(&opts.postgres, "postgres", "", "")
	for _, name := range []string{"namespace", "n"} {
		set.Func(name, "", opts.addNamespaces)
	}
	set.Func("search-attribute", "", opts.addAttribute)
	set.Func("dynamic-config-value", "", opts.addSetting)
	set.StringVar(&opts.logLevel, "log-level", "warn", "")
	set.StringVar(&opts.logFormat, "log-format", "text", "")
	set.BoolVar(&opts.version, "version", false, "")
	return set
}

func (o *options) addNamespaces(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			return fmt.Errorf("empty namespace name, expected NAME or NAME,NAME")
		}
		if !slices.Contains(o.namespaces, name) {
			o.namespaces = append(o.namespaces, name)
		}
	}
	return nil
}

func (o *options) addAttribute(text string) error {
	name, typeName, found := strings.Cut(text, "=")
	if !found || name == "" {
		return fmt.Errorf("expected NAME=TYPE")
	}
	kind, err := enums.IndexedValueTypeFromString(typeName)
	if err != nil || kind == enums.INDEXED_VALUE_TYPE_UNSPECIFIED {
		return fmt.Errorf("unknown type %q, expected Text, Keyword, KeywordList, Int, Double, Bool or Datetime", typeName)
	}
	o.attributes[name] = kind
	return nil
}

func (o *options) addSetting(text string) error {
	key, value, err := parseSetting(text)
	if err != nil {
		return err
	}
	o.settings[key] = value
	return nil
}

// complete validates the options and sets their defaults, as far as that depends on no other process.
func (o *options) complete() error {
	var err error
	if o.ip, err = parseIP("--ip", o.ip); err != nil {
		return err
	}
	o.uiIP = cmp.Or(o.uiIP, o.ip)
	if o.uiIP, err = parseIP("--ui-ip", o.uiIP); err != nil {
		return err
	}
	if o.uiPort == 0 && o.port != 0 && !o.uiPortPicked {
		o.uiPort = o.port + uiPortOffset
		if o.uiPort > maxPort && !o.headless {
			return fmt.Errorf("no UI port at --port %d plus %d, give one with --ui-port", o.port, uiPortOffset)
		}
	}
	if o.headless {
		o.uiPort = 0 // of no meaning
	}
	for _, given := range []struct {
		flag string
		port int
	}{{"--port", o.port}, {"--http-port", o.httpPort}, {"--ui-port", o.uiPort}, {"--metrics-port", o.metricsPort}} {
		if given.port < 0 || given.port > maxPort {
			return fmt.Errorf("%s %d is not a port, expected 0 to %d", given.flag, given.port, maxPort)
		}
	}
	return o.checkLog()
}

func (o *options) checkLog() error {
	levels := []string{"debug", "info", "warn", "error", "never"}
	if !slices.Contains(levels, o.logLevel) {
		return fmt.Errorf("--log-level %q is unknown, expected one of %s", o.logLevel, strings.Join(levels, ", "))
	}
	formats := []string{"text", "pretty", "json"}
	if !slices.Contains(formats, o.logFormat) {
		return fmt.Errorf("--log-format %q is unknown, expected one of %s", o.logFormat, strings.Join(formats, ", "))
	}
	return nil
}

// parseIP accepts what the server can listen on: an IP address, or localhost, which it resolves itself.
func parseIP(name, text string) (string, error) {
	if text == "localhost" {
		return "127.0.0.1", nil
	}
	ip := net.ParseIP(strings.Trim(text, "[]"))
	if ip == nil {
		return "", fmt.Errorf("%s %q is not an address, expected an IP address or localhost", name, text)
	}
	return ip.String(), nil
}
