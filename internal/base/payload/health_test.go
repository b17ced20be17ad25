package payload_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"reprise/internal/base/payload"
	"reprise/internal/test/testenv"
)

// shut makes a directory's store unusable for anybody, root included.
func shut(t *testing.T, dir string) (open func()) {
	t.Helper()
	require.NoError(t, os.Rename(dir, dir+".away"))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	return func() {
		require.NoError(t, os.Remove(dir))
		require.NoError(t, os.Rename(dir+".away", dir))
	}
}

func openDirectory(t *testing.T) (*payload.Store, string) {
	t.Helper()
	dir := t.TempDir() + "/payloads"
	address, err := payload.DirectoryAddress(dir)
	require.NoError(t, err)
	store, err := payload.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store, dir
}

// TestReady: a store is asked before it is trusted, and again soon once it has
// failed.
func TestReady(t *testing.T) {
	t.Parallel()
	store, dir := openDirectory(t)
	open := shut(t, dir)
	err := store.CheckReady(t.Context())
	require.ErrorContains(t, err, "to the payload store "+store.Name())
	open()
	require.Eventually(t, func() bool { return store.CheckReady(t.Context()) == nil }, testenv.Within(10*time.Second), 10*time.Millisecond)

	// Any value that is not taken tells the same.
	open = shut(t, dir)
	require.NoError(t, store.CheckReady(t.Context()), "it took a value a moment ago")
	require.ErrorContains(t, store.Write(t.Context(), value(strings.Repeat("v", 200_000))), "write sha256/")
	require.Error(t, store.CheckReady(t.Context()))
	open()
	require.Eventually(t, func() bool { return store.CheckReady(t.Context()) == nil }, testenv.Within(10*time.Second), 10*time.Millisecond)

	var none *payload.Store
	require.NoError(t, none.CheckReady(t.Context()))
}

// TestRecentValuesNeedNoStore: what Write has written the SDK stores again, with the
// same claim, whether the store is still there or not.
func TestRecentValuesNeedNoStore(t *testing.T) {
	t.Parallel()
	store, dir := openDirectory(t)
	written := value(strings.Repeat("kept", 100_000))
	require.NoError(t, store.Write(t.Context(), written))
	open := shut(t, dir)
	claims, err := store.ExternalStorage().Drivers[0].Store(
		converter.StorageDriverStoreContext{Context: t.Context()}, []*commonpb.Payload{written})
	require.NoError(t, err)
	open()
	back, err := store.ExternalStorage().Drivers[0].Retrieve(converter.StorageDriverRetrieveContext{Context: t.Context()}, claims)
	require.NoError(t, err)
	require.Equal(t, written.GetData(), back[0].GetData())
}

func TestSmallValuesAreNotStored(t *testing.T) {
	t.Parallel()
	store, dir := openDirectory(t)
	shut(t, dir)
	require.NoError(t, store.Write(t.Context(), value("small")))
}

// TestAShortAbsenceIsNoFailure of what the SDK reads and writes.
func TestAShortAbsenceIsNoFailure(t *testing.T) {
	t.Parallel()
	store, dir := openDirectory(t)
	driver := store.ExternalStorage().Drivers[0]
	open := shut(t, dir)
	time.AfterFunc(500*time.Millisecond, open)
	claims, err := driver.Store(converter.StorageDriverStoreContext{Context: t.Context()}, []*commonpb.Payload{value("v")})
	require.NoError(t, err)
	open = shut(t, dir)
	time.AfterFunc(500*time.Millisecond, open)
	_, err = driver.Retrieve(converter.StorageDriverRetrieveContext{Context: t.Context()}, claims)
	require.NoError(t, err)
}

// TestWhatStaysInTemporal whatever its size: what is marked, and heartbeats, which
// are all that the SDK stores for nobody.
func TestWhatStaysInTemporal(t *testing.T) {
	t.Parallel()
	store, _ := openDirectory(t)
	external := store.ExternalStorage()
	large := value(strings.Repeat("l", 1_000_000))
	target := converter.StorageDriverSelectContext{Target: converter.StorageDriverWorkflowInfo{WorkflowID: "w"}}
	chosen, err := external.DriverSelector.SelectDriver(target, large)
	require.NoError(t, err)
	require.Same(t, external.Drivers[0], chosen)

	marked := store.MarkInline(large)
	require.Equal(t, large.GetData(), marked.GetData())
	require.NotContains(t, large.GetMetadata(), "reprise-inline")
	for _, stays := range []struct {
		ctx   converter.StorageDriverSelectContext
		value *commonpb.Payload
	}{{target, marked}, {converter.StorageDriverSelectContext{}, large}} {
		chosen, err = external.DriverSelector.SelectDriver(stays.ctx, stays.value)
		require.NoError(t, err)
		require.Nil(t, chosen)
	}
}
