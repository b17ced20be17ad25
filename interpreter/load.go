package interpreter

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"reprise/interpreter/playbook"
	"reprise/interpreter/source"
)

// cachedBooks bounds the compiled playbooks that a worker keeps in memory.
const cachedBooks = 64

var loaded = newBooks(decodeBook)

// LoadPlaybook decodes a playbook that was validated before. It only reports what Decode itself considers an error, so that
// later checks never break the replay of older runs.
func LoadPlaybook(name, text string) (*playbook.Playbook, error) {
	return loaded.loadPlaybook(name, text)
}

func decodeBook(name, text string) (*playbook.Playbook, error) {
	loads.compiled.Add(1)
	book, diagnostics := playbook.Decode(source.NewFile(name, []byte(text)))
	if book == nil || diagnostics.HasErrors() {
		return nil, fmt.Errorf("decode playbook %q: %w", name, diagnostics)
	}
	return book, nil
}

// books caches recently used compiled playbooks by the hash of their source. Compiling is a pure function of the
// source, so the cache makes no difference to a workflow. Concurrent callers that need the same playbook wait for a
// single compilation, and for no other one.
type books struct {
	decode func(name, text string) (*playbook.Playbook, error)
	cache  *lru.Cache[[sha256.Size]byte, bookLoader]
}

// bookLoader compiles a playbook on the first call, and returns it.
type bookLoader func() (*playbook.Playbook, error)

func newBooks(decode func(name, text string) (*playbook.Playbook, error)) *books {
	cache, err := lru.New[[sha256.Size]byte, bookLoader](cachedBooks)
	if err != nil {
		panic(err) // of a size that is not positive
	}
	return &books{decode: decode, cache: cache}
}

func (b *books) loadPlaybook(name, text string) (*playbook.Playbook, error) {
	hash := sha256.Sum256([]byte(name + "\x00" + text))
	book, found := b.cache.Get(hash)
	if found {
		loads.cached.Add(1)
	} else {
		book = sync.OnceValues(func() (*playbook.Playbook, error) { return b.decode(name, text) })
		if other, found, _ := b.cache.PeekOrAdd(hash, book); found {
			book = other
		}
	}
	decoded, err := book()
	if err != nil {
		b.cache.Remove(hash) // a text that is not a playbook must not evict one
	}
	return decoded, err
}

// loads counts how often LoadPlaybook used its cache, and how often it compiled.
var loads struct{ cached, compiled atomic.Int64 }

// LoadCounts returns how often this process took a playbook from its cache, and how often it compiled one.
func LoadCounts() (cached, compiled int64) { return loads.cached.Load(), loads.compiled.Load() }
