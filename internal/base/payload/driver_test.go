package payload_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"reprise/internal/base/payload"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// shelf is a store in a directory, with its driver.
type shelf struct {
	t      *testing.T
	dir    string
	driver converter.StorageDriver
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	dir := t.TempDir()
	return &shelf{t: t, dir: dir, driver: driverOf(t, dir)}
}

func driverOf(t *testing.T, dir string) converter.StorageDriver {
	t.Helper()
	address, err := payload.DirectoryAddress(dir)
	require.NoError(t, err)
	store, err := payload.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store.ExternalStorage().Drivers[0]
}

func value(text string) *commonpb.Payload {
	return &commonpb.Payload{
		Metadata: map[string][]byte{"encoding": []byte("json/plain"), "a": []byte("1"), "b": []byte("2")},
		Data:     []byte(text),
	}
}

func (s *shelf) store(values ...*commonpb.Payload) []converter.StorageDriverClaim {
	s.t.Helper()
	claims, err := s.driver.Store(converter.StorageDriverStoreContext{Context: s.t.Context()}, values)
	require.NoError(s.t, err)
	return claims
}

func (s *shelf) retrieve(claims ...converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	return s.driver.Retrieve(converter.StorageDriverRetrieveContext{Context: s.t.Context()}, claims)
}

// files are what the directory holds beside the marker of a store, temporary files included.
func (s *shelf) files() []string {
	s.t.Helper()
	var found []string
	require.NoError(s.t, filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && entry.Name() != "reprise-payload-store" {
			found = append(found, path)
		}
		return err
	}))
	return found
}

func TestValuesComeBackInOrder(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	values := []*commonpb.Payload{value("one"), value(""), value(strings.Repeat("three", 100_000)), value("one")}
	back, err := s.retrieve(s.store(values...)...)
	require.NoError(t, err)
	require.Len(t, back, len(values))
	for i := range values {
		require.True(t, proto.Equal(values[i], back[i]), i)
	}
}

func TestEqualValuesAreStoredOnce(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	first := s.store(value("same"))
	for range 20 { // the order of the metadata, a map, must not show
		require.Equal(t, first, s.store(value("same")))
	}
	require.Len(t, s.files(), 1)
	require.Regexp(t, `^sha256/[0-9a-f]{2}/[0-9a-f]{64}$`, first[0].ClaimData["key"])
	require.NotContains(t, first[0].ClaimData["key"], "same")
}

// TestOldValuesAreWrittenAgain: a rule that deletes by age must not take what a
// new run needs.
func TestOldValuesAreWrittenAgain(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	s.store(value("kept"))
	path := s.files()[0]
	for age, wantNew := range map[time.Duration]bool{time.Hour: false, 48 * time.Hour: true} {
		old := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, old, old))
		s.store(value("kept"))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, wantNew, time.Since(info.ModTime()) < 10*time.Minute, age)
	}
}

func TestManyWriteAndReadTheSameValues(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	values := []*commonpb.Payload{value(strings.Repeat("a", 300_000)), value(strings.Repeat("b", 300_000))}
	var group errgroup.Group
	for range 30 {
		driver := driverOf(t, s.dir) // as many processes would
		group.Go(func() error {
			claims, err := driver.Store(converter.StorageDriverStoreContext{Context: t.Context()}, values)
			if err != nil {
				return err
			}
			back, err := driver.Retrieve(converter.StorageDriverRetrieveContext{Context: t.Context()}, claims)
			if err != nil {
				return err
			}
			if !proto.Equal(values[0], back[0]) || !proto.Equal(values[1], back[1]) {
				return errors.New("another value came back")
			}
			return nil
		})
	}
	require.NoError(t, testenv.WaitResult(t, group.Wait, "the end of the writes"))
	require.Len(t, s.files(), 2)
}

func TestMissingValue(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	claims := s.store(value("gone"))
	require.NoError(t, os.Remove(s.files()[0]))
	_, err := s.retrieve(claims...)
	require.ErrorIs(t, err, payload.ErrMissing)
	require.ErrorContains(t, err, claims[0].ClaimData["key"])
	require.ErrorContains(t, err, "payload store file://")

	// It is there again, and so is the value.
	s.store(value("gone"))
	back, err := s.retrieve(claims...)
	require.NoError(t, err)
	require.Equal(t, "gone", string(back[0].GetData()))
}

func TestMissingValueOfAnotherStore(t *testing.T) {
	t.Parallel()
	s, other := newShelf(t), newShelf(t)
	_, err := s.retrieve(other.store(value("elsewhere"))...)
	require.ErrorIs(t, err, payload.ErrMissing)
	require.ErrorContains(t, err, "it was written to file://"+other.dir)
}

func TestCorruptValue(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func([]byte) []byte{
		"a bit":     func(data []byte) []byte { data[len(data)/2] ^= 1; return data },
		"cut short": func(data []byte) []byte { return data[:len(data)-1] },
		"empty":     func([]byte) []byte { return nil },
		"longer":    func(data []byte) []byte { return append(data, 'x') },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShelf(t)
			claims := s.store(value("precious"))
			path := s.files()[0]
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, damage(bytes.Clone(data)), 0o600))
			_, err = s.retrieve(claims...)
			require.ErrorIs(t, err, payload.ErrCorrupt)
			require.ErrorContains(t, err, claims[0].ClaimData["key"])
			require.NotContains(t, err.Error(), "precious")
		})
	}
}

// TestClaimsOfOthers: a reference in a history may have been written by anyone
// who may write to the namespace.
func TestClaimsOfOthers(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	good := s.store(value("x"))[0].ClaimData
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "secret"), []byte("s"), 0o600))
	for name, claim := range map[string]map[string]string{
		"nothing":       {},
		"another file":  {"key": "secret", "size": "1"},
		"outside":       {"key": "../../etc/passwd", "size": "1"},
		"no size":       {"key": good["key"]},
		"negative size": {"key": good["key"], "size": "-1"},
		"huge size":     {"key": good["key"], "size": "99999999999999"},
		"wrong folder":  {"key": "sha256/zz/" + strings.Repeat("a", 64), "size": "1"},
		"upper case":    {"key": strings.ToUpper(good["key"]), "size": good["size"]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := s.retrieve(converter.StorageDriverClaim{ClaimData: claim})
			require.ErrorContains(t, err, "does not belong to this driver")
		})
	}
}

// TestNothingOfACancelledWriteIsLeft: a value is there whole or not at all.
func TestNothingOfACancelledWriteIsLeft(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			_, _ = s.driver.Store(converter.StorageDriverStoreContext{Context: ctx},
				[]*commonpb.Payload{value(strings.Repeat("large", 2_000_000))})
		})
		time.Sleep(time.Millisecond) // somewhere in the middle of the write
		cancel()
		testenv.Wait(t, group.Wait, "the end of the cancelled write")
		for _, path := range s.files() {
			require.NotContains(t, path, ".tmp")
		}
	}
	claims := s.store(value(strings.Repeat("large", 2_000_000)))
	_, err := s.retrieve(claims...)
	require.NoError(t, err)
}

// TestAWriterThatDiedLeavesNoValue: what it left beside is never taken for one.
func TestAWriterThatDiedLeavesNoValue(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	claims := s.store(value("half"))
	path := s.files()[0]
	require.NoError(t, os.Rename(path, path+".123456789.tmp"))
	_, err := s.retrieve(claims...)
	require.ErrorIs(t, err, payload.ErrMissing)
}

func TestOperationsTakePermits(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	stores, retrieves := &permits[*commonpb.Payload]{}, &permits[converter.StorageDriverClaim]{}
	claims, err := s.driver.Store(converter.StorageDriverStoreContext{Context: t.Context(), Limiter: stores},
		[]*commonpb.Payload{value("a"), value("b"), value("c")})
	require.NoError(t, err)
	_, err = s.driver.Retrieve(converter.StorageDriverRetrieveContext{Context: t.Context(), Limiter: retrieves}, claims)
	require.NoError(t, err)
	require.EqualValues(t, 3, stores.taken.Load())
	require.EqualValues(t, 3, retrieves.taken.Load())
}

type permits[T any] struct{ taken atomic.Int32 }

func (p *permits[T]) Permit(_ context.Context, _ T, run func() error) error {
	p.taken.Add(1)
	return run()
}

// TestWithoutAStore: values stay where they are, and a stored one is an error
// that says where it is and what to do.
func TestWithoutAStore(t *testing.T) {
	t.Parallel()
	s := newShelf(t)
	claims := s.store(value("x"))
	var none *payload.Store
	external := none.ExternalStorage()
	chosen, err := external.DriverSelector.SelectDriver(converter.StorageDriverSelectContext{}, value("x"))
	require.NoError(t, err)
	require.Nil(t, chosen)
	_, err = external.Drivers[0].Retrieve(converter.StorageDriverRetrieveContext{Context: t.Context()}, claims)
	require.ErrorContains(t, err, "--payload-store or REPRISE_PAYLOAD_STORE")
	require.ErrorContains(t, err, (&url.URL{Scheme: "file", Path: s.dir}).String())
}

// TestFoldersOfABucketAreApart: the drivers of clouds ignore a path.
func TestFoldersOfABucketAreApart(t *testing.T) {
	t.Parallel()
	store, err := payload.Open(t.Context(), "mem://bucket/a/folder")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	require.Equal(t, "mem://bucket/a/folder", store.Name())
	driver := store.ExternalStorage().Drivers[0]
	claims, err := driver.Store(converter.StorageDriverStoreContext{Context: t.Context()}, []*commonpb.Payload{value("x")})
	require.NoError(t, err)
	back, err := driver.Retrieve(converter.StorageDriverRetrieveContext{Context: t.Context()}, claims)
	require.NoError(t, err)
	require.Equal(t, "x", string(back[0].GetData()))
}

// TestScriptsAreStoredForAllChildren: a script goes to the store at a size at which
// other values stay in Temporal, and is written and read once for many children.
func TestScriptsAreStoredForAllChildren(t *testing.T) {
	t.Parallel()
	address, err := payload.DirectoryAddress(t.TempDir())
	require.NoError(t, err)
	store, err := payload.Open(t.Context(), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	var did sync.Map
	store.SetWatch(func(operation string, bytes int64, _ time.Duration, err error) {
		count, _ := did.LoadOrStore(operation, new(atomic.Int64))
		count.(*atomic.Int64).Add(1)
	})
	external := store.ExternalStorage()
	script, other := value(strings.Repeat("s", interpreter.ScriptsAbove)), value(strings.Repeat("s", interpreter.ScriptsAbove))
	script.Metadata[interpreter.ScriptMark] = []byte("1")
	require.Equal(t, interpreter.ScriptsAbove, external.PayloadSizeThreshold, "what is smaller is not asked about")
	asked := converter.StorageDriverSelectContext{Context: t.Context(), Target: converter.StorageDriverWorkflowInfo{}}
	for _, choice := range []struct {
		value *commonpb.Payload
		takes bool
	}{{script, true}, {other, false}, {value(strings.Repeat("s", payload.Threshold)), true}} {
		driver, err := external.DriverSelector.SelectDriver(asked, choice.value)
		require.NoError(t, err)
		require.Equal(t, choice.takes, driver != nil)
	}
	s := &shelf{t: t, driver: external.Drivers[0]}
	for range 5 {
		back, err := s.retrieve(s.store(script)...)
		require.NoError(t, err)
		require.True(t, proto.Equal(script, back[0]))
	}
	for _, operation := range []string{"write", "read"} {
		count, known := did.Load(operation)
		require.True(t, known, operation)
		require.EqualValues(t, 1, count.(*atomic.Int64).Load(), operation)
	}
}
