package credential_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/credential"
)

// TestPathSecrets: webhooks, bots and tokens stand in paths. certain are found everywhere, suspects only where
// a file is written anew.
func TestPathSecrets(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]struct{ certain, suspects []string }{
		"https://hooks.slack.com/services/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": {
			certain: []string{"T0AB1CD2E", "B0AB1CD2E", "aB3dE5fG7hI9jK1lM3nO5pQ7"},
		},
		"https://discord.com/api/webhooks/1234567890123/abcDEF-123_ghiJKL": {certain: []string{"abcDEF-123_ghiJKL"}},
		"https://acme.webhook.office.com/webhookb2/9a8b7c6d-1111-2222-3333-444455556666@9a8b7c6d-1111-2222-3333-444455556666/IncomingWebhook/0123456789abcdef0123456789abcdef/9a8b7c6d-1111-2222-3333-444455556666": {
			certain: []string{
				"9a8b7c6d-1111-2222-3333-444455556666@9a8b7c6d-1111-2222-3333-444455556666", "0123456789abcdef0123456789abcdef", "9a8b7c6d-1111-2222-3333-444455556666",
			},
		},
		"https://api.telegram.org/bot123456:AAabcdefghijklmnopqrst/sendMessage":         {certain: []string{"bot123456:AAabcdefghijklmnopqrst"}},
		"https://chat.test/hooks/x8k3j9d7s5a1q2w4e6r8t0y2u4":                            {certain: []string{"x8k3j9d7s5a1q2w4e6r8t0y2u4"}},
		"https://maker.ifttt.com/trigger/rows/with/key/dX9-abcdEFGH12345678":            {certain: []string{"dX9-abcdEFGH12345678"}},
		"https://api.test/v1/key/a1b2c3d4e5/rows":                                       {certain: []string{"a1b2c3d4e5"}},
		"https://api.test/t/ghp_a1b2c3d4e5f6g7h8/rows":                                  {certain: []string{"ghp_a1b2c3d4e5f6g7h8"}},
		"https://api.test/0123456789abcdef0123456789abcdef/rows":                        {suspects: []string{"0123456789abcdef0123456789abcdef"}},
		"https://api.test/u/Zx7Kd93jdLd83jdKs0qP/rows":                                  {suspects: []string{"Zx7Kd93jdLd83jdKs0qP"}},
		"https://api.test/v1/customers/12345/open-orders":                               {},
		"https://api.test/v2.1/rows/9a8b7c6d-1111-2222-3333-444455556666":               {},
		"https://api.github.com/repos/acme/rows/hooks/12345678/deliveries":              {},
		"https://api.test/blog/2024-05-01-how-we-load-10000-rows-an-hour":               {},
		"https://api.test/getAllOpenCustomerOrdersOfDay/by_region/north-west-2024":      {},
		"https://api.test/spreadsheets/507f1f77bcf86cd799439011/values/Sheet1!A1:C1000": {},
		"https://api.test/webhooks/{hook}/deliveries":                                   {},
	} {
		parsed, err := url.Parse(address)
		require.NoError(t, err)
		path := parsed.EscapedPath()
		require.Equal(t, want.certain, credential.PathSecrets(parsed.Hostname(), path), address)
		suspects := want.suspects
		if want.certain != nil {
			suspects = want.certain
		}
		require.Equal(t, suspects, credential.PathSuspects(parsed.Hostname(), path), address)
	}
}

// TestInsideOfAddresses: of an address only the secret is masked.
func TestInsideOfAddresses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"see https://hooks.slack.com/services/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?x=1.": "see https://hooks.slack.com/services/***/***/***?x=1.",
		"https://me:s3cretpw@api.test/rows?page=2&api_key=a1b2c3d4e5":                            "https://me:***@api.test/rows?page=2&api_key=***",
		"https://api.test/rows/1?access_token=EAASECRETa1b2c3d4e5&page=2":                        "https://api.test/rows/1?access_token=***&page=2",
		`{"next": "https://api.test/rows?sig=a1b2c3d4e5&after=7"}`:                               `{"next": "https://api.test/rows?sig=***&after=7"}`,
		"https://api.test/rows?page=2":                                                           "https://api.test/rows?page=2",
		"https://discord.com/api/webhooks/1234567890123/abcDEF-123_ghiJKL":                       "https://discord.com/api/webhooks/1234567890123/***",
	} {
		require.Equal(t, want, credential.WithoutInside(text), text)
	}
}

// TestIsMemberOfAnswers: a link is no secret as a whole, unless its name says so.
func TestIsMemberOfAnswers(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		name, value string
		want        bool
	}{
		{"api_key", "abc", true},
		{"session", "https://api.test/sessions/1?sig=a1b2c3d4e5", false},
		{"auth", "https://api.test/login", false},
		{"token", "https://api.test/t/1", true},
		{"next_token", "a1b2c3d4e5f6a7b8c9d0", false},
		{"key", "PROJ-12", false},
		{"code", "a1b2c3d4e5f6a7b8c9d0", true},
	} {
		require.Equal(t, of.want, credential.IsMember(of.name, of.value), "%s: %s", of.name, of.value)
	}
}

// TestIsWritten: what a check of a file warns of.
func TestIsWritten(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		name, text string
		want       bool
	}{
		{"password", "hunter2", true},
		{"clientSecret", "abcd", true},
		{"secret_key", "abcd", true},
		{"x-api-key", "abcd", true},
		{"xauthtoken", "abcd", true},
		{"bearer_token", "abcd", true},
		{"Authorization", "Bearer abc", true},
		{"cookie", "sid=abc1", true},
		{"auth", "basic", false},
		{"sid", "morning", false},
		{"next_page_token", "a1b2c3d4e5", false},
		{"notify", "https://hooks.slack.com/services/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", true},
		{"notify", "https://api.test/rows/12", false},
		{"note", "ghp_a1b2c3d4e5f6g7h8", true},
		{"note", "key-figures", false},
	} {
		require.Equal(t, of.want, credential.IsWritten(of.name, of.text), "%s: %s", of.name, of.text)
	}
}
