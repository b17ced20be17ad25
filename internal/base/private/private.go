// Package private recognizes the files that the programs and their operator keep for themselves: keys, the state of
// local servers, journals, connections, callers. Playbooks, and models that write them, may neither read nor write
// these files, by whatever name.
package private

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Folder is the folder, in the working directory, where programs store what they need to continue.
const Folder = ".reprise"

// BesideSuffix ends the name of a temporary file that will replace another.
const BesideSuffix = ".new"

// keySuffixes end the names of the files that a local server stores next to its database.
var keySuffixes = []string{".secret-key", ".callback-port", ".db.key"}

// IsName reports whether the name of a file or folder is one of ours, also on file systems that ignore case.
func IsName(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), BesideSuffix)
	for _, suffix := range keySuffixes {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return strings.HasSuffix(name, Folder)
}

// InPath reports whether a part of a path is such a name.
func InPath(path string) bool {
	for name := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if IsName(name) {
			return true
		}
	}
	return false
}

// IsServerDatabase reports whether a file is the database of a local server or one of its companion files, which a key file
// with the database's name shows.
func IsServerDatabase(path string) bool {
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		path = strings.TrimSuffix(path, suffix)
	}
	for _, suffix := range []string{".key", ".secret-key"} {
		if _, err := os.Stat(path + suffix); err == nil {
			return true
		}
	}
	return false
}

// Places are the places of one program's private files.
type Places struct {
	Directory string   // in which the program works, "" for the working directory
	Paths     []string // of files and folders that the operator has named
}

// IsNamed reports whether a file or folder is one that the operator has named, even if it was opened by another name.
func (f Places) IsNamed(info fs.FileInfo) bool {
	for _, path := range f.Paths {
		if there, err := os.Stat(path); err == nil && os.SameFile(info, there) {
			return true
		}
	}
	return false
}

// Has reports whether a file or folder is private. It may have another name, through links of any kind.
func (f Places) Has(info fs.FileInfo) bool {
	if f.IsNamed(info) {
		return true
	}
	for _, folder := range f.programFolders() {
		if there, err := os.Stat(folder); err == nil && os.SameFile(info, there) {
			return true
		}
	}
	return hasNames(info) && f.ContainsFile(info)
}

// hasNames reports whether a file has several names (hard links).
func hasNames(info fs.FileInfo) bool {
	known, ok := info.Sys().(*syscall.Stat_t)
	return !info.IsDir() && (!ok || known.Nlink > 1)
}

// ContainsFile reports whether a file is inside Folder or a named folder.
func (f Places) ContainsFile(info fs.FileInfo) bool {
	for _, folder := range append(f.programFolders(), f.Paths...) {
		found := false
		_ = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Type()&fs.ModeSymlink != 0 {
				return nil //nolint:nilerr // what is not there is not the file
			}
			if there, err := entry.Info(); err == nil && os.SameFile(info, there) {
				found = true
				return fs.SkipAll
			}
			return nil
		})
		if found {
			return true
		}
	}
	return false
}

// programFolders returns the folders of programs.
func (f Places) programFolders() []string {
	if f.Directory == "" || f.Directory == "." {
		return []string{Folder}
	}
	return []string{filepath.Join(f.Directory, Folder), Folder}
}

// NamesPath reports whether a path is that of a named file, whether or not the file exists.
func (f Places) NamesPath(path string) bool {
	path, err := filepath.Abs(path)
	for _, named := range f.Paths {
		if named, errNamed := filepath.Abs(named); err == nil && errNamed == nil && named == path {
			return true
		}
	}
	return false
}
