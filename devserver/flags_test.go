package main

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
)

func TestParseArgsAcceptsTheFormsOfTheOfficialCLI(t *testing.T) {
	t.Parallel()
	// What the Go SDK's testsuite.StartDevServer passes, flag by flag.
	opts, err := parseArgs([]string{
		"server", "start-dev", "--ip", "127.0.0.1", "--port", "7301", "--namespace", "default",
		"--dynamic-config-value", "frontend.enableServerVersionCheck=false",
		"--log-level", "error", "--log-format", "pretty", "--headless",
		"--db-filename", "state.db", "--ui-port", "8301",
		"--search-attribute", "Playbook=Keyword", "--search-attribute", "Failed=Int",
	})
	require.NoError(t, err)
	require.Equal(t, options{
		ip: "127.0.0.1", uiIP: "127.0.0.1", port: 7301, headless: true,
		dbFile: "state.db", namespaces: []string{"default"},
		attributes: map[string]enums.IndexedValueType{
			"Playbook": enums.INDEXED_VALUE_TYPE_KEYWORD,
			"Failed":   enums.INDEXED_VALUE_TYPE_INT,
		},
		settings: map[string]any{"frontend.enableServerVersionCheck": false},
		logLevel: "error", logFormat: "pretty",
	}, opts)
}

func TestParseArgsFillsInDefaults(t *testing.T) {
	t.Parallel()
	opts, err := parseArgs(nil)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", opts.ip)
	require.Equal(t, 7233, opts.port)
	require.Equal(t, 8233, opts.uiPort)
	require.Equal(t, []string{"default"}, opts.namespaces)
	require.Equal(t, "warn", opts.logLevel)
}

func TestParseArgsNamespacesRepeatAndSplit(t *testing.T) {
	t.Parallel()
	opts, err := parseArgs([]string{"-n", "a,b", "--namespace", "c", "--namespace=a"})
	require.NoError(t, err)
	require.Equal(t, []string{"default", "a", "b", "c"}, opts.namespaces)
}

func TestParseArgsUIPort(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		args []string
		want int
	}{
		{"follows the port", []string{"--port", "9000"}, 10000},
		{"given", []string{"--port", "9000", "--ui-port", "9001"}, 9001},
		{"picked on request", []string{"--port", "9000", "--ui-port", "0"}, 0},
		{"picked with a picked port", []string{"--port", "0"}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			opts, err := parseArgs(row.args)
			require.NoError(t, err)
			require.Equal(t, row.want, opts.uiPort)
		})
	}
}

func TestParseArgsAddresses(t *testing.T) {
	t.Parallel()
	opts, err := parseArgs([]string{"--ip", "[::1]", "--ui-ip", "0.0.0.0"})
	require.NoError(t, err)
	require.Equal(t, "::1", opts.ip)
	require.Equal(t, "0.0.0.0", opts.uiIP)
}

func TestParseArgsErrors(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"start"}, `unexpected argument "start", expected flags only`},
		{[]string{"--prot", "1"}, "flag provided but not defined: -prot"},
		{[]string{"--ip", "example.org"}, `--ip "example.org" is not an address, expected an IP address or localhost`},
		{[]string{"--metrics-port", "-1"}, "--metrics-port -1 is not a port, expected 0 to 65535"},
		{[]string{"--port", "70000", "--headless"}, "--port 70000 is not a port, expected 0 to 65535"},
		{[]string{"--port", "65000"}, "no UI port at --port 65000 plus 1000, give one with --ui-port"},
		{[]string{"--namespace", "a,,b"}, "empty namespace name, expected NAME or NAME,NAME"},
		{[]string{"--search-attribute", "Playbook"}, "expected NAME=TYPE"},
		{[]string{"--search-attribute", "Playbook=string"}, `unknown type "string", expected Text, Keyword, KeywordList, Int, Double, Bool or Datetime`},
		{[]string{"--dynamic-config-value", "a.b"}, "expected KEY=JSON"},
		{[]string{"--log-level", "loud"}, `--log-level "loud" is unknown, expected one of debug, info, warn, error, never`},
		{[]string{"--log-format", "xml"}, `--log-format "xml" is unknown, expected one of text, pretty, json`},
	} {
		t.Run(row.want, func(t *testing.T) {
			t.Parallel()
			_, err := parseArgs(row.args)
			require.ErrorContains(t, err, row.want)
		})
	}
}

func TestParseArgsHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--help"}, {"-h"}, {"help"}, {"server", "start-dev", "--help"}} {
		_, err := parseArgs(args)
		require.ErrorIs(t, err, flag.ErrHelp)
	}
}

func TestUsageNamesEveryFlag(t *testing.T) {
	t.Parallel()
	var opts options
	flagSet(&opts).VisitAll(func(f *flag.Flag) {
		dashes := "--"
		if len(f.Name) == 1 {
			dashes = "-"
		}
		require.Contains(t, usage, dashes+f.Name)
	})
}
