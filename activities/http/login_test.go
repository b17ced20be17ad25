package http_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/http"
	"reprise/activities/tool"
	"reprise/activities/tooltest"
	"reprise/internal/base/secrets"
	"reprise/interpreter"
)

// absentLogins are logins of which nobody gets a token, until the channel is closed.
type absentLogins chan struct{}

func (l absentLogins) LoginToken(ctx context.Context, _, _ string, _ int) (tool.LoginToken, error) {
	select {
	case <-ctx.Done():
	case <-l:
	}
	return tool.LoginToken{}, ctx.Err()
}

// TestTheWaitForALoginEnds: with the time of its attempt, or after two minutes, and the error says which.
func TestTheWaitForALoginEnds(t *testing.T) {
	const login = `{"host": "https://api.example.com", "oauth2": {"grant": "refresh_token", "token_url": "https://login.example.com/token", "client_id": "c", "refresh_token": "r"}}`
	send := func(t *testing.T, limit time.Duration) error {
		t.Helper()
		logins := make(absentLogins)
		defer close(logins)
		caller := http.New(tool.Resources{
			Connections: activities.Connections{"shop": login}, Secrets: &secrets.Masker{}, Logins: logins, MaxResponseBytes: 1000,
		}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		in := tooltest.Input(map[string]any{"url": "/x"})(t)
		in.Auth = "shop"
		_, err := caller.Run(ctx, in)
		return err
	}
	synctest.Test(t, func(t *testing.T) {
		err := send(t, 30*time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var waited *tool.TokenWaitError
		require.ErrorAs(t, err, &waited)
		require.Equal(t, "shop", waited.Connection)
	})
	synctest.Test(t, func(t *testing.T) {
		var failure *tool.Error
		require.ErrorAs(t, send(t, time.Hour), &failure)
		require.Equal(t, interpreter.KindConnection, failure.Kind)
		require.Equal(t, `connection "shop": its login returned no token within 2m0s`, failure.Message)
	})
}
