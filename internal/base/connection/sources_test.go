package connection_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/connection"
)

// vault is a directory of secrets, variables and a clock.
type vault struct {
	*connection.Sources

	variables map[string]string
	now       time.Time
	log       bytes.Buffer
}

func newVault(t *testing.T) *vault {
	t.Helper()
	v := &vault{variables: map[string]string{}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	v.Sources = &connection.Sources{
		Directory: t.TempDir(), Now: func() time.Time { return v.now }, Logger: slog.New(slog.NewTextHandler(&v.log, nil)),
		Lookup: func(name string) (string, bool) { value, ok := v.variables[name]; return value, ok },
	}
	return v
}

func (v *vault) write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(v.Directory, path), []byte(text), 0o600))
}

func (v *vault) requireValue(t *testing.T, source connection.SecretSource, value string) {
	t.Helper()
	got, err := v.Read(source, false)
	require.NoError(t, err)
	require.Equal(t, value, got)
}

// TestASecretIsCachedForItsRefresh reads variables, whose changes nobody reports.
func TestASecretIsCachedForItsRefresh(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	source := connection.SecretSource{From: "env", Name: "KEY", Refresh: 5 * time.Minute}
	_, err := v.Read(source, false)
	require.ErrorIs(t, err, connection.ErrMissing)
	require.EqualError(t, err, "variable KEY: no such secret")
	v.variables["KEY"] = "one"
	v.requireValue(t, source, "one")
	v.variables["KEY"] = "two"
	v.now = v.now.Add(source.Refresh - 1)
	v.requireValue(t, source, "one")
	value, err := v.Read(source, true)
	require.NoError(t, err)
	require.Equal(t, "two", value, "what was refused is read at once")
	v.variables["KEY"] = "three"
	v.now = v.now.Add(source.Refresh)
	v.requireValue(t, source, "three")
}

// TestAFileOfASecretIsReadWhenItChanges also changes it the way mounts of Kubernetes do.
func TestAFileOfASecretIsReadWhenItChanges(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	source := connection.SecretSource{From: "file", Path: "shop", Refresh: time.Hour}
	v.write(t, "shop", "one\r\n")
	v.requireValue(t, source, "one")
	v.write(t, "shop", "longer\n\n")
	v.requireValue(t, source, "longer\n")
	for _, version := range []string{"v1", "v2"} {
		require.NoError(t, os.Mkdir(filepath.Join(v.Directory, version), 0o700))
		v.write(t, version+"/mounted", version)
	}
	require.NoError(t, os.Symlink("v1", filepath.Join(v.Directory, "..data")))
	require.NoError(t, os.Symlink("..data/mounted", filepath.Join(v.Directory, "mounted")))
	mounted := connection.SecretSource{From: "file", Path: "mounted", Refresh: time.Hour}
	v.requireValue(t, mounted, "v1")
	require.NoError(t, os.Symlink("v2", filepath.Join(v.Directory, "..new")))
	require.NoError(t, os.Rename(filepath.Join(v.Directory, "..new"), filepath.Join(v.Directory, "..data")))
	v.requireValue(t, mounted, "v2")
}

// TestABrokenFileLeavesTheLastValue until it is an hour old.
func TestABrokenFileLeavesTheLastValue(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	source := connection.SecretSource{From: "file", Path: "shop", Field: "password", Refresh: time.Minute}
	v.write(t, "shop", `{"password": "one"}`)
	v.requireValue(t, source, "one")
	for _, broken := range []string{"", `{"password": "tw`, "\x00", `["password"]`} {
		v.write(t, "shop", broken)
		v.requireValue(t, source, "one")
		v.requireValue(t, source, "one")
	}
	require.Equal(t, 4, strings.Count(v.log.String(), "cannot re-read a secret; its last value stays in use"))
	require.NotContains(t, v.log.String(), "tw")
	v.now = v.now.Add(time.Hour)
	_, err := v.Read(source, false)
	require.ErrorIs(t, err, connection.ErrUnreadable)
	v.write(t, "shop", `{"user": "x"}`)
	_, err = v.Read(source, false)
	require.ErrorIs(t, err, connection.ErrMissing)
	require.EqualError(t, err, "file shop, field password: no such secret")
}

// TestALargeFileIsNoSecret passes mostSecret.
func TestALargeFileIsNoSecret(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.write(t, "log", strings.Repeat("x", 1<<20+1))
	_, err := v.Read(connection.SecretSource{From: "file", Path: "log"}, false)
	require.ErrorIs(t, err, connection.ErrUnreadable)
	require.ErrorContains(t, err, "it has more than 1048576 bytes")
}

// TestAPathStaysInItsDirectory whatever is there.
func TestAPathStaysInItsDirectory(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, []byte("canary-5ecret"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(v.Directory, "link")))
	require.NoError(t, os.Symlink(filepath.Dir(outside), filepath.Join(v.Directory, "folder")))
	require.NoError(t, os.Mkdir(filepath.Join(v.Directory, "a"), 0o700))
	for path, expected := range map[string]error{
		"link": connection.ErrMissing, "folder/outside": connection.ErrMissing, outside: connection.ErrMissing,
		"../" + filepath.Base(filepath.Dir(outside)) + "/outside": connection.ErrMissing, "none": connection.ErrMissing, "a": connection.ErrUnreadable,
	} {
		value, err := v.Read(connection.SecretSource{From: "file", Path: path}, false)
		require.ErrorIs(t, err, expected, path)
		require.Empty(t, value)
	}
	v.Directory = ""
	_, err := v.Read(connection.SecretSource{From: "file", Path: "shop"}, false)
	require.ErrorContains(t, err, "set --secrets-directory or REPRISE_SECRETS_DIRECTORY")
}

// TestResolve gives connections as tools know them.
func TestResolve(t *testing.T) {
	t.Parallel()
	read := func(source connection.SecretSource) (string, error) {
		if source.Path == "none" {
			return "", connection.ErrMissing
		}
		return "<" + source.Path + source.Name + source.Field + ">", nil
	}
	for configured, resolved := range map[string]string{
		"bearer:tok":                         "bearer:tok",
		`{"from": "file", "path": "clinic"}`: "<clinic>",
		`{"bearer": {"from": "env", "name": "TOKEN"}, "host": "https://api.test"}`:                                                                                               `{"bearer":"<TOKEN>","host":"https://api.test"}`,
		`{"headers": {"from": "me", "X-Key": {"from": "file", "path": "key", "field": "a"}}}`:                                                                                    `{"headers":{"X-Key":"<keya>","from":"me"}}`,
		`{"query": {"from": {"from": "file", "path": "key"}}}`:                                                                                                                   `{"query":{"from":"<key>"}}`,
		`{"basic": {"user": "ana", "password": {"from": "file", "path": "key", "refresh": "1m"}}}`:                                                                               `{"basic":{"password":"<key>","user":"ana"}}`,
		`{"url": "postgres://ana@db.test/shop?sslmode=disable", "password": {"from": "file", "path": "a/b"}}`:                                                                    "postgres://ana:%3Ca%2Fb%3E@db.test/shop?sslmode=disable",
		`{"session": {"login": {"url": "https://api.test", "body": {"list": ["x", {"pw": {"from": "file", "path": "a"}}]}}, "token": "{{ response }}", "send": {"query": "s"}}}`: `{"session":{"login":{"body":{"list":["x",{"pw":"<a>"}]},"url":"https://api.test"},"send":{"query":"s"},"token":"{{ response }}"}}`,
		`{"session": {"login": {"url": "https://api.test", "form": {"from": "me", "pw": {"from": "env", "name": "a"}}}, "token": "{{ response }}", "send": {"query": "s"}}}`:     `{"session":{"login":{"form":{"from":"me","pw":"<a>"},"url":"https://api.test"},"send":{"query":"s"},"token":"{{ response }}"}}`,
		`{"url": {"from": "file", "path": "url"}}`:                                                                                                                               "<url>",
		`{"url": "postgres://db.test/shop", "user": "ana", "password": {"from": "file", "path": "p/w"}}`:                                                                         "postgres://ana:%3Cp%2Fw%3E@db.test/shop",
		`{"url": "postgres://db.test/shop", "user": {"from": "file", "path": "u"}}`:                                                                                              "postgres://%3Cu%3E@db.test/shop",
		`{"tls": {"certificate": {"from": "file", "path": "c"}, "key": {"from": "file", "path": "k"}, "ca": {"from": "file", "path": "a"}}}`:                                     `{"tls":{"ca":"<a>","certificate":"<c>","key":"<k>"}}`,
	} {
		text, err := connection.ResolveSources(configured, read)
		require.NoError(t, err, configured)
		require.Equal(t, resolved, text, configured)
		require.Equal(t, strings.Contains(configured, `{"from": "file"`) || strings.Contains(configured, `{"from": "env"`), connection.HasSources(configured), configured)
	}
	_, err := connection.ResolveSources(`{"bearer": {"from": "file", "path": "none"}}`, read)
	require.ErrorIs(t, err, connection.ErrMissing)
	for configured, problem := range map[string]string{
		`{"bearer": {"from": "gcp", "path": "x"}}`:                     "bearer path: has an unknown key in bearer, expected one of from, name, field, refresh",
		`{"bearer": {"from": "azure", "path": "x"}}`:                   "bearer from: must have file, env, vault, aws or gcp as bearer.from",
		`{"bearer": {"from": "vault", "path": "x"}}`:                   "bearer path: must have a path in Vault as bearer.path, such as kv/data/shop",
		`{"bearer": {"from": "vault", "path": "kv/../sys/x"}}`:         "bearer path: must have a path in Vault",
		`{"bearer": {"from": "vault", "path": "/kv/x"}}`:               "bearer path: must have a path in Vault",
		`{"bearer": {"from": "vault", "name": "x"}}`:                   "bearer name: has an unknown key in bearer",
		`{"bearer": {"from": "aws"}}`:                                  "bearer name: must have bearer.name, as text",
		`{"url": "postgres://db.test/shop", "user": "a", "host": "x"}`: "host: has url (for a database) and host (for http); keep one",
		`{"url": "postgres://ana@db.test/shop", "user": "canary"}`:     "user: has a user in url and in user; keep one",
		`{"bearer": {"from": "file"}}`:                                 "bearer path: must have bearer.path, as text",
		`{"bearer": {"from": "file", "path": "../x"}}`:                 "bearer path: must have a path below the secrets directory as bearer.path",
		`{"bearer": {"from": "file", "path": "/x"}}`:                   "bearer path: must have a path below the secrets directory",
		`{"bearer": {"from": "file", "path": "x", "feild": "canary"}}`: "bearer feild: has an unknown key in bearer (did you mean field?), expected one of from, path, field, refresh",
		`{"bearer": {"from": "env", "name": "x", "refresh": "5"}}`:     "bearer refresh: must have a duration as bearer.refresh, such as 30s or 5m",
		`{"bearer": {"token": "canary"}}`:                              "bearer from: must have file, env, vault, aws or gcp as bearer.from",
		`{"host": {"from": "file", "path": "x"}, "bearer": "x"}`:       "host: must have a URL as host",
		`{"url": "postgres://db.test", "bearer": "x"}`:                 "bearer: has url (for a database) and bearer (for http); keep one",
		`{"password": "canary"}`:                                       "url: must have url, as text",
		`{"url": "postgres://db.test/shop", "password": "canary"}`:     "url: must have a user in url, such as postgres://user@host/database, or in user beside it",
	} {
		_, err := connection.ResolveSources(configured, read)
		var found *connection.Problem
		require.True(t, errors.As(err, &found), configured)
		require.Contains(t, strings.Join(found.Path, " ")+": "+found.Message, problem, configured)
		require.NotContains(t, found.Message, "canary")
	}
}
