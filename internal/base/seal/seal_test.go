package seal_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/seal"
)

func parse(t *testing.T, text string) *seal.Keys {
	t.Helper()
	keys, err := seal.Parse(text)
	require.NoError(t, err)
	return keys
}

func TestWhatIsSealedOpensForItsPlaceAlone(t *testing.T) {
	t.Parallel()
	keys := parse(t, seal.NewKey())
	sealed, err := keys.Seal([]byte("tok-123456"), "run/login")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(sealed, "v1."+keys.IDs()[0]+"."), sealed)
	require.NotContains(t, sealed, "tok-123456")
	text, err := keys.Open(sealed, "run/login")
	require.NoError(t, err)
	require.Equal(t, "tok-123456", string(text))

	again, err := keys.Seal([]byte("tok-123456"), "run/login")
	require.NoError(t, err)
	require.NotEqual(t, sealed, again, "equal texts cannot be told")

	_, err = keys.Open(sealed, "other/login")
	require.ErrorContains(t, err, "for a different use")
	for at := range len(sealed) {
		changed := []byte(sealed)
		changed[at] ^= 4
		_, err := keys.Open(string(changed), "run/login")
		require.Error(t, err, "byte %d", at)
	}
}

func TestKeysAreRotated(t *testing.T) {
	t.Parallel()
	old, next := seal.NewKey(), seal.NewKey()
	sealed, err := parse(t, old).Seal([]byte("x"), "p")
	require.NoError(t, err)
	both := parse(t, " "+next+" , "+old+",")
	text, err := both.Open(sealed, "p")
	require.NoError(t, err)
	require.Equal(t, "x", string(text))

	sealed, err = both.Seal([]byte("y"), "p")
	require.NoError(t, err)
	_, err = parse(t, next).Open(sealed, "p")
	require.NoError(t, err, "the first one seals")
	_, err = parse(t, old).Open(sealed, "p")
	require.ErrorContains(t, err, "sealed with the key "+both.IDs()[0]+", but this worker has the keys "+both.IDs()[1])
	_, err = (*seal.Keys)(nil).Open(sealed, "p")
	require.ErrorContains(t, err, "this worker has none")
}

func TestKeysThatAreNone(t *testing.T) {
	t.Parallel()
	keys, err := seal.Parse("")
	require.NoError(t, err)
	require.Empty(t, keys.IDs())
	for _, text := range []string{
		"short-key-1234567890", strings.Repeat("ab", 32), seal.NewKey() + ",short", " , ",
	} {
		_, err := seal.Parse(text)
		require.ErrorContains(t, err, seal.Variable)
		require.ErrorContains(t, err, "openssl rand -base64 32")
		require.NotContains(t, err.Error(), "short-key")
	}
}

// TestOthersSealForWorkers: only those who have one of the keys open it, at its place.
func TestOthersSealForWorkers(t *testing.T) {
	t.Parallel()
	first, second := seal.NewKey(), seal.NewKey()
	old, err := seal.Parse(first)
	require.NoError(t, err)
	both, err := seal.Parse(second + "," + first)
	require.NoError(t, err)
	require.NotEqual(t, old.PublicKey(), both.PublicKey())
	sealed, err := seal.SealTo(old.PublicKey(), []byte("code"), "here")
	require.NoError(t, err)
	require.NotContains(t, string(sealed), "code")
	for _, keys := range []*seal.Keys{old, both} {
		text, err := keys.OpenSealed(sealed, "here")
		require.NoError(t, err)
		require.Equal(t, "code", string(text))
		_, err = keys.OpenSealed(sealed, "there")
		require.Error(t, err)
	}
	others, err := seal.Parse(second)
	require.NoError(t, err)
	_, err = others.OpenSealed(sealed, "here")
	require.Error(t, err)
	_, err = (*seal.Keys)(nil).OpenSealed(sealed, "here")
	require.Error(t, err)
	require.Nil(t, (*seal.Keys)(nil).PublicKey())
	_, err = seal.SealTo([]byte("no key"), []byte("code"), "here")
	require.ErrorContains(t, err, "the public key of the workers cannot be used")
}
