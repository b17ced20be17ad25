// Package keyring reads the encryption keys of the programs: a few texts, separated by commas, in an environment variable or
// in a file that is read again when it changes. The first key encrypts, all keys decrypt what they encrypted.
package keyring

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"reprise/internal/base/regular"
)

// Advice says how to generate a key.
const Advice = "generate one with: openssl rand -base64 32"

// minKey is the least number of bytes in the text of a key, and minDistinct the least number of different ones.
const (
	minKey      = 32
	minDistinct = 10
)

// Variables are the environment variables of keys: Text has the keys, File names a file with the same text, such as a
// credential of systemd or a mounted Secret of Kubernetes. Only one of the two may be set.
type Variables struct{ Text, File string }

// Ring is a list of keys. It is safe for concurrent use. Nil has no key.
type Ring[K any] struct {
	variables Variables
	derive    func(secret string) (K, error)
	fixed     keys[K]
	file      *regular.Reread[keys[K]] // in place of fixed; nil for keys that never change
	mask      atomic.Pointer[func(text string)]
}

// keys are the texts of keys and what is derived of each.
type keys[K any] struct {
	texts   []string
	derived []K
}

// Parse reads the keys in the text of variables.Text; "" returns nil. Errors do not reveal keys.
func Parse[K any](text string, variables Variables, derive func(secret string) (K, error)) (*Ring[K], error) {
	r := &Ring[K]{variables: variables, derive: derive}
	all, err := r.parseKeys(text, variables.Text)
	if err != nil || all.texts == nil {
		return nil, err // nil has no key
	}
	r.fixed = all
	return r, nil
}

// FromEnvironment returns the keys that variables.Text has, or the file that variables.File names. The file is read again
// when it has changed; if it cannot be used then, the keys from before stay. Without either it returns nil. lookup is
// usually os.LookupEnv.
func FromEnvironment[K any](
	variables Variables, lookup func(name string) (string, bool), derive func(secret string) (K, error),
) (*Ring[K], error) {
	text, _ := lookup(variables.Text)
	path, _ := lookup(variables.File)
	switch {
	case path == "":
		return Parse(text, variables, derive)
	case text != "":
		return nil, fmt.Errorf("%s and %s are both set; unset one of them", variables.Text, variables.File)
	}
	r := &Ring[K]{variables: variables, derive: derive}
	file, err := regular.OpenReread(path, "the file of "+variables.File, r.readFile)
	if err != nil {
		return nil, err
	}
	r.file = file
	return r, nil
}

// readFile returns the keys in a file, and has them masked.
func (r *Ring[K]) readFile(path string) (keys[K], error) {
	data, err := regular.Read(path)
	if err != nil {
		return keys[K]{}, fmt.Errorf("read %s: %w", r.variables.File, err)
	}
	all, err := r.parseKeys(strings.TrimSpace(string(data)), r.variables.File)
	if err == nil && all.texts == nil {
		err = fmt.Errorf("%s: %s is empty; %s", r.variables.File, path, Advice)
	}
	if mask := r.mask.Load(); mask != nil {
		maskTexts(all.texts, *mask)
	}
	return all, err
}

// Watch sets who gets what is wrong with a changed file, and the texts of keys, which logs must not show: those of now at
// once, and those of a changed file when it is read.
func (r *Ring[K]) Watch(logger *slog.Logger, mask func(text string)) {
	if r == nil {
		return
	}
	r.mask.Store(&mask)
	if r.file != nil {
		r.file.LogTo(logger)
	}
	maskTexts(r.current().texts, mask)
}

func maskTexts(texts []string, mask func(text string)) {
	for _, text := range texts {
		mask(text)
	}
}

func (r *Ring[K]) current() keys[K] {
	switch {
	case r == nil:
		return keys[K]{}
	case r.file != nil:
		return r.file.Current()
	}
	return r.fixed
}

// Current returns what is derived of the keys as they are now, that of the encrypting key first.
func (r *Ring[K]) Current() []K { return r.current().derived }

// parseKeys parses keys separated by commas; "" returns none. variable is where they come from.
func (r *Ring[K]) parseKeys(text, variable string) (all keys[K], err error) {
	for _, part := range splitKeys(text) {
		if err := checkKey(part); err != nil {
			return keys[K]{}, fmt.Errorf("%s: key %d %w; %s", variable, len(all.texts)+1, err, Advice)
		}
		one, err := r.derive(part)
		if err != nil {
			return keys[K]{}, fmt.Errorf("%s: key %d cannot be used: %w; %s", variable, len(all.texts)+1, err, Advice)
		}
		all.texts, all.derived = append(all.texts, part), append(all.derived, one)
	}
	if len(all.texts) == 0 && strings.TrimSpace(text) != "" {
		return keys[K]{}, fmt.Errorf("%s contains no key; %s", variable, Advice)
	}
	return all, nil
}

// splitKeys returns the nonempty keys in a text.
func splitKeys(text string) []string {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

func checkKey(secret string) error {
	distinct := slices.Compact(slices.Sorted(slices.Values([]byte(secret))))
	switch {
	case len(secret) < minKey:
		return fmt.Errorf("is too short: it must have at least %d characters", minKey)
	case len(distinct) < minDistinct:
		return errors.New("is too simple: it repeats a few characters")
	}
	return nil
}

// NewKey returns a random key in the form that Parse reads.
func NewKey() string {
	secret := make([]byte, minKey)
	_, _ = rand.Read(secret) // never fails
	return base64.StdEncoding.EncodeToString(secret)
}

// Derive returns 32 bytes of key material for one use of a key. purpose is different for each use, and never changes.
func Derive(secret, purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, []byte(secret), nil, purpose, sha256.Size)
}

// ID identifies a key without revealing it, by the material that is derived of it.
func ID(derived []byte) string {
	const size = 4
	mac := hmac.New(sha256.New, derived)
	mac.Write([]byte("reprise key id"))
	return hex.EncodeToString(mac.Sum(nil)[:size])
}
