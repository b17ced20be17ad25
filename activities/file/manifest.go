package file

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/lists"
)

// manifestFolder is where the manifests of a path are.
const manifestFolder = "_manifest"

// manifest says which objects have the rows of a path. Each write that changes them makes the next one; one that was written never
// changes. A reader of the last one sees all rows of a write or none.
type manifest struct {
	Number int    `json:"number"` // from 1; 0 is that of a path without one
	Format string `json:"format"`
	// Compression is that of the files as wholes, gzip or zstd; Parquet has its own inside.
	Compression string   `json:"compression,omitempty"`
	Columns     []string `json:"columns,omitempty"` // of CSV and Parquet
	// Types are the Parquet types of the columns.
	Types map[string]string `json:"types,omitempty"`
	Rows  int64             `json:"rows"`
	Bytes int64             `json:"bytes"`
	Files []manifestFile    `json:"files"`
	Run   string            `json:"run,omitempty"`
	At    time.Time         `json:"written_at"`
	// Writes are the writes of the last days. A repeated write is recognized by them.
	Writes []manifestWrite `json:"writes,omitempty"`
	// Notes are the last of each call that notes how it continues, such as a transfer, of the last days.
	Notes []manifestNote `json:"notes,omitempty"`
	// Staged lists what calls and loops have published in the last weeks.
	Staged []publishedStage `json:"staged,omitempty"`
	// Replaced are files of manifests before, which readers of those may still read.
	Replaced []replacedFile `json:"replaced,omitempty"`
}

// manifestFile is an object with rows.
type manifestFile struct {
	Path   string    `json:"path"` // from that of the manifest's path
	Rows   int       `json:"rows"`
	Bytes  int64     `json:"bytes"`
	SHA256 string    `json:"sha256"`
	Run    string    `json:"run,omitempty"`
	At     time.Time `json:"written_at"`
	// Operation is the operation key of its write.
	Operation string `json:"operation,omitempty"`
}

// manifestWrite is a write that was made.
type manifestWrite struct {
	Operation   string    `json:"operation"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	Rows        int       `json:"rows"` // that the write was given
	At          time.Time `json:"at"`
	// Rejected are the files with those of its rows that did not fit.
	Rejected []rejectedFile `json:"rejected,omitempty"`
}

// manifestNote says how a call continues after one of its writes.
type manifestNote struct {
	Call         string    `json:"call"`
	Written      int       `json:"written"` // which of its writes it is, from 1
	Continuation []byte    `json:"continuation"`
	At           time.Time `json:"at"`
}

// replacedFile is an object whose rows were replaced.
type replacedFile struct {
	Path string    `json:"path"`
	At   time.Time `json:"at"`
}

// leftoverAge is how old what nobody needs has to be before it is removed: readers of manifests before may still read it, and a
// writer may be about to name it.
const leftoverAge = tool.NoteRetention

var manifestName = regexp.MustCompile(`^([0-9]{8,})\.json$`)

// manifestKey returns the key of a manifest.
func (r *remote) manifestKey(number int) string {
	return path.Join(r.key, manifestFolder, fmt.Sprintf("%08d.json", number))
}

// lastManifest reads the last manifest, or one with number 0. What a store lists may be old, so the numbers after the last that it lists are
// looked for.
func (r *remote) lastManifest(ctx context.Context) (manifest, error) {
	numbers, err := r.listManifests(ctx)
	if err != nil {
		return manifest{}, err
	}
	var last manifest
	number := 1
	if len(numbers) > 0 {
		number = max(1, slices.Max(numbers))
	}
	for ; ; number++ {
		next, found, err := r.readManifest(ctx, number)
		switch {
		case err != nil:
			return last, err
		case !found && last.Number == 0 && number > 1:
			return last, &tool.Error{
				Kind: interpreter.KindTool, Class: interpreter.ClassRetryable,
				Message: fmt.Sprintf("read %s in %s: the manifest %s is listed, and does not exist", r.path, r.at.Name, r.manifestKey(number)),
			}
		case !found:
			return last, nil
		}
		last = next
	}
}

// listManifests returns the numbers of manifests that the store lists.
func (r *remote) listManifests(ctx context.Context) (numbers []int, err error) {
	listed, err := r.listObjects(ctx, path.Join(r.key, manifestFolder))
	for _, object := range listed {
		if named := manifestName.FindStringSubmatch(path.Base(object.Key)); named != nil {
			if number, err := strconv.Atoi(named[1]); err == nil {
				numbers = append(numbers, number)
			}
		}
	}
	return numbers, err
}

// listObjects returns the objects right in a folder, nil where it does not exist.
func (r *remote) listObjects(ctx context.Context, folder string) (listed []blob.ListObject, err error) {
	if r.at.IsFolder() {
		return r.listFolder(folder)
	}
	all := r.bucket.List(&blob.ListOptions{Prefix: folder + "/", Delimiter: "/"})
	for {
		object, err := all.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return listed, nil
		case err != nil:
			return nil, r.storeError("list", err)
		case !object.IsDir:
			listed = append(listed, *object)
		}
	}
}

// listFolder is listObjects in a folder. Files that others remove meanwhile are left out.
func (r *remote) listFolder(folder string) (listed []blob.ListObject, err error) {
	entries, err := os.ReadDir(filepath.Join(r.root, filepath.FromSlash(folder)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, r.storeError("list", err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			listed = append(listed, blob.ListObject{Key: path.Join(folder, entry.Name()), ModTime: info.ModTime()})
		}
	}
	return listed, nil
}

// listBelow are all objects in a folder and those in it.
func (r *remote) listBelow(ctx context.Context, folder string) (listed []blob.ListObject, err error) {
	if !r.at.IsFolder() {
		all := r.bucket.List(&blob.ListOptions{Prefix: folder + "/"})
		for {
			object, err := all.Next(ctx)
			switch {
			case errors.Is(err, io.EOF):
				return listed, nil
			case err != nil:
				return nil, r.storeError("list", err)
			}
			listed = append(listed, *object)
		}
	}
	entries, err := os.ReadDir(filepath.Join(r.root, filepath.FromSlash(folder)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, r.storeError("list", err)
	}
	for _, entry := range entries {
		objects, err := r.listFolder(path.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		listed = append(listed, objects...)
	}
	return listed, nil
}

// readManifest reads a manifest, if it is there.
func (r *remote) readManifest(ctx context.Context, number int) (read manifest, found bool, err error) {
	content, err := r.bucket.ReadAll(ctx, r.manifestKey(number))
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		return manifest{}, false, nil
	case err != nil:
		return manifest{}, false, r.storeError("read the manifest of", err)
	}
	if err := json.Unmarshal(content, &read); err != nil || read.Number != number {
		return manifest{}, false, tool.Errorf("read %s: its manifest %s cannot be read: %w", r.path, r.manifestKey(number), cmp.Or(err, errOtherNumber))
	}
	return read, true, nil
}

var errOtherNumber = errors.New("it has the number of another")

// findWrite finds the write of an operation.
func (m manifest) findWrite(operation string) (tool.WrittenBefore, bool) {
	if operation == "" {
		return tool.WrittenBefore{}, false
	}
	for _, write := range m.Writes {
		if write.Operation == operation {
			return tool.WrittenBefore{Fingerprint: write.Fingerprint, Rows: int64(write.Rows)}, true
		}
	}
	for _, file := range m.Files { // which stays known as long as it is there
		if file.Operation == operation {
			return tool.WrittenBefore{Rows: int64(file.Rows)}, true
		}
	}
	return tool.WrittenBefore{}, false
}

// rejectedBy returns the files with the rows that an operation has rejected.
func (m manifest) rejectedBy(operation string) []rejectedFile {
	for _, write := range m.Writes {
		if operation != "" && write.Operation == operation {
			return write.Rejected
		}
	}
	return nil
}

// noteOf returns the last note of a call.
func (m manifest) noteOf(call string) (manifestNote, bool) {
	i := slices.IndexFunc(m.Notes, func(note manifestNote) bool { return note.Call == call })
	if i < 0 {
		return manifestNote{}, false
	}
	return m.Notes[i], true
}

// afterWrite returns the manifest after a write: with its files, and without those before if the write replaces them.
func (m manifest) afterWrite(w *objectWrite, files []manifestFile, now time.Time) manifest {
	next := manifest{
		Number: m.Number + 1, Format: w.Format, Compression: w.packing(), Columns: w.columns, Types: w.columnTypes(), Run: w.run, At: now, Files: slices.Clone(m.Files),
	}
	if w.preserves && m.Number > 0 {
		next.Format, next.Compression, next.Columns, next.Types = m.Format, m.Compression, m.Columns, m.Types
	}
	recent := func(at time.Time) bool { return now.Sub(at) < leftoverAge }
	next.Replaced = lists.Filter(m.Replaced, func(file replacedFile) bool { return recent(file.At) })
	if w.overwrite && !w.preserves {
		for _, file := range m.Files {
			next.Replaced = append(next.Replaced, replacedFile{Path: file.Path, At: now})
		}
		next.Files = nil
	}
	next.Files = append(next.Files, files...)
	for _, file := range next.Files {
		next.Rows, next.Bytes = next.Rows+int64(file.Rows), next.Bytes+file.Bytes
	}
	next.Writes = lists.Filter(m.Writes, func(write manifestWrite) bool { return recent(write.At) })
	next.Staged = lists.Filter(m.Staged, func(stage publishedStage) bool {
		return now.Sub(stage.At) < stageRetention && (w.published == nil || stage.ID != w.published.ID)
	})
	if w.published != nil {
		next.Staged = append(next.Staged, *w.published)
	} else if w.Operation != "" {
		next.Writes = append(next.Writes, manifestWrite{Operation: w.Operation, Fingerprint: w.Fingerprint, Rows: len(w.given), At: now, Rejected: w.rejected})
	}
	next.Notes = lists.Filter(m.Notes, func(note manifestNote) bool { return recent(note.At) && (w.Note == nil || note.Call != w.Note.Call) })
	if w.Note != nil {
		next.Notes = append(next.Notes, *w.newNote(now))
	}
	if next.Files == nil {
		next.Files = []manifestFile{}
	}
	return next
}

// addManifest writes a manifest, unless its number is taken.
func (r *remote) addManifest(ctx context.Context, next manifest) (taken bool, err error) {
	content, err := json.MarshalIndent(next, "", " ")
	if err != nil {
		return false, err
	}
	if taken, err = r.addOnce(ctx, r.manifestKey(next.Number), content); err != nil {
		return false, r.storeError("write the manifest of", err)
	}
	return taken, nil
}

// addOnce writes an object, unless there is one with its key.
func (r *remote) addOnce(ctx context.Context, key string, content []byte) (taken bool, err error) {
	if r.at.IsFolder() {
		return r.linkObject(ctx, key, content)
	}
	return r.addObject(ctx, key, content)
}

// addObject writes an object that must not be there to a bucket. After an error it may be there all the same, and then who reads it finds whose it is.
func (r *remote) addObject(ctx context.Context, key string, content []byte) (taken bool, err error) {
	err = r.bucket.WriteAll(ctx, key, content, &blob.WriterOptions{ContentType: "application/json", IfNotExist: true})
	if err == nil || gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return err != nil, nil
	}
	if there, unknown := r.bucket.Exists(ctx, key); unknown == nil && there || strings.Contains(err.Error(), "ConditionalRequestConflict") {
		return true, nil
	}
	return false, err
}

// linkObject writes an object to a folder that others may write to at the same time. Unlike a rename, a link fails
// if the object exists.
func (r *remote) linkObject(ctx context.Context, key string, content []byte) (taken bool, err error) {
	beside := key + "." + randomName()
	folder, err := r.writeObject(ctx, beside, content)
	if err != nil {
		return false, err
	}
	from, to := filepath.Join(folder, path.Base(beside)), filepath.Join(folder, path.Base(key))
	err = os.Link(from, to)
	if errors.Is(err, os.ErrExist) {
		return true, os.Remove(from)
	}
	return false, errors.Join(err, os.Remove(from), syncPath(folder))
}

// writeObject writes an object. In a local folder, it returns once the object is on disk.
func (r *remote) writeObject(ctx context.Context, key string, content []byte) (folder string, err error) {
	options := &blob.WriterOptions{ContentType: "application/octet-stream", BeforeWrite: func(as func(any) bool) error {
		var file *os.File
		if !as(&file) {
			return nil // an object of a bucket
		}
		folder = filepath.Dir(file.Name())
		return file.Chmod(fileMode)
	}}
	if err := r.bucket.WriteAll(ctx, key, content, options); err != nil || folder == "" {
		return "", err
	}
	return folder, errors.Join(syncPath(filepath.Join(folder, path.Base(key))), syncPath(folder))
}

// syncPath has a file, or the names of a folder, on disk.
func syncPath(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
