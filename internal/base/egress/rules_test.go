package egress_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/egress"
	"reprise/interpreter/expression"
)

// value reads the value of a file of rules.
func value(t *testing.T, text string) any {
	t.Helper()
	v, err := expression.Decode([]byte(text))
	require.NoError(t, err)
	return v
}

// TestRulesOfNames: what a proxy is asked for, by the rules of an operator. The expectations are those of docs/how-to/egress.md.
func TestRulesOfNames(t *testing.T) {
	t.Parallel()
	named := func(hostPort string) bool {
		return hostPort == "named.internal:443" || hostPort == "169.254.169.254:80"
	}
	for _, row := range []struct {
		rules            string
		allowed, refused []string
	}{
		{`{}`, []string{"api.example.com:443", "8.8.8.8:53", "named.internal:443", "NAMED.internal.:0443"}, []string{"named.internal:80", "localhost:80", "10.0.0.1:80", "169.254.169.254:80", "db:5432"}},
		{`{"private": "allow"}`, []string{"localhost:80", "10.0.0.1:80", "db:5432", "127.0.0.1:1"}, []string{"169.254.169.254:80", "metadata.google.internal:80", "100.100.100.200:80"}},
		{`{"public": "deny"}`, []string{"named.internal:443"}, []string{"api.example.com:443", "8.8.8.8:53", "10.0.0.1:80"}},
		{`{"public": "deny", "allow": ["api.example.com:443", "*.example.org"]}`, []string{"api.example.com:443", "API.example.com.:443", "a.b.example.org:1"}, []string{"api.example.com:80", "example.org:1", "evilexample.org:1"}},
		{`{"allow": ["10.2.0.0/16", "[fd00::5]:8080", "fd01::/16", "192.168.1.1:443"]}`, []string{"10.2.255.1:9", "0x0a020001:9", "[::ffff:10.2.0.1]:9", "[64:ff9b::10.2.0.1]:9", "[fd00::5]:8080", "[fd01::1]:1", "192.168.1.1:443"}, []string{"10.3.0.0:9", "[fd00::5]:80", "192.168.1.1:80", "[2002:0a02:0001::1]:9"}},
		{`{"allow": ["169.254.169.254:80", "metadata.google.internal"]}`, []string{"169.254.169.254:80", "metadata.google.internal:80"}, []string{"169.254.169.254:81", "169.254.170.2:80", "metadata:80"}},
		{`{"private": "allow", "deny": ["10.0.0.0/8", "no.example.com", "*.away.example.com:443", "::ffff:192.168.0.0/112"], "allow": ["10.1.1.1", "no.example.com"]}`, []string{"172.16.0.1:1", "x.away.example.com:80", "away.example.com:443", "yes.example.com:1"}, []string{"10.1.1.1:1", "no.example.com:1", "x.away.example.com:443", "192.168.7.7:1", "[::ffff:10.1.1.1]:1", "[64:ff9b::a00:1]:1"}},
	} {
		policy, err := egress.Parse(value(t, row.rules), egress.RemotePolicy())
		require.NoError(t, err, row.rules)
		for _, address := range row.allowed {
			require.NoError(t, policy.CheckProxied(address, named), "%s %s", row.rules, address)
		}
		for _, address := range row.refused {
			var denied *egress.DeniedError
			require.ErrorAs(t, policy.CheckProxied(address, named), &denied, "%s %s", row.rules, address)
			require.Equal(t, address, denied.Address)
		}
	}
	require.NoError(t, (*egress.Policy)(nil).CheckProxied("127.0.0.1:80", egress.NoConnection))
	require.Error(t, (*egress.Policy)(nil).CheckProxied("169.254.169.254:80", egress.NoConnection))
}

// TestProblemsOfRules have their place and what to write instead.
func TestProblemsOfRules(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		`["10.0.0.0/8"]`:                   "must be a map of private, public, allow and deny",
		`{"alow": []}`:                     `unknown key "alow" (did you mean allow?), expected one of private, public, allow, deny`,
		`{"private": true}`:                "private must be allow or deny",
		`{"public": "yes"}`:                "public must be allow or deny",
		`{"allow": "10.0.0.0/8"}`:          "allow must be a list, such as [10.2.0.0/16",
		`{"deny": [5]}`:                    "deny has an entry that is not a range, an address or a host",
		`{"allow": ["10.0.0.0/33"]}`:       "allow has an entry that is not",
		`{"allow": ["https://api.test"]}`:  "allow has an entry that is not",
		`{"allow": ["api.test:99999"]}`:    "allow has an entry that is not",
		`{"allow": ["api.test:https"]}`:    "allow has an entry that is not",
		`{"allow": ["api.test:0"]}`:        "allow has an entry that is not",
		`{"allow": ["*"]}`:                 "allow has an entry that is not",
		`{"allow": ["api.*.test"]}`:        "allow has an entry that is not",
		`{"allow": ["*.10.0.0.1"]}`:        "allow has an entry that is not",
		`{"allow": ["10.0.0.0-10.0.0.9"]}`: "allow has an entry that is not",
		`{"allow": [""]}`:                  "allow has an entry that is not",
	} {
		_, err := egress.Parse(value(t, text), egress.RemotePolicy())
		require.ErrorContains(t, err, says, text)
	}
}
