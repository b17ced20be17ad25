// Package private knows the files that programs and their operator keep for themselves: keys, the state of local servers, journals,
// connections, callers. Playbooks, and models that write them, neither read nor write those, by whatever name.
package private

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Folder is where programs keep what they need to continue, in the folder that they work in.
const Folder = ".reprise"

// BesideSuffix ends the name of a temporary file that replaces another one.
const BesideSuffix = ".new"

// keySuffixes end the names of the files that a local server stores next to its database.
var keySuffixes = []string{".secret-key", ".callback-port", ".db.key"}

// IsName reports whether a name, of a file or of a folder on the way to it, is one of ours, on file systems of any kind.
func IsName(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), BesideSuffix)
	for _, suffix := range keySuffixes {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return strings.HasSuffix(name, Folder)
}

// InPath reports whether a path has such a name.
func InPath(path string) bool {
	for name := range strings.SplitSeq(filepath.ToSlash(path), "/") {
		if IsName(name) {
			return true
		}
	}
	return false
}

// IsServers reports whether a file is the database of a local server, or beside it: its keys have the name of the database.
func IsServers(path string) bool {
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

// Places are where one program has such files.
type Places struct {
	Directory string   // in which the program works, "" for the working directory
	Paths     []string // of files and folders that the operator has named
}

// IsNamed reports whether a file, or a folder, is one that the operator has named, by whatever name it was opened.
func (f Places) IsNamed(info fs.FileInfo) bool {
	for _, path := range f.Paths {
		if there, err := os.Stat(path); err == nil && os.SameFile(info, there) {
			return true
		}
	}
	return false
}

// Has reports whether a file, or a folder, is one of them. It may have another name, by links of any kind.
func (f Places) Has(info fs.FileInfo) bool {
	if f.IsNamed(info) {
		return true
	}
	for _, folder := range f.programFolders() {
		if there, err := os.Stat(folder); err == nil && os.SameFile(info, there) {
			return true
		}
	}
	return hasNames(info) && f.Holds(info)
}

// hasNames reports whether a file has more names than one.
func hasNames(info fs.FileInfo) bool {
	known, ok := info.Sys().(*syscall.Stat_t)
	return !info.IsDir() && (!ok || known.Nlink > 1)
}

// Holds reports whether a file is in Folder, or in one of the folders that are named.
func (f Places) Holds(info fs.FileInfo) bool {
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

// programFolders returns the folders of programs here.
func (f Places) programFolders() []string {
	if f.Directory == "" || f.Directory == "." {
		return []string{Folder}
	}
	return []string{filepath.Join(f.Directory, Folder), Folder}
}

// NamesPath reports whether a path is that of a file that the operator has named, whether or not it exists.
func (f Places) NamesPath(path string) bool {
	path, err := filepath.Abs(path)
	for _, named := range f.Paths {
		if named, errNamed := filepath.Abs(named); err == nil && errNamed == nil && named == path {
			return true
		}
	}
	return false
}
