package session

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"reprise/internal/base/seal"
)

// localKey returns the key that a local server requires of clients, and by which its worker recognizes runs of this
// starter.
func localKey(dbFile string) (string, error) {
	key, err := localText(dbFile, keySuffix, rand.Text)
	if err != nil {
		return "", fmt.Errorf("the key of the local server: %w", err)
	}
	return key, nil
}

// secretKeys returns the keys that encrypt secret results on a local server: those of the environment, else generated
// ones.
func secretKeys(dbFile string) (*seal.Keys, error) {
	keys, err := seal.FromEnvironment(os.LookupEnv)
	if err != nil || keys != nil {
		return keys, err
	}
	text, err := localText(dbFile, secretKeySuffix, seal.NewKey)
	if err != nil {
		return nil, fmt.Errorf("the key for secret results: %w", err)
	}
	keys, err = seal.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dbFile+secretKeySuffix, err)
	}
	return keys, nil
}

// LocalFiles returns the files and folders of a local server's state, which no playbook may read or write.
func LocalFiles(dbFile string) []string {
	if dbFile == "" {
		return nil
	}
	all := []string{filepath.Join(filepath.Dir(dbFile), payloadsFolder)}
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", keySuffix, secretKeySuffix, callbackPortSuffix} {
		all = append(all, dbFile+suffix)
	}
	return all
}

// Suffixes and names of the files beside the database of a local server.
const (
	keySuffix          = ".key"
	secretKeySuffix    = ".secret-key"
	callbackPortSuffix = ".callback-port"
	payloadsFolder     = "payloads"
)

// localText returns a random text that lives as long as a local server's state: in memory, or in a private file
// beside the database.
func localText(dbFile, suffix string, random func() string) (string, error) {
	if dbFile == "" {
		return random(), nil
	}
	path := dbFile + suffix
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = newKeyFile(path, random())
	}
	if err != nil {
		return "", err
	}
	if key := strings.TrimSpace(string(text)); key != "" {
		return key, nil
	}
	return "", fmt.Errorf("%s is empty; delete it if no run needs its key", path)
}

// newKeyFile writes a new key to a file and returns it. If another process wrote the file first, it returns that key.
func newKeyFile(path, key string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	made, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(made.Name()) }()
	_, err = made.WriteString(key + "\n") // CreateTemp's files are of mode 0600
	if err = errors.Join(err, made.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(made.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.ReadFile(path)
}
