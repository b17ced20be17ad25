package interpreter

import (
	"container/list"
	"crypto/sha256"
	"fmt"
	"sync"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// cacheEntries bounds how many compiled playbooks a worker keeps.
const cacheEntries = 64

// cache keeps compiled playbooks by the hash of their source. Compiling is a
// pure function of the source, so it makes no difference to a workflow whether
// its playbook comes from here.
var cache = struct {
	sync.Mutex
	byHash map[[sha256.Size]byte]*list.Element
	recent *list.List // of cached, the last used first
}{byHash: map[[sha256.Size]byte]*list.Element{}, recent: list.New()}

type cached struct {
	hash [sha256.Size]byte
	book *playbook.Playbook
}

// Load decodes a playbook that the door has let in. It is tolerant: only what
// Decode itself calls an error is one, so that checks added later never break
// the replay of older runs.
func Load(name, text string) (*playbook.Playbook, error) {
	hash := sha256.Sum256([]byte(name + "\x00" + text))
	cache.Lock()
	defer cache.Unlock()
	if element, found := cache.byHash[hash]; found {
		cache.recent.MoveToFront(element)
		return element.Value.(*cached).book, nil // only cached values are put in
	}
	book, diagnostics := playbook.Decode(source.NewFile(name, []byte(text)))
	if book == nil || diagnostics.HasErrors() {
		return nil, fmt.Errorf("decode playbook %q: %w", name, diagnostics)
	}
	cache.byHash[hash] = cache.recent.PushFront(&cached{hash: hash, book: book})
	if cache.recent.Len() > cacheEntries {
		oldest := cache.recent.Remove(cache.recent.Back()).(*cached) // as above
		delete(cache.byHash, oldest.hash)
	}
	return book, nil
}
