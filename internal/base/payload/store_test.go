package payload_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/base/payload"
)

func TestOpenNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	const secret = "hunter2000"
	for name, test := range map[string]struct{ address, problem string }{
		"a path":            {"/var/lib/payloads", "expected an address such as file:///var/lib"},
		"a relative path":   {"payloads", "expected an address"},
		"no slashes":        {"s3:bucket", "expected an address"},
		"not a URL":         {"s3://%zz" + secret, "expected an address"},
		"unknown scheme":    {"ftp://host/x?key=" + secret, `unknown scheme "ftp"`},
		"cloud not there":   {"s3://bucket", `unknown scheme "s3"`},
		"cloud left out":    {"gs://bucket/f?key=" + secret, "open the payload store gs://bucket/f: this program was built without support for it; build with -tags allclouds"},
		"credentials":       {"s3://user:" + secret + "@bucket", "must not contain credentials"},
		"unknown option":    {"file:///tmp/none?token=" + secret, `invalid query parameter "token"`},
		"under a file":      {"file://" + os.Args[0] + "/x", "not a directory"},
		"wrong option name": {"mem://?" + secret, "open the payload store mem:"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := payload.Open(t.Context(), test.address)
			require.ErrorContains(t, err, test.problem)
			if name != "wrong option name" { // an option's name is no secret
				require.NotContains(t, err.Error(), secret)
			}
		})
	}
}

func TestNoAddressIsNoStore(t *testing.T) {
	t.Parallel()
	store, err := payload.Open(t.Context(), "")
	require.NoError(t, err)
	require.Nil(t, store)
	require.Equal(t, "none", store.Name())
	require.NoError(t, store.Close())
}

func TestDirectoryIsMadeForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "with space", "payloads")
	address, err := payload.DirectoryAddress(path)
	require.NoError(t, err)
	store, err := payload.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.Equal(t, address, store.Name()+"?create_dir=true")
}

// TestFolderHasToBeAStore: a folder that is missing, or empty because nothing is mounted there, is not taken for the store,
// and nothing is made there.
func TestFolderHasToBeAStore(t *testing.T) {
	t.Parallel()
	empty, missing := t.TempDir(), filepath.Join(t.TempDir(), "share", "payloads")
	for _, path := range []string{empty, missing} {
		address := "file://" + path
		_, err := payload.Open(t.Context(), address)
		require.ErrorContains(t, err, "open the payload store "+address+": the folder is not a payload store: it does not exist, has not been prepared, ")
		require.ErrorContains(t, err, "starter setup --payload-store ADDRESS")
	}
	require.NoDirExists(t, missing)
	left, err := os.ReadDir(empty)
	require.NoError(t, err)
	require.Empty(t, left)
	for _, path := range []string{empty, missing} {
		require.NoError(t, payload.PrepareFolder(t.Context(), "file://"+path))
		require.NoError(t, payload.PrepareFolder(t.Context(), "file://"+path), "again")
		store, err := payload.Open(t.Context(), "file://"+path)
		require.NoError(t, err)
		require.NoError(t, store.CheckReady(t.Context()))
		require.NoError(t, store.Close())
	}
	require.NoError(t, payload.PrepareFolder(t.Context(), ""), "no store needs nothing")
}

// TestMaxBytes: the variable is read by worker and starter alike.
// It passes mostMaxBytes.
func TestMaxBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"": payload.DefaultMaxBytes, "1048576": 1 << 20, "262144": 256 << 10,
		"64MiB": 0, "-1": 0, "1000": 0, "99999999999": 0, "1e6": 0,
	} {
		got, err := payload.MaxBytes(func(name string) (string, bool) {
			require.Equal(t, "REPRISE_MAX_RESULT_BYTES", name)
			return text, text != ""
		})
		if want == 0 {
			require.ErrorContains(t, err, "number of bytes from 262144 to 536870912", text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}
