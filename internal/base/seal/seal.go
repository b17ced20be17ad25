// Package seal encrypts the secrets that a run keeps, with AES-256-GCM and a key that only workers have. A value
// sealed for one place cannot be opened at another.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/hpke"
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
	"reprise/interpreter/lists"
)

// Variable is the environment variable of the keys, separated by commas: the first key encrypts, all keys decrypt
// what they encrypted.
const Variable = "REPRISE_SECRET_KEY"

// FileVariable is the environment variable of a file that has the text of Variable, such as a credential of systemd or a
// mounted Secret of Kubernetes. Only one of the two may be set.
const FileVariable = "REPRISE_SECRET_KEY_FILE"

// Advice says how to generate a key.
const Advice = "generate one with: openssl rand -base64 32"

// minKey is the least number of bytes in the text of a key, and minDistinct the least number of different ones.
const (
	minKey      = 32
	minDistinct = 10
)

// A sealed value consists of version, key ID, and nonce with ciphertext.
const version = "v1"

// Keys encrypt and decrypt. They are safe for concurrent use. Nil has no key.
type Keys struct {
	fixed []key
	file  *regular.Reread[[]key] // in place of fixed; nil for keys that never change
	mask  atomic.Pointer[func(text string)]
}

type key struct {
	text    string
	id      string
	aead    cipher.AEAD
	private hpke.PrivateKey // opens what others seal
}

// Parse parses the keys in the text of Variable; "" returns nil. Errors do not reveal keys.
func Parse(text string) (*Keys, error) {
	all, err := parseKeys(text, Variable)
	if err != nil || all == nil {
		return nil, err // nil has no key
	}
	return &Keys{fixed: all}, nil
}

// FromEnvironment returns the keys that Variable has, or the file that FileVariable names. The file is read again when it
// has changed; if it cannot be used then, the keys from before stay. Without either it returns nil. lookup is
// usually os.LookupEnv.
func FromEnvironment(lookup func(name string) (string, bool)) (*Keys, error) {
	text, _ := lookup(Variable)
	path, _ := lookup(FileVariable)
	switch {
	case path == "":
		return Parse(text)
	case text != "":
		return nil, fmt.Errorf("%s and %s are both set; unset one of them", Variable, FileVariable)
	}
	keys := &Keys{}
	file, err := regular.OpenReread(path, "the file of "+FileVariable, keys.readFile)
	if err != nil {
		return nil, err
	}
	keys.file = file
	return keys, nil
}

// readFile returns the keys in a file, and has them masked.
func (k *Keys) readFile(path string) ([]key, error) {
	data, err := regular.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", FileVariable, err)
	}
	all, err := parseKeys(strings.TrimSpace(string(data)), FileVariable)
	if err == nil && all == nil {
		err = fmt.Errorf("%s: %s is empty; %s", FileVariable, path, Advice)
	}
	if mask := k.mask.Load(); mask != nil {
		maskKeys(all, *mask)
	}
	return all, err
}

// Watch sets who gets what is wrong with a changed file, and the texts of keys, which logs must not show: those of now at
// once, and those of a changed file when it is read.
func (k *Keys) Watch(logger *slog.Logger, mask func(text string)) {
	if k == nil {
		return
	}
	k.mask.Store(&mask)
	if k.file != nil {
		k.file.LogTo(logger)
	}
	maskKeys(k.currentKeys(), mask)
}

func maskKeys(all []key, mask func(text string)) {
	for _, one := range all {
		mask(one.text)
	}
}

// currentKeys returns the keys as they are now.
func (k *Keys) currentKeys() []key {
	switch {
	case k == nil:
		return nil
	case k.file != nil:
		return k.file.Current()
	}
	return k.fixed
}

// parseKeys parses keys separated by commas; "" returns nil. variable is where they come from.
func parseKeys(text, variable string) (all []key, err error) {
	for _, part := range splitKeys(text) {
		one, err := newKey(part)
		if err != nil {
			return nil, fmt.Errorf("%s: key %d %w; %s", variable, len(all)+1, err, Advice)
		}
		all = append(all, one)
	}
	if len(all) == 0 && strings.TrimSpace(text) != "" {
		return nil, fmt.Errorf("%s contains no key; %s", variable, Advice)
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

// NewKey returns a random key in the form that Parse reads.
func NewKey() string {
	secret := make([]byte, minKey)
	_, _ = rand.Read(secret) // never fails
	return base64.StdEncoding.EncodeToString(secret)
}

func newKey(secret string) (key, error) {
	distinct := slices.Compact(slices.Sorted(slices.Values([]byte(secret))))
	switch {
	case len(secret) < minKey:
		return key{}, fmt.Errorf("is too short: it must have at least %d characters", minKey)
	case len(distinct) < minDistinct:
		return key{}, errors.New("is too simple: it repeats a few characters")
	}
	derived, err := hkdf.Key(sha256.New, []byte(secret), nil, "reprise secret results "+version, sha256.Size)
	if err != nil {
		return key{}, fmt.Errorf("cannot be used: %w", err)
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return key{}, fmt.Errorf("cannot be used: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return key{}, fmt.Errorf("cannot be used: %w", err)
	}
	material, err := hkdf.Key(sha256.New, []byte(secret), nil, "reprise codes of logins "+version, sha256.Size)
	if err != nil {
		return key{}, fmt.Errorf("cannot be used: %w", err)
	}
	private, err := kem.DeriveKeyPair(material)
	if err != nil {
		return key{}, fmt.Errorf("cannot be used: %w", err)
	}
	return key{text: secret, id: keyID(derived), aead: aead, private: private}, nil
}

// keyID identifies a key without revealing it.
func keyID(derived []byte) string {
	const size = 4
	mac := hmac.New(sha256.New, derived)
	mac.Write([]byte("reprise key id"))
	return hex.EncodeToString(mac.Sum(nil)[:size])
}

// IDs returns the IDs of the keys, that of the encrypting key first.
func (k *Keys) IDs() []string {
	return idsOf(k.currentKeys())
}

func idsOf(all []key) []string {
	return lists.Map(all, func(one key) string { return one.id })
}

// Seal encrypts a text for a place.
func (k *Keys) Seal(text []byte, place string) (string, error) {
	all := k.currentKeys()
	if len(all) == 0 {
		return "", errors.New("there is no key")
	}
	first := all[0]
	sealed := first.aead.Seal(nil, nil, text, []byte(place))
	return version + "." + first.id + "." + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open decrypts what Seal encrypted for the place. The error names the keys by their IDs.
func (k *Keys) Open(sealed, place string) ([]byte, error) {
	parts := strings.Split(sealed, ".")
	if len(parts) != 3 || parts[0] != version {
		return nil, errors.New("its format is unknown to this worker")
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || hex.EncodeToString(decodeHex(parts[1])) != parts[1] {
		return nil, errors.New("its format is unknown to this worker")
	}
	all := k.currentKeys()
	at := slices.Index(idsOf(all), parts[1])
	if at < 0 {
		return nil, fmt.Errorf("it is sealed with the key %s, but this worker has %s", parts[1], keyNames(all))
	}
	text, err := all[at].aead.Open(nil, nil, data, []byte(place))
	if err != nil {
		return nil, fmt.Errorf("it was modified, or sealed with the key %s for a different use", parts[1])
	}
	return text, nil
}

func decodeHex(text string) []byte {
	data, _ := hex.DecodeString(text)
	return data
}

func keyNames(all []key) string {
	if ids := idsOf(all); len(ids) > 0 {
		return "the keys " + strings.Join(ids, ", ")
	}
	return "none"
}

// Encryption to a public key, by the algorithms of RFC 9180 (HPKE).
var (
	kem      = hpke.MLKEM768X25519()
	kdf, enc = hpke.HKDFSHA256(), hpke.AES256GCM()
)

// PublicKey returns the public key of the first key, with which others can encrypt but not decrypt.
func (k *Keys) PublicKey() []byte {
	all := k.currentKeys()
	if len(all) == 0 {
		return nil
	}
	return all[0].private.PublicKey().Bytes()
}

// SealTo encrypts a text for a place and for the owners of a public key.
func SealTo(public, text []byte, place string) ([]byte, error) {
	key, err := kem.NewPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("the public key of the workers cannot be used: %w", err)
	}
	return hpke.Seal(key, kdf, enc, []byte(place), text)
}

// OpenSealed decrypts what SealTo encrypted for the place to the public key of one of the keys.
func (k *Keys) OpenSealed(sealed []byte, place string) ([]byte, error) {
	for _, one := range k.currentKeys() {
		if text, err := hpke.Open(one.private, kdf, enc, []byte(place), sealed); err == nil {
			return text, nil
		}
	}
	return nil, errors.New("it was not sealed for this worker, or for a different use")
}
