package postgres_test

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
)

// TestWhatPostgreSQLSaysOfASecretIsMasked goes through the ways by which an error of PostgreSQL, or of its driver, has
// what the connection was opened with (docs/decisions/0033-forms-of-secrets.md).
func TestWhatPostgreSQLSaysOfASecretIsMasked(t *testing.T) {
	t.Parallel()
	const secret = `Zq8-kN4/w+T2=x"9L&v<2>%q\7Rt5é-W3h-Xc8+Bn5-Km2/Tr9=Yp4-Hd7-Lf6-Vs1-Qa0-Ew3-Gj5-Uo8-Zi2`
	db := testenv.Postgres(t)
	db.Exec(t, "CREATE TABLE keys (id int PRIMARY KEY, key text CHECK (key = ''), raw bytea)")
	address, err := url.Parse(db.URL)
	require.NoError(t, err)
	with := func(change func(u *url.URL)) string {
		u := *address
		change(&u)
		return u.String()
	}
	c := activities.NewCatalogue(activities.Resources{Connections: activities.FirstOf{activities.Connections{
		"main": db.URL, "known": "bearer:" + secret,
		"password": with(func(u *url.URL) { u.User = url.UserPassword("nobody", secret) }),
		"host":     with(func(u *url.URL) { u.User, u.Host = url.UserPassword("ana", secret), "127.0.0.1:1" }),
		"port":     strings.Replace(with(func(u *url.URL) { u.User = url.UserPassword("ana", secret) }), address.Host, "db.test:po rt", 1),
		"words":    "host=127.0.0.1 port=1 user=ana connect_timeout=x password='" + strings.ReplaceAll(secret, `\`, `\\`) + "'",
		"setting": with(func(u *url.URL) {
			u.User = url.UserPassword("ana", secret)
			u.RawQuery = "sslmode=" + url.QueryEscape(secret)
		}),
	}}})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	literal := "'" + secret[:20] + "' || '" + secret[20:] + "'"
	for _, one := range []struct{ auth, statement string }{
		{"password", ""},
		{"host", ""},
		{"port", ""},
		{"words", ""},
		{"setting", ""},
		{"main", "SELECT (" + literal + ")::int AS n"},
		{"main", "SELECT to_json(" + literal + ")::text::int AS n"},
		{"main", "SELECT quote_literal(" + literal + ")::int AS n"},
		{"main", "SELECT encode(convert_to('ana:' || " + literal + ", 'UTF8'), 'base64')::int AS n"},
		{"main", "SELECT encode(convert_to(" + literal + ", 'UTF8'), 'escape')::int AS n"},
		{"main", "SELECT convert_to(" + literal + ", 'UTF8')::text::int AS n"},
		{"main", "INSERT INTO keys VALUES (1, 'no', convert_to(" + literal + ", 'UTF8'))"},
		{"main", "INSERT INTO keys VALUES (1, " + literal + ")"},
	} {
		in := tooltest.Input(map[string]any{"statement": cmp.Or(one.statement, "SELECT 1 AS a")})(t)
		in.Auth = one.auth
		_, err := tooltest.Call(t, c, "postgres", "postgres", in)
		require.Error(t, err, one)
		object := tooltest.ErrorObject(t, err)
		tooltest.RequireMasked(t, object, secret)
		if one.statement != "" {
			require.Contains(t, fmt.Sprint(object), "***", one.statement)
		}
	}
}
