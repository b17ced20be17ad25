package format

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"reprise/activities/memory"
	"reprise/activities/tool"
	"reprise/interpreter/lists"
)

// errArchive is the error of an archive whose member cannot be read; another attempt would fail too.
var errArchive = errors.New("the archive cannot be read")

// shownMembers is how many members of an archive a message names.
const shownMembers = 10

// unzipMember reads a member of an archive: in place if body is a file or a part of one, else after reading the
// archive completely.
func (o Options) unzipMember(ctx context.Context, body, buffered io.Reader, limit int64) (*Unpacking, error) {
	at, size, err := randomAccess(ctx, body, buffered, limit)
	if err != nil {
		return nil, err
	}
	archive, err := zip.NewReader(at, size)
	if err != nil {
		return nil, fmt.Errorf("the archive cannot be read: %w", err) // it may be what is left of one
	}
	member, err := o.findMember(archive.File)
	if err != nil {
		return nil, err
	}
	reader, err := member.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", errArchive, shownMember(member), err)
	}
	return &Unpacking{ReadCloser: reader, Packed: true, Member: member.Name}, nil
}

// randomAccess returns an archive, whose directory is at its end, with its size in bytes.
func randomAccess(ctx context.Context, body, buffered io.Reader, limit int64) (io.ReaderAt, int64, error) {
	if file, isFile := body.(*os.File); isFile {
		info, err := file.Stat()
		if err != nil {
			return nil, 0, err
		}
		return file, info.Size(), nil
	}
	if part, isPart := body.(*io.SectionReader); isPart {
		return part, part.Size(), nil
	}
	content, err := memory.ReadAll(ctx, buffered, limit, limit)
	return bytes.NewReader(content), int64(len(content)), err
}

// findMember returns the file of an archive that the author names, or the only one.
func (o Options) findMember(all []*zip.File) (*zip.File, error) {
	files := lists.Filter(all, func(f *zip.File) bool {
		return !f.FileInfo().IsDir() && !strings.HasPrefix(f.Name, "__MACOSX/")
	})
	found := lists.Filter(files, func(f *zip.File) bool { return o.Member == "" || isNamed(o.Member, f.Name) })
	switch {
	case len(files) == 0:
		return nil, fmt.Errorf("%w: it has no files", errArchive)
	case len(found) == 0:
		return nil, fmt.Errorf("%w: none of its files is named %q; it has %s", errArchive, o.Member, memberNames(files))
	case len(found) > 1 && o.Member == "":
		return nil, fmt.Errorf("%w: it has %d files, %s; name one with member", errArchive, len(found), memberNames(found))
	case len(found) > 1:
		return nil, fmt.Errorf("%w: member %q names %d of its files, %s; name one", errArchive, o.Member, len(found), memberNames(found))
	case found[0].Flags&encryptedFlag != 0:
		return nil, fmt.Errorf("%w: %q is encrypted", errArchive, shownMember(found[0]))
	}
	return found[0], nil
}

// encryptedFlag is the bit of a member's flags that says that it is encrypted (APPNOTE 4.4.4).
const encryptedFlag = 1

// isNamed reports whether a pattern names a member, by its path in the archive or, where the pattern has no slash, by its last part.
func isNamed(pattern, name string) bool {
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	matches, _ := path.Match(pattern, name) // Of has checked it
	return matches || pattern == name
}

func memberNames(files []*zip.File) string {
	names := lists.Map(files[:min(len(files), shownMembers)], func(f *zip.File) string { return fmt.Sprintf("%q", shownMember(f)) })
	if len(files) > shownMembers {
		names = append(names, fmt.Sprintf("%d more", len(files)-shownMembers))
	}
	return strings.Join(names, ", ")
}

// shownMember returns the name of a member in a message.
func shownMember(f *zip.File) string { return tool.CutText(f.Name, 80) }
