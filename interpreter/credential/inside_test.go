package credential_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/interpreter/credential"
)

// TestIsMember: what answers have besides secrets is shown, however it is named.
func TestIsMember(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, value string
		want        bool
	}{
		{"password", "x", true},
		{"accessToken", "abc", true},
		{"client_secret", "abc", true},
		{"X-Api-Key", "abc", true},
		{"session_id", "s1", true},
		{"verification_code", "123456", true},
		{"key", "0123456789abcdef0123", true},
		{"name", "key-value store", false},
		{"key", "PROJ-1234", false},
		{"code", "rate_limit_exceeded_for_the_user", false},
		{"error.code", "E1001", false},
		{"country_code", "DE", false},
		{"author", "Ada Lovelace, Countess of 1815", false},
		{"sort_key", "2026-01-31T00:00:00Z#00017", false},
		{"next_page_token", "0123456789abcdef0123", false},
		{"password", "", false},
	} {
		require.Equal(t, row.want, credential.IsMember(row.name, row.value), "%s: %s", row.name, row.value)
	}
}

// TestInside: secrets within texts are found, variables and types are none.
func TestInside(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://api.test/x?page=2&access_token=abc123def4&n=1":        "https://api.test/x?page=2&access_token=***&n=1",
		"/cb?next=https%3A%2F%2Fb.test%3Fapi_key%3Dabc123def4%26n%3D1": "/cb?next=https%3A%2F%2Fb.test%3Fapi_key%3D***%26n%3D1",
		`{"user": "ada", "password": "abc123def4"}`:                    `{"user": "ada", "password": "***"}`,
		`{\"password\":\"abc123def4\"}`:                                `{\"password\":\"***\"}`,
		"Authorization: Bearer abc123def4":                             "Authorization: Bearer ***",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.c2ln":                       "***",
		"see ghp_abcdefghij0123456789 there":                           "see *** there",
		"mutation($token: String!) { login(token: $token) { id } }":    "mutation($token: String!) { login(token: $token) { id } }",
		"the task-something-long-2026 is done":                         "the task-something-long-2026 is done",
		"page_token=abc123def456":                                      "page_token=abc123def456",
		"the token: see the documentation":                             "the token: see the documentation",
	} {
		require.Equal(t, want, credential.WithoutInside(text))
		require.Equal(t, want != text, credential.HasInside(text))
	}
	require.Equal(t, []string{"abc123def4"}, credential.FindSecrets("?sig=abc123def4"))
	require.True(t, credential.AssignsSecret("<ns:Password>x</ns:Password>"))
	require.False(t, credential.AssignsSecret("<name>x</name>"))
}
