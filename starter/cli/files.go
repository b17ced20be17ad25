package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// OverwriteFile replaces the content of a file atomically and keeps its permissions.
func OverwriteFile(name string, data []byte) error {
	info, err := os.Stat(name)
	if err != nil {
		return UsageError("write %q: %w; --write needs a file", name, err)
	}
	target, err := filepath.EvalSymlinks(name)
	if err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	if err := ReplaceFile(target, data, info.Mode().Perm()); err != nil {
		return fmt.Errorf("write %q: %w", name, err)
	}
	return nil
}

// ReplaceFile writes a file atomically: on an error the old one remains.
func ReplaceFile(path string, data []byte, mode os.FileMode) error {
	next, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(next.Name()) //nolint:errcheck // it is gone once it is renamed
	_, err = next.Write(data)
	if err = errors.Join(err, next.Chmod(mode), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}
