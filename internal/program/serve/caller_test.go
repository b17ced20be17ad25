package serve_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/program/serve"
)

func TestCallersThatAreNone(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("ab", 32)
	for text, says := range map[string]string{
		"- ci":                       "expected a map of callers",
		"rpr_token":                  "expected a map of callers",
		"ci: [":                      "not a YAML map of callers",
		"ci: rpr_x":                  "ci: expected a map",
		"ci: {}":                     "ci: needs sha256",
		"a b: {}":                    "a caller's name",
		"a:b: {}":                    "a caller's name",
		"'@github': 1":               "a caller's name",
		"ci: {sha256: " + hash + "}": "needs sha256 (the hash of a token), and playbooks",
		"ci: {playbooks: [a]}":       "needs sha256",
		"ci: {sha256: rpr_token, playbooks: [a]}":                     "64 hexadecimal digits",
		"ci: {sha256: [" + hash + ", 1], playbooks: [a]}":             "sha256 must be a text or a list of texts",
		"ci: {sha256: " + hash[2:] + ", playbooks: [a]}":              "64 hexadecimal digits",
		"ci: {token: rpr_token, playbooks: [a]}":                      `the key "token" is unknown`,
		"ci: {sha256: " + hash + ", playbooks: 1}":                    "playbooks must be",
		"ci: {sha256: " + hash + ", playbooks: [a]}\nci: {sha256: x}": "already above",
	} {
		path := filepath.Join(t.TempDir(), "callers.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := serve.OpenCallers(path)
		require.ErrorContains(t, err, says, text)
		require.NotContains(t, err.Error(), "rpr_", "a token that was mistaken is not told")
	}
	_, err := serve.OpenCallers(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	token, line, err := serve.NewToken("ci", []string{"a", `b"c`}, serve.RoleNone)
	require.NoError(t, err)
	require.Regexp(t, `^rpr_[A-Za-z0-9_-]{43}$`, token)
	sum := sha256.Sum256([]byte(token))
	require.Equal(t, `ci: {sha256: "`+hex.EncodeToString(sum[:])+`", playbooks: ["a", "b\"c"]}`, line)
	other, _, err := serve.NewToken("ci", nil, serve.RoleNone)
	require.NoError(t, err)
	require.NotEqual(t, token, other)
	for _, name := range []string{"", "a b", "a:b", "@x", strings.Repeat("a", 65)} {
		_, _, err := serve.NewToken(name, nil, serve.RoleNone)
		require.ErrorContains(t, err, "is not a valid caller name")
	}
}
