package localserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// ErrForeign says that a file which leads to a local server may be another user's: whoever wrote it would get
// the playbooks and keys that are sent there.
var ErrForeign = errors.New("it is not followed")

// ReadOwn reads a file that leads to a local server, where it belongs to this user and nobody else can read or write it.
// The error wraps ErrForeign where it may be another user's.
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
		return nil, fmt.Errorf("%s is no regular file, so %w; remove it", path, ErrForeign)
	case int(owner.Uid) != os.Geteuid():
		return nil, fmt.Errorf("%s belongs to user %d and not to you, so %w; remove it, or name a server with --address", path, owner.Uid, ErrForeign)
	case info.Mode().Perm()&others != 0:
		return nil, fmt.Errorf("other users may read or write %s (mode %04o), so %w; remove it and start `starter dev` again", path, info.Mode().Perm(), ErrForeign)
	}
	const most = 1 << 20
	return io.ReadAll(io.LimitReader(file, most))
}

// CheckLoopback refuses an address that is not on this machine: a local server has no other.
func CheckLoopback(path, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil || !isLoopback(host) {
		return fmt.Errorf("%s names the server %q, which is not on this machine, so %w; remove it, or name the server with --address", path, address, ErrForeign)
	}
	return nil
}

// isLoopback reports whether a host names this machine by itself.
func isLoopback(host string) bool { return host == "localhost" || net.ParseIP(host).IsLoopback() }
