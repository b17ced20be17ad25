// Package seal encrypts the secrets that a run keeps, with AES-256-GCM and a key that only workers have. A value
// sealed for one place cannot be opened at another.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hpke"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"reprise/internal/base/keyring"
	"reprise/interpreter/lists"
)

// Variable is the environment variable of the keys, separated by commas: the first key encrypts, all keys decrypt
// what they encrypted.
const Variable = "REPRISE_SECRET_KEY"

// FileVariable is the environment variable of a file that has the text of Variable, such as a credential of systemd or a
// mounted Secret of Kubernetes. Only one of the two may be set.
const FileVariable = "REPRISE_SECRET_KEY_FILE"

// Advice says how to generate a key.
const Advice = keyring.Advice

// A sealed value consists of version, key ID, and nonce with ciphertext.
const version = "v1"

// Keys encrypt and decrypt. They are safe for concurrent use. Nil has no key.
type Keys struct {
	ring *keyring.Ring[key]
}

type key struct {
	id      string
	aead    cipher.AEAD
	private hpke.PrivateKey // opens what others seal
}

var variables = keyring.Variables{Text: Variable, File: FileVariable}

// Parse parses the keys in the text of Variable; "" returns nil. Errors do not reveal keys.
func Parse(text string) (*Keys, error) { return ringKeys(keyring.Parse(text, variables, newKey)) }

// FromEnvironment returns the keys that Variable has, or the file that FileVariable names. The file is read again when it
// has changed; if it cannot be used then, the keys from before stay. Without either it returns nil. lookup is
// usually os.LookupEnv.
func FromEnvironment(lookup func(name string) (string, bool)) (*Keys, error) {
	return ringKeys(keyring.FromEnvironment(variables, lookup, newKey))
}

func ringKeys(ring *keyring.Ring[key], err error) (*Keys, error) {
	if err != nil || ring == nil {
		return nil, err // nil has no key
	}
	return &Keys{ring: ring}, nil
}

// Watch sets the logger for problems with a file of keys that has changed. mask is called with the text of each key, which
// logs must not show: with the current ones immediately, and with new ones when the file is read again.
func (k *Keys) Watch(logger *slog.Logger, mask func(text string)) {
	if k != nil {
		k.ring.Watch(logger, mask)
	}
}

// currentKeys returns the keys as they are now.
func (k *Keys) currentKeys() []key {
	if k == nil {
		return nil
	}
	return k.ring.Current()
}

// NewKey returns a random key in the form that Parse reads.
func NewKey() string { return keyring.NewKey() }

func newKey(secret string) (key, error) {
	derived, err := keyring.Derive(secret, "reprise secret results "+version)
	if err != nil {
		return key{}, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return key{}, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return key{}, err
	}
	material, err := keyring.Derive(secret, "reprise codes of logins "+version)
	if err != nil {
		return key{}, err
	}
	private, err := kem.DeriveKeyPair(material)
	if err != nil {
		return key{}, err
	}
	return key{id: keyring.ID(derived), aead: aead, private: private}, nil
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
