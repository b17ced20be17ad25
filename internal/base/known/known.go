// Package known decides whether a worker knows the bytes of a playbook: because they lie in its folder of playbooks, or because
// somebody has signed them whose key it has. What a run calls itself proves nothing.
package known

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"reprise/internal/base/bookshelf"
	"reprise/internal/base/regular"
	"reprise/interpreter/lists"
	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// Playbooks are the playbooks that a worker knows. It is safe for concurrent use. Nil is a program that leaves to its owner what
// runs, such as starter try: all playbooks are known to it.
type Playbooks struct {
	// Only is set if playbooks that are not known do not run.
	Only bool

	folder string
	keys   *regular.Reread[[]ed25519.PublicKey]

	mu    sync.Mutex
	files map[string]*knownFile // by path in the folder
}

// knownFile is a file of the folder, and what can run of it.
type knownFile struct {
	info  fs.FileInfo
	books []attestedName
}

// attestedName is a playbook by its name and the digest of its bytes.
type attestedName struct{ name, digest string }

// OpenFolder knows the playbooks of a folder, and those that are signed by a key of a file; each is "" for none. The error is about the
// keys.
func OpenFolder(folder, keys string) (*Playbooks, error) {
	p := &Playbooks{folder: folder, files: map[string]*knownFile{}}
	if keys == "" {
		return p, nil
	}
	var err error
	p.keys, err = regular.OpenReread(keys, "the file of playbook keys", readPublicKeys)
	return p, err
}

// LogTo sets the logger for errors in a changed file of keys.
func (p *Playbooks) LogTo(logger *slog.Logger) {
	if p != nil && p.keys != nil {
		p.keys.LogTo(logger)
	}
}

// OnChange sets who is notified of a changed file of keys.
func (p *Playbooks) OnChange(changed func(what string, err error)) {
	if p != nil && p.keys != nil {
		p.keys.OnChange(changed)
	}
}

// DoubtReason says why a playbook of a name is not known, "" if it is. The text continues a sentence.
func (p *Playbooks) DoubtReason(name string, of playbook.Attestation) string {
	if p == nil {
		return ""
	}
	switch {
	case of.Digest == "":
		return "the attempt does not say which bytes its playbook has"
	case p.inFolder(name, of.Digest), p.isSigned(name, of):
		return ""
	case p.folder == "" && p.keys == nil:
		return "this worker knows no playbooks: it has neither --playbooks nor --playbook-keys"
	case of.Signature != "" && p.keys == nil:
		return fmt.Sprintf("playbook %s is signed, but this worker has no --playbook-keys", name)
	case of.Signature != "":
		return fmt.Sprintf("playbook %s has a signature that is of no key of this worker, or was changed after it was signed", name)
	case p.keys == nil:
		return fmt.Sprintf("the bytes of playbook %s are in no file of this worker's folder", name)
	case p.folder == "":
		return fmt.Sprintf("playbook %s has no signature", name)
	}
	return fmt.Sprintf("playbook %s has no signature, and its bytes are in no file of this worker's folder", name)
}

// RefusalText is the text of an error about a playbook that may not run here, "" if it may.
func (p *Playbooks) RefusalText(name string, of playbook.Attestation) string {
	if p == nil || !p.Only {
		return ""
	}
	doubt := p.DoubtReason(name, of)
	if doubt == "" {
		return ""
	}
	return "this worker runs only playbooks that it knows (--only-known), and " + doubt
}

// isSigned reports whether a key of the file has signed the playbook under the name.
func (p *Playbooks) isSigned(name string, of playbook.Attestation) bool {
	if p.keys == nil || of.Signature == "" {
		return false
	}
	signature, err := base64.StdEncoding.DecodeString(of.Signature)
	return err == nil && slices.ContainsFunc(p.keys.Current(), func(key ed25519.PublicKey) bool {
		return ed25519.Verify(key, playbook.SignedMessage(name, of.Digest), signature)
	})
}

// inFolder reports whether a file of the folder has the playbook now.
func (p *Playbooks) inFolder(name, digest string) bool {
	if p.folder == "" {
		return false
	}
	root, err := os.OpenRoot(p.folder)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }()
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := attestedName{name, digest}
	for path, file := range p.files {
		if !slices.Contains(file.books, wanted) {
			continue
		}
		if info, err := root.Stat(path); err == nil && regular.Unchanged(file.info, info) {
			return true
		}
	}
	p.readFolder(root)
	for _, file := range p.files {
		if slices.Contains(file.books, wanted) {
			return true
		}
	}
	return false
}

// readFolder reads the files of the folder that have changed. What cannot be read is not known.
func (p *Playbooks) readFolder(root *os.Root) {
	now := map[string]*knownFile{}
	_ = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		hidden := path != "." && strings.HasPrefix(entry.Name(), ".")
		switch {
		case err != nil:
			return nil //nolint:nilerr // another file may be readable
		case entry.IsDir() && hidden:
			return fs.SkipDir
		case entry.IsDir() || hidden || !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".yml"):
			return nil
		}
		info, err := root.Stat(path) // of what a link leads to
		if err != nil {
			return nil //nolint:nilerr // it leads out of the folder, or to nothing
		}
		if before := p.files[path]; before != nil && regular.Unchanged(before.info, info) {
			now[path] = before
		} else {
			now[path] = &knownFile{info: info, books: p.readBooks(path)}
		}
		return nil
	})
	p.files = now
}

// readBooks are the playbooks of a file.
func (p *Playbooks) readBooks(path string) []attestedName {
	text, err := bookshelf.ReadFile(p.folder, path)
	if err != nil {
		return nil
	}
	book, _ := playbook.Decode(source.NewFile(path, text))
	if book == nil {
		return nil
	}
	return lists.Map(book.WithInlined(), func(one *playbook.Playbook) attestedName { return attestedName{one.Name, one.Attestation().Digest} })
}
