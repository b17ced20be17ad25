package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"reprise/activities/tool"
	"reprise/internal/base/bucket"
	"reprise/internal/base/private"
	"reprise/interpreter"
)

// remote is a path below a connection: of an object, or of a folder that has the objects of writes.
type remote struct {
	bucket *blob.Bucket
	at     bucket.Location
	root   string // of a folder, without links
	key    string
	path   string // as messages name it
}

// remoteSchemes are the URL schemes that a connection may have.
var remoteSchemes = []string{"file", "s3", "gs", "azblob"}

// openRemote finds a path below the connection that auth names, or without one in the worker's directory. Nothing is read yet.
func (t *Tool) openRemote(ctx context.Context, in interpreter.ToolInput, local string) (*remote, error) {
	at, err := t.locationOf(ctx, in)
	if err != nil {
		return nil, err
	}
	opened, err := t.openBucket(ctx, at)
	if err != nil {
		return nil, err
	}
	r := &remote{bucket: opened, at: at, key: path.Clean(filepath.ToSlash(local)), path: local}
	switch {
	case private.InPath(r.key):
		return nil, tool.PrivateFileError("file", in.Step, local)
	case strings.ContainsFunc(r.key, unicode.IsControl): // which folders and stores name in different ways
		return nil, tool.ConfigErrorf("step %q: path is %q; it must not have control characters", in.Step, local)
	}
	return r, t.fenceFolder(in, r)
}

// locationOf returns the location that paths are below.
func (t *Tool) locationOf(ctx context.Context, in interpreter.ToolInput) (at bucket.Location, err error) {
	if in.Auth == "" {
		whole, err := filepath.Abs(t.res.Directory)
		if err != nil {
			return at, tool.ConfigErrorf("step %q: the worker's directory cannot be opened: %w", in.Step, err)
		}
		at, err = bucket.Parse((&url.URL{Scheme: "file", Path: filepath.ToSlash(whole)}).String(), "the worker's directory", nil)
		at.Name = at.What
		return at, err
	}
	raw, err := t.res.URLConnection(ctx, in.Auth, "file", false)
	if err != nil {
		return at, err
	}
	address, err := t.addressOf(in.Auth, raw)
	if err != nil {
		return at, err
	}
	if at, err = bucket.Parse(address, fmt.Sprintf("connection %q", in.Auth), nil); err != nil {
		return at, tool.ConfigErrorf("%w", err)
	}
	if scheme, _, _ := strings.Cut(at.Target, ":"); !slices.Contains(remoteSchemes, scheme) {
		return at, tool.ConfigErrorf("connection %q is not the address of files: it must begin with file://, s3://, gs:// or azblob://", in.Auth)
	}
	return at, nil
}

// addressOf returns the address of a connection. file:NAME is a folder below the worker's directory, which is made; another one has to exist, as it
// may be a share that is not mounted.
func (t *Tool) addressOf(name, raw string) (string, error) {
	folder, isLocal := strings.CutPrefix(raw, "file:")
	if !isLocal || strings.HasPrefix(folder, "/") {
		return raw, nil
	}
	if !filepath.IsLocal(folder) || private.InPath(folder) {
		return "", tool.ConfigErrorf("connection %q: file:NAME is a folder below the worker's directory, and cannot leave it; "+
			"for a folder elsewhere, write file:// and its full path, such as file:///var/lib/lake", name)
	}
	whole, err := filepath.Abs(filepath.Join(t.res.Directory, folder))
	if err == nil {
		err = os.MkdirAll(whole, folderMode)
	}
	if err != nil {
		return "", tool.ConfigErrorf("connection %q: its folder cannot be created: %w", name, err)
	}
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(whole)}).String(), nil
}

// folderMode is the mode of new folders, before the umask.
const folderMode = 0o755

// openBucket opens a location once for all attempts.
func (t *Tool) openBucket(ctx context.Context, at bucket.Location) (*blob.Bucket, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known := at.Target + " " + at.Prefix
	if opened := t.buckets[known]; opened != nil {
		return opened, nil
	}
	opened, err := at.Open(context.WithoutCancel(ctx)) // which outlives the attempt
	if errors.Is(err, os.ErrNotExist) {
		return nil, tool.ConfigErrorf("%w; create the folder, or mount the file system that belongs there", err)
	}
	if err != nil {
		return nil, tool.ConfigErrorf("%w", err)
	}
	t.buckets[known] = opened
	return opened, nil
}

// Close closes the connections, and files that are open between batches.
func (t *Tool) Close() error {
	t.streams.closeStreams()
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for known, opened := range t.buckets {
		errs = append(errs, opened.Close())
		delete(t.buckets, known)
	}
	return errors.Join(errs...)
}

// fenceFolder refuses a path that symbolic links lead out of the folder, and the worker's own files.
func (t *Tool) fenceFolder(in interpreter.ToolInput, r *remote) error {
	if !r.at.IsFolder() {
		return nil
	}
	address, err := url.Parse(r.at.Target)
	if err != nil {
		return tool.ConfigErrorf("connection %q: %w", in.Auth, err)
	}
	root, err := filepath.EvalSymlinks(filepath.FromSlash(address.Path))
	if err != nil {
		return fileError("open", r.path, err)
	}
	r.root = root
	whole := filepath.Join(root, filepath.FromSlash(r.key))
	for there := whole; there != root; there = filepath.Dir(there) {
		real, err := filepath.EvalSymlinks(there)
		if err != nil {
			continue // it does not exist, or what it is in says so
		}
		if outside, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(outside) {
			return fileError("open", r.path, errOutside)
		}
		break
	}
	private := t.res.PrivateFiles()
	info, err := os.Stat(whole)
	if private.NamesPath(whole) || err == nil && private.Has(info) {
		return tool.PrivateFileError("file", in.Step, r.path)
	}
	return nil
}

// objectContent reads an object from any place. Reads that follow each other are one request.
type objectContent struct {
	ctx  context.Context //nolint:containedctx // that of the attempt, in which all of it is read
	from *remote

	mu     sync.Mutex
	stream *blob.Reader // nil before the first read
	next   int64        // where the stream is
}

// ReadAt implements io.ReaderAt.
func (o *objectContent) ReadAt(p []byte, off int64) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stream == nil || o.next != off {
		o.closeStream()
		stream, err := o.from.bucket.NewRangeReader(o.ctx, o.from.key, off, -1, nil)
		if err != nil {
			return 0, o.from.storeError("read", err)
		}
		o.stream, o.next = stream, off
	}
	n, err := io.ReadFull(o.stream, p)
	o.next += int64(n)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n, io.EOF
	case err != nil && !errors.Is(err, io.EOF):
		o.closeStream()
		return n, o.from.storeError("read", err)
	}
	return n, err
}

func (o *objectContent) closeStream() {
	if o.stream != nil {
		_ = o.stream.Close()
		o.stream = nil
	}
}

// Close implements io.Closer.
func (o *objectContent) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closeStream()
	return nil
}

// openObject opens an object, with what is known of it.
func (r *remote) openObject(ctx context.Context) (*objectContent, *blob.Attributes, error) {
	attributes, err := r.bucket.Attributes(ctx, r.key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		if last, unread := r.lastManifest(ctx); unread == nil && last.Number > 0 {
			return nil, nil, tool.Errorf("read %s: it is a folder with %d files; read the files that its last manifest lists, %s", r.path, len(last.Files), r.manifestKey(last.Number))
		}
	}
	if err != nil {
		return nil, nil, r.storeError("read", err)
	}
	return &objectContent{ctx: ctx, from: r}, attributes, nil
}

// storeError classifies an error of the store: what is missing or forbidden stays so, a store that is away or full may not.
func (r *remote) storeError(verb string, err error) error {
	if _, own := errors.AsType[*tool.Error](err); own || tool.IsContextError(err) {
		return err
	}
	e := &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Err: err,
		Message: fmt.Sprintf("%s %s in %s: %s", verb, r.path, r.at.Name, err),
	}
	var answered interface{ HTTPStatusCode() int } // of S3
	status := 0
	if errors.As(err, &answered) {
		status = answered.HTTPStatusCode()
	}
	switch code := gcerrors.Code(err); {
	case status == http.StatusInsufficientStorage, errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Type = "no_space"
	case code == gcerrors.NotFound:
		e.Class, e.Type, e.Message = interpreter.ClassFinal, "not_found", fmt.Sprintf("%s %s in %s: it does not exist", verb, r.path, r.at.Name)
	case status == http.StatusForbidden, code == gcerrors.PermissionDenied, errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Class, e.Type = interpreter.ClassFinal, "permission"
	case code == gcerrors.InvalidArgument, code == gcerrors.Unimplemented:
		e.Class = interpreter.ClassFinal
	case tool.ConnectionType(err) != "":
		e.Kind, e.Type = interpreter.KindConnection, tool.ConnectionType(err)
	}
	return e
}
