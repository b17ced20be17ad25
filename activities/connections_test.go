package activities_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tool"
)

func TestConnectionsByName(t *testing.T) {
	t.Parallel()

	environment := activities.EnvConnections(func(variable string) (string, bool) {
		v, ok := map[string]string{"REPRISE_AUTH_PG_MAIN": "postgres://env", "REPRISE_AUTH_MY_API_2": "bearer:x", "REPRISE_AUTH_EMPTY": ""}[variable]
		return v, ok
	})
	all := activities.FirstOf{activities.Connections{"pg_main": "postgres://config"}, environment}

	for name, want := range map[string]string{
		"pg_main": "postgres://config", "PG_main": "postgres://env", "my-api.2": "bearer:x", "empty": "", "other": "",
	} {
		url, ok := all.Connection(name)
		require.Equal(t, want, url, name)
		require.Equal(t, want != "", ok, name)
	}
}

func TestConnectionVariable(t *testing.T) {
	t.Parallel()

	require.Equal(t, "REPRISE_AUTH_PG_MAIN", tool.ConnectionVariable("pg_main"))
	require.Equal(t, "REPRISE_AUTH_MY_API_2", tool.ConnectionVariable("my-api.2"))
}

// Drivers quote what they were given; the fence around every attempt holds.
func TestSecretsOfAConnectionAreMasked(t *testing.T) {
	t.Parallel()

	const url = "postgres://ana:p%40ss%2Fword@db.test/app?sslpassword=keypass99"

	ctx, mask := activities.MaskFor(context.Background(), activities.Resources{
		Connections: activities.Connections{"pg": url},
	}, "pg")
	require.NoError(t, ctx.Err())

	for text, want := range map[string]string{
		"cannot parse " + url:            "cannot parse ***",
		"password p@ss/word is wrong":    "password *** is wrong",
		"user ana:p%40ss%2Fword":         "user ***",
		"key keypass99":                  "key ***",
		"database app of ana at db.test": "database app of *** at db.test",
	} {
		require.Equal(t, want, mask(errors.New(text).Error()))
	}
}
