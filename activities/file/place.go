package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"reprise/activities/tool"
	"reprise/internal/base/private"
	"reprise/interpreter"
	"reprise/interpreter/lists"
)

// place is the location of a file: its open folder, and its name there.
type place struct {
	folder *os.Root
	name   string
	path   string     // of the folder, from the worker's directory
	opened []*os.Root // that directory, and the folders on the way

	private private.Places
}

// lookAt returns what is at the place.
func (p *place) lookAt() (os.FileInfo, error) {
	if p.name == "" {
		return nil, fs.ErrNotExist
	}
	return p.folder.Stat(p.name)
}

func (p *place) Close() error {
	return errors.Join(lists.Map(p.opened, (*os.Root).Close)...)
}

// maxLinks bounds the symbolic links that are followed on the way to a file, as Linux does: a
// link to itself would be followed without end.
const maxLinks = 40

// openPlace finds the file of a path below the worker's directory, and creates missing folders for a write. Each
// folder is opened by name from its parent, so that nothing leads out of the directory or to private files, even if
// others change links at the same time.
func (t *Tool) openPlace(in interpreter.ToolInput, path, verb string, makes bool) (*place, error) {
	root, err := os.OpenRoot(t.res.Directory)
	if err != nil {
		return nil, tool.ConfigErrorf("step %q: the worker's directory cannot be opened: %w", in.Step, err)
	}
	p := &place{folder: root, opened: []*os.Root{root}}
	p.private = t.res.PrivateFiles()
	err = p.walkTo(strings.Split(filepath.ToSlash(path), "/"), makes)
	if info, unknown := p.lookAt(); err == nil && (p.private.NamesPath(filepath.Join(t.res.Directory, p.path, p.name)) || unknown == nil && p.private.Has(info)) {
		err = errPrivate
	}
	switch {
	case err == nil:
		return p, nil
	case errors.Is(err, errPrivate):
		err = tool.PrivateFileError("file", in.Step, path)
	default:
		err = fileError(verb, path, err)
	}
	_ = p.Close()
	return nil, err
}

// errPrivate is the error for a file that playbooks may not open.
var errPrivate = errors.New("private")

// walkTo opens the last of some nested folders.
func (p *place) walkTo(names []string, makes bool) error {
	for links := 0; len(names) > 0; {
		name := names[0]
		if name == "" || name == "." {
			names = names[1:]
			continue
		}
		if name == ".." { // of a link
			if err := p.enterParent(); err != nil {
				return err
			}
			names = names[1:]
			continue
		}
		if private.IsName(name) {
			return errPrivate
		}
		info, err := p.folder.Lstat(name)
		switch {
		case err == nil && info.Mode()&fs.ModeSymlink != 0:
			target, err := p.folder.Readlink(name)
			if links++; err == nil && links > maxLinks {
				err = syscall.ELOOP
			}
			if err == nil && filepath.IsAbs(target) {
				err = errOutside
			}
			if err != nil {
				return err
			}
			names = append(strings.Split(filepath.ToSlash(target), "/"), names[1:]...)
			continue
		case len(names) == 1 && (err == nil || errors.Is(err, fs.ErrNotExist)):
			p.name = name
			return nil
		case errors.Is(err, fs.ErrNotExist) && makes:
			if err := p.folder.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			continue
		case err != nil:
			return err
		}
		if err := p.enterFolder(name, info); err != nil {
			return err
		}
		names = names[1:]
	}
	return syscall.EISDIR
}

// errOutside is the error for a link that leads out of the worker's directory.
var errOutside = fmt.Errorf("path escapes from parent: %w", fs.ErrPermission)

func (p *place) enterParent() error {
	if len(p.opened) == 1 {
		return errOutside
	}
	last := len(p.opened) - 1
	err := p.opened[last].Close()
	p.opened = p.opened[:last]
	p.folder, p.path = p.opened[last-1], filepath.Dir(p.path)
	return err
}

// enterFolder opens the folder that was seen under a name.
func (p *place) enterFolder(name string, seen fs.FileInfo) error {
	folder, err := p.folder.OpenRoot(name)
	if err != nil {
		return err
	}
	p.folder, p.path, p.opened = folder, filepath.Join(p.path, name), append(p.opened, folder)
	info, err := folder.Stat(".")
	if err == nil && !os.SameFile(info, seen) {
		err = errMoved
	}
	if err != nil {
		return err
	}
	if p.private.Has(info) {
		return errPrivate
	}
	return nil
}

// errMoved is the error for a file or folder that was replaced while it was being opened.
var errMoved = errors.New("it was replaced meanwhile")

// openFile opens the file and refuses links.
func (p *place) openFile(access int) (*os.File, os.FileInfo, error) {
	// Opening a pipe would wait for its other end, so it is opened without.
	file, err := p.folder.OpenFile(p.name, access|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil {
		var there os.FileInfo
		if there, err = p.folder.Lstat(p.name); err == nil && !os.SameFile(info, there) {
			err = errMoved
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}
