package seal_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/seal"
)

// keyFile is a file of keys and the environment that names it.
type keyFile struct {
	path string
	vars map[string]string
}

func newKeyFile(t *testing.T, text string) *keyFile {
	t.Helper()
	f := &keyFile{path: filepath.Join(t.TempDir(), "secret-key")}
	f.vars = map[string]string{seal.FileVariable: f.path}
	f.write(t, text)
	return f
}

// write replaces the file, as systemd and Kubernetes do, so that another file has its name.
func (f *keyFile) write(t *testing.T, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(f.path+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(f.path+".new", f.path))
}

func (f *keyFile) lookup(name string) (string, bool) {
	value, found := f.vars[name]
	return value, found
}

// TestKeysOfAFile: a process reads rotated keys without a restart, has them masked, and keeps the last ones where the file
// is broken or away.
func TestKeysOfAFile(t *testing.T) {
	t.Parallel()
	old, next := seal.NewKey(), seal.NewKey()
	f := newKeyFile(t, old+"\n")
	keys, err := seal.FromEnvironment(f.lookup)
	require.NoError(t, err)
	var log bytes.Buffer
	var masked []string
	keys.Watch(slog.New(slog.NewTextHandler(&log, nil)), func(text string) { masked = append(masked, text) })
	require.Equal(t, []string{old}, masked)
	require.Equal(t, parse(t, old).IDs(), keys.IDs())
	sealed, err := keys.Seal([]byte("x"), "p")
	require.NoError(t, err)

	f.write(t, next+","+old+"\n")
	require.Equal(t, parse(t, next+","+old).IDs(), keys.IDs())
	require.Equal(t, []string{old, next, old}, masked)
	text, err := keys.Open(sealed, "p")
	require.NoError(t, err)
	require.Equal(t, "x", string(text))
	sealed, err = keys.Seal([]byte("y"), "p")
	require.NoError(t, err)
	_, err = parse(t, next).Open(sealed, "p")
	require.NoError(t, err, "the first one seals")
	require.Equal(t, parse(t, next).PublicKey(), keys.PublicKey())
	require.Empty(t, log.String())

	for _, broken := range []string{"", "short-key-1234567890", " , "} {
		log.Reset()
		f.write(t, broken)
		require.Equal(t, parse(t, next+","+old).IDs(), keys.IDs())
		require.Contains(t, log.String(), "the file of REPRISE_SECRET_KEY_FILE has changed and cannot be used")
		require.NotContains(t, log.String(), "short-key")
	}
	require.NoError(t, os.Remove(f.path))
	require.Equal(t, parse(t, next+","+old).IDs(), keys.IDs())
	f.write(t, next)
	require.Equal(t, parse(t, next).IDs(), keys.IDs())
}

// TestKeysOfTheEnvironment: one variable, or the other, or none.
func TestKeysOfTheEnvironment(t *testing.T) {
	t.Parallel()
	key := seal.NewKey()
	f := newKeyFile(t, key)
	keys, err := seal.FromEnvironment(func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	require.Nil(t, keys)
	keys.Watch(slog.New(slog.DiscardHandler), func(string) { t.Error("there is nothing to mask") })

	f.vars[seal.Variable] = key
	_, err = seal.FromEnvironment(f.lookup)
	require.EqualError(t, err, "REPRISE_SECRET_KEY and REPRISE_SECRET_KEY_FILE are both set; unset one of them")
	delete(f.vars, seal.FileVariable)
	keys, err = seal.FromEnvironment(f.lookup)
	require.NoError(t, err)
	require.Equal(t, parse(t, key).IDs(), keys.IDs())

	delete(f.vars, seal.Variable)
	f.vars[seal.FileVariable] = f.path
	for _, test := range []struct{ text, problem string }{
		{"", "is empty; generate one with: openssl rand -base64 32"},
		{"short-key-1234567890", "REPRISE_SECRET_KEY_FILE: key 1 is too short"},
	} {
		f.write(t, test.text)
		_, err = seal.FromEnvironment(f.lookup)
		require.ErrorContains(t, err, test.problem)
		require.NotContains(t, err.Error(), "short-key")
	}
	require.NoError(t, os.Remove(f.path))
	_, err = seal.FromEnvironment(f.lookup)
	require.ErrorContains(t, err, "read REPRISE_SECRET_KEY_FILE: open "+f.path)
}
