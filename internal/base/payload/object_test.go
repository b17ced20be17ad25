package payload_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/codec"
	"reprise/internal/base/keyring"
	"reprise/internal/base/payload"
)

// TestObjects: what is written under a key is read again by another process, is replaced and removed as a whole, and is encrypted if values are.
func TestObjects(t *testing.T) {
	t.Parallel()
	address, err := payload.DirectoryAddress(t.TempDir())
	require.NoError(t, err)
	open := func() *payload.Store {
		store, err := payload.Open(t.Context(), address)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		return store
	}
	writer, reader := open(), open()
	_, found, err := reader.ReadObject(t.Context(), "bodies/a/head")
	require.NoError(t, err)
	require.False(t, found)
	content := bytes.Repeat([]byte("a part of a body "), 1000)
	for _, text := range [][]byte{[]byte("another"), content, {}} {
		require.NoError(t, writer.WriteObject(t.Context(), "bodies/a/head", text))
		got, found, err := reader.ReadObject(t.Context(), "bodies/a/head")
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, string(text), string(got))
	}
	encryption, err := codec.Parse(keyring.NewKey())
	require.NoError(t, err)
	sealed := open()
	sealed.SetEncryption(encryption)
	require.NoError(t, sealed.WriteObject(t.Context(), "bodies/b/1", content))
	got, _, err := sealed.ReadObject(t.Context(), "bodies/b/1")
	require.NoError(t, err)
	require.Equal(t, content, got)
	got, _, err = reader.ReadObject(t.Context(), "bodies/b/1")
	if err == nil {
		require.NotContains(t, string(got), "a part of a body")
	}
	require.NoError(t, writer.RemoveObjects(t.Context(), "bodies/a/"))
	_, found, err = reader.ReadObject(t.Context(), "bodies/a/head")
	require.NoError(t, err)
	require.False(t, found)
	_, found, err = sealed.ReadObject(t.Context(), "bodies/b/1")
	require.NoError(t, err)
	require.True(t, found, "the objects of others stay")
	require.NoError(t, writer.RemoveObjects(t.Context(), "bodies/none/"))
}
