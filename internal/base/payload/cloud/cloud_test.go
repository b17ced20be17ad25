package cloud_test

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"reprise/internal/base/payload"
	_ "reprise/internal/base/payload/cloud"
)

// bucket speaks as much of the S3 protocol as a store needs.
type bucket struct {
	mu      sync.Mutex
	objects map[string][]byte
	forbid  bool // refuses to list
	refuses int  // the status that all requests but lists get, 0 for none
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !strings.Contains(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256") {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if b.refuses != 0 && !r.URL.Query().Has("list-type") {
		w.WriteHeader(b.refuses)
		return
	}
	object, there := b.objects[r.URL.Path]
	switch {
	case r.Method == http.MethodPut:
		data, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("X-Amz-Decoded-Content-Length") != "" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		b.objects[r.URL.Path] = data
	case r.URL.Query().Has("list-type"):
		if b.forbid {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code></Error>")
			return
		}
		_, _ = io.WriteString(w, xml.Header+"<ListBucketResult><KeyCount>0</KeyCount></ListBucketResult>")
	case !there:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
	default:
		w.Header().Set("Content-Length", fmt.Sprint(len(object)))
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		if r.Method == http.MethodGet {
			_, _ = w.Write(object)
		}
	}
}

// TestS3 sets environment variables, so it does not run in parallel.
func TestS3(t *testing.T) {
	credentials(t)
	for _, forbid := range []bool{false, true} {
		objects := &bucket{objects: map[string][]byte{}, forbid: forbid}
		server := httptest.NewServer(objects)
		t.Cleanup(server.Close)
		store, err := payload.Open(t.Context(), "s3://large/clinic?region=eu-central-1&use_path_style=true&endpoint="+server.URL)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		require.Equal(t, "s3://large/clinic", store.Name())

		driver := store.ExternalStorage().Drivers[0]
		value := &commonpb.Payload{Data: []byte(strings.Repeat("value", 100_000))}
		claims, err := driver.Store(converter.StorageDriverStoreContext{Context: t.Context()}, []*commonpb.Payload{value})
		require.NoError(t, err)
		require.Len(t, objects.objects, 1)
		require.Contains(t, objects.objects, "/large/clinic/"+claims[0].ClaimData["key"])

		retrieve := func() ([]*commonpb.Payload, error) {
			return driver.Retrieve(converter.StorageDriverRetrieveContext{Context: t.Context()}, claims)
		}
		back, err := retrieve()
		require.NoError(t, err)
		require.Equal(t, value.GetData(), back[0].GetData())

		clear(objects.objects)
		_, err = retrieve()
		require.ErrorIs(t, err, payload.ErrMissing)
		require.NotContains(t, err.Error(), "hunter2000")
	}
}

// TestS3ThatRefuses: a bucket that is overloaded, full or read-only for a while
// is not ready for that while, and every value waits for it. The table that operators decide by has a row for each.
func TestS3ThatRefuses(t *testing.T) {
	credentials(t)
	page, err := os.ReadFile("../../../../docs/how-to/why-a-run-hangs.md")
	require.NoError(t, err)
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusInsufficientStorage, http.StatusForbidden} {
		objects := &bucket{objects: map[string][]byte{}, refuses: status}
		server := httptest.NewServer(objects)
		t.Cleanup(server.Close)
		store, err := payload.Open(t.Context(), "s3://large?region=eu-central-1&use_path_style=true&endpoint="+server.URL)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		value := &commonpb.Payload{Data: []byte(strings.Repeat("value", 100_000))}
		require.ErrorContains(t, store.CheckReady(t.Context()), "to the payload store s3://large", status)
		require.ErrorContains(t, store.Write(t.Context(), value), "write sha256/", status)
		text := fmt.Sprintf("StatusCode: %d", status)
		require.ErrorContains(t, store.Write(t.Context(), value), text)
		require.Contains(t, string(page), "\n| `"+text+"` |")
		objects.mu.Lock()
		objects.refuses = 0
		objects.mu.Unlock()
		require.NoError(t, store.Write(t.Context(), value))
		require.NoError(t, store.CheckReady(t.Context()))
	}
}

// TestS3ThatIsSlow: the row of the table for a store that does not answer in time.
func TestS3ThatIsSlow(t *testing.T) {
	credentials(t)
	page, err := os.ReadFile("../../../../docs/how-to/why-a-run-hangs.md")
	require.NoError(t, err)
	objects, release := &bucket{objects: map[string][]byte{}}, make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			<-release
		}
		objects.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	store, err := payload.Open(t.Context(), "s3://large?region=eu-central-1&use_path_style=true&endpoint="+server.URL)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, store.CheckReady(ctx), "deadline exceeded")
	require.Contains(t, string(page), "\n| `deadline exceeded` |")
}

func credentials(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hunter2000")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
}

// TestCloudsAreKnown: an address of each is understood. The wrong option is
// found before anybody is asked over the network.
func TestCloudsAreKnown(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "nobody")
	for _, address := range []string{"s3://b?colour=red", "gs://b?colour=red", "azblob://b?colour=red"} {
		_, err := payload.Open(t.Context(), address)
		require.Error(t, err, address)
		require.NotContains(t, err.Error(), "unknown scheme", address)
		t.Log(err)
	}
}
