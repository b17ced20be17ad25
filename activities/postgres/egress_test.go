package postgres_test

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/base/egress"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// TestEgressOfSessions: a connection names its hosts, so they are reached; addresses of metadata are not, and deny wins, in
// each spelling and for each host of a list.
func TestEgressOfSessions(t *testing.T) {
	t.Parallel()
	db := testenv.Postgres(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var accepted atomic.Int64
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			_ = conn.Close()
		}
	}()
	at := listener.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	policy, err := egress.Parse(map[string]any{"deny": []any{at, "no.test", "::1", "*.away.test"}}, egress.RemotePolicy())
	require.NoError(t, err)
	policy.Resolver = testenv.NewNameServer(t, func(name string, _ int) []string {
		return map[string][]string{"moves.test": {"127.0.0.1"}, "metadata.test": {"169.254.169.254"}, "nat64.test": {"64:ff9b::a9fe:a9fe"}}[name]
	})
	query := func(hosts string) error {
		c := activities.NewCatalogue(activities.Resources{Egress: policy, Connections: activities.Connections{"pg": hosts}})
		defer func() { require.NoError(t, c.Close()) }()
		in := tooltest.Input(map[string]any{"statement": "SELECT 1 AS one"})(t)
		in.Auth = "pg"
		_, err := tooltest.Call(t, c, "postgres", "postgres", in)
		return err
	}
	require.NoError(t, query(db.URL))
	for _, hosts := range []string{
		at, "moves.test:" + port, "2130706433:" + port, "0x7f.1:" + port, "[::ffff:127.0.0.1]:" + port, "127.0.0.1:0" + port, "no.test", "NO.test.", "db.away.test:1", "[::1]:1",
		"169.254.169.254", "metadata.test", "nat64.test", "[fe80::1]", "[64:ff9b::a9fe:a9fe]", "[fd00:ec2::254]", "169.254.1.1,169.254.1.2", "metadata.test," + at, "168.63.129.16",
	} {
		object := tooltest.ErrorObject(t, query("postgres://u:p4ssw0rd@"+hosts+"/d?sslmode=disable"))
		require.Equal(t, []any{interpreter.KindConnection, interpreter.ClassFinal, "egress_denied"}, []any{object.Kind, object.Class, object.Type}, "%s: %s", hosts, object.Message)
		require.Contains(t, object.Message, "the worker may not connect to", hosts)
		require.NotContains(t, object.Message, "p4ssw0rd")
	}
	require.Zero(t, accepted.Load())
	object := tooltest.ErrorObject(t, query(strings.Replace(db.URL, "postgres://", "postgres://", 1)+"&connect_timeout=3&application_name=x&host=169.254.169.254"))
	require.Equal(t, "egress_denied", object.Type)
}
