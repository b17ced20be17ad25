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
	"slices"
	"strings"

	"reprise/interpreter/lists"
)

// Variable is the environment variable of the keys, separated by commas: the first key encrypts, all keys decrypt
// what they encrypted.
const Variable = "REPRISE_SECRET_KEY"

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
type Keys struct{ all []key }

type key struct {
	id      string
	aead    cipher.AEAD
	private hpke.PrivateKey // opens what others seal
}

// Parse parses the keys in the text of Variable; "" returns nil. Errors do not reveal keys.
func Parse(text string) (*Keys, error) {
	keys := &Keys{}
	for _, part := range SplitKeys(text) {
		one, err := newKey(part)
		if err != nil {
			return nil, fmt.Errorf("%s: key %d %w; %s", Variable, len(keys.all)+1, err, Advice)
		}
		keys.all = append(keys.all, one)
	}
	if len(keys.all) == 0 {
		if strings.TrimSpace(text) != "" {
			return nil, fmt.Errorf("%s contains no key; %s", Variable, Advice)
		}
		return nil, nil // nil has no key
	}
	return keys, nil
}

// SplitKeys returns the nonempty keys in a text.
func SplitKeys(text string) []string {
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
	return key{id: keyID(derived), aead: aead, private: private}, nil
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
	if k == nil {
		return nil
	}
	return lists.Map(k.all, func(one key) string { return one.id })
}

// Seal encrypts a text for a place.
func (k *Keys) Seal(text []byte, place string) (string, error) {
	if k == nil {
		return "", errors.New("there is no key")
	}
	first := k.all[0]
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
	at := slices.Index(k.IDs(), parts[1])
	if at < 0 {
		return nil, fmt.Errorf("it is sealed with the key %s, but this worker has %s", parts[1], k.keyNames())
	}
	text, err := k.all[at].aead.Open(nil, nil, data, []byte(place))
	if err != nil {
		return nil, fmt.Errorf("it was modified, or sealed with the key %s for a different use", parts[1])
	}
	return text, nil
}

func decodeHex(text string) []byte {
	data, _ := hex.DecodeString(text)
	return data
}

func (k *Keys) keyNames() string {
	if ids := k.IDs(); len(ids) > 0 {
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
	if k == nil {
		return nil
	}
	return k.all[0].private.PublicKey().Bytes()
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
	if k != nil {
		for _, one := range k.all {
			if text, err := hpke.Open(one.private, kdf, enc, []byte(place), sealed); err == nil {
				return text, nil
			}
		}
	}
	return nil, errors.New("it was not sealed for this worker, or for a different use")
}
