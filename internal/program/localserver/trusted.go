package localserver

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// ErrForeign means that a file that leads to a local server may belong to another user, who would get the playbooks
// and keys that are sent there.
var ErrForeign = errors.New("it is not followed")

// ReadOwn reads a file that leads to a local server. The error wraps ErrForeign unless the file belongs to this user
// and nobody else can read or write it.
func ReadOwn(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link, so %w; remove it", path, ErrForeign)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	const others = 0o077
	owner, known := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular() || !known:
		return nil, fmt.Errorf("%s is not a regular file, so %w; remove it", path, ErrForeign)
	case int(owner.Uid) != os.Geteuid():
		return nil, fmt.Errorf("%s belongs to user %d and not to you, so %w; remove it, or name a server with --address", path, owner.Uid, ErrForeign)
	case info.Mode().Perm()&others != 0:
		return nil, fmt.Errorf("other users may read or write %s (mode %04o), so %w; remove it and start `starter dev` again", path, info.Mode().Perm(), ErrForeign)
	}
	const most = 1 << 20
	return io.ReadAll(io.LimitReader(file, most))
}

// OwnFolder makes a folder accessible to this user only, creating it if necessary. In another user's folder, or
// behind another user's link, that user could replace its files.
func OwnFolder(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	for _, look := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} {
		info, err := look(path)
		if err != nil {
			return err
		}
		if owner, known := info.Sys().(*syscall.Stat_t); known && int(owner.Uid) != os.Geteuid() {
			return fmt.Errorf("%s belongs to user %d and not to you; remove it, or work in another folder", path, owner.Uid)
		}
	}
	return os.Chmod(path, 0o700) //nolint:gosec // a folder
}

// makePrivate removes the permissions of others from a database file that an earlier version, or another program, has
// created.
func makePrivate(file string) {
	for _, path := range []string{file, file + "-wal", file + "-shm", file + "-journal"} {
		_ = os.Chmod(path, 0o600) // of nothing to lose: it is not there, or not ours
	}
}

// CheckLoopback refuses an address that is not on this machine: a local server has only local addresses.
func CheckLoopback(path, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil || !isLoopback(host) {
		return fmt.Errorf("%s names the server %q, which is not on this machine, so %w; remove it, or name the server with --address", path, address, ErrForeign)
	}
	return nil
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }
