// Package storage replaces the client of Google Cloud Storage, which this server does not archive to.
package storage

import (
	"context"
	"errors"

	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
)

// ScopeFullControl is the scope that the archiver requests.
const ScopeFullControl = "https://www.googleapis.com/auth/devstorage.full_control"

var errAbsent = errors.New("this server cannot archive to Google Cloud Storage: use Temporal's own server")

// The types that the archiver of Temporal's server uses. Their names are those of the replaced package.
type (
	Client         struct{}
	BucketHandle   struct{}
	ObjectHandle   struct{}
	ObjectIterator struct{}
	Writer         struct{}
	Reader         struct{}
	BucketAttrs    struct{}
	ObjectAttrs    struct{ Name string }
	Query          struct{ Prefix string }
)

// NewClient always fails, and so does every method of its types.
func NewClient(context.Context, ...option.ClientOption) (*Client, error) { return nil, errAbsent }

func (*Client) Bucket(string) *BucketHandle { return nil }

func (*BucketHandle) Object(string) *ObjectHandle { return nil }

func (*BucketHandle) Objects(context.Context, *Query) *ObjectIterator { return nil }

func (*BucketHandle) Attrs(context.Context) (*BucketAttrs, error) { return nil, errAbsent }

func (*ObjectHandle) NewWriter(context.Context) *Writer { return nil }

func (*ObjectHandle) NewReader(context.Context) (*Reader, error) { return nil, errAbsent }

func (*ObjectHandle) Attrs(context.Context) (*ObjectAttrs, error) { return nil, errAbsent }

func (*ObjectIterator) Next() (*ObjectAttrs, error) { return nil, iterator.Done }

func (*Writer) Write([]byte) (int, error) { return 0, errAbsent }

func (*Writer) Close() error { return errAbsent }

func (*Writer) CloseWithError(error) error { return nil }

func (*Reader) Read([]byte) (int, error) { return 0, errAbsent }

func (*Reader) Close() error { return nil }
