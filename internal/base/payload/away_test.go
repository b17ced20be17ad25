package payload_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"reprise/internal/base/payload"
	"reprise/internal/test/testenv"
)

// TestFolderThatIsNoLongerTheStore: where the folder of a store has gone, or an empty one is in its place because its
// share is no longer mounted, nothing is written beside it, and no value counts as missing.
func TestFolderThatIsNoLongerTheStore(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(string) error{
		"gone":        func(string) error { return nil },
		"not mounted": func(dir string) error { return os.Mkdir(dir, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, dir := openDirectory(t)
			driver := store.ExternalStorage().Drivers[0]
			claims, err := driver.Store(converter.StorageDriverStoreContext{Context: t.Context()}, []*commonpb.Payload{value("v")})
			require.NoError(t, err)
			require.NoError(t, os.Rename(dir, dir+".away"))
			require.NoError(t, replace(dir))

			_, err = driver.Retrieve(converter.StorageDriverRetrieveContext{Context: t.Context()}, claims)
			var failed *payload.StoreError
			require.ErrorAs(t, err, &failed)
			require.ErrorContains(t, err, "is no longer mounted")
			require.NotErrorIs(t, err, payload.ErrMissing)
			require.Error(t, store.CheckReady(t.Context()), "a value was written a moment ago, and reading has failed since")
			require.ErrorContains(t, store.Write(t.Context(), value(strings.Repeat("w", 200_000))), "write sha256/")
			require.NoFileExists(t, filepath.Join(dir, "sha256"))
			testenv.Receive(t, store.FailureSignal(), "the failure")

			require.NoError(t, errors.Join(os.RemoveAll(dir), os.Rename(dir+".away", dir)))
			_, err = driver.Retrieve(converter.StorageDriverRetrieveContext{Context: t.Context()}, claims)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return store.CheckReady(t.Context()) == nil }, testenv.Within(10*time.Second), 10*time.Millisecond)
		})
	}
}

// TestOpenLater: a program that can do without the store opens it when that is back; an address that can be no store's is
// an error at once.
func TestOpenLater(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "payloads")
	store, err := payload.OpenLater("file://" + dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.ErrorContains(t, store.UnavailableReason(t.Context()), "open the payload store file://"+dir+": the folder is not a payload store")
	require.Error(t, store.Write(t.Context(), value(strings.Repeat("w", 200_000))))
	require.NoDirExists(t, dir)
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.ErrorContains(t, store.UnavailableReason(t.Context()), "the folder is not a payload store")
	require.NoError(t, payload.PrepareFolder(t.Context(), "file://"+dir))
	require.NoError(t, store.UnavailableReason(t.Context()))
	require.NoError(t, store.Write(t.Context(), value(strings.Repeat("w", 200_000))))

	for _, address := range []string{"payloads", "ftp://host", "s3://bucket", "file:///tmp/none?token=1", "gs://u:p@bucket"} {
		_, err := payload.OpenLater(address)
		require.Error(t, err, address)
	}
	var none *payload.Store
	require.NoError(t, none.UnavailableReason(t.Context()))
	require.Nil(t, none.FailureSignal())
}

// TestFailureType: the failure of a workflow task has the type by which the store is recognised.
func TestFailureType(t *testing.T) {
	t.Parallel()
	failure := temporal.GetDefaultFailureConverter().ErrorToFailure(&payload.StoreError{Text: "away"})
	require.Equal(t, payload.FailureType, failure.GetApplicationFailureInfo().GetType())
}
